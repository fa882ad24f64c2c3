//! The diff review of binary files.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, wait};
use crate::scenario::Model;
use crate::screen::{idle, say};

fn binary(cols: u16, lines: u16) {
    let model = Model::new(Wire::Anthropic);
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let (file, bytes) = (place.work.join("logo.bin"), [0u8, 159, 146, 150, 10, 0, 255]);
    std::fs::write(&file, bytes).unwrap();
    let mut term = place.term(&["--profile", "full"], cols, lines);
    term.wait_text("Type what you want done");
    let patch = "*** Begin Patch\n*** Delete File: logo.bin\n*** End Patch";
    // The first call fails because the file was not read, and is repeated.
    for id in ["c1", "c2"] {
        model.push(Script::new().call(id, "patch", json!({ "patch": patch })));
    }
    model.push(Script::new().text("The logo is gone."));
    say(&mut term, "delete the logo");
    term.wait_text("The logo is gone.");
    idle(&term);
    assert!(!file.exists());

    term.keys("\x18d");
    term.wait("the reason", |s| {
        crate::screen::words(s).contains("Not a text file: only the whole file can be reverted")
    });
    crate::common::let_deafness_pass();
    term.keys("R");
    wait("the file as it was", || std::fs::read(&file).is_ok_and(|b| b == bytes));
    term.wait("that it can be undone", |s| {
        s.contains("No changes of this turn are left") && s.contains("z undo")
    });
    term.keys("z");
    wait("the file is gone again", || !file.exists());
    term.wait("the reason", |s| {
        crate::screen::words(s).contains("Not a text file: only the whole file can be reverted")
    });
    term.keys("\x1b");
    term.wait_gone("Not a text file");
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn a_deleted_binary_file_comes_back_at_118x25() {
    binary(118, 25);
}

#[test]
fn a_deleted_binary_file_comes_back_at_80x24() {
    binary(80, 24);
}
