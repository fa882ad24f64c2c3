//! Rules about paths and commands, with commands of the terminal: whatever is written, it is what runs that counts.

use tiller_config::schema::LearningsSetting;
use tiller_protocol::{Profile, RuleReceipts};

use super::Bench;
use super::rules::{push, rules};
use crate::rig::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_about_a_path_is_attached_to_a_command_that_writes_the_path() {
    let bench = Bench::new(false);
    bench.memory("- The docs are generated. [never: edit docs/**]\n");
    let docs = bench.place.work.join("docs");
    std::fs::create_dir_all(&docs).unwrap();
    std::fs::write(docs.join("a.md"), "x\n").unwrap();
    let fake = Fake::new([]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.session.profile = Some(Profile::Full);
        bench.learns(p, LearningsSetting::Never);
    };
    let mut rig = bench.place.start_with(&fake, change).await;
    let told = "[A rule of MEMORY.md forbids this call: The docs are generated.]";
    let writes = [
        "echo x > docs/a.md",
        "cat > docs/b.md <<'EOF'\nx\nEOF",
        "sed -i s/x/y/ docs/*.md",
        "cp b.md docs/",
        "mv docs/a.md b.md",
        "date | tee docs/a.md",
        "cd docs && touch a.md",
    ];
    for command in writes {
        let output = push(&mut rig, &fake, command).await;
        assert_eq!(output.matches(told).count(), 1, "{command}: {output}");
    }
    for command in ["cat docs/a.md", "echo x > notes.md", "echo 'x > docs/a.md'"] {
        let output = push(&mut rig, &fake, command).await;
        assert!(!output.contains("[A rule"), "{command}: {output}");
    }
    let violated = u32::try_from(writes.len()).unwrap() - 1;
    let receipts = rules(&mut rig).await[0].receipts;
    assert_eq!(receipts, RuleReceipts { shown: violated + 1, followed: 0, violated });
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_about_a_command_is_attached_however_the_command_is_written() {
    let bench = Bench::new(false);
    bench.memory("- No pushes. [never: terminal \"git push*\"]\n");
    let fake = Fake::new([]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.session.profile = Some(Profile::Full);
        bench.learns(p, LearningsSetting::Never);
    };
    let mut rig = bench.place.start_with(&fake, change).await;
    for command in [
        "g''it push",
        "g\\it push",
        "\"git\" push",
        "command git push",
        "env X=1 git push",
        "sh -c 'git push'",
    ] {
        let output = push(&mut rig, &fake, command).await;
        assert!(
            output.contains("[A rule of MEMORY.md forbids this call: No pushes.]"),
            "{command}: {output}"
        );
    }
    for command in ["git status", "echo 'git push'"] {
        let output = push(&mut rig, &fake, command).await;
        assert!(!output.contains("[A rule"), "{command}: {output}");
    }
    rig.quit().await;
}
