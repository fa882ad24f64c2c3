//! Tool calls of an external program: their output and the files that they change.

use std::sync::Arc;
use std::time::Duration;

use tiller_external::ToolUse;
use tiller_protocol::event::ToolEvent;
use tiller_protocol::tool::{Display, FileDiff};
use tiller_protocol::{ChangeKind, EventBody, Part, StopReason, ToolCall, ToolOutcome};

use crate::bus::agent_view;
use crate::context::clean;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::crew::driver::ExternalDriver;
use crate::crew::external::OpenCall;
use crate::crew::external::msg::ExternalMsg;
use crate::tool_call::calls::FinishedCall;

/// Most bytes of a call's output that are stored.
const OUTPUT: usize = 30_000;
/// Most bytes of a call's arguments that are stored, as JSON.
const ARGUMENTS: usize = 1 << 20;
/// Most bytes of a file, before and after together, whose change is compared.
const CHANGE: usize = 1 << 20;
/// Longest comparison of a file; later differences are reported more coarsely.
const LOOKING: Duration = Duration::from_millis(100);

impl ExternalDriver<'_> {
    pub(crate) fn call_reported(&mut self, mut tool: ToolUse) {
        let size = tool.args.to_string().len();
        if size > ARGUMENTS {
            tool.args = serde_json::json!({"left_out": format!("{size} bytes")});
        }
        let mono = self.core.services.clock.mono();
        let Some(o) = self.core.identity.external_mut() else { return };
        let id = tool.id.clone();
        // A call is shown once its target or arguments are known, because its entry does not change later.
        let told = tool.args.as_object().is_some_and(|a| !a.is_empty());
        let bare = tool.target.is_empty() || tool.pending && !told;
        let known = o.calls.open.entry(id.clone()).or_insert_with(|| OpenCall::new(tool.clone(), mono));
        known.tool = tool;
        if bare && !known.shown {
            return agent_view::agent_changed(self.core);
        }
        self.show_call(&id);
    }

    /// Shows a call and stores it in the conversation. A call without a target is shown when it ends.
    pub(crate) fn show_call(&mut self, id: &str) {
        let Some(o) = self.core.identity.external_mut() else { return };
        let Some(known) = o.calls.open.get_mut(id).filter(|k| !k.shown) else {
            return agent_view::agent_changed(self.core);
        };
        known.shown = true;
        let tool = known.tool.clone();
        o.output.answer.clear();
        o.output.bytes = 0;
        self.call_started(id);
        let mut arguments = tool.args.clone();
        clean::value(&self.core.services.redaction.redact, &mut arguments);
        let call = ToolCall {
            id: tool.id.clone(),
            name: tool.name.clone(),
            arguments: arguments.clone(),
            malformed: None,
            vendor: None,
        };
        self.flush(Some(call), StopReason::ToolUse);
        self.core.child_driver().count_call();
        let target = self.core.redact(&tool.target);
        let started =
            ToolEvent::ToolStarted { call_id: tool.id, name: tool.name, arguments, verb: tool.verb, target };
        let scope = self.core.scope();
        self.core.show(scope, EventBody::Tool(started));
        agent_view::agent_changed(self.core);
    }

    /// New output of a call.
    pub(crate) fn call_progress(&mut self, id: String, text: &str) {
        self.show_call(&id);
        if text.is_empty() {
            return;
        }
        let services = Arc::clone(&self.core.services);
        let Some(o) = self.core.identity.external_mut() else { return };
        let Some(open) = o.calls.open.get_mut(&id) else {
            // A call that never began has no end either.
            let text = self.core.redact(text);
            return self.publish_output(id, text);
        };
        let words = open.stream.get_or_insert_with(|| clean::Stream::new(&services.redaction));
        let (text, rest) = (words.push(text), words.has_rest());
        open.pieces += 1;
        let piece = open.pieces;
        self.publish_output(id.clone(), text);
        if rest && let Some(turn) = self.core.turn.live.as_ref().map(|l| l.no) {
            let tx = self.core.tx.clone();
            self.core.spawn(async move {
                tokio::time::sleep(clean::QUIET).await;
                // The engine may have ended.
                let _ = tx.send(Msg::External(ExternalMsg::OutputRests { turn, call: id, piece })).await;
            });
        }
    }

    /// No output followed piece number `piece` for a moment: publishes text that was held back, which may be a prompt
    /// that waits for an answer.
    pub(crate) fn output_paused(&mut self, id: String, piece: u64) {
        let Some(open) = self.core.identity.external_mut().and_then(|o| o.calls.open.get_mut(&id)) else {
            return;
        };
        if open.pieces == piece
            && let Some(text) = open.stream.as_mut().map(clean::Stream::pause)
        {
            self.publish_output(id, text);
        }
    }

    pub(crate) fn publish_output(&mut self, id: String, text: String) {
        if !text.is_empty() {
            let scope = self.core.scope();
            self.core.show(scope, EventBody::Tool(ToolEvent::ToolProgress { call_id: id, text }));
        }
    }

    pub(crate) fn call_done(
        &mut self,
        id: &str,
        ok: bool,
        output: String,
        diffs: Vec<tiller_external::FileDiff>,
    ) {
        let mono = self.core.services.clock.mono();
        let Some(o) = self.core.identity.external_mut() else { return };
        // Its start may not have been reported.
        o.calls.open.entry(id.to_owned()).or_insert_with(|| {
            let tool = ToolUse {
                id: id.into(),
                name: "tool".into(),
                verb: tiller_protocol::ToolVerb::Tool,
                ..ToolUse::default()
            };
            OpenCall::new(tool, mono)
        });
        self.show_call(id);
        let Some(o) = self.core.identity.external_mut() else { return };
        let Some(mut open) = o.calls.open.remove(id) else { return };
        let root = self.core.services.workspace.root.clone();
        let files: Vec<FileDiff> = diffs.iter().map(|d| diff_of(d, &root)).collect();
        let changed: Vec<String> = files.iter().map(|f| f.path.clone()).collect();
        self.call_ended(&mut open, &changed);
        self.core.child_driver().record_files(changed);
        let display = (!files.is_empty()).then_some(Display::Diff { files });
        let outcome = if ok { ToolOutcome::Ok } else { ToolOutcome::Error };
        let seconds = mono.saturating_sub(open.since).as_secs_f64();
        self.store_result(open, outcome, output, display, seconds);
    }

    pub(crate) fn store_result(
        &mut self,
        mut open: OpenCall,
        outcome: ToolOutcome,
        output: String,
        display: Option<Display>,
        seconds: f64,
    ) {
        if let Some(rest) = open.stream.as_mut().map(clean::Stream::finish) {
            self.publish_output(open.tool.id.clone(), rest);
        }
        let tool = open.tool;
        if !open.asked {
            self.audit_unasked(&tool, outcome, seconds);
        }
        let text = crate::tool_call::cut(&output, OUTPUT);
        let mut arguments = tool.args;
        clean::value(&self.core.services.redaction.redact, &mut arguments);
        let call = FinishedCall {
            id: tool.id,
            name: tool.name,
            arguments,
            outcome,
            content: vec![Part::Text { text }],
            display,
            seconds,
            learnings: Vec::new(),
            taint: None,
            added: tiller_protocol::Additions::default(),
        };
        let (entry, event) = call.enter(self.core);
        let scope = self.core.scope();
        let append = self.core.append().entries(vec![entry]);
        self.core.save(append, vec![(scope, EventBody::Tool(event))], Then::Nothing);
        agent_view::agent_changed(self.core);
    }
}

/// The diff of a change that the program reports. The content may be anything: large files are not compared, and
/// the comparison has a time limit.
pub(crate) fn diff_of(d: &tiller_external::FileDiff, root: &std::path::Path) -> FileDiff {
    let path = std::path::Path::new(&d.path);
    let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let kind = if d.old.is_none() { ChangeKind::Added } else { ChangeKind::Modified };
    let (old, new) = (d.old.as_deref().unwrap_or_default(), d.new.as_deref().unwrap_or_default());
    if old.len() + new.len() > CHANGE {
        let diff = format!("(too much to show: {} bytes became {})\n", old.len(), new.len());
        return FileDiff { path, kind, added: 0, removed: 0, diff };
    }
    let text = similar::TextDiff::configure().timeout(LOOKING).diff_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for change in text.iter_all_changes() {
        match change.tag() {
            similar::ChangeTag::Insert => added += 1,
            similar::ChangeTag::Delete => removed += 1,
            similar::ChangeTag::Equal => {}
        }
    }
    let diff =
        text.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string();
    FileDiff { path, kind, added, removed, diff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_counted_and_one_that_is_too_large_is_not_compared() {
        let change = |old: Option<String>, new: &str| {
            let told = tiller_external::FileDiff { path: "/w/a".into(), old, new: Some(new.into()) };
            diff_of(&told, std::path::Path::new("/w"))
        };
        let small = change(Some("one\ntwo\n".into()), "one\n2\n3\n");
        assert_eq!((small.path.as_str(), small.added, small.removed), ("a", 2, 1));
        assert!(small.diff.contains("+2\n"), "{}", small.diff);
        let large = change(Some("a\n".repeat(CHANGE / 2)), "b");
        assert!(large.diff.starts_with("(too much to show"), "{}", large.diff);
    }
}
