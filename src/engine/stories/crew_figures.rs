//! Figures of the crew, printed; the budgets are in the spec (speed, C). Run them optimised and alone:
//! `cargo test --release -p tiller-engine --lib crew_figures -- --ignored --nocapture --test-threads 1`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_protocol::event::TurnStatus;
use tiller_protocol::{AgentCommand, AgentState, CommandBody};

use super::crew::{delegate, first, result, state};
use super::rig::*;

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1000.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn from_the_call_to_the_childs_first_request() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match (first(r).as_str(), result(r)) {
        (task, _) if task.starts_with("child") => says("done"),
        (_, Some(_)) => says("ok"),
        (_, None) => delegate(json!([{"goal": "child"}])),
    });
    let mut rig = place.start(&fake).await;
    let mut all = Vec::new();
    for _ in 0..20 {
        let before = fake.count();
        assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
        let times = fake.times.lock().unwrap();
        all.push(times[before + 1] - times[before]);
    }
    all.sort();
    println!("call to the child's first request: p50 {:.1} ms, p95 {:.1} ms", ms(all[10]), ms(all[18]));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn two_hundred_agents_eight_at_a_time() {
    let place = Place::new();
    let tasks: Vec<Value> = (0..50).map(|n| json!({"goal": format!("child {n}")})).collect();
    let fake = Fake::with(move |_, r| match (first(r).as_str(), result(r)) {
        (task, _) if task.starts_with("child") => says("done"),
        (_, Some(_)) => says("ok"),
        (_, None) => delegate(json!(tasks)),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            p.config.agents.total = 1_000;
            p.config.agents.running = 8;
        })
        .await;
    let began = Instant::now();
    for _ in 0..4 {
        assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    }
    println!("200 agents, 8 at a time: {:.2} ms each, their commits included", ms(began.elapsed()) / 200.0);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn the_end_of_twenty() {
    let place = Place::new();
    let fake = Fake::with(|_, _| vec![Step::Hang]);
    let mut rig = place.start_with(&fake, |p| p.config.agents.running = 20).await;
    for n in 0..20 {
        let (goal, isolated) = (format!("child {n}"), false);
        rig.send(CommandBody::Agent(AgentCommand::Spawn {
            goal,
            role: None,
            model: None,
            cli: None,
            isolated,
        }));
    }
    fake.requested(20).await;
    let began = Instant::now();
    rig.send(CommandBody::Agent(AgentCommand::CancelAll));
    for n in 1..=20 {
        state(&mut rig, &format!("main/a{n}"), AgentState::Cancelled).await;
    }
    println!("20 agents cancelled and their ends on disk: {:.0} ms", ms(began.elapsed()));
    rig.quit().await;
}
