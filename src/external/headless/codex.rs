//! Records of `codex exec --json`.

use serde_json::{Value, json};
use tiller_protocol::Usage;

use super::{Records, TurnReport};
use crate::event::{AgentEvent, FileDiff};
use crate::repeated_output::RepeatedOutput;
use crate::tools;

#[derive(Default)]
pub(crate) struct Codex {
    report: TurnReport,
    started: std::collections::HashSet<String>,
    /// How much of each running call's output was passed on.
    outputs: std::collections::HashMap<String, RepeatedOutput>,
    /// Tokens of the session before this turn: the program reports the sum of all turns, including those of earlier
    /// processes.
    counted: Usage,
}

/// An item that is a tool call: its name and arguments.
fn call(item: &Value) -> Option<(String, Value)> {
    Some(match item["type"].as_str()? {
        "command_execution" => ("shell".into(), json!({"command": item["command"]})),
        "file_change" => {
            let first = item["changes"].get(0).map(|c| c["path"].clone()).unwrap_or_default();
            ("edit".into(), json!({"path": first, "changes": item["changes"]}))
        }
        "mcp_tool_call" => {
            let name = item["tool"].as_str().unwrap_or("tool");
            (format!("{}:{name}", item["server"].as_str().unwrap_or_default()), item["arguments"].clone())
        }
        "web_search" => ("web_search".into(), json!({"query": item["query"]})),
        "collab_tool_call" => ("agent".into(), json!({"prompt": item["prompt"]})),
        _ => return None,
    })
}

/// The part of the session's token sum that is not in `counted`. A smaller sum counts from its own start.
fn added(sum: Usage, counted: Usage) -> Usage {
    let all = |u: Usage| u.context().saturating_add(u.output);
    if all(sum) < all(counted) {
        return sum;
    }
    Usage {
        input: sum.input.saturating_sub(counted.input),
        output: sum.output.saturating_sub(counted.output),
        cache_read: sum.cache_read.saturating_sub(counted.cache_read),
        cache_write: sum.cache_write.saturating_sub(counted.cache_write),
        reasoning: sum.reasoning.saturating_sub(counted.reasoning),
        estimated: false,
    }
}

impl Codex {
    /// For a session with this many counted tokens.
    pub(crate) fn going_on(counted: Usage) -> Self {
        Self { counted, ..Self::default() }
    }

    fn item(&mut self, phase: &str, item: &Value, out: &mut Vec<AgentEvent>) {
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        let done = phase == "item.completed";
        let text = || item["text"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("agent_message") if done => {
                self.report.text = text();
                out.extend([AgentEvent::Text(text()), AgentEvent::Break]);
            }
            Some("reasoning") if done => out.push(AgentEvent::Thinking(text())),
            Some("todo_list") => {
                let items = item["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                out.push(AgentEvent::Plan(tools::plan(items)));
            }
            Some("error") => {
                out.push(AgentEvent::Note(item["message"].as_str().unwrap_or("an error").to_owned()));
            }
            _ => {
                let Some((name, args)) = call(item) else { return };
                if self.started.insert(id.clone()) {
                    out.push(AgentEvent::Tool(tools::tool(&id, &name, args)));
                }
                let output = item["aggregated_output"].as_str().unwrap_or_default().to_owned();
                if !done {
                    let told = self.outputs.entry(id.clone()).or_default();
                    let text = told.more(&output);
                    if !text.is_empty() {
                        out.push(AgentEvent::ToolProgress { id, text });
                    }
                    return;
                }
                self.outputs.remove(&id);
                let exit = item["exit_code"].as_i64();
                let ok = item["status"] != "failed" && item["status"] != "declined" && exit.unwrap_or(0) == 0;
                out.push(AgentEvent::ToolDone { id, ok, output, diffs: changes(item) });
            }
        }
    }
}

/// Only paths are reported.
fn changes(item: &Value) -> Vec<FileDiff> {
    let all = item["changes"].as_array().into_iter().flatten();
    all.filter_map(|c| {
        let path = c["path"].as_str()?.to_owned();
        Some(FileDiff { path, old: None, new: None })
    })
    .collect()
}

impl Records for Codex {
    fn line(&mut self, line: &str, out: &mut Vec<AgentEvent>) {
        let Ok(record) = serde_json::from_str::<Value>(line) else { return };
        let Some(kind) = record["type"].as_str() else { return };
        self.report.records += 1;
        let message = |v: &Value| v["message"].as_str().unwrap_or("it failed").to_owned();
        match kind {
            "thread.started" => {
                let id = record["thread_id"].as_str().map(str::to_owned);
                self.report.session.clone_from(&id);
                out.push(AgentEvent::Session { id, model: None });
            }
            "item.started" | "item.updated" | "item.completed" => self.item(kind, &record["item"], out),
            "turn.completed" => {
                let n = |key: &str| record["usage"][key].as_u64().unwrap_or(0);
                let (cached, written) = (n("cached_input_tokens"), n("cache_write_input_tokens"));
                let sum = Usage {
                    // Its input count includes the cached part.
                    input: n("input_tokens").saturating_sub(cached).saturating_sub(written),
                    output: n("output_tokens"),
                    cache_read: cached,
                    cache_write: written,
                    reasoning: n("reasoning_output_tokens"),
                    estimated: false,
                };
                out.push(AgentEvent::Usage { usage: added(sum, self.counted), cost: None });
                self.report.over = Some(Ok(()));
            }
            "turn.failed" => self.report.over = Some(Err(message(&record["error"]))),
            "error" => out.push(AgentEvent::Note(message(&record))),
            _ => {}
        }
    }

    fn over(&self) -> bool {
        self.report.over.is_some()
    }

    fn report(&mut self, _exit: Option<i32>) -> TurnReport {
        std::mem::take(&mut self.report)
    }
}
