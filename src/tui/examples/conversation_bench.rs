//! What a key, a delta and a frame of the conversation cost, at three lengths. Prints a table:
//! `cargo run --release -p tiller-tui --example conversation_bench`.
#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::event::{ReplyEvent, TurnEvent};
use tiller_protocol::{
    AgentId, Block, Entry, EntryBody, EntryId, Event, EventBody, IdSource, Message, ModelRef, Origin, SeqIds,
    SessionId, SessionSummary, Snapshot, StopReason, SystemClock, Time, Usage,
};
use tiller_tui::app::App;
use tiller_tui::app::msg::Msg;
use tiller_tui::keymap;
use tiller_tui::theme::{Depth, Theme, Themes};

struct Bench {
    app: App,
    buf: Buffer,
    ids: SeqIds,
    session: SessionId,
    seq: u64,
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
        Some(Self { app, buf: Buffer::empty(Rect::new(0, 0, 120, 40)), ids, session, seq: 0 })
    }

    fn event(&mut self, body: EventBody) -> Event {
        self.seq += 1;
        let time = Time(self.seq as i64);
        Event { seq: self.seq, time, session: self.session, agent: AgentId::main(), cause: None, body }
    }

    fn entry(&mut self, n: usize) -> Entry {
        let body = if n.is_multiple_of(2) {
            EntryBody::User {
                message: Message::text(format!("question {n}")),
                origin: Origin::Prompt,
                content: Vec::new(),
                taint: None,
                learnings: Vec::new(),
            }
        } else {
            EntryBody::Assistant {
                blocks: vec![Block::Text {
                    text: format!("Answer {n} with *some* `code` and a few words more."),
                }],
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
        let entries = (0..n.min(200)).map(|k| self.entry(k)).collect();
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

fn main() {
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
