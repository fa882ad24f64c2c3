//! The tools that a program of another vendor uses: as calls with their output and the files that they change.

use crate::bus::agent_view;
use std::sync::Arc;
use std::time::Duration;

use tiller_external::ToolUse;
use tiller_protocol::event::ToolEvent;
use tiller_protocol::tool::{Display, FileDiff};
use tiller_protocol::{ChangeKind, EntryBody, EventBody, Part, StopReason, ToolCall, ToolOutcome};

use super::Open;
use crate::context::clean;
use crate::core::Core;
use crate::core::msg::Msg;
use crate::core::saves::Then;
use crate::crew::msg::ExternalMsg;

/// Bytes of a tool's output that are kept.
const OUTPUT: usize = 30_000;
/// Bytes of a call's arguments that are kept, as JSON.
const ARGUMENTS: usize = 1 << 20;
/// Bytes of a changed file, before and after, of which the change is shown.
const CHANGE: usize = 1 << 20;
/// For finding what changed in a file: larger changes are reported more coarsely.
const LOOKING: Duration = Duration::from_millis(100);

impl Core {
    pub(super) fn outside_tool(&mut self, mut tool: ToolUse) {
        let size = tool.args.to_string().len();
        if size > ARGUMENTS {
            tool.args = serde_json::json!({"left_out": format!("{size} bytes")});
        }
        let mono = self.services.clock.mono();
        let Some(o) = self.outside() else { return };
        let id = tool.id.clone();
        // A title is not yet what it does, and what is shown stands in the talk as it is then.
        let told = tool.args.as_object().is_some_and(|a| !a.is_empty());
        let bare = tool.target.is_empty() || tool.pending && !told;
        let known = o.open.entry(id.clone()).or_insert_with(|| Open::new(tool.clone(), mono));
        known.tool = tool;
        if bare && !known.shown {
            return agent_view::agent_changed(self);
        }
        self.outside_show(&id);
    }

    /// A call that stands in the talk from here on. One that tells no target until it ends, is shown then.
    pub(in crate::crew) fn outside_show(&mut self, id: &str) {
        let Some(o) = self.outside() else { return };
        let Some(known) = o.open.get_mut(id).filter(|k| !k.shown) else {
            return agent_view::agent_changed(self);
        };
        known.shown = true;
        let tool = known.tool.clone();
        o.said.clear();
        o.words = 0;
        self.cover(id);
        let mut arguments = tool.args.clone();
        clean::value(&self.services.redact, &mut arguments);
        let call = ToolCall {
            id: tool.id.clone(),
            name: tool.name.clone(),
            arguments: arguments.clone(),
            malformed: None,
            vendor: None,
        };
        self.outside_flush(Some(call), StopReason::ToolUse);
        self.called();
        let target = self.redact(&tool.target);
        let started =
            ToolEvent::ToolStarted { call_id: tool.id, name: tool.name, arguments, verb: tool.verb, target };
        let place = self.place();
        self.show(place, EventBody::Tool(started));
        agent_view::agent_changed(self);
    }

    /// Output of a call: what is new of it.
    pub(super) fn outside_progress(&mut self, id: String, text: &str) {
        self.outside_show(&id);
        if text.is_empty() {
            return;
        }
        let w = Arc::clone(&self.services);
        let Some(o) = self.outside() else { return };
        let Some(open) = o.open.get_mut(&id) else {
            // It has no beginning, and so no end.
            let text = self.redact(text);
            return self.outside_output(id, text);
        };
        let words = open.words.get_or_insert_with(|| clean::Stream::new(&w.redact, &w.growing));
        let (text, rest) = (words.push(text), words.has_rest());
        open.pieces += 1;
        let piece = open.pieces;
        self.outside_output(id.clone(), text);
        if rest && let Some(turn) = self.turn.live.as_ref().map(|l| l.no) {
            let tx = self.tx.clone();
            self.spawn(async move {
                tokio::time::sleep(clean::QUIET).await;
                // The engine may have ended.
                let _ = tx.send(Msg::External(ExternalMsg::OutputRests { turn, call: id, piece })).await;
            });
        }
    }

    /// Nothing came for a moment after piece number `piece`: a prompt that waits for an answer is to be seen.
    pub(crate) fn outside_rests(&mut self, id: String, piece: u64) {
        let Some(open) = self.outside().and_then(|o| o.open.get_mut(&id)) else { return };
        if open.pieces == piece
            && let Some(text) = open.words.as_mut().map(clean::Stream::pause)
        {
            self.outside_output(id, text);
        }
    }

    fn outside_output(&mut self, id: String, text: String) {
        if !text.is_empty() {
            let place = self.place();
            self.show(place, EventBody::Tool(ToolEvent::ToolProgress { call_id: id, text }));
        }
    }

    pub(super) fn outside_done(
        &mut self,
        id: &str,
        ok: bool,
        output: String,
        diffs: Vec<tiller_external::FileDiff>,
    ) {
        let mono = self.services.clock.mono();
        let Some(o) = self.outside() else { return };
        // It may never have said that it began.
        o.open.entry(id.to_owned()).or_insert_with(|| {
            let tool =
                ToolUse { id: id.into(), name: "tool".into(), verb: "tool".into(), ..ToolUse::default() };
            Open::new(tool, mono)
        });
        self.outside_show(id);
        let Some(o) = self.outside() else { return };
        let Some(mut open) = o.open.remove(id) else { return };
        let root = self.services.workspace.root.clone();
        let files: Vec<FileDiff> = diffs.iter().map(|d| diff_of(d, &root)).collect();
        let changed: Vec<String> = files.iter().map(|f| f.path.clone()).collect();
        self.uncover(&mut open, &changed);
        self.touched(changed);
        let display = (!files.is_empty()).then_some(Display::Diff { files });
        let outcome = if ok { ToolOutcome::Ok } else { ToolOutcome::Error };
        let seconds = mono.saturating_sub(open.since).as_secs_f64();
        self.outside_result(open, outcome, output, display, seconds);
    }

    pub(super) fn outside_result(
        &mut self,
        mut open: Open,
        outcome: ToolOutcome,
        output: String,
        display: Option<Display>,
        seconds: f64,
    ) {
        if let Some(rest) = open.words.as_mut().map(clean::Stream::finish) {
            self.outside_output(open.tool.id.clone(), rest);
        }
        let tool = open.tool;
        if !open.asked {
            self.outside_unasked(&tool, outcome, seconds);
        }
        let text = crate::job::cut(&output, OUTPUT);
        let body = EntryBody::ToolResult {
            call_id: tool.id.clone(),
            name: tool.name.clone(),
            outcome,
            content: vec![Part::Text { text }],
            display,
            seconds,
        };
        let entry = self.session.grow(&self.services, body);
        let (output, display) = crate::job::told(&entry);
        let mut arguments = tool.args;
        clean::value(&self.services.redact, &mut arguments);
        let event = ToolEvent::ToolFinished {
            call_id: tool.id,
            name: tool.name,
            arguments,
            ok: outcome.ok(),
            outcome,
            output,
            seconds,
            display,
            node: Box::new(entry.clone()),
        };
        let place = self.place();
        let append = self.append().entries(vec![entry]);
        self.save(append, vec![(place, EventBody::Tool(event))], Then::Nothing);
        agent_view::agent_changed(self);
    }
}

/// A change as the program tells it, for the screen. What it tells may be anything: too much is not compared, and
/// what is hard to compare is not compared for long.
pub(in crate::crew) fn diff_of(d: &tiller_external::FileDiff, root: &std::path::Path) -> FileDiff {
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
