//! Verb and target of a call that was read back from the store: the tools themselves are not known here.

use serde_json::Value;

/// What a tool's row says, from its name and arguments. Not yet clean.
pub fn describe(name: &str, arguments: &Value) -> (String, String) {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(str::to_owned);
    let first = || {
        let mut values = arguments.as_object().into_iter().flat_map(|o| o.values());
        values.find_map(Value::as_str).unwrap_or_default().to_owned()
    };
    let path = || text("path").or_else(|| text("file")).unwrap_or_else(first);
    let line = |key: &str| arguments.get(key).and_then(Value::as_u64);
    let (verb, target) = match name {
        "read_file" => match (line("start"), line("end")) {
            (None, None) => ("read", path()),
            (from, to) => {
                let to = to.map(|n| n.to_string()).unwrap_or_default();
                ("read", format!("{}:{}-{to}", path(), from.unwrap_or(1)))
            }
        },
        "write_file" => ("write", path()),
        "edit_file" => ("edit", path()),
        "patch" => ("patch", patched(&text("patch").or_else(|| text("diff")).unwrap_or_default())),
        "list_dir" => ("list", Some(path()).filter(|p| !p.is_empty()).unwrap_or_else(|| ".".into())),
        "search" => {
            let words = |key: &str| text(key).filter(|t| !t.is_empty());
            let what = words("pattern").or_else(|| words("glob")).unwrap_or_default();
            ("search", words("path").map_or(what.clone(), |path| format!("{what} in {path}")))
        }
        "session_search" => {
            let place = match text("project").as_deref() {
                None | Some("" | "." | "this") => String::new(),
                Some("all") => " in the sessions of all folders".into(),
                Some(other) => format!(" in the sessions of {other}"),
            };
            ("recall", format!("\"{}\"{place}", text("query").unwrap_or_default()))
        }
        "terminal" => ("shell", text("command").unwrap_or_else(first)),
        "process" => {
            let words = [text("action"), text("id")];
            ("process", words.into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
        "web_fetch" => ("fetch", text("url").unwrap_or_else(first)),
        "todo_write" => {
            let n = arguments.get("todos").and_then(Value::as_array).map_or(0, Vec::len);
            ("todo", if n == 1 { "1 item".into() } else { format!("{n} items") })
        }
        "checkpoint" => ("checkpoint", text("name").unwrap_or_else(first)),
        "restore" => ("restore", text("name").unwrap_or_else(first)),
        "todo_read" => ("todo", "read".into()),
        "clarify" => ("ask", text("question").unwrap_or_else(first)),
        "write_plan" => ("plan", heading(&text("plan").unwrap_or_default())),
        // Another vendor's program gives its call a title, which says all.
        title if title.contains(char::is_whitespace) => (title, String::new()),
        other => {
            let alone = || (other, Some(first()).filter(|t| t != other).unwrap_or_default());
            crew(other, arguments).unwrap_or_else(alone)
        }
    };
    (verb.to_owned(), target)
}

/// Verb and target of the tools that start and manage agents.
fn crew(name: &str, arguments: &Value) -> Option<(&'static str, String)> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(match name {
        "delegate_task" => ("delegate", tasks(arguments)),
        "delegate_async" => ("spawn", tasks(arguments)),
        "spawn_agent" => ("spawn", named(arguments).unwrap_or_default()),
        "send_to_agent" => ("tell", text("agent")),
        "wait_agents" => ("wait for", {
            let agents = arguments.get("agents").and_then(Value::as_array).into_iter().flatten();
            agents.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }),
        "agent_result" => ("result", text("agent")),
        "list_agents" => ("agents", String::new()),
        "get_process_info" => ("look at", text("id")),
        "cancel_agent" => ("cancel", text("agent")),
        "orchestrate" => ("orchestrate", text("goal")),
        "blackboard" => ("note", arguments.get("key").and_then(Value::as_str).unwrap_or("list").to_owned()),
        _ => return None,
    })
}

/// The name of a delegated task.
fn named(task: &Value) -> Option<String> {
    ["label", "goal"].iter().find_map(|key| task.get(*key)?.as_str()).map(str::to_owned)
}

fn tasks(arguments: &Value) -> String {
    let list = |key: &str| arguments.get(key).and_then(Value::as_array).filter(|l| !l.is_empty());
    if let Some(steps) = list("workflow") {
        let ids: Vec<&str> = steps.iter().filter_map(|s| s.get("id")?.as_str()).collect();
        return format!("workflow of {} steps: {}", steps.len(), ids.join(", "));
    }
    let names: Vec<String> = list("tasks").into_iter().flatten().filter_map(named).collect();
    match names.as_slice() {
        [one] => one.clone(),
        _ => format!("{} tasks: {}", names.len(), names.join(", ")),
    }
}

/// The first line of a plan that says something.
fn heading(plan: &str) -> String {
    let lines = plan.lines().map(|l| l.trim_start_matches(['#', '-', '*', ' ']).trim());
    lines.into_iter().find(|l| !l.is_empty()).unwrap_or_default().to_owned()
}

/// The files that a patch names.
fn patched(patch: &str) -> String {
    let named = |l: &'_ str| -> Option<String> {
        let heads = ["*** Add File:", "*** Delete File:", "*** Update File:", "+++ b/"];
        heads.iter().find_map(|h| l.strip_prefix(h)).map(|path| path.trim().to_owned())
    };
    let mut files: Vec<String> = patch.lines().filter_map(named).collect();
    files.dedup();
    match files.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As the tools themselves say it while they run.
    #[test]
    fn a_row_reads_after_a_restart_as_it_did_before() {
        for (name, arguments, want) in [
            ("todo_write", json!({"todos": [{}, {}, {}]}), ("todo", "3 items")),
            ("todo_write", json!({"todos": [{}]}), ("todo", "1 item")),
            ("todo_read", json!({}), ("todo", "read")),
            ("process", json!({"action": "poll", "id": "p1"}), ("process", "poll p1")),
            ("read_file", json!({"path": "a.rs", "start": 3}), ("read", "a.rs:3-")),
            ("read_file", json!({"path": "a.rs"}), ("read", "a.rs")),
            ("list_dir", json!({}), ("list", ".")),
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
            ("write_plan", json!({"plan": "# Go\n- on"}), ("plan", "Go")),
            ("session_search", json!({"query": "old"}), ("recall", "\"old\"")),
            (
                "session_search",
                json!({"query": "a", "project": "/p"}),
                ("recall", "\"a\" in the sessions of /p"),
            ),
            ("search", json!({"pattern": "x", "path": "src"}), ("search", "x in src")),
            (
                "patch",
                json!({"patch": "*** Begin Patch\n*** Add File: n\n+x\n*** Delete File: d\n"}),
                ("patch", "n and 1 more"),
            ),
            ("a1: list .", json!({"path": "."}), ("a1: list .", "")),
            ("ls", json!({"command": "ls"}), ("ls", "")),
            ("Bash", json!({"command": "ls"}), ("Bash", "ls")),
        ] {
            assert_eq!(describe(name, &arguments), (want.0.to_owned(), want.1.to_owned()), "{name}");
        }
    }
}
