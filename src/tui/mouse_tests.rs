//! Clicks and the wheel on every panel, as a person does them.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use tiller_protocol::command::WatchCommand;
use tiller_protocol::event::{AskEvent, StateEvent};
use tiller_protocol::{CommandBody, EventBody};

use crate::app::msg::Msg;

use crate::input::Input;
use crate::panel::View;
use crate::scene;
use crate::testing::Robot;

fn scene(w: u16, h: u16) -> Robot {
    let mut r = Robot::new(w, h);
    scene::play(&mut r);
    r.wait(std::time::Duration::from_secs(1));
    r.clear();
    r
}

/// Column and row of a text on the screen, from this column on.
fn find(r: &Robot, text: &str, from: usize) -> (u16, u16) {
    let screen = r.screen();
    screen
        .lines()
        .enumerate()
        .find_map(|(y, l)| {
            let start = l.char_indices().nth(from).map_or(l.len(), |(i, _)| i);
            let at = l[start..].find(text)? + start;
            Some((l[..at].chars().count() as u16, y as u16))
        })
        .unwrap_or_else(|| panic!("{text} is not on the screen\n{screen}"))
}

fn mouse(r: &mut Robot, kind: MouseEventKind, (column, row): (u16, u16)) {
    r.msg(Msg::Input(Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })));
}

fn click(r: &mut Robot, text: &str, from: usize) {
    let at = find(r, text, from);
    mouse(r, MouseEventKind::Down(MouseButton::Left), at);
    mouse(r, MouseEventKind::Up(MouseButton::Left), at);
}

/// Where the rail begins at 118 columns.
const RAIL: usize = 79;

#[test]
fn a_click_focuses_the_panel_below_it_and_chooses_the_row() {
    for (text, view) in [("○ docs", View::Todo), ("docs", View::Agents), ("README.md", View::Watch)] {
        let mut r = scene(118, 40);
        click(&mut r, text, RAIL);
        let want = if text == "docs" { View::Todo } else { view };
        assert_eq!(r.app.screen.focus, want, "{text}\n{}", r.screen());
        let row = find(&r, text, RAIL).1;
        assert_eq!(r.cursor().map(|c| c.y), Some(row), "{text}: the cursor is on the row\n{}", r.screen());
    }
    let mut r = scene(118, 40);
    click(&mut r, "▲ a", RAIL);
    assert_eq!(r.app.screen.focus, View::Agents, "{}", r.screen());
}

#[test]
fn a_second_click_opens() {
    let mut r = scene(118, 40);
    click(&mut r, "README.md", RAIL);
    click(&mut r, "README.md", RAIL);
    let diff = CommandBody::Watch(WatchCommand::Diff { path: "README.md".into() });
    assert_eq!(r.commands(), [&diff]);
    click(&mut r, "● Make the", RAIL);
    click(&mut r, "● Make the", RAIL);
    assert_eq!(r.app.screen.focus, View::Conversation, "the tree goes to the turn\n{}", r.screen());
}

#[test]
fn a_click_on_a_waiting_question_shows_it_and_answers_nothing() {
    let mut r = scene(118, 40);
    click(&mut r, "needs you", 0);
    assert!(r.screen().contains("wants to"), "{}", r.screen());
    assert!(r.commands().is_empty());
    // Its buttons: no click says yes.
    r.wait(std::time::Duration::from_secs(1));
    click(&mut r, "] once", 0);
    assert!(r.commands().is_empty() && r.screen().contains("press its key"), "{}", r.screen());
    click(&mut r, "] no", 0);
    assert!(matches!(r.commands()[..], [CommandBody::Ask(_)]), "a no may be clicked");
}

#[test]
fn the_wheel_scrolls_what_lies_below_it_and_moves_no_focus() {
    let mut r = scene(118, 40);
    let todos = (0..60).map(|i| tiller_protocol::TodoItem {
        id: i.to_string(),
        content: format!("item {i}"),
        status: tiller_protocol::TodoStatus::Pending,
        agent: None,
    });
    r.event(EventBody::State(StateEvent::TodoChanged { todos: todos.collect(), by_person: false }));
    let before = r.screen();
    let at = find(&r, "item 0", RAIL);
    for _ in 0..5 {
        mouse(&mut r, MouseEventKind::ScrollDown, at);
    }
    assert_eq!(r.app.screen.focus, View::Composer);
    r.run("alt-2");
    for _ in 0..9 {
        mouse(&mut r, MouseEventKind::ScrollDown, at);
    }
    assert_ne!(before, r.screen());
    assert!(r.screen().contains("item 30"), "{}", r.screen());
}

#[test]
fn a_click_in_the_text_places_the_caret_and_one_in_a_tool_row_unfolds_it() {
    let mut r = scene(118, 40);
    r.run("type hello brave world");
    let (x, y) = find(&r, "brave", 0);
    mouse(&mut r, MouseEventKind::Down(MouseButton::Left), (x, y));
    assert_eq!(r.cursor().map(|c| (c.x, c.y)), Some((x, y)));
    r.run("type very; space");
    assert!(r.screen().contains("hello very brave world"), "{}", r.screen());
    let folded = r.screen();
    click(&mut r, "src/client.rs", 0);
    assert_ne!(folded, r.screen(), "the row opens");
    assert_eq!(r.app.screen.focus, View::Composer, "the conversation takes no focus from the text");
}

#[test]
fn what_belongs_to_the_terminal_does_nothing() {
    let mut r = scene(118, 40);
    let before = r.screen();
    let at = find(&r, "README.md", RAIL);
    for b in [MouseButton::Right, MouseButton::Middle] {
        mouse(&mut r, MouseEventKind::Down(b), at);
        mouse(&mut r, MouseEventKind::Up(b), at);
    }
    assert_eq!(before, r.screen());
    // The click that only brings the window to the front.
    r.msg(Msg::Input(Input::FocusLost)).msg(Msg::Input(Input::FocusGained));
    click(&mut r, "README.md", RAIL);
    assert_eq!(r.app.screen.focus, View::Composer);
}

/// A question that comes at the very moment of a click takes nothing from it.
#[test]
fn a_click_that_was_meant_for_something_else_answers_no_question() {
    let mut r = Robot::new(118, 25);
    let ask = scene::question(9);
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask }));
    for x in (0..118).step_by(3) {
        for y in 0..25 {
            mouse(&mut r, MouseEventKind::Down(MouseButton::Left), (x, y));
        }
    }
    assert!(r.commands().is_empty(), "input is delayed: {:?}", r.commands());
}
