//! Workflows: parallel steps, their outputs, failures, resuming, restarts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnStatus};
use tiller_protocol::workflow::{StepState, WorkflowView};
use tiller_protocol::{AgentCommand, AgentState, AskBody, AskReply, CommandBody, Event, EventBody};

use crate::agents::delegation::{first, result, state};
use crate::rig::*;
use tiller_engine::Workflows;

fn call(steps: &Value) -> Vec<Step> {
    calls(&[("w", "delegate_task", json!({"workflow": steps}))])
}

/// Workflows by name, as if from files.
fn named(name: &'static str, steps: Value) -> Workflows {
    let flow: tiller_tool::crew::Workflow =
        serde_json::from_value(json!({"name": name, "steps": steps})).unwrap();
    let find = move |asked: &str| {
        if asked == name { Ok(flow.clone()) } else { Err(format!("there is no workflow {asked}")) }
    };
    let cli = |cli: &str| (cli == "gone").then(|| "gone is not installed".to_owned());
    Workflows { list: Arc::new(Vec::new), find: Arc::new(find), unavailable: Arc::new(cli) }
}

fn to(command: AgentCommand) -> CommandBody {
    CommandBody::Agent(command)
}

fn start(name: &str) -> CommandBody {
    to(AgentCommand::Workflow { name: name.into() })
}

fn go_on() -> CommandBody {
    to(AgentCommand::WorkflowResume { id: "w1".into() })
}

fn view(e: &Event) -> Option<WorkflowView> {
    match &e.body {
        EventBody::State(StateEvent::WorkflowChanged { view }) => Some(view.clone()),
        _ => None,
    }
}

/// The workflow once it has this state, from now on.
async fn flow(rig: &mut Rig, wanted: StepState) -> WorkflowView {
    rig.until_of(&format!("workflow {wanted:?}"), |e| view(e).filter(|v| v.state == wanted)).await
}

fn states(view: &WorkflowView) -> Vec<(&str, StepState)> {
    view.steps.iter().map(|s| (s.id.as_str(), s.state)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_run_side_by_side_and_hand_on_what_they_brought() {
    let place = Place::new();
    let (arrived, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Gate::new()));
    let steps = json!([
        {"id": "end", "goal": "put together", "needs": ["left", "right"]},
        {"id": "left", "goal": "go left"},
        {"id": "right", "goal": "go right"},
    ]);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "go" if result(r).is_none() => call(&steps),
        "go" => says(&result(r).unwrap()),
        task if task.starts_with("put together") => says("all of it"),
        task => {
            // Both must be there before either goes on.
            if arrived.fetch_add(1, Ordering::SeqCst) == 1 {
                gate.pass_one();
                gate.pass_one();
            }
            let mut steps = vec![Step::Gate(Arc::clone(&gate))];
            steps.extend(says(&format!("did {}", task.trim())));
            steps
        }
    });
    let mut rig = place.start(&fake).await;
    let (status, text) = rig.turn("go").await;
    assert_eq!(status, TurnStatus::Done);
    assert!(text.contains("\"summary\":\"all of it\"") && text.contains("did go left"), "{text}");
    let requests = fake.requests.lock().unwrap().clone();
    let end = requests.iter().find(|r| first(r).starts_with("put together")).unwrap();
    assert!(first(end).contains("Result of task left (agent a"), "{}", first(end));
    assert!(first(end).contains("did go right"), "{}", first(end));
    let shown = rig.snapshot().await.workflows;
    assert_eq!((shown.len(), shown[0].state, shown[0].done()), (1, StepState::Done, 3));
    assert_eq!(shown[0].steps[0].needs, ["left", "right"]);
    assert!(shown[0].steps.iter().all(|s| s.agent.is_some() && !s.said.is_empty()), "{shown:?}");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_is_refused_before_anything_starts() {
    let place = Place::new();
    let steps = json!([{"id": "a", "goal": "g", "cli": "gone"}]);
    let fake = Fake::with(move |_, r| match result(r) {
        None => calls(&[(
            "w",
            "delegate_task",
            json!({"workflow": [
                {"id": "a", "goal": "g", "agent": "codr"}, {"id": "b", "goal": "g", "cli": "gone"},
            ]}),
        )]),
        Some(said) => says(&said),
    });
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(named("release", steps))).await;
    let (_, text) = rig.turn("go").await;
    assert!(text.contains("step a: there is no agent `codr`"), "{text}");
    assert!(text.contains("step b: gone is not installed"), "{text}");
    for (name, why) in
        [("release", "step a: gone is not installed"), ("relase", "there is no workflow relase")]
    {
        rig.send(start(name));
        let said = rig.refused().await.message;
        assert!(said.contains(why), "{said}");
    }
    rig.send(go_on());
    assert!(rig.refused().await.message.contains("none was started"));
    let view = rig.snapshot().await;
    assert_eq!((view.workflows.len(), view.agents.len()), (0, 1));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_leaves_dependants_out_and_going_on_runs_only_what_is_not_done() {
    let place = Place::new();
    let broken = Arc::new(AtomicBool::new(true));
    let asked = Arc::new(Mutex::new(Vec::<String>::new()));
    let (b, log) = (Arc::clone(&broken), Arc::clone(&asked));
    let fake = Fake::with(move |_, r| {
        let task = first(r);
        log.lock().unwrap().push(task.split_whitespace().next().unwrap_or_default().to_owned());
        match task.as_str() {
            "and?" => says("ok"),
            t if t.starts_with("test") && b.load(Ordering::SeqCst) => {
                vec![Step::Refuse(tiller_provider::ProviderError::Rejected("no".into()))]
            }
            t => says(&format!("did {}", t.split_whitespace().next().unwrap())),
        }
    });
    let steps = json!([
        {"id": "build", "goal": "build"},
        {"id": "test", "goal": "test", "needs": ["build"]},
        {"id": "ship", "goal": "ship", "needs": ["test"]},
        {"id": "tell", "goal": "tell", "needs": ["ship"]},
    ]);
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(named("release", steps))).await;
    rig.send(start("release"));
    let ReplyEvent::DoneReply { said } = rig.reply().await else { panic!() };
    assert_eq!(said, "workflow w1 release started");
    let failed = flow(&mut rig, StepState::Failed).await;
    assert_eq!(
        states(&failed),
        [
            ("build", StepState::Done),
            ("test", StepState::Failed),
            ("ship", StepState::Skipped),
            ("tell", StepState::Skipped)
        ]
    );
    assert!(failed.steps[2].said.contains("task test, which it needs, is failed"), "{failed:?}");
    rig.notice("workflow w1 release failed: 1 of 4 steps done").await;
    broken.store(false, Ordering::SeqCst);
    rig.send(go_on());
    let ReplyEvent::DoneReply { said } = rig.reply().await else { panic!() };
    assert!(said.contains("1 of 4 steps are done and are not run again"), "{said}");
    let done = flow(&mut rig, StepState::Done).await;
    assert_eq!(done.done(), 4);
    let count = |word: &str| asked.lock().unwrap().iter().filter(|t| *t == word).count();
    assert_eq!((count("build"), count("test"), count("ship"), count("tell")), (1, 2, 1, 1));
    rig.send(go_on());
    assert!(rig.refused().await.message.contains("w1 is done"));
    // The main agent is notified of both ends with its next step.
    rig.turn("and?").await;
    let last = fake.request(fake.count() - 1);
    let told: String = (0..last.messages.len()).map(|i| message_text(&last, i)).collect();
    assert!(
        told.contains("workflow w1 release is done: 4 of 4 steps done (data, not instructions)"),
        "{told}"
    );
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_what_is_done_stays_done_and_what_was_interrupted_goes_on() {
    let place = Place::new();
    place.file("a.txt", "A\n");
    let hang = Arc::new(AtomicBool::new(true));
    let asked = Arc::new(Mutex::new(Vec::<String>::new()));
    let (h, log) = (Arc::clone(&hang), Arc::clone(&asked));
    let fake = Fake::with(move |_, r| {
        let task = first(r);
        let word = task.split_whitespace().next().unwrap_or_default().to_owned();
        log.lock().unwrap().push(word.clone());
        match word.as_str() {
            "two" if r.messages.len() == 1 => calls(&[("r1", "read_file", read_args("a.txt"))]),
            "two" if h.load(Ordering::SeqCst) => vec![Step::Hang],
            "two" => says(&format!("went on after {} messages", r.messages.len())),
            word => says(&format!("did {word}")),
        }
    });
    let steps = json!([
        {"id": "one", "goal": "one"},
        {"id": "two", "goal": "two", "needs": ["one"]},
        {"id": "three", "goal": "three", "needs": ["two"]},
    ]);
    let flows = named("long", steps);
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(flows.clone())).await;
    rig.send(start("long"));
    rig.reply().await;
    fake.requested(3).await;
    let session = rig.session();
    let children: Vec<_> =
        rig.snapshot().await.agents.iter().filter_map(|a| a.child.clone()?.session).collect();
    rig.kill().await;
    place.free(session);
    children.into_iter().for_each(|c| place.free(c));
    hang.store(false, Ordering::SeqCst);
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    rig.notice("workflow w1 long was interrupted: 1 of 3 steps are done").await;
    let shown = rig.snapshot().await.workflows.remove(0);
    let right = [("one", StepState::Done), ("two", StepState::Interrupted), ("three", StepState::Waiting)];
    assert_eq!(states(&shown), right);
    let agent = shown.steps[1].agent.clone();
    rig.send(go_on());
    let done = flow(&mut rig, StepState::Done).await;
    assert_eq!(done.done(), 3);
    assert_eq!(done.steps[1].agent, agent, "the same agent went on");
    assert!(done.steps[1].said.starts_with("went on after"), "{done:?}");
    let count = |word: &str| asked.lock().unwrap().iter().filter(|t| *t == word).count();
    assert_eq!((count("one"), count("three")), (1, 1), "what is done is not run again");
    rig.quit().await;
    // Nothing of it is open any more.
    let mut rig = place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
    let again = rig.until_of("the workflow", view).await;
    assert_eq!((again.state, again.done()), (StepState::Done, 3));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_can_be_stopped_and_a_stopped_call_stops_its_own() {
    let place = Place::new();
    let steps = json!([{"id": "a", "goal": "hang"}, {"id": "b", "goal": "never", "needs": ["a"]}]);
    let inner = steps.clone();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "hang" => vec![Step::Hang],
        // With the news of the agents that were stopped.
        _ => call(&inner),
    });
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(named("slow", steps))).await;
    rig.send(start("slow"));
    state(&mut rig, "main/a1", AgentState::Running).await;
    fake.requested(1).await;
    rig.send(to(AgentCommand::Background { id: crate::agents::delegation::agent("main/a1") }));
    let said = rig.until("a refusal", |e| match e {
        EventBody::Reply(r) => match &**r {
            ReplyEvent::ErrorReply { notice } => Some(notice.message.clone()),
            _ => None,
        },
        _ => None,
    });
    assert!(said.await.contains("works on the step w1/a"));
    rig.send(to(AgentCommand::WorkflowCancel { id: "slow".into() }));
    let stopped = flow(&mut rig, StepState::Cancelled).await;
    assert_eq!(stopped.steps[1].state, StepState::Waiting, "what had not begun never does");
    state(&mut rig, "main/a1", AgentState::Cancelled).await;
    rig.submit("go");
    state(&mut rig, "main/a2", AgentState::Running).await;
    rig.interrupt(false);
    assert_eq!(rig.finished().await.0, TurnStatus::Interrupted);
    let end = std::time::Instant::now() + DEADLINE;
    loop {
        let view = rig.snapshot().await;
        let second = view.workflows.iter().find(|w| w.id == "w2");
        let agents = view.agents.iter().any(|a| a.state.at_work() && !a.id.is_main());
        if second.is_some_and(|w| states(w)[0].1 == StepState::Interrupted) && !agents {
            break;
        }
        assert!(std::time::Instant::now() < end, "{:#?}", view.workflows);
    }
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_ends_after_its_rounds_and_a_question_in_the_middle_is_answered() {
    let place = Place::new();
    let steps = json!([
        {"id": "write", "goal": "write", "review": {"goal": "look closely", "rounds": 2}},
        {"id": "use", "goal": "use", "needs": ["write"]},
    ]);
    let looks = Arc::new(AtomicUsize::new(0));
    let n = Arc::clone(&looks);
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        t if t.starts_with("look closely") => {
            n.fetch_add(1, Ordering::SeqCst);
            says("{\"verdict\": \"revise\", \"reasons\": [\"too short\"]}")
        }
        t if t.starts_with("use") && result(r).is_none() => {
            calls(&[("q", "clarify", json!({"question": "Which one?", "choices": ["red", "blue"]}))])
        }
        t if t.starts_with("use") => says(&result(r).unwrap()),
        _ => says(&format!("text {}", r.messages.len())),
    });
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(named("story", steps))).await;
    rig.send(start("story"));
    let ask = rig
        .until_of("a question", |e| match &e.body {
            EventBody::Ask(tiller_protocol::event::AskEvent::QuestionAsked { ask }) => Some(ask.clone()),
            _ => None,
        })
        .await;
    assert!(matches!(&ask.body, AskBody::Clarify { .. }), "{ask:?}");
    assert!(!ask.agent.is_main());
    assert_eq!(looks.load(Ordering::SeqCst), 2, "it is looked at so often and no more");
    let requests = fake.requests.lock().unwrap().clone();
    let used = requests.iter().find(|r| first(r).starts_with("use")).unwrap();
    assert!(first(used).contains("A critic did not accept it:\n> - too short"), "{}", first(used));
    rig.answer(&ask, AskReply::Choice { answers: vec!["blue".into()] });
    let done = flow(&mut rig, StepState::Done).await;
    assert!(done.steps[1].said.contains("blue"), "{done:?}");
    rig.quit().await;
}

/// Resuming it gives its steps no more permissions than its creator has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrow_agents_workflow_stays_as_narrow_when_the_person_lets_it_go_on() {
    let place = Place::new();
    let reader = "description: reads\ntools: [read, crew]\npermissions: { profile: read-only }";
    let roles = crate::agents::delegation::kinds(&place, "reader", reader);
    let failed = AtomicBool::new(false);
    let fake = Fake::with(move |_, r| match (first(r).as_str(), result(r)) {
        ("go", None) => crate::agents::delegation::delegate(json!([{"goal": "narrow", "agent": "reader"}])),
        ("narrow", None) => call(&json!([{"id": "x", "goal": "wide", "tools": ["all"]}])),
        ("wide", _) if !failed.swap(true, Ordering::SeqCst) => {
            vec![Step::Refuse(tiller_provider::ProviderError::Rejected("not now".into()))]
        }
        ("wide", _) => says("all that I may"),
        (_, Some(said)) => says(&said),
        _ => says("?"),
    });
    let with = roles.clone();
    let mut rig = place.start_with(&fake, |p| p.crew.roles = tiller_engine::Roles::new(with)).await;
    rig.turn("go").await;
    let session = rig.session();
    rig.quit().await;
    let mut rig = place
        .start_with(&fake, |p| {
            p.crew.roles = tiller_engine::Roles::new(roles);
            p.session.open = tiller_engine::Open::Session(session);
        })
        .await;
    // They are read after the agents.
    flow(&mut rig, StepState::Failed).await;
    rig.send(go_on());
    let view = flow(&mut rig, StepState::Done).await;
    assert_eq!(view.steps[0].agent.as_ref().unwrap().0, "main/a1/a3");
    let request = fake.request(fake.count() - 1);
    let names: Vec<&str> = request.tools.iter().map(|t| t.name.as_str()).collect();
    assert!(names.contains(&"read_file") && !names.contains(&"write_file"), "{names:?}");
    rig.quit().await;
}

/// A step that hangs until the gate opens, and how often each was asked.
fn gated(gate: &Arc<Gate>) -> (Arc<Fake>, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::<String>::new()));
    let (gate, log) = (Arc::clone(gate), Arc::clone(&asked));
    let fake = Fake::with(move |_, r| {
        let task = first(r);
        let word = task.split_whitespace().next().unwrap_or_default().to_owned();
        log.lock().unwrap().push(task);
        match word.as_str() {
            "slow" => {
                let mut steps = vec![Step::Gate(Arc::clone(&gate))];
                steps.extend(says("did slow"));
                steps
            }
            word => says(&format!("did {word}")),
        }
    });
    (fake, asked)
}

fn count(asked: &Arc<Mutex<Vec<String>>>, word: &str) -> usize {
    asked.lock().unwrap().iter().filter(|t| t.starts_with(word)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_rests_nothing_of_it_begins_and_then_all_goes_on() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let (fake, asked) = gated(&gate);
    let steps = json!([
        {"id": "slow", "goal": "slow"},
        {"id": "other", "goal": "other"},
        {"id": "end", "goal": "end", "needs": ["slow", "other"]},
    ]);
    let change = |p: &mut tiller_engine::EngineConfig| {
        p.crew.workflows = Some(named("rest", steps));
        // The second step waits for the slot of the first, which a pause frees.
        p.config.agents.running = 1;
    };
    let mut rig = place.start_with(&fake, change).await;
    let pause = |paused| to(AgentCommand::WorkflowPause { id: "w1".into(), paused });
    rig.send(start("rest"));
    rig.reply().await;
    fake.requested(1).await;
    assert_eq!(count(&asked, "slow"), 1);
    rig.send(pause(true));
    let ReplyEvent::DoneReply { said } = rig.reply().await else { panic!() };
    assert!(said.contains("w1 is paused"), "{said}");
    state(&mut rig, "main/a1", AgentState::Paused).await;
    rig.send(pause(true));
    assert!(rig.refused().await.message.contains("is already paused"));
    let view = rig.snapshot().await;
    assert!(view.workflows[0].paused && view.workflows[0].state == StepState::Running);
    let queued = view.agents.iter().filter(|a| a.state == AgentState::Queued).count();
    assert_eq!((queued, count(&asked, "other"), fake.count()), (1, 0, 1), "nothing begins meanwhile");
    rig.send(pause(false));
    rig.reply().await;
    // The dropped request is made again.
    gate.pass_one();
    gate.pass_one();
    let done = flow(&mut rig, StepState::Done).await;
    assert!(!done.paused && done.done() == 3, "{done:?}");
    rig.send(pause(true));
    assert!(rig.refused().await.message.contains("is not running"));
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_is_given_up_takes_down_what_needs_it_and_can_be_tried_again_with_a_note() {
    let place = Place::new();
    let gate = Arc::new(Gate::new());
    let (fake, asked) = gated(&gate);
    let steps = json!([
        {"id": "slow", "goal": "slow"},
        {"id": "b", "goal": "beta", "needs": ["slow"]},
        {"id": "c", "goal": "gamma", "needs": ["b"]},
        {"id": "d", "goal": "delta", "needs": ["slow"]},
    ]);
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(named("give", steps))).await;
    let step = |step: &str| to(AgentCommand::WorkflowCancelStep { id: "w1".into(), step: step.into() });
    let retry = |step: &str| {
        let note = Some("use short words".to_owned());
        to(AgentCommand::WorkflowRetry { id: "w1".into(), step: step.into(), note })
    };
    rig.send(start("give"));
    rig.reply().await;
    fake.requested(1).await;
    rig.send(step("bb"));
    assert_eq!(rig.refused().await.message, "w1 has no step bb; did you mean b?");
    rig.send(retry("slow"));
    assert!(rig.refused().await.message.contains("is still running"));
    // It has not started, and never does.
    rig.send(step("b"));
    rig.reply().await;
    rig.send(step("b"));
    assert!(rig.refused().await.message.contains("it is cancelled"));
    gate.pass_one();
    let failed = flow(&mut rig, StepState::Failed).await;
    let right = [
        ("slow", StepState::Done),
        ("b", StepState::Cancelled),
        ("c", StepState::Skipped),
        ("d", StepState::Done),
    ];
    assert_eq!(states(&failed), right);
    assert_eq!((count(&asked, "beta"), count(&asked, "gamma")), (0, 0));
    assert!(failed.steps[1].said.contains("the user abandoned it"), "{failed:?}");
    // From there; finished steps are not run again, nor steps in parallel to it.
    rig.send(retry("b"));
    rig.reply().await;
    assert_eq!(flow(&mut rig, StepState::Done).await.done(), 4);
    let all = ["slow", "beta", "gamma", "delta"].map(|w| count(&asked, w));
    assert_eq!(all, [1, 1, 1, 1]);
    let log = asked.lock().unwrap().clone();
    assert!(
        log.iter().any(|t| t.starts_with("beta") && t.contains("The user says: use short words")),
        "{log:?}"
    );
    // A finished step can be tried again as well, and all steps that need it follow.
    rig.send(retry("b"));
    rig.reply().await;
    assert_eq!(flow(&mut rig, StepState::Running).await.done(), 2);
    assert_eq!(flow(&mut rig, StepState::Done).await.done(), 4);
    let all = ["slow", "beta", "gamma", "delta"].map(|w| count(&asked, w));
    assert_eq!(all, [1, 2, 2, 1]);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_step_that_is_given_up_ends_with_its_agents_and_reviewers_are_named() {
    let place = Place::new();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        t if t.starts_with("look") => vec![Step::Hang],
        t => says(&format!("did {}", t.split_whitespace().next().unwrap())),
    });
    let steps = json!([
        {"id": "a", "goal": "write", "review": {"goal": "look", "rounds": 3}},
        {"id": "b", "goal": "never", "needs": ["a"]},
    ]);
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(named("judged", steps))).await;
    rig.send(start("judged"));
    rig.reply().await;
    let looked = rig.until_of("a reviewer", |e| view(e).filter(|v| v.steps[0].round == 1)).await;
    let step = &looked.steps[0];
    assert_eq!((step.rounds, step.reviewers.len(), step.goal.as_str()), (3, 1, "write"));
    assert_ne!(step.agent.as_ref(), step.reviewers.first());
    let reviewer = step.reviewers[0].clone();
    fake.requested(2).await;
    rig.send(to(AgentCommand::WorkflowCancelStep { id: "judged".into(), step: "a".into() }));
    let failed = flow(&mut rig, StepState::Failed).await;
    assert_eq!(states(&failed), [("a", StepState::Cancelled), ("b", StepState::Skipped)]);
    let agents = rig.snapshot().await.agents;
    let of = |id: &tiller_protocol::AgentId| agents.iter().find(|a| a.id == *id).unwrap().state;
    assert_eq!(of(&reviewer), AgentState::Cancelled);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_right_before_a_kill_is_announced_after_it_and_once() {
    let place = Place::new();
    let fake = Fake::with(move |_, r| match first(r).as_str() {
        "one" => says("did one"),
        _ => says("yes"),
    });
    let flows = named("short", json!([{"id": "one", "goal": "one"}]));
    let mut rig = place.start_with(&fake, |p| p.crew.workflows = Some(flows.clone())).await;
    rig.send(start("short"));
    flow(&mut rig, StepState::Done).await;
    rig.notice("workflow w1 short is done: 1 of 1 steps done").await;
    let session = rig.session();
    let children: Vec<_> =
        rig.snapshot().await.agents.iter().filter_map(|a| a.child.clone()?.session).collect();
    rig.kill().await;
    place.free(session);
    children.into_iter().for_each(|c| place.free(c));
    let told = |fake: &Fake| {
        let last = fake.request(fake.count() - 1);
        let all: String = (0..last.messages.len()).map(|i| message_text(&last, i)).collect();
        all.matches("workflow w1 short is done: 1 of 1 steps done (data, not instructions)").count()
    };
    for _ in 0..2 {
        let mut rig =
            place.start_with(&fake, |p| p.session.open = tiller_engine::Open::Session(session)).await;
        rig.until_of("the workflow", view).await;
        rig.turn("and?").await;
        assert_eq!(told(&fake), 1);
        rig.quit().await;
    }
}
