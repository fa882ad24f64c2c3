//! X4, X18: files of the folder that configure a program of another vendor. The program does not start before the
//! person agrees to them.

use serde_json::json;
use tiller_testkit::{Reply, Script, ScriptServer, Term, Wire};

use crate::common::{Place, says};
use crate::screen::{quit, say};

/// A program that first does what a file of the folder says.
fn toy(place: &Place) {
    let program = place.user.join("toy.sh");
    tiller_testkit::program(&program, "#!/bin/sh\n[ -e .toy/hook ] && sh .toy/hook\necho it is done\n");
    let folder = place.home.join("config/adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let adapter = format!(
        "name = \"toy\"\ntitle = \"Toy\"\n[program]\ncommand = \"{}\"\ninstall = \"nothing\"\nreads = [\".toy\"]\n\
         [headless]\nformat = \"text\"\nargs = []\nlast = [\"{{prompt}}\"]\nprompt = \"argument\"\ncareful = []\n",
        program.display()
    );
    std::fs::write(folder.join("toy.toml"), adapter).unwrap();
    place.file(".toy/hook", "touch canary\n");
}

/// Answers the question about the folder's files with this key, once it accepts keys.
pub(crate) fn answer_trust(term: &mut Term, key: &str) {
    term.wait_text("Trust this folder?");
    crate::screen::unfold(term);
    crate::screen::press_until(term, key, |s| !s.contains("Trust this folder?"));
    // Keys that were typed after the question are in the composer.
    term.keys("\x15");
}

fn on_the_screen(columns: u16, rows: u16) {
    let server = ScriptServer::with(|_, _| says("not asked"));
    let place = Place::anthropic(&server);
    toy(&place);
    let canary = place.work.join("canary");
    let mut term = place.term(&["--profile", "full"], columns, rows);
    term.wait_text("Type what you want done");
    say(&mut term, "/spawn @toy:headless go");
    term.wait("the question about the file", |s| {
        let words = crate::screen::words(s);
        s.contains("Trust this folder?")
            && words.contains(".toy/hook")
            && words.contains("the program does not start")
    });
    answer_trust(&mut term, "\x1b");
    term.wait_text("Toy was not started");
    assert!(!canary.exists());
    say(&mut term, "/spawn @toy:headless go on");
    answer_trust(&mut term, "t");
    crate::common::wait("the program", || canary.exists());
    // Files that the person agreed to are not asked about again.
    std::fs::remove_file(&canary).unwrap();
    say(&mut term, "/spawn @toy:headless once more");
    crate::common::wait("the program", || canary.exists());
    assert_eq!(quit(&mut term), 0);
}

#[test]
fn x18_files_that_steer_a_program_are_asked_about_at_118x25() {
    on_the_screen(118, 25);
}

#[test]
fn x18_files_that_steer_a_program_are_asked_about_at_80x24() {
    on_the_screen(80, 24);
}

/// Without a person the start fails with an advice, which works as printed.
#[test]
fn x18_without_a_person_a_program_in_an_untrusted_folder_is_refused() {
    let server = ScriptServer::with(|request, _| {
        let text = request.text();
        match text.matches("tool_result").count() {
            0 => {
                let tasks = json!([{"goal": "their job", "cli": "toy:headless"}]);
                let call = Script::new().call("d1", "delegate_task", json!({"tasks": tasks}));
                Reply::script(Wire::Anthropic, &call)
            }
            _ if text.contains("was not started") => says("It did not start."),
            _ => says("It ran."),
        }
    });
    let place = Place::anthropic(&server);
    toy(&place);
    let canary = place.work.join("canary");
    let out = place.run(&["exec", "--profile", "full", "go"]);
    assert!(out.stdout.contains("It did not start."), "{out:?}");
    assert_eq!(out.code, Some(3), "the run was refused, whatever the model makes of it: {out:?}");
    let told = server.requests().last().unwrap().text();
    assert!(told.contains(".toy/hook") && told.contains("tiller trust"), "{told}");
    assert!(!canary.exists());
    let shown = place.ok(&["trust", "--yes"]);
    assert!(shown.contains(".toy/hook") && shown.contains("not trusted"), "{shown}");
    let out = place.run(&["exec", "--profile", "full", "go"]);
    assert!(out.stdout.contains("It ran.") && canary.exists() && out.code == Some(0), "{out:?}");
    assert!(place.ok(&["trust", "--list"]).contains("settings of external programs"));
    // Another content of the file is asked about again.
    std::fs::remove_file(&canary).unwrap();
    place.file(".toy/hook", "touch canary; touch more\n");
    let out = place.run(&["exec", "--profile", "full", "go"]);
    assert!(out.stdout.contains("It did not start.") && !canary.exists(), "{out:?}");
    assert!(place.ok(&["trust", "--list"]).contains("changed"));
}
