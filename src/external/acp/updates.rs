//! Converts `session/update` to events.

use std::collections::HashMap;
use tiller_protocol::ToolVerb;

use serde_json::Value;
use tiller_protocol::{Cost, Usage};

use crate::event::{AgentEvent, FileDiff, ToolUse};
use crate::repeated_output::RepeatedOutput;
use crate::tools;

/// Maximum bytes of a tool's output that are kept.
const OUTPUT: usize = 1 << 20;
/// Maximum number of remembered tool calls.
const TOOLS: usize = 10_000;
/// Maximum number of files of one call.
const PATHS: usize = 1000;

/// One tool call as far as it was reported.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub tool: ToolUse,
    pub diffs: Vec<FileDiff>,
    output: String,
    told: RepeatedOutput,
    done: bool,
}

/// State of the session's updates.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    calls: HashMap<String, Call>,
    /// The answer: the text since the last tool call.
    pub text: String,
    message: Option<String>,
    fresh: bool,
    /// The last reported sum of the session, and the part that was recorded before this process.
    cost: Cost,
    /// No cost was reported yet.
    untold: bool,
}

impl Updates {
    /// For a session of which this much was recorded already.
    pub(crate) fn going_on(booked: Cost) -> Self {
        Self { cost: booked, untold: true, ..Self::default() }
    }

    /// The part of the session's reported sum that is not recorded yet. A first sum below the recorded one counts from
    /// this process's start.
    fn added(&mut self, sum: Cost) -> Option<Cost> {
        if std::mem::take(&mut self.untold) && sum < self.cost {
            self.cost = Cost::default();
        }
        let more = Cost(sum.0.checked_sub(self.cost.0).filter(|more| *more > 0)?);
        self.cost = sum;
        Some(more)
    }

    /// Processes one update. Unknown updates are ignored.
    pub(crate) fn take(&mut self, update: &Value, out: &mut Vec<AgentEvent>) {
        let text = || update["content"]["text"].as_str().unwrap_or_default().to_owned();
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => self.message(&text(), update["messageId"].as_str(), out),
            Some("agent_thought_chunk") if !text().is_empty() => out.push(AgentEvent::Thinking(text())),
            Some("tool_call" | "tool_call_update") => {
                self.call(update, out);
            }
            Some("plan") => {
                let items = update["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
                out.push(AgentEvent::Plan(tools::plan(items)));
            }
            Some("usage_update") => {
                if let Some(used) = update["used"].as_u64() {
                    out.push(AgentEvent::Context { used, window: update["size"].as_u64() });
                }
                // The sum of the session so far.
                let usd = update["cost"]["currency"] == "USD";
                let sum = update["cost"]["amount"].as_f64().filter(|_| usd).map(Cost::from_usd);
                if let Some(more) = sum.and_then(|sum| self.added(sum)) {
                    out.push(AgentEvent::Usage { usage: Usage::default(), cost: Some(more) });
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, text: &str, id: Option<&str>, out: &mut Vec<AgentEvent>) {
        let other = id.is_some() && id != self.message.as_deref() && self.message.is_some();
        if (other || self.fresh) && !self.text.is_empty() {
            self.text.clear();
            out.push(AgentEvent::Break);
        }
        self.fresh = false;
        self.message = id.map(str::to_owned).or_else(|| self.message.take());
        if !text.is_empty() {
            self.text.push_str(text);
            out.push(AgentEvent::Text(text.to_owned()));
        }
    }

    /// Number of remembered calls.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.calls.len()
    }

    /// The call of the first or a later message about it: a call, an update, or a request for permission.
    pub(crate) fn call(&mut self, told: &Value, out: &mut Vec<AgentEvent>) -> Option<&Call> {
        let id = told["toolCallId"].as_str()?.to_owned();
        if self.calls.len() >= TOOLS && !self.calls.contains_key(&id) {
            self.calls.retain(|_, c| !c.done);
            if self.calls.len() >= TOOLS {
                // The program never ends its calls: they are dropped.
                self.calls.clear();
            }
        }
        let new = !self.calls.contains_key(&id);
        let call = self.calls.entry(id.clone()).or_default();
        self.fresh = true;
        let before = call.tool.clone();
        call.tool.id.clone_from(&id);
        fill(&mut call.tool, told);
        let changed = content(call, told);
        if call.done {
            return self.calls.get(&id);
        }
        if new || call.tool != before {
            out.push(AgentEvent::Tool(call.tool.clone()));
        }
        let status = told["status"].as_str();
        if let Some(ok) = status.and_then(|s| match s {
            "completed" => Some(true),
            "failed" => Some(false),
            _ => None,
        }) {
            call.done = true;
            let exit = told["_meta"]["terminal_exit"]["exit_code"].as_i64().unwrap_or(0);
            out.push(AgentEvent::ToolDone {
                id: id.clone(),
                ok: ok && exit == 0,
                output: call.output.clone(),
                diffs: if ok { call.diffs.clone() } else { Vec::new() },
            });
        } else if changed {
            let text = call.told.more(&call.output);
            if !text.is_empty() {
                out.push(AgentEvent::ToolProgress { id: id.clone(), text });
            }
        }
        self.calls.get(&id)
    }
}

fn fill(tool: &mut ToolUse, told: &Value) {
    let name = told["_meta"]["claudeCode"]["toolName"].as_str().or(told["name"].as_str());
    if let Some(status) = told["status"].as_str() {
        tool.pending = status == "pending";
    }
    if let Some(name) = name.or(told["title"].as_str().filter(|_| tool.name.is_empty())) {
        name.clone_into(&mut tool.name);
    }
    let verb = match told["kind"].as_str() {
        Some("read") => Some(ToolVerb::Read),
        Some("edit" | "delete" | "move") => Some(ToolVerb::Edit),
        Some("search") => Some(ToolVerb::Search),
        Some("execute") => Some(ToolVerb::Shell),
        Some("think") => Some(ToolVerb::Think),
        Some("fetch") => Some(ToolVerb::Fetch),
        // The program gives its kind as "other": the name is not used to guess.
        Some(_) => Some(ToolVerb::Tool),
        None if tool.verb == ToolVerb::Unnamed => Some(tools::verb(&tool.name)),
        None => None,
    };
    if let Some(verb) = verb {
        tool.verb = verb;
    }
    let raw = &told["rawInput"];
    if raw.as_object().is_some_and(|m| !m.is_empty()) {
        tool.args = raw.clone();
    }
    let places = told["locations"].as_array().into_iter().flatten().filter_map(|l| l["path"].as_str());
    for path in tools::paths(&tool.args).into_iter().chain(places.map(str::to_owned)).take(PATHS) {
        if !tool.paths.contains(&path) && tool.paths.len() < PATHS {
            tool.paths.push(path);
        }
    }
    let place =
        told["locations"][0]["path"].as_str().filter(|_| tool.verb != ToolVerb::Shell).map(str::to_owned);
    let target = Some(tools::target(&tool.args)).filter(|t| !t.is_empty());
    let title = told["title"].as_str().map(|t| t.chars().take(2000).collect());
    if let Some(found) = target.or(place).or(title.filter(|_| tool.target.is_empty())) {
        tool.target = found;
    }
}

/// Stores the reported output and changes of a call. True: there was output.
fn content(call: &mut Call, told: &Value) -> bool {
    let mut text = String::new();
    let blocks = told["content"].as_array();
    if let Some(blocks) = blocks.filter(|b| b.iter().any(|b| b["type"] == "diff")) {
        call.diffs.clear();
        for b in blocks.iter().filter(|b| b["type"] == "diff") {
            call.diffs.push(FileDiff {
                path: b["path"].as_str().unwrap_or_default().to_owned(),
                old: b["oldText"].as_str().map(str::to_owned),
                new: b["newText"].as_str().map(str::to_owned),
            });
        }
    }
    for block in blocks.into_iter().flatten() {
        text.push_str(block["content"]["text"].as_str().unwrap_or_default());
    }
    let raw = &told["rawOutput"];
    if text.is_empty()
        && let Some(raw) = raw.as_str().or(raw["output"].as_str()).or(raw["formatted_output"].as_str())
    {
        raw.clone_into(&mut text);
    }
    let mut any = true;
    if !text.is_empty() {
        call.output = text;
    } else if let Some(more) = told["_meta"]["terminal_output_delta"]["data"].as_str() {
        call.output.push_str(more);
    } else {
        any = false;
    }
    if call.output.len() > OUTPUT {
        let at = call.output.floor_char_boundary(OUTPUT);
        call.output.truncate(at);
    }
    any
}
