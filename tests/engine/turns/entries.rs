//! Successful turns, and their entries in the tree.

use serde_json::json;
use tiller_protocol::EventBody;
use tiller_protocol::event::{TurnEvent, TurnStatus};

use crate::rig::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_with_a_tool_goes_from_words_to_words() {
    let place = Place::new();
    place.file("a.txt", "hello from the file\n");
    let fake = Fake::new([calls(&[("c1", "read_file", read_args("a.txt"))]), says("It says hello.")]);
    let mut rig = place.start(&fake).await;
    let (status, text) = rig.turn("what is in a.txt?").await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "It says hello."));
    let snap = rig.snapshot().await;
    assert_eq!(
        shape(&snap.entries),
        ["prefix", "user Prompt what is in a.txt?", "reply 2 ToolUse", "result c1 Ok", "reply 1 EndTurn"]
    );
    assert!(!snap.running);
    // The published entries are the stored ones.
    let session = rig.session();
    rig.quit().await;
    let store = tiller_store::Store::open(&place.db(), tiller_store::Options::default()).unwrap();
    assert_eq!(store.paths().tail(session, "main", 100).unwrap().entries, snap.entries);
    assert_eq!(store.audit().list(None, "read_file", 10).unwrap().len(), 1);
    assert_eq!(store.costs().by(Some(session), tiller_protocol::command::CostBy::Model).unwrap()[0].calls, 2);
    // Each request is the one before it with more at its end.
    let (a, b) = (fake.request(0), fake.request(1));
    assert_eq!((a.system, &a.messages[..]), (b.system.clone(), &b.messages[..a.messages.len()]));
    assert!(message_text(&b, 2).contains("hello from the file"));
    assert_valid(&b);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_in_order_and_the_end_is_last() {
    let place = Place::new();
    place.file("a.txt", "x\n");
    let fake = Fake::new([calls(&[("c1", "read_file", read_args("a.txt"))]), says("Done.")]);
    let mut rig = place.start(&fake).await;
    let cause = rig.submit("go");
    rig.finished().await;
    let mut kinds: Vec<String> = rig.kinds().into_iter().filter(|k| k != "agent_changed").collect();
    // Deltas come in any number of pieces.
    kinds.dedup_by(|a, b| a == b && a == "text_delta");
    assert_eq!(
        kinds,
        [
            "session_started",
            "head_moved",
            "effort_changed",
            "entry_added",
            "user_message",
            "turn_started",
            "text_delta",
            "tool_call_begun",
            "assistant_message",
            "usage",
            "tool_started",
            "tool_finished",
            "text_delta",
            "assistant_message",
            "usage",
            "turn_finished"
        ]
        .map(str::to_owned)
    );
    let turn = rig.seen.iter().filter(|e| {
        matches!(&e.body, EventBody::Turn(TurnEvent::TurnFinished { .. } | TurnEvent::UserMessage { .. }))
    });
    assert!(turn.into_iter().all(|e| e.cause == Some(cause)));
    assert!(rig.seen.windows(2).all(|w| w[0].seq < w[1].seq));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_request_stays_small() {
    let place = Place::new();
    let fake = Fake::new([says("hi")]);
    let mut rig = place.start(&fake).await;
    rig.turn("hi").await;
    let r = fake.request(0);
    let tools: usize = r
        .tools
        .iter()
        .map(|t| {
            json!({"name": t.name, "description": t.description, "input_schema": t.schema}).to_string().len()
        })
        .sum();
    assert!(r.system.len() + tools < 11_100, "system {} tools {tools}", r.system.len());
}

/// Output of a search that was cut for the model can be read whole by the user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_can_be_read_whole() {
    let place = Place::new();
    let name = |n: usize| format!("n{n}-{}.txt", "x".repeat(200));
    (0..200).for_each(|n| place.file(&name(n), "x"));
    let fake = Fake::new([calls(&[("c1", "search", json!({"glob": "*.txt"}))]), says("Found.")]);
    let mut rig = place.start(&fake).await;
    rig.submit("find");
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("lines left out"), "the model gets a part: {} bytes", output.len());
    rig.finished().await;
    let reply = rig.query(tiller_protocol::command::Query::ToolOutput { call_id: "c1".into() }).await;
    let tiller_protocol::event::ReplyEvent::ToolOutputReply { text, .. } = reply else { panic!("{reply:?}") };
    assert!((0..200).all(|n| text.contains(&name(n))), "{} bytes", text.len());
}
