//! Agents that are stopped, paused or end while a part of their work is under way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{AgentCommand, AgentState, AskReply, CommandBody, EventBody, Profile, Receipt};

use crate::agents::delegation::{agent, delegate, first, kinds, result, row, state};
use crate::agents::user_commands::{say, spawn, to};
use crate::rig::*;
use tiller_engine::Folders;

fn cancel(id: &str) -> CommandBody {
    to(AgentCommand::Cancel { id: agent(id), subtree: true })
}

fn resume(id: &str) -> CommandBody {
    to(AgentCommand::Resume { id: agent(id) })
}

/// Makes plain folders.
fn plain_folders() -> Folders {
    Arc::new(|_, place| {
        std::fs::create_dir_all(place).map_err(|e| e.to_string())?;
        Ok(place.to_owned())
    })
}

/// States of an agent's row, in order.
fn states(rig: &Rig, id: &str) -> Vec<AgentState> {
    let mut all: Vec<AgentState> =
        rig.seen.iter().filter_map(|e| row(e)).filter(|v| v.id == agent(id)).map(|v| v.state).collect();
    all.dedup();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_stopped_while_its_folder_is_made_stays_stopped_and_goes_on_when_asked() {
    let place = Place::new();
    let fake = Fake::with(|_, _| says("worked apart"));
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let make = plain_folders();
    let folders: Folders = Arc::new(move |root, place| {
        wait.lock().unwrap().recv().unwrap();
        make(root, place)
    });
    let mut rig = place.start_with(&fake, |p| p.crew.folders = Some(folders)).await;
    rig.send(to(AgentCommand::Spawn {
        goal: "x".into(),
        role: None,
        model: None,
        cli: None,
        isolated: true,
    }));
    state(&mut rig, "main/a1", AgentState::Running).await;
    rig.send(cancel("main/a1"));
    state(&mut rig, "main/a1", AgentState::Cancelled).await;
    go.send(()).unwrap();
    let made = |e: &tiller_protocol::Event| row(e).filter(|v| !v.child.as_ref().unwrap().folder.is_empty());
    let row = rig.until_of("its folder", made).await;
    assert_eq!(row.state, AgentState::Cancelled);
    assert_eq!(rig.snapshot().await.agents[1].state, AgentState::Cancelled);
    assert_eq!(fake.count(), 0, "nothing was asked of the model");
    // It has its folder: no other is made.
    rig.send(resume("main/a1"));
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "worked apart");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_whose_folders_are_made_take_places_too() {
    let place = Place::new();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (n, m) = (Arc::clone(&now), Arc::clone(&most));
    let make = plain_folders();
    let folders: Folders = Arc::new(move |root, place| {
        m.fetch_max(n.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        make(root, place)
    });
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "one", "isolated": true}, {"goal": "two", "isolated": true}, {"goal": "three", "isolated": true}
        ])),
        "go" => says("done"),
        _ => {
            now.fetch_sub(1, Ordering::SeqCst);
            says("part done")
        }
    });
    let mut rig = place
        .start_with(&fake, |p| {
            p.crew.folders = Some(folders);
            p.config.agents.running = 1;
        })
        .await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    assert_eq!(most.load(Ordering::SeqCst), 1, "one at a time");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_the_person_takes_no_place() {
    let place = Place::new();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([{"goal": "asks"}, {"goal": "free"}])),
        "go" => says("done"),
        "free" => says("not held up"),
        _ if result(r).is_none() => calls(&[("t1", "terminal", json!({"command": "touch made"}))]),
        _ => says("ok"),
    });
    let mut rig = place
        .start_with(&fake, |p| {
            p.session.profile = Some(Profile::Ask);
            p.config.agents.running = 1;
        })
        .await;
    rig.submit("go");
    let ask = rig.asked().await;
    state(&mut rig, "main/a2", AgentState::Done).await;
    rig.answer(&ask, AskReply::Declined);
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_one_that_never_begins_is_told_as_missed() {
    let place = Place::new();
    let fake = Fake::with(|_, _| vec![Step::Hang]);
    let mut rig = place.start_with(&fake, |p| p.config.agents.running = 1).await;
    rig.send(spawn("first"));
    rig.send(spawn("second"));
    state(&mut rig, "main/a1", AgentState::Running).await;
    let told = rig.send_to("main/a2", say("also this"));
    rig.send(cancel("main/a2"));
    let missed = |e: &tiller_protocol::Event| match &e.body {
        EventBody::State(StateEvent::Receipt { receipt: Receipt::Missed { .. } }) => e.cause,
        _ => None,
    };
    assert_eq!(rig.until_of("a receipt", missed).await, told);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waited_in_line_at_a_quit_begins_when_it_is_let_go_on() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "first" => vec![Step::Hang],
        "hello" => says("hi"),
        _ => says("begun at last"),
    });
    let mut rig = place.start_with(&fake, |p| p.config.agents.running = 1).await;
    rig.turn("hello").await;
    let session = rig.session();
    rig.send(spawn("first"));
    rig.send(spawn("second"));
    state(&mut rig, "main/a1", AgentState::Running).await;
    state(&mut rig, "main/a2", AgentState::Queued).await;
    rig.quit().await;
    // Twice: what is stored at the first start counts at the second.
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    state(&mut rig, "main/a2", AgentState::Interrupted).await;
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    state(&mut rig, "main/a2", AgentState::Interrupted).await;
    rig.send(resume("main/a2"));
    let done = state(&mut rig, "main/a2", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "begun at last");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_stopped_while_it_is_read_again_stays_stopped() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "work" => vec![Step::Hang],
        _ => says("hi"),
    });
    let mut rig = place.start(&fake).await;
    rig.turn("hello").await;
    let session = rig.session();
    rig.send(spawn("work"));
    fake.requested(2).await;
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    state(&mut rig, "main/a1", AgentState::Interrupted).await;
    rig.send(resume("main/a1"));
    rig.send(cancel("main/a1"));
    state(&mut rig, "main/a1", AgentState::Cancelled).await;
    // Longer than it takes to read a session.
    rig.turn("hello again").await;
    rig.turn("and again").await;
    let all = states(&rig, "main/a1");
    assert_eq!(all.last(), Some(&AgentState::Cancelled), "{all:?}");
    assert_eq!(rig.snapshot().await.agents[1].state, AgentState::Cancelled);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_rests_holds_back_nothing_that_others_need() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |n, r| match first(r).as_str() {
        "rest" if n == 0 => vec![Step::Hang],
        "rest" => {
            let mut steps = vec![Step::Gate(Arc::clone(&hold))];
            steps.extend(says("rested"));
            steps
        }
        _ => says("not held up"),
    });
    // Enough for one reply at a time.
    let mut rig = place.start_with(&fake, |p| p.config.agents.tree_tokens = Some(12_000)).await;
    rig.send(spawn("rest"));
    fake.requested(1).await;
    rig.send(to(AgentCommand::Pause { id: agent("main/a1") }));
    state(&mut rig, "main/a1", AgentState::Paused).await;
    rig.send(spawn("other"));
    let done = state(&mut rig, "main/a2", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "not held up");
    // It reserves again what it released.
    rig.send(resume("main/a1"));
    fake.requested(3).await;
    gate.pass_one();
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "rested");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_a_parent_does_not_come_to_is_told_to_the_one_above() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "parent" if r.messages.len() == 1 => calls(&[("s1", "spawn_agent", json!({"goal": "look"}))]),
        "parent" => {
            let mut steps = vec![Step::Gate(Arc::clone(&hold))];
            steps.extend(says("I did not wait"));
            steps
        }
        "look" => says("seen it"),
        _ => says("ok"),
    });
    let mut rig = place.start(&fake).await;
    rig.send(spawn("parent"));
    fake.requested(3).await;
    state(&mut rig, "main/a1/a2", AgentState::Done).await;
    gate.pass_one();
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.turn("and?").await;
    let request = fake.request(fake.count() - 1);
    let texts: Vec<String> = (0..request.messages.len()).map(|i| message_text(&request, i)).collect();
    let text = texts.join("\n");
    assert_eq!(text.matches("agent a2 ").count(), 1, "{text}");
    assert!(text.contains("seen it"), "{text}");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_result_is_taken_though_nobody_thought_of_it_then() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match (first(r).as_str(), r.messages.len()) {
        ("go", 1) => delegate(json!([{"goal": "count"}])),
        ("go", 3) => calls(&[(
            "d2",
            "delegate_task",
            json!({"tasks": [{"goal": "count", "reuse": true}, {"goal": "other", "reuse": true}]}),
        )]),
        ("count", _) => says("seven"),
        ("other", _) => says("eight"),
        _ => says(&result(r).unwrap()),
    });
    let mut rig = place.start(&fake).await;
    let (_, text) = rig.turn("go").await;
    assert_eq!(text.matches("\"reused\":true").count(), 1, "{text}");
    let asked = fake.requests.lock().unwrap().iter().filter(|r| first(r) == "count").count();
    assert_eq!(asked, 1, "it was done once");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_kind_is_gone_does_not_go_on_with_more_than_it_had() {
    let place = Place::new();
    let roles = kinds(&place, "reader", "description: reads\ntools: [read]");
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "read" => vec![Step::Hang],
        _ => says("hi"),
    });
    let mut rig = place.start_with(&fake, |p| p.crew.roles = tiller_engine::Roles::new(roles)).await;
    rig.turn("hello").await;
    let session = rig.session();
    let role = Some("reader".into());
    rig.send(to(AgentCommand::Spawn { goal: "read".into(), role, model: None, cli: None, isolated: false }));
    fake.requested(2).await;
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    state(&mut rig, "main/a1", AgentState::Interrupted).await;
    rig.send(resume("main/a1"));
    let failed = state(&mut rig, "main/a1", AgentState::Failed).await;
    let said = failed.child.unwrap().result;
    assert!(said.contains("its kind of agent, reader, no longer exists"), "{said}");
    assert_eq!(fake.count(), 2);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_started_while_the_others_are_read_gets_a_name_of_its_own() {
    let place = Place::new();
    let fake = Fake::with(|_, r| says(&format!("did {}", first(r))));
    let mut rig = place.start(&fake).await;
    rig.turn("hello").await;
    let session = rig.session();
    rig.send(spawn("one"));
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    // At once, before any notice.
    rig.send(spawn("two"));
    let two = state(&mut rig, "main/a2", AgentState::Done).await;
    assert_eq!(two.child.unwrap().result, "did two");
    let agents = rig.snapshot().await.agents;
    let one = agents.iter().find(|a| a.id == agent("main/a1")).unwrap();
    assert_eq!(one.child.as_ref().unwrap().result, "did one");
    rig.quit().await;
}
