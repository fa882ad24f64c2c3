//! The layers of the prompt at a real terminal: their files, their budgets, and SOUL.md.

use tiller_testkit::{Script, Wire};

use crate::common::{Place, TIMEOUT, let_deafness_pass, poll};
use crate::scenario::Model;
use crate::screen::{confirm, idle, quit, say};

/// Waits until something is there.
fn soon(what: &str, there: impl FnMut() -> Option<()>) {
    assert!(poll(TIMEOUT, there).is_some(), "{what}");
}

fn layers(cols: u16, rows: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    place.file("AGENTS.md", "Be brief.\n");
    // An editor that appends a line.
    let editor = place.user.join("editor");
    tiller_testkit::program(&editor, "#!/bin/sh\necho 'Use tabs.' >> \"$1\"\n");
    place.set("EDITOR", &format!("'{}'", editor.display()));
    model.push(Script::new().text("Hello to you."));
    let mut term = place.term(&[], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "hello");
    term.wait_text("Hello to you.");
    idle(&term);

    // A key edits the file of a layer.
    let context = |term: &mut tiller_testkit::Term| {
        say(term, "/context");
        term.wait_text("Project: AGENTS.md");
        term.keys("AGENTS");
        term.wait("the row alone", |s| s.contains("Project: AGENTS.md") && !s.contains("Messages"));
    };
    context(&mut term);
    term.keys("\x18e");
    soon("the edited file", || place.read("AGENTS.md").contains("Use tabs.").then_some(()));
    term.wait("the conversation", |s| s.contains("Hello to you.") && !s.contains("Project: AGENTS.md"));

    // A budget is written after its line was shown.
    context(&mut term);
    term.keys("\x02");
    term.wait_text("12000");
    term.keys("\x15");
    term.wait("an empty field", |s| !s.contains("12000"));
    term.keys("9000\r");
    term.wait_text("project = 9000");
    confirm(&mut term, "Change the budget", "[y] write", "y");
    let settings = place.home.join("config/config.toml");
    soon("the setting", || {
        std::fs::read_to_string(&settings).ok().filter(|text| text.contains("project = 9000")).map(drop)
    });
    term.wait("the end of the question", |s| !s.contains("Change the budget"));
    term.keys("\x1b");
    term.wait("the end of the list", |s| !s.contains("Project: AGENTS.md"));

    // A character is written after its change was shown.
    say(&mut term, "/personality");
    term.wait_text("Patient teacher");
    term.keys("teacher");
    term.wait_text("You are a patient teacher");
    term.keys("\r");
    term.wait_text("Write SOUL.md: patient teacher");
    let soul = place.home.join("config/SOUL.md");
    assert!(!soul.exists());
    let_deafness_pass();
    term.keys("y");
    term.wait("the end of the question", |s| !s.contains("Write SOUL.md: patient teacher"));
    soon("SOUL.md", || {
        std::fs::read_to_string(&soul).ok().filter(|s| s.contains("patient teacher")).map(drop)
    });

    // Nothing of it changes the requests of this session; the next one has all of it.
    model.push(Script::new().text("Still here."));
    say(&mut term, "again");
    term.wait_text("Still here.");
    idle(&term);
    model.assert_only_grows();
    assert_eq!(quit(&mut term), 0);
    model.push(Script::new().text("New here."));
    let mut term = place.term(&[], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "who are you?");
    term.wait_text("New here.");
    idle(&term);
    let asked = model.asked();
    let system = |at: usize| asked[at]["system"].to_string();
    for text in ["patient teacher", "Use tabs."] {
        assert!(!system(0).contains(text) && system(asked.len() - 1).contains(text), "{text}");
    }
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn layers_are_edited_at_118x25() {
    layers(118, 25);
}

#[test]
fn layers_are_edited_at_80x24() {
    layers(80, 24);
}
