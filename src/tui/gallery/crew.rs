//! Scenes of agents and workflows.

use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    Activity, ActivitySource, AgentId, AgentLimits, AgentState, AgentView, Backend, ChildView, Cost,
    EventBody, PaneView, SessionId, StepState, StepView, Transport, WorkflowView,
};

use super::scene::Scene;
use super::stage::Stage;
use super::story;
use crate::app::effect::Navigation;

pub(super) const AGENTS: Scene = Scene::new("agents", "Agents of ours and of other vendors", agents);
pub(super) const AGENTS_FINISHED: Scene =
    Scene::new("agents_finished", "Agents that have ended, and limits", finished);
pub(super) const AGENTS_BESIDE: Scene = Scene::new("agents_beside", "Agents beside the conversation", beside);
pub(super) const TERMINAL: Scene = Scene::new("terminal", "A program in a terminal", terminal);
pub(super) const AGENT: Scene = Scene::new("agent", "The conversation of another agent", agent);
pub(super) const WORKFLOW: Scene = Scene::new("workflow", "A workflow that runs", workflow);

fn child(role: &str, task: &str) -> ChildView {
    ChildView {
        session: Some(SessionId(Default::default())),
        role: role.into(),
        task: task.into(),
        used: AgentLimits {
            turns: Some(7),
            seconds: Some(95),
            tokens: Some(64_500),
            cost: Some(Cost::from_usd(0.12)),
        },
        limits: AgentLimits {
            turns: Some(20),
            seconds: Some(600),
            tokens: Some(400_000),
            cost: Some(Cost::from_usd(0.5)),
        },
        ..ChildView::default()
    }
}

fn foreign(program: &str, transport: Transport, task: &str) -> ChildView {
    ChildView {
        backend: Backend::program(program, Some(transport)),
        used: AgentLimits::default(),
        limits: AgentLimits::default(),
        ..child("", task)
    }
}

fn done(child: ChildView, took: f64, files: u32, result: &str) -> ChildView {
    ChildView { took, files, result: result.into(), ..child }
}

fn crew() -> Vec<AgentView> {
    use AgentState::{Cancelled, Done, Failed, Paused, Queued, Running, Waiting};
    let a = |n: u32, label: &str, state, act: &str, child| {
        story::agent(&format!("main/a{n}"), label, state, act, child)
    };
    vec![
        story::main_row(Running, "wait for a1, a2, a5"),
        a(
            1,
            "date handling",
            Running,
            "edit src/client.py",
            child("coder", "Parse HTTP dates in Retry-After"),
        ),
        a(
            2,
            "cap and back-off",
            Waiting,
            "shell python -m pytest -q",
            child("coder", "Cap every pause at the policy's limit"),
        ),
        a(
            3,
            "read the RFC",
            Done,
            "",
            done(
                child("researcher", "What RFC 9110 says of Retry-After"),
                41.0,
                0,
                "Two forms: delay-seconds and HTTP-date; recipients must accept both.",
            ),
        ),
        a(4, "review", Queued, "", child("reviewer", "Review the change when the tests pass")),
        a(
            5,
            "property tests",
            Running,
            "write tests/test_properties.py",
            foreign("codex", Transport::Acp, "Property tests for parse_retry_after"),
        ),
        a(
            6,
            "docs",
            Running,
            "edit README.md",
            foreign("opencode", Transport::Headless, "Describe retries in the README"),
        ),
        a(
            7,
            "second opinion",
            Paused,
            "",
            foreign("gemini", Transport::Acp, "Is the cap at the right place?"),
        ),
        a(
            8,
            "type hints",
            Done,
            "",
            done(
                foreign("goose", Transport::Headless, "Type hints for src/client.py"),
                128.0,
                1,
                "mypy --strict passes.",
            ),
        ),
        a(
            9,
            "benchmark",
            Failed,
            "",
            done(child("coder", "Measure the loop"), 12.0, 0, "pytest-benchmark is not installed."),
        ),
        a(10, "old python", Cancelled, "", done(child("coder", "Does it run on 3.9?"), 8.0, 0, "")),
        story::agent(
            "main/a1/b1",
            "fixtures",
            Running,
            "read tests/conftest.py",
            child("coder", "Fixtures with a fixed clock"),
        ),
    ]
}

fn show(s: &mut Stage, crew: Vec<AgentView>) {
    for view in crew {
        s.state(StateEvent::AgentChanged { view });
    }
}

fn agents(s: &mut Stage) {
    story::working(s);
    show(s, crew());
    s.act("view.agents");
    s.fill();
    // What was said of its size is gone.
    s.wait(8_000);
    s.press("j");
}

/// The same with the agents that have ended, one of ours selected.
fn finished(s: &mut Stage) {
    agents(s);
    s.press("G");
    s.press("enter");
    s.press("g");
    s.press("j");
    s.press("j");
}

/// In the band beside the conversation.
fn beside(s: &mut Stage) {
    story::working(s);
    show(s, crew());
    s.act("view.agents");
}

fn agent(s: &mut Stage) {
    story::working(s);
    show(s, crew());
    s.snapshot.session.title = "date handling".into();
    s.go(Navigation::Agent(AgentId("main/a1".into())));
    let said = |s: &mut Stage, event| s.event_of("main/a1", None, EventBody::Turn(event));
    said(s, TurnEvent::TurnStarted {});
    said(s, TurnEvent::TextDelta {
        text: "`parsedate_to_datetime` returns a naive value for `-0000`. I treat it as UTC, as RFC 5322 has it, and \
               add a test for that."
            .into(),
    });
    s.wait(500);
}

fn terminal(s: &mut Stage) {
    story::working(s);
    let pane = PaneView {
        doing: Activity::Blocked,
        source: ActivitySource::Screen,
        title: "property tests".into(),
        ..PaneView::default()
    };
    let mut crew = crew();
    let program = AgentId("main/a5".into());
    for view in &mut crew {
        if view.id == program
            && let Some(child) = &mut view.child
        {
            child.pane = Some(Box::new(pane.clone()));
        }
    }
    show(s, crew);
    s.go(Navigation::Terminal(program));
    s.fill();
    s.wait(8_000);
}

fn step(id: &str, needs: &[&str], state: StepState, by: &str, goal: &str, agent: Option<u32>) -> StepView {
    StepView {
        id: id.into(),
        needs: needs.iter().map(|n| (*n).to_owned()).collect(),
        state,
        by: by.into(),
        goal: goal.into(),
        agent: agent.map(|n| AgentId(format!("main/a{n}"))),
        ..StepView::default()
    }
}

fn workflow(s: &mut Stage) {
    use StepState::{Done, Running, Waiting};
    story::working(s);
    show(s, crew());
    let steps = vec![
        StepView {
            said: "Two forms: delay-seconds and HTTP-date; recipients must accept both.".into(),
            ..step("research", &[], Done, "researcher", "What RFC 9110 says of Retry-After", Some(3))
        },
        StepView {
            reviewers: vec![AgentId("main/a4".into())],
            round: 1,
            rounds: 2,
            ..step("parse", &["research"], Running, "coder", "Parse HTTP dates in Retry-After", Some(1))
        },
        step("cap", &["research"], Running, "coder", "Cap every pause at the policy's limit", Some(2)),
        step("properties", &["parse"], Waiting, "codex", "Property tests for parse_retry_after", None),
        step("docs", &["cap"], Waiting, "opencode", "Describe retries in the README", None),
        step("release", &["properties", "docs"], Waiting, "coder", "Changelog and version", None),
    ];
    s.state(StateEvent::WorkflowChanged {
        view: WorkflowView {
            id: "w1".into(),
            name: "retry-after".into(),
            state: Running,
            paused: false,
            steps,
        },
    });
    s.act("workflows.open");
}
