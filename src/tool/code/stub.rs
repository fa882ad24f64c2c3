//! `tiller_tools.py`: a function for each tool that a script may call.

use serde_json::Value;
use tiller_protocol::ToolSpec;

use crate::ToolError;

/// How a script calls a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StubKind {
    /// By a function with the tool's parameters.
    Function,
    /// The same; the lines of its result lose their numbers.
    Numbered,
    /// The same, with fewer parameters: commands of a script run in the foreground.
    Command,
    /// By server and name: `{server, tool, arguments}`.
    Servers,
}

/// The tools that scripts may call, where the session has them.
pub(super) const EXPOSED: [(&str, StubKind); 15] = [
    ("web_search", StubKind::Function),
    ("web_extract", StubKind::Function),
    ("read_file", StubKind::Numbered),
    ("write_file", StubKind::Function),
    ("search", StubKind::Function),
    ("patch", StubKind::Function),
    ("terminal", StubKind::Command),
    ("browser_navigate", StubKind::Function),
    ("browser_snapshot", StubKind::Function),
    ("browser_click", StubKind::Function),
    ("browser_type", StubKind::Function),
    ("browser_scroll", StubKind::Function),
    ("browser_back", StubKind::Function),
    ("browser_press", StubKind::Function),
    ("mcp_call", StubKind::Servers),
];

impl StubKind {
    fn of(tool: &str) -> Self {
        EXPOSED.iter().find(|(name, _)| *name == tool).map_or(Self::Function, |(_, kind)| *kind)
    }
}

/// What scripts may give to `terminal`: commands of a script run in the foreground.
const TERMINAL: [&str; 3] = ["command", "timeout", "workdir"];

/// Words that cannot name a parameter in Python.
const RESERVED: &[&str] =
    &["from", "import", "class", "def", "in", "is", "not", "and", "or", "if", "for", "global", "with"];

/// The text of `tiller_tools.py` for these tools. `aliases`: other names of each, as direct calls are understood by.
pub(super) fn source(specs: &[ToolSpec], aliases: &[(String, &str)]) -> String {
    let mut text = include_str!("stub.py").to_owned();
    let mut names = Vec::new();
    for spec in specs {
        let servers = StubKind::of(&spec.name) == StubKind::Servers;
        if servers {
            text.push_str("mcp = _Servers()\n");
        } else {
            text.push_str(&function(spec));
        }
        names.push(format!("{:?}", if servers { "mcp" } else { spec.name.as_str() }));
    }
    text.push_str(&format!("_TOOLS = [{}]\n", names.join(", ")));
    let aliases: Vec<String> = aliases.iter().map(|(alias, name)| format!("{alias:?}: {name:?}")).collect();
    text.push_str(&format!("_ALIASES = {{{}}}\n", aliases.join(", ")));
    text
}

/// One function. What is required comes first; the rest is given by name. Other names of parameters go to the tool, which
/// knows them, so no parameter is required here.
fn function(spec: &ToolSpec) -> String {
    let name = &spec.name;
    let names = parameters(spec);
    let required: Vec<&str> =
        spec.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let optional = names.iter().filter(|n| !required.contains(n));
    let all = required.iter().filter(|n| names.contains(n)).chain(optional);
    let mut list: Vec<String> = all.map(|n| format!("{n}=None")).collect();
    list.push("**_more".into());
    let mut given: Vec<String> = names.iter().map(|n| format!("{n:?}: {n}")).collect();
    given.push("**_more".into());
    let call = format!("_call({name:?}, {{{}}})", given.join(", "));
    let call = if StubKind::of(name) == StubKind::Numbered { format!("_plain({call})") } else { call };
    let doc = spec.description.lines().next().unwrap_or_default().replace(['"', '\\'], "'");
    format!("\n\ndef {name}({}):\n    \"\"\"{doc}\"\"\"\n    return {call}\n\n", list.join(", "))
}

/// The parameters of a function that Python can name.
fn parameters(spec: &ToolSpec) -> Vec<&str> {
    let fields = spec.schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
    let named = |name: &&str| {
        !RESERVED.contains(name)
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && (StubKind::of(&spec.name) != StubKind::Command || TERMINAL.contains(name))
    };
    fields.map(String::as_str).filter(named).collect()
}

/// Whether a script may make this call of an exposed tool.
///
/// # Errors
/// [`ToolError::Tell`] with what there is.
pub(super) fn check(specs: &[ToolSpec], tool: &str, args: &Value) -> Result<(), ToolError> {
    if !specs.iter().any(|spec| spec.name == tool) {
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let tool: String = tool.chars().take(60).collect();
        return Err(ToolError::Tell(format!(
            "scripts have no tool '{tool}'. There is: {}",
            names.join(", ")
        )));
    }
    let other = args
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .find(|name| !TERMINAL.contains(&name.as_str()));
    match other.filter(|_| StubKind::of(tool) == StubKind::Command) {
        Some(name) => {
            Err(ToolError::Tell(format!("terminal takes {} in scripts, not '{name}'", TERMINAL.join(", "))))
        }
        None => Ok(()),
    }
}
