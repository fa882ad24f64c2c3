use super::*;

fn said(value: Value) -> Result<Decision, String> {
    decision(value.as_object().unwrap())
}

/// The tools and inputs there of one call.
fn there(tool: &str, arguments: Value) -> Vec<(String, Value)> {
    let ours = json!({"session": "s", "folder": "/w/sub", "call": {"id": "c1", "tool": tool, "arguments": arguments}});
    let (all, _) = inputs(HookEvent::BeforeToolCall, &ours, Some("/home/u"), 100);
    all.into_iter()
        .map(|input| {
            assert_eq!((&input["hook_event_name"], &input["cwd"]), (&json!("PreToolUse"), &json!("/w/sub")));
            (input["tool_name"].as_str().unwrap().to_owned(), input["tool_input"].clone())
        })
        .collect()
}

/// Guards read absolute paths, one call for each file, and the names of tools there.
#[test]
fn calls_have_the_names_and_values_that_guards_read() {
    let named = |name: &str, input: Value| vec![(name.to_owned(), input)];
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** Update File: ../.env\n@@\n-A=1\n+A=2\n\
        *** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+y\n*** Delete File: /etc/c\n*** End Patch\n";
    for (tool, arguments, want) in [
        (
            "write_file",
            json!({"path": "a", "content": "x"}),
            named("Write", json!({"file_path": "/w/sub/a", "content": "x"})),
        ),
        (
            "write_file",
            json!({"path": "../.env", "content": ""}),
            named("Write", json!({"file_path": "/w/.env", "content": ""})),
        ),
        (
            "write_file",
            json!({"path": "~/.bashrc", "content": ""}),
            named("Write", json!({"file_path": "/home/u/.bashrc", "content": ""})),
        ),
        (
            "edit_file",
            json!({"path": "./a", "old": "x", "new": "y"}),
            named("Edit", json!({"file_path": "/w/sub/a", "old_string": "x", "new_string": "y"})),
        ),
        (
            "read_file",
            json!({"path": "/etc/passwd", "start": 3}),
            named("Read", json!({"file_path": "/etc/passwd", "offset": 3})),
        ),
        (
            "search",
            json!({"pattern": "x", "path": "src"}),
            named("Grep", json!({"pattern": "x", "path": "/w/sub/src"})),
        ),
        (
            "list_dir",
            json!({"path": "."}),
            vec![
                ("LS".to_owned(), json!({"path": "/w/sub"})),
                ("Glob".to_owned(), json!({"pattern": "*", "path": "/w/sub"})),
            ],
        ),
        (
            "search",
            json!({"glob": "*.pem"}),
            vec![
                ("Grep".to_owned(), json!({"glob": "*.pem"})),
                ("Glob".to_owned(), json!({"pattern": "*.pem", "path": "/w/sub"})),
            ],
        ),
        (
            "write_file",
            json!({"path": "a.ipynb", "content": "x"}),
            vec![
                ("Write".to_owned(), json!({"file_path": "/w/sub/a.ipynb", "content": "x"})),
                ("NotebookEdit".to_owned(), json!({"notebook_path": "/w/sub/a.ipynb", "new_source": "x"})),
            ],
        ),
        (
            "render_diagram",
            json!({"source": "x", "kind": "mermaid", "path": "a.svg"}),
            named("Write", json!({"source": "x", "kind": "mermaid", "file_path": "/w/sub/a.svg"})),
        ),
        ("clarify", json!({"question": "x"}), named("AskUserQuestion", json!({"question": "x"}))),
        ("terminal", json!({"command": "ls"}), named("Bash", json!({"command": "ls"}))),
        ("execute_code", json!({"code": "x()"}), named("Bash", json!({"command": "x()"}))),
        (
            "process",
            json!({"action": "write", "id": "1", "text": "rm x"}),
            named("Bash", json!({"command": "rm x"})),
        ),
        (
            "mcp_call",
            json!({"server": "git", "tool": "push", "arguments": {"to": "x"}}),
            named("mcp__git__push", json!({"to": "x"})),
        ),
        ("mcp__git__push", json!({"to": "x"}), named("mcp__git__push", json!({"to": "x"}))),
        (
            "web_extract",
            json!({"urls": ["https://a.org", "https://b.org"]}),
            vec![
                ("WebFetch".to_owned(), json!({"url": "https://a.org", "prompt": ""})),
                ("WebFetch".to_owned(), json!({"url": "https://b.org", "prompt": ""})),
            ],
        ),
        (
            "spawn_agent",
            json!({"goal": "g", "context": "c", "agent": "tester"}),
            super::AGENTS
                .map(|name| {
                    (name.to_owned(), json!({"description": "", "prompt": "g\nc", super::AGENT: "tester"}))
                })
                .to_vec(),
        ),
        (
            "patch",
            json!({"patch": patch}),
            vec![
                ("Write".to_owned(), json!({"file_path": "/w/sub/new.txt", "content": "one\n"})),
                (
                    "Edit".to_owned(),
                    json!({"file_path": "/w/.env", "old_string": "A=1\n", "new_string": "A=2\n"}),
                ),
                (
                    "Edit".to_owned(),
                    json!({"file_path": "/w/sub/a.rs", "old_string": "x\n", "new_string": "y\n"}),
                ),
                ("Write".to_owned(), json!({"file_path": "/w/sub/b.rs", "content": "y\n"})),
                ("Edit".to_owned(), json!({"file_path": "/etc/c", "old_string": "", "new_string": ""})),
            ],
        ),
    ] {
        assert_eq!(there(tool, arguments), want, "{tool}");
    }
    let tasks = there("delegate_task", json!({"tasks": [{"goal": "a"}, {"goal": "b"}]}));
    assert_eq!((tasks.len(), &tasks[2].1["prompt"]), (4, &json!("b")));
}

/// A guard for one mode gets the mode here that is the most like it.
#[test]
fn the_mode_is_the_one_that_guards_know() {
    for (profile, mode) in [
        (json!("full"), "bypassPermissions"),
        (json!("auto-edit"), "acceptEdits"),
        (json!("ask"), "default"),
        (json!("plan"), "plan"),
        (json!("read-only"), "plan"),
        (json!(null), "default"),
    ] {
        let ours = json!({"session": "s", "folder": "/w", "profile": profile});
        assert_eq!(inputs(HookEvent::UserPrompt, &ours, None, 1).0[0]["permission_mode"], mode);
    }
}

#[test]
fn changed_arguments_are_taken_back_or_refused() {
    let call = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments});
    let edit = call("edit_file", json!({"path": "a", "old": "x", "new": "y"}));
    let theirs = json!({"file_path": "/w/b", "old_string": "x", "new_string": "z"});
    assert_eq!(taken_back(&edit, &theirs, false), Ok(json!({"path": "/w/b", "old": "x", "new": "z"})));
    let code = call("execute_code", json!({"code": "x", "session": "s"}));
    assert_eq!(taken_back(&code, &json!({"command": "y"}), false), Ok(json!({"code": "y", "session": "s"})));
    let mcp = call("mcp_call", json!({"server": "s", "tool": "t", "arguments": {}}));
    assert_eq!(
        taken_back(&mcp, &json!({"a": 1}), false),
        Ok(json!({"server": "s", "tool": "t", "arguments": {"a": 1}}))
    );
    assert!(taken_back(&call("patch", json!({"patch": ""})), &theirs, false).is_err());
    assert!(taken_back(&edit, &theirs, true).is_err());
}

/// Each spelling of a denial there denies, and what is not understood is never a yes.
#[test]
fn denials_count_in_each_spelling() {
    let specific = |value: Value| json!({ "hookSpecificOutput": value });
    for denial in [
        specific(
            json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}),
        ),
        specific(json!({"permissionDecision": "block"})),
        specific(json!({"decision": "block"})),
        specific(json!({"decision": {"behavior": "deny"}})),
        json!({"permissionDecision": "deny", "permissionDecisionReason": "no"}),
        json!({"decision": {"behavior": "deny"}}),
        json!({"decision": "block", "reason": "r"}),
        json!({"decision": "deny"}),
        json!({"continue": false, "stopReason": "s"}),
        json!({"decision": "approve", "continue": false}),
        json!({"decision": "block", "hookSpecificOutput": {"permissionDecision": 7}}),
        json!({"decision": "block", "hookSpecificOutput": {"permissionDecision": "allow"}}),
        json!({"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}}),
    ] {
        assert!(said(denial.clone()).unwrap().deny.is_some(), "{denial}");
    }
    let first = specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "no"}));
    assert_eq!(said(first).unwrap().deny.as_deref(), Some("no"));
    assert_eq!(said(json!({"continue": false})).unwrap().deny.as_deref(), Some("it gave no reason"));
    for unknown in [
        json!({"decision": "maybe"}),
        json!({"decision": 1}),
        json!({"decision": "Block"}),
        json!({"decision": {"behavior": "no"}}),
        json!({"continue": "false"}),
        json!({"continue": 0}),
        json!({"permissionDecision": "denied"}),
        json!({"hookSpecificOutput": "deny"}),
        json!({"hookSpecificOutput": [{"permissionDecision": "deny"}]}),
        specific(json!({"permissionDecision": "Deny"})),
        specific(json!({"permissionDecision": false})),
        specific(json!({"decision": {}})),
    ] {
        assert!(said(unknown.clone()).is_err(), "{unknown}");
    }
    for ask in [specific(json!({"permissionDecision": "ask"})), json!({"permissionDecision": "ask"})] {
        assert!(said(ask.clone()).unwrap().ask.is_some(), "{ask}");
    }
    for pass in [
        json!({"continue": true, "suppressOutput": true}),
        json!({"decision": "approve"}),
        specific(json!({"permissionDecision": "allow"})),
        specific(json!({"permissionDecision": "defer"})),
        json!({"systemMessage": "hello"}),
    ] {
        let said = said(pass.clone()).unwrap();
        assert!(said.deny.is_none() && said.ask.is_none(), "{pass}");
    }
    let changed = specific(json!({"updatedInput": {"file_path": "b"}}));
    assert_eq!(said(changed).unwrap().arguments, Some(json!({"file_path": "b"})));
}
