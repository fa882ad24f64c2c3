//! `/init` at a real terminal: AGENTS.md is shown as a difference before it is written, in the mode that asks least too.

use crate::common::{Place, TIMEOUT, let_deafness_pass, poll};
use crate::screen::{idle, quit, say};

fn asked(cols: u16, rows: u16) {
    let place = Place::new();
    place.file("README.md", "# Shop\n\nSells tea.\n");
    place.file("Makefile", "test:\n\ttrue\n");
    let file = place.work.join("AGENTS.md");
    let mut term = place.term(&["-m", "demo/demo", "--profile", "full"], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "/init");
    term.wait("the difference", |s| s.contains("AGENTS.md") && s.contains("Sells tea.") && s.contains("[y]"));
    assert!(!file.exists());
    crate::screen::unfold(&mut term);
    let_deafness_pass();
    term.keys("y");
    assert!(poll(TIMEOUT, || file.exists().then_some(())).is_some());
    term.wait_text("AGENTS.md is written");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn init_asks_in_every_mode_at_118x25() {
    asked(118, 25);
}

#[test]
fn init_asks_in_every_mode_at_80x24() {
    asked(80, 24);
}
