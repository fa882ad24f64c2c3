//! The sessions of the start screen, driven by the robot.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{ModelRef, SeqIds, Time};

use super::*;
use crate::app::msg::Msg;
use crate::input::Input;
use crate::model::conversation::script::Script;
use crate::testing::{Robot, START};

fn summary(id: SessionId, title: &str, minutes: i64, entries: u64) -> SessionSummary {
    SessionSummary {
        id,
        title: title.into(),
        project: "/home/ann/api".into(),
        created: START,
        used: Time(START.0 - 60_000 * minutes),
        entries,
        model: ModelRef("vendor/model".into()),
        cost: None,
        archived: false,
        exec: false,
        open_in: None,
        interrupted: None,
        preview: String::new(),
        git_branch: String::new(),
    }
}

/// The start screen with the sessions of this folder; the commands so far are forgotten.
fn started(size: (u16, u16), sessions: impl FnOnce(&Script) -> Vec<SessionSummary>) -> Robot {
    let mut r = Robot::new(size.0, size.1);
    let mut s = Script::new();
    let event = s.snapshot(Vec::new(), 0, false);
    r.msg(Msg::Engine(Box::new(event)));
    assert!(matches!(r.commands()[..], [CommandBody::Query(Query::Sessions { everywhere: false, .. })]));
    let sessions = sessions(&s);
    r.reply(ReplyEvent::SessionsReply { sessions }).clear();
    r
}

fn ids() -> Vec<SessionId> {
    let ids = SeqIds::default();
    (0..9).map(|_| SessionId::fresh(&ids, START)).collect()
}

fn four(s: &Script) -> Vec<SessionSummary> {
    let ids = ids();
    vec![
        summary(s.session, "The one on the screen", 0, 0),
        summary(ids[1], "Retry work", 2, 46),
        summary(ids[2], "Never used", 5, 0),
        SessionSummary {
            open_in: Some("4711".into()),
            ..summary(ids[3], "\u{1b}[31mThe parser\nof dates", 75, 7)
        },
        summary(ids[4], "Nightly export", 60 * 20, 88),
        summary(ids[5], "One too many", 60 * 49, 3),
    ]
}

/// The sessions that were opened.
fn opened(r: &Robot) -> Vec<SessionId> {
    let open = |c: &CommandBody| match c {
        CommandBody::Session(SessionCommand::Open { id }) => Some(*id),
        _ => None,
    };
    r.commands().into_iter().filter_map(open).collect()
}

#[test]
fn the_last_three_sessions_stand_below_the_composer() {
    for size in [(118, 32), (80, 24)] {
        let mut r = started(size, four);
        insta::assert_snapshot!(format!("start_at_{}x{}", size.0, size.1), r.screen());
        r.run("down; down");
        insta::assert_snapshot!(format!("start_selected_at_{}x{}", size.0, size.1), r.screen());
    }
}

#[test]
fn a_digit_is_text_until_down_has_selected_a_session() {
    let mut r = started((118, 32), four);
    r.run("type 2. is better");
    assert!(r.screen().contains("▌ 2. is better"), "{}", r.screen());
    r.run("down; type 1");
    assert_eq!(opened(&r), [], "a draft keeps the digits");
    assert!(r.screen().contains("2. is better1"), "{}", r.screen());
    r.run("ctrl-u; down; type 2");
    assert_eq!(opened(&r), [ids()[3]]);
    assert!(r.cursor().is_some(), "the composer has the keys again");
}

#[test]
fn arrows_and_enter_open_one_too() {
    for (keys, want) in [("down; enter", 1), ("down; down; enter", 3), ("down; down; down; down; enter", 4)] {
        let mut r = started((80, 24), four);
        r.run(keys);
        assert_eq!(opened(&r), [ids()[want]], "{keys}");
    }
}

/// Escape, Up from the first one, a click and each text give the keys back; no text is lost.
#[test]
fn the_keys_go_back_to_the_draft() {
    for keys in ["down; esc", "down; up", "down; down; up; up"] {
        let mut r = started((80, 24), four);
        r.run(keys);
        assert!(r.cursor().is_some(), "{keys}: {}", r.screen());
        r.run("type 3");
        assert_eq!(opened(&r), [], "{keys}");
        assert!(r.screen().contains("▌ 3"), "{keys}: {}", r.screen());
    }
    let mut r = started((80, 24), four);
    r.run("down; type what is 1 and 2?");
    assert!(r.screen().contains("▌ what is 1 and 2?"), "{}", r.screen());
    r.run("ctrl-u; down; paste 3 things");
    assert!(r.screen().contains("▌ 3 things"), "{}", r.screen());
    assert_eq!(opened(&r), []);
}

#[test]
fn a_click_opens_a_session() {
    let mut r = started((118, 32), four);
    let row = r.screen().lines().position(|l| l.contains("Nightly export")).unwrap() as u16;
    let kind = MouseEventKind::Down(MouseButton::Left);
    r.wait(std::time::Duration::from_secs(1));
    r.msg(Msg::Input(Input::Mouse(MouseEvent { kind, column: 40, row, modifiers: KeyModifiers::NONE })));
    assert_eq!(opened(&r), [ids()[4]]);
}

#[test]
fn without_sessions_down_does_nothing_and_no_row_stands_there() {
    let mut r = started((80, 24), |s| vec![summary(s.session, "", 0, 0)]);
    assert!(!r.screen().contains("Down"), "{}", r.screen());
    r.run("down; type 1");
    assert_eq!(opened(&r), []);
    assert!(r.screen().contains("▌ 1"), "{}", r.screen());
}

/// In a session with messages the list is not asked for, and an older answer is not used.
#[test]
fn only_the_start_screen_has_them() {
    let mut r = started((80, 24), four);
    let mut s = Script::new();
    let said = s.user("hello");
    let event = s.snapshot(vec![said], 0, false);
    r.msg(Msg::Engine(Box::new(event)));
    assert!(r.commands().is_empty(), "{:?}", r.commands());
    r.run("down; type 1");
    assert_eq!(opened(&r), []);
    assert!(!r.screen().contains("Retry work"), "{}", r.screen());
    // Too small for the start screen: what cannot be seen cannot be opened.
    let mut r = started((60, 18), four);
    r.run("down; type 1");
    assert_eq!(opened(&r), []);
}
