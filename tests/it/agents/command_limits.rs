//! Fault T6: an agent's command would exhaust the machine; it is ended, and the person types meanwhile. The commands of
//! the test stop by themselves before they do harm, and the limits of the test are lower still.

use std::time::{Duration, Instant};

use tiller_testkit::ScriptServer;

use crate::common::{Place, at_work, says, shell, wait};
use crate::screen::{idle, quit, say};

/// Starts two copies of itself, nine levels deep: a thousand processes at most.
const BOMB: &str = "b() { [ $1 -le 0 ] || { b $(($1-1)) & b $(($1-1)) & }; sleep 86396; }; b 9";

/// Half a gigabyte at most, for some minutes. It starts no process, which would outlive it where it is killed late.
const HOG: &str =
    "awk 'BEGIN { s = \"x\"; for (i = 0; i < 29; i++) s = s s; for (j = 0; j < 86396 * 86396; j++) ; }'";

/// Characters that are typed into one line.
const MOST: usize = 60;

/// Types while it runs; returns how long each key took to appear, in milliseconds.
fn story(command: &str, why: &str) -> Vec<f64> {
    let server = ScriptServer::with(|request, _| {
        let talk = request.json()["messages"].to_string();
        match () {
            () if !talk.contains("run away") => says("Yes."),
            () if talk.contains("tool_result") => says("It was too much."),
            () => shell("c1", "bash runs-away.sh"),
        }
    });
    let place = Place::anthropic(&server);
    // In a file, since such a command line would need approval.
    place.file("runs-away.sh", command);
    place.config("[limits]\ncommand_processes = 100\ncommand_memory = 1\n");
    let mut term = place.term(&["--profile", "full"], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn run away");
    wait("its command", || server.count() > 0);
    let mut echo = Vec::new();
    let mut typed = String::from("zq");
    term.keys("zq");
    while !server.bodies().iter().any(|b| b["messages"].to_string().contains("tool_result")) {
        if typed.len() >= MOST {
            // A longer line would wrap, and the end of what was typed would stand on two lines.
            typed = String::from("zq");
            term.keys("\x15zq");
            term.wait("an empty line", |s| s.lines().any(|l| l.trim_end().ends_with("▌ zq")));
        }
        let key = char::from(b'a' + u8::try_from(typed.len() * 7 % 26).unwrap());
        typed.push(key);
        let began = Instant::now();
        term.keys(&key.to_string());
        term.wait_text(&typed);
        echo.push(began.elapsed().as_secs_f64() * 1e3);
        crate::common::let_pass(Duration::from_millis(30));
        assert!(echo.len() < 2_000, "it was never ended:\n{}", term.screen());
    }
    let told = server.bodies().iter().any(|b| b["messages"].to_string().contains(why));
    assert!(told, "the agent hears why: {:?}", server.bodies().last().map(|b| b["messages"].to_string()));
    wait("nothing of it is left", || !at_work(&place).iter().any(|(_, line)| line.contains("86396")));
    term.keys("\x15");
    term.wait("its end", |s| s.lines().any(|l| l.contains("a1 ") && l.contains("done")));
    idle(&term);
    assert_eq!(quit(&mut term), 0);
    echo
}

fn figures(what: &str, mut echo: Vec<f64>) {
    echo.sort_by(f64::total_cmp);
    let at = |part: usize| echo.get(echo.len() * part / 100).copied().unwrap_or(0.0);
    eprintln!(
        "{what}: {} keys, p50 {:.1} ms, p95 {:.1} ms, longest {:.1} ms",
        echo.len(),
        at(50),
        at(95),
        at(99)
    );
}

#[test]
fn t6_a_fork_bomb_of_an_agent_is_ended_while_the_person_types() {
    figures("fork bomb", story(BOMB, "more than 100 processes at once"));
}

#[test]
fn t6_a_memory_hog_of_an_agent_is_ended_while_the_person_types() {
    figures("memory hog", story(HOG, "(limits.command_memory), so the largest was killed"));
}
