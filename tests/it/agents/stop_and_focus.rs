//! Work that outlives a stop, and the panel that has the keys while the terminal changes its size.

use serde_json::{Value, json};
use tiller_testkit::{Reply, ScriptServer, Term};

use crate::common::{Place, calls, says};
use crate::screen::{agent_row, confirm, press_until, say};

fn task(body: &Value) -> String {
    body["messages"][0]["content"].to_string()
}

fn server() -> ScriptServer {
    ScriptServer::with(|request, _| {
        let body = request.json();
        let (task, all) = (task(&body), body["messages"].to_string());
        let has = |text: &str| task.contains(text);
        match () {
            () if has("wait for the") => Reply::silence(),
            () if all.contains("tool_result") || !has("part the work") => says("Yes."),
            () => {
                let goals = ["wait for the rain", "wait for the sun"].map(|goal| json!({"goal": goal}));
                calls("d1", "delegate_task", json!({"tasks": goals}))
            }
        }
    })
}

fn parted(place: &Place, cols: u16, rows: u16) -> Term {
    let mut term = place.term(&["--profile", "auto-edit"], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "part the work");
    term.wait("both are at work", |s| s.contains("3 at work"));
    term
}

fn stopped(cols: u16, rows: u16) {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = parted(&place, cols, rows);
    // One Escape stops the turn, and says that the agents go on. (The question after the next one is tested in
    // `tiller-tui`: it is asked for some seconds only, which a busy machine may need.)
    term.keys("\x1b");
    term.wait_text("2 agents go on in the background");
    term.wait("only the agents work", |s| s.contains("2 at work"));
    say(&mut term, "are you there?");
    term.wait_text("Yes.");
    // All of it is stopped by a key of its own.
    term.keys("\x1b3");
    press_until(&mut term, "K", |s| s.contains("Stop everything?"));
    confirm(&mut term, "Stop everything?", "[y] stop everything", "y");
    term.wait("they are ended", |s| !s.contains("at work"));
}

#[test]
fn one_escape_stops_the_turn_and_its_agents_go_on_at_118x25() {
    stopped(118, 25);
}

#[test]
fn one_escape_stops_the_turn_and_its_agents_go_on_at_80x24() {
    stopped(80, 24);
}

/// Seen: after shrinking, `k` and `k` ended an agent that was not on the screen.
#[test]
fn a_panel_that_is_not_drawn_takes_no_keys() {
    let server = server();
    let place = Place::anthropic(&server);
    let mut term = parted(&place, 118, 25);
    term.keys("\x1b3");
    term.wait_text("k end");
    crate::screen::choose(&mut term, " a1 wait");
    // Where one view is shown at a time it is this one.
    term.resize(80, 24);
    term.wait("the panel alone", |s| agent_row(s, "a1 wait").contains("●") && s.contains("k end"));
    // Where there is no room for a view the composer has the keys.
    term.resize(28, 20);
    term.wait_text("is too small");
    term.keys("kkkk");
    term.wait("the keys in the composer", |s| s.contains("kkkk"));
    term.resize(118, 25);
    term.wait("wide again", |s| s.contains("kkkk") && s.contains("3 at work"));
    assert!(!term.screen().contains("again to end"), "{}", term.screen());
}
