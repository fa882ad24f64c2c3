use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tiller_permit::trust::discover;

use super::source;

const SHIP: &str = "[[steps]]\nid = \"a\"\ngoal = \"g\"\n";

#[test]
fn the_projects_come_only_after_a_yes_and_as_they_were_then() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (theirs, mine) = (project.path().join(".tiller/workflows"), home.path().join("workflows"));
    fs::create_dir_all(&theirs).unwrap();
    fs::create_dir_all(&mine).unwrap();
    fs::write(theirs.join("ship.toml"), SHIP).unwrap();
    fs::write(mine.join("own.yaml"), "steps:\n  - id: a\n    goal: mine\n").unwrap();
    let folder_config = discover(project.path(), &tiller_tool::Registry::built_in().catalog());
    fs::write(theirs.join("ship.toml"), SHIP.replace("\"g\"", "\"other\"")).unwrap();
    let env = Arc::new(Vec::new());
    let of = |trusted| {
        source(
            home.path(),
            project.path(),
            &folder_config,
            Arc::new(AtomicBool::new(trusted)),
            Arc::clone(&env),
        )
    };
    let said = (of(false).find)("ship").unwrap_err();
    assert!(said.contains(".tiller/workflows/ship.toml is ignored: this folder is not trusted"), "{said}");
    let flow = (of(true).find)("ship").unwrap();
    assert_eq!((flow.name.as_str(), flow.steps[0].brief.goal.as_str()), ("ship", "g"));
    assert_eq!((of(false).find)("own").unwrap().steps[0].brief.goal, "mine");
    let said = (of(true).find)("../own").unwrap_err();
    assert_eq!(said, "there is no workflow `../own`; available: own, ship");
    // A file that is written while Tiller runs was not shown to the person.
    fs::write(theirs.join("late.yml"), "steps:\n  - id: a\n    goal: g\n").unwrap();
    let said = (of(true).find)("late").unwrap_err();
    assert!(said.starts_with(".tiller/workflows/late.yml was added after Tiller started"), "{said}");
}

#[test]
fn every_fault_of_a_file_is_found_with_its_line() {
    let bad = "[[steps]]\nid = \"a\"\ngaol = \"g\"\nretries = \"two\"\nneeds = [\"b\", \"zz\"]\nterminal = \"fox\"\n\n\
               [[steps]]\nid = \"b\"\ngoal = \"g\"\nneeds = [\"a\"]\nterminal = \"box\"\n\n\
               [[steps]]\ngoal = 5\n\n[[steps]]\nid = \"3\"\ngoal = \"g\"\n";
    let path = std::path::Path::new("bad.toml");
    let (filed, mut wrong) = super::ParsedWorkflow::read(path, bad.as_bytes()).unwrap();
    let mut known = tiller_tool::crew::NameCheck::accept_all();
    let terminal = |name: &str| tiller_config::Config::default().no_such_terminal(name);
    known.terminal = &terminal;
    wrong.extend(filed.check(&known));
    let said: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    for why in [
        "bad.toml:3:1: step a: unknown field `gaol`",
        "bad.toml:4:1: step a: invalid type: string \"two\"",
        "bad.toml:5:1: step a depends on zz",
        "bad.toml:5:1: these steps depend on each other: a -> b -> a",
        "bad.toml:1:1: step a has no goal",
        "bad.toml:6:1: step a: there is no terminal `fox`",
        "bad.toml:12:1: step b: there is no terminal `box`",
        "bad.toml:15:1: step 3: invalid type: integer `5`",
        "bad.toml:14:1: step 3 has no id",
    ] {
        assert!(said.iter().any(|s| s.contains(why)), "{why}: {said:#?}");
    }
    assert_eq!(said.len(), 9, "{said:#?}");
}

/// Each key that can be wrong, in each form of the file, has its own line; texts that look like keys have none.
#[test]
fn each_fault_has_the_line_of_its_key_in_every_form() {
    let mut known = tiller_tool::crew::NameCheck::accept_all();
    let none = |name: &str| name.starts_with("no").then(|| format!("no `{name}`"));
    (known.role, known.cli, known.skill) = (&none, &none, &none);
    (known.model, known.tool, known.terminal) = (&none, &none, &none);
    // The key, its value in TOML and YAML, and the key within a table that is meant.
    let keys = [
        ("agent", "\"no-role\"", ""),
        ("cli", "\"no-cli\"", ""),
        ("skills", "[\"no-skill\"]", ""),
        ("tools", "[\"no-tool\"]", ""),
        ("terminal", "\"nowhere\"", ""),
        ("model", "\"no/model\"", ""),
        ("needs", "[\"zz\"]", ""),
        ("depends_on", "[\"zz\"]", ""),
        ("retries", "99", ""),
        ("retries", "\"two\"", ""),
        ("goal", "5", ""),
        ("goal", "\" \"", ""),
        ("id", "\"a b\"", ""),
        ("verify", "\"yes please\"", ""),
        ("gaol", "\"x\"", ""),
        ("schema", "{ type = \"nothing\" }", ""),
        ("review", "7", ""),
        ("review", "{ by = \"no-role\" }", "by"),
        ("review", "{ by = \"r\", rounds = 99 }", "rounds"),
        ("review", "{ by = \"r\", rounds = \"x\" }", "rounds"),
        ("review", "{ by = \"r\", bye = 1 }", "bye"),
        ("review", "{ cli = \"no-cli\" }", "cli"),
        ("review", "{ by = \"r\", model = \"no/model\" }", "model"),
    ];
    for (key, value, inner) in keys {
        let others = [("id", "\"s\""), ("goal", "\"agent: x, review = y\""), ("label", "\"ä tools: 1\"")];
        let others: Vec<_> = others.into_iter().filter(|(name, _)| *name != key).collect();
        let lines = |sign: &str, before: &str, value: &str| {
            let mut all: Vec<String> =
                others.iter().map(|(name, text)| format!("{name}{sign}{text}")).collect();
            all.push(format!("{key}{sign}{value}"));
            all.push(format!("files{sign}[\"{key}: x\"]"));
            all.iter().map(|line| format!("{before}{line}\n")).collect::<String>()
        };
        let yaml = value.replace(" = ", ": ");
        let block = match value.strip_prefix("{ ").and_then(|v| v.strip_suffix(" }")) {
            Some(table) => {
                table.split(", ").map(|pair| format!("\n      {}", pair.replace(" = ", ": "))).collect()
            }
            None => yaml.clone(),
        };
        let first = "[[steps]]\nid = \"first\"\ngoal = \"g\"\n\n";
        let head = "steps:\n- id: first\n  goal: g\n-\n";
        for (file, text) in [
            ("w.toml", format!("{first}[[steps]]\n{}", lines(" = ", "", value))),
            ("w.yaml", format!("{head}{}", lines(": ", "  ", &yaml))),
            ("w.yml", format!("{head}{}", lines(": ", "    ", &block))),
        ] {
            let told = |wanted: &str| {
                let starts = |line: &&str| {
                    line.trim_start().starts_with(&format!("{wanted}:"))
                        || line.trim_start().starts_with(&format!("{wanted} ="))
                };
                text.lines().collect::<Vec<_>>().iter().rposition(starts).map(|n| n + 1)
            };
            // A table on one line has the line of its key.
            let line =
                Some(inner).filter(|inner| !inner.is_empty()).and_then(told).or_else(|| told(key)).unwrap();
            let (filed, mut wrong) =
                super::ParsedWorkflow::read(std::path::Path::new(file), text.as_bytes()).unwrap();
            wrong.extend(filed.check(&known));
            assert_eq!(wrong.len(), 1, "{text}: {wrong:#?}");
            assert_eq!(
                wrong[0].at.map(|at| at.0),
                Some(line),
                "{key} {inner} in {file}:\n{text}\n{wrong:#?}"
            );
        }
    }
}

#[test]
fn mistakes_have_their_lines_and_programs_are_looked_for() {
    let home = tempfile::tempdir().unwrap();
    let mine = home.path().join("workflows");
    fs::create_dir_all(&mine).unwrap();
    fs::write(mine.join("bad.toml"), format!("{SHIP}\n[[steps]]\nid = \"b\"\ngaol = \"g\"\n")).unwrap();
    let folder_config = discover(home.path(), &tiller_tool::Registry::built_in().catalog());
    let flows = source(
        home.path(),
        home.path(),
        &folder_config,
        Arc::new(AtomicBool::new(true)),
        Arc::new(Vec::new()),
    );
    let said = (flows.find)("bad").unwrap_err();
    assert!(said.contains("bad.toml:7:1: step b: unknown field `gaol`"), "{said}");
    assert!((flows.unavailable)("nonsense").unwrap().contains("there is no program `nonsense`; available: "));
    assert!((flows.unavailable)("claude").unwrap().starts_with("claude is not installed: "));
    assert!((flows.unavailable)("claude:headless").unwrap().starts_with("claude is not installed: "));
    assert_eq!(
        (flows.unavailable)("aider:acp").unwrap(),
        "aider does not support `acp`; it supports headless, pty"
    );
}
