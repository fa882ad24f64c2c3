//! Thinking effort from outside: flag, configuration, agent definition, slash command, key, header, and the next start.

use serde_json::{Value, json};
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Wire};

use crate::common::{Place, wait};
use crate::screen::idle;

fn gpt(server: &ScriptServer) -> Place {
    let mut place = Place::new();
    place.wire(Wire::OpenaiResponses, server);
    place.set("TILLER_MODEL", "openai-responses/gpt-6-sol");
    place
}

fn answer(_: &Recorded, _: usize) -> Reply {
    Reply::script(Wire::OpenaiResponses, &Script::new().text("Done."))
}

fn efforts(server: &ScriptServer) -> Vec<Value> {
    // Requests for titles have no tools, and any effort.
    let turns = server.bodies().into_iter().filter(|b| b["tools"].is_array());
    turns.map(|b| b["reasoning"]["effort"].clone()).collect()
}

#[test]
fn exec_takes_it_from_flag_configuration_and_kind_of_agent_and_keeps_it() {
    let server = ScriptServer::with(answer);
    let place = gpt(&server);
    place.config("effort = \"low\"\n");
    let agents = place.home.join("config/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let file = "---\nname: thinker\ndescription: thinks\neffort: max\n---\nThink.\n";
    std::fs::write(agents.join("thinker.md"), file).unwrap();
    place.ok(&["exec", "go"]);
    place.ok(&["exec", "--effort", "high", "go"]);
    place.ok(&["exec", "--continue", "and on"]);
    place.ok(&["exec", "--continue", "--effort", "off", "and on"]);
    place.ok(&["exec", "-m", "openai-responses/gpt-6.1-sol", "--effort", "off", "go"]);
    place.ok(&["agents", "run", "thinker", "go"]);
    let want = ["low", "high", "high", "none", "low", "max"].map(|w| json!(w));
    assert_eq!(efforts(&server), want);
    let bodies = server.bodies();
    for body in &bodies[..4] {
        assert_eq!(
            (&body["tools"], &body["instructions"]),
            (&bodies[0]["tools"], &bodies[0]["instructions"])
        );
    }
    let out = place.run(&["exec", "--effort", "huge", "go"]);
    assert_eq!(out.code, Some(2), "{}", out.stderr);
}

#[test]
fn the_header_shows_it_and_a_command_a_message_and_a_key_change_it() {
    let server = ScriptServer::with(answer);
    let place = gpt(&server);
    let mut term = place.term(&[], 118, 25);
    term.wait_text("gpt-6-sol");
    term.keys("/effort hi");
    term.wait_text("hard problems");
    // The first Enter completes the row, the second sends.
    term.keys("\r");
    term.wait_text("/effort high");
    term.keys("\r");
    // The start screen says it below the composer, the header from the first message on.
    term.wait("the start screen", |s| s.contains("gpt-6-sol high"));
    term.keys("/effort low say it\r");
    wait("the first request", || !efforts(&server).is_empty());
    term.wait_text("Done.");
    // Sent while the turn still runs, the message would belong to it, and to its level.
    idle(&term);
    term.keys("and again\r");
    wait("the second request", || efforts(&server).len() > 1);
    term.keys("\u{18}E");
    term.wait("the next level", |s| s.lines().next().is_some_and(|l| l.contains("gpt-6-sol max")));
    assert_eq!(efforts(&server)[..2], [json!("low"), json!("high")]);
}
