//! Every hint of the footer, in every state of the demo that a new user reaches, does what it says.

use std::time::Duration;

use tiller_testkit::Term;

use crate::common::{Place, poll, wait};
use crate::screen::{answer, idle, quit, say};

/// A hint of the footer: its key as shown, and its label.
type Hint = (String, String);

/// The hints of a screen, in order.
fn hints(screen: &str) -> Vec<Hint> {
    let line = screen.lines().last().unwrap_or_default().trim();
    let split = |h: &str| {
        let h = h.trim();
        // A key after the leader belongs to it.
        let after = h.strip_prefix("Ctrl-X ").filter(|rest| *rest != "more").and_then(|r| r.find(' '));
        let at = after.map_or_else(|| h.find(' '), |n| Some("Ctrl-X ".len() + n))?;
        Some((h[..at].to_owned(), h[at..].trim().to_owned()))
    };
    line.split("  ").filter_map(split).collect()
}

/// The bytes of a key in the footer's notation.
fn bytes(key: &str) -> String {
    match key {
        "Enter" => "\r".into(),
        "Esc" => "\x1b".into(),
        "Tab" => "\t".into(),
        "Space" => " ".into(),
        "Down" => "\x1b[B".into(),
        "Up" => "\x1b[A".into(),
        "PageDown" => "\x1b[6~".into(),
        "Shift-Tab" => "\x1b[Z".into(),
        "F1" => "\x1bOP".into(),
        _ => {
            if let Some((first, second)) = key.split_once(' ') {
                return bytes(first) + &bytes(second);
            }
            if let Some(c) = key.strip_prefix("Ctrl-") {
                let c = c.bytes().next().unwrap();
                return char::from(c & 0x1f).to_string();
            }
            if let Some(c) = key.strip_prefix("Alt-") {
                return format!("\x1b{}", c.to_lowercase());
            }
            key.into()
        }
    }
}

/// Whether the screen is the initial one, with nothing typed.
fn home(screen: &str) -> bool {
    screen.lines().last().is_some_and(|l| l.trim_start().starts_with("Shift-Tab mode"))
        && header(screen, "ASK")
}

fn header(screen: &str, word: &str) -> bool {
    screen.lines().next().is_some_and(|l| l.contains(word))
}

/// Goes back to an empty composer with nothing open, in the asking mode.
fn go_home(term: &mut Term) {
    for _ in 0..12 {
        let screen = term.screen();
        if home(&screen) {
            return;
        }
        let first = hints(&screen).first().cloned().unwrap_or_default();
        let before = term.face();
        if first.1 == "mode" {
            // Another mode: on to the next; the mode without approvals needs a confirmation first.
            term.keys("\x1b[Z");
        } else if first.1 == "send" {
            term.keys("\x15");
        } else if first.1 == "rewind" {
            // The first of two escapes, which expires soon.
        } else if screen.contains("Switch to AUTO mode?") {
            crate::screen::confirm(term, "Switch to AUTO mode?", "[y] yes, AUTO", "o");
        } else {
            term.keys("\x1b");
        }
        // A second Escape too soon would have another meaning, and one directly before another key would be Alt.
        let _ = poll(Duration::from_secs(10), || (term.face() != before).then_some(()));
        let _ = poll(Duration::from_millis(400), || home(&term.screen()).then_some(()));
    }
    term.wait("home", home);
}

/// The expected screen after the key of a hint in a state; `None`: unknown.
fn promise(state: &str, label: &str) -> Option<fn(&str) -> bool> {
    fn opened(s: &str, title: &str) -> bool {
        s.contains(title) && hints(s).iter().any(|h| h.0 == "Esc")
    }
    Some(match (state, label) {
        (_, "palette") => |s| opened(s, "Palette"),
        (_, "more") => |s| hints(s) == [("Esc".into(), "cancel".into())] && s.contains("Ctrl-X  then"),
        (_, "help") => |s| opened(s, "Help"),
        ("which-key", "cancel") => home,
        (_, "mode") => |s| header(s, "EDIT"),
        ("palette" | "help" | "sessions" | "themes" | "models", "close") => home,
        ("popup", "close") => |s| hints(s).first().is_some_and(|h| h.1 == "send"),
        (_, "back") => |s| hints(s).iter().any(|h| h.1 == "mode"),
        ("draft", "send") => |s| s.contains("▌ hello") && !hints(s).iter().any(|h| h.1 == "send"),
        ("draft", "new line") => |s| {
            let below = s.lines().rev().take_while(|l| !l.contains("hello")).last();
            below.is_some_and(|l| l.trim_matches(['│', '▌', ' ']).is_empty())
        },
        // A file, or a folder to continue in.
        ("popup", "take") => |s| s.contains("with @"),
        ("palette", "run") | ("help", "do it") => |s| opened(s, "Theme"),
        ("themes" | "models", "choose") => home,
        ("sessions", "open") => home,
        ("sessions", "all projects") => |s| s.contains("all projects") || s.contains("this project"),
        ("sessions", "rename") => |s| hints(s).first().is_some_and(|h| h.0 == "Enter" && h.1 != "open"),
        ("sessions", "fork") => |s| !hints(s).iter().any(|h| h.1 == "open"),
        ("sessions", "archive") => |s| s.contains("archived"),
        ("sessions", "archived" | "hide archived") => {
            |s| s.contains("including archived") || s.contains("Sessions of")
        }
        ("todo", "tick") => |s| s.contains("○ Run the tests"),
        ("todo", "start") => |s| s.contains("◐ Run the tests"),
        ("todo", "cancel") => |s| s.contains("· Run the tests"),
        ("todo", "add" | "edit") => |s| hints(s).iter().any(|h| h.1 == "save"),
        ("todo", "move down") => |s| before(s, "Find the cause", " Run the tests"),
        ("agents", "open") => |s| hints(s).iter().any(|h| h.1 == "copy mode"),
        ("agents", "end" | "stop all") => |s| s.contains("Nothing is running"),
        ("agents", "message") => |s| hints(s).first().is_some_and(|h| h.1 != "open"),
        ("agents", "model") => |s| opened(s, "Model"),
        ("watch", "diff") => {
            |s| s.contains("+op_") || s.contains("+ op_") || (s.contains("op_") && opened(s, "lib/ops.sh"))
        }
        ("watch", "mention") => |s| s.contains("@lib/ops.sh"),
        ("watch", "mute") => |s| s.contains("No longer shown: lib/ops.sh"),
        ("watch", "pause") => |s| hints(s).iter().any(|h| h.1 == "resume"),
        ("tree", "all sessions") => |s| opened(s, "Tree of this project"),
        ("tree", "look") => |s| hints(s).iter().any(|h| h.1 == "copy mode"),
        ("tree", "fork here") => |s| {
            s.lines().rev().nth(2).is_some()
                && s.contains("fix the failing test")
                && hints(s).first().is_some_and(|h| h.1 == "send")
        },
        ("conversation", "search") => |s| hints(s).iter().any(|h| h.1 == "end search"),
        ("conversation", "copy") => |s| s.contains("sent to the terminal") || s.contains("copied"),
        ("conversation", "copy mode") => |s| !hints(s).iter().any(|h| h.1 == "copy mode"),
        // A key that moves a selection or unfolds a row changes the screen.
        ("popup" | "themes" | "models" | "sessions" | "palette" | "help", "next")
        | ("conversation", "open" | "turn up" | "tool up")
        | ("todo", "move up") => |_| true,
        _ => return None,
    })
}

/// Whether one text is above the other.
fn before(screen: &str, first: &str, second: &str) -> bool {
    match (screen.find(first), screen.find(second)) {
        (Some(a), Some(b)) => a < b,
        _ => false,
    }
}

/// Presses every hint of a state, each time in a freshly reached state.
fn walk(term: &mut Term, state: &str, keys: &[&str], until: impl Fn(&str) -> bool, seen: &mut usize) {
    // An Escape for a popup that has just closed by itself makes the next key an Alt key: then try again.
    let reach = |term: &mut Term| {
        for _ in 0..4 {
            go_home(term);
            for k in keys {
                term.keys(k);
            }
            if poll(Duration::from_secs(20), || until(&term.screen()).then_some(())).is_some() {
                break;
            }
        }
        term.wait(state, |s| until(s))
    };
    let all = hints(&reach(term));
    assert!(!all.is_empty(), "{state} has no hints");
    for (key, label) in all {
        // For an unknown hint the test only checks that its key has an effect.
        let kept = promise(state, &label).unwrap_or(|_| true);
        reach(term);
        if matches!(label.as_str(), "archive" | "delete") {
            // A list accepts the key that removes an entry only after it was visible for a moment.
            crate::common::let_deafness_pass();
        }
        let before = term.face();
        term.keys(&bytes(&key));
        term.wait(&format!("{state}: {key} {label}"), kept);
        wait(&format!("{state}: {key} {label} changes something"), || term.face() != before);
        *seen += 1;
    }
    go_home(term);
}

/// The demo on its start screen.
fn start(place: &Place, cols: u16, rows: u16) -> Term {
    place.config("[ui]\nbranch_summary = \"never\"\n");
    let at = place.user.join("sample");
    let term = place.term(&["demo", "--no-tour", "--at", at.to_str().unwrap()], cols, rows);
    term.wait_text("Type what you want done");
    term.wait("the mode", home);
    term
}

fn footer(label: &'static str) -> impl Fn(&str) -> bool {
    move |s| hints(s).iter().any(|h| h.1 == label)
}

fn before_a_turn(cols: u16, rows: u16) {
    let place = Place::new();
    let mut term = start(&place, cols, rows);
    let mut seen = 0;
    walk(&mut term, "empty", &[], home, &mut seen);
    walk(&mut term, "which-key", &["\x18"], footer("cancel"), &mut seen);
    // At the beginning of a message the first rows are agent definitions.
    walk(&mut term, "popup", &["see @"], footer("take"), &mut seen);
    walk(&mut term, "palette", &["\x10", "theme"], |s| s.contains("Theme") && footer("run")(s), &mut seen);
    walk(&mut term, "themes", &["\x18t"], footer("choose"), &mut seen);
    walk(
        &mut term,
        "models",
        &["\x18m", "demo"],
        |s| s.contains("▌ demo/demo") && footer("choose")(s),
        &mut seen,
    );
    assert!(seen > SEEN.0, "only {seen} hints were pressed");
    assert_eq!(quit(&mut term), 0);
}

fn after_a_turn(cols: u16, rows: u16) {
    let place = Place::new();
    let mut term = start(&place, cols, rows);
    let mut seen = 0;
    say(&mut term, "fix the failing test");
    loop {
        let screen = term
            .wait("a question or the end", |s| s.contains("[y] once") || s.contains("All tests pass now."));
        if screen.contains("All tests pass now.") {
            break;
        }
        let screen = crate::screen::asked(&mut term, "[y] once");
        let first = crate::screen::target(&screen);
        answer(&mut term, &first, "y");
    }
    idle(&term);
    walk(&mut term, "conversation", &["\x1b[1;5F", "\x1b1", "{"], footer("copy mode"), &mut seen);
    walk(&mut term, "agents", &["\x1b3"], footer("end"), &mut seen);
    walk(&mut term, "watch", &["\x1b4"], footer("mention"), &mut seen);
    walk(&mut term, "todo", &["\x1b2"], footer("tick"), &mut seen);
    // After a fork the row is the end of a branch that was left, and the key goes on there.
    let forks = |s: &str| footer("fork here")(s) || footer("go on here")(s);
    walk(&mut term, "tree", &["\x1b5"], forks, &mut seen);
    walk(&mut term, "draft", &["hello"], footer("send"), &mut seen);
    walk(
        &mut term,
        "sessions",
        &["\x18s"],
        |s| {
            // An archived session is not listed.
            footer("open")(s) && s.contains("● fix the failing") || s.contains("Sessions appear here")
        },
        &mut seen,
    );
    assert!(seen > SEEN.1, "only {seen} hints were pressed");
    assert_eq!(quit(&mut term), 0);
}

/// Hints that are pressed before and after a turn, at least.
const SEEN: (usize, usize) = (19, 30);

#[test]
fn every_hint_before_a_turn_at_118x25_does_what_it_says() {
    before_a_turn(118, 25);
}

#[test]
fn every_hint_before_a_turn_at_80x24_does_what_it_says() {
    before_a_turn(80, 24);
}

#[test]
fn every_hint_after_a_turn_at_118x25_does_what_it_says() {
    after_a_turn(118, 25);
}

#[test]
fn every_hint_after_a_turn_at_80x24_does_what_it_says() {
    after_a_turn(80, 24);
}
