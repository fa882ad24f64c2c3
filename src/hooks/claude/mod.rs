//! Hooks that were written for Claude Code: their settings, their input and their output in its form.
//!
//! A hook guards here at least what it guards there. What cannot be translated whole runs for more calls, which is said.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;
use tiller_config::schema::{Hook, HookFormat, Hooks};
use tiller_protocol::HookEvent;

use matcher::Matched;

mod call;
mod matcher;

pub(crate) use call::{decision, inputs, taken_back};

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

/// Files of Claude Code in a folder that can hold hooks.
pub const FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// The hooks of a settings file, and those parts of it that have no counterpart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub hooks: Hooks,
    /// Events and kinds of hooks that have no counterpart, each in words.
    pub left_out: Vec<String>,
    /// Hooks that run for more than there, each in words.
    pub widened: Vec<String>,
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
        let Some(groups) = groups.as_array() else {
            all.left_out.push(format!("{name}: it is not a list"));
            continue;
        };
        for group in groups {
            let matcher = match group.get("matcher") {
                None | Some(Value::Null) => "",
                Some(Value::String(matcher)) => matcher,
                Some(_) => {
                    all.widened.push(format!("{name}: a matcher is not a string, the hook runs each time"));
                    ""
                }
            };
            match group.get("hooks").and_then(Value::as_array) {
                Some(hooks) => hooks.iter().for_each(|hook| all.add(name, *event, matcher, hook)),
                None => all.left_out.push(format!("{name}: a group has no list of `hooks`")),
            }
        }
    }
    Ok(all)
}

impl Imported {
    fn add(&mut self, name: &str, event: HookEvent, matcher: &str, hook: &Value) {
        let kind = hook.get("type").and_then(Value::as_str).unwrap_or("command");
        let command = command(hook).filter(|_| kind == "command");
        // A guard that cannot run leaves the decision to the person.
        let stands_in = command.is_none() && event == HookEvent::BeforeToolCall;
        let Some(command) = command.or_else(|| stands_in.then(|| ASKS.to_owned())) else {
            return self.left_out.push(format!("{name}: hooks of the type {kind} are not supported"));
        };
        let calls = matches!(event, HookEvent::BeforeToolCall | HookEvent::AfterToolCall);
        let rules = if calls {
            let Matched { rules, unknown, widened } = Matched::read(matcher);
            let tool =
                |tool: &String| format!("{name}: Tiller has no tool for {tool} in the matcher {matcher}");
            self.left_out.extend(unknown.iter().map(tool));
            self.widened.extend(widened.map(|why| format!("{name}: the matcher {matcher} {why}")));
            rules
        } else {
            vec![None]
        };
        if rules.is_empty() {
            return;
        }
        if !calls && !matches!(matcher, "" | "*") {
            self.widened.push(format!("{name}: the matcher {matcher} is ignored, the hook runs each time"));
        }
        if stands_in {
            self.widened.push(format!(
                "{name}: hooks of the type {kind} cannot run here, so the calls that this one is for ask (remove it if it guards nothing)"
            ));
        }
        if event == HookEvent::AgentEnd {
            self.left_out
                .push(format!("{name}: the hook runs, but a denial does not hold back the end of an agent"));
        }
        if hook.get("if").is_some() {
            self.widened.push(format!("{name}: its condition `if` is ignored"));
        }
        self.taken += 1;
        for matches in rules {
            let hook = Hook {
                command: command.clone(),
                name: None,
                matches,
                timeout: seconds(hook),
                blocking: false,
                format: HookFormat::Claude,
            };
            list(&mut self.hooks, event).push(hook);
        }
    }
}

/// Stands for a hook that cannot run here.
const ASKS: &str = r#"echo '{"permissionDecision": "ask", "permissionDecisionReason": "it stands for a hook of Claude Code that cannot run here"}'"#;
/// In `args` the program there puts the folder in place of this.
const FOLDER: &str = "${CLAUDE_PROJECT_DIR}";

/// The command as one line for the shell: a program with `args` is run as it is, without a shell's reading.
fn command(hook: &Value) -> Option<String> {
    let command = hook.get("command").and_then(Value::as_str)?;
    let Some(args) = hook.get("args").filter(|args| !args.is_null()) else { return Some(command.to_owned()) };
    let args = args.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    let quoted = |word: &str| {
        let parts = word.split(FOLDER).map(|part| format!("'{}'", part.replace('\'', r"'\''")));
        parts.collect::<Vec<_>>().join(&format!("\"{FOLDER}\""))
    };
    Some(std::iter::once(command).chain(args).map(quoted).collect::<Vec<_>>().join(" "))
}

/// Seconds that the hook may take there.
fn seconds(hook: &Value) -> u64 {
    const UNLESS_SAID: u64 = 600;
    let said = hook.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    // More than an hour is an hour here.
    said.map_or(UNLESS_SAID, |seconds| seconds.ceil().min(3600.0) as u64)
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
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_are_taken_over_and_what_has_no_counterpart_is_named() {
        let text = r#"{"hooks": {
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh", "timeout": 5}]},
                {"matcher": "Edit|Write|Unheard", "hooks": [{"type": "command", "command": "lint.sh"}]},
                {"matcher": "ExitPlanMode", "hooks": [{"type": "command", "command": "x"}]},
                {"hooks": [{"type": "prompt", "prompt": "is this fine?"}]}],
            "Stop": [{"hooks": [{"type": "command", "command": "done.sh"}]}],
            "WorktreeCreate": [{"hooks": [{"type": "command", "command": "w.sh"}]}]}}"#;
        let all = import(text).unwrap();
        assert_eq!(all.taken, 4);
        let rules: Vec<_> =
            all.hooks.before_tool_call.iter().map(|h| h.matches.as_deref().unwrap_or("ALL")).collect();
        let edits = ["edit_file", "make_document", "patch", "render_diagram", "write_file"];
        let commands = ["execute_code", "process", "terminal"];
        assert_eq!(
            rules,
            commands.into_iter().chain(edits).chain(["ALL"]).collect::<Vec<_>>(),
            "an unknown name takes nothing from the others"
        );
        assert_eq!(all.hooks.before_tool_call[0].timeout, 5);
        assert_eq!(all.hooks.before_response.len(), 1);
        assert_eq!((all.left_out.len(), all.widened.len()), (3, 1), "{all:?}");
        assert!(all.left_out[0].contains("Unheard"), "{:?}", all.left_out);
        assert!(all.left_out[2].contains("WorktreeCreate"), "{:?}", all.left_out);
        let text = as_toml(&all.hooks, "");
        assert_eq!(crate::file::read(&text).unwrap(), all.hooks, "{text}");
    }

    /// A part that has not the form of a settings file there is named, not dropped.
    #[test]
    fn a_wrong_form_is_named() {
        let hook = json!({"type": "command", "command": "x"});
        for (events, taken, left_out, widened) in [
            (json!({"PreToolUse": {"matcher": "Bash", "hooks": [hook]}}), 0, 1, 0),
            (json!({"PreToolUse": [{"matcher": "Bash", "hooks": hook}]}), 0, 1, 0),
            (json!({"PreToolUse": [{"matcher": "Bash"}]}), 0, 1, 0),
            (json!({"PreToolUse": [hook]}), 0, 1, 0),
            (json!({"PreToolUse": [{"matcher": ["Bash"], "hooks": [hook]}]}), 1, 0, 1),
            (json!({"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": "x"}]}]}), 1, 0, 1),
            (json!({"PreToolUse": [{"hooks": [{"command": "x", "args": "y"}]}]}), 1, 0, 1),
            (json!({"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": "x"}]}]}), 0, 1, 0),
            (json!({"SubagentStop": [{"hooks": [hook]}]}), 1, 1, 0),
            (json!({"pretooluse": [{"hooks": [hook]}]}), 0, 1, 0),
            (
                json!({"PreToolUse": [{"matcher": "Edit", "hooks": [{"command": "x", "if": "Edit(*.ts)"}]}]}),
                1,
                0,
                1,
            ),
        ] {
            let all = import(&json!({ "hooks": events }).to_string()).unwrap();
            assert_eq!(
                (all.taken, all.left_out.len(), all.widened.len()),
                (taken, left_out, widened),
                "{all:?}"
            );
        }
        assert!(import(r#"{"hooks": []}"#).is_err() && import("[]").is_err() && import("{").is_err());
    }

    /// A program with arguments gets them as they are, and each hook the time that it has there.
    #[test]
    fn a_program_with_arguments_and_the_time_of_a_hook_are_taken_over() {
        for (hook, command, seconds) in [
            (json!({"command": "a b"}), "a b", 600),
            (json!({"command": "a b", "args": null, "timeout": 5}), "a b", 5),
            (json!({"command": "node", "args": [], "timeout": 0.5}), "'node'", 1),
            (json!({"command": "a b", "args": ["it's", "$X"], "timeout": -1}), r"'a b' 'it'\''s' '$X'", 600),
            (
                json!({"command": "node", "args": ["${CLAUDE_PROJECT_DIR}/g.js"], "timeout": 1e9}),
                r#"'node' ''"${CLAUDE_PROJECT_DIR}"'/g.js'"#,
                3600,
            ),
        ] {
            let all = import(&json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}).to_string()).unwrap();
            let hook = &all.hooks.before_tool_call[0];
            assert_eq!((hook.command.as_str(), hook.timeout), (command, seconds));
        }
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
