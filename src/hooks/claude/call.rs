//! The input of a hook in the form of Claude Code, and what its output decides.

use std::path::Path;

use serde_json::{Map, Value, json};
use tiller_protocol::HookEvent;
use tiller_tool::{aliases, patched};

use super::EVENTS;
use super::matcher::MORE;
use crate::decision::{Decision, text_field};

/// Tools whose `path` is `file_path` there.
const FILES: [&str; 5] = ["read_file", "write_file", "edit_file", "make_document", "render_diagram"];
/// Other fields with another name, and the tools that have them.
const FIELDS: [(&str, &str, &str); 4] = [
    ("edit_file", "old", "old_string"),
    ("edit_file", "new", "new_string"),
    ("read_file", "start", "offset"),
    ("terminal", "background", "run_in_background"),
];
/// Names there of an agent's start, an older one and a newer one.
const AGENTS: [&str; 2] = ["Task", "Agent"];

/// The argument there that names the kind of agent.
const AGENT: &str = concat!("sub", "agent_type");

/// The first `most` inputs, one for each call that it comes to there, and the number of all. `home`: the home folder.
pub(crate) fn inputs(event: HookEvent, ours: &Value, home: Option<&str>, most: usize) -> (Vec<Value>, usize) {
    let name = EVENTS.iter().find(|(_, e)| *e == event).map_or("", |(name, _)| name);
    let folder = ours["folder"].as_str().unwrap_or_default();
    let mut all = Map::new();
    for (field, value) in [
        ("session_id", ours["session"].clone()),
        ("cwd", folder.into()),
        ("hook_event_name", name.into()),
        ("permission_mode", mode(ours["profile"].as_str().unwrap_or_default()).into()),
        ("transcript_path", "".into()),
    ] {
        all.insert(field.into(), value);
    }
    for (ours_name, theirs) in [
        ("prompt", "prompt"),
        ("result", "tool_response"),
        ("message", "message"),
        ("source", "source"),
        ("trigger", "trigger"),
    ] {
        if let Some(value) = ours.get(ours_name) {
            all.insert(theirs.into(), value.clone());
        }
    }
    if event == HookEvent::BeforeResponse {
        all.insert("stop_hook_active".into(), ours["again"].clone());
    }
    let call = &ours["call"];
    let Some(tool) = call["tool"].as_str() else { return (vec![Value::Object(all)], 1) };
    all.insert("tool_use_id".into(), call["id"].clone());
    let places = Places { folder: Path::new(folder), home };
    let calls = places.calls(tool, &call["arguments"]);
    let count = calls.len();
    let one = |(name, input): (String, Value)| {
        let mut all = all.clone();
        all.insert("tool_name".into(), name.into());
        all.insert("tool_input".into(), input);
        Value::Object(all)
    };
    (calls.into_iter().take(most).map(one).collect(), count)
}

/// The mode there that is the most like a profile of Tiller.
fn mode(profile: &str) -> &'static str {
    match profile {
        "read-only" | "plan" => "plan",
        "auto-edit" => "acceptEdits",
        "full" => "bypassPermissions",
        _ => "default",
    }
}

/// The folders against which paths are made absolute.
struct Places<'a> {
    folder: &'a Path,
    home: Option<&'a str>,
}

impl Places<'_> {
    /// The calls there that `tool` with these arguments comes to, each with its name. A guard may look at the name: a call that is
    /// one of several there is shown as each of them.
    fn calls(&self, tool: &str, arguments: &Value) -> Vec<(String, Value)> {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        let named = |name: &str, input: Value| vec![(name.to_owned(), input)];
        let found = match tool {
            "patch" => self.patch(text("patch")),
            "mcp_call" => {
                let name = format!("mcp__{}__{}", text("server"), text("tool"));
                named(&name, arguments.get("arguments").cloned().unwrap_or_else(|| json!({})))
            }
            "execute_code" => named("Bash", json!({ "command": text("code") })),
            "process" => named("Bash", json!({ "command": text("text") })),
            "browser_navigate" => named("WebFetch", json!({ "url": text("url"), "prompt": "" })),
            "web_extract" => {
                let urls = arguments["urls"].as_array().into_iter().flatten();
                urls.map(|url| ("WebFetch".to_owned(), json!({ "url": url, "prompt": "" }))).collect()
            }
            "delegate_task" | "delegate_async" => {
                let lists = ["tasks", "workflow"].into_iter().filter_map(|name| arguments[name].as_array());
                lists.flatten().flat_map(started).collect()
            }
            "spawn_agent" => started(arguments).collect(),
            "make_document" | "render_diagram" => named("Write", self.renamed(tool, arguments)),
            _ => Vec::new(),
        };
        let mut found = match found.is_empty() {
            true => named(theirs(tool), self.renamed(tool, arguments)),
            false => found,
        };
        let lists = tool == "list_dir" || tool == "search" && text("pattern").is_empty();
        if lists {
            let pattern = if text("glob").is_empty() { "*" } else { text("glob") };
            let folder = if text("path").is_empty() { "." } else { text("path") };
            found.extend(named("Glob", json!({ "pattern": pattern, "path": self.absolute(folder) })));
        }
        let notebooks: Vec<_> = found.iter().filter_map(notebook).collect();
        found.extend(notebooks);
        found
    }

    /// A patch as one call for each file.
    fn patch(&self, text: &str) -> Vec<(String, Value)> {
        let file = |file: patched::PatchedFile| {
            let path = self.absolute(&file.path);
            match file.before {
                None => ("Write".to_owned(), json!({ "file_path": path, "content": file.after })),
                Some(before) => {
                    let input = json!({ "file_path": path, "old_string": before, "new_string": file.after });
                    ("Edit".to_owned(), input)
                }
            }
        };
        patched::files(text).into_iter().map(file).collect()
    }

    fn renamed(&self, tool: &str, arguments: &Value) -> Value {
        let Value::Object(fields) = arguments else { return arguments.clone() };
        let one = |(name, value): (&String, &Value)| match (name.as_str(), value) {
            ("path", Value::String(path)) => {
                let name = if FILES.contains(&tool) { "file_path" } else { "path" };
                (name.to_owned(), self.absolute(path).into())
            }
            (name, value) => {
                let known = FIELDS.iter().find(|(of, ours, _)| *of == tool && *ours == name);
                (known.map_or(name, |(_, _, theirs)| *theirs).to_owned(), value.clone())
            }
        };
        fields.iter().map(one).collect::<Map<_, _>>().into()
    }

    /// The path as it is there: absolute, without `.` and `..` as far as its names show that.
    fn absolute(&self, path: &str) -> String {
        let whole = match (path.strip_prefix("~/"), self.home) {
            (Some(below), Some(home)) => Path::new(home).join(below),
            _ => self.folder.join(path),
        };
        tiller_protocol::names::written(&tiller_permit::paths::normal(&whole))
    }
}

/// The name there of a tool, as guards compare it.
fn theirs(tool: &str) -> &str {
    let more = || MORE.iter().find(|(_, tools)| tools.contains(&tool)).map(|(name, _)| *name);
    aliases::theirs(tool).or_else(more).unwrap_or(tool)
}

/// A change of a notebook as the tool there for that.
fn notebook((name, input): &(String, Value)) -> Option<(String, Value)> {
    let path = input["file_path"].as_str().filter(|path| path.to_lowercase().ends_with(".ipynb"))?;
    let source = match name.as_str() {
        "Write" => &input["content"],
        "Edit" => &input["new_string"],
        _ => return None,
    };
    Some(("NotebookEdit".to_owned(), json!({ "notebook_path": path, "new_source": source })))
}

/// The start of an agent.
fn started(task: &Value) -> impl Iterator<Item = (String, Value)> {
    let input = of_task(task);
    AGENTS.into_iter().map(move |name| (name.to_owned(), input.clone()))
}

fn of_task(task: &Value) -> Value {
    let text = |name: &str| task[name].as_str().unwrap_or_default();
    let prompt = format!("{}\n{}", text("goal"), text("context"));
    let mut input = json!({ "description": text("label"), "prompt": prompt.trim() });
    input[AGENT] = text("agent").into();
    input
}

/// The arguments of our call for those that a hook put in place of the input there. `several`: the call is several there.
///
/// # Errors
/// When the call comes to several there, so that none of them is the whole.
pub(crate) fn taken_back(call: &Value, theirs: &Value, several: bool) -> Result<Value, String> {
    let tool = call["tool"].as_str().unwrap_or_default();
    let cannot = || Err(format!("it changed the arguments of {tool}, which Tiller cannot take over"));
    let Value::Object(fields) = theirs else { return cannot() };
    if several {
        return cannot();
    }
    let with = |field: &str, value: &Value| {
        let mut own = call["arguments"].as_object().cloned().unwrap_or_default();
        own.insert(field.to_owned(), value.clone());
        Ok(Value::Object(own))
    };
    let one = |name: &str, field: &str| fields.get(name).map_or_else(cannot, |value| with(field, value));
    match tool {
        "execute_code" => one("command", "code"),
        "process" => one("command", "text"),
        "browser_navigate" => one("url", "url"),
        "mcp_call" => with("arguments", theirs),
        "patch" | "web_extract" | "delegate_task" | "delegate_async" | "spawn_agent" => cannot(),
        _ => {
            let back = |name: &str| {
                let known = FIELDS.iter().find(|(of, _, theirs)| *of == tool && *theirs == name);
                match known {
                    Some((_, ours, _)) => (*ours).to_owned(),
                    None if name == "file_path" && FILES.contains(&tool) => "path".to_owned(),
                    None => name.to_owned(),
                }
            };
            let fields = fields.iter().map(|(name, value)| (back(name), value.clone()));
            Ok(fields.collect::<Map<_, _>>().into())
        }
    }
}

/// The decision in an output in the form of Claude Code.
pub(crate) fn decision(fields: &Map<String, Value>) -> Result<Decision, String> {
    let own = Map::new();
    let specific = match fields.get("hookSpecificOutput") {
        None | Some(Value::Null) => &own,
        Some(Value::Object(specific)) => specific,
        Some(_) => return Err("its hookSpecificOutput is not an object".into()),
    };
    let reason = text_field(specific, "permissionDecisionReason")
        .or_else(|| text_field(fields, "permissionDecisionReason"))
        .or_else(|| text_field(fields, "reason"))
        .or_else(|| text_field(fields, "stopReason"));
    // Written where it does not belong, and as a later form has it, too.
    let permissions = [specific, fields].map(|all| all.get("permissionDecision"));
    let behaviors = [specific, fields].map(|all| all.get("decision").and_then(|d| d.get("behavior")));
    let is = |value: Option<&Value>, words: &[&str]| {
        value.and_then(Value::as_str).is_some_and(|word| words.contains(&word))
    };
    let stops = fields.get("continue") == Some(&Value::Bool(false));
    // A denial counts whatever stands beside it.
    if stops
        || permissions.iter().chain(&behaviors).any(|value| is(*value, &["deny", "block"]))
        || is(fields.get("decision"), &["block", "deny"])
        || is(specific.get("decision"), &["block", "deny"])
    {
        let reason = reason.unwrap_or_else(|| "it gave no reason".into());
        return Ok(Decision { deny: Some(reason), ..Decision::default() });
    }
    if fields.get("continue").is_some_and(|value| !value.is_boolean() && !value.is_null()) {
        return Err("its continue is neither true nor false".into());
    }
    let known = |name: &str, value: Option<&Value>, words: &[&str]| match value {
        None | Some(Value::Null) => Ok(()),
        value if is(value, words) => Ok(()),
        Some(_) => Err(format!("its {name} is unknown")),
    };
    for value in permissions {
        known("permissionDecision", value, &["allow", "ask", "defer"])?;
    }
    for (all, behavior) in [specific, fields].into_iter().zip(behaviors) {
        match behavior {
            None => known("decision", all.get("decision"), &["approve", "allow"])?,
            behavior => known("decision", behavior, &["allow", "ask"])?,
        }
    }
    let asks = permissions.iter().chain(&behaviors).any(|value| is(*value, &["ask"]));
    let arguments = specific.get("updatedInput").filter(|v| v.is_object());
    Ok(Decision {
        deny: None,
        ask: asks.then(|| reason.unwrap_or_else(|| "it gave no reason".into())),
        arguments: arguments.cloned(),
        result: None,
        add: text_field(specific, "additionalContext"),
        tell: text_field(fields, "systemMessage"),
    })
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
