//! The user's commands for agents.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use tiller_protocol::command::{Query, TurnCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::{
    AgentCommand, AgentLimits, AgentState, AskBody, AskReply, CommandBody, CommandId, Decision, EntryBody,
    EventBody, Message, Profile, Receipt, SendMode, StopReason,
};
use tiller_provider::Chunk;

use crate::agents::delegation::{agent, delegate, first, next_state, result, row, state};
use crate::rig::*;

pub(crate) fn to(command: AgentCommand) -> CommandBody {
    CommandBody::Agent(command)
}

pub(crate) fn spawn(goal: &str) -> CommandBody {
    to(AgentCommand::Spawn { goal: goal.into(), role: None, model: None, cli: None, isolated: false })
}

pub(crate) fn say(text: &str) -> CommandBody {
    CommandBody::Turn(TurnCommand::Submit { message: Message::text(text), mode: SendMode::Steer })
}

async fn receipt(rig: &mut Rig, wanted: impl Fn(&Receipt) -> bool) -> Receipt {
    rig.until_of("a receipt", |e| match &e.body {
        EventBody::State(StateEvent::Receipt { receipt }) if wanted(receipt) => Some(receipt.clone()),
        _ => None,
    })
    .await
}

/// The conversation of an agent, as any client can read it.
async fn snapshot_of(rig: &mut Rig, agent: &str) -> tiller_protocol::Snapshot {
    rig.send_to(agent, CommandBody::Query(Query::Snapshot));
    rig.until_of("its state", |e| match &e.body {
        EventBody::Reply(r) => match &**r {
            ReplyEvent::SnapshotReply { snapshot } => Some((**snapshot).clone()),
            _ => None,
        },
        _ => None,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_started_by_hand_hears_a_message_at_its_next_step() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |_, r| match r.messages.len() {
        1 => {
            let mut steps = vec![Step::Gate(Arc::clone(&hold))];
            steps.extend(calls(&[("r1", "read_file", read_args("a.txt"))]));
            steps
        }
        _ => says(&format!("heard: {}", message_text(r, r.messages.len() - 1))),
    });
    let mut rig = place.start(&fake).await;
    rig.send(spawn("look"));
    state(&mut rig, "main/a1", AgentState::Running).await;
    fake.requested(1).await;
    rig.send_to("main/a1", say("mind the gap"));
    receipt(&mut rig, |r| *r == Receipt::Queued).await;
    // Commands reach the agent in order: once it answers this one, it has the message.
    snapshot_of(&mut rig, "main/a1").await;
    gate.pass_one();
    assert_eq!(receipt(&mut rig, |r| *r != Receipt::Queued).await, Receipt::Delivered { step: 1 });
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert!(done.child.unwrap().result.contains("heard: mind the gap"));
    // An agent that has ended works again when it gets a message.
    rig.send_to("main/a1", say("one more thing"));
    receipt(&mut rig, |r| matches!(r, Receipt::Delivered { .. })).await;
    let done = next_state(&mut rig, "main/a1", AgentState::Done).await;
    assert!(done.child.unwrap().result.contains("heard: one more thing"));
    // Its whole conversation can be read by any client.
    let view = snapshot_of(&mut rig, "main/a1").await;
    assert!(view.entries.iter().all(|e| e.agent == agent("main/a1")));
    assert_eq!(shape(&view.entries)[1], "user Prompt look");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_takes_hold_at_once_while_it_waits_for_a_model_and_ends_without_loss() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |n, _| {
        let mut steps = vec![Step::Gate(Arc::clone(&hold))];
        steps.extend(says(&format!("answer {n}")));
        steps
    });
    let mut rig = place.start(&fake).await;
    rig.send(spawn("look"));
    fake.requested(1).await;
    rig.send(to(AgentCommand::Pause { id: agent("main/a1") }));
    state(&mut rig, "main/a1", AgentState::Paused).await;
    rig.send(to(AgentCommand::Resume { id: agent("main/a1") }));
    state(&mut rig, "main/a1", AgentState::Running).await;
    fake.requested(2).await;
    gate.pass_one();
    gate.pass_one();
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "answer 1", "the request went out again");
    rig.quit().await;
}

/// A pause neither loses the cost of a request nor mixes two replies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_a_pause_in_the_middle_of_a_call_loses_no_money_and_no_argument() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let taken = Arc::new(Gate::new());
    let reached = Arc::clone(&taken);
    let fake = Fake::with(move |n, _| match n {
        // The server has accepted it, and nothing has arrived.
        0 => vec![Step::Reached(Arc::clone(&reached)), Step::Hang],
        1 => {
            let begin =
                Chunk::ToolBegin { index: 0, id: "r1".into(), name: "read_file".into(), vendor: None };
            let args = |json: &str| Step::Chunk(Chunk::ToolArgs { index: 0, json: json.into() });
            vec![
                Step::Gate(Arc::clone(&hold)),
                Step::Chunk(begin),
                args(r#"{"path": "#),
                Step::Gate(Arc::clone(&hold)),
                args(r#""a.txt"}"#),
                Step::Chunk(Chunk::BlockEnd { index: 0 }),
                usage(),
                stop(StopReason::ToolUse),
            ]
        }
        _ => says("read it"),
    });
    let mut rig = place.start(&fake).await;
    let pause = || to(AgentCommand::Pause { id: agent("main/a1") });
    let resume = || to(AgentCommand::Resume { id: agent("main/a1") });
    rig.send(spawn("look"));
    taken.passed().await;
    rig.send(pause());
    state(&mut rig, "main/a1", AgentState::Paused).await;
    rig.send(resume());
    state(&mut rig, "main/a1", AgentState::Running).await;
    gate.pass_one();
    let begun = |e: &tiller_protocol::Event| {
        matches!(&e.body, EventBody::Turn(TurnEvent::ToolCallBegun { .. })).then_some(())
    };
    rig.until_of("a call", begun).await;
    rig.send(pause());
    state(&mut rig, "main/a1", AgentState::Paused).await;
    gate.pass_one();
    rig.send(resume());
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "read it");
    assert_eq!(
        result(&fake.request(2)).as_deref().map(|r| r.contains('A')),
        Some(true),
        "the call was whole"
    );
    assert_eq!(fake.count(), 3, "a reply that has begun is not asked for again");
    rig.quit().await;
    let store = tiller_store::Store::open(&place.db(), tiller_store::Options::default()).unwrap();
    let rows = store.costs().by(None, tiller_protocol::command::CostBy::Agent).unwrap();
    let row = rows.iter().find(|r| r.key == "main/a1").unwrap();
    assert_eq!((row.calls, row.estimated), (3, 1), "{row:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_retry_raise_and_background() {
    let place = Place::new();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "slow"}])),
        "go" => says(&result(r).unwrap()),
        task if task.contains("The user says: faster") => says("fast"),
        _ => vec![Step::Hang],
    });
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    state(&mut rig, "main/a1", AgentState::Running).await;
    fake.requested(2).await;
    rig.send(to(AgentCommand::Background { id: agent("main/a1") }));
    let (status, text, _) = rig.finished().await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.contains("moved it to the background"), "{text}");
    rig.send(to(AgentCommand::Raise {
        id: agent("main/a1"),
        limits: AgentLimits { turns: Some(777), ..AgentLimits::default() },
    }));
    let raised = |e: &tiller_protocol::Event| {
        row(e).filter(|v| v.child.as_ref().is_some_and(|c| c.limits.turns == Some(777)))
    };
    rig.until_of("the limit", raised).await;
    rig.send(to(AgentCommand::Cancel { id: agent("main/a1"), subtree: true }));
    state(&mut rig, "main/a1", AgentState::Cancelled).await;
    rig.send(to(AgentCommand::Retry { id: agent("main/a1"), note: Some("faster".into()) }));
    let done = state(&mut rig, "main/a2", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "fast");
    rig.send(to(AgentCommand::Pause { id: agent("main/a9") }));
    assert!(rig.refused().await.message.contains("no agent a9"));
    rig.quit().await;
}

/// Seen: one stop of the turn interrupted each agent that it waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_were_moved_to_the_background_outlive_the_stop_of_the_turn() {
    agents_outlive(|rig| {
        rig.send(to(AgentCommand::BackgroundAll));
        rig.send(CommandBody::Turn(TurnCommand::Interrupt { hard: false }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_outlive_a_message_that_stops_the_turn() {
    agents_outlive(|rig| {
        rig.submit_as(Message::text("look here"), SendMode::Now);
    })
    .await;
}

async fn agents_outlive(stop: impl FnOnce(&mut Rig)) {
    let place = Place::new();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "rain"}, {"goal": "sun"}])),
        _ => vec![Step::Hang],
    });
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    state(&mut rig, "main/a1", AgentState::Running).await;
    fake.requested(3).await;
    stop(&mut rig);
    let (status, ..) = rig.finished().await;
    assert_eq!(status, TurnStatus::Interrupted);
    // They work on, and are ended by the person's command alone.
    rig.send(to(AgentCommand::CancelAll));
    let ended = |e: &tiller_protocol::Event| row(e).filter(|v| !v.id.is_main() && !v.state.at_work());
    for _ in 0..2 {
        let view = rig.until_of("an end", ended).await;
        assert_eq!(view.state, AgentState::Cancelled, "it was not interrupted before: {view:?}");
        assert!(view.child.unwrap().background);
    }
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_agents_wait_in_one_queue_and_hold_nobody_else_up() {
    let place = Place::new();
    let run = || calls(&[("t1", "terminal", json!({"command": "touch made"}))]);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "one"}, {"goal": "two"}, {"goal": "free"}])),
        "go" => says("ok"),
        "free" => says("not held up"),
        _ if result(r).is_none() => run(),
        _ => says(&result(r).unwrap()),
    });
    let mut rig = place.start_with(&fake, |p| p.session.profile = Some(Profile::Ask)).await;
    rig.submit("go");
    let ask = rig.asked().await;
    assert!(ask.agent == agent("main/a1") || ask.agent == agent("main/a2"), "{:?}", ask.agent);
    state(&mut rig, "main/a3", AgentState::Done).await;
    let end = std::time::Instant::now() + DEADLINE;
    let asks = loop {
        let view = rig.snapshot().await;
        let waiting = view.agents.iter().filter(|a| a.state == AgentState::Waiting).count();
        if waiting == 2 && view.asks.len() == 2 {
            break view.asks;
        }
        assert!(std::time::Instant::now() < end, "{:#?}", view.agents);
    };
    // The same call: a client may show both as one question, and answers each.
    let hashes: Vec<String> = asks
        .iter()
        .map(|ask| match &ask.body {
            AskBody::Permission(p) => p.hash.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(hashes[0], hashes[1]);
    for (ask, hash) in asks.iter().zip(hashes) {
        rig.answer(ask, AskReply::Permission { decision: Decision::Once, hash });
    }
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert!(place.work.join("made").exists());
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_headless_run_never_hangs_on_a_question_of_an_agent() {
    let place = Place::new();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "one"}])),
        "go" => says(&result(r).unwrap()),
        _ if result(r).is_none() => calls(&[("t1", "terminal", json!({"command": "touch made"}))]),
        _ => says(&result(r).unwrap()),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Ask);
            p.user.human = tiller_engine::Human::Absent;
        })
        .await;
    let (_, text) = rig.turn("go").await;
    assert!(text.contains("no one is available to answer"), "{text}");
    assert!(!place.work.join("made").exists());
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_person_is_told_in_the_conversation_when_a_background_agent_ends() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("It is all there.\nAnd more."));
    let mut rig = place.start(&fake).await;
    rig.send(spawn("look"));
    let note = rig.until_of("a note", |e| match &e.body {
        EventBody::Turn(TurnEvent::EntryAdded { node }) if e.agent.is_main() => match &node.body {
            EntryBody::Note { text } => Some(text.clone()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(note.await, "Agent a1 is done: It is all there.");
}

/// A message that an agent has no room for is refused, and was never reported as queued before.
#[tokio::test]
async fn a_message_to_an_agent_that_is_busy_is_not_reported_as_queued() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |_, _| {
        let mut steps = vec![Step::Gate(Arc::clone(&hold))];
        steps.extend(says("done"));
        steps
    });
    let mut rig = place.start(&fake).await;
    rig.send(spawn("look"));
    fake.requested(1).await;
    // On this single thread the agent takes none of them before all are handed to it.
    let sent: Vec<_> = (0..200).map(|n| rig.send_to("main/a1", say(&format!("message {n}")))).collect();
    let mut receipts: HashMap<CommandId, Vec<Receipt>> = HashMap::new();
    while receipts.len() < sent.len() {
        let (cause, receipt) = rig
            .until_of("a receipt", |e| match &e.body {
                EventBody::State(StateEvent::Receipt { receipt }) => Some((e.cause?, receipt.clone())),
                _ => None,
            })
            .await;
        receipts.entry(cause).or_default().push(receipt);
    }
    let missed = |all: &&Vec<Receipt>| all.iter().any(|r| matches!(r, Receipt::Missed { .. }));
    let refused: Vec<_> = receipts.values().filter(missed).collect();
    assert!(!refused.is_empty(), "all 200 were taken");
    for all in refused {
        assert!(!all.contains(&Receipt::Queued), "{all:?}");
    }
    gate.pass_one();
    rig.quit().await;
}
