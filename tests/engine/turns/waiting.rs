//! The wait for the first token: it is reported with its limit, a request that is being computed is not sent again, and each
//! retry leaves a trace in the conversation.

use serde_json::{Value, json};
use tiller_protocol::event::{TurnEvent, TurnStatus};
use tiller_protocol::{EntryBody, EventBody};
use tiller_testkit::{Hold, Reply, Script, ScriptServer, Wire};

use crate::rig::*;

/// An engine whose model is at `server`, with these settings of its provider.
async fn at(place: &Place, server: &ScriptServer, settings: Value) -> Rig {
    let mut provider = json!({"kind": "openai-chat", "base_url": server.url()});
    provider.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    place.start_with(&Fake::new([]), |p| by_wire(p, provider)).await
}

fn awaiting(body: &EventBody) -> Option<(Option<f64>, String, Option<u8>)> {
    match body {
        EventBody::Turn(TurnEvent::Awaiting { limit, setting, progress, .. }) => {
            Some((*limit, setting.clone(), *progress))
        }
        _ => None,
    }
}

fn text(say: &str) -> Reply {
    Reply::script(Wire::OpenaiChat, &Script::new().text(say))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_a_request_that_is_being_computed_is_sent_once() {
    let place = Place::new();
    let server = ScriptServer::start([Reply::silence(), text("There.")]);
    let mut rig = at(&place, &server, json!({"timeouts": {"first_byte": 5.0}})).await;
    rig.submit("go");
    let (limit, setting, _) = rig.until("the wait", awaiting).await;
    assert_eq!((limit, setting.as_str()), (Some(5.0), "providers.wire.timeouts.first_byte"));
    let (status, _, notice) = rig.finished().await;
    let said = notice.unwrap().message;
    assert_eq!(status, TurnStatus::Failed);
    assert!(
        said.contains("not sent again") && said.contains("raise providers.wire.timeouts.first_byte"),
        "{said}"
    );
    assert_eq!(server.count(), 1, "it was not sent again");
    // The person sends it again.
    crate::faults::go_on(&mut rig);
    assert_eq!(rig.finished().await.1, "There.");
    assert_eq!(server.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_a_server_in_the_own_network_is_awaited_without_a_limit_and_its_progress_is_told() {
    let place = Place::new();
    let hold = Hold::default();
    let progress = json!({"choices": [{"delta": {}}], "prompt_progress": {"total": 900, "processed": 300}});
    let end = json!({"choices": [{"delta": {"content": "There."}, "finish_reason": "stop"}]});
    let slow = Reply::status(200)
        .header("content-type", "text/event-stream")
        .bytes(format!("data: {progress}\n\n"))
        .wait_for(&hold)
        .bytes(format!("data: {end}\n\ndata: [DONE]\n\n"));
    let server = ScriptServer::start([slow]);
    // Silence after the progress is no reason to end either.
    let mut rig = at(&place, &server, json!({"timeouts": {"idle": 0.5, "pings_only": 0.5}})).await;
    rig.submit("go");
    let wait = rig.until("the progress", |body| awaiting(body).filter(|(_, _, p)| p.is_some())).await;
    assert_eq!(wait, (None, String::new(), Some(33)));
    hold.release();
    assert_eq!(rig.finished().await.1, "There.");
    assert_eq!(server.count(), 1);
}

/// Signals move the limit of silence: the one of signals is shown then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_the_limit_that_ends_the_wait_is_the_one_that_is_shown() {
    let place = Place::new();
    let server = ScriptServer::start([Reply::sse("").repeat(": keep-alive\n\n", 50)]);
    let limits = json!({"timeouts": {"first_byte": 100.0, "pings_only": 9.0}});
    let mut rig = at(&place, &server, limits).await;
    rig.submit("go");
    let shown = |body: &EventBody| awaiting(body).filter(|(_, setting, _)| setting.ends_with("pings_only"));
    let (limit, ..) = rig.until("the wait", shown).await;
    assert_eq!(limit, Some(9.0));
    let said = rig.finished().await.2.unwrap().message;
    assert!(said.contains("raise providers.wire.timeouts.pings_only"), "{said}");
    assert_eq!(server.count(), 1);
}

/// A wait that is stopped is not shown any longer, and a retry that was not made leaves no trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_a_retry_that_is_stopped_before_leaves_no_trace() {
    let place = Place::new();
    let busy = Reply::status(503)
        .header("retry-after", "200")
        .json(&json!({"error": {"message": "no slot is free"}}));
    let server = ScriptServer::start([busy]);
    let mut rig = at(&place, &server, json!({})).await;
    rig.submit("go");
    rig.until("the retry", |body| matches!(body, EventBody::Turn(TurnEvent::Retrying { .. })).then_some(()))
        .await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    assert!(!format!("{:?}", rig.seen).contains("Sent again"), "{:?}", rig.seen);
    assert_eq!(server.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_each_retry_leaves_a_trace_and_the_request_stays_the_same() {
    let place = Place::new();
    let busy = || Reply::status(503).json(&json!({"error": {"message": "no slot is free"}}));
    let server = ScriptServer::start([busy(), busy(), text("There."), text("Again.")]);
    let mut rig = at(&place, &server, json!({})).await;
    assert_eq!(rig.turn("go").await, (TurnStatus::Done, "There.".to_owned()));
    let traces: Vec<String> = rig
        .seen
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::Turn(TurnEvent::EntryAdded { node }) => match &node.body {
                EntryBody::Note { text } if text.starts_with("Sent again") => Some(text.clone()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(traces.len(), 2, "{traces:?}");
    assert!(traces[0].contains("(try 2 of 6)") && traces[1].contains("(try 3 of 6)"), "{traces:?}");
    assert!(traces.iter().all(|t| t.contains("no slot is free")), "{traces:?}");
    assert_eq!(rig.turn("and now?").await.1, "Again.");
    let bodies = server.bodies();
    assert!(bodies[..3].iter().all(|b| *b == bodies[0]), "the same request again");
    assert!(!bodies[3].to_string().contains("Sent again"), "the trace is not sent");
    assert!(bodies[3].to_string().contains("There."));
}
