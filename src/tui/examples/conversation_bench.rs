//! The costs of a key, a delta and a frame of the conversation, at three lengths. Prints a table:
//! `cargo run --release -p tiller-tui --example conversation_bench`. With lengths of sessions behind it, it prints what
//! moving about in them costs: `-- 1000 10000 100000`.
#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::command::{PathPlace, Query};
use tiller_protocol::event::{ReplyEvent, TurnEvent};
use tiller_protocol::{
    AgentId, Block, Command, CommandBody, Entry, EntryBody, EntryId, Event, EventBody, IdSource, Message,
    ModelRef, Origin, Part, SeqIds, SessionId, SessionSummary, Snapshot, StopReason, SystemClock, Time,
    ToolCall, ToolOutcome, Usage,
};
use tiller_tui::app::App;
use tiller_tui::app::effect::Task;
use tiller_tui::app::msg::Msg;
use tiller_tui::keymap;
use tiller_tui::theme::{Depth, Theme, Themes};

struct Bench {
    app: App,
    buf: Buffer,
    ids: SeqIds,
    session: SessionId,
    seq: u64,
    /// The path of the session, as the store has it.
    path: Vec<Entry>,
}

impl Bench {
    fn new() -> Option<Self> {
        let themes = Themes::fixed(Theme::built_in("mono", Depth::True).ok()?);
        let map = Arc::new(keymap::preset(tiller_tui::shipped::registry().words(), "default").ok()?);
        let mut app = App::new(
            Arc::default(),
            tiller_tui::shipped::registry(),
            map,
            themes,
            Arc::new(SystemClock::default()),
        );
        app.start();
        let ids = SeqIds::default();
        let session = SessionId(ids.next(Time(0)));
        Some(Self {
            app,
            buf: Buffer::empty(Rect::new(0, 0, 120, 40)),
            ids,
            session,
            seq: 0,
            path: Vec::new(),
        })
    }

    fn event(&mut self, body: EventBody) -> Event {
        self.seq += 1;
        let time = Time(self.seq as i64);
        Event { seq: self.seq, time, session: self.session, agent: AgentId::main(), cause: None, body }
    }

    fn entry(&mut self, n: usize) -> Entry {
        let call = |k: usize| format!("call {}", n - k);
        let body = if n.is_multiple_of(4) {
            EntryBody::User {
                message: Message::text(format!("question {n}")),
                origin: Origin::Prompt,
                content: Vec::new(),
                taint: None,
                learnings: Vec::new(),
            }
        } else if n % 4 == 2 {
            EntryBody::ToolResult {
                call_id: call(1),
                name: "read_file".into(),
                outcome: ToolOutcome::Ok,
                content: vec![Part::Text { text: format!("output {n}\nand more\n") }],
                display: None,
                seconds: 0.1,
                learnings: Vec::new(),
                taint: None,
                added: Default::default(),
            }
        } else {
            let mut blocks =
                vec![Block::Text { text: format!("Answer {n} with *some* `code` and a few words more.") }];
            if n % 4 == 1 {
                blocks.push(Block::ToolCall(ToolCall {
                    id: call(0),
                    name: "read_file".into(),
                    arguments: serde_json::json!({ "path": "src/a.rs" }),
                    malformed: None,
                    vendor: None,
                }));
            }
            EntryBody::Assistant {
                blocks,
                stop: StopReason::EndTurn,
                model: ModelRef("a/b".into()),
                usage: Usage::default(),
                cost: None,
            }
        };
        Entry {
            id: EntryId(self.ids.next(Time(0))),
            parent: None,
            session: self.session,
            agent: AgentId::main(),
            time: Time(0),
            body,
            snapshot: None,
        }
    }

    /// Opens a session of `n` entries: the engine sends the last 200 of it.
    fn open(&mut self, n: usize) {
        self.path = (0..n).map(|k| self.entry(k)).collect();
        for k in 1..n {
            self.path[k].parent = Some(self.path[k - 1].id);
        }
        let entries = self.path[n.saturating_sub(200)..].to_vec();
        let session = SessionSummary {
            id: self.session,
            title: "bench".into(),
            project: "/x".into(),
            created: Time(0),
            used: Time(0),
            entries: n as u64,
            model: ModelRef("a/b".into()),
            cost: None,
            archived: false,
            exec: false,
            open_in: None,
            interrupted: None,
            preview: String::new(),
            git_branch: String::new(),
        };
        let snapshot = Snapshot {
            seq: 0,
            session,
            model: ModelRef("a/b".into()),
            profile: Default::default(),
            effort: Default::default(),
            read_only: false,
            head: None,
            branch: Default::default(),
            entries,
            earlier: n.saturating_sub(200) as u64,
            partial: Vec::new(),
            todo: Vec::new(),
            agents: Vec::new(),
            workflows: Vec::new(),
            queue: Vec::new(),
            asks: Vec::new(),
            feed: Vec::new(),
            usage: Usage::default(),
            cost: None,
            running: true,
            git: None,
            sandbox: None,
            goal: None,
            turns: Vec::new(),
            shell_lines: Vec::new(),
        };
        let e = self
            .event(EventBody::Reply(Box::new(ReplyEvent::SnapshotReply { snapshot: Box::new(snapshot) })));
        self.app.update(Msg::Engine(Box::new(e)));
        self.frame();
    }

    fn frame(&mut self) {
        self.app.take_tasks();
        self.app.draw(&mut self.buf);
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.app.update(Msg::Input(tiller_tui::input::Input::Key(KeyEvent::new(code, modifiers))));
    }

    /// Place of an entry on the path. The ids grow.
    fn place(&self, id: EntryId) -> Option<usize> {
        self.path.binary_search_by_key(&id, |e| e.id).ok()
    }

    /// The answer of the engine to a query for entries.
    fn answer(&self, query: &Query) -> Option<ReplyEvent> {
        let (before, at, count) = match query {
            Query::Page { before, count } => {
                let end = self.place(*before)?;
                let from = end.saturating_sub(*count as usize);
                let entries = self.path[from..end].to_vec();
                return Some(ReplyEvent::PageReply { entries, earlier: from as u64, turns: Vec::new() });
            }
            Query::PathPart { before, at, count } => (*before, *at, *count as usize),
            _ => return None,
        };
        let end = self.place(before)?;
        let (from, to) = match at {
            PathPlace::Start {} => (0, count),
            PathPlace::Around { entry } => {
                let middle = self.place(entry)?;
                (middle.saturating_sub(count / 2), middle + count / 2)
            }
            PathPlace::From { entry } => (self.place(entry)?, self.place(entry)? + count),
            PathPlace::Before { entry } | PathPlace::Search { entry } => {
                (self.place(entry)?.saturating_sub(count), self.place(entry)?)
            }
        };
        let to = to.min(end);
        Some(ReplyEvent::PathPartReply {
            before,
            at,
            entries: self.path[from..to].to_vec(),
            earlier: from as u64,
            later: (end - to) as u64,
            next: self.path[..end].get(to).map(|e| e.id),
            turns: Vec::new(),
        })
    }

    /// Answers what is asked for as the engine does, until nothing is. A frame comes after each answer. Returns how many
    /// entries were handed over, and the longest time between two frames.
    fn serve(&mut self) -> (usize, Duration) {
        let (mut handed, mut longest) = (0, Duration::ZERO);
        loop {
            let begun = Instant::now();
            let tasks = self.app.take_tasks();
            let mut any = false;
            for task in tasks {
                let Task::Send(Command { id, body: CommandBody::Query(query), .. }) = task else { continue };
                let Some(reply) = self.answer(&query) else { continue };
                if let ReplyEvent::PageReply { entries, .. } | ReplyEvent::PathPartReply { entries, .. } =
                    &reply
                {
                    handed += entries.len();
                }
                any = true;
                let mut e = self.event(EventBody::Reply(Box::new(reply)));
                e.cause = Some(id);
                self.app.update(Msg::Engine(Box::new(e)));
            }
            self.app.draw(&mut self.buf);
            longest = longest.max(begun.elapsed());
            if !any {
                return (handed, longest);
            }
        }
    }

    fn delta(&mut self, text: &str) {
        let e = self.event(EventBody::Turn(TurnEvent::TextDelta { text: text.into() }));
        self.app.update(Msg::Engine(Box::new(e)));
    }
}

/// Median and 95th percentile in microseconds.
fn quantiles(mut all: Vec<Duration>) -> (f64, f64) {
    all.sort_unstable();
    let at = |q: f64| all.get(((all.len() - 1) as f64 * q) as usize).map_or(0.0, |d| d.as_secs_f64() * 1e6);
    (at(0.5), at(0.95))
}

fn timed(n: usize, mut f: impl FnMut(usize)) -> (f64, f64) {
    let mut all = Vec::with_capacity(n);
    for k in 0..n {
        let begun = Instant::now();
        f(k);
        all.push(begun.elapsed());
    }
    quantiles(all)
}

/// Prints the cost of moving about in sessions of several lengths: the whole of it, and the longest time without a frame.
/// `lengths`: numbers of entries.
fn moves(lengths: &[usize]) {
    println!("{:<34}{:>9}{:>12}{:>14}{:>10}{:>9}", "", "entries", "all ms", "longest ms", "handed", "loaded");
    for n in lengths {
        let Some(mut b) = Bench::new() else { return };
        b.open(*n);
        b.serve();
        let mut step = |what: &str, act: &mut dyn FnMut(&mut Bench)| {
            let begun = Instant::now();
            act(&mut b);
            let first = begun.elapsed();
            b.app.draw(&mut b.buf);
            let drawn = begun.elapsed().max(first);
            let (handed, longest) = b.serve();
            let all = begun.elapsed();
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            let loaded = b.app.model.agent.conversation.cells().len();
            println!(
                "{what:<34}{n:>9}{:>12.1}{:>14.1}{handed:>10}{loaded:>9}",
                ms(all),
                ms(longest.max(drawn))
            );
        };
        let none = KeyModifiers::NONE;
        step("key at the end", &mut |b| b.key(KeyCode::Char('x'), none));
        step("Ctrl-Home", &mut |b| b.key(KeyCode::Home, KeyModifiers::CONTROL));
        step("key at the start", &mut |b| b.key(KeyCode::Char('x'), none));
        step("page down at the start", &mut |b| b.key(KeyCode::PageDown, none));
        step("page up at the start", &mut |b| b.key(KeyCode::PageUp, none));
        step("an entry arrives", &mut |b| {
            let mut node = b.entry(*n);
            node.parent = b.path.last().map(|e| e.id);
            b.path.push(node.clone());
            let e = TurnEvent::UserMessage { entry: node.id, text: String::new(), node: Box::new(node) };
            let e = b.event(EventBody::Turn(e));
            b.app.update(Msg::Engine(Box::new(e)));
        });
        step("another width", &mut |b| b.buf = Buffer::empty(Rect::new(0, 0, 110, 40)));
        step("Ctrl-End", &mut |b| b.key(KeyCode::End, KeyModifiers::CONTROL));
        step("key at the end again", &mut |b| b.key(KeyCode::Char('x'), none));
        step("search, typed", &mut |b| {
            b.key(KeyCode::Char('1'), KeyModifiers::ALT);
            b.key(KeyCode::Char('/'), none);
            "question 0".chars().for_each(|c| b.key(KeyCode::Char(c), none));
        });
        step("search, to its end", &mut |b| b.key(KeyCode::Enter, none));
        step("the next hit", &mut |b| b.key(KeyCode::Char('n'), none));
    }
}

fn main() {
    let lengths: Vec<usize> = std::env::args().skip(1).filter_map(|n| n.parse().ok()).collect();
    if !lengths.is_empty() {
        return moves(&lengths);
    }
    println!("{:<44}{:>12}{:>12}", "", "p50 us", "p95 us");
    let row = |what: String, (p50, p95): (f64, f64)| println!("{what:<44}{p50:>12.1}{p95:>12.1}");
    for n in [0, 2_000, 100_000] {
        let Some(mut b) = Bench::new() else { return };
        row(format!("{n} entries: open, first frame"), timed(1, |_| b.open(n)));
        // The entries that the session gets while it is open.
        let grown = n.min(20_000);
        row(
            format!("{n} entries: append one (of {grown})"),
            timed(grown.max(1), |k| {
                let node = b.entry(k);
                let e = TurnEvent::UserMessage { entry: node.id, text: String::new(), node: Box::new(node) };
                let e = b.event(EventBody::Turn(e));
                b.app.update(Msg::Engine(Box::new(e)));
            }),
        );
        row(format!("{n} entries: frame"), timed(500, |_| b.frame()));
        let key = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        row(
            format!("{n} entries: key and frame"),
            timed(500, |_| {
                b.app.update(Msg::Input(tiller_tui::input::Input::Key(key)));
                b.frame();
            }),
        );
        row(
            format!("{n} entries: page up and frame"),
            timed(50, |_| {
                b.app.update(Msg::Input(tiller_tui::input::Input::Key(KeyEvent::new(
                    KeyCode::PageUp,
                    KeyModifiers::NONE,
                ))));
                b.frame();
            }),
        );
    }
    // A long reply: deltas alone, then with a frame after every fifth.
    for (what, piece) in [("prose", "some words of *prose* and\n\nmore "), ("code", "let x = call(y);\n")] {
        let Some(mut b) = Bench::new() else { return };
        b.open(0);
        if what == "code" {
            b.delta("```rust\n");
        }
        let begun = Instant::now();
        let (p50, p95) = timed(20_000, |k| {
            b.delta(piece);
            if k % 5 == 0 {
                b.frame();
            }
        });
        row(format!("{what}: delta of 20,000, frame each fifth"), (p50, p95));
        println!("{:<44}{:>12.3} s", format!("{what}: all of it"), begun.elapsed().as_secs_f64());
        let key = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        row(
            format!("{what}: key and frame after it"),
            timed(500, |_| {
                b.app.update(Msg::Input(tiller_tui::input::Input::Key(key)));
                b.frame();
            }),
        );
    }
}
