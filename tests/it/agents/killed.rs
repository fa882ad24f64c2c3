//! Fault S1 with running agents: the program is killed, and the agents are continued by key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tiller_testkit::{Reply, Script, ScriptServer, Term, Wire};

use crate::common::{Place, at_work, says, shell, wait, wait_nothing_at_work};
use crate::screen::{choose, idle, quit, say};

const AGENTS: usize = 5;

/// The number of the agent that sent the request; `None`: the main one.
fn job(body: &Value) -> Option<usize> {
    let task = body["messages"][0]["content"].to_string();
    (1..=AGENTS).find(|n| task.contains(&format!("job number {n}")))
}

fn results(body: &Value) -> usize {
    body["messages"].to_string().matches("tool_result").count()
}

/// Each agent writes a marker with a command, and then never finishes its reply; the last one is still running its
/// command. After `later` is set, each finishes at once.
fn server(later: &Arc<AtomicBool>) -> ScriptServer {
    let later = Arc::clone(later);
    ScriptServer::with(move |request, _| {
        let body = request.json();
        match (job(&body), results(&body)) {
            (None, 0) if body.to_string().contains("start five") => {
                let start = (1..=AGENTS).fold(Script::new().text("I start them."), |s, n| {
                    let task = json!({"goal": format!("job number {n}"), "label": format!("job {n}")});
                    s.call(&format!("s{n}"), "spawn_agent", task)
                });
                Reply::script(Wire::Anthropic, &start)
            }
            (None, _) => says("They are at it."),
            (Some(AGENTS), 0) => shell("c1", &format!("echo {AGENTS} >> marks.txt; sleep 86398")),
            (Some(n), 0) => shell("c1", &format!("echo {n} >> marks.txt")),
            (Some(n), _) if later.load(Ordering::SeqCst) => says(&format!("Job {n} is finished.")),
            (Some(_), _) => Reply::silence(),
        }
    })
}

fn marks(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(place.work.join("marks.txt")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The row of an agent in the panel.
fn row(screen: &str, n: usize) -> String {
    crate::screen::agent_row(screen, &format!("a{n} "))
}

fn workbench(place: &Place, more: &[&str], cols: u16, rows: u16) -> Term {
    let mut args = vec!["--profile", "full"];
    args.extend(more);
    place.term(&args, cols, rows)
}

fn killed(cols: u16, rows: u16) {
    let later = Arc::new(AtomicBool::new(false));
    let server = server(&later);
    let place = Place::anthropic(&server);
    place.config(&format!("[agents]\nrunning = {AGENTS}\n"));
    let mut term = workbench(&place, &[], cols, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "start five");
    term.wait_text("They are at it.");
    let asked = |at: usize| {
        let bodies = server.bodies();
        (1..=AGENTS)
            .map(|n| bodies.iter().filter(|b| job(b) == Some(n) && results(b) >= at).count())
            .collect()
    };
    wait("four that think, and one at its command", || {
        let thinking: Vec<usize> = asked(1);
        thinking[..AGENTS - 1].iter().all(|n| *n == 1) && marks(&place).len() == AGENTS
    });
    term.kill();
    wait("the end of the command", || !at_work(&place).iter().any(|(_, line)| line.contains("sleep")));
    let before: Vec<usize> = asked(0);
    later.store(true, Ordering::SeqCst);

    let mut term = workbench(&place, &["-c"], cols, rows);
    // Everything that was shown is there again.
    term.wait_text("They are at it.");
    assert_eq!(asked(0) as Vec<usize>, before, "nobody goes on unasked");
    term.keys("\x1b3");
    term.wait_text("K stop all");
    term.wait("all of them", |s| (1..=AGENTS).all(|n| row(s, n).contains("interrupted")));
    choose(&mut term, "a1 ");
    term.keys("u");
    term.wait("the first", |s| s.contains("Finished 1"));
    choose(&mut term, "a2 ");
    term.keys("u");
    term.wait("the second", |s| s.contains("Finished 2"));
    let alone: Vec<usize> = asked(0);
    assert_eq!(alone[2..], before[2..], "one key, one agent");
    term.keys("U");
    term.wait("the others", |s| s.contains(&format!("Finished {AGENTS}")));
    // No command ran twice, and none is missing: each agent continued with its stored result.
    let expected: Vec<String> = (1..=AGENTS).map(|n| n.to_string()).collect();
    assert_eq!(marks(&place), expected);
    let bodies = server.bodies();
    for n in 1..=AGENTS {
        let last = bodies.iter().rfind(|b| job(b) == Some(n)).unwrap();
        assert_eq!(results(last), 1, "{last}");
        assert_eq!(
            bodies.iter().filter(|b| job(b) == Some(n) && results(b) == 0).count(),
            1,
            "job {n} began once"
        );
    }
    // Escapes before it would belong to it where a busy program reads all of them at once.
    term.keys("\x1b0");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
    wait_nothing_at_work(&place);
}

#[test]
fn s1_five_agents_at_a_kill_go_on_by_key_at_118x25() {
    killed(118, 25);
}

#[test]
fn s1_five_agents_at_a_kill_go_on_by_key_at_80x24() {
    killed(80, 24);
}

/// Fault A3 with a real kill: the program is killed at a random moment while agents run commands, some of which leave
/// their session; no process is left.
fn orphans(trials: u64) {
    let mut seed = crate::common::Seed(20_261_122);
    for trial in 0..trials {
        let server = ScriptServer::with(|request, _| {
            let body = request.json();
            match (job(&body), results(&body)) {
                (None, 0) => Reply::script(
                    Wire::Anthropic,
                    &(1..=3).fold(Script::new().text("I start them."), |s, n| {
                        s.call(&format!("s{n}"), "spawn_agent", json!({"goal": format!("job number {n}")}))
                    }),
                ),
                (None, _) => shell("m", "sleep 86398"),
                (Some(1), 0) => shell("c", "sleep 86398 & sleep 86398"),
                (Some(2), 0) => {
                    shell("c", "setsid sleep 86398 & setsid -f sh -c 'sleep 86398; true'; sleep 86398")
                }
                (Some(_), 0) => shell("c", "env -i sleep 86398"),
                _ => says("Done."),
            }
        });
        let place = Place::anthropic(&server);
        let mut cmd = place.tiller(&["exec", "--profile", "full", "go"]);
        cmd.stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let mut run = cmd.spawn().unwrap();
        // From its start to the time when all run, and a little more.
        if trial % 2 == 0 {
            wait("all of them", || at_work(&place).iter().filter(|(_, l)| l.contains("86398")).count() >= 5);
        }
        crate::common::let_pass(std::time::Duration::from_millis(seed.next().unwrap() % 400));
        run.kill().unwrap();
        run.wait().unwrap();
        let gone = crate::common::poll(crate::common::TIMEOUT, || at_work(&place).is_empty().then_some(()));
        assert!(gone.is_some(), "trial {trial}: orphans: {:?}", at_work(&place));
    }
}

#[test]
fn a3_a_killed_program_leaves_nothing_of_its_agents() {
    orphans(4);
}

#[test]
#[ignore = "40 kills"]
fn a3_killed_forty_times() {
    orphans(40);
}
