//! The story that the scenes tell: a Python client learns to honour the `Retry-After` header.

use tiller_protocol::event::{StateEvent, TurnEvent, TurnStatus};
use tiller_protocol::feed::Who;
use tiller_protocol::tool::Display;
use tiller_protocol::{
    AgentId, AgentState, AgentView, ChangeKind, ChildView, Cost, FileChange, ModelRef, Time, TodoItem,
    TodoStatus, ToolOutcome, Usage,
};

use super::answers::{self, file};
use super::stage::{Call, START, Stage};

/// The first message.
pub(super) const WISH: &str = "Make the retry logic honour Retry-After and add what is missing.";

/// The model's first thought.
pub(super) const THOUGHT: &str = "The user wants Retry-After to be honoured. The header can be a number of seconds \
     or an HTTP date. I should look at the client and its tests first, then cap the pause at the policy's limit.";

/// The list of steps; so many of them are done, the next one is being worked at.
pub(super) fn todo(done: usize) -> Vec<TodoItem> {
    let words = [
        "Read the client and its tests",
        "Parse both forms of the header",
        "Cap the pause at the policy's limit",
        "Tests for the cap, dates and garbage",
        "Say so in the README",
        "Changelog",
    ];
    let status = |n: usize| match n.cmp(&done) {
        std::cmp::Ordering::Less => TodoStatus::Completed,
        std::cmp::Ordering::Equal => TodoStatus::InProgress,
        std::cmp::Ordering::Greater => TodoStatus::Pending,
    };
    let item = |(n, text): (usize, &&str)| TodoItem {
        id: (n + 1).to_string(),
        content: (*text).into(),
        status: status(n),
        agent: None,
    };
    words.iter().enumerate().map(item).collect()
}

/// A change of a file, so many minutes ago.
pub(super) fn change(
    path: &str,
    kind: ChangeKind,
    who: Who,
    lines: Option<(u32, u32)>,
    minutes: i64,
) -> FileChange {
    FileChange {
        time: Time(START.millis() - minutes * 60_000),
        kind,
        path: path.into(),
        who,
        count: 1,
        lines,
        during: None,
    }
}

fn by_main() -> Who {
    Who::Agent { agent: AgentId::main() }
}

/// Returns what changed in the folder.
pub(super) fn feed() -> Vec<FileChange> {
    let shell = || Who::Shell { agent: AgentId::main() };
    vec![
        change("switched to retry-after", ChangeKind::Git, Who::Git, None, 31),
        change("pyproject.toml", ChangeKind::Modified, Who::You, Some((2, 1)), 24),
        FileChange { count: 148, ..change(".venv", ChangeKind::Storm, Who::You, None, 23) },
        FileChange {
            during: Some("python -m pytest -q".into()),
            ..change(".pytest_cache/v/cache/lastfailed", ChangeKind::Added, shell(), None, 6)
        },
        change("src/client.py", ChangeKind::Modified, by_main(), Some((17, 3)), 4),
        change("tests/test_client.py", ChangeKind::Modified, by_main(), Some((20, 1)), 3),
        change("src/old_retry.py", ChangeKind::Deleted, by_main(), Some((0, 41)), 2),
        change("README.md", ChangeKind::Modified, by_main(), Some((2, 1)), 1),
    ]
}

/// The main agent in the list of agents.
pub(super) fn main_row(state: AgentState, act: &str) -> AgentView {
    AgentView {
        id: AgentId::main(),
        label: "main".into(),
        state,
        act: act.into(),
        model: ModelRef(answers::MODEL.into()),
        usage: Usage { input: 38_400, output: 4_100, ..Usage::default() },
        cost: Some(Cost::from_usd(0.83)),
        context: 24_800,
        window: Some(200_000),
        since: state.at_work().then(|| Time(START.millis() - 72_000)),
        ..AgentView::default()
    }
}

/// Another agent.
pub(super) fn agent(id: &str, label: &str, state: AgentState, act: &str, child: ChildView) -> AgentView {
    let id = AgentId(id.into());
    let own = !child.backend.is_external();
    AgentView {
        parent: id.parent(),
        id,
        label: label.into(),
        state,
        act: act.into(),
        model: ModelRef(if own { "acme/coder-small".into() } else { String::new() }),
        usage: Usage { input: 61_200, output: 3_300, ..Usage::default() },
        cost: own.then(|| Cost::from_usd(0.12)),
        context: 31_000,
        window: own.then_some(200_000),
        since: state.at_work().then(|| Time(START.millis() - 95_000)),
        child: Some(Box::new(child)),
    }
}

pub(super) fn usage(s: &mut Stage, input: u64, output: u64, usd: f64) {
    s.turn(TurnEvent::Usage {
        usage: Usage { input, output, cache_read: input * 3, ..Usage::default() },
        cost_usd: Some(usd),
        context: input,
        window: Some(200_000),
    });
}

pub(super) fn edit(target: &'static str, diff: &str) -> Call {
    Call {
        display: Some(Display::Diff { files: vec![file(target, ChangeKind::Modified, diff)] }),
        ..Call::new("edit_file", "edit", target, "")
    }
}

pub(super) fn shell(target: &'static str, output: &'static str, exit: i32, seconds: f64) -> Call {
    Call {
        output,
        display: Some(Display::Output { tail: output.into(), exit: Some(exit), full: None }),
        outcome: if exit == 0 { ToolOutcome::Ok } else { ToolOutcome::Error },
        seconds,
        ..Call::new("terminal", "shell", target, "")
    }
}

/// The session is open, with a name.
pub(super) fn open(s: &mut Stage) {
    s.snapshot.session.title = "Honour Retry-After".into();
    s.snapshot.session.entries = 46;
    s.start();
}

/// The turn has begun: the agent has read what there is.
pub(super) fn reading(s: &mut Stage) {
    s.user(WISH);
    s.wait(900);
    s.reply(
        THOUGHT,
        "I will look at the client and its tests first.",
        &[
            Call::new("read_file", "read", "src/client.py", "39 lines"),
            Call::new("read_file", "read", "tests/test_client.py", "19 lines"),
            Call::new("search", "search", "Retry-After", "3 hits in 2 files"),
        ],
    );
    usage(s, 12_400, 610, 0.21);
}

/// The agent has edited the client and its tests.
pub(super) fn editing(s: &mut Stage) {
    s.state(StateEvent::TodoChanged { todos: todo(3), by_person: false });
    s.reply(
        "",
        "The header has two forms, and the client only reads the first one. I move the parsing into a function of \
         its own and cap the pause.",
        &[edit("src/client.py", answers::CLIENT), edit("tests/test_client.py", answers::TESTS)],
    );
    s.state(StateEvent::WorkspaceChanged { changes: feed() });
    usage(s, 18_900, 2_240, 0.47);
}

/// Work that is under way: some of it done, the panels filled.
pub(super) fn working(s: &mut Stage) {
    open(s);
    reading(s);
    editing(s);
    s.state(StateEvent::AgentChanged { view: main_row(AgentState::Running, "shell python -m pytest -q") });
}

/// The turn ends well.
pub(super) fn finished(s: &mut Stage) {
    working(s);
    s.reply(
        "",
        "",
        &[shell(
            "python -m pytest -q",
            "........                                [100%]\n8 passed in 1.12s\n",
            0,
            1.9,
        )],
    );
    s.state(StateEvent::TodoChanged { todos: todo(6), by_person: false });
    s.reply(
        "",
        "`Client.wait` honours `Retry-After` in both forms now and never pauses longer than `policy.limit`.\n\n\
         - `parse_retry_after` reads seconds and HTTP dates; anything else counts as no header.\n\
         - Five new tests cover the cap, a date, and what is not a time. All 8 pass.\n\
         - The README says so.",
        &[],
    );
    usage(s, 24_800, 4_100, 0.83);
    s.state(StateEvent::AgentChanged { view: main_row(AgentState::Idle, "") });
    s.turn(TurnEvent::TurnFinished {
        status: TurnStatus::Done,
        text: String::new(),
        usage: Usage { input: 24_800, output: 4_100, ..Usage::default() },
        cost_usd: Some(0.83),
        error: None,
    });
}
