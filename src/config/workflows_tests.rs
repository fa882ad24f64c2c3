use std::path::Path;

use serde_json::json;

use super::{WorkflowSource, parse, stem};

fn read(path: &str, text: &str) -> Result<WorkflowSource, String> {
    parse(Path::new(path), text.as_bytes()).map_err(|p| p.to_string())
}

#[test]
fn both_forms_say_the_same_and_know_their_lines() {
    let toml = "description = \"d\"\n\n[[steps]]\nid = \"a\"\ngoal = \"g\"\n\n[[steps]]\nid = \"b\"\ngoal = \"h\"\n\
                needs = [\"a\"]\nreview = { by = \"reviewer\", rounds = 2 }\n";
    let yaml = "description: d\nsteps:\n  - id: a\n    goal: g\n  - id: b\n    goal: h\n    needs: [a]\n    \
                review: { by: reviewer, rounds: 2 }\n";
    let (t, y) = (read("x/ship.toml", toml).unwrap(), read("x/ship.yaml", yaml).unwrap());
    assert_eq!((t.name.as_str(), y.name.as_str(), t.description.as_str()), ("ship", "ship", "d"));
    let values = |s: &WorkflowSource| s.steps.iter().map(|s| s.value.clone()).collect::<Vec<_>>();
    assert_eq!(values(&t), values(&y));
    assert_eq!(t.steps[1].value["review"], json!({"by": "reviewer", "rounds": 2}));
    let lines = |s: &WorkflowSource| s.steps.iter().map(|s| s.at.0).collect::<Vec<_>>();
    assert_eq!((lines(&t), lines(&y)), (vec![3, 7], vec![3, 5]));
}

#[test]
fn what_is_no_workflow_is_told_with_its_place() {
    for (path, text, why) in [
        ("a.toml", "[[steps]]\nid = \n", "a.toml:2:"),
        ("a.toml", "\nstepz = []\n", "a.toml:2:1: unknown key `stepz`; did you mean `steps`?"),
        ("a.toml", "steps = 3\n", "a.toml:1:9: `steps` is not a list of steps"),
        ("a.toml", "name = 3\n", "`name` is not text"),
        ("a.yaml", "steps:\n  - id: a\n bad\n", "a.yaml:"),
        ("a.yaml", "stepz: []\n", "stepz"),
        ("a.yaml", "steps: 3\n", "a.yaml:1:"),
    ] {
        let said = read(path, text).unwrap_err();
        assert!(said.contains(why), "{why}: {said}");
    }
    assert!(parse(Path::new("a.toml"), b"\xff\xfe").unwrap_err().to_string().contains("not UTF-8"));
    let large = " ".repeat(super::LARGEST + 1);
    assert!(read("a.toml", &large).unwrap_err().contains("larger than 256 KiB"));
}

#[test]
fn files_are_known_by_their_names() {
    let of = ["a/ship.toml", "ship.yaml", "ship.yml", "ship.md", ".toml", "ship"].map(stem);
    assert_eq!(of, [Some("ship"), Some("ship"), Some("ship"), None, None, None]);
}

/// The places are looked for in the text: any key ends the search, and stands within its step.
#[test]
fn keys_of_any_text_have_a_place_in_their_step() {
    for key in [
        "", " ", "\"", "'", "a\"b", "it's", ":", "a:b", "=", "\\", "ä", "日本", "e\u{301}", "goal", "goal\"",
        "\n", "\u{feff}",
    ] {
        let quoted = json!(key).to_string();
        for (file, text) in [
            (
                "a.yaml",
                format!(
                    "steps:\n  - id: a\n  - {quoted}: 1\n    xgoal: g\n    review: {{{quoted}: 2}}\n  - id: z\n"
                ),
            ),
            (
                "a.toml",
                format!(
                    "[[steps]]\nid = \"a\"\n[[steps]]\n{quoted} = 1\nxgoal = \"g\"\nreview = {{ {quoted} = 2 }}\n[[steps]]\nid = \"z\"\n"
                ),
            ),
        ] {
            let read = read(file, &text).unwrap_or_else(|why| panic!("{key:?}: {why}: {text}"));
            let step = &read.steps[1];
            assert_eq!((&step.value[key], &step.value["review"][key]), (&json!(1), &json!(2)), "{text}");
            for (name, at) in &step.keys {
                assert!(*at >= step.at && *at < read.steps[2].at, "{file} {name:?}: {at:?}: {text}");
            }
            let at = step.keys[key];
            assert!((step.at.0..=step.at.0 + 1).contains(&at.0), "{file} {key:?}: {at:?}: {text}");
        }
    }
}
