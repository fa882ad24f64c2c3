//! Rules at the point of action: the one of many that matters is attached to the call that it concerns.

use tiller_config::schema::LearningsSetting;
use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{
    AskReply, CommandBody, Decision, LearningCommand, LearningsQuery, Profile, RuleReceipts, RuleView,
};

use super::{Bench, run};
use crate::rig::*;
use crate::turns::questions::permission;

/// 69 rules, of which one concerns a push.
fn many() -> String {
    let mut text = String::from("# Rules of this project\n\n");
    for n in 0..68 {
        text.push_str(&format!(
            "- 2026-10-{:02}: Rule {n} is about tool{n}. [when: terminal \"tool{n} *\"]\n",
            n % 28 + 1
        ));
    }
    text.push_str("- 2026-11-01: Nothing is pushed to main, the bot does that.\n  [when: terminal \"git push*\"] [never: terminal \"git push* main*\"]\n");
    text
}

async fn rules(rig: &mut Rig) -> Vec<RuleView> {
    let query = LearningsQuery { limit: 10, ..LearningsQuery::default() };
    match rig.query(Query::Learnings { query }).await {
        ReplyEvent::LearningsReply { reply } => reply.rules,
        other => panic!("{other:?}"),
    }
}

async fn push(rig: &mut Rig, fake: &Fake, command: &str) -> String {
    fake.push(run("c1", command));
    fake.push(says("Done."));
    rig.submit("go on");
    let (_, output) = rig.tool_finished().await;
    rig.finished().await;
    output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_69_rules_the_one_that_matters_is_attached_to_the_call_and_counted() {
    let bench = Bench::new(false);
    bench.memory(&many());
    let fake = Fake::new([]);
    let mut rig = bench.place.start_with(&fake, |p| drop(bench.learns(p, LearningsSetting::Never))).await;
    assert_eq!(rules(&mut rig).await.len(), 69);

    let output = push(&mut rig, &fake, "git push origin topic").await;
    assert!(
        output.ends_with(
            "[A rule of MEMORY.md concerns this call: Nothing is pushed to main, the bot does that.]"
        ),
        "{output}"
    );
    assert_eq!(output.matches("[A rule of").count(), 1, "{output}");
    // It is in no prompt, and in nothing that was sent before.
    assert!(!fake.request(0).system.contains("pushed to main"));

    // Followed: it is not repeated. Violated: it is.
    assert!(!push(&mut rig, &fake, "git push -u origin other").await.contains("[A rule"));
    let output = push(&mut rig, &fake, "cd x && git push origin main").await;
    assert!(output.contains("[A rule of MEMORY.md forbids this call: Nothing is pushed"), "{output}");
    assert!(!push(&mut rig, &fake, "git status").await.contains("[A rule"));
    let rule = rules(&mut rig).await.remove(0);
    assert_eq!(rule.receipts, RuleReceipts { shown: 2, followed: 1, violated: 1 });

    // Once violated, it cannot be promoted yet; the person sees the exact line, and nothing else may be written.
    let line = "terminal(git push* main*)";
    let promote = |line: &str| LearningCommand::Promote { rule: rule.text.clone(), line: line.into() };
    rig.send(CommandBody::Learning(promote(line)));
    assert!(rig.refused().await.message.contains("not violated twice"));
    push(&mut rig, &fake, "git push origin main").await;
    rig.send(CommandBody::Learning(promote("terminal")));
    assert!(rig.refused().await.message.contains("changed since"));
    rig.send(CommandBody::Learning(promote(line)));
    rig.reply().await;
    let file = bench.place.home().join("permissions.yaml");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), line);
    assert_eq!(rules(&mut rig).await[0].promoted.as_deref(), Some(line));
    rig.send(CommandBody::Learning(LearningCommand::Demote { rule: rule.text.clone() }));
    rig.reply().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_is_shown_with_the_question_about_its_call() {
    let bench = Bench::new(false);
    bench.memory(&many());
    let fake = Fake::new([run("c1", "git push origin main"), says("Done.")]);
    let mut rig = bench
        .place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Ask);
            bench.learns(p, LearningsSetting::Never);
        })
        .await;
    rig.submit("push");
    let ask = rig.asked().await;
    let asked = permission(&ask);
    let line = "a rule of MEMORY.md forbids it: Nothing is pushed to main, the bot does that.";
    assert!(asked.effects.iter().any(|e| e == line), "{:?}", asked.effects);
    rig.answer(&ask, AskReply::Permission { decision: Decision::Deny { comment: None }, hash: asked.hash });
    rig.finished().await;
    rig.quit().await;
}

/// A rule in a file that changes while the session runs, and one with a faulty matcher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_those_of_the_file_at_the_time_of_the_call() {
    let bench = Bench::new(false);
    bench.memory("- Broken [when: treminal \"x\"]\n");
    let fake = Fake::new([]);
    let mut rig = bench.place.start_with(&fake, |p| drop(bench.learns(p, LearningsSetting::Never))).await;
    assert!(!push(&mut rig, &fake, "git push").await.contains("[A rule"));
    bench.memory("- Ask Ada before. [when: terminal \"git push*\"]\n");
    assert!(push(&mut rig, &fake, "git push").await.contains("concerns this call: Ask Ada before."));
    rig.quit().await;
}
