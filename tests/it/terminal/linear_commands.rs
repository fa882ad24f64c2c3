//! Features of the full screen in linear text: going back, its commands, agents.

use std::time::Duration;

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, poll, wait, wait_nothing_at_work};
use crate::scenario::Model;

fn place(model: &Model) -> Place {
    let mut place = Place::new();
    place.wire(model.wire, &model.server);
    place
}

#[test]
fn going_back_is_read_out_done_and_taken_back() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    place.file("a.txt", "A\n");
    model.push(Script::new().call("c1", "write_file", json!({"path": "b.txt", "content": "B\n"})));
    model.push(Script::new().text("It is written."));
    let mut term = place.term(&["--plain", "--profile", "auto-edit"], 100, 60);
    term.wait_text("Session started");
    term.keys("/rewind 1\r");
    term.wait_text("Failed: No list was shown yet.");
    term.keys("write the walnut\r");
    term.wait_text("Done.");
    term.keys("/rewind\r");
    term.wait_text("1: write the walnut");
    term.keys("/rewind 1\r");
    let screen = term.wait_text("To revert that: /undo.");
    assert!(screen.contains("Restoring to \"write the walnut\" would change 1 files."), "{screen}");
    assert!(screen.contains("b.txt: plus 0 minus 1"), "{screen}");
    assert!(place.work.join("b.txt").exists(), "it was only said");
    term.keys("/rewind 1 both\r");
    term.wait_text("The conversation continues before this message: write the walnut");
    wait("the file to go", || !place.work.join("b.txt").exists());
    // A command of the full screen, by its name there.
    term.keys("/undo\r");
    wait("the file to come back", || {
        std::fs::read_to_string(place.work.join("b.txt")).is_ok_and(|text| text == "B\n")
    });
    term.keys("/theme\r");
    term.wait_text("/theme needs the full screen");
    term.keys("/exit\r");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn an_agent_is_started_told_something_and_stopped_by_words() {
    let model = Model::new(Wire::Anthropic);
    let place = place(&model);
    let mut term = place.term(&["--plain", "--profile", "full"], 100, 60);
    term.wait_text("Session started");
    term.keys("/agents stop a1\r");
    term.wait_text("Failed: There are no agents.");
    let until = json!({"command": "until [ -e go ]; do sleep 0.1; done", "timeout": 300});
    model.push(Script::new().call("c1", "terminal", until));
    model.push(Script::new().call("c2", "terminal", json!({"command": "sleep 1000", "timeout": 2000})));
    term.keys("/spawn look for the walnut\r");
    term.wait_text("Agent a1");
    term.wait_text("is running");
    term.keys("/tell a1 it is brown\r");
    term.keys("/agents stop a7\r");
    term.wait_text("Failed: Name an agent: a1.");
    // Nothing is printed when the message has arrived; its command ends after that.
    let _ = poll(Duration::from_secs(10), || place.rows("queue").filter(|n| *n > 0));
    place.file("go", "");
    wait("the message with it", || {
        model.asked().iter().any(|r| r["messages"].to_string().contains("it is brown"))
    });
    term.keys("/agents\r");
    term.wait_text("Agents: 2");
    term.keys("/agents stop a1\r");
    term.wait("its end", |s| s.contains("cancelled") || s.contains("stopped"));
    term.keys("/quit\r");
    assert_eq!(term.wait_exit(), 0);
    wait_nothing_at_work(&place);
}
