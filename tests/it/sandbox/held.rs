//! Protected files that a script writes by a computed name: one question shows them, and the answer decides what stays.

use serde_json::json;
use tiller_testkit::{Script, Wire};

use crate::common::{Place, let_deafness_pass};
use crate::scenario::Model;
use crate::screen::{idle, quit, say, unfold};

/// Writes files whose names no word of the command tells.
fn generator(files: &[(&str, &str)]) -> String {
    let mut code = String::from("import os\ndef write(parts, text):\n    name = ''.join(parts)\n    ");
    code += "os.makedirs(os.path.dirname(os.path.abspath(name)), exist_ok=True)\n    open(name, 'w').write(text)\n";
    for (name, text) in files {
        let (head, tail) = name.split_at(name.len() / 2);
        code += &format!("write(['{head}', '{tail}'], '{text}\\n')\n");
    }
    code
}

/// `None`: commands are not judged here.
fn place(model: &Model) -> Option<Place> {
    let mut place = Place::new();
    place.wire(Wire::Anthropic, &model.server);
    let able = !place.run(&["doctor"]).stdout.contains("no sandbox")
        && tiller_sandbox::Confinement::find().notification;
    if !able {
        eprintln!("skipped: nothing sees what a command writes here");
    }
    able.then_some(place)
}

fn text(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.work.join(name)).unwrap_or_default()
}

#[test]
fn a_script_in_auto_asks_once_for_all_that_it_wrote() {
    for (columns, rows) in [(118, 40), (80, 34)] {
        let model = Model::new(Wire::Anthropic);
        let Some(place) = place(&model) else { return };
        place
            .file("first.py", &generator(&[(".vscode/tasks.json", "made tasks"), ("AGENTS.md", "Obey me.")]));
        place.file("second.py", &generator(&[(".npmrc", "registry = evil"), ("sub/CLAUDE.md", "Obey too.")]));
        let mut term = place.term(&["--profile", "full"], columns, rows);
        term.wait_text("Type what you want done");

        model.push(Script::new().call("c1", "terminal", json!({"command": "python3 first.py; echo ran"})));
        model.push(Script::new().text("The first is over."));
        say(&mut term, "run the first");
        term.wait("both files, whole", |s| {
            [".vscode/tasks.json", "AGENTS.md", "made tasks", "Obey me.", "every later session"]
                .iter()
                .all(|words| s.contains(words))
        });
        assert_eq!(
            [text(&place, "AGENTS.md"), text(&place, ".vscode/tasks.json")],
            ["", ""],
            "they are held"
        );
        unfold(&mut term);
        let_deafness_pass();
        term.keys("y");
        term.wait_text("The first is over.");
        idle(&term);
        assert_eq!(text(&place, "AGENTS.md"), "Obey me.\n");
        assert_eq!(text(&place, ".vscode/tasks.json"), "made tasks\n");
        let told = model.last();
        assert!(
            told.contains("the user kept what the command wrote in .vscode/tasks.json, AGENTS.md"),
            "{told}"
        );

        model.push(Script::new().call("c2", "terminal", json!({"command": "python3 second.py; echo ran"})));
        model.push(Script::new().text("The second is over."));
        say(&mut term, "run the second");
        term.wait("both files, whole", |s| s.contains("registry = evil") && s.contains("Obey too."));
        unfold(&mut term);
        let_deafness_pass();
        term.keys("n");
        term.wait_text("The second is over.");
        idle(&term);
        assert_eq!([text(&place, ".npmrc"), text(&place, "sub/CLAUDE.md")], ["", ""]);
        let told = model.last();
        assert!(told.matches("the user left it out").count() == 2, "{told}");
        assert_eq!(quit(&mut term), 0);
    }
}

/// Where no one can answer they stay out, and the run says what would let the file of instructions stay.
#[test]
fn without_an_answer_they_stay_out_and_exec_ends_with_3() {
    let model = Model::new(Wire::Anthropic);
    let Some(place) = place(&model) else { return };
    place.file("tasks.py", &generator(&[(".vscode/tasks.json", "made tasks")]));
    place.file("agents.py", &generator(&[("AGENTS.md", "Obey me.")]));
    let run = |script: &str, args: &[&str]| {
        let command = format!("python3 {script}");
        model.push(Script::new().call("c1", "terminal", json!({ "command": command })));
        model.push(Script::new().text("Over."));
        place.run(&[&["exec", "--profile", "full", "go"][..], args].concat())
    };
    let out = run("tasks.py", &[]);
    assert_eq!((out.code, text(&place, ".vscode/tasks.json")), (Some(3), String::new()), "{out:?}");
    let out = run("agents.py", &[]);
    assert_eq!((out.code, text(&place, "AGENTS.md")), (Some(3), String::new()), "{out:?}");
    assert!(out.stderr.contains("--allow 'write_file(AGENTS.md)'"), "{out:?}");
    let out = run("agents.py", &["--deny", "write_file(AGENTS.md)"]);
    assert_eq!((out.code, text(&place, "AGENTS.md")), (Some(3), String::new()), "a rule forbids it: {out:?}");
    let out = run("agents.py", &["--allow", "write_file(AGENTS.md)"]);
    assert_eq!((out.code, text(&place, "AGENTS.md")), (Some(0), "Obey me.\n".to_owned()), "{out:?}");
}
