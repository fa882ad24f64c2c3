//! Agents that other agents start: delegation, limits, background, restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tiller_config::agents::Definitions;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{AgentId, AgentState, AgentView, EntryBody, Event, EventBody};
use tiller_provider::{ChatMessage, Request};

use crate::rig::*;

/// The first message of a request: the user's, or an agent's task.
pub(crate) fn first(request: &Request) -> String {
    message_text(request, 0)
}

/// Whether the last message is a tool's result, and its text.
pub(crate) fn result(request: &Request) -> Option<String> {
    match request.messages.last()? {
        ChatMessage::ToolResult { content, .. } => Some(tiller_engine::testing::text_of(content)),
        _ => None,
    }
}

pub(crate) fn agent(id: &str) -> AgentId {
    AgentId(id.into())
}

/// An agent's row when it has come to this state.
pub(crate) async fn state(rig: &mut Rig, id: &str, wanted: AgentState) -> AgentView {
    let id = agent(id);
    // The state may have been passed on the way to another.
    let last = rig.seen.iter().rev().filter_map(|e| row(e)).find(|v| v.id == id);
    if let Some(view) = last.filter(|v| v.state == wanted) {
        return view;
    }
    next_state(rig, &id.0, wanted).await
}

/// Like the above, for events from now on.
pub(crate) async fn next_state(rig: &mut Rig, id: &str, wanted: AgentState) -> AgentView {
    let id = agent(id);
    rig.until_of(&format!("{id} {wanted:?}"), |e| row(e).filter(|v| v.id == id && v.state == wanted)).await
}

pub(crate) fn row(e: &Event) -> Option<AgentView> {
    match &e.body {
        EventBody::State(StateEvent::AgentChanged { view }) => Some(view.clone()),
        _ => None,
    }
}

pub(crate) fn delegate(tasks: Value) -> Vec<Step> {
    calls(&[("d1", "delegate_task", json!({"tasks": tasks}))])
}

/// The built-in agent definitions, and one more.
pub(crate) fn kinds(place: &Place, name: &str, front: &str) -> Definitions {
    let folder = place.tmp.path().join("roles/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\n{front}\n---\nWork.\n");
    std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
    let known = tiller_config::agents::DefinitionContext {
        tools: &tiller_tool::Registry::built_in().catalog(),
        clis: tiller_config::agents::DefinitionContext::CLIS,
        rule: &|_| Ok(()),
    };
    let (roles, wrong) = Definitions::load(&place.tmp.path().join("roles"), &[], &known);
    assert!(wrong.is_empty(), "{wrong:?}");
    roles
}

fn reports(text: &str) -> Vec<Value> {
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_agents_work_side_by_side_and_their_results_come_back() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    // Both must have arrived before either continues: they run in parallel.
    let (arrived, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Gate::new()));
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "read a.txt", "label": "reader", "files": ["a.txt"]},
            {"goal": "think", "context": "hard"},
        ])),
        "go" => says("Both are done."),
        task if task.starts_with("read") && result(r).is_none() => calls(&[
            ("r1", "read_file", read_args("a.txt")),
            ("w1", "write_file", json!({"path": "b.txt", "content": "B"})),
        ]),
        _ => {
            if arrived.fetch_add(1, Ordering::SeqCst) == 1 {
                gate.pass_one();
                gate.pass_one();
            }
            let mut steps = vec![Step::Gate(Arc::clone(&gate))];
            steps.extend(says("I found:\n- one thing\n- another"));
            steps
        }
    });
    let mut rig = place.start(&fake).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!((status, text.as_str()), (TurnStatus::Done, "Both are done."));
    let requests = fake.requests.lock().unwrap().clone();
    let last = requests.iter().rfind(|r| first(r) == "go").unwrap();
    let all = reports(&result(last).unwrap());
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[0]["status"], &all[0]["label"], &all[0]["files"]),
        (&json!("done"), &json!("reader"), &json!(["b.txt"]))
    );
    assert_eq!(all[0]["findings"], json!(["one thing", "another"]));
    assert!(all[0]["tokens"].as_u64().unwrap() >= 240 && all[0]["tool_calls"] == 2, "{:?}", all[0]);
    // A new context: its own task, its own name in the prompt, nothing of the conversation.
    let child = requests.iter().find(|r| first(r).starts_with("read")).unwrap();
    assert!(first(child).contains("Read these files first: a.txt"), "{}", first(child));
    assert_eq!(child.messages.len(), 1);
    assert!(child.system.contains("You are the agent a1 \"reader\""), "{}", child.system);
    let names: Vec<&str> = child.tools.iter().map(|t| t.name.as_str()).collect();
    assert!(names.contains(&"edit_file") && names.contains(&"delegate_task"), "{names:?}");
    assert!(!names.contains(&"restore") && !names.contains(&"blackboard"), "{names:?}");
    // One tree: its session is attached to the reply that requested it.
    let view = rig.snapshot().await;
    assert_eq!(view.agents.len(), 3);
    let reader = view.agents.iter().find(|a| a.label == "reader").unwrap();
    assert_eq!((reader.state, reader.parent.clone()), (AgentState::Done, Some(AgentId::main())));
    let child = reader.child.clone().unwrap();
    assert_eq!((child.files, child.call.as_deref()), (1, Some("d1")));
    let asked = view.entries.iter().find(|e| matches!(e.body, EntryBody::Assistant { .. })).unwrap().id;
    let parts = place.parts(&Fake::new([]));
    let stored = parts.store.sessions().get(child.session.unwrap()).unwrap();
    assert_eq!(stored.spawned_by, Some(asked));
    assert!(stored.summary.title.contains("reader"));
    let mine = parts.store.sessions().list(&tiller_store::Filter::default()).unwrap();
    assert_eq!(mine.len(), 1, "sessions of agents are not among the person's");
    assert_eq!(parts.store.costs().by(None, tiller_protocol::command::CostBy::Agent).unwrap().len(), 3);
    // Messages between agents are not part of the user's history.
    drop(parts);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_agents_run_at_once_than_there_are_places() {
    let place = Place::new();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (n, m) = (Arc::clone(&now), Arc::clone(&most));
    let tasks: Vec<Value> = (0..9).map(|i| json!({"goal": format!("part {i}")})).collect();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!(tasks)),
        "go" => says("done"),
        _ if result(r).is_none() => {
            m.fetch_max(n.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            calls(&[("l", "list_dir", json!({}))])
        }
        _ => {
            n.fetch_sub(1, Ordering::SeqCst);
            says("part done")
        }
    });
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done);
    assert_eq!(now.load(Ordering::SeqCst), 0);
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    let queued = rig.seen.iter().filter_map(|e| row(e)).filter(|v| v.state == AgentState::Queued).count();
    assert!(queued >= 9, "those that wait are shown: {queued}");
    rig.quit().await;
}

/// Fault A1: a model that always starts more agents ends at the limits, exactly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a1_endless_spawning_ends_at_the_limits() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match result(r) {
        None => calls(&[("d", "delegate_task", json!({"tasks": [{"goal": "more"}, {"goal": "more"}]}))]),
        // It tries again and again, four times each, whether refused or not.
        Some(_) if r.messages.len() < 9 => calls(&[(
            &format!("d{}", r.messages.len()),
            "delegate_task",
            json!({"tasks": [{"goal": "more"}]}),
        )]),
        Some(said) => says(&format!("enough: {said}")),
    });
    let mut rig = place.start_with(&fake, |p| p.config.agents.total = 12).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    let agents = rig.snapshot().await.agents;
    assert_eq!(agents.len(), 13, "twelve, and the main one");
    assert!(agents.iter().all(|a| a.id.depth() <= 2 && !a.state.at_work()), "{agents:#?}");
    assert!(text.contains("do the work yourself"), "{text}");
    let requests = fake.requests.lock().unwrap().clone();
    let deepest = requests.iter().filter(|r| r.system.matches("started by a").count() > 0);
    for request in deepest {
        assert!(!request.tools.iter().any(|t| t.name == "delegate_task"), "no spawning at the last depth");
    }
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_started_says_why() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match (first(r).as_str(), result(r)) {
        (goal, None) => delegate(json!([serde_json::from_str::<Value>(goal).unwrap()])),
        (_, Some(said)) => says(&said),
    });
    let mut rig = place.start_with(&fake, |p| p.config.agents.tree_tokens = Some(0)).await;
    let zero = rig.turn(r#"{"goal": "x"}"#).await.1;
    assert!(zero.contains("tokens of all agents") && zero.contains("do the work yourself"), "{zero}");
    rig.quit().await;
    let mut rig = place.start(&fake).await;
    for (task, why) in [
        (r#"{"goal": "x", "agent": "codr"}"#, "codr"),
        (r#"{"goal": "x", "model": "nobody/x"}"#, "the model nobody/x cannot be used"),
        (
            r#"{"goal": "x", "tools": ["read", "reed_file"]}"#,
            "no tool or set `reed_file`; did you mean `read_file`?",
        ),
        (r#"{"goal": "x", "tools": ["zap"]}"#, "sets: read, edit, run"),
    ] {
        rig.send(tiller_protocol::CommandBody::Session(tiller_protocol::command::SessionCommand::New));
        let said = rig.turn(task).await.1;
        assert!(said.contains("refused") && said.contains(why), "{why}: {said}");
    }
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_in_the_background_is_announced_once_also_after_a_restart() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let hold = Arc::clone(&gate);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if r.messages.len() == 1 => {
            calls(&[("s1", "spawn_agent", json!({"goal": "look", "label": "looker"}))])
        }
        "go" => says("ok"),
        _ => {
            let mut steps = vec![Step::Gate(Arc::clone(&hold))];
            steps.extend(says("seen it"));
            steps
        }
    });
    let mut rig = place.start(&fake).await;
    assert_eq!(rig.turn("go").await.0, TurnStatus::Done, "nobody waits for it");
    let session = rig.session();
    gate.pass_one();
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    assert_eq!(done.child.unwrap().result, "seen it");
    rig.kill().await;
    place.free(session);
    // Killed before the next turn: the end is reported after the restart, and never again.
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.turn("and?").await;
    let told = |n: usize| {
        let request = fake.request(n);
        let texts: Vec<String> = (0..request.messages.len()).map(|i| message_text(&request, i)).collect();
        texts.join("\n").matches("agent a1 \"looker\" is done").count()
    };
    assert_eq!(told(fake.count() - 1), 1);
    rig.turn("again").await;
    assert_eq!(told(fake.count() - 1), 1, "once");
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    state(&mut rig, "main/a1", AgentState::Done).await;
    rig.turn("third").await;
    assert_eq!(told(fake.count() - 1), 1, "also after a restart");
    rig.quit().await;
}

/// Fault A3: whatever a child does, its parent gets one result, and no process is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_a_child_that_fails_or_hangs_is_one_result() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "go" if result(r).is_none() => delegate(json!([
            {"goal": "panic"}, {"goal": "refuse"}, {"goal": "hang"}, {"goal": "work"}
        ])),
        "go" => says(&result(r).unwrap()),
        "panic" => vec![Step::Panic],
        "refuse" => vec![Step::Refuse(tiller_provider::ProviderError::Rejected("no".into()))],
        "hang" => vec![Step::Hang],
        _ => says("worked"),
    });
    let mut rig = place.start_with(&fake, |p| p.config.agents.seconds = 8).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    let all = reports(&text);
    let states: Vec<&str> = all.iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["failed", "failed", "failed", "done"], "{text}");
    assert!(all[2]["error"].as_str().unwrap().contains("8 seconds"), "{text}");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_the_parent_stops_those_that_it_waits_for() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match first(r).as_str() {
        "go" => delegate(json!([{"goal": "wait"}, {"goal": "deeper"}])),
        "deeper" => delegate(json!([{"goal": "wait"}])),
        _ => vec![Step::Hang],
    });
    let mut rig = place.start(&fake).await;
    rig.submit("go");
    state(&mut rig, "main/a2/a3", AgentState::Running).await;
    fake.requested(4).await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    let end = std::time::Instant::now() + DEADLINE;
    loop {
        let agents = rig.snapshot().await.agents;
        if agents.iter().skip(1).all(|a| a.state == AgentState::Interrupted) {
            break;
        }
        assert!(std::time::Instant::now() < end, "{agents:#?}");
    }
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ran_at_a_kill_is_interrupted_and_goes_on_where_it_stood() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let fake = Fake::with(|n, r| match first(r).as_str() {
        "go" if result(r).is_none() => calls(&[
            ("s1", "spawn_agent", json!({"goal": "first"})),
            ("s2", "spawn_agent", json!({"goal": "second"})),
        ]),
        "go" => says("ok"),
        _ if r.messages.len() == 1 => calls(&[("r1", "read_file", read_args("a.txt"))]),
        _ if n < 6 => vec![Step::Hang],
        _ => says(&format!("went on after {} messages", r.messages.len())),
    });
    let mut rig = place.start(&fake).await;
    rig.turn("go").await;
    let session = rig.session();
    fake.requested(6).await;
    let children: Vec<_> =
        rig.snapshot().await.agents.iter().filter_map(|a| a.child.clone()?.session).collect();
    rig.kill().await;
    place.free(session);
    children.into_iter().for_each(|c| place.free(c));
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    state(&mut rig, "main/a1", AgentState::Interrupted).await;
    state(&mut rig, "main/a2", AgentState::Interrupted).await;
    rig.notice("2 agents were interrupted").await;
    rig.send(tiller_protocol::CommandBody::Agent(tiller_protocol::AgentCommand::ResumeAll));
    let done = state(&mut rig, "main/a1", AgentState::Done).await;
    // Its history is complete: the finished call with its result, and a message to continue.
    assert!(done.child.unwrap().result.starts_with("went on after"), "from the last entry on");
    state(&mut rig, "main/a2", AgentState::Done).await;
    for n in 0..fake.count() {
        assert_valid(&fake.request(n));
    }
    rig.quit().await;
}

/// Fault A4: no agent below a restricted one has more permissions than that one, whatever it requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a4_a_child_of_a_narrowed_agent_is_as_narrow() {
    let place = Place::new();
    let reader = "description: reads\ntools: [read, crew]\n\
                  permissions: { profile: read-only, deny: ['read_file(secret*)'] }";
    let roles = kinds(&place, "reader", reader);
    place.file("secret.txt", "S3CRET");
    let fake = Fake::with(|_, r| match (first(r).as_str(), result(r)) {
        ("go", None) => delegate(json!([{"goal": "narrow", "agent": "reader"}])),
        ("narrow", None) => delegate(json!([
            {"goal": "wide", "agent": "coder", "tools": ["all"]}, {"goal": "x", "cli": "claude"}
        ])),
        ("wide", None) => calls(&[
            ("r1", "read_file", read_args("secret.txt")),
            ("w1", "write_file", json!({"path": "x", "content": "x"})),
        ]),
        ("wide", Some(_)) => {
            says(&(1..r.messages.len()).map(|i| message_text(r, i)).collect::<Vec<_>>().join(" "))
        }
        (_, Some(said)) => says(&said),
        _ => says("?"),
    });
    let programs = tiller_engine::crew::Programs {
        adapters: tiller_external::Adapters::new(&[]),
        host: tiller_tool::shell::Host::default(),
        lookup: Arc::new(|_| None),
        trust: Arc::new(|_, _, _| None),
    };
    let mut rig = place
        .start_with(&fake, |p| {
            p.crew.roles = tiller_engine::Roles::new(roles);
            p.crew.programs = Some(programs);
        })
        .await;
    let (_, text) = rig.turn("go").await;
    assert!(!place.work.join("x").exists() && !text.contains("S3CRET"), "{text}");
    assert!(text.contains("an external program may run commands, and you may not"), "{text}");
    let requests = fake.requests.lock().unwrap().clone();
    let wide = requests.iter().find(|r| first(r) == "wide").unwrap();
    let names: Vec<&str> = wide.tools.iter().map(|t| t.name.as_str()).collect();
    assert!(names.contains(&"read_file"), "{names:?}");
    for tool in ["write_file", "edit_file", "terminal", "delegate_task"] {
        assert!(!names.contains(&tool), "{tool}: {names:?}");
    }
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn siblings_share_a_board_whose_notes_have_versions() {
    let place = Place::new();
    let fake = Fake::with(|_, r| match (first(r).as_str(), result(r)) {
        ("go", None) => calls(&[(
            "d1",
            "delegate_task",
            json!({"tasks": [{"goal": "write"}, {"goal": "read", "depends_on": ["1"]}], "blackboard": true}),
        )]),
        (task, None) if task.starts_with("write") => calls(&[
            ("b1", "blackboard", json!({"key": "k", "value": "noted"})),
            ("b2", "blackboard", json!({"key": "k", "value": "late", "version": 7})),
        ]),
        (task, None) if task.starts_with("read") => calls(&[("b3", "blackboard", json!({"key": "k"}))]),
        (_, Some(said)) => says(&said),
        _ => says("?"),
    });
    let mut rig = place.start(&fake).await;
    let (_, text) = rig.turn("go").await;
    assert!(text.contains("k is at version 1, not 7"), "{text}");
    assert!(text.contains("noted"), "{text}");
    rig.quit().await;
}
