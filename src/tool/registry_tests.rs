use std::collections::HashSet;

use serde_json::{Value, json};
use tiller_protocol::{ToolGrant, ToolInfo, ToolVerb};

use super::*;

#[test]
fn the_list_holds() {
    let mut names = HashSet::new();
    for tool in Registry::built_in().iter() {
        let spec = tool.spec();
        assert_eq!(spec.name, tool.name());
        assert!(names.insert(spec.name.clone()), "{} appears twice", spec.name);
        assert!(!spec.description.trim().is_empty(), "{} has no help", spec.name);
        assert!(!tool.verb().word().is_empty());
        assert_eq!(spec.schema["type"], "object", "{}", spec.name);
        check(&spec.schema, &spec.name);
        for required in spec.schema["required"].as_array().into_iter().flatten() {
            assert!(spec.schema["properties"].get(required.as_str().unwrap()).is_some());
        }
    }
}

/// Which agents have which tools depends on this. All others are for every agent.
#[test]
fn the_tools_that_not_every_agent_has() {
    let tools = Registry::built_in().catalog();
    let with = |has: &dyn Fn(&ToolInfo) -> bool| -> Vec<&str> {
        tools.iter().filter(|t| has(t)).map(|t| t.name).collect()
    };
    assert_eq!(with(&|t| t.grant == ToolGrant::Main), ["checkpoint", "restore"]);
    assert_eq!(with(&|t| t.grant == ToolGrant::Named), ["delegate_async", "get_process_info", "orchestrate"]);
    assert_eq!(with(&|t| t.grant == ToolGrant::Siblings), ["blackboard"]);
    let starters = ["delegate_async", "delegate_task", "orchestrate", "spawn_agent"];
    assert_eq!(with(&|t| t.starts_agents), starters);
    assert_eq!(with(&|t| t.verb == ToolVerb::Todo), ["todo_read", "todo_write"]);
}

/// Only words that every vendor takes.
fn check(schema: &Value, tool: &str) {
    let words = ["type", "properties", "required", "description", "items", "enum", "minItems", "maxItems"];
    for (word, value) in schema.as_object().unwrap() {
        assert!(words.contains(&word.as_str()), "{tool}: {word}");
        match word.as_str() {
            "type" => assert!(value.is_string(), "{tool}: {value}"),
            "properties" => value.as_object().unwrap().values().for_each(|v| check(v, tool)),
            "items" => check(value, tool),
            _ => {}
        }
    }
}

#[test]
fn the_list_is_sorted_and_small() {
    let specs = Registry::built_in().specs();
    assert!(specs.is_sorted_by(|a, b| a.name < b.name));
    let size = serde_json::to_string(&specs).unwrap().len();
    assert!(size <= 11 * 1024 + 128, "{size} bytes of tool list");
}

/// The screen shows this for a call that is read back from a session, and the engine reports it while the call runs.
#[test]
fn a_call_is_described_by_verb_and_target() {
    let tools = Registry::built_in().catalog();
    for (name, arguments, want) in [
        ("todo_write", json!({"todos": [{}, {}, {}]}), ("todo", "3 items")),
        ("todo_write", json!({"todos": [{}]}), ("todo", "1 item")),
        ("todo_read", json!({}), ("todo", "read")),
        ("process", json!({"action": "poll", "id": "p1"}), ("process", "poll p1")),
        ("read_file", json!({"path": "a.rs", "start": 3}), ("read", "a.rs:3-")),
        ("read_file", json!({"path": "a.rs"}), ("read", "a.rs")),
        ("list_dir", json!({}), ("list", ".")),
        ("execute_code", json!({"code": "import os\n\nprint(1)\n"}), ("script", "print(1)")),
        ("execute_code", json!({"code": "# Count all\nprint(1)\n"}), ("script", "Count all")),
        (
            "delegate_task",
            json!({"tasks": [{"goal": "a"}, {"goal": "b", "label": "c"}]}),
            ("delegate", "2 tasks: a, c"),
        ),
        ("delegate_async", json!({"tasks": [{"goal": "a"}]}), ("spawn", "a")),
        (
            "delegate_task",
            json!({"workflow": [{"id": "x"}, {"id": "y"}]}),
            ("delegate", "workflow of 2 steps: x, y"),
        ),
        ("wait_agents", json!({"agents": ["a1", "a2"]}), ("wait for", "a1, a2")),
        ("blackboard", json!({}), ("note", "list")),
        ("web_fetch", json!({"url": "https://a.org/x"}), ("fetch", "https://a.org/x")),
        (
            "web_extract",
            json!({"urls": ["https://a.org/", "https://b.org/"]}),
            ("fetch", "https://a.org/ and 1 more"),
        ),
        ("web_search", json!({"query": "rust book"}), ("search", "\"rust book\" on the web")),
        ("write_plan", json!({"plan": "# Go\n- on"}), ("plan", "Go")),
        ("session_search", json!({"query": "old"}), ("recall", "\"old\"")),
        ("session_search", json!({"query": "a", "project": "/p"}), ("recall", "\"a\" in the sessions of /p")),
        ("search", json!({"pattern": "x", "path": "src"}), ("search", "x in src")),
        (
            "patch",
            json!({"patch": "*** Begin Patch\n*** Add File: n\n+x\n*** Delete File: d\n"}),
            ("patch", "n and 1 more"),
        ),
    ] {
        let tool = tools.get(name).unwrap();
        assert_eq!((tool.verb.word(), (tool.target)(&arguments).as_str()), want, "{name}");
    }
}
