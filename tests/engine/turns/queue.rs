//! Queued messages, and messages that are stopped before they are sent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_protocol::command::{QueueCommand, TurnCommand};
use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::{AgentId, Attachment, CommandBody, EventBody, Message, Queued, QueuedState, SendMode};
use tiller_store::Store;

use crate::rig::*;
use crate::scripted_model::lock;
use tiller_engine::{Open, StaleFiles, WatchSink, Watcher};

fn queue_of(e: &EventBody) -> Option<Vec<Queued>> {
    match e {
        EventBody::State(StateEvent::QueueChanged { queue }) => Some(queue.clone()),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steering_goes_out_after_the_results_and_queued_words_afterwards() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let gate = Arc::new(Gate::new());
    let mut first = vec![Step::Gate(Arc::clone(&gate))];
    first.extend(calls(&[("c1", "read_file", read_args("a.txt"))]));
    let fake = Fake::new([first, says("Steered."), says("Queued.")]);
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    rig.until("start", |e| matches!(e, EventBody::Turn(TurnEvent::TurnStarted {})).then_some(())).await;
    let image = Attachment::Image {
        label: "[image 1]".into(),
        media_type: "image/png".into(),
        data: "AAAA".into(),
        width: 1,
        height: 1,
    };
    rig.submit_as(
        Message { text: "later [image 1]".into(), attachments: vec![image], ..Message::default() },
        SendMode::Queue,
    );
    rig.submit_as(Message::text("mind the tests"), SendMode::Steer);
    let accepted = |q: &Vec<Queued>| q.len() == 2 && q.iter().all(|q| q.state == QueuedState::Accepted);
    rig.until("both accepted", |e| queue_of(e).filter(accepted)).await;
    gate.pass_one();
    assert_eq!(rig.finished().await.1, "Steered.");
    assert_eq!(rig.finished().await.1, "Queued.");
    let shape = shape(&rig.snapshot().await.entries);
    assert_eq!(
        shape[1..],
        [
            "user Prompt go",
            "reply 2 ToolUse",
            "result c1 Ok",
            "user Steer mind the tests",
            "reply 1 EndTurn",
            "user Prompt later [image 1]",
            "reply 1 EndTurn"
        ]
    );
    let last = fake.request(2);
    assert_valid(&last);
    let tiller_provider::ChatMessage::User { content } = &last.messages[5] else { panic!() };
    assert!(matches!(content[1], tiller_protocol::Part::Image { .. }), "the image stayed with its message");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_messages_can_be_changed_moved_taken_back_and_survive_a_restart() {
    let place = Place::new();
    let fake = Fake::new([vec![Step::Hang]]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.submit("go");
    rig.until("start", |e| matches!(e, EventBody::Turn(TurnEvent::TurnStarted {})).then_some(())).await;
    for text in ["one", "two", "three"] {
        rig.submit_as(Message::text(text), SendMode::Queue);
    }
    let three = |q: &Vec<Queued>| q.len() == 3 && q.iter().all(|q| q.state == QueuedState::Accepted);
    let queue = rig.until("three accepted", |e| queue_of(e).filter(three)).await;
    rig.send(CommandBody::Queue(QueueCommand::Remove { id: queue[1].id }));
    rig.send(CommandBody::Queue(QueueCommand::Move { id: queue[2].id, to: 0 }));
    let message = Message::text("one, changed");
    rig.send(CommandBody::Queue(QueueCommand::Edit { id: queue[0].id, message }));
    let texts = |q: &Vec<Queued>| q.iter().map(|q| q.message.text.clone()).collect::<Vec<_>>();
    let two = |q: &Vec<Queued>| {
        texts(q) == ["three", "one, changed"] && q.iter().all(|q| q.state == QueuedState::Accepted)
    };
    rig.until("the changed queue", |e| queue_of(e).filter(two)).await;
    rig.send(CommandBody::Queue(QueueCommand::Remove { id: queue[1].id }));
    assert!(rig.refused().await.message.contains("no longer waiting"));
    rig.kill().await;
    place.free(session);
    let fake = Fake::new([says("a"), says("b"), says("c")]);
    let mut rig = place.start_with(&fake, |p| p.session.open = Open::Session(session)).await;
    assert_eq!(texts(&rig.snapshot().await.queue), ["three", "one, changed"]);
    rig.turn("first this").await;
    rig.finished().await;
    rig.finished().await;
    assert_eq!(fake.count(), 3);
    assert_valid(&fake.request(2));
}

/// Clients that wait for its turn, as a script does, wait no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_waits_and_cannot_be_sent_ends_as_a_turn_that_failed() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let mut first = vec![Step::Gate(Arc::clone(&gate))];
    first.extend(says("First."));
    let fake = Fake::new([first]);
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    fake.requested(1).await;
    let file = Attachment::File { label: "@gone.txt".into(), path: "gone.txt".into(), lines: None };
    let message = Message { text: "see @gone.txt".into(), attachments: vec![file], ..Message::default() };
    rig.submit_as(message, SendMode::Queue);
    rig.until("the queue", queue_of).await;
    gate.pass_one();
    assert_eq!(rig.finished().await.1, "First.");
    let (status, _, why) = rig.finished().await;
    assert_eq!(status, TurnStatus::Failed);
    assert!(why.is_some_and(|why| why.message.contains("@gone.txt cannot be attached")));
    assert_eq!(rig.snapshot().await.queue.len(), 1, "it can be edited");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn now_stops_the_turn_and_sends() {
    let place = Place::new();
    let mut first = words(0, "on and on");
    first.push(Step::Hang);
    let fake = Fake::new([first, says("Yes?")]);
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    rig.until("text", |e| matches!(e, EventBody::Turn(TurnEvent::TextDelta { .. })).then_some(())).await;
    rig.submit_as(Message::text("stop, other thing"), SendMode::Now);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert_eq!(rig.finished().await.1, "Yes?");
    let shape = shape(&rig.snapshot().await.entries);
    assert_eq!(shape[2..4], ["reply 1 Interrupted", "user Prompt stop, other thing"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_that_cannot_be_read_stops_the_send_and_nothing_is_stored() {
    let place = Place::new();
    let fake = Fake::new([says("ok")]);
    let mut rig = place.start(&fake).await;
    let file = |path: &str| Attachment::File { label: format!("@{path}"), path: path.into(), lines: None };
    let message =
        Message { text: "see @gone.txt".into(), attachments: vec![file("gone.txt")], ..Message::default() };
    let cause = rig.submit_as(message, SendMode::Steer);
    assert!(rig.refused().await.message.contains("@gone.txt cannot be attached"));
    assert_eq!(rig.seen.last().unwrap().cause, Some(cause));
    assert!(rig.snapshot().await.entries.is_empty());
    place.file("there.txt", "THE CONTENT\n");
    rig.submit_as(
        Message { text: "see @there.txt".into(), attachments: vec![file("there.txt")], ..Message::default() },
        SendMode::Steer,
    );
    rig.finished().await;
    assert!(message_text(&fake.request(0), 0).contains("THE CONTENT"));
}

/// A watcher that takes its time when it is asked for changes, so that a message is being prepared for long.
struct Slow {
    asked: SyncSender<()>,
    /// The test holds the sender; closing it releases all waiting calls.
    gate: Mutex<Receiver<()>>,
}

impl Watcher for Slow {
    fn start(&self, _: WatchSink) {}
    fn writing(&self, _: &AgentId, _: &[PathBuf]) {}
    fn wrote(&self, _: &AgentId, _: &[PathBuf]) {}
    fn command(&self, _: &AgentId, _: &str, _: Option<&tiller_tool::shell::Witness>, _: bool) {}
    fn has_changes(&self, _: &AgentId) -> bool {
        true
    }
    fn stale(&self, _: &AgentId, _: &HashMap<PathBuf, tiller_tool::cx::SeenFile>) -> StaleFiles {
        let _ = self.asked.try_send(());
        let _ = lock(&self.gate).recv();
        StaleFiles::default()
    }
    fn known(&self, _: &Path, _: &Arc<str>) {}
    fn pause(&self, _: bool) {}
    fn mute(&self, _: &str) {}
    fn diff(&self, _: &str) -> Result<String, String> {
        Err(String::new())
    }
}

fn slow() -> (Arc<Slow>, Receiver<()>, SyncSender<()>) {
    let (asked, on_its_way) = sync_channel(8);
    let (open, gate) = sync_channel(0);
    (Arc::new(Slow { asked, gate: Mutex::new(gate) }), on_its_way, open)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_stopped_on_its_way_comes_back_and_ends_whoever_waits() {
    let place = Place::new();
    let fake = Fake::new([says("Now.")]);
    let (watcher, on_its_way, gate) = slow();
    let mut rig = place.start_with(&fake, |p| p.files.watcher = Some(watcher)).await;
    let cause = rig.submit("never sent");
    on_its_way.recv_timeout(DEADLINE).unwrap();
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert_eq!(rig.seen.last().unwrap().cause, Some(cause));
    // The refusal returns the draft to the client that sent it.
    assert!(rig.refused().await.message.contains("before the message was sent"));
    assert_eq!(rig.seen.last().unwrap().cause, Some(cause));
    drop(gate);
    assert_eq!(rig.turn("sent").await.1, "Now.");
    assert_eq!(shape(&rig.snapshot().await.entries)[1..], ["user Prompt sent", "reply 1 EndTurn"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_on_its_way_waits_in_the_queue_when_tiller_ends() {
    let place = Place::new();
    let fake = Fake::new([]);
    let (watcher, on_its_way, gate) = slow();
    let mut rig = place.start_with(&fake, |p| p.files.watcher = Some(watcher)).await;
    let session = rig.session();
    rig.submit("not lost");
    on_its_way.recv_timeout(DEADLINE).unwrap();
    rig.quit().await;
    drop(gate);
    let store = Store::open(&place.db(), Default::default()).unwrap();
    let queue = store.unfinished().queue(session, "main").unwrap();
    assert_eq!(queue.iter().map(|q| q.message.text.as_str()).collect::<Vec<_>>(), ["not lost"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_output_of_a_line_during_a_turn_outlives_a_crash() {
    let place = Place::new();
    let mut first = words(0, "on and on");
    first.push(Step::Hang);
    let fake = Fake::new([first]);
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.submit("go");
    rig.until("text", |e| matches!(e, EventBody::Turn(TurnEvent::TextDelta { .. })).then_some(())).await;
    rig.send(CommandBody::Turn(TurnCommand::Shell { line: "echo kept-$((40+2))".into(), share: true }));
    rig.until("output", |e| matches!(e, EventBody::Tool(ToolEvent::ShellLine { .. })).then_some(())).await;
    let store = Store::open(&place.db(), Default::default()).unwrap();
    let end = std::time::Instant::now() + DEADLINE;
    while store.unfinished().pending(session, "main").unwrap().is_empty() {
        assert!(std::time::Instant::now() < end, "it is not stored");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let rows = store.audit().list(Some(session), "", 10).unwrap();
    assert_eq!((rows[0].tool.as_str(), rows[0].what.as_str()), ("!", "echo kept-$((40+2))"));
    rig.kill().await;
    place.free(session);
    let fake = Fake::new([says("I see.")]);
    let mut rig = place.start_with(&fake, |p| p.session.open = Open::Session(session)).await;
    assert_eq!(rig.turn("did you see?").await.0, TurnStatus::Done);
    let request = fake.request(0);
    assert_valid(&request);
    let all: Vec<String> = (0..request.messages.len()).map(|i| message_text(&request, i)).collect();
    assert_eq!(all.iter().filter(|t| t.contains("kept-42")).count(), 1, "{all:?}");
    assert!(store.unfinished().pending(session, "main").unwrap().is_empty(), "delivered");
    rig.quit().await;
}

/// Rows of the user's own lines from the events: started or waiting, progress, ended.
fn line_word(e: &EventBody) -> Option<String> {
    match e {
        EventBody::Tool(ToolEvent::ShellStarted { line }) => {
            Some(format!("{} {}", if line.waits { "waits" } else { "runs" }, line.line))
        }
        EventBody::Tool(ToolEvent::ShellLine { line, output, .. }) => {
            Some(format!("ended {line}: {}", output.lines().next().unwrap_or_default()))
        }
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_the_persons_own_is_a_row_at_once_later_ones_wait_and_the_agent_does_not() {
    let place = Place::new();
    let fake = Fake::new([
        calls(&[("c1", "terminal", serde_json::json!({"command": "echo agent-$((40+2))"}))]),
        says("done"),
    ]);
    let mut rig = place.start(&fake).await;
    let long = "echo out-$((40+2)); read -t 600 x < <(sleep 600)";
    for line in [long, "echo second"] {
        rig.send(CommandBody::Turn(TurnCommand::Shell { line: line.into(), share: true }));
    }
    assert_eq!(rig.until("taken", line_word).await, format!("runs {long}"));
    // It waits, and its row shows that.
    let output = rig.until("output while it runs", |e| match e {
        EventBody::Tool(ToolEvent::ShellStarted { line }) => {
            assert!(line.waits && line.line == "echo second", "{line:?}");
            None
        }
        EventBody::Tool(ToolEvent::ToolProgress { call_id, text }) => Some((call_id.clone(), text.clone())),
        _ => None,
    });
    let (id, output) = output.await;
    assert!(output.contains("out-42"), "{output}");
    let snapshot = rig.snapshot().await;
    let waits: Vec<bool> = snapshot.shell_lines.iter().map(|l| l.waits).collect();
    assert_eq!(waits, [false, true], "whoever looks now sees both");
    // The agent's command ends while the user's still runs.
    let (status, ..) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    let said: Vec<String> =
        (0..fake.request(1).messages.len()).map(|i| message_text(&fake.request(1), i)).collect();
    assert!(said.iter().any(|t| t.contains("agent-42")), "{said:?}");
    assert!(rig.snapshot().await.shell_lines.iter().any(|l| l.call_id == id), "it is still running");
    rig.send(CommandBody::Turn(TurnCommand::StopTool { id }));
    assert!(rig.until("ended", line_word).await.starts_with("ended echo out"));
    assert_eq!(rig.until("the next begins", line_word).await, "runs echo second");
    assert_eq!(rig.until("and ends", line_word).await, "ended echo second: second");
    assert!(rig.snapshot().await.shell_lines.is_empty());
    rig.quit().await;
}
