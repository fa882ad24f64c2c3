//! The representation of a tool call for clients: kind, title, files, output.

use std::path::{Path, PathBuf};
use tiller_protocol::ToolVerb;

use serde_json::{Value, json};
use tiller_protocol::tool::{Display, InnerCall};
use tiller_protocol::{AgentId, Part, ToolCatalog, ToolOutcome, Touch};

use super::hunks;
use crate::commands::sessions::one_line;

/// Maximum characters of a title.
const TITLE: usize = 200;

/// The kind, by what the tool does and touches; `None`: it is not one of Tiller's.
pub(super) fn kind(tools: &ToolCatalog, tool: &str) -> Option<&'static str> {
    let info = tools.get(tool)?;
    Some(match (&info.verb, info.touch) {
        (ToolVerb::Search | ToolVerb::Recall, _) => "search",
        (_, Touch::Read) => "read",
        (_, Touch::Write) => "edit",
        (_, Touch::Execute) => "execute",
        (_, Touch::Network) => "fetch",
        (_, Touch::Plan) => "think",
        (_, Touch::Agent) => "other",
    })
}

/// The kind of a tool that is not Tiller's, by the verb that its program reports.
pub(super) fn kind_of_verb(verb: &ToolVerb) -> &str {
    match verb {
        ToolVerb::Read | ToolVerb::Edit | ToolVerb::Search | ToolVerb::Fetch | ToolVerb::Think => verb.word(),
        ToolVerb::Shell => "execute",
        _ => "other",
    }
}

/// One line: the verb and its target.
fn title(tools: &ToolCatalog, tool: &str, args: &Value) -> String {
    if let Some(target) = tiller_protocol::mcp::named_target(tool) {
        return line(&format!("{} {target}", ToolVerb::Tool));
    }
    match tools.get(tool) {
        Some(t) => line(&format!("{} {}", t.verb, (t.target)(args))),
        None => line(tool),
    }
}

/// A line for people, without terminal control characters.
pub(super) fn line(text: &str) -> String {
    let line = one_line(text.trim());
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// The file that the arguments name, absolute.
pub(super) fn locations(root: &Path, args: &Value) -> Vec<Value> {
    let path = args.get("path").and_then(Value::as_str).filter(|p| !p.is_empty());
    path.map(|p| json!({"path": absolute(root, p)})).into_iter().collect()
}

pub(super) fn absolute(root: &Path, path: &str) -> PathBuf {
    // Absolute paths are kept.
    root.join(path)
}

/// The update for a call that begins.
pub(super) fn begun(
    root: &Path,
    tools: &ToolCatalog,
    id: &str,
    tool: &str,
    args: &Value,
    status: &str,
) -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": title(tools, tool, args),
        "kind": kind(tools, tool).unwrap_or("other"),
        "status": status,
        "locations": locations(root, args),
        "rawInput": args,
    })
}

/// The id of an agent's call. The main agent's calls keep their ids; two agents may use the same id.
pub(super) fn shown_id(agent: &AgentId, id: &str) -> String {
    if agent.is_main() { id.to_owned() } else { format!("{}:{id}", agent.name()) }
}

/// Marks an update as being about a call of `agent`, whose name precedes the title.
pub(super) fn of_agent(update: &mut Value, agent: &AgentId) {
    if agent.is_main() {
        return;
    }
    if let Some(id) = update["toolCallId"].as_str() {
        update["toolCallId"] = shown_id(agent, id).into();
    }
    if let Some(title) = update["title"].as_str() {
        update["title"] = line(&format!("{}: {title}", agent.name())).into();
    }
}

/// The update for a call that a script has made: a line, as while it ran.
pub(super) fn inner(of: &str, call: &InnerCall, most: u32) -> Value {
    let text = format!("{}/{most} {} {}", call.number, call.verb, line(&call.target));
    json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": of,
        "content": [words(&fenced(&text))],
    })
}

/// A tool that is not Tiller's belongs to an external program: only the program's report is known.
pub(super) fn of_program(tools: &ToolCatalog, update: &mut Value, tool: &str, verb: &ToolVerb, target: &str) {
    if tools.contains(tool) {
        return;
    }
    update["title"] = line(&match verb {
        ToolVerb::Unnamed => format!("{tool} {target}"),
        verb => format!("{verb} {target}"),
    })
    .into();
    update["kind"] = kind_of_verb(verb).into();
}

/// The update for a call that ended.
pub(super) fn ended(
    root: &Path,
    id: &str,
    outcome: ToolOutcome,
    parts: &[Part],
    display: Option<&Display>,
) -> Value {
    let mut content = Vec::new();
    let mut places = Vec::new();
    if let (true, Some(Display::Diff { files })) = (outcome.ok(), display) {
        for file in files {
            let path = absolute(root, &file.path);
            let hunks = hunks::read(&file.diff);
            let line = hunks.first().map_or(1, |h| h.line);
            places.push(json!({"path": path, "line": line}));
            content.extend(hunks.iter().map(|h| diff(&path, h)));
        }
    }
    if content.is_empty() {
        content.extend(parts.iter().filter_map(part));
    }
    let status = if outcome.ok() { "completed" } else { "failed" };
    let mut update = json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": id,
        "status": status,
        "content": content,
    });
    if !places.is_empty() {
        update["locations"] = places.into();
    }
    update
}

/// One changed part of a file.
pub(super) fn diff(path: &Path, hunk: &hunks::Hunk) -> Value {
    json!({"type": "diff", "path": path, "oldText": hunk.old, "newText": hunk.new})
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(words(&fenced(text))),
        Part::Image { media_type, data } => {
            let image = json!({"type": "image", "mimeType": media_type, "data": data});
            Some(json!({"type": "content", "content": image}))
        }
    }
}

/// Text as content of a call.
pub(super) fn words(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// Clients render text as Markdown, so output is fenced.
pub(super) fn fenced(text: &str) -> String {
    let mut longest = 2;
    for line in text.lines() {
        let ticks = line.trim_start().bytes().take_while(|b| *b == b'`').count();
        longest = longest.max(ticks);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_cannot_leave_its_fence() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("x\n  ````rust\ny"), "`````\nx\n  ````rust\ny\n`````");
    }

    #[test]
    fn every_tool_has_a_kind_and_a_title() {
        let tools = tiller_tool::Registry::built_in().catalog();
        let kinds: Vec<Option<&str>> = [
            "read_file",
            "search",
            "session_search",
            "edit_file",
            "terminal",
            "web_fetch",
            "todo_write",
            "none",
        ]
        .into_iter()
        .map(|t| kind(&tools, t))
        .collect();
        let want = ["read", "search", "search", "edit", "execute", "fetch", "think"].map(Some);
        assert_eq!(kinds[..7], want);
        assert_eq!(kinds[7], None);
        assert_eq!(
            [ToolVerb::Shell, ToolVerb::Fetch, ToolVerb::Agent].map(|v| kind_of_verb(&v).to_owned()),
            ["execute", "fetch", "other"]
        );
        assert_eq!(title(&tools, "read_file", &json!({"path": "a.txt"})), "read a.txt");
        assert_eq!(title(&tools, "evil\u{1b}[31m\nname", &json!({})), "evil\\x1b[31m");
        assert!(line(&"x".repeat(500)).len() < 210);
    }
}
