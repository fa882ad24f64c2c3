//! Help as it is seen and used.

use super::*;
use crate::testing::Robot;

#[test]
fn the_essentials_are_the_same_wherever_it_is_opened() {
    let count: usize = ESSENTIALS.iter().map(|(_, list)| list.len()).sum();
    assert_eq!(count, 23);
    let page = |before: &str| {
        let mut r = Robot::new(80, 24);
        r.run(before);
        r.run("f1");
        r.screen()
    };
    let first = page("wait 0");
    for (title, list) in ESSENTIALS {
        assert!(first.contains(title), "{title}: {first}");
        assert!(list.iter().all(|(_, label)| first.contains(label)), "{title}: {first}");
    }
    insta::assert_snapshot!("help_80x24", first);
    for before in ["alt-3", "alt-6"] {
        for (_, label) in ESSENTIALS.iter().flat_map(|(_, list)| *list) {
            assert!(page(before).contains(label), "{label} from {before}");
        }
    }
}

#[test]
fn every_essential_exists_and_has_a_key() {
    let r = Robot::new(80, 24);
    let help = open(&r.app);
    for entry in help.columns.iter().flat_map(|(_, list)| list) {
        assert!(!entry.key.is_empty(), "{:?}", entry.does);
        if let Does::Act(id) | Does::Draft(id) = entry.does {
            assert!(r.app.registry.words().find(id).is_some(), "{id}");
        }
    }
}

#[test]
fn arrows_go_through_the_columns_and_enter_does_the_entry() {
    let mut r = Robot::new(118, 32);
    r.run("f1; down; down; down; down; down; down; enter");
    assert!(r.screen().contains("Sessions"), "the seventh of the second column: {}", r.screen());
    let mut r = Robot::new(118, 32);
    r.run("f1; left; down; down; down; enter");
    assert!(r.screen().contains("@") && r.app.layers.is_empty(), "{}", r.screen());
}

#[test]
fn typing_finds_everything_else() {
    let mut r = Robot::new(118, 32);
    r.run("f1; type next hunk");
    assert!(r.screen().contains("in Diff review"), "{}", r.screen());
    let mut without_key = Robot::new(118, 32);
    without_key.run("f1; type restore versions");
    assert!(without_key.screen().contains("/skills"), "{}", without_key.screen());
    r.run(
        "backspace; backspace; backspace; backspace; backspace; backspace; backspace; backspace; backspace",
    );
    assert!(r.screen().contains("Control"), "the page again: {}", r.screen());
}

#[test]
fn choosing_an_entry_sends_no_draft_and_ends_nothing_unseen() {
    use crate::app::effect::Task;
    use crate::app::msg::Msg;
    use crate::input::Input;
    use crate::keymap::Chord;
    let bad = |r: &mut Robot| {
        let ends = |t: &Task| match t {
            Task::Quit => true,
            Task::Send(c) => !matches!(c.body, tiller_protocol::CommandBody::Query(_)),
            _ => false,
        };
        r.app.take_tasks().iter().any(ends)
    };
    // As fast as a hand can be: no frame is drawn between the keys.
    let press =
        |r: &mut Robot, key: &str| r.app.update(Msg::Input(Input::Key(Chord::parse(key).unwrap().event())));
    let mut r = Robot::new(118, 25);
    r.run("type half a thought");
    assert!(!bad(&mut r));
    r.run("f1; left; wait 500; enter");
    assert!(!bad(&mut r) && r.screen().contains("Press it in the composer"), "{}", r.screen());
    r.run("esc");
    assert!(r.screen().contains("half a thought"), "{}", r.screen());
    let keys =
        ["f1 right down down down down down down down enter", "f1 s a v e space a n d space q u i t enter"];
    for keys in keys {
        let mut r = Robot::new(118, 25);
        for key in keys.split(' ') {
            press(&mut r, key);
            assert!(!bad(&mut r), "{key}");
        }
        r.run("wait 500");
        press(&mut r, "enter");
        assert!(bad(&mut r), "once it was in sight, it is done: {}", r.screen());
    }
}
