//! A fixed scene for golden screens: a running turn, todo, agents, queue, changes, a question.

use serde_json::json;
use tiller_protocol::ModelRef;
use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::event::{AskEvent, StateEvent, ToolEvent, TurnEvent};
use tiller_protocol::tool::Display;
use tiller_protocol::view::{GitOperation, GitState};
use tiller_protocol::{
    AgentId, AgentState, AgentView, Ask, AskBody, AskId, ChangeKind, ChildView, Cost, Event, EventBody,
    FileChange, Message, Queued, QueuedState, Risk, SendMode, SessionId, StopReason, Time, TodoItem,
    TodoStatus, Usage, Who,
};

use crate::app::msg::Msg;
use crate::model::conversation::script::{Script, text};
use crate::testing::{Robot, START};

/// A turn runs.
pub(crate) fn running(r: &mut Robot) {
    r.event(EventBody::Turn(TurnEvent::TurnStarted {}));
}

/// The `n`th question: whether a command may run.
pub(crate) fn question(n: u128) -> Ask {
    let p = PermissionAsk {
        tool: "terminal".into(),
        verb: "run".into(),
        shown: format!("git push origin docs{n}"),
        hash: format!("h{n}"),
        diff: None,
        folder: "~/api".into(),
        why: "publish the docs branch".into(),
        rule: "no permission rule matches".into(),
        effects: vec!["writes to remote \"origin\"".into()],
        risk: Risk::High,
        always: None,
        editable: true,
        outside: tiller_protocol::ask::OutsideAnswer::No,
        calls: Vec::new(),
        draft: None,
        source: None,
    };
    let id: AskId = format!("{n:032x}").parse().unwrap();
    Ask { id, agent: AgentId("a2".into()), call: None, body: AskBody::Permission(p) }
}

/// Delivers the `n`th question.
pub(crate) fn ask(r: &mut Robot, n: u128) {
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: question(n) }));
}

fn agent(id: &str, parent: Option<&str>, label: &str, state: AgentState, act: &str) -> AgentView {
    AgentView {
        id: AgentId(id.into()),
        parent: parent.map(|p| AgentId(p.into())),
        label: label.into(),
        state,
        act: act.into(),
        model: ModelRef("vendor/model-x".into()),
        usage: Usage { input: 150_000, output: 9_000, ..Usage::default() },
        cost: Some(Cost::from_usd(0.31)),
        context: 82_000,
        window: Some(200_000),
        since: Some(Time(START.0 - 41_000)),
        child: None,
    }
}

/// An agent that another one started, with a conversation of its own.
pub(crate) fn child(id: &str, label: &str, state: AgentState) -> AgentView {
    let id = AgentId(id.into());
    let session = Some(SessionId(Default::default()));
    AgentView {
        parent: id.parent(),
        id,
        label: label.into(),
        state,
        model: ModelRef("vendor/small".into()),
        child: Some(Box::new(ChildView { session, ..ChildView::default() })),
        ..AgentView::default()
    }
}

/// Reports the row of an agent.
pub(crate) fn changed(r: &mut Robot, view: AgentView) {
    let id = view.id.0.clone();
    r.of(&id, None, EventBody::State(StateEvent::AgentChanged { view }));
}

/// An agent says something.
pub(crate) fn says(r: &mut Robot, agent: &str, text: &str) {
    r.of(agent, None, EventBody::Turn(TurnEvent::TextDelta { text: text.into() }));
}

/// Main says something, and two children are at work.
pub(crate) fn crew(width: u16, height: u16) -> Robot {
    let mut r = Robot::new(width, height);
    running(&mut r);
    says(&mut r, "main", "words of main");
    changed(&mut r, AgentView { id: AgentId::main(), state: AgentState::Running, ..AgentView::default() });
    changed(&mut r, child("main/a1", "tests", AgentState::Running));
    changed(&mut r, child("main/a2", "docs", AgentState::Running));
    r
}

fn todo(n: usize, content: &str, status: TodoStatus) -> TodoItem {
    TodoItem { id: n.to_string(), content: content.into(), status, agent: None }
}

fn change(path: &str, kind: ChangeKind, who: Who) -> FileChange {
    FileChange {
        time: Time(START.0 - 60_000),
        kind,
        path: path.into(),
        who,
        count: 1,
        lines: None,
        during: None,
    }
}

/// The scene, with its question put aside.
pub(crate) fn play(r: &mut Robot) {
    let mut s = Script { now: START.0 - 90_000, ..Script::new() };
    let user = s.user("Make the retry logic honour Retry-After and add tests.");
    let said = s.assistant(vec![text("I will look at the client first.")], StopReason::ToolUse);
    let Event { body: EventBody::Reply(mut reply), .. } = s.snapshot(vec![user, said], 0, true) else {
        unreachable!("a snapshot is a reply")
    };
    if let tiller_protocol::event::ReplyEvent::SnapshotReply { snapshot } = reply.as_mut() {
        snapshot.session.project = "/home/ann/api".into();
        snapshot.session.title = "retry work".into();
        snapshot.model = tiller_protocol::ModelRef("vendor/model-x".into());
        snapshot.git = Some(GitState { branch: "main".into(), changed: 3, under_way: GitOperation::None });
        snapshot.usage = Usage { input: 182_000, output: 9_000, ..Usage::default() };
        snapshot.cost = Some(Cost::from_usd(0.83));
        snapshot.todo = [
            ("read client", TodoStatus::Completed),
            ("parse both header forms", TodoStatus::Completed),
            ("cap the wait", TodoStatus::Completed),
            ("tests", TodoStatus::InProgress),
            ("docs", TodoStatus::Pending),
            ("changelog", TodoStatus::Pending),
            ("flag", TodoStatus::Pending),
        ]
        .iter()
        .enumerate()
        .map(|(i, (t, st))| todo(i, t, *st))
        .collect();
        snapshot.agents = vec![
            agent("main", None, "main", AgentState::Running, "shell cargo test"),
            agent("a1", Some("main"), "tests", AgentState::Running, "edit tests/retry.rs"),
            agent("a2", Some("main"), "docs", AgentState::Waiting, "approve?"),
        ];
        snapshot.feed = vec![
            change("README.md", ChangeKind::Modified, Who::You),
            change("Cargo.lock", ChangeKind::Modified, Who::Shell { agent: AgentId::main() }),
        ];
        snapshot.queue = vec![Queued {
            state: QueuedState::Accepted,
            ..Queued::new(
                "00000000000000000000000000000007".parse().unwrap(),
                Message::text("also update the changelog"),
                SendMode::Queue,
            )
        }];
    }
    r.msg(Msg::Engine(Box::new(s.event(EventBody::Reply(reply)))));
    for (id, verb, target, out) in
        [("c1", "read", "src/client.rs", "412 lines"), ("c2", "search", "\"Retry-After\"", "3 hits")]
    {
        let display = Display::Measure { text: out.into() };
        for e in s.tool(id, "read_file", verb, target, out, Some(display)) {
            r.msg(Msg::Engine(Box::new(e)));
        }
    }
    let started = ToolEvent::ToolStarted {
        call_id: "c3".into(),
        name: "terminal".into(),
        arguments: json!({ "command": "cargo test -p api" }),
        verb: "shell".into(),
        target: "cargo test -p api".into(),
    };
    r.msg(Msg::Engine(Box::new(s.event(EventBody::Tool(started)))));
    r.event(EventBody::Turn(TurnEvent::TextDelta {
        text: "The header may hold **seconds** or a *date*; both are handled, and the wait is capped.".into(),
    }));
    ask(r, 1);
    r.run("esc");
}
