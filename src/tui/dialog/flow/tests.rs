//! The picture of a workflow, driven by the robot.

use tiller_protocol::{
    AgentCommand, AgentState, AgentView, ChildView, CommandBody, Cost, ModelRef, Time, Usage,
};

use super::*;
use crate::testing::{Robot, START};

fn agent(id: &str, label: &str, state: AgentState, backend: &str) -> AgentView {
    let child = ChildView {
        session: Some(tiller_protocol::SessionId(Default::default())),
        backend: backend.into(),
        task: "do it".into(),
        result: if state.at_work() { String::new() } else { "all of the result, with every word".into() },
        took: if state.at_work() { 0.0 } else { 41.0 },
        ..ChildView::default()
    };
    AgentView {
        id: AgentId(format!("main/{id}")),
        parent: Some(AgentId::main()),
        label: label.into(),
        state,
        act: if state.at_work() { "edit src/client.rs".into() } else { tiller_protocol::Act::Nothing },
        model: ModelRef("vendor/model".into()),
        usage: Usage { input: 12_000, output: 900, ..Usage::default() },
        cost: backend.is_empty().then(|| Cost::from_usd(0.31)),
        since: Some(Time(START.millis() - 125_000)).filter(|_| state.at_work()),
        child: Some(Box::new(child)),
        ..AgentView::default()
    }
}

fn step(id: &str, needs: &[&str], state: StepState, agent: Option<&str>, said: &str) -> StepView {
    StepView {
        id: id.into(),
        needs: needs.iter().map(|n| (*n).to_owned()).collect(),
        state,
        goal: format!("{id} what is to be done"),
        agent: agent.map(|a| AgentId(format!("main/{a}"))),
        said: said.into(),
        ..StepView::default()
    }
}

/// A running workflow: `build` is done, `test` is looked at by a reviewer, `docs` runs in another vendor's program.
pub(super) fn release() -> (WorkflowView, Vec<AgentView>) {
    let mut test = step("test", &["build"], StepState::Running, Some("a2"), "");
    test.reviewers = vec![AgentId("main/a4".into())];
    (test.round, test.rounds) = (1, 2);
    let steps = vec![
        step("build", &[], StepState::Done, Some("a1"), "it is built"),
        test,
        step("docs", &["build"], StepState::Running, Some("a3"), ""),
        step("ship", &["test", "docs"], StepState::Waiting, None, ""),
        step("tell", &["ship"], StepState::Waiting, None, ""),
    ];
    let flow = WorkflowView {
        id: "w1".into(),
        name: "release".into(),
        state: StepState::Running,
        steps,
        ..WorkflowView::default()
    };
    let agents = vec![
        agent("a1", "build", AgentState::Done, ""),
        agent("a2", "test", AgentState::Done, ""),
        agent("a3", "docs", AgentState::Running, "claude, acp"),
        agent("a4", "review 1: test", AgentState::Running, ""),
    ];
    (flow, agents)
}

fn changed(r: &mut Robot, view: WorkflowView) {
    r.event(EventBody::State(StateEvent::WorkflowChanged { view }));
}

fn shown(columns: u16, rows: u16) -> Robot {
    let mut r = Robot::new(columns, rows);
    let main = AgentView { id: AgentId::main(), label: "main".into(), ..AgentView::default() };
    let (flow, agents) = release();
    for view in std::iter::once(main).chain(agents) {
        r.event(EventBody::State(StateEvent::AgentChanged { view }));
    }
    changed(&mut r, flow);
    r
}

fn opened(columns: u16, rows: u16) -> Robot {
    let mut r = shown(columns, rows);
    r.run("type /workflow; enter");
    r
}

fn crew(r: &Robot) -> Vec<AgentCommand> {
    let of = |c: &CommandBody| match c {
        CommandBody::Agent(a) => Some(a.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(of).collect()
}

#[test]
fn looks_well() {
    let mut r = opened(118, 25);
    insta::assert_snapshot!("flow_at_118x25", r.screen());
    r.run("size 80x24");
    insta::assert_snapshot!("flow_at_80x24", r.screen());
    r.run("esc; alt-3");
    insta::assert_snapshot!("flow_in_the_panel_at_80x24", r.screen());
}

#[test]
fn keys_go_along_the_ways() {
    let mut r = opened(80, 24);
    let at = |r: &Robot| {
        let screen = r.screen();
        let rule =
            screen.lines().find(|l| l.trim_start_matches(['│', ' ']).starts_with("── ")).unwrap_or_default();
        rule.split_whitespace().find(|w| w.chars().all(char::is_alphanumeric)).unwrap_or_default().to_owned()
    };
    // What runs is looked at first.
    assert_eq!(at(&r), "test", "{}", r.screen());
    r.run("left");
    assert_eq!(at(&r), "build");
    r.run("right right right");
    assert_eq!(at(&r), "tell");
    r.run("left left");
    assert_eq!(at(&r), "docs", "the last of what it needs");
    r.run("g");
    assert_eq!(at(&r), "build");
    r.run("G");
    assert_eq!(at(&r), "tell");
}

#[test]
fn keys_steer_the_step_and_the_whole() {
    let mut r = opened(118, 25);
    let id = || "w1".to_owned();
    r.clear().run("k; enter");
    assert!(crew(&r).is_empty(), "the focus is on no");
    r.run("k; y");
    assert_eq!(crew(&r), [AgentCommand::WorkflowCancelStep { id: id(), step: "test".into() }]);
    r.clear().run("P");
    assert_eq!(crew(&r), [AgentCommand::WorkflowPause { id: id(), paused: true }]);
    // Of a step that is looked at the reviewer is meant.
    r.clear().run("p");
    assert_eq!(crew(&r), [AgentCommand::Pause { id: AgentId("main/a4".into()) }]);
    r.clear().run("K; enter");
    assert!(crew(&r).is_empty(), "the focus is on no");
    r.run("K; y");
    assert_eq!(crew(&r), [AgentCommand::WorkflowCancel { id: id() }]);
    r.clear().run("r");
    assert!(crew(&r).is_empty() && r.screen().contains("is still running"), "{}", r.screen());
    r.run("wait 9000; l");
    assert!(r.screen().contains("Limits of a4 review 1: test"), "{}", r.screen());
    r.run("esc; g; o");
    assert!(r.screen().contains("every word"), "{}", r.screen());
    r.run("esc; d");
    assert_eq!(crew(&r), [AgentCommand::Diff { id: AgentId("main/a1".into()) }]);
    r.run("G; enter");
    assert!(r.screen().contains("has not started"), "{}", r.screen());
    r.run("g; enter");
    assert_eq!(r.app.model.shown_agent(), AgentId("main/a1".into()));
}

#[test]
fn one_that_failed_says_why_and_goes_on_from_there() {
    let mut r = shown(80, 24);
    let (mut flow, _) = release();
    flow.state = StepState::Failed;
    flow.steps[1].state = StepState::Failed;
    flow.steps[1].said = "two tests \u{1b}[31mare red".into();
    flow.steps[2].state = StepState::Done;
    flow.steps[3].state = StepState::Skipped;
    flow.steps[3].said = "not started: task test, which it needs, is failed".into();
    changed(&mut r, flow);
    r.run("type /workflow; enter");
    let screen = r.screen();
    assert!(screen.contains("✗ failed") && screen.contains("skipped"), "{screen}");
    assert!(screen.contains("Why") && screen.contains("two tests") && !screen.contains('\u{1b}'), "{screen}");
    r.clear().run("u");
    assert_eq!(crew(&r), [AgentCommand::WorkflowResume { id: "w1".into() }]);
    r.clear().run("r; type only the first; enter");
    let retry = AgentCommand::WorkflowRetry {
        id: "w1".into(),
        step: "test".into(),
        note: Some("only the first".into()),
    };
    assert_eq!(crew(&r), [retry]);
    r.clear().run("esc; k");
    assert!(crew(&r).is_empty() && r.screen().contains("is not running"), "{}", r.screen());
}

#[test]
fn without_any_there_are_those_of_files() {
    let mut r = Robot::new(84, 24);
    r.run("type /workflow; enter");
    let id = r.asked(|c| matches!(c, CommandBody::Query(tiller_protocol::command::Query::Workflows)));
    assert!(id.is_some());
    let file = |name: &str, wrong: &str| tiller_protocol::WorkflowFile {
        name: name.into(),
        path: format!(".tiller/workflows/{name}.toml"),
        description: "Build and tell".into(),
        steps: vec!["build".into(), "tell".into()],
        wrong: wrong.into(),
    };
    let files = vec![file("bad", "bad.toml:2:1: step a has no goal"), file("ship", "")];
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::WorkflowsReply { files })));
    let screen = r.screen();
    assert!(screen.contains("  has an error ") && screen.contains("ship  Build and tell"), "{screen}");
    assert!(screen.contains("▌ ship"), "the list starts on what can be started: {screen}");
    r.run("up; enter");
    assert!(crew(&r).is_empty(), "one with a mistake is not started");
    r.run("down enter");
    assert_eq!(crew(&r), [AgentCommand::Workflow { name: "ship".into() }]);
}

#[test]
fn many_steps_scroll_and_any_size_is_drawn() {
    let mut r = shown(80, 24);
    let many = |i: usize| {
        let needs = if i == 0 { vec![] } else { vec![format!("s{}", i / 2)] };
        StepView { id: format!("s{i}"), needs, ..StepView::default() }
    };
    let steps = (0..50).map(many).collect();
    let flow = WorkflowView {
        id: "w2".into(),
        name: "wide".into(),
        state: StepState::Running,
        steps,
        ..Default::default()
    };
    changed(&mut r, flow);
    r.run("type /workflow; enter; G");
    let screen = r.screen();
    assert!(screen.contains("s49") && screen.contains("(2 of 2)"), "{screen}");
    for (columns, rows) in [(20, 6), (30, 8), (50, 12), (200, 60), (1, 1)] {
        r.run(&format!("size {columns}x{rows}"));
        let _ = r.screen();
    }
    r.run("size 80x24; tab");
    assert!(r.screen().contains("w1 release"), "{}", r.screen());
}
