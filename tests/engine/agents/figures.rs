//! Prints timings of agents; the budgets are in the spec (speed, C). Run them optimised and alone:

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_protocol::command::TurnCommand;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{AgentCommand, AgentState, CommandBody, EventBody, Message, Receipt, SendMode};

use crate::agents::delegation::{delegate, first, result, state};
use crate::rig::*;

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1000.0
}

fn spawn(goal: String) -> CommandBody {
    CommandBody::Agent(AgentCommand::Spawn { goal, role: None, model: None, cli: None, isolated: false })
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
        rig.send(spawn(format!("child {n}")));
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

/// Time from the end of a reply to the request with the user's message, and from the message to its receipt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn a_message_from_the_person() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |n, r| match result(r) {
        _ if n >= 41 => says("enough"),
        _ => {
            let mut steps = vec![Step::Gate(Arc::clone(&hold))];
            steps.extend(calls(&[(&format!("l{n}"), "list_agents", json!({}))]));
            steps
        }
    });
    let mut rig = place.start(&fake).await;
    rig.send(spawn("work".into()));
    fake.requested(1).await;
    let (mut queued, mut delivered) = (Vec::new(), Vec::new());
    for n in 1..=40 {
        let message = Message::text(format!("words {n}"));
        let began = Instant::now();
        rig.send_to("main/a1", CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer }));
        rig.until_of("its receipt", |e| match &e.body {
            EventBody::State(StateEvent::Receipt { receipt: Receipt::Queued }) => Some(()),
            _ => None,
        })
        .await;
        queued.push(began.elapsed());
        // The agent itself has received it.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let freed = Instant::now();
        gate.pass_one();
        fake.requested(n + 1).await;
        let last = fake.request(n);
        let words = format!("words {n}");
        assert!((0..last.messages.len()).any(|i| message_text(&last, i).contains(&words)), "{words}");
        delivered.push(fake.times.lock().unwrap()[n].duration_since(freed));
    }
    queued.sort();
    delivered.sort();
    println!("message to its receipt 'queued': p50 {:.2} ms, p95 {:.2} ms", ms(queued[20]), ms(queued[38]));
    println!("safe point to delivery: p50 {:.2} ms, p95 {:.2} ms", ms(delivered[20]), ms(delivered[38]));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures"]
async fn the_end_of_twenty_with_processes() {
    let place = Place::new();
    let fake =
        Fake::with(|_, _| calls(&[("t", "terminal", json!({"command": "sleep 86397 & sleep 86397"}))]));
    let mut rig = place.start_with(&fake, |p| p.config.agents.running = 20).await;
    for n in 0..20 {
        rig.send(spawn(format!("child {n}")));
    }
    let sleeps = || crate::agents::stress::left_in(&place, false).len();
    while sleeps() < 40 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let began = Instant::now();
    rig.send(CommandBody::Agent(AgentCommand::CancelAll));
    while sleeps() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("20 agents cancelled, 40 processes gone: {:.0} ms", ms(began.elapsed()));
    rig.quit().await;
}
