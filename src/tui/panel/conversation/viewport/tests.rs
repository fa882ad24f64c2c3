//! The memory that the window keeps.

use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use tiller_protocol::{SessionId, StopReason, Time};

use super::*;
use crate::model::conversation::script::{Script, text};
use tiller_protocol::IdSource;

/// Draws all of the conversation once, from its end to its start, in windows of 20 rows.
fn look_through(view: &mut Viewport, conv: &Conversation) {
    view.measure(conv);
    loop {
        let before = view.scroll;
        view.scroll_by(conv, -15);
        view.measure(conv);
        if view.scroll == before {
            break;
        }
    }
    view.scroll = ScrollPosition::End;
    view.measure(conv);
}

#[test]
fn layouts_and_folds_of_a_session_that_was_left_are_dropped() {
    let (mut s, mut conv, mut view) = (Script::new(), Conversation::default(), Viewport::new(TimeZone::UTC));
    let mut kept = Vec::new();
    for _ in 0..6 {
        s.session = SessionId(s.ids.next(Time(0)));
        let entries = (0..60).map(|n| s.user(&format!("message {n}"))).collect();
        conv.apply(&s.snapshot(entries, 0, false));
        view.measure(&conv);
        view.toggle(&conv, &conv.cells()[3]);
        look_through(&mut view, &conv);
        kept.push((view.layouts.size().0, view.folds.len()));
    }
    assert!(kept[0].0 >= 60, "the test looks at all cells: {kept:?}");
    assert!(kept.iter().all(|k| *k == (conv.cells().len(), 1)), "{kept:?}");
}

#[test]
fn the_rows_of_all_layouts_have_a_limit() {
    let (mut s, mut conv, mut view) = (Script::new(), Conversation::default(), Viewport::new(TimeZone::UTC));
    let long: String = (0..200).map(|n| format!("Paragraph {n}.\n\n")).collect();
    let reply = |s: &mut Script| s.assistant(vec![text(&long)], StopReason::EndTurn);
    let entries = (0..40).map(|_| reply(&mut s)).collect();
    conv.apply(&s.snapshot(entries, 0, false));
    look_through(&mut view, &conv);
    let (layouts, rows) = view.layouts.size();
    assert!(rows <= 5_000, "{layouts} layouts with {rows} rows are kept");
    assert!(view.kept(conv.cells().back().unwrap().key).is_some(), "what is visible has its layout");
}

#[test]
fn the_tables_for_colours_are_kept_while_a_turn_runs_only() {
    let (mut s, mut conv, mut view) = (Script::new(), Conversation::default(), Viewport::new(TimeZone::UTC));
    let reply = s.assistant(vec![text("```rust\nfn main() {}\n```\n")], StopReason::EndTurn);
    let mut measured = |conv: &Conversation| {
        let deadline = Instant::now() + Duration::from_secs(120);
        view.measure(conv);
        while view.waits_for_colours() {
            assert!(Instant::now() < deadline, "no colours came");
            std::thread::yield_now();
            view.measure(conv);
        }
        // The frame that draws the colours.
        view.measure(conv);
        view.highlighter.loaded()
    };
    conv.apply(&s.snapshot(vec![reply.clone()], 0, true));
    assert!(measured(&conv), "more code may come");
    conv.apply(&s.snapshot(vec![reply], 0, false));
    assert!(!measured(&conv), "nothing more comes");
    // Other code is coloured all the same.
    let other = s.assistant(vec![text("```rust\nlet other = 1;\n```\n")], StopReason::EndTurn);
    conv.apply(&s.snapshot(vec![other], 0, false));
    assert!(!measured(&conv));
    assert!(view.visible.iter().all(|v| !view.layouts.get(v.key).unwrap().plain), "all code has its colours");
}
