//! Budgets of the session and of the day, when agents spend, too. Every reply here costs 12 cents.

use serde_json::{Value, json};
use tiller_protocol::command::{ContextCommand, GoalCommand};
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{
    AgentState, AskBody, AskReply, CommandBody, EventBody, Goal, GoalCheck, GoalState, Profile,
};

use crate::agents::delegation::{delegate, first, result};
use crate::budgets::priced;
use crate::rig::*;

/// Each turn delegates one task, and ends with its result.
fn gives_away() -> std::sync::Arc<Fake> {
    Fake::with(|_, r| match (first(r).as_str(), result(r)) {
        ("part", _) => says("part done"),
        (_, Some(said)) => says(&said),
        _ => delegate(json!([{"goal": "part"}])),
    })
}

/// However many agents are started, they share the session's budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_passed_by_one_reply_at_most_though_its_agents_start_one_by_one() {
    let place = Place::new();
    let tasks: Vec<Value> = (1..=12)
        .map(|n| {
            let needs: Vec<String> = (n > 1).then(|| format!("t{}", n - 1)).into_iter().collect();
            json!({"id": format!("t{n}"), "goal": format!("part {n}"), "depends_on": needs})
        })
        .collect();
    let fake = Fake::with(move |_, r| match (first(r).as_str(), result(r)) {
        ("go", None) => delegate(json!(tasks)),
        ("go", Some(said)) => says(&said),
        _ => says("part done"),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.budget.session_hard = Some(0.60);
            p.user.human = tiller_engine::Human::Absent;
        })
        .await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Limit, "nothing is left for the end");
    assert!((5..=6).contains(&fake.count()), "{} replies", fake.count());
    rig.quit().await;
}

/// The cost of agents counts in the question about the budget, and in its answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_to_more_money_ends_the_turn_and_a_yes_is_enough_to_go_on() {
    let place = Place::new();
    let fake = gives_away();
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.budget.session_hard = Some(0.30);
        })
        .await;
    assert_eq!(rig.turn("one").await.0, TurnStatus::Done);
    rig.submit("two");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Budget { spent, .. } if spent == "$0.36"), "{ask:?}");
    rig.answer(&ask, AskReply::Declined);
    assert_eq!(rig.finished().await.0, TurnStatus::Limit);
    rig.submit("three");
    let ask = rig.asked().await;
    // As much again.
    rig.answer(&ask, AskReply::Yes { value: None });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    rig.quit().await;
}

/// The cost of agents counts for a compaction on request, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_by_hand_is_refused_when_agents_have_used_the_budget_up() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says(&"word ".repeat(200)));
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.budget.session_hard = Some(0.40);
        })
        .await;
    for said in ["one", "two", "three"] {
        assert_eq!(rig.turn(said).await.0, TurnStatus::Done, "{said}");
    }
    rig.send(crate::agents::user_commands::spawn("part"));
    crate::agents::delegation::state(&mut rig, "main/a1", AgentState::Done).await;
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    let why = rig.refused().await.message;
    assert!(why.contains("is used up: $0.48 of $0.40"), "{why}");
    assert_eq!(fake.count(), 4);
    rig.quit().await;
}

/// The cost of agents is part of the day's spending, and is counted once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_spend_counts_once_for_the_day_also_after_a_restart() {
    let place = Place::new();
    let fake = gives_away();
    let limit = |usd| {
        move |p: &mut tiller_engine::EngineConfig| {
            priced(p);
            p.config.budget.day_hard = Some(usd);
        }
    };
    let mut rig = place.start_with(&fake, limit(0.70)).await;
    assert_eq!(rig.turn("one").await.0, TurnStatus::Done);
    let session = rig.session();
    // 36 cents, and as many again: 12 more would be too much for its last request.
    assert_eq!(rig.turn("two").await.0, TurnStatus::Done);
    rig.quit().await;
    let open = |p: &mut tiller_engine::EngineConfig| {
        limit(1.00)(p);
        p.session.open = tiller_engine::Open::Session(session);
    };
    let mut rig = place.start_with(&fake, open).await;
    rig.submit("three");
    assert_eq!(rig.finished().await.0, TurnStatus::Done, "72 cents, and 24 more before its last request");
    rig.submit("four");
    let ask = rig.asked().await;
    assert!(matches!(&ask.body, AskBody::Budget { spent, .. } if spent == "$1.08"), "{ask:?}");
    rig.quit().await;
}

/// The cost of a goal includes that of its agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goal_pays_for_its_agents() {
    let place = Place::new();
    let fake = gives_away();
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.session.profile = Some(Profile::Full);
        })
        .await;
    let check = GoalCheck::Command { line: "false".into() };
    let goal = Goal { text: "all of it".into(), check, turns: 5, usd: Some(0.30) };
    rig.send(CommandBody::Goal(GoalCommand::Set { goal }));
    let stopped = |e: &EventBody| match e {
        EventBody::State(StateEvent::GoalChanged { goal: Some(goal) }) => {
            (goal.state == GoalState::Stopped).then(|| goal.clone())
        }
        _ => None,
    };
    let view = rig.until("its end", stopped).await;
    assert_eq!((view.done, view.last.as_str()), (1, "$0.36 of $0.30 is spent"));
    rig.quit().await;
}

/// Fault A2 for a tier: agents that request at the same time exceed its budget by one reply at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tier_is_passed_by_one_reply_at_most_though_many_ask_at_once() {
    let place = Place::new();
    let tasks: Vec<Value> = (0..8).map(|n| json!({"goal": format!("part {n}")})).collect();
    let fake = Fake::with(move |_, r| match (first(r).as_str(), result(r)) {
        ("go", None) => delegate(json!(tasks)),
        ("go", Some(said)) => says(&said),
        _ => says("part done"),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.agents.running = 8;
            p.config.tiers.main = Some("fake/m".into());
            p.config.budget.tiers.insert("main".into(), 0.40);
            p.user.human = tiller_engine::Human::Absent;
        })
        .await;
    let (status, _) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Limit, "nothing is left for the end");
    // 12 cents each: three cost 36, and one more passes the limit.
    assert_eq!(fake.count(), 4);
    rig.quit().await;
}

/// The main agent's own calls use the same reservations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_main_agent_and_one_beside_it_do_not_pass_the_session_together() {
    let place = Place::new();
    let gate = std::sync::Arc::new(Gate::new());
    let hold = std::sync::Arc::clone(&gate);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" => {
            let mut steps = vec![Step::Gate(std::sync::Arc::clone(&hold))];
            steps.extend(says("mine"));
            steps
        }
        _ => says("theirs"),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            priced(p);
            p.config.budget.session_hard = Some(0.10);
        })
        .await;
    // While the main agent's reply arrives, the whole budget of the session is reserved.
    rig.submit("go");
    fake.requested(1).await;
    rig.send(crate::agents::user_commands::spawn("part"));
    crate::agents::delegation::state(&mut rig, "main/a1", tiller_protocol::AgentState::Running).await;
    gate.pass_one();
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    let failed =
        crate::agents::delegation::state(&mut rig, "main/a1", tiller_protocol::AgentState::Failed).await;
    let why = failed.child.unwrap().result;
    assert!(why.contains("budget of the session or day is reached"), "{why}");
    assert_eq!(fake.count(), 1);
    rig.quit().await;
}
