//! Records of `gemini -o stream-json`, and the one object of `-o json`.

use std::collections::HashMap;
use tiller_protocol::ToolVerb;

use serde_json::Value;
use tiller_protocol::Usage;

use super::{Records, TurnReport};
use crate::event::{AgentEvent, FileDiff};
use crate::tools;

/// Maximum bytes of an object over several lines.
const LARGEST: usize = 4 << 20;

#[derive(Default)]
pub(crate) struct Gemini {
    report: TurnReport,
    /// A tool ran since the last text: the next text begins another message.
    fresh: bool,
    diffs: HashMap<String, Vec<FileDiff>>,
    /// An object that began on an earlier line.
    open: String,
}

impl Gemini {
    fn usage(stats: &Value, out: &mut Vec<AgentEvent>) {
        let n = |key: &str| stats[key].as_u64().unwrap_or(0);
        let usage = Usage {
            input: n("input_tokens").saturating_sub(n("cached")),
            output: n("output_tokens"),
            cache_read: n("cached"),
            ..Usage::default()
        };
        out.push(AgentEvent::Usage { usage, cost: None });
    }

    fn record(&mut self, record: &Value, out: &mut Vec<AgentEvent>) {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        match record["type"].as_str() {
            Some("init") => {
                let id = record["session_id"].as_str().map(str::to_owned);
                self.report.session.clone_from(&id);
                out.push(AgentEvent::Session { id, model: record["model"].as_str().map(str::to_owned) });
            }
            Some("message") if record["role"] == "assistant" => {
                let said = text(&record["content"]);
                if std::mem::take(&mut self.fresh) || record["delta"] != true {
                    self.report.text.clear();
                    out.push(AgentEvent::Break);
                }
                self.report.text.push_str(&said);
                out.push(AgentEvent::Text(said));
            }
            Some("tool_use") => {
                let (id, name) = (text(&record["tool_id"]), text(&record["tool_name"]));
                let args = record["parameters"].clone();
                if tools::verb(&name) == ToolVerb::Edit {
                    self.diffs.insert(id.clone(), tools::diffs(&args));
                }
                self.fresh = true;
                out.push(AgentEvent::Tool(tools::tool(&id, &name, args)));
            }
            Some("tool_result") => {
                let id = text(&record["tool_id"]);
                let ok = record["status"] == "success";
                let diffs = self.diffs.remove(&id).filter(|_| ok).unwrap_or_default();
                out.push(AgentEvent::ToolDone { id, ok, output: text(&record["output"]), diffs });
            }
            Some("error") => out.push(AgentEvent::Note(text(&record["message"]))),
            Some("result") => {
                Self::usage(&record["stats"], out);
                let why = record["error"]["message"].as_str().unwrap_or("it failed").to_owned();
                self.report.over = Some(if record["status"] == "success" { Ok(()) } else { Err(why) });
            }
            _ => {}
        }
    }

    /// `-o json`: a single object at the end.
    fn whole(&mut self, object: &Value, out: &mut Vec<AgentEvent>) {
        if let Some(id) = object["session_id"].as_str() {
            self.report.session = Some(id.to_owned());
            out.push(AgentEvent::Session { id: self.report.session.clone(), model: None });
        }
        if let Some(why) = object["error"]["message"].as_str() {
            self.report.over = Some(Err(why.to_owned()));
        } else if let Some(text) = object["response"].as_str() {
            self.report.text = text.to_owned();
            out.push(AgentEvent::Text(text.to_owned()));
            let mut sum = Usage::default();
            for (_, model) in object["stats"]["models"].as_object().into_iter().flatten() {
                let n = |key: &str| model["tokens"][key].as_u64().unwrap_or(0);
                sum.add(&Usage {
                    input: n("prompt").saturating_sub(n("cached")),
                    output: n("candidates"),
                    cache_read: n("cached"),
                    cache_write: 0,
                    reasoning: n("thoughts"),
                    estimated: false,
                });
            }
            out.push(AgentEvent::Usage { usage: sum, cost: None });
            self.report.over = Some(Ok(()));
        }
    }
}

impl Records for Gemini {
    fn line(&mut self, line: &str, out: &mut Vec<AgentEvent>) {
        let joined = !self.open.is_empty();
        if joined {
            self.open.push('\n');
            self.open.push_str(line);
        }
        let text = if joined { self.open.as_str() } else { line };
        match serde_json::from_str::<Value>(text) {
            Ok(record) if record.is_object() => {
                self.open.clear();
                self.report.records += 1;
                if record["type"].is_string() { self.record(&record, out) } else { self.whole(&record, out) }
            }
            _ if joined && self.open.len() > LARGEST => self.open.clear(),
            _ if !joined && line.trim_end() == "{" => line.clone_into(&mut self.open),
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
