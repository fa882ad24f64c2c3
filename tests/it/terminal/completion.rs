//! Names that the composer completes: agent definitions and workflows of a folder that was just trusted.

use serde_json::Value;
use tiller_testkit::ScriptServer;

use crate::agents::workflows::trusted;
use crate::common::{Place, says};
use crate::screen::{idle, quit};

const RELEASE: &str = "description: Build and tell\nsteps:\n  - id: build\n    goal: build it\n";

fn completed(cols: u16, rows: u16) {
    let server = ScriptServer::with(|request, _| {
        let body: Value = request.json();
        says(if body["messages"].to_string().contains("build it") { "It is built." } else { "Yes." })
    });
    let place = Place::anthropic(&server);
    place.file(".tiller/workflows/release.yaml", RELEASE);
    place.file(".tiller/agents/scribe.md", "---\ndescription: Writes letters\n---\nWrite well.\n");
    let mut term = trusted(&place, cols, rows);
    // The folder's own agent definition, without a restart.
    term.keys("@scr");
    term.wait("the kind of agent", |s| s.contains("▌ scribe") && s.contains("Writes letters"));
    term.keys("\t");
    term.wait_text("@scribe");
    term.keys("\x15");
    term.wait_gone("@scribe");
    // A command, and then the names that it accepts.
    term.keys("/workf");
    term.wait_text("▌ workflow");
    term.keys("\t");
    term.wait("the workflows", |s| s.contains("▌ release") && s.contains("1 step  Build and tell"));
    term.keys("\t");
    term.wait_text("/workflow release");
    term.keys("\r");
    term.wait_text("Workflow w1 release is done: 1 of 1 steps done");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn names_of_a_folder_that_was_just_trusted_are_completed_at_118x25() {
    completed(118, 25);
}

#[test]
fn names_of_a_folder_that_was_just_trusted_are_completed_at_80x24() {
    completed(80, 24);
}
