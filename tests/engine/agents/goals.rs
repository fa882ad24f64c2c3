//! Goals of agents: each is pursued in the agent's own conversation, and shown on its row.

use serde_json::json;
use tiller_protocol::command::{GoalCommand, Query};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{
    AgentCommand, AgentState, CommandBody, EventBody, Goal, GoalCheck, GoalState, GoalView,
};

use crate::agents::delegation::{agent, first, next_state, row, state};
use crate::agents::user_commands::{spawn, to};
use crate::budgets::priced;
use crate::rig::*;

fn goal(line: &str, turns: u32, usd: Option<f64>) -> CommandBody {
    let check = GoalCheck::Command { line: line.into() };
    CommandBody::Goal(GoalCommand::Set {
        goal: Goal { text: "three lines in log".into(), check, turns, usd },
    })
}

/// The goal on the agent's row once it has this state, and whether the agent has ended by then.
async fn on_row(rig: &mut Rig, wanted: GoalState) -> GoalView {
    rig.until_of("the goal on its row", |e| {
        let view = row(e).filter(|v| v.id == agent("main/a1"))?;
        view.child?.goal.map(|g| *g).filter(|g| g.state == wanted)
    })
    .await
}

const THREE: &str = "test $(wc -l < log) -ge 3";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_done_goes_on_by_itself_until_its_goal_is_reached() {
    let place = Place::new();
    let fake = Fake::with(|n, r| match (first(r).as_str(), r.messages.len()) {
        ("look", 1) => says("looked"),
        (first, _) if first.starts_with("and?") => says("ok"),
        _ if n % 2 == 1 => calls(&[(&format!("c{n}"), "terminal", json!({"command": "echo line >> log"}))]),
        _ => says("One more."),
    });
    let mut rig = place.start(&fake).await;
    rig.send(spawn("look"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send_to("main/a1", goal(THREE, 10, None));
    // It works, and its row shows the goal.
    let works = next_state(&mut rig, "main/a1", AgentState::Running).await;
    assert_eq!(works.child.unwrap().goal.map(|g| g.state), Some(GoalState::Working));
    let reached = on_row(&mut rig, GoalState::Reached).await;
    assert_eq!(reached.done, 3);
    let done = next_state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "One more.");
    assert_eq!(place.read("log"), "line\nline\nline\n");
    assert_eq!(fake.count(), 7, "its task, and two requests for each turn");
    assert_eq!(rig.snapshot().await.goal, None, "the main agent has none");
    // Its own view has it, too.
    rig.send_to("main/a1", CommandBody::Query(Query::Snapshot));
    let own = rig
        .until_of("its snapshot", |e| match &e.body {
            EventBody::Reply(r) => match &**r {
                ReplyEvent::SnapshotReply { snapshot } if !e.agent.is_main() => Some((**snapshot).clone()),
                _ => None,
            },
            _ => None,
        })
        .await;
    assert_eq!(own.goal.map(|g| g.state), Some(GoalState::Reached));
    // The main agent is notified of its end, because it did not wait for it.
    rig.turn("and?").await;
    let told = fake.request(fake.count() - 1);
    let last = message_text(&told, told.messages.len() - 1);
    assert!(last.contains("agent a1 \"look\" is done"), "{last}");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_turns_and_its_money_end_it_and_the_row_says_why() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("I tried."));
    let mut rig = place.start_with(&fake, priced).await;
    rig.send(spawn("look"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send_to("main/a1", goal("false", 2, None));
    let stopped = on_row(&mut rig, GoalState::Stopped).await;
    assert_eq!((stopped.done, stopped.last.as_str()), (2, "not reached in 2 turns"));
    let failed = next_state(&mut rig, "main/a1", AgentState::Failed).await.child.unwrap();
    assert!(failed.result.contains("the goal stopped: not reached in 2 turns"), "{}", failed.result);
    // Each turn costs 12 cents.
    rig.send_to("main/a1", goal("false", 9, Some(0.20)));
    let stopped = on_row(&mut rig, GoalState::Stopped).await;
    assert_eq!((stopped.done, stopped.last.as_str()), (2, "$0.24 of $0.20 is spent"));
    next_state(&mut rig, "main/a1", AgentState::Failed).await;
    // A goal that cannot be pursued is refused, and the row stays.
    rig.send_to("main/a1", goal("false", 0, None));
    let why = rig
        .until_of("a refusal", |e| match &e.body {
            EventBody::Reply(r) => match &**r {
                ReplyEvent::ErrorReply { notice } => Some(notice.message.clone()),
                _ => None,
            },
            _ => None,
        })
        .await;
    assert!(why.contains("1 to 1,000 turns"), "{why}");
    let row = rig.snapshot().await.agents.remove(1);
    assert_eq!(row.state, AgentState::Failed);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_checked_can_be_cancelled_and_a_restart_waits_for_the_person() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("I tried."));
    let mut rig = place.start(&fake).await;
    let session = rig.session();
    rig.send(spawn("look"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send_to("main/a1", goal("touch checking; sleep 300", 5, None));
    let checks = on_row(&mut rig, GoalState::Checking).await;
    assert_eq!(checks.done, 1);
    rig.send(to(AgentCommand::Cancel { id: agent("main/a1"), subtree: true }));
    let ended = next_state(&mut rig, "main/a1", AgentState::Cancelled).await.child.unwrap();
    assert_eq!(ended.goal.map(|g| (g.state, g.last)), Some((GoalState::Stopped, "stopped by you".into())));
    // Quit while it pursues the goal.
    rig.send_to("main/a1", CommandBody::Goal(GoalCommand::Go));
    on_row(&mut rig, GoalState::Checking).await;
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    let left = state(&mut rig, "main/a1", AgentState::Interrupted).await.child.unwrap();
    let left = left.goal.unwrap();
    assert_eq!((left.state, left.last.as_str()), (GoalState::Stopped, "Tiller ended in the meantime"));
    let asked = fake.count();
    rig.send_to("main/a1", CommandBody::Goal(GoalCommand::Stop));
    let gone = |e: &tiller_protocol::Event| match &e.body {
        EventBody::State(StateEvent::GoalChanged { goal: None }) if !e.agent.is_main() => Some(()),
        _ => None,
    };
    rig.until_of("its end", gone).await;
    assert_eq!(fake.count(), asked, "nothing is asked by itself");
    rig.quit().await;
}
