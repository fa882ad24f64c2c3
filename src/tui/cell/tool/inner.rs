//! The calls of a script, below its row: the last ones, or all when unfolded.

use tiller_protocol::ToolOutcome;
use tiller_protocol::tool::InnerCall;

use super::{named, quoted, seconds, short, unfold_note};
use crate::cell::CellCx;
use crate::model::conversation::InnerCalls;
use crate::text::clean;
use crate::text::line::{Line, Look, Wrap};
use crate::text::shorten::shorten_end;
use crate::text::width::width;
use crate::theme::Role;
use crate::widget::sign;

/// Calls that a folded script shows.
const SHOWN: usize = 3;
/// Columns of the verb, with the blank behind it.
const VERB: usize = 8;
/// From how many seconds on a call says how long it took.
const SLOW: f64 = 0.5;

/// `3/50 calls` while it runs, `3 calls` afterwards. `None`: it has made no call.
pub(super) fn count(inner: &InnerCalls, runs: bool) -> Option<String> {
    let made = inner.calls.len();
    let most = inner.most;
    match (made, runs) {
        (0, _) => None,
        (_, true) => Some(format!("{made}/{most} calls")),
        (1, false) => Some("1 call".into()),
        (_, false) => Some(format!("{made} calls")),
    }
}

/// The rows, each `room` columns wide.
pub(super) fn rows(inner: &InnerCalls, room: usize, cx: &CellCx<'_>) -> Vec<Line> {
    let from = if cx.unfolded { 0 } else { inner.calls.len().saturating_sub(SHOWN) };
    let last = inner.calls.len().saturating_sub(1);
    let line = |(n, call): (usize, &InnerCall)| {
        let note = if n == last && from > 0 { unfold_note(from as u64, cx) } else { String::new() };
        quoted(row(call, room, &note, cx), &note, room, Role::Border, cx)
    };
    inner.calls.iter().enumerate().skip(from).map(line).collect()
}

/// The state of a call as a sign.
pub fn inner_sign(call: &InnerCall, ascii: bool) -> (&'static str, Role) {
    let (sign, role) = match call.outcome {
        None if call.waits => (sign::ATTENTION, Role::Waiting),
        None => (sign::FULL, Role::Running),
        Some(ToolOutcome::Ok) => (sign::OK, Role::Ok),
        Some(ToolOutcome::Interrupted) => (sign::EMPTY, Role::Dim),
        Some(_) => (sign::FAILED, Role::Error),
    };
    (sign.text(ascii), role)
}

fn row(call: &InnerCall, room: usize, note: &str, cx: &CellCx<'_>) -> Line {
    let (mark, role) = inner_sign(call, cx.ascii);
    let mut line = Line::new(Wrap::Cut);
    line.push(mark, Look::of(role));
    line.push(" ", Look::of(Role::Dim));
    let verb = clean::plain(call.verb.word());
    line.push(&shorten_end(&verb, VERB - 1, cx.ascii), Look::of(Role::Dim));
    line.pad_to(2 + VERB, Look::of(Role::Dim));
    let first = call.target.lines().next().unwrap_or_default();
    let target = named(&call.verb, first, cx.folders);
    let target = clean::plain(&target);
    let said = right(call);
    // The bar, and the note with its blanks.
    let space = room.saturating_sub(2 + if note.is_empty() { 0 } else { width(note) + 2 });
    let free = space.saturating_sub(2 + VERB + width(&said) + 1);
    line.push_strict(&short(&target, free, cx.ascii), Look::of(Role::Text));
    if !said.is_empty() {
        line.pad_to(space.saturating_sub(width(&said)), Look::of(Role::Text));
        let failed = call.outcome.is_some_and(|outcome| !outcome.ok());
        line.push_strict(&said, Look::of(if failed { Role::Error } else { Role::Dim }));
    }
    line
}

/// Returns what stands at the end of a row.
fn right(call: &InnerCall) -> String {
    match call.outcome {
        None if call.waits => "needs you".into(),
        None | Some(ToolOutcome::Ok) if call.seconds >= SLOW => seconds(call.seconds),
        None | Some(ToolOutcome::Ok) => String::new(),
        Some(ToolOutcome::Error) => "failed".into(),
        Some(ToolOutcome::Denied) => "denied".into(),
        Some(ToolOutcome::Interrupted) => "stopped".into(),
        Some(ToolOutcome::TimedOut) => "timed out".into(),
    }
}
