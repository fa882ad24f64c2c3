//! `tiller workflow`: checks whole files, and runs workflows to their end.

use tiller_testkit::ScriptServer;

use crate::common::{Place, says};

const SHIP: &str =
    "steps:\n  - id: build\n    goal: build it\n  - id: tell\n    goal: tell of it\n    needs: [build]\n";

#[test]
fn a_file_is_checked_with_the_line_of_each_mistake() {
    let place = Place::new();
    place.file("ship.yaml", SHIP);
    let said = place.ok(&["workflow", "check", "ship.yaml"]);
    assert!(said.starts_with("ship: 2 steps\n") && said.contains("after build"), "{said}");
    for (text, why) in [
        (
            "[[steps]]\nid = \"a\"\ngoal = \"g\"\n\n[[steps]]\nid = \"b\"\ngoal = \"g\"\nneeds = [\"c\"]\n",
            "bad.toml:8:1: ",
        ),
        ("[[steps]]\nid = \"a\"\ngoal = \"g\"\nagent = \"codr\"\n", "did you mean `coder`?"),
        (
            "[[steps]]\nid = \"a\"\ngoal = \"g\"\ncli = \"nonsense\"\n",
            "step a: there is no program `nonsense`",
        ),
        (
            "steps = [{ id = \"a\", goal = \"g\", needs = [\"b\"] }, { id = \"b\", goal = \"g\", needs = [\"a\"] }]\n",
            "a -> b -> a",
        ),
    ] {
        place.file("bad.toml", text);
        let out = place.run(&["workflow", "check", "bad.toml"]);
        assert!(out.code == Some(2) && out.stderr.contains(why), "{why}: {out:?}");
    }
    let out = place.run(&["workflow", "check", "none.toml"]);
    assert!(out.code == Some(2) && out.stderr.contains("none.toml cannot be read"), "{out:?}");
}

/// All errors of a file are reported at once: models, tools, schemas, roles, missing names.
#[test]
fn all_mistakes_of_a_file_are_found_at_once() {
    let place = Place::new();
    let file = "[[steps]]\nid = \"a\"\ngoal = \"g\"\nmodel = \"nobody/x\"\ntools = [\"reed_file\"]\n\n\
                [[steps]]\nid = \"b\"\ngoal = \"g\"\nschema = { type = \"strnig\" }\nneeds = [\"z\"]\n\n\
                [[steps]]\nid = \"c\"\ngoal = \"g\"\nagent = \"codr\"\ncli = \"nonsense\"\n";
    place.file("bad.toml", file);
    let out = place.run(&["workflow", "check", "bad.toml"]);
    assert_eq!(out.code, Some(2), "{out:?}");
    for (line, why) in [
        (4, "the model `nobody/x` cannot be used"),
        (5, "there is no tool or set `reed_file`; did you mean `read_file`?"),
        (10, "the schema is not a valid schema: type cannot be \"strnig\""),
        (11, "depends on z, which does not exist"),
        (16, "there is no agent `codr`; did you mean `coder`?"),
        (17, "there is no program `nonsense`"),
    ] {
        let told = |l: &str| l.contains(&format!("bad.toml:{line}:")) && l.contains(why);
        assert!(out.stderr.lines().any(told), "{line} {why}: {}", out.stderr);
    }
    // An invalid step hides none of the others, and other steps may wait for it.
    let file = "[[steps]]\nid = \"a\"\ngoal = \"g\"\nmodell = \"x\"\n\n\
                [[steps]]\nid = \"b\"\ngoal = \"g\"\ntools = [\"reed_file\"]\nneeds = [\"a\"]\n";
    place.file("bad.toml", file);
    let out = place.run(&["workflow", "check", "bad.toml"]);
    for (line, why) in [(4, "unknown field `modell`"), (9, "there is no tool or set `reed_file`")] {
        let told = |l: &str| l.contains(&format!("bad.toml:{line}:")) && l.contains(why);
        assert!(out.stderr.lines().any(told), "{line} {why}: {}", out.stderr);
    }
    assert!(out.code == Some(2) && !out.stderr.contains("has no goal"), "{out:?}");
    place.file(
        "good.toml",
        "[[steps]]\nid = \"a\"\ngoal = \"g\"\nmodel = \"demo/demo\"\ntools = [\"read\", \"terminal\"]\n",
    );
    place.ok(&["workflow", "check", "good.toml"]);
}

#[test]
fn a_file_is_run_to_its_end_step_by_step() {
    let server = ScriptServer::start([says("It is built."), says("All is told.")]);
    let place = Place::anthropic(&server);
    place.file("ship.yaml", SHIP);
    let out = place.run(&["workflow", "run", "ship.yaml"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(out.stdout, "build done\nIt is built.\ntell done\nAll is told.\n");
    assert!(out.stderr.contains("build running") && out.stderr.contains("tell done"), "{out:?}");
    // Control characters in a step's text reach no terminal.
    server.push(says("It is \u{1b}]0;mine\u{7}built."));
    server.push(says("All \u{1b}[2Jis told."));
    let out = place.run(&["workflow", "run", "ship.yaml"]);
    assert!(out.code == Some(0) && !out.stdout.contains('\u{1b}'), "{out:?}");
    assert!(out.stdout.contains("built.") && out.stdout.contains("is told."), "{out:?}");
    // The script is over: the first step fails, and the other one is skipped.
    let out = place.run(&["workflow", "run", "ship.yaml"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.contains("build failed") && out.stdout.contains("tell skipped"), "{out:?}");
}
