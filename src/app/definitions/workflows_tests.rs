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
        "bad.toml:1:1: step a: unknown field `gaol`",
        "bad.toml:1:1: step a: invalid type: string \"two\"",
        "bad.toml:1:1: step a depends on zz",
        "bad.toml:1:1: these steps depend on each other: a -> b -> a",
        "bad.toml:1:1: step a has no goal",
        "bad.toml:1:1: step a: there is no terminal `fox`",
        "bad.toml:8:1: step b: there is no terminal `box`",
        "bad.toml:14:1: step 3: invalid type: integer `5`",
        "bad.toml:14:1: step 3 has no id",
    ] {
        assert!(said.iter().any(|s| s.contains(why)), "{why}: {said:#?}");
    }
    assert_eq!(said.len(), 9, "{said:#?}");
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
    assert!(said.contains("bad.toml:5:1: step b: unknown field `gaol`"), "{said}");
    assert!((flows.unavailable)("nonsense").unwrap().contains("there is no program `nonsense`; available: "));
    assert!((flows.unavailable)("claude").unwrap().starts_with("claude is not installed: "));
    assert!((flows.unavailable)("claude:headless").unwrap().starts_with("claude is not installed: "));
    assert_eq!(
        (flows.unavailable)("aider:acp").unwrap(),
        "aider does not support `acp`; it supports headless, pty"
    );
}
