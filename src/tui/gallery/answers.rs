//! The engine of the scenes: what it answers when the screen asks for lists, trees and comparisons.

use tiller_protocol::command::{ContextCommand, Query, ReviewCommand};
use tiller_protocol::compare::{ComparedSide, Comparison, SaidLine};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::restore::StepFile;
use tiller_protocol::skill::{SkillReply, SkillRow, SkillUse};
use tiller_protocol::tool::FileDiff;
use tiller_protocol::view::{
    ContextReport, CostRow, GitOperation, GitState, LayerCost, Mention, ModelChoice,
};
use tiller_protocol::{
    AgentId, BranchName, BranchView, ChangeKind, Command, CommandBody, Cost, Effort, EffortView, EntryId,
    GridRun, HookEvent, HookOutcome, HookRow, HookRun, ModelRef, Profile, RestoreFile, RestorePreview,
    ScreenView, SearchHit, SearchPage, SearchQuery, SearchRole, SessionId, SessionSummary, Snapshot, Time,
    Usage,
};

use super::stage::{START, Stage};

/// The model of the scenes.
pub(super) const MODEL: &str = "acme/coder-large";

pub(super) const CLIENT: &str = include_str!("data/client.diff");
pub(super) const TESTS: &str = include_str!("data/test_client.diff");
pub(super) const README: &str = include_str!("data/readme.diff");

pub(super) const PROJECT: &str = "/home/ann/api";
const MINUTE: i64 = 60_000;

pub(super) fn ago(minutes: i64) -> Time {
    Time(START.millis() - minutes * MINUTE)
}

pub(super) fn session(n: u128) -> SessionId {
    format!("{:032x}", 0x0190_0000_0000_7000_8000_0000_0000_0000_u128 | n)
        .parse()
        .unwrap_or(SessionId(Default::default()))
}

pub(super) fn entry(n: u128) -> EntryId {
    format!("{:032x}", 0x0190_0000_0000_7000_8000_0000_0001_0000_u128 | n)
        .parse()
        .unwrap_or(EntryId(Default::default()))
}

fn summary(n: u128, title: &str, minutes: i64, entries: u64, usd: f64) -> SessionSummary {
    // Each was worked on in a branch of its own, but for the oldest ones.
    let branch = ["retry-after", "invoices-utc", "main", "type-hints", "python-3.13"];
    SessionSummary {
        id: session(n),
        title: title.into(),
        project: PROJECT.into(),
        created: ago(minutes + 45),
        used: ago(minutes),
        entries,
        model: ModelRef(MODEL.into()),
        cost: Some(Cost::from_usd(usd)),
        archived: false,
        exec: false,
        open_in: None,
        interrupted: None,
        preview: String::new(),
        git_branch: branch.get(n as usize - 1).copied().unwrap_or_default().into(),
    }
}

/// A session in which nothing was said yet.
pub(super) fn snapshot() -> Snapshot {
    let mut session = summary(1, "", 0, 0, 0.0);
    session.cost = None;
    Snapshot {
        seq: 0,
        session,
        model: ModelRef(MODEL.into()),
        profile: Profile::Ask,
        effort: Box::new(EffortView {
            chosen: Effort::Medium,
            used: Effort::Medium,
            offered: vec![Effort::Off, Effort::Low, Effort::Medium, Effort::High],
        }),
        read_only: false,
        head: None,
        branch: BranchName { head: "main".into(), label: String::new() },
        entries: Vec::new(),
        earlier: 0,
        partial: Vec::new(),
        todo: Vec::new(),
        agents: Vec::new(),
        workflows: Vec::new(),
        queue: Vec::new(),
        asks: Vec::new(),
        feed: Vec::new(),
        usage: Usage::default(),
        cost: None,
        running: false,
        git: Some(GitState { branch: "retry-after".into(), changed: 3, under_way: GitOperation::None }),
        sandbox: None,
        goal: None,
        turns: Vec::new(),
        shell_lines: Vec::new(),
    }
}

/// Returns what the engine says to a command; `None`: nothing.
pub(super) fn answer(stage: &Stage, command: &Command) -> Option<ReplyEvent> {
    Some(match &command.body {
        CommandBody::Query(query) => return queried(stage, query),
        CommandBody::Review(ReviewCommand::Open { .. }) => ReplyEvent::ReviewReply { review: review() },
        CommandBody::Context(ContextCommand::Report) => ReplyEvent::ContextReply { report: context() },
        _ => return None,
    })
}

fn queried(stage: &Stage, query: &Query) -> Option<ReplyEvent> {
    let full = !stage.new_here;
    Some(match query {
        Query::Snapshot => ReplyEvent::SnapshotReply { snapshot: Box::new(stage.snapshot.clone()) },
        Query::Sessions { .. } => {
            ReplyEvent::SessionsReply { sessions: if full { sessions() } else { Vec::new() } }
        }
        Query::Models => ReplyEvent::ModelsReply { models: if full { models() } else { Vec::new() } },
        Query::Mentions { text, .. } => {
            ReplyEvent::MentionsReply { text: text.clone(), mentions: mentions() }
        }
        Query::Branches => ReplyEvent::BranchesReply {
            branches: if full { branches() } else { Vec::new() },
            tags: Vec::new(),
        },
        Query::History { .. } => ReplyEvent::HistoryReply { prompts: prompts() },
        Query::Compare { pair } => {
            ReplyEvent::CompareReply { pair: pair.clone(), compared: Box::new(compared()) }
        }
        Query::RestorePreview { entry } => {
            ReplyEvent::RestorePreviewReply { entry: *entry, preview: preview() }
        }
        Query::Search { query } => ReplyEvent::SearchReply { query: query.clone(), page: found(query) },
        Query::Costs { .. } => costs(),
        Query::Hooks => hooks(),
        Query::Memory(_) => ReplyEvent::MemoryReply { page: Box::new(crate::dialog::memory::sample_page()) },
        Query::Skills { .. } => skills(),
        // The next picture comes when something changes: never.
        Query::Screen { since: 0 } => ReplyEvent::ScreenReply { screen: program_screen() },
        Query::Processes => ReplyEvent::ProcessesReply { rows: Vec::new() },
        Query::Tree { query } => ReplyEvent::TreeReply { reply: super::sessions::tree_of(query)? },
        _ => return None,
    })
}

fn sessions() -> Vec<SessionSummary> {
    let mut all = vec![
        summary(1, "Honour Retry-After", 2, 46, 0.83),
        summary(2, "Move the invoices to UTC", 75, 212, 4.10),
        summary(3, "Why is the nightly export slow?", 60 * 20, 88, 1.37),
        summary(4, "Type hints for billing.models", 60 * 27, 31, 0.42),
        summary(5, "Upgrade to Python 3.13", 60 * 49, 154, 2.96),
        summary(6, "Property tests for money rounding", 60 * 24 * 4, 67, 0.91),
        summary(7, "Draft the release notes of 2.4", 60 * 24 * 6, 12, 0.08),
    ];
    if let Some(s) = all.get_mut(1) {
        s.interrupted = Some("shell pytest tests/invoices".into());
    }
    if let Some(s) = all.get_mut(6) {
        s.project = "/home/ann/website".into();
    }
    all
}

fn models() -> Vec<ModelChoice> {
    let model = |name: &str, window, price, source: &str, unavailable: Option<&str>| ModelChoice {
        model: ModelRef(name.into()),
        window,
        price,
        long: Vec::new(),
        source: source.into(),
        unavailable: unavailable.map(Into::into),
    };
    vec![
        model(MODEL, Some(200_000), Some((3.0, 15.0)), "environment", None),
        model("acme/coder-small", Some(200_000), Some((0.8, 4.0)), "environment", None),
        model("acme/coder-deep", Some(1_000_000), Some((15.0, 75.0)), "environment", None),
        model("globex/g-4-pro", Some(400_000), Some((2.5, 10.0)), "built in", Some("needs GLOBEX_API_KEY")),
        model("globex/g-4-mini", Some(400_000), Some((0.25, 2.0)), "built in", Some("needs GLOBEX_API_KEY")),
        model("local/coder-30b", Some(65_536), None, "local server on 11434", None),
        model("demo/demo", None, None, "built in", None),
    ]
}

fn mentions() -> Vec<Mention> {
    let row = |kind: &str, name: &str, size, preview: &str| Mention {
        kind: kind.into(),
        name: name.into(),
        size,
        tokens: size.map(|n| n / 4),
        preview: preview.into(),
    };
    vec![
        row("file", "src/client.py", Some(1284), "\"\"\"The HTTP client of the billing service.\"\"\"\n"),
        row("file", "tests/test_client.py", Some(702), "import httpx\n"),
        row(
            "fn parse_retry_after",
            "src/client.py:25",
            None,
            "def parse_retry_after(value: str) -> float | None:\n",
        ),
        row("folder", "src/", None, ""),
    ]
}

fn branches() -> Vec<BranchView> {
    let row = |head: &str, label: &str, words: &str, minutes, open| BranchView {
        name: BranchName { head: head.into(), label: label.into() },
        entry: Some(entry(9)),
        time: Some(ago(minutes)),
        words: words.into(),
        open,
        ..BranchView::default()
    };
    vec![
        row("main", "", "Make the retry logic honour Retry-After and add what is missing.", 2, true),
        row("branch-1f", "with a library", "Try it with tenacity instead of our own loop", 18, false),
        row("branch-2c", "", "Only the tests first, please", 31, false),
    ]
}

fn prompts() -> Vec<String> {
    [
        "Make the retry logic honour Retry-After and add what is missing.",
        "also update the changelog",
        "Why does test_backs_off fail on CI only?",
        "Run the tests of the invoices and fix what fails",
        "Explain src/money.py like I have never seen it",
    ]
    .map(Into::into)
    .to_vec()
}

pub(super) fn file(path: &str, kind: ChangeKind, diff: &str) -> FileDiff {
    let count = |sign: char| {
        let heads = ["+++", "---"];
        diff.lines().filter(|l| l.starts_with(sign) && !heads.iter().any(|h| l.starts_with(h))).count() as u32
    };
    FileDiff { path: path.into(), kind, added: count('+'), removed: count('-'), diff: diff.into() }
}

fn review() -> tiller_protocol::review::Review {
    tiller_protocol::review::Review {
        turn: entry(1),
        title: "Make the retry logic honour Retry-After and add what is missing.".into(),
        taken_back: Vec::new(),
        files: vec![
            file("src/client.py", ChangeKind::Modified, CLIENT),
            file("tests/test_client.py", ChangeKind::Modified, TESTS),
            file("README.md", ChangeKind::Modified, README),
        ],
    }
}

pub(super) fn restored(path: &str, diff: &str) -> RestoreFile {
    let file = file(path, ChangeKind::Modified, diff);
    RestoreFile {
        path: file.path,
        kind: file.kind,
        added: file.added,
        removed: file.removed,
        diff: file.diff,
        conflict: None,
    }
}

fn compared() -> Comparison {
    let said = |who: &str, text: &str| SaidLine { entry: entry(3), who: who.into(), text: text.into() };
    let step = |path: &str| StepFile::new(path, ChangeKind::Modified);
    let side = |name: &str, usd, said: Vec<SaidLine>, files: &[&str]| ComparedSide {
        name: name.into(),
        entry: Some(entry(3)),
        entries: 14,
        said,
        usage: Usage { input: 38_400, output: 4_120, ..Usage::default() },
        cost: Some(Cost::from_usd(usd)),
        agents: 0,
        files: files.iter().map(|f| step(f)).collect(),
    };
    Comparison {
        base: Some(entry(2)),
        base_line: "Look at how the client retries".into(),
        left: side(
            "with a library",
            0.31,
            vec![
                said("you", "Try it with tenacity instead of our own loop"),
                said("agent", "tenacity can wait by a function of the response; the header is parsed there."),
                said("shell", "python -m pytest -q"),
            ],
            &["src/client.py", "pyproject.toml"],
        ),
        right: side(
            "main",
            0.83,
            vec![
                said("you", "Make the retry logic honour Retry-After and add what is missing."),
                said("agent", "The header has two forms, and the client only reads the first one."),
                said("edit", "src/client.py"),
            ],
            &["src/client.py", "tests/test_client.py", "README.md"],
        ),
        files: vec![
            restored("src/client.py", CLIENT),
            restored("tests/test_client.py", TESTS),
            restored("README.md", README),
        ],
        more: 0,
        notes: Vec::new(),
    }
}

fn preview() -> RestorePreview {
    RestorePreview {
        title: "Make the retry logic honour Retry-After and add what is missing.".into(),
        time: Some(ago(12)),
        files: vec![restored("src/client.py", CLIENT), restored("README.md", README)],
        more: 0,
        left: vec![".env: not kept in checkpoints".into()],
        messages: Some(1),
        ..RestorePreview::default()
    }
}

fn costs() -> ReplyEvent {
    let row = |key: &str, calls, (input, output), usd: Option<f64>, estimated| CostRow {
        key: key.into(),
        calls,
        usage: Usage { input, output, ..Usage::default() },
        cost: usd.map(Cost::from_usd),
        unpriced: if usd.is_none() { calls } else { 0 },
        estimated,
    };
    let rows = vec![
        row(MODEL, 41, (1_284_000, 21_300), Some(4.1721), 0),
        row("acme/coder-small", 118, (396_400, 9_120), Some(0.3536), 2),
        row("local/coder-30b", 7, (42_000, 880), None, 0),
    ];
    ReplyEvent::CostsReply { rows, total: Some(Cost::from_usd(4.5257)) }
}

fn hooks() -> ReplyEvent {
    let row = |event, name: &str, matches: &str, source: &str, last: Option<(HookOutcome, &str)>| HookRow {
        id: name.into(),
        event,
        name: name.into(),
        command: format!("sh ~/hooks/{}.sh", name.replace(' ', "-")),
        matches: matches.into(),
        source: source.into(),
        blocking: event == HookEvent::BeforeToolCall,
        timeout: 30,
        on: true,
        runs: if last.is_some() { 3 } else { 0 },
        last: last.map(|(outcome, why)| HookRun {
            time: Time(START.millis() - 90_000),
            seconds: 0.12,
            outcome,
            why: why.into(),
        }),
    };
    let rows = vec![
        row(HookEvent::UserPrompt, "no secrets", "", "yours", Some((HookOutcome::Passed, ""))),
        row(
            HookEvent::BeforeToolCall,
            "no push on Friday",
            "terminal(git push*)",
            "yours",
            Some((HookOutcome::Denied, "it is Friday")),
        ),
        row(
            HookEvent::AfterToolCall,
            "format",
            "edit_file(src/**)",
            "project",
            Some((HookOutcome::Changed, "")),
        ),
        row(
            HookEvent::BeforeResponse,
            "tests pass",
            "",
            "plugin team",
            Some((HookOutcome::Failed, "it took too long")),
        ),
        row(HookEvent::AgentEnd, "log", "", "plugin team", None),
    ];
    ReplyEvent::HooksReply { rows }
}

fn skills() -> ReplyEvent {
    let row = |name: &str, description: &str, source: &str, state| SkillRow {
        name: name.into(),
        description: description.into(),
        source: source.into(),
        file: format!("/home/ann/.config/tiller/skills/{name}/SKILL.md"),
        text: description.into(),
        fixed: source == "built in",
        state,
        ..SkillRow::default()
    };
    let broken = SkillRow {
        problems: vec!["skills/lint/SKILL.md:3:1: the description is missing".into()],
        ..row("lint", "the description is missing", "yours", SkillUse::Broken)
    };
    let rows = vec![
        row("code-review", "Reviews a change for faults before it is merged", "built in", SkillUse::Used),
        row(
            "debug-by-bisection",
            "Finds the commit or line that broke something",
            "built in",
            SkillUse::Used,
        ),
        row("deploy", "How this service is deployed, and what to check first", "yours", SkillUse::Used),
        broken,
        row("notes", "How notes are taken", "project", SkillUse::Off),
    ];
    ReplyEvent::SkillsReply { reply: SkillReply::Skills { rows } }
}

fn context() -> ContextReport {
    let layer = |name: &str, source: &str, tokens, budget| LayerCost {
        name: name.into(),
        source: source.into(),
        tokens,
        budget,
        shortened: false,
        part: None,
    };
    ContextReport {
        model: ModelRef(MODEL.into()),
        window: Some(200_000),
        used: 24_800,
        layers: vec![layer("base", "built in", 1_900, 4_000), layer("project", "AGENTS.md", 640, 8_000)],
        system: "You are a good pair.\n\n# Project\nUse tabs.".into(),
        tools: 6_100,
        tool_texts: "read_file\nReads a file.".into(),
        messages: 16_160,
        exact: true,
    }
}

/// The screen of a program in a terminal.
fn program_screen() -> ScreenView {
    let lines = [
        "codex 0.169  property tests for parse_retry_after",
        "",
        "> Write property tests: seconds, dates, garbage.",
        "",
        "  I read src/client.py and tests/test_client.py.",
        "  + tests/test_properties.py                    +64",
        "",
        "  Run them?  python -m pytest -q tests/test_properties.py",
        "    1. Yes",
        "    2. Yes, and do not ask again",
        "    3. No",
    ];
    let row =
        |(n, text): (usize, &&str)| (n as u16, vec![GridRun { text: (*text).into(), ..GridRun::default() }]);
    ScreenView {
        rev: 1,
        cols: 100,
        height: 26,
        rows: lines.iter().enumerate().map(row).collect(),
        cursor: Some((4, 8)),
        mouse: false,
        ended: false,
    }
}

/// Returns what a search finds.
fn found(query: &SearchQuery) -> SearchPage {
    let hit = |n: u128, title: &str, role, minutes, preview: &str| {
        let at = preview.find(&query.text).unwrap_or(0);
        SearchHit {
            session: session(n),
            title: title.into(),
            project: PROJECT.into(),
            entry: entry(0x200 + n * 16 + minutes as u128),
            role,
            agent: AgentId::main(),
            time: ago(minutes),
            preview: preview.into(),
            mark: (at, at + query.text.len()),
        }
    };
    let hits = vec![
        hit(
            1,
            "Honour Retry-After",
            SearchRole::User,
            12,
            "Make the retry logic honour Retry-After and add what is missing.",
        ),
        hit(
            1,
            "Honour Retry-After",
            SearchRole::Assistant,
            11,
            "`Client.wait` honours retry hints in both forms now.",
        ),
        hit(1, "Honour Retry-After", SearchRole::Tool, 10, "src/client.py:22: class retry_policy"),
        hit(
            3,
            "Why is the nightly export slow?",
            SearchRole::Assistant,
            60 * 20,
            "The export will retry each row three times before it gives up.",
        ),
        hit(
            5,
            "Upgrade to Python 3.13",
            SearchRole::User,
            60 * 49,
            "does the retry decorator still work there?",
        ),
    ];
    let hits = if query.text.trim().is_empty() { Vec::new() } else { hits };
    SearchPage { hits, ..SearchPage::default() }
}
