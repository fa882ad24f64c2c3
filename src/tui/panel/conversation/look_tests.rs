//! The words of the rows of a conversation: shared rows, changed lines, causes, the pinned message, the end of a turn.

use tiller_protocol::event::{StateEvent, ToolEvent, TurnEvent, TurnStatus};
use tiller_protocol::tool::{Display, FileDiff};
use tiller_protocol::{ChangeKind, EventBody, TodoItem, TodoStatus, ToolOutcome, Usage};

use crate::app::msg::Msg;
use crate::model::conversation::script::{Script, text};
use crate::testing::Robot;

struct Play {
    r: Robot,
    s: Script,
    calls: usize,
}

impl Play {
    /// A turn of the person has begun.
    fn new(width: u16, height: u16) -> Self {
        let mut play = Self { r: Robot::new(width, height), s: Script::new(), calls: 0 };
        play.s.now = crate::testing::START.millis();
        let e = play.s.snapshot(Vec::new(), 0, false);
        play.send(e);
        play.event(EventBody::Turn(TurnEvent::TurnStarted {}));
        let node = play.s.user("Make the retry logic honour Retry-After.");
        let e = play.s.added(node);
        play.send(e);
        play
    }

    fn send(&mut self, e: tiller_protocol::Event) {
        self.r.msg(Msg::Engine(Box::new(e)));
    }

    fn event(&mut self, body: EventBody) {
        let e = self.s.event(body);
        self.send(e);
    }

    fn call(&mut self, verb: &str, target: &str, display: Option<Display>) {
        self.ended(verb, target, "the output", display, ToolOutcome::Ok, 0.14);
    }

    fn ended(
        &mut self,
        verb: &str,
        target: &str,
        output: &str,
        display: Option<Display>,
        outcome: ToolOutcome,
        seconds: f64,
    ) {
        self.calls += 1;
        let id = format!("t{}", self.calls);
        for mut e in self.s.tool(&id, verb, verb, target, output, display) {
            if let EventBody::Tool(ToolEvent::ToolFinished { outcome: o, seconds: s, .. }) = &mut e.body {
                (*o, *s) = (outcome, seconds);
            }
            self.send(e);
        }
    }

    fn says(&mut self, words: &str) {
        let node = self.s.assistant(vec![text(words)], tiller_protocol::StopReason::EndTurn);
        let e = self.s.added(node);
        self.send(e);
    }

    fn finish(&mut self) {
        self.event(EventBody::Turn(TurnEvent::TurnFinished {
            status: TurnStatus::Done,
            text: String::new(),
            usage: Usage::default(),
            cost_usd: None,
            error: None,
        }));
    }

    /// The row with this text.
    fn row(&mut self, what: &str) -> String {
        let screen = self.r.screen();
        screen
            .lines()
            .find(|l| l.contains(what))
            .unwrap_or_else(|| panic!("no {what} in\n{screen}"))
            .to_owned()
    }
}

fn lines(n: u32) -> Option<Display> {
    Some(Display::Measure { text: format!("{n} lines") })
}

fn change(path: &str, added: u32) -> Option<Display> {
    let body: String = (1..=added).map(|n| format!("+line {n}\n")).collect();
    let diff = format!("@@ -1,1 +1,{} @@\n head\n{body}", added + 1);
    let file = FileDiff { path: path.into(), kind: ChangeKind::Modified, added, removed: 0, diff };
    Some(Display::Diff { files: vec![file] })
}

#[test]
fn neighbours_that_look_at_something_share_a_row_until_they_are_unfolded() {
    let mut p = Play::new(100, 40);
    p.call("read", "src/a.py", lines(40));
    p.call("read", "tests/b.py", lines(18));
    p.call("search", "Retry-After", Some(Display::Measure { text: "3 hits".into() }));
    p.call("read", "src/c.py", lines(1));
    let row = p.row("src/a.py, tests/b.py");
    assert!(row.contains("✓ read") && row.contains("58 lines"), "{row}");
    assert_eq!(
        p.r.screen().matches("✓ read").count(),
        2,
        "what lies between keeps them apart: {}",
        p.r.screen()
    );
    p.r.run("ctrl-o");
    let screen = p.r.screen();
    assert_eq!(screen.matches("✓ read").count(), 3, "{screen}");
    assert_eq!(screen.matches("the output").count(), 4, "{screen}");
    p.r.run("ctrl-o");
    assert!(p.row("src/a.py, tests/b.py").contains("58 lines"));
}

#[test]
fn a_failed_call_has_a_row_of_its_own() {
    let mut p = Play::new(100, 40);
    p.call("read", "src/a.py", lines(40));
    p.ended("read", "src/b.py", "error: no such file", None, ToolOutcome::Error, 0.1);
    p.call("read", "src/c.py", lines(18));
    let screen = p.r.screen();
    assert_eq!((screen.matches("✓ read").count(), screen.matches("✗ read").count()), (2, 1), "{screen}");
}

#[test]
fn many_targets_are_counted_where_there_is_no_room() {
    let mut p = Play::new(60, 40);
    for n in 0..12 {
        p.call("read", &format!("src/module_{n}.py"), lines(10));
    }
    let row = p.row("module_0");
    assert!(row.contains("120 lines") && row.contains(" more"), "{row}");
    assert_eq!(p.r.screen().matches("✓ read").count(), 1);
}

#[test]
fn an_edit_shows_its_first_changed_rows_and_edits_of_one_file_share_them() {
    let mut p = Play::new(100, 40);
    p.call("edit", "src/a.py", change("src/a.py", 5));
    let screen = p.r.screen();
    assert!(
        screen.contains("+  line 3") && !screen.contains("line 4") && !screen.contains("head"),
        "{screen}"
    );
    assert!(p.row("+  line 3").contains("+2 Ctrl-O"), "{screen}");
    assert!(p.row("✓ edit").contains("+5 −0"), "{screen}");
    p.call("edit", "src/a.py", change("src/a.py", 7));
    let row = p.row("✓ edit");
    assert!(row.contains("src/a.py  2 edits") && row.contains("+12 −0"), "{row}");
    assert!(p.row("+  line 3").contains("+9 Ctrl-O"), "{}", p.r.screen());
    p.call("edit", "src/b.py", change("src/b.py", 1));
    assert_eq!(p.r.screen().matches("✓ edit").count(), 2);
}

#[test]
fn a_failure_shows_its_cause_where_it_came_from_and_what_is_left() {
    let mut p = Play::new(110, 40);
    let output = include_str!("../../cell/data/unittest.txt");
    let display = Display::Output { tail: output.into(), exit: Some(1), full: None };
    p.ended("shell", "python3 -m unittest", output, Some(display), ToolOutcome::Error, 7.6);
    let row = p.row("✗ shell");
    assert!(row.contains("exit 1") && row.contains("7.6s"), "{row}");
    let cause = p.row("AssertionError: 900.0 != 30.0");
    assert!(cause.contains("▏ AssertionError") && cause.contains("test_client.py:7"), "{cause}");
    let left = output.lines().filter(|l| !l.trim().is_empty()).count() - 1;
    assert!(cause.contains(&format!("+{left} Ctrl-O")), "{cause}");
    assert!(!p.r.screen().contains("FAILED (failures"), "one line says it: {}", p.r.screen());
}

#[test]
fn times_are_shown_from_half_a_second_on_in_a_column_of_their_own() {
    let mut p = Play::new(100, 40);
    p.ended(
        "fetch",
        "https://a.example",
        "x",
        Some(Display::Measure { text: "2 KB".into() }),
        ToolOutcome::Ok,
        0.49,
    );
    p.ended(
        "fetch",
        "https://b.example",
        "x",
        Some(Display::Measure { text: "3 KB".into() }),
        ToolOutcome::Ok,
        0.5,
    );
    let (a, b) = (p.row("a.example"), p.row("b.example"));
    assert!(!a.contains("0.5s") && b.contains("0.5s"), "{a}\n{b}");
    let end = |row: &str, what: &str| row[..row.find(what).unwrap()].chars().count();
    assert_eq!(end(&a, " KB"), end(&b, " KB"), "measures stand in a column:\n{a}\n{b}");
}

#[test]
fn calls_of_the_todo_list_have_no_row_beside_its_panel() {
    for (width, rows) in [(140, 0), (100, 1)] {
        let mut p = Play::new(width, 40);
        let item = TodoItem {
            id: "1".into(),
            content: "Read the client".into(),
            status: TodoStatus::Pending,
            agent: None,
        };
        p.event(EventBody::State(StateEvent::TodoChanged { todos: vec![item], by_person: false }));
        p.call("read", "src/a.py", lines(40));
        p.call("todo", "1 item", None);
        assert_eq!(p.r.screen().matches("✓ todo").count(), rows, "{width}: {}", p.r.screen());
    }
}

#[test]
fn the_message_of_a_turn_stays_on_the_top_row_while_its_turn_is_on_the_screen() {
    let mut p = Play::new(100, 24);
    p.says(&(0..60).map(|n| format!("Paragraph {n}.\n\n")).collect::<String>());
    let message = "▌ Make the retry logic honour Retry-After.";
    let first = |p: &mut Play| {
        let screen = p.r.screen();
        let at = screen.lines().position(|l| l.contains(message));
        (at, screen)
    };
    let (top, screen) = first(&mut p);
    assert!(screen.contains("Paragraph 59.") && !screen.contains("Paragraph 0."), "{screen}");
    let top = top.unwrap_or_else(|| panic!("not pinned: {screen}"));
    // Scrolled up it stays there, and is not there twice at its own place.
    for _ in 0..30 {
        p.r.run("pageup");
        let (at, screen) = first(&mut p);
        assert_eq!((at, screen.matches(message).count()), (Some(top), 1), "{screen}");
    }
    assert!(p.r.screen().contains("Paragraph 0."), "{}", p.r.screen());
    // The next turn's message takes its place.
    p.finish();
    let node = p.s.user("And now the tests.");
    let e = p.s.added(node);
    p.send(e);
    p.says(&(0..60).map(|n| format!("Row {n}.\n\n")).collect::<String>());
    p.r.run("ctrl-end");
    let (_, screen) = first(&mut p);
    let row = screen.lines().nth(top).unwrap();
    assert!(row.contains("▌ And now the tests."), "{screen}");
}

/// Column behind the last character of `what` in the row that holds it.
fn end_of(p: &mut Play, what: &str) -> usize {
    let row = p.row(what);
    row[..row.find(what).unwrap() + what.len()].chars().count()
}

#[test]
fn times_of_messages_and_calls_and_counts_stand_in_one_column() {
    for width in [60, 80, 100, 118, 160, 220] {
        let mut p = Play::new(width, 40);
        p.ended("fetch", "https://b.example", "x", None, ToolOutcome::Ok, 3.2);
        p.call("edit", "src/a.py", change("src/a.py", 5));
        p.ended("shell", "make", "cc: error: no input\nmore\n", None, ToolOutcome::Error, 0.1);
        let ends = [end_of(&mut p, "20:00"), end_of(&mut p, "3.2s"), end_of(&mut p, "+2 Ctrl-O")];
        assert!(ends.iter().all(|e| *e == ends[0]), "{width}: {ends:?}\n{}", p.r.screen());
        assert_eq!(end_of(&mut p, "+1 Ctrl-O"), ends[0], "{width}: {}", p.r.screen());
    }
}

#[test]
fn a_blank_row_follows_the_band_of_a_message_whatever_comes() {
    let mut p = Play::new(100, 40);
    p.event(EventBody::Turn(TurnEvent::TurnFinished {
        status: TurnStatus::Interrupted,
        text: String::new(),
        usage: Usage::default(),
        cost_usd: None,
        error: Some(tiller_protocol::Notice::new(tiller_protocol::NoticeKind::User, "Stopped")),
    }));
    let blank_below = |p: &mut Play, what: &str| {
        let screen = p.r.screen();
        let at =
            screen.lines().position(|l| l.contains(what)).unwrap_or_else(|| panic!("no {what}: {screen}"));
        assert_eq!(screen.lines().nth(at + 1).unwrap().trim(), "", "{screen}");
    };
    blank_below(&mut p, "Make the retry logic");
    p.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    let node = p.s.user("Go on.");
    let e = p.s.added(node);
    p.send(e);
    p.call("read", "src/a.py", lines(40));
    blank_below(&mut p, "Go on.");
}

#[test]
fn a_long_message_is_pinned_with_three_rows_until_its_turn_is_unfolded() {
    for (width, height, rows) in [(100, 30, 3), (100, 18, 2), (220, 60, 3)] {
        let mut p = Play::new(width, height);
        let words: Vec<String> = (1..=9).map(|n| format!("requirement {n}")).collect();
        let node = p.s.user(&words.join("\n"));
        let e = p.s.added(node);
        p.send(e);
        p.says(&(0..80).map(|n| format!("Paragraph {n}.\n\n")).collect::<String>());
        let screen = p.r.screen();
        let pinned = screen.lines().filter(|l| l.contains("requirement")).count();
        assert_eq!(pinned, rows, "{screen}");
        let top = screen.lines().position(|l| l.contains("requirement 1")).unwrap();
        let last = screen.lines().nth(top + rows - 1).unwrap();
        assert!(last.contains(&format!("requirement {rows}")), "{screen}");
        assert!(last.trim_end().ends_with(&format!("+{} rows Ctrl-O", 9 - rows)), "{screen}");
        assert_eq!(screen.lines().nth(top + rows).unwrap().trim(), "", "a blank row: {screen}");
        assert!(!screen.lines().nth(top + rows + 1).unwrap().contains("requirement"), "{screen}");
        assert!(screen.contains("Paragraph 79."), "{screen}");
        // Its key shows the rest, as far as half of the window is left to the reply.
        p.r.run("ctrl-o");
        let screen = p.r.screen();
        let half = usize::from(height - 6) / 2;
        assert!(screen.matches("requirement").count() >= 9.min(half - 1), "{screen}");
        assert!(screen.contains("Paragraph 79.") && !screen.contains("rows Ctrl-O"), "{screen}");
        p.r.run("ctrl-o");
        assert_eq!(p.r.screen().matches("requirement").count(), rows);
    }
}

#[test]
fn a_pinned_message_costs_a_frame_few_look_ups_of_layouts() {
    // The message of the turn on the top row of the window, or just above it.
    let look_ups = |paragraphs: usize| {
        let mut p = Play::new(100, 40);
        for n in 0..paragraphs {
            p.call("shell", &format!("command {n}"), None);
        }
        let panel = |p: &Play| {
            let view = p.r.app.views.iter().find(|v| v.view == crate::panel::View::Conversation).unwrap();
            let panel: &dyn std::any::Any = view.panel();
            let view = &panel.downcast_ref::<super::ConversationPanel>().unwrap().view;
            (view.look_ups, view.pinned.is_some())
        };
        let before = panel(&p);
        p.r.app.redraw();
        p.r.app.draw(&mut ratatui::buffer::Buffer::empty(p.r.buffer().area));
        (panel(&p).0 - before.0, before.1)
    };
    let (free, not_pinned) = look_ups(25);
    let (below, pinned) = look_ups(120);
    assert!(pinned && !not_pinned);
    // A second search for the rows of the window would take as many again.
    assert!(below <= 2 * free && below <= 110, "{free} look-ups without a pinned message, {below} below one");
}

#[test]
fn the_same_state_gives_the_same_window_below_a_pinned_message() {
    let mut p = Play::new(100, 30);
    p.says(&(0..80).map(|n| format!("Paragraph {n}.\n\n")).collect::<String>());
    let before = p.r.screen();
    assert!(before.contains("Make the retry logic"), "{before}");
    let top = |p: &Play| p.r.screen().lines().take(12).map(str::to_owned).collect::<Vec<_>>();
    let first = top(&p);
    p.r.run("pageup; pagedown; pagedown");
    assert_eq!(top(&p), first);
}

#[test]
fn every_row_is_reached_when_one_scrolls_below_a_pinned_message() {
    let mut p = Play::new(100, 24);
    p.says(&(0..60).map(|n| format!("Paragraph {n}.\n\n")).collect::<String>());
    let mut seen = std::collections::HashSet::new();
    for _ in 0..40 {
        let screen = p.r.screen();
        seen.extend((0..60).filter(|n| screen.contains(&format!("Paragraph {n}."))));
        p.r.run("pageup");
    }
    assert_eq!(seen.len(), 60, "{seen:?}");
}

#[test]
fn the_end_of_a_turn_sums_it_up_and_names_the_review_where_it_has_one() {
    let mut p = Play::new(100, 40);
    p.call("read", "src/a.py", lines(40));
    p.call("edit", "src/a.py", change("src/a.py", 12));
    p.says("Done.");
    p.s.now += 72_000;
    p.finish();
    let row = p.row("── 1m 12s");
    assert!(row.contains("── 1m 12s · 2 calls · 1 file +12 −0 · Ctrl-X d review ──"), "{row}");
    // The review is of the last turn: an older end does not name it.
    p.event(EventBody::Turn(TurnEvent::TurnStarted {}));
    let node = p.s.user("Thanks.");
    let e = p.s.added(node);
    p.send(e);
    let row = p.row("── 1m 12s");
    assert!(!row.contains("review"), "{row}");
    // A short turn without calls needs no line.
    p.says("You are welcome.");
    p.finish();
    assert_eq!(p.r.screen().matches("── ").count(), p.r.screen().matches("── 1m 12s").count());
}
