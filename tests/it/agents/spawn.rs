//! Agents: their definitions, and how the screen shows them.

use tiller_testkit::{Reply, ScriptServer};

use crate::common::{Place, calls, says, shell};
use crate::screen::{agent_row, idle, quit, say, type_in};

fn definition(description: &str, lines: &str) -> String {
    format!("---\ndescription: {description}\n{lines}\n---\nDo it well.\n")
}

#[test]
fn definitions_are_listed_and_a_bad_one_is_told_and_leaves_nothing_in_its_place() {
    let place = Place::new();
    let names = |place: &Place| -> Vec<String> {
        let name = |line: &serde_json::Value| line["name"].as_str().unwrap().to_owned();
        place.lines(&["agents", "list", "--json"]).iter().map(name).collect()
    };
    let built_in = names(&place);
    assert!(built_in.len() == 9 && built_in.contains(&"coder".to_owned()), "{built_in:?}");
    let own = place.home.join("config/agents");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("coder.md"), definition("\"Mine \\x1b[31m red\"", "tier: fast")).unwrap();
    place.file(".tiller/agents/scribe.md", &definition("Ours", "tools: [read]"));
    // The folder's are available after the yes.
    assert_eq!(names(&place), built_in);
    let listed = place.ok(&["agents", "list"]);
    assert!(
        listed.contains("1 file of this folder's agents and skills left out") && !listed.contains('\u{1b}'),
        "{listed}"
    );
    place.ok(&["trust", "--yes"]);
    let lines = place.lines(&["agents", "list", "--json"]);
    let of = |name: &str| lines.iter().find(|l| l["name"] == name).unwrap();
    assert_eq!((&of("scribe")["from"], &of("coder")["from"]), (&"project".into(), &"user".into()));
    assert_eq!(of("coder")["tier"], "fast");
    place.file(
        ".tiller/skills/verse/SKILL.md",
        "---\nname: verse\ndescription: How verse is made\n---\nRhyme.\n",
    );
    let listed = place.ok(&["agents", "list"]);
    assert!(!listed.contains("How verse is made"), "it came after the yes: {listed}");
    place.ok(&["trust", "--yes"]);
    let listed = place.ok(&["agents", "list"]);
    let skills = listed.split_once("Skills for agents:").map_or("", |(_, skills)| skills);
    assert!(skills.contains("\nverse ") && skills.contains("How verse is made"), "{listed}");
    std::fs::write(own.join("worker.md"), definition("Mine", "toolz: [read]\ntier: fsat")).unwrap();
    let wrong = place.run(&["agents", "list"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    for said in ["worker.md:3:1: unknown key `toolz` (did you mean `tools`?)", "worker.md:4:7: unknown tier"]
    {
        assert!(wrong.stderr.contains(said), "{wrong:?}");
    }
    // The one that it replaces may do more.
    assert!(!wrong.stdout.contains("worker ") && wrong.stdout.contains("scribe "), "{wrong:?}");
    assert!(!wrong.stderr.contains("tiller agents list"), "it is that list: {wrong:?}");
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, Some(2), "{doctor:?}");
    assert!(doctor.stdout.contains("FAIL agents") && doctor.stdout.contains("worker.md:3:1"), "{doctor:?}");
}

#[test]
fn a_turn_as_a_kind_of_agent_has_its_prompt_tools_model_and_limits() {
    let server = ScriptServer::start([
        calls("c1", "list_dir", serde_json::json!({"path": "."})),
        calls("c2", "write_file", serde_json::json!({"path": "b.txt", "content": "x"})),
        says("done"),
    ]);
    let place = Place::anthropic(&server);
    let own = place.home.join("config/agents");
    std::fs::create_dir_all(&own).unwrap();
    let lines = "model: anthropic/claude-haiku-4-5\ntools: [read, edit]\n\
                 permissions: { profile: read-only }\nlimits: { turns: 2 }";
    std::fs::write(own.join("looker.md"), definition("Looks", lines)).unwrap();
    let out = place.run(&["agents", "run", "looker", "what is here?", "--profile", "full"]);
    assert_eq!(out.code, Some(4), "its third request is one too many: {out:?}");
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0]["model"], "claude-haiku-4-5");
    assert!(bodies[0]["system"].to_string().contains("Do it well."), "{}", bodies[0]["system"]);
    let tools: Vec<&str> =
        bodies[0]["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(tools.contains(&"read_file") && !tools.contains(&"terminal"), "{tools:?}");
    assert!(!place.work.join("b.txt").exists(), "its profile is stricter than the flag");
    // It gets the skills that its file names, or an error for missing ones.
    std::fs::write(
        own.join("taught.md"),
        definition("Looks", "model: anthropic/claude-haiku-4-5\nskills: [verse]"),
    )
    .unwrap();
    let missing = place.run(&["agents", "run", "taught", "what is here?"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(
        missing
            .stderr
            .contains("The agent taught uses a skill that does not exist here: there is no skill `verse`")
    );
    let skill = place.home.join("config/skills/verse");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: verse\ndescription: How verse is made\n---\nMake it rhyme.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    place.ok(&["agents", "run", "taught", "what is here?"]);
    let system = server.bodies()[2]["system"].to_string();
    assert!(system.contains("# Skill verse") && system.contains("Make it rhyme."), "{system}");
    let none = place.run(&["agents", "run", "loker", "x"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("There is no agent `loker`; did you mean `looker`"), "{none:?}");
}

/// The last message of the person, or of a parent, in a request.
fn last_words(body: &serde_json::Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let user = messages.iter().rev().find(|m| m["role"] == "user");
    user.map_or_else(String::new, |m| m["content"].to_string())
}

/// A model whose answers depend on the request. `wait` never ends; a title is always the same.
fn crew_server() -> ScriptServer {
    ScriptServer::with(|request, _| {
        let words = last_words(&request.json());
        let has = |text: &str| words.contains(text);
        match () {
            () if has("tool_result") => says("It is written."),
            () if has("which colour") => says("It is brown."),
            () if has("look around") => says("There is a walnut."),
            () if has("write it down") => shell("c1", "touch written.txt"),
            () if has("wait for ever") => Reply::silence(),
            () => says("Yes."),
        }
    })
}

fn opened(cols: u16, lines: u16) {
    let server = crew_server();
    let place = Place::anthropic(&server);
    place.file("walnut.txt", "brown\n");
    let mut term = place.term(&[], cols, lines);
    term.wait_text("Type what you want done");
    // Started by the person with a definition; its end is shown in its row.
    say(&mut term, "/spawn @explorer look around");
    term.keys("\x1b3");
    term.wait("its result", |s| {
        let row = agent_row(s, "a1 ");
        row.contains("✓") && (cols < 100 || !row.is_empty())
    });
    term.keys("j");
    term.keys("\r");
    term.wait("its conversation", |s| s.contains("There is a walnut.") && s.contains("> a1 look around"));
    // It accepts messages as main does, and shows their delivery.
    say(&mut term, "which colour?");
    term.wait("its answer", |s| {
        s.contains("It is brown.") && s.contains("Your message was delivered at step")
    });
    type_in(&mut term, "a draft for it");
    term.keys("\x1b");
    term.wait("main", |s| s.contains("is done: It is brown.") && !s.contains("a draft for it"));
    // Its draft is restored when one returns.
    term.keys("\x1b3");
    term.wait_text("K stop all");
    term.keys("\r");
    term.wait("its draft", |s| s.contains("It is brown.") && s.contains("a draft for it"));
    term.keys("\x15");
    term.keys("\x1b0");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
    // Both agents' requests were sent, each with its own history.
    let asked: Vec<String> = server.bodies().iter().map(last_words).collect();
    assert!(asked.iter().any(|w| w.contains("look around")), "{asked:?}");
}

#[test]
fn an_agent_is_started_opened_talked_to_and_left_at_118x25() {
    opened(118, 25);
}

#[test]
fn an_agent_is_started_opened_talked_to_and_left_at_80x24() {
    opened(80, 24);
}

#[test]
fn its_question_says_whose_it_is_and_its_change_is_its_own() {
    let server = crew_server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn write it down");
    term.wait("its question", |s| s.contains("a1 write it down wants to") && s.contains("touch written.txt"));
    let waits = |s: &str| s.lines().next().is_some_and(|l| l.contains("▲ 1"));
    term.wait("the header", waits);
    // Dismissed, and answered from its row.
    crate::screen::press_until(&mut term, "\x1b", |s| !s.contains(crate::screen::ASKED));
    term.keys("\x1b3");
    term.wait_text("K stop all");
    term.keys("j");
    term.keys("a");
    term.wait_text("▲ a1 ");
    // The dialog ignores keys at first.
    crate::screen::press_until(&mut term, "y", |s| !s.contains("▲ a1 "));
    term.wait("its end", |s| agent_row(s, "a1 ").contains("✓"));
    assert!(place.work.join("written.txt").exists());
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn an_agent_at_work_is_messaged_ended_and_tried_again() {
    let server = crew_server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn wait for ever");
    term.keys("\x1b3");
    term.wait("its row", |s| agent_row(s, "a1 ").contains("●"));
    term.wait_text("K stop all");
    term.keys("j");
    // A message waits for its next step, and is reported as missed when it ends before.
    term.keys("s");
    term.wait_text("Message to a1");
    say(&mut term, "use short words");
    term.wait("the receipt", |s| agent_row(s, "a1 ").contains("queued"));
    term.keys("k");
    term.wait_text("Press the key again to end a1");
    crate::screen::press_again(&mut term, "k", |s| s.contains("a1 wait for ever did not read your message"));
    term.wait("its end", |s| agent_row(s, "a1 ").contains("·") && agent_row(s, "a1 ").contains("missed"));
    // Retried with a note.
    term.keys("r");
    term.wait_text("Retry a1");
    say(&mut term, "look around first");
    term.wait("the new one", |s| agent_row(s, "a2 ").contains("✓"));
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn what_ran_at_a_kill_is_interrupted_and_goes_on_by_key() {
    let server = crew_server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "hello");
    term.wait_text("Yes.");
    say(&mut term, "/spawn wait for ever");
    term.wait("its row", |s| agent_row(s, "a1 ").contains("●"));
    // It is shown a moment before it is stored; a kill in between loses it.
    crate::common::wait("its record", || place.rows("agents").is_some_and(|n| n > 0));
    // The same of the draft: it would come back.
    crate::common::wait("no draft", || !crate::common::state_holds(&place, &["wait for ever"]));
    term.kill();
    let mut term = place.term(&["-c"], 118, 25);
    term.wait("its row after the restart", |s| agent_row(s, "a1 ").contains("interrupted"));
    term.keys("\x1b3");
    term.wait_text("K stop all");
    term.keys("j");
    term.keys("u");
    term.wait("it continues", |s| agent_row(s, "a1 ").contains("●"));
    term.keys("K");
    crate::screen::confirm(&mut term, "Stop everything?", "[y] stop everything", "y");
    term.wait("all have ended", |s| s.contains("Finished 1  1 cancelled"));
    term.keys("\x1b");
    idle(&term);
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn the_same_call_of_two_agents_is_answered_once_for_both() {
    let server = crew_server();
    let place = Place::anthropic(&server);
    let mut term = place.term(&[], 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn write it down");
    term.wait("the first question", |s| s.contains("a1 write it down wants to"));
    crate::screen::press_until(&mut term, "\x1b", |s| !s.contains(crate::screen::ASKED));
    say(&mut term, "/spawn write it down, too");
    term.wait("the second question", |s| s.contains("▲ a1 ") || s.contains("▲ a2 "));
    let both = |s: &str| s.contains("(for 2 agents)") && s.contains("Also for: ");
    term.wait("both in one", both);
    crate::screen::unfold(&mut term);
    crate::screen::press_until(&mut term, "y", |s| !s.contains(crate::screen::ASKED));
    term.wait("their end", |s| s.contains("✓ a1 write it down ") && s.contains("✓ a2 write it down, too"));
    assert!(place.work.join("written.txt").exists());
}
