//! Records of `opencode run --format json`.

use serde_json::Value;
use tiller_protocol::ToolVerb;
use tiller_protocol::{Cost, Usage};

use super::{Records, TurnReport};
use crate::event::{AgentEvent, CUT_OFF};
use crate::tools;

#[derive(Default)]
pub(crate) struct Opencode {
    report: TurnReport,
}

impl Records for Opencode {
    fn line(&mut self, line: &str, out: &mut Vec<AgentEvent>) {
        let Ok(record) = serde_json::from_str::<Value>(line) else { return };
        let Some(kind) = record["type"].as_str() else { return };
        self.report.records += 1;
        if self.report.session.is_none()
            && let Some(id) = record["sessionID"].as_str()
        {
            self.report.session = Some(id.to_owned());
            out.push(AgentEvent::Session { id: self.report.session.clone(), model: None });
        }
        let part = &record["part"];
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        match kind {
            "step_start" => {
                self.report.text.clear();
                out.push(AgentEvent::Break);
            }
            "text" => {
                self.report.text.push_str(&text(&part["text"]));
                out.push(AgentEvent::Text(text(&part["text"])));
            }
            "reasoning" => out.push(AgentEvent::Thinking(text(&part["text"]))),
            "tool_use" => {
                let (id, name, state) = (text(&part["callID"]), text(&part["tool"]), &part["state"]);
                let args = state["input"].clone();
                if let Some(items) = args["todos"].as_array() {
                    out.push(AgentEvent::Plan(tools::plan(items)));
                }
                let ok = state["status"] == "completed";
                let diffs =
                    if ok && tools::verb(&name) == ToolVerb::Edit { tools::diffs(&args) } else { Vec::new() };
                out.push(AgentEvent::Tool(tools::tool(&id, &name, args)));
                let output = state["output"].as_str().or(state["error"].as_str()).unwrap_or_default();
                out.push(AgentEvent::ToolDone { id, ok, output: output.to_owned(), diffs });
            }
            "step_finish" => {
                let n = |v: &Value| v.as_u64().unwrap_or(0);
                let tokens = &part["tokens"];
                let usage = Usage {
                    input: n(&tokens["input"]),
                    output: n(&tokens["output"]),
                    cache_read: n(&tokens["cache"]["read"]),
                    cache_write: n(&tokens["cache"]["write"]),
                    reasoning: n(&tokens["reasoning"]),
                    estimated: false,
                };
                out.push(AgentEvent::Usage { usage, cost: part["cost"].as_f64().map(Cost::from_usd) });
                out.push(AgentEvent::Context { used: usage.context(), window: None });
                // Any other reason than another round of tools is the end of the turn.
                self.report.over = match part["reason"].as_str() {
                    Some("tool-calls") => None,
                    Some("length") => Some(Err(CUT_OFF.into())),
                    _ => Some(Ok(())),
                };
            }
            "error" => {
                let error = &record["error"];
                let why = error["data"]["message"].as_str().or(error["message"].as_str());
                let name = text(&error["name"]);
                self.report.over = Some(Err(why.map_or(name, str::to_owned)));
            }
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
