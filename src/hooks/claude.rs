//! Hooks that were written for Claude Code: their settings, their input and their output in its form.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Map, Value, json};
use tiller_config::schema::{Hook, HookFormat, Hooks};
use tiller_protocol::HookEvent;
use tiller_tool::aliases;

use crate::decision::{Decision, text_field};

/// Events of Claude Code and of Tiller. One that is not listed is left out.
const EVENTS: &[(&str, HookEvent)] = &[
    ("SessionStart", HookEvent::SessionStart),
    ("SessionEnd", HookEvent::SessionEnd),
    ("UserPromptSubmit", HookEvent::UserPrompt),
    ("PreToolUse", HookEvent::BeforeToolCall),
    ("PostToolUse", HookEvent::AfterToolCall),
    ("Stop", HookEvent::BeforeResponse),
    ("PreCompact", HookEvent::ContextCompact),
    ("SubagentStart", HookEvent::AgentStart),
    ("SubagentStop", HookEvent::AgentEnd),
    ("FileChanged", HookEvent::FileChanged),
    ("Notification", HookEvent::Notification),
];

/// Fields of arguments with another name.
const FIELDS: &[(&str, &str)] = &[("path", "file_path"), ("old", "old_string"), ("new", "new_string")];

/// Files of Claude Code in a folder that can hold hooks.
pub const FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// What can be taken over from a settings file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub hooks: Hooks,
    /// Events and kinds of hooks that have no counterpart, each in words.
    pub left_out: Vec<String>,
    /// Number of hooks that are taken over.
    pub taken: usize,
}

/// Reads the hooks of a `settings.json`.
///
/// # Errors
/// When it is no JSON object.
pub fn import(text: &str) -> Result<Imported, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("line {}: not JSON", e.line()))?;
    let mut all = Imported::default();
    let Some(events) = value.as_object().ok_or("not a JSON object")?.get("hooks") else { return Ok(all) };
    for (name, groups) in events.as_object().ok_or("`hooks` is not an object")? {
        let Some((_, event)) = EVENTS.iter().find(|(theirs, _)| theirs == name) else {
            all.left_out.push(format!("{name}: Tiller has no such event"));
            continue;
        };
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
            for hook in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                all.add(name, *event, matcher, hook);
            }
        }
    }
    Ok(all)
}

impl Imported {
    fn add(&mut self, name: &str, event: HookEvent, matcher: &str, hook: &Value) {
        let kind = hook.get("type").and_then(Value::as_str).unwrap_or("command");
        let Some(command) = hook.get("command").and_then(Value::as_str).filter(|_| kind == "command") else {
            return self.left_out.push(format!("{name}: hooks of the type {kind} are not supported"));
        };
        let calls = matches!(event, HookEvent::BeforeToolCall | HookEvent::AfterToolCall);
        let rules = match tools(matcher) {
            _ if !calls => vec![None],
            Ok(rules) => rules,
            Err(tool) => {
                return self.left_out.push(format!("{name}: Tiller has no tool for the matcher {tool}"));
            }
        };
        if !calls && !matches!(matcher, "" | "*") {
            self.left_out.push(format!("{name}: the matcher {matcher} is ignored, the hook runs each time"));
        }
        self.taken += 1;
        for matches in rules {
            let hook = Hook {
                command: command.to_owned(),
                name: None,
                matches,
                timeout: hook.get("timeout").and_then(Value::as_u64).unwrap_or(60),
                blocking: false,
                format: HookFormat::Claude,
            };
            list(&mut self.hooks, event).push(hook);
        }
    }
}

fn list(hooks: &mut Hooks, event: HookEvent) -> &mut Vec<Hook> {
    match event {
        HookEvent::SessionStart => &mut hooks.session_start,
        HookEvent::SessionEnd => &mut hooks.session_end,
        HookEvent::UserPrompt => &mut hooks.user_prompt,
        HookEvent::BeforeToolCall => &mut hooks.before_tool_call,
        HookEvent::AfterToolCall => &mut hooks.after_tool_call,
        HookEvent::BeforeResponse => &mut hooks.before_response,
        HookEvent::ContextCompact => &mut hooks.context_compact,
        HookEvent::AgentStart => &mut hooks.agent_start,
        HookEvent::AgentEnd => &mut hooks.agent_end,
        HookEvent::FileChanged => &mut hooks.file_changed,
        HookEvent::Notification => &mut hooks.notification,
    }
}

/// The rules for a matcher such as `Edit|Write`; `None` in it: every tool.
fn tools(matcher: &str) -> Result<Vec<Option<String>>, String> {
    if matches!(matcher.trim(), "" | "*" | ".*") {
        return Ok(vec![None]);
    }
    let mut all = Vec::new();
    for word in matcher.split('|').map(str::trim) {
        if word.starts_with("mcp__") {
            // A pattern of another language: it runs for all calls, and the hook itself looks at the name.
            return Ok(vec![None]);
        }
        let ours = aliases::ours(word).ok_or_else(|| word.to_owned())?;
        all.extend(ours.iter().map(|tool| Some((*tool).to_owned())));
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// The input in the form of Claude Code.
pub(crate) fn input(event: HookEvent, ours: &Value) -> Value {
    let name = EVENTS.iter().find(|(_, e)| *e == event).map_or("", |(name, _)| name);
    let mut all = json!({
        "session_id": ours["session"],
        "cwd": ours["folder"],
        "hook_event_name": name,
        "permission_mode": "default",
        "transcript_path": "",
    });
    let call = &ours["call"];
    let Some(fields) = all.as_object_mut() else { return all };
    if let Some(tool) = call["tool"].as_str() {
        let theirs = aliases::theirs(tool).unwrap_or(tool);
        fields.insert("tool_name".into(), theirs.into());
        fields.insert("tool_input".into(), renamed(&call["arguments"], |(ours, theirs)| (ours, theirs)));
        fields.insert("tool_use_id".into(), call["id"].clone());
    }
    for (ours_name, theirs) in [
        ("prompt", "prompt"),
        ("result", "tool_response"),
        ("message", "message"),
        ("source", "source"),
        ("trigger", "trigger"),
    ] {
        if let Some(value) = ours.get(ours_name) {
            fields.insert(theirs.into(), value.clone());
        }
    }
    if event == HookEvent::BeforeResponse {
        fields.insert("stop_hook_active".into(), ours["again"].clone());
    }
    all
}

fn renamed(
    value: &Value,
    names: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let name = |field: &str| {
        let known = FIELDS.iter().map(|pair| names(*pair)).find(|(from, _)| *from == field);
        known.map_or(field.to_owned(), |(_, to)| to.to_owned())
    };
    fields.iter().map(|(field, value)| (name(field), value.clone())).collect::<Map<_, _>>().into()
}

/// What output in the form of Claude Code decides.
pub(crate) fn decision(fields: &Map<String, Value>) -> Result<Decision, String> {
    let own = Map::new();
    let specific = fields.get("hookSpecificOutput").and_then(Value::as_object).unwrap_or(&own);
    let reason = text_field(specific, "permissionDecisionReason")
        .or_else(|| text_field(fields, "reason"))
        .or_else(|| text_field(fields, "stopReason"));
    let is = |fields: &Map<String, Value>, name: &str, words: &[&str]| {
        fields.get(name).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
    };
    let stops = fields.get("continue") == Some(&Value::Bool(false));
    // A denial counts whatever stands beside it.
    if stops || is(specific, "permissionDecision", &["deny"]) || is(fields, "decision", &["block", "deny"]) {
        let reason = reason.unwrap_or_else(|| "it gave no reason".into());
        return Ok(Decision { deny: Some(reason), ..Decision::default() });
    }
    let word = |fields: &Map<String, Value>, name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) => Ok(Some(word.clone())),
        Some(_) => Err(format!("its {name} is not a string")),
    };
    let permission = word(specific, "permissionDecision")?;
    if permission.as_ref().is_some_and(|word| !matches!(word.as_str(), "allow" | "ask" | "defer")) {
        return Err("its permissionDecision is unknown".into());
    }
    if word(fields, "decision")?.is_some_and(|word| !matches!(word.as_str(), "approve" | "allow")) {
        return Err("its decision is unknown".into());
    }
    let asks = permission.as_deref() == Some("ask");
    let arguments = specific.get("updatedInput").filter(|v| v.is_object());
    Ok(Decision {
        deny: None,
        ask: asks.then(|| reason.unwrap_or_else(|| "it gave no reason".into())),
        arguments: arguments.map(|theirs| renamed(theirs, |(ours, theirs)| (theirs, ours))),
        result: None,
        add: text_field(specific, "additionalContext"),
        tell: text_field(fields, "systemMessage"),
    })
}

/// The hooks as text for `config.toml` (`section` is `hooks.`) or for `hooks.toml` (it is empty).
pub fn as_toml(hooks: &Hooks, section: &str) -> String {
    let mut text = String::new();
    for (event, hook) in crate::list::events(hooks) {
        text.push_str(&format!("\n[[{section}{}]]\n", event.name()));
        text.push_str(&toml::to_string(hook).unwrap_or_default());
    }
    text
}

/// Largest file that is read, in bytes.
const LARGEST: u64 = 256 * 1024;

/// The hooks of all files of Claude Code in a folder, with the file of each.
pub fn find(folder: &Path) -> Vec<(&'static str, Result<Imported, String>)> {
    let read = |name: &'static str| {
        let bytes = match tiller_fs::beneath::read_below(folder, Path::new(name), LARGEST + 1) {
            Ok(bytes) if bytes.len() as u64 <= LARGEST => bytes,
            Ok(_) => return Some((name, Err("it is larger than 256 KiB".to_owned()))),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
            Err(e) => return Some((name, Err(e.to_string()))),
        };
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned());
        Some((name, text.and_then(|text| import(&text))))
    };
    FILES.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_taken_over_and_what_has_no_counterpart_is_named() {
        let text = r#"{"hooks": {
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh", "timeout": 5}]},
                {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "lint.sh"}]},
                {"matcher": "NotebookEdit", "hooks": [{"type": "command", "command": "x"}]},
                {"hooks": [{"type": "prompt", "prompt": "is this fine?"}]}],
            "Stop": [{"hooks": [{"type": "command", "command": "done.sh"}]}],
            "WorktreeCreate": [{"hooks": [{"type": "command", "command": "w.sh"}]}]}}"#;
        let all = import(text).unwrap();
        assert_eq!(all.taken, 3);
        let rules: Vec<_> =
            all.hooks.before_tool_call.iter().map(|h| h.matches.as_deref().unwrap()).collect();
        assert_eq!(rules, ["terminal", "edit_file", "patch", "write_file"]);
        assert_eq!(all.hooks.before_tool_call[0].timeout, 5);
        assert_eq!(all.hooks.before_response.len(), 1);
        assert_eq!(all.left_out.len(), 3, "{:?}", all.left_out);
        assert!(all.left_out[2].contains("WorktreeCreate"), "{:?}", all.left_out);
        let text = as_toml(&all.hooks, "");
        assert_eq!(crate::file::read(&text).unwrap(), all.hooks, "{text}");
    }

    #[test]
    fn input_and_output_have_the_form_of_claude_code() {
        let ours = json!({"session": "s", "folder": "/w", "call": {
            "id": "c1", "tool": "edit_file", "arguments": {"path": "a", "old": "x"}}});
        let theirs = input(HookEvent::BeforeToolCall, &ours);
        assert_eq!(
            (&theirs["hook_event_name"], &theirs["tool_name"]),
            (&json!("PreToolUse"), &json!("Edit"))
        );
        assert_eq!(theirs["tool_input"], json!({"file_path": "a", "old_string": "x"}));
        let said = |value: Value| decision(value.as_object().unwrap());
        let deny =
            json!({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}});
        assert_eq!(said(deny).unwrap().deny.as_deref(), Some("no"));
        assert_eq!(said(json!({"decision": "block", "reason": "r"})).unwrap().deny.as_deref(), Some("r"));
        assert_eq!(said(json!({"continue": false})).unwrap().deny.as_deref(), Some("it gave no reason"));
        let changed = json!({"hookSpecificOutput": {"updatedInput": {"file_path": "b"}}});
        assert_eq!(said(changed).unwrap().arguments, Some(json!({"path": "b"})));
        let ask =
            json!({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}});
        assert_eq!(said(ask).unwrap().ask.as_deref(), Some("sure?"));
        let beside = json!({"decision": "block", "hookSpecificOutput": {"permissionDecision": 7}});
        assert!(said(beside).unwrap().deny.is_some());
        assert!(said(json!({"decision": "maybe"})).is_err());
        assert!(said(json!({"decision": 1})).is_err());
    }

    #[test]
    fn x20_a_folder_that_is_swapped_with_a_link_is_not_read() {
        use tiller_fs::testing::swap::{FOREIGN, MINE, Swaps};
        let tmp = tempfile::tempdir().unwrap();
        let swaps = Swaps::new(tmp.path(), ".claude", &[]);
        let text = |word: &str| {
            let hook = json!({"hooks": [{"type": "command", "command": word}]});
            json!({"hooks": {"SessionStart": [hook]}}).to_string()
        };
        swaps.put("settings.json", text(MINE), text(FOREIGN));
        swaps.check("hooks of Claude Code", || format!("{:?}", find(swaps.root())));
    }
}
