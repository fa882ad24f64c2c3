//! Plain text output: all lines but status lines are the answer; patterns of the adapter find edits and usage.

use serde_json::json;
use tiller_protocol::Usage;

use super::{Records, TurnReport};
use crate::adapter::{Headless, Pattern};
use crate::event::{AgentEvent, FileDiff};
use crate::tools;

/// Maximum bytes of the answer that are kept, from its end.
const LONGEST: usize = 1 << 20;

pub(crate) struct Text {
    report: TurnReport,
    drop: Vec<Pattern>,
    edited: Option<Pattern>,
    tokens: Option<Pattern>,
    failed: Option<Pattern>,
    /// The last line that reported a failure.
    failure: Option<String>,
    edits: u64,
}

impl Text {
    pub(crate) fn new(h: &Headless) -> Self {
        Self {
            report: TurnReport::default(),
            drop: h.drop.clone(),
            edited: h.edited.clone(),
            tokens: h.tokens.clone(),
            failed: h.failed.clone(),
            failure: None,
            edits: 0,
        }
    }
}

/// `594`, `1.2k`.
fn count(text: &str) -> u64 {
    let (number, scale) = text.strip_suffix('k').map_or((text, 1.0), |n| (n, 1000.0));
    // `as` saturates.
    number.parse::<f64>().map_or(0, |n| (n * scale) as u64)
}

impl Records for Text {
    fn line(&mut self, line: &str, out: &mut Vec<AgentEvent>) {
        let line = tiller_tool::text::clean(line.as_bytes());
        let line = line.trim_end();
        if let Some(path) = self.edited.as_ref().and_then(|p| p.group(line)) {
            self.edits += 1;
            let id = format!("edit-{}", self.edits);
            out.push(AgentEvent::Tool(tools::tool(&id, "edit", json!({"path": path}))));
            let diff = FileDiff { path: path.to_owned(), old: None, new: None };
            out.push(AgentEvent::ToolDone { id, ok: true, output: String::new(), diffs: vec![diff] });
        }
        if let Some((sent, received)) = self.tokens.as_ref().and_then(|p| p.pair(line)) {
            self.failure = None;
            let usage = Usage { input: count(sent), output: count(received), ..Usage::default() };
            out.push(AgentEvent::Usage { usage, cost: None });
        }
        if let Some(why) = self.failed.as_ref().and_then(|p| p.group(line)) {
            self.failure = Some(why.to_owned());
            return;
        }
        if self.drop.iter().any(|p| p.found(line)) {
            return;
        }
        if !line.is_empty() {
            self.report.records += 1;
        }
        if line.is_empty() && self.report.text.is_empty() {
            return;
        }
        let text = format!("{line}\n");
        self.report.text.push_str(&text);
        // Not for each line, since the rest has to be moved.
        if self.report.text.len() > 2 * LONGEST {
            let at = self.report.text.ceil_char_boundary(self.report.text.len() - LONGEST);
            self.report.text.drain(..at);
        }
        out.push(AgentEvent::Text(text));
    }

    fn over(&self) -> bool {
        false
    }

    /// There is no last record: only the exit code counts, and a reported failure without success after it.
    fn report(&mut self, exit: Option<i32>) -> TurnReport {
        let mut report = std::mem::take(&mut self.report);
        report.text.truncate(report.text.trim_end().len());
        let over = report.text.len().saturating_sub(LONGEST);
        report.text.drain(..report.text.ceil_char_boundary(over));
        report.over = match (self.failure.take(), exit) {
            (Some(why), _) => Some(Err(why)),
            (None, Some(0)) => Some(Ok(())),
            _ => None,
        };
        report
    }
}
