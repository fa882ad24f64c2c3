//! The todo list and compaction in requests.

use serde_json::json;
use tiller_protocol::command::{ContextCommand, SessionCommand, TodoCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::{CommandBody, EventBody, TodoStatus};

use crate::rig::*;
use crate::turns::failing_tools::Naughty;
use tiller_engine::EngineConfig;
use tiller_engine::Open;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn todo_reminders_and_the_persons_edits_reach_the_model() {
    let place = Place::new();
    let todos = json!({"merge": false, "todos": [{"id": "1", "content": "first", "status": "in_progress"}]});
    let fake = Fake::new([
        calls(&[("c1", "todo_write", todos)]),
        calls(&[("c2", "naughty", json!({"do": "fail"}))]),
        says("Hm."),
        says("I see."),
    ]);
    let mut rig = place.start_with(&fake, |p| p.tools.push(Naughty::leak())).await;
    rig.turn("plan").await;
    assert!(message_text(&fake.request(2), 4).contains("whether the plan"));
    rig.send(CommandBody::Todo(TodoCommand::Status { id: "1".into(), status: TodoStatus::Completed }));
    let by_person = |e: &EventBody| {
        matches!(e, EventBody::State(StateEvent::TodoChanged { by_person: true, .. })).then_some(())
    };
    rig.until("the edit", by_person).await;
    rig.turn("go on").await;
    let last = fake.request(3);
    assert!(message_text(&last, last.messages.len() - 1).contains("set 1 to completed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_calls_without_the_plan_are_mentioned_once() {
    let place = Place::new();
    // Each call reads another file, since repeated calls would be asked about.
    let read = |i: usize| {
        place.file(&format!("f{i}.txt"), "A\n");
        calls(&[(&format!("c{i}"), "read_file", read_args(&format!("f{i}.txt")))])
    };
    let mut replies: Vec<Vec<Step>> = (0..15).map(read).collect();
    replies.push(says("Done."));
    let fake = Fake::new(replies);
    let mut rig = place.start(&fake).await;
    rig.turn("go").await;
    let last = fake.request(15);
    let hints: Vec<usize> = (0..last.messages.len())
        .filter(|i| message_text(&last, *i).contains("calls without a todo list"))
        .collect();
    // Messages: the prompt, then reply and result for each call. The eleventh result has the reminder.
    assert_eq!(hints, [22]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_by_hand_keeps_the_old_path_and_tells_the_todo_list_once() {
    let place = Place::new();
    let todos = json!({"merge": false, "todos": [{"id": "1", "content": "the plan", "status": "pending"}]});
    let mut replies = vec![calls(&[("c1", "todo_write", todos)]), says("Planned.")];
    replies.extend((0..6).map(|i| says(&format!("reply {i}"))));
    let fake = Fake::new(replies);
    let mut rig = place.start_with(&fake, |p| p.config.context.compact_tokens = Some(1_000_000)).await;
    rig.turn("plan").await;
    for i in 0..6 {
        rig.turn(&format!("question {i} {}", "x".repeat(20_000))).await;
    }
    let session = rig.session();
    let before = rig.snapshot().await.entries.len();
    rig.send(CommandBody::Context(ContextCommand::CompactPreview));
    let ReplyEvent::CompactPreviewReply { preview } = rig.reply().await else { panic!() };
    assert!(preview.summarised > 0 && preview.kept >= 2);
    // Every removed entry is counted under its role.
    assert_eq!(preview.by_role.iter().map(|r| r.entries).sum::<u64>(), preview.summarised);
    let yours = preview.by_role.iter().find(|r| r.role == tiller_protocol::view::EntryAuthor::User).unwrap();
    assert!(yours.entries >= 3 && yours.tokens > 20_000, "{preview:?}");
    assert!(preview.goes.iter().any(|g| g.starts_with("you: question 0")), "{preview:?}");
    assert!(preview.goes.iter().any(|g| g.starts_with("result: todo_write")), "{preview:?}");
    fake.push(says("## Goal\nTHE SUMMARY"));
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: Some("the tests".into()) }));
    rig.until("compaction", |e| matches!(e, EventBody::Turn(TurnEvent::Compacted { .. })).then_some(()))
        .await;
    let asked = fake.request(fake.count() - 1);
    assert!(message_text(&asked, 0).contains("must keep, as the user asked: the tests"));
    fake.push(says("After."));
    rig.turn("go on").await;
    let last = fake.request(fake.count() - 1);
    assert_valid(&last);
    let all: Vec<String> = (0..last.messages.len()).map(|i| message_text(&last, i)).collect();
    assert!(all[0].contains("THE SUMMARY"));
    assert_eq!(all.iter().filter(|t| t.contains("The todo list at this point")).count(), 1);
    assert!(!all.iter().any(|t| t.starts_with("question 0")));
    // After a restart the request is the same, and the old path is still there.
    rig.quit().await;
    let fake = Fake::new([says("Again.")]);
    let mut rig = place.start_with(&fake, |p| p.session.open = Open::Session(session)).await;
    rig.turn("and now").await;
    let again = fake.request(0);
    assert_eq!(again.messages[..last.messages.len()], last.messages[..]);
    assert_eq!(again.system, last.system);
    assert!(rig.snapshot().await.entries.len() > before);
}

fn fast(p: &mut EngineConfig) {
    p.config.tiers.fast = Some("fake/fast".into());
}

fn fresh(e: &EventBody) -> Option<()> {
    matches!(e, EventBody::Turn(TurnEvent::SessionStarted { resumed: false, .. })).then_some(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_layer_that_is_too_long_is_shortened_by_the_fast_tier_and_paid_for_once() {
    let place = Place::new();
    place.file("AGENTS.md", &format!("HEAD {} TAIL", "rule ".repeat(20_000)));
    let fake = Fake::with(|_, r| says(if r.model == "fast" { "BE KIND" } else { "ok" }));
    let mut rig = place.start_with(&fake, fast).await;
    rig.turn("hello").await;
    let (asked, sent) = (fake.request(0), fake.request(1));
    assert_eq!((asked.model.as_str(), sent.model.as_str()), ("fast", "m"));
    assert!(message_text(&asked, 0).contains("HEAD"));
    assert!(sent.system.contains("BE KIND") && !sent.system.contains("HEAD"), "{}", sent.system);
    rig.send(CommandBody::Session(SessionCommand::New));
    rig.until("a fresh session", fresh).await;
    rig.turn("again").await;
    assert_eq!(fake.count(), 3, "the same file is not shortened again");
    assert!(fake.request(2).system.contains("BE KIND"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_fast_tier_fails_the_cut_stands() {
    let place = Place::new();
    place.file("AGENTS.md", &format!("HEAD {} TAIL", "rule ".repeat(20_000)));
    let fake = Fake::with(|_, r| {
        if r.model == "fast" {
            vec![Step::Refuse(tiller_provider::ProviderError::Rejected("no".into()))]
        } else {
            says("ok")
        }
    });
    let mut rig = place.start_with(&fake, fast).await;
    assert_eq!(rig.turn("hello").await.1, "ok");
    let system = &fake.request(1).system;
    assert!(system.contains("HEAD") && system.contains("TAIL") && system.contains("shortened"));
}
