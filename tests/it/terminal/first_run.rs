//! From no model at all to the first answer, without a restart; and changes of settings while the program runs.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tiller_testkit::{Recorded, Reply, Script, ScriptServer, Term, Wire};

use crate::common::{Place, says, wait};
use crate::screen::{idle, say, type_in};

/// A local server as people run it: a list of models, and an answer.
fn local(models: &'static [&'static str]) -> ScriptServer {
    ScriptServer::with(move |r: &Recorded, _| match (r.method.as_str(), r.path.as_str()) {
        ("GET", "/v1/models") => {
            let rows: Vec<_> = models.iter().map(|id| json!({"id": id})).collect();
            Reply::status(200).json(&json!({"data": rows}))
        }
        ("POST", "/v1/chat/completions") => {
            Reply::script(Wire::OpenaiChat, &Script::new().text("A walnut on the table."))
        }
        _ => Reply::status(404).bytes("no such page"),
    })
}

/// The workbench without any model, with a prompt that was sent too early.
fn too_early(place: &Place, prompt: &str) -> Term {
    let mut term = place.term(&[], 100, 30);
    term.wait_text("No model is set up yet");
    term.keys("\x1b");
    term.wait_gone("No model is set up yet");
    say(&mut term, prompt);
    term.wait_text("No model is set up yet");
    term
}

fn leave(term: &mut Term) {
    idle(term);
    term.keys("\x04");
    assert_eq!(term.wait_exit(), 0);
}

#[test]
fn a_server_is_tried_kept_and_gets_the_prompt_that_waited() {
    let server = local(&["nut-small", "nut-large"]);
    let place = Place::new();
    let mut term = too_early(&place, "what is on the table?");
    term.keys("2");
    term.wait_gone("Use the built-in demo model");
    type_in(&mut term, &server.url());
    assert_eq!(server.count(), 0, "nothing is asked before the yes");
    term.keys("\r");
    // Several models: the person selects one; then the waiting message is sent by itself.
    term.wait("the models", |s| s.contains("2 server/nut-small") && s.contains("1 server/nut-large"));
    assert!(!server.requests().iter().any(|r| r.text().contains("on the table")), "the prompt waits");
    term.keys("2");
    term.wait_text("A walnut on the table.");
    let asked = server
        .requests()
        .into_iter()
        .rfind(|r| r.method == "POST" && r.text().contains("\"tools\""))
        .unwrap();
    assert_eq!(asked.json()["model"], "nut-small");
    assert!(asked.text().contains("what is on the table?"));
    leave(&mut term);
    // The selection is stored: the session continues with that model.
    let config = std::fs::read_to_string(place.home.join("config/config.toml")).unwrap();
    assert!(config.contains("[providers.server]"), "{config}");
    assert!(config.contains("model = \"server/nut-small\""), "{config}");
    assert_eq!(place.ok(&["exec", "--continue", "and now?"]), "A walnut on the table.\n");
    assert_eq!(server.bodies().last().unwrap()["model"], "nut-small");
}

#[test]
fn a_key_that_is_refused_is_told_and_a_right_one_is_kept_and_used() {
    let server = ScriptServer::with(|r: &Recorded, _| match r.method.as_str() {
        "GET" if r.header("x-api-key") == Some("sk-ant-the-right-one-0123") => {
            Reply::status(200).json(&json!({"data": []}))
        }
        "GET" => {
            let error = json!({"type": "authentication_error", "message": "invalid x-api-key"});
            Reply::status(401).json(&json!({"type": "error", "error": error}))
        }
        _ => says("It is brown."),
    });
    let mut place = Place::new();
    place.set("ANTHROPIC_BASE_URL", &server.url());
    let mut term = too_early(&place, "which colour?");
    let enter = |term: &mut Term, key: &str| {
        term.keys("1");
        term.wait_text("Which provider is the key for?");
        term.keys("1");
        term.wait_text("Paste the anthropic key");
        term.paste(key);
        term.wait_text("*****");
        crate::common::let_paste_pass(term);
        term.keys("\r");
    };
    enter(&mut term, "sk-ant-a-wrong-one-0123");
    term.wait_text("did not accept this key");
    let file = place.home.join("config/credentials.toml");
    assert!(!std::fs::read_to_string(&file).unwrap_or_default().contains("wrong"));
    enter(&mut term, "sk-ant-the-right-one-0123");
    term.wait_text("It is brown.");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("sk-ant-the-right-one-0123") && !text.contains("wrong"), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    leave(&mut term);
    assert!(!term.showed(0, |s| s.contains("right-one") || s.contains("wrong-one")), "a key is never drawn");
    assert_eq!(place.ok(&["exec", "again?"]), "It is brown.\n");
}

#[test]
fn a_prompt_of_the_command_line_waits_for_the_demo_model_as_well() {
    let place = Place::new();
    let mut term = place.term(&["tell me something"], 100, 30);
    term.wait_text("No model is set up yet");
    term.wait_text("tell me something");
    // Keys typed just when it appears are meant for the composer.
    crate::common::let_deafness_pass();
    term.keys("3");
    term.wait_gone("No model is set up yet");
    wait("the turn", || {
        let list = place.run(&["sessions", "search", "something", "--json"]);
        list.stdout.contains("tell me something")
    });
    term.wait_text("For anything else, choose a real model.");
    idle(&term);
    leave(&mut term);
    // It was a choice: the next start asks nothing, and uses it.
    let mut term = place.term(&[], 100, 30);
    term.wait("the demo model", |s| s.lines().next().is_some_and(|l| l.contains("demo")));
    say(&mut term, "what can you do?");
    // Not what the start screen says of the demo model, too.
    term.wait_text("The folder has");
    idle(&term);
    assert!(!term.showed(0, |s| s.contains("No model is set up yet")), "it was asked again");
    leave(&mut term);
}

#[test]
fn settings_keys_and_themes_are_read_again_while_it_runs() {
    let server = ScriptServer::start([]);
    let mut place = Place::anthropic(&server);
    place.set("COLORTERM", "truecolor");
    let term = place.term(&[], 100, 30);
    term.wait_text("Type what you want done");
    // Settings: ASCII frames.
    place.config("[ui]\nascii = true\n");
    term.wait("ASCII frames", |s| !s.contains('\u{2500}') && s.contains("T I L L E R"));
    // An error is reported with its line, and the last valid settings stay.
    let ascii = term.written();
    place.config("[ui]\nascii = false\nasci = 1\n");
    term.wait_text("config.toml:3");
    // A setting of the engine only is reported by name.
    place.config("[ui]\nascii = true\n[limits]\nturns = 9\n");
    term.wait_text("Settings reloaded: limits");
    assert!(!term.showed(ascii, |s| s.contains('\u{2500}')), "half of a file with a mistake was taken");
    // Keys: an error, then a valid key.
    let keys = place.home.join("config/keys.toml");
    std::fs::write(&keys, "[global]\nf7 = \"no.such\"\n").unwrap();
    term.wait("the line of the mistake", |s| s.contains("keys.toml:2"));
    std::fs::write(&keys, "[global]\nf7 = \"help.open\"\n").unwrap();
    // The footer names the new key as soon as the keymap applies.
    term.wait("the new key", |s| s.contains("F7 help"));
    let mut term = term;
    term.keys("\x1b[18~");
    term.wait("help by the new key", |s| s.contains("Type to search all keys"));
    term.keys("\x1b");
    // Themes: one of the person's own, changed while the screen runs.
    let theme = place.home.join("config/themes/mine.toml");
    std::fs::create_dir_all(theme.parent().unwrap()).unwrap();
    std::fs::write(&theme, "inherits = \"ansi\"\n[roles]\ntext = \"#010203\"\naccent = \"#010203\"\n")
        .unwrap();
    place.config("[ui]\nascii = true\ntheme = \"mine\"\n");
    wait("the theme's colour", || String::from_utf8_lossy(&term.raw()).contains("38;2;1;2;3"));
    std::fs::write(&theme, "inherits = \"ansi\"\n[roles]\ntext = \"#040506\"\naccent = \"#040506\"\n")
        .unwrap();
    wait("the theme's new colour", || String::from_utf8_lossy(&term.raw()).contains("38;2;4;5;6"));
    std::fs::write(&theme, "inherits = \"ansi\"\n[roles]\ntext = 7\n").unwrap();
    term.wait("the theme's mistake", |s| s.contains("mine.toml"));
}

#[test]
fn a_yes_to_a_folder_brings_its_settings_in_at_once_and_at_the_next_start() {
    let server = ScriptServer::start([]);
    let mut place = Place::anthropic(&server);
    place.set("COLORTERM", "truecolor");
    place.file(".tiller/config.toml", "[ui]\ntheme = \"gruvbox-dark\"\n[limits]\nturns = 3\n");
    place.file(".tiller/permissions.yaml", "allow:\n  - terminal(cargo test*)\n  - '((('\n");
    let colours = |term: &Term| String::from_utf8_lossy(&term.raw()).contains("38;2;");
    let mut term = place.term(&[], 100, 30);
    term.wait_text(".tiller/permissions.yaml");
    assert!(!colours(&term), "nothing of it before the yes");
    crate::common::let_deafness_pass();
    term.keys("t");
    term.wait_gone(".tiller/permissions.yaml");
    wait("the project's theme", || colours(&term));
    // The invalid rule is reported too (possibly below other lines): the log has it.
    term.keys("\x18e");
    // The toast shows it as well: wait for the log before closing it.
    term.wait("the log", |s| s.contains("Errors and notices") && s.contains("permissions.yaml, line"));
    term.keys("\x1b");
    crate::common::let_escape_pass();
    term.wait_gone("Errors and notices");
    leave(&mut term);
    let again = place.term(&[], 100, 30);
    again.wait_text("Type what you want done");
    let raw = String::from_utf8_lossy(&again.raw()).into_owned();
    let (colour, text) = (raw.find("38;2;"), raw.find("Type what you want done"));
    assert!(
        colour.is_some() && colour < text,
        "the theme is there from the first frame on: {colour:?} {text:?}"
    );
}
