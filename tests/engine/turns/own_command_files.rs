//! What the `!` lines of an own command change belongs to the message that they stand in.

use std::time::Instant;

use tiller_protocol::command::{SessionCommand, TurnCommand};
use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::tree::NodeKind;
use tiller_protocol::{CommandBody, EntryBody, EntryId, EventBody, Profile, RestoreWhat};

use crate::files::checkpoints::{self, back, keeps, kept, messages, session_command};
use crate::rig::*;
use crate::sessions::tree;
use crate::turns::own_commands::{last, look};

/// Waits until a file has this content.
async fn holds(place: &Place, name: &str, content: &str) {
    let end = Instant::now() + DEADLINE;
    while std::fs::read_to_string(place.work.join(name)).is_ok_and(|now| now != content) {
        assert!(Instant::now() < end, "{name}: {}", place.read(name));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Goes back to a message, with files and conversation.
async fn go_back(rig: &mut Rig, message: EntryId) -> String {
    let told = session_command(rig, back(message, RestoreWhat::Both)).await;
    let moved = |e: &EventBody| matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(());
    rig.until("the head moves", moved).await;
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_lines_change_goes_back_with_their_message() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    let fake = Fake::new([says("Hello."), says("Seen.")]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        look(&place, "!echo more >> a.txt\n!echo nothing\nLook at it.", Profile::Full)(p);
        keeps(&place, p);
    };
    let mut rig = place.start_with(&fake, change).await;
    rig.turn("hello").await;
    assert_eq!(rig.turn("/look").await.0, TurnStatus::Done);
    assert_eq!(place.read("a.txt"), "one\nmore\n");
    let said = messages(&mut rig).await;
    assert_eq!(said.len(), 2);
    // The tree counts them to the message, and not to the one before it.
    let nodes = tree::tree(&mut rig).await;
    let marks = tree::marks(&mut rig, nodes.session).await;
    let seq = |id| nodes.nodes.iter().find(|n| n.id == id).unwrap().seq;
    let line = nodes.nodes.iter().find(|n| n.kind == NodeKind::ToolResult).unwrap().seq;
    assert_eq!(marks.files, [(line, 1), (seq(said[1]), 1)]);
    assert!(tree::preview(&mut rig, said[0]).await.files.is_empty());
    let files = tree::preview(&mut rig, said[1]).await.files;
    assert_eq!(files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["a.txt"]);
    // The reply came after them: nothing goes back there.
    let entries = rig.snapshot().await.entries;
    let reply = entries.last().unwrap();
    assert!(matches!(reply.body, EntryBody::Assistant { .. }));
    assert!(checkpoints::preview(&mut rig, reply.id).await.files.is_empty());
    // To the message, and to the one before it.
    let told = go_back(&mut rig, said[1]).await;
    assert!(told.starts_with("a.txt was restored; you may have changed a.txt "), "{told}");
    assert_eq!(place.read("a.txt"), "one\n");
    let shown = shape(&rig.snapshot().await.entries);
    assert!(!shown.iter().any(|e| e.starts_with("result")), "their rows go with the message: {shown:?}");
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    assert_eq!(place.read("a.txt"), "one\nmore\n");
    session_command(&mut rig, back(said[0], RestoreWhat::Files)).await;
    assert_eq!(place.read("a.txt"), "one\n");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_was_stopped_is_continued_and_goes_back_whole() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    let fake = Fake::new([says("Hello."), says("Seen.")]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        look(&place, "!echo more >> a.txt; test -e go.txt || sleep 600", Profile::Full)(p);
        keeps(&place, p);
    };
    let mut rig = place.start_with(&fake, change).await;
    rig.turn("hello").await;
    rig.submit("/look");
    rig.started().await;
    holds(&place, "a.txt", "one\nmore\n").await;
    rig.interrupt(false);
    let notice = rig.notice("the message stays in the queue").await;
    assert!(notice.hints.iter().any(|hint| hint.contains("continue")), "{notice:?}");
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    // A line of the user's own in between changes nothing.
    rig.send(CommandBody::Turn(TurnCommand::Shell { line: "echo between".into(), share: true }));
    rig.until("its output", |e| matches!(e, EventBody::Tool(ToolEvent::ShellLine { .. })).then_some(()))
        .await;
    kept(&mut rig).await;
    place.file("go.txt", "");
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(fake.count(), 2, "the model is asked nothing before it has the message");
    assert!(last(&fake, 1).starts_with("Output of the command"), "{}", last(&fake, 1));
    assert!(rig.snapshot().await.queue.is_empty());
    assert_eq!(place.read("a.txt"), "one\nmore\nmore\n");
    let said = messages(&mut rig).await;
    go_back(&mut rig, *said.last().unwrap()).await;
    assert_eq!(place.read("a.txt"), "one\n", "both runs of its line go back");
    assert!(place.work.join("go.txt").exists(), "what the user made stays");
    assert!(!shape(&rig.snapshot().await.entries).iter().any(|e| e.starts_with("result")));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn continue_after_a_restart_sends_the_message_whose_line_was_stopped() {
    let place = Place::new();
    let fake = Fake::new([says("Hello.")]);
    let text = "!test -e go.txt || sleep 600; echo over";
    let mut rig = place.start_with(&fake, look(&place, text, Profile::Full)).await;
    let session = rig.session();
    rig.turn("hello").await;
    rig.submit("/look");
    rig.started().await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    rig.quit().await;

    place.file("go.txt", "");
    let again = Fake::new([says("Seen.")]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        look(&place, text, Profile::Full)(p);
        p.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&again, change).await;
    assert_eq!(rig.snapshot().await.queue.len(), 1);
    let cause = rig.send(CommandBody::Turn(TurnCommand::Continue));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let began = |body: &EventBody| matches!(body, EventBody::Turn(TurnEvent::TurnStarted {}));
    let began = rig.seen.iter().rfind(|e| began(&e.body)).unwrap();
    assert_eq!(began.cause, Some(cause), "a client that waits for its command sees the turn begin");
    assert!(last(&again, 0).contains("```\nover\n```"), "{}", last(&again, 0));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_lines_changed_before_a_restart_goes_back_with_their_message() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    let text = "!echo more >> a.txt; test -e go.txt || sleep 600";
    let change = |p: &mut tiller_engine::EngineConfig| {
        look(&place, text, Profile::Full)(p);
        keeps(&place, p);
    };
    let mut rig = place.start_with(&Fake::new([says("Hello.")]), change).await;
    let session = rig.session();
    rig.turn("hello").await;
    rig.submit("/look");
    rig.started().await;
    holds(&place, "a.txt", "one\nmore\n").await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    rig.quit().await;

    place.file("go.txt", "");
    let change = |p: &mut tiller_engine::EngineConfig| {
        look(&place, text, Profile::Full)(p);
        keeps(&place, p);
        p.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&Fake::new([says("Seen.")]), change).await;
    rig.send(CommandBody::Turn(TurnCommand::Continue));
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("a.txt"), "one\nmore\nmore\n");
    let said = messages(&mut rig).await;
    go_back(&mut rig, *said.last().unwrap()).await;
    assert_eq!(place.read("a.txt"), "one\n", "both runs of its line go back");
    rig.quit().await;
}
