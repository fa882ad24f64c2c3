//! Records of `claude -p --output-format stream-json`.

use std::collections::HashMap;
use tiller_protocol::ToolVerb;

use serde_json::Value;
use tiller_protocol::{Cost, Usage};

use super::{Records, TurnReport};
use crate::event::{AgentEvent, CUT_OFF, FileDiff};
use crate::tools;

#[derive(Default)]
pub(crate) struct Claude {
    report: TurnReport,
    /// The reported usage so far; the final record has the sum.
    used: Usage,
    /// The present message and its usage.
    message: (String, Usage),
    diffs: HashMap<String, Vec<FileDiff>>,
}

fn usage(v: &Value) -> Usage {
    let n = |key: &str| v[key].as_u64().unwrap_or(0);
    Usage {
        input: n("input_tokens"),
        output: n("output_tokens"),
        cache_read: n("cache_read_input_tokens"),
        cache_write: n("cache_creation_input_tokens"),
        reasoning: 0,
        estimated: false,
    }
}

/// The difference of `now` and `before`.
fn more(now: &Usage, before: &Usage) -> Usage {
    Usage {
        input: now.input.saturating_sub(before.input),
        output: now.output.saturating_sub(before.output),
        cache_read: now.cache_read.saturating_sub(before.cache_read),
        cache_write: now.cache_write.saturating_sub(before.cache_write),
        reasoning: now.reasoning.saturating_sub(before.reasoning),
        estimated: false,
    }
}

/// The text of a tool's result: a string, or blocks.
fn text_of(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|b| b["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

impl Claude {
    fn assistant(&mut self, record: &Value, out: &mut Vec<AgentEvent>) {
        let message = &record["message"];
        // A subagent of the program: its text is progress of the call that started it.
        let parent = record["parent_tool_use_id"].as_str();
        let id = message["id"].as_str().unwrap_or_default();
        if id != self.message.0 {
            self.message = (id.to_owned(), Usage::default());
            out.push(AgentEvent::Break);
        }
        let now = usage(&message["usage"]);
        let add = more(&now, &self.message.1);
        if add != Usage::default() {
            self.message.1 = now;
            self.used.add(&add);
            out.push(AgentEvent::Usage { usage: add, cost: None });
            if parent.is_none() {
                out.push(AgentEvent::Context { used: now.context(), window: None });
            }
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match (block["type"].as_str(), parent) {
                (Some("text"), None) => {
                    let text = block["text"].as_str().unwrap_or_default();
                    self.report.text = text.to_owned();
                    out.push(AgentEvent::Text(text.to_owned()));
                }
                (Some("text"), Some(parent)) => out.push(AgentEvent::ToolProgress {
                    id: parent.into(),
                    text: format!("{}\n", block["text"].as_str().unwrap_or_default()),
                }),
                (Some("thinking"), None) => {
                    out.push(AgentEvent::Thinking(block["thinking"].as_str().unwrap_or_default().to_owned()));
                }
                (Some("tool_use"), _) => {
                    let id = block["id"].as_str().unwrap_or_default();
                    let name = block["name"].as_str().unwrap_or("tool");
                    let args = block["input"].clone();
                    if let Some(items) = args["todos"].as_array() {
                        out.push(AgentEvent::Plan(tools::plan(items)));
                    }
                    if tools::verb(name) == ToolVerb::Edit {
                        self.diffs.insert(id.into(), tools::diffs(&args));
                    }
                    out.push(AgentEvent::Tool(tools::tool(id, name, args)));
                }
                _ => {}
            }
        }
    }

    fn user(&mut self, record: &Value, out: &mut Vec<AgentEvent>) {
        for block in record["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] != "tool_result" {
                continue;
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default().to_owned();
            let ok = block["is_error"] != true;
            let diffs = self.diffs.remove(&id).filter(|_| ok).unwrap_or_default();
            out.push(AgentEvent::ToolDone { id, ok, output: text_of(&block["content"]), diffs });
        }
    }

    fn result(&mut self, record: &Value, out: &mut Vec<AgentEvent>) {
        let total = usage(&record["usage"]);
        let rest = more(&total, &self.used);
        let cost = record["total_cost_usd"].as_f64().map(Cost::from_usd);
        out.push(AgentEvent::Usage { usage: rest, cost });
        let windows = record["modelUsage"].as_object().into_iter().flatten();
        if let Some(window) = windows.filter_map(|(_, m)| m["contextWindow"].as_u64()).max() {
            out.push(AgentEvent::Context { used: self.message.1.context(), window: Some(window) });
        }
        let text = record["result"].as_str();
        if record["is_error"] == true || record["subtype"].as_str().is_some_and(|s| s != "success") {
            let kind = record["subtype"].as_str().unwrap_or("error").to_owned();
            self.report.over = Some(Err(text.map_or(kind, str::to_owned)));
        } else {
            if let Some(text) = text {
                self.report.text = text.to_owned();
            }
            let cut = record["stop_reason"] == "max_tokens";
            self.report.over = Some(if cut { Err(CUT_OFF.into()) } else { Ok(()) });
        }
    }
}

impl Records for Claude {
    fn line(&mut self, line: &str, out: &mut Vec<AgentEvent>) {
        let Ok(record) = serde_json::from_str::<Value>(line) else { return };
        let Some(kind) = record["type"].as_str() else { return };
        self.report.records += 1;
        match (kind, record["subtype"].as_str()) {
            ("system", Some("init")) => {
                let id = record["session_id"].as_str().map(str::to_owned);
                self.report.session.clone_from(&id);
                out.push(AgentEvent::Session { id, model: record["model"].as_str().map(str::to_owned) });
            }
            ("system", Some("api_retry")) => out.push(AgentEvent::Note(format!(
                "its model server failed; retry {} of {}",
                record["attempt"], record["max_retries"]
            ))),
            ("assistant", _) => self.assistant(&record, out),
            ("user", _) => self.user(&record, out),
            ("result", _) => self.result(&record, out),
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
