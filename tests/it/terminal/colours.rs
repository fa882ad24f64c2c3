//! The theme that is chosen by itself: by what the terminal answers, without a wait for it.

use tiller_testkit::Term;
use vt100::Color;

use crate::common::{Place, wait};
use crate::screen::{idle, type_in};

/// A light terminal with direct colours, as xterm answers.
const LIGHT: &str = "\x1bP1$r0;48:2::1:2:3m\x1b\\\x1b]11;rgb:fcfc/fcfc/fbfb\x1b\\\x1b[?62;22c";
/// A terminal that answers no query but DA1, which every terminal answers.
const PLAIN: &str = "\x1b[?1;2c";

/// A screen that has asked its questions and has had no answer.
fn asked(place: &Place) -> Term {
    let at = place.user.join("sample");
    let term = place.term(&["demo", "--at", at.to_str().unwrap()], 100, 30);
    wait("the last question", || String::from_utf8_lossy(&term.raw()).contains("\x1b[?u\x1b[c"));
    idle(&term);
    term
}

fn ground(term: &Term) -> Color {
    term.looks(|s| s.cell(15, 50).map_or(Color::Default, vt100::Cell::bgcolor))
}

fn waits_for(term: &Term, colour: Color) {
    term.wait_cells("the theme's ground", |s| s.cell(15, 50).is_some_and(|c| c.bgcolor() == colour));
}

#[test]
fn a_terminal_that_answers_gets_the_theme_for_its_background_in_all_its_colours() {
    let place = Place::new();
    let mut term = asked(&place);
    assert_eq!(ground(&term), Color::Default, "no ground before it is known which");
    term.bytes(LIGHT.as_bytes());
    waits_for(&term, Color::Rgb(0xfc, 0xfc, 0xfb));
    // The answers are no keys.
    let screen = idle(&term);
    assert!(!screen.contains("48:2") && !screen.contains("62;22"), "{screen}");
    // Its owner switches to dark.
    term.bytes(b"\x1b[?997;1n");
    waits_for(&term, Color::Rgb(0x14, 0x16, 0x1b));
}

#[test]
fn a_terminal_that_knows_no_question_gets_the_dark_theme_in_its_256_colours() {
    let place = Place::new();
    let mut term = asked(&place);
    term.bytes(PLAIN.as_bytes());
    waits_for(&term, Color::Idx(233));
}

#[test]
fn a_terminal_that_answers_nothing_is_drawn_at_once_on_its_own_ground() {
    let place = Place::new();
    let term = asked(&place);
    let raw = String::from_utf8_lossy(&term.raw()).into_owned();
    let (text, question) = (raw.find("ASK"), raw.find("\x1b]11;?"));
    assert!(text.is_some() && text < question, "the first frame comes before the questions: {raw:?}");
    assert!(!raw.contains("38;2;") && !raw.contains("38;5;"), "only the terminal's own colours");
    assert_eq!(ground(&term), Color::Default);
}

#[test]
fn with_sixteen_colours_or_a_colour_setting_nothing_is_asked_that_is_known() {
    let mut place = Place::new();
    place.set("FORCE_COLOR", "2");
    let mut term = asked(&place);
    assert!(!String::from_utf8_lossy(&term.raw()).contains("\x1bP$qm"), "the setting says it");
    term.bytes(LIGHT.as_bytes());
    let mut place = Place::new();
    place.set("TERM", "linux");
    let mut term = asked(&place);
    assert!(!String::from_utf8_lossy(&term.raw()).contains("\x1bP$qm"), "it would print it");
    term.bytes(PLAIN.as_bytes());
    type_in(&mut term, "x");
    assert_eq!(ground(&term), Color::Default);
}
