//! What is known of a skill, where a person decides about it, and trials from the screen.

use std::path::Path;

use serde_json::json;
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Term, Wire};

use crate::common::{Place, TILLER, let_escape_pass};
use crate::screen::{idle, quit, say, words};

const DEPLOY: &str = "---\nname: deploy\ndescription: How we deploy\n---\nDeploy it slowly.\n";

/// Loads the skill where it is listed and the task is about it, and changes it on request.
fn server() -> ScriptServer {
    ScriptServer::with(|request: &Recorded, _| {
        let body = request.json();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().map(ToString::to_string).unwrap_or_default();
        let listed = body["system"].to_string().contains("How we deploy");
        let reply = match () {
            () if last.contains("tool_result") => Script::new().text("It is done."),
            () if last.contains("improve the skill") => Script::new().call(
                "m1",
                "skill_manage",
                json!({"action": "patch", "name": "deploy", "old": "slowly", "new": "at once"}),
            ),
            () if listed && last.contains("deploy the new version") => {
                Script::new().call("v1", "skill_view", json!({"name": "deploy"}))
            }
            () => Script::new().text("I do not know how."),
        };
        Reply::script(Wire::Anthropic, &reply)
    })
}

fn place(server: &ScriptServer) -> Place {
    let place = Place::anthropic(server);
    let folder = place.home.join("config/skills/deploy");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), DEPLOY).unwrap();
    place.file("a.txt", "a\n");
    place
}

/// The list says how often a skill was used and what came of it; a key tries it, and the list has the result.
fn from_the_list(columns: u16, rows: u16) {
    let server = server();
    let place = place(&server);
    let mut term = place.term(&["--profile", "full"], columns, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "please deploy the new version");
    term.wait_text("It is done.");
    // The use is counted at the end of the turn.
    idle(&term);
    say(&mut term, "/skills");
    term.wait_text("Type to filter");
    term.keys("deploy");
    let screen = term.wait("the record", |s| words(s).contains("Used once, 1 in turns that succeeded"));
    assert!(!screen.contains("Last trial"), "{screen}");
    term.keys("\x18t");
    let screen = term.wait_text("Type yes:");
    assert!(screen.contains("please deploy the new version"), "{screen}");
    term.keys("yes\r");
    let screen = term.wait_text("Press Enter to return to Tiller");
    assert!(screen.contains("With it") && screen.contains("Without it"), "{screen}");
    term.keys("\r");
    term.wait("the result", |s| words(s).contains("Last trial: with it 1 of 1 runs succeeded"));
    term.keys("\x1b");
    term.wait_gone("Type to filter");
    let_escape_pass();
    assert_eq!(quit(&mut term), 0);
    let shown = place.ok(&["skills", "show", "deploy"]);
    assert!(shown.contains("Last trial: with it 1 of 1") && !shown.contains("of another text"), "{shown}");
}

#[test]
fn a_skill_is_tried_from_the_list_at_118x25() {
    from_the_list(118, 25);
}

#[test]
fn a_skill_is_tried_from_the_list_at_80x24() {
    from_the_list(80, 24);
}

/// The folder of the session counts, wherever the process of the terminal is; Esc runs nothing, and is not seen.
#[test]
fn a_trial_from_the_list_is_of_the_folder_of_the_session() {
    let server = server();
    let place = place(&server);
    place.ok(&["exec", "--profile", "full", "please deploy the new version"]);
    let work = place.work.display().to_string();
    let args = ["-C", work.as_str(), "--profile", "full"];
    let mut term = Term::spawn(Path::new(TILLER), &args, &place.env, &place.user, 118, 25);
    term.wait_text("Type what you want done");
    say(&mut term, "/skills");
    term.wait_text("Type to filter");
    term.keys("deploy");
    term.wait("the record", |s| words(s).contains("Used once"));
    term.keys("\x18t");
    let screen = term.wait_text("Type yes:");
    assert!(screen.contains("please deploy the new version"), "{screen}");
    term.keys("\x1b");
    let screen = term.wait_text("Press Enter to return to Tiller");
    assert!(screen.contains("Nothing was run") && !screen.contains("^["), "{screen}");
    term.keys("\x1b");
    term.wait_text("Used once");
    let_escape_pass();
    term.keys("\x1b");
    term.wait_gone("Used once");
    let_escape_pass();
    assert_eq!(quit(&mut term), 0);
}

/// A word is the skill of that name, whatever the repository has in a folder that is called so.
#[test]
fn a_name_is_the_skill_and_not_a_folder() {
    let server = server();
    let place = place(&server);
    place.file("deploy/SKILL.md", "no front matter\n");
    let out = place.run(&["skills", "try", "deploy", "--yes"]);
    assert!(out.stderr.contains("None of your past prompts"), "{out:?}");
    let out = place.run(&["skills", "try", "./deploy", "--yes"]);
    assert!(out.stderr.contains("not valid"), "{out:?}");
}

/// The copy is trusted as the folder is: what came into the folder since it was looked at is not run in the copy.
#[test]
fn a_trial_runs_nothing_that_came_after_the_folder_was_trusted() {
    let server = server();
    let place = Place::anthropic(&server);
    place.file("a.txt", "a\n");
    place.file(".tiller/skills/deploy/SKILL.md", DEPLOY);
    place.ok(&["trust", "--yes"]);
    place.ok(&["exec", "--profile", "full", "please deploy the new version"]);
    let asked = server.bodies().len();
    let mut term = place.term(&["skills", "try", "deploy"], 100, 30);
    let screen = term.wait_text("Type yes:");
    assert!(screen.contains("please deploy the new version"), "{screen}");
    place.file(".tiller/skills/late/SKILL.md", "---\nname: late\ndescription: Late\n---\nDo it.\n");
    term.keys("yes\r");
    term.wait("the refusal", |s| words(s).contains("has changed since this folder was trusted"));
    assert_eq!(term.wait_exit(), 2);
    assert_eq!(server.bodies().len(), asked, "no model was asked");
}

/// Before a change is accepted, its question says what is known of the skill, and one key tries the new text.
fn before_it_is_accepted(columns: u16, rows: u16) {
    let server = server();
    let place = place(&server);
    place.ok(&["exec", "--profile", "full", "please deploy the new version"]);
    let mut term = place.term(&["--profile", "full"], columns, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "improve the skill");
    term.wait("the question with what is known", |s| {
        let said = words(s);
        s.contains("[t] try it")
            && said.contains("`deploy` was used once, 1 in turns that succeeded")
            && said.contains("this text was not tried")
            && said.contains("tiller skills try")
            && s.contains("at once")
    });
    let drafts = std::fs::read_dir(place.home.join("cache/skill-drafts")).unwrap();
    let draft: Vec<_> = drafts.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(draft.len(), 1);
    crate::screen::unfold(&mut term);
    crate::common::let_deafness_pass();
    term.keys("t");
    term.wait_text("Type yes:");
    term.keys("yes\r");
    term.wait_text("Press Enter to return to Tiller");
    term.keys("\r");
    term.wait_text("[t] try it");
    let folder = place.home.join("config/skills/deploy/SKILL.md");
    assert_eq!(std::fs::read_to_string(&folder).unwrap(), DEPLOY, "a trial changes nothing");
    crate::common::let_deafness_pass();
    term.keys("y");
    term.wait_text("It is done.");
    assert_eq!(quit(&mut term), 0);
    assert!(std::fs::read_to_string(&folder).unwrap().contains("at once"));
    let shown = place.ok(&["skills", "show", "deploy"]);
    assert!(shown.contains("Last trial: with it 1 of 1") && !shown.contains("of another text"), "{shown}");
    assert!(draft.iter().all(|draft| !draft.exists()), "a draft goes with the answer: {draft:?}");
}

#[test]
fn a_change_of_a_skill_is_tried_before_it_is_accepted_at_118x25() {
    before_it_is_accepted(118, 25);
}

#[test]
fn a_change_of_a_skill_is_tried_before_it_is_accepted_at_80x24() {
    before_it_is_accepted(80, 24);
}
