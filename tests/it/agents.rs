//! Agents: their definitions, and the crew on the screen.

use tiller_testkit::ScriptServer;

use crate::common::{Place, calls, says};

fn definition(description: &str, lines: &str) -> String {
    format!("---\ndescription: {description}\n{lines}\n---\nDo it well.\n")
}

#[test]
fn definitions_are_listed_and_a_bad_one_is_told_and_hides_none() {
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
    // The folder's come after the yes.
    assert_eq!(names(&place), built_in);
    let listed = place.ok(&["agents", "list"]);
    assert!(listed.contains("1 file in .tiller/agents left out") && !listed.contains('\u{1b}'), "{listed}");
    place.ok(&["trust", "--yes"]);
    let lines = place.lines(&["agents", "list", "--json"]);
    let of = |name: &str| lines.iter().find(|l| l["name"] == name).unwrap();
    assert_eq!((&of("scribe")["from"], &of("coder")["from"]), (&"project".into(), &"user".into()));
    assert_eq!(of("coder")["tier"], "fast");
    std::fs::write(own.join("worker.md"), definition("Mine", "toolz: [read]\ntier: fsat")).unwrap();
    let wrong = place.run(&["agents", "list"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    for said in
        ["worker.md:3:1: unknown key `toolz` (did you mean `tools`?)", "worker.md:4:7: there is no tier"]
    {
        assert!(wrong.stderr.contains(said), "{wrong:?}");
    }
    assert!(wrong.stdout.contains("worker         built in"), "{wrong:?}");
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
    let none = place.run(&["agents", "run", "loker", "x"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("there is no agent `loker`; did you mean `looker`"), "{none:?}");
}
