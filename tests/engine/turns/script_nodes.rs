//! The calls of scripts as entries of the session: kept one by one, restored, stopped, and never sent to a model.

use std::time::{Duration, Instant};

use tiller_protocol::command::{Query, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::restore::RestoreWhat;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::{CommandBody, Entry, EntryBody, EntryId, EventBody, Profile, ToolOutcome};

use crate::files::checkpoints::{back, keeps, messages, session_command};
use crate::rig::*;
use crate::scripted_model::lock;
use crate::turns::scripts::{lacks_python, ready, script};

/// Entry, id, and call of each call of a script among these.
fn nodes(entries: &[Entry]) -> Vec<(EntryId, String, InnerCall)> {
    let of = |e: &Entry| match &e.body {
        EntryBody::InnerCall { call_id, call, .. } => Some((e.id, call_id.clone(), (**call).clone())),
        _ => None,
    };
    entries.iter().filter_map(of).collect()
}

async fn exists(place: &Place, name: &str) {
    let until = Instant::now() + DEADLINE;
    while !place.work.join(name).exists() {
        assert!(Instant::now() < until, "{name} does not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until `count` calls are on disk.
async fn kept(rig: &mut Rig, count: usize) {
    let stored = |e: &EventBody| match e {
        EventBody::Turn(TurnEvent::EntryAdded { node }) => {
            matches!(node.body, EntryBody::InnerCall { .. }).then_some(())
        }
        _ => None,
    };
    for _ in 0..count {
        rig.until("an entry of a call", stored).await;
    }
}

const WAITS: &str = "from tiller_tools import read_file, terminal, write_file\nwrite_file('out.txt', read_file('in.txt'))\nterminal('touch begun; sleep 3000')\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_a_script_keeps_the_calls_until_then_and_no_model_reads_them() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    place.file("in.txt", "needle\n");
    let fake = Fake::new([script("c1", WAITS), says("Done."), says("Again.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Full, &[])).await;
    rig.submit("go");
    kept(&mut rig, 2).await;
    exists(&place, "begun").await;
    let session = rig.session();
    rig.kill().await;
    place.free(session);
    let open = ready(&place, Profile::Full, &[]);
    let mut rig = place
        .start_with(&fake, |parts| {
            open(parts);
            parts.session.open = tiller_engine::Open::Session(session);
        })
        .await;
    let entries = rig.snapshot().await.entries;
    let made = nodes(&entries);
    let ids: Vec<(&str, &str)> = made.iter().map(|(_, id, call)| (id.as_str(), call.name.as_str())).collect();
    assert_eq!(ids, [("c1.1", "read_file"), ("c1.2", "write_file")]);
    let write = &made[1].2;
    assert_eq!(write.arguments["path"], "out.txt");
    assert!(write.files[0].diff.contains("+needle"), "{:?}", write.files);
    assert!(write.decision.is_some() && !write.by.is_empty(), "{write:?}");
    let result = entries.iter().find(|e| matches!(e.body, EntryBody::ToolResult { .. })).unwrap();
    assert!(result.body.search_text().contains("[2 calls of the script had ended before.]"));
    // Each can be read by its id.
    let ReplyEvent::ToolOutputReply { text, .. } =
        rig.query(Query::ToolOutput { call_id: "c1.1".into() }).await
    else {
        panic!("no result")
    };
    assert!(text.starts_with("needle") || text.contains("needle"), "{text}");
    assert!(text.contains("\"path\": \"in.txt\""), "{text}");
    // What is sent: the reply, its one result, and nothing between.
    assert_eq!(rig.turn("and now?").await.0, TurnStatus::Done);
    let requests = lock(&fake.requests).clone();
    let last = requests.last().unwrap();
    assert_valid(last);
    let sent = serde_json::to_string(&last.messages).unwrap();
    assert!(!sent.contains("needle") && !sent.contains("c1.1"), "{sent}");
    rig.quit().await;
}

/// Between two requests everything that was sent stays, byte for byte, whatever scripts did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_prefix_of_requests_stays_the_same_with_calls_of_scripts_between() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    place.file("in.txt", "needle\n");
    let code =
        "from tiller_tools import read_file\nfor n in range(3):\n    read_file('in.txt')\nprint('ok')\n";
    let fake = Fake::new([script("c1", code), script("c2", code), says("Done."), says("Again.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Ask, &[])).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    let (session, before) = (rig.session(), nodes(&rig.snapshot().await.entries).len());
    assert_eq!(before, 6);
    rig.quit().await;
    let open = ready(&place, Profile::Ask, &[]);
    let mut rig = place
        .start_with(&fake, |parts| {
            open(parts);
            parts.session.open = tiller_engine::Open::Session(session);
        })
        .await;
    assert_eq!(rig.turn("more").await.0, TurnStatus::Done);
    let requests = lock(&fake.requests).clone();
    let messages: Vec<Vec<String>> = requests
        .iter()
        .map(|r| r.messages.iter().map(|m| serde_json::to_string(m).unwrap()).collect())
        .collect();
    for pair in messages.windows(2) {
        assert_eq!(pair[0][..], pair[1][..pair[0].len()], "each request continues the one before");
    }
    assert!(messages.iter().flatten().all(|m| !m.contains("needle")), "the model reads what is printed");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_of_a_script_is_stopped_and_the_script_goes_on() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    let code = "from tiller_tools import terminal, ToolError\ntry:\n    terminal('touch begun; sleep 3000')\n    print('no error')\nexcept ToolError as error:\n    print('stopped:', error)\nterminal('touch after')\n";
    let fake = Fake::new([script("c1", code), says("Done.")]);
    let mut rig = place.start_with(&fake, ready(&place, Profile::Full, &[])).await;
    rig.submit("go");
    exists(&place, "begun").await;
    rig.send(CommandBody::Turn(TurnCommand::StopTool { id: "c1.1".into() }));
    let (_, output) = rig.tool_finished().await;
    assert!(output.contains("status: success") && output.contains("stopped:"), "{output}");
    assert!(place.work.join("after").exists());
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let made = nodes(&rig.snapshot().await.entries);
    let outcomes: Vec<_> = made.iter().map(|(_, _, call)| call.outcome.unwrap()).collect();
    assert_eq!(outcomes, [ToolOutcome::Interrupted, ToolOutcome::Ok]);
    // It is over: there is nothing to stop.
    rig.send(CommandBody::Turn(TurnCommand::StopTool { id: "c1.1".into() }));
    assert!(!rig.refused().await.message.is_empty());
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_inner_calls_go_back_and_a_branch_takes_the_calls_along() {
    let place = Place::new();
    if lacks_python(&place) {
        return;
    }
    place.file("in.txt", "x\n");
    let code =
        "from tiller_tools import write_file\nfor n in range(3):\n    write_file(f'out{n}.txt', str(n))\n";
    let fake = Fake::new([script("c1", code), says("Done."), says("More.")]);
    let confined = ready(&place, Profile::AutoEdit, &[]);
    let mut rig = place
        .start_with(&fake, |parts| {
            confined(parts);
            keeps(&place, parts);
        })
        .await;
    assert_eq!(rig.turn("write").await.0, TurnStatus::Done);
    let made = nodes(&rig.snapshot().await.entries);
    assert_eq!(made.len(), 3);
    // The second call is a point of the session: the third file is not there yet.
    session_command(&mut rig, back(made[1].0, RestoreWhat::Both)).await;
    let there = |n: usize| place.work.join(format!("out{n}.txt")).exists();
    assert_eq!((there(0), there(1), there(2)), (true, true, false));
    // The reply is about the files; the conversation follows.
    rig.until("the head moves", |e| match e {
        EventBody::State(StateEvent::HeadMoved { .. }) => Some(()),
        _ => None,
    })
    .await;
    let on_branch = nodes(&rig.snapshot().await.entries);
    assert_eq!(on_branch.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), [made[0].0, made[1].0]);
    let said = messages(&mut rig).await;
    session_command(&mut rig, back(said[0], RestoreWhat::Files)).await;
    assert_eq!((there(0), there(1), there(2)), (false, false, false));
    assert_eq!(place.read("in.txt"), "x\n");
    rig.quit().await;
}

#[test]
fn a_result_of_before_the_entries_is_read_as_it_was() {
    let old = r#"{"kind":"tool_result","call_id":"c1","name":"execute_code","outcome":"ok","content":[],"display":
        {"show":"calls","calls":[{"number":1,"name":"read_file","verb":"read","target":"in.txt","outcome":"ok","seconds":0.1,
        "output":"needle"}],"most":50,"tail":""},"seconds":1.0}"#;
    let body: EntryBody = serde_json::from_str(old).unwrap();
    let EntryBody::ToolResult { display: Some(tiller_protocol::tool::Display::Calls { calls, .. }), .. } =
        body
    else {
        panic!("another body")
    };
    assert_eq!((calls[0].output.as_str(), calls[0].arguments.is_null()), ("needle", true));
    // What was stored before a field was known gives a row.
    let event =
        EventBody::Tool(ToolEvent::InnerCall { call_id: "c1".into(), call: calls[0].row(), most: 50 });
    let text = serde_json::to_string(&event).unwrap();
    assert!(!text.contains("needle") && !text.contains("arguments"), "{text}");
}
