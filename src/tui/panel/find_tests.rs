//! The same search in every panel of rows.

use tiller_protocol::command::TodoCommand;
use tiller_protocol::{CommandBody, TodoStatus};

use crate::panel::View;
use crate::testing::Robot;

#[test]
fn a_slash_searches_n_goes_on_and_escape_ends_it_first() {
    let mut r = Robot::new(80, 24);
    super::todo::tests::plan(&mut r, 16);
    r.run("alt-2; /; type changelog");
    assert!(r.screen().contains("/changelog") && r.screen().contains("1/2"), "{}", r.screen());
    // Letters are words here, no commands: Nothing was changed by them.
    assert!(!r.commands().iter().any(|c| matches!(c, CommandBody::Todo(_))));
    r.run("enter; n");
    assert!(r.screen().contains("2/2"), "{}", r.screen());
    r.run("n; N");
    assert!(r.screen().contains("2/2"), "it goes round: {}", r.screen());
    r.clear().run("space");
    let want = TodoCommand::Status { id: "13".into(), status: TodoStatus::Completed };
    assert_eq!(r.commands(), [&CommandBody::Todo(want)]);
    r.run("esc");
    assert!(!r.screen().contains("/changelog"), "{}", r.screen());
    assert_eq!(r.app.screen.focus, View::Todo, "one Escape, one step");
    r.run("esc");
    assert_eq!(r.app.screen.focus, View::Composer);
}

#[test]
fn every_panel_of_rows_searches() {
    for (digit, words) in [(2, "changelog"), (3, "docs"), (4, "README"), (5, "retry")] {
        for (w, h) in [(118, 25), (80, 24), (40, 12)] {
            let mut r = Robot::new(w, h);
            crate::scene::play(&mut r);
            r.run(&format!("alt-{digit}; /; type {words}"));
            assert!(r.screen().contains(&format!("/{words}")), "{digit} at {w}x{h}\n{}", r.screen());
            assert!(r.screen().contains("1/"), "{digit} at {w}x{h}\n{}", r.screen());
            assert!(r.cursor().is_some());
            r.run("type zzz");
            assert!(r.screen().contains("no matches"), "{digit} at {w}x{h}\n{}", r.screen());
            r.run("esc; esc");
            assert_eq!(r.app.screen.focus, View::Composer);
        }
    }
}
