//! A tool call: one row with mark, verb, target, measure and time; a live tail while it runs; the
//! output or the difference when unfolded.

use tiller_protocol::ToolOutcome;
use tiller_protocol::ToolVerb;
use tiller_protocol::tool::Display;

use super::{CellCx, CellLayout, describe, diff, output_lines};
use crate::model::conversation::{ToolCell, ToolState};
use crate::text::clean;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::shorten::{shorten_end, shorten_middle};
use crate::text::width::width;
use crate::theme::Role;

/// Columns left of a row: it belongs to the reply above it.
fn indent(cx: &CellCx<'_>) -> usize {
    if cx.columns < 50 { 2 } else { 4 }
}

/// Lines of the live tail, and of a failed call's words, in a folded row.
const LIVE: usize = 3;
const FAILED: usize = 2;
/// Lines of output that unfolding shows; the viewer shows all.
const SHOWN: usize = 200;
/// Seconds without output after which the row says how long the tool has been silent.
const SILENT: i64 = 15;

/// Verb and target, clean.
pub(super) fn what(t: &ToolCell) -> (String, String) {
    let (verb, target) = if t.verb == ToolVerb::Unnamed {
        describe(&t.name, &t.arguments, t.info.as_ref())
    } else {
        (t.verb.to_string(), t.target.clone())
    };
    let first = target.lines().next().unwrap_or_default();
    let more = target.lines().count().saturating_sub(1);
    let mut target = clean::plain(first).into_owned();
    if more > 0 {
        target.push_str(&format!(" (+{more} lines)"));
    }
    (clean::plain(&verb).into_owned(), target)
}

/// The state as a mark.
fn mark(t: &ToolCell, ascii: bool) -> (&'static str, Role) {
    let pick = |plain, twin| if ascii { plain } else { twin };
    if t.asking {
        return ("! ", Role::Waiting);
    }
    match t.state {
        ToolState::Begun | ToolState::Waiting | ToolState::Running => ("~ ", Role::Running),
        ToolState::Done(ToolOutcome::Ok) => (pick("v ", "✓ "), Role::Ok),
        ToolState::Done(ToolOutcome::Error | ToolOutcome::Denied | ToolOutcome::TimedOut) => {
            (pick("x ", "✗ "), Role::Error)
        }
        ToolState::Done(ToolOutcome::Interrupted) | ToolState::Lost => ("- ", Role::Dim),
    }
}

/// The measure at the right, and the time.
pub(super) fn measure(t: &ToolCell, now: tiller_protocol::Time) -> (String, String) {
    let since =
        |at: Option<tiller_protocol::Time>| at.map_or(0, |s| (now.millis() - s.millis()).max(0) / 1000);
    let time = || if t.seconds > 0.0 { seconds(t.seconds) } else { String::new() };
    let size = || match &t.display {
        Some(Display::Measure { text }) => clean::plain(text).into_owned(),
        Some(Display::Diff { files }) => {
            let added: u32 = files.iter().map(|f| f.added).sum();
            let removed: u32 = files.iter().map(|f| f.removed).sum();
            format!("+{added} -{removed}")
        }
        Some(Display::Output { exit: Some(code), .. }) if *code != 0 => format!("exit {code}"),
        _ => String::new(),
    };
    match t.state {
        _ if t.asking => ("needs you".into(), String::new()),
        ToolState::Begun => ("preparing the call".into(), String::new()),
        ToolState::Waiting => ("waiting".into(), String::new()),
        ToolState::Running => {
            let silent = since(t.heard);
            let said = if silent >= SILENT {
                format!("silent {}", seconds(silent as f64))
            } else {
                "running".into()
            };
            (said, seconds(since(t.started) as f64))
        }
        ToolState::Done(outcome) => {
            let size = size();
            let word = match outcome {
                ToolOutcome::Ok => "",
                ToolOutcome::Error if size.is_empty() => "failed",
                ToolOutcome::Error => "",
                ToolOutcome::Denied => "denied",
                ToolOutcome::Interrupted => "stopped",
                ToolOutcome::TimedOut => "timed out",
            };
            (if word.is_empty() { size } else { word.into() }, time())
        }
        ToolState::Lost => ("no result".into(), String::new()),
    }
}

/// `0.1s`, `12s`, `2m05`, `1h02m`.
pub fn seconds(s: f64) -> String {
    let whole = s.max(0.0) as u64;
    match whole {
        0..10 if s.fract() > 0.0 => format!("{s:.1}s"),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

pub(super) fn lay(t: &ToolCell, cx: &CellCx<'_>) -> CellLayout {
    let indent = indent(cx);
    let room = cx.prose().saturating_sub(indent);
    let mut all = vec![row(t, room, cx)];
    let running = matches!(t.state, ToolState::Running);
    let failed =
        matches!(t.state, ToolState::Done(ToolOutcome::Error | ToolOutcome::TimedOut | ToolOutcome::Denied));
    if cx.unfolded {
        unfolded(t, cx, &mut all);
    } else if running {
        tail(t, LIVE, Role::Dim, cx, &mut all);
    } else if failed {
        tail(t, FAILED, Role::Error, cx, &mut all);
    }
    let mut laid = CellLayout::wide(all, cx, indent, cx.columns);
    laid.mark = Some(mark(t, cx.ascii));
    laid
}

fn row(t: &ToolCell, room: usize, cx: &CellCx<'_>) -> Line {
    let (verb, target) = what(t);
    let (size, time) = measure(t, cx.now);
    let narrow = room < 50;
    let mut line = Line::new(Wrap::Cut);
    line.push(&shorten_end(&verb, if narrow { 6 } else { 12 }, cx.ascii), Look::of(Role::Strong));
    line.pad_to(if narrow { 7 } else { 8 }, Look::of(Role::Text));
    if !line.text().ends_with(' ') {
        line.push(" ", Look::of(Role::Text));
    }
    let left = width(line.text());
    // The time goes first when there is no room for both.
    let right = if time.is_empty() || (narrow && !size.is_empty()) {
        size
    } else if size.is_empty() {
        time
    } else {
        format!("{size}{time:>8}")
    };
    let right = shorten_end(&right, room / 2, cx.ascii);
    let space = room.saturating_sub(left + width(&right) + 1);
    let short = if target.contains('/') && !target.contains(' ') {
        shorten_middle(&target, space, cx.ascii)
    } else {
        shorten_end(&target, space, cx.ascii)
    };
    line.push_strict(&short, Look::of(Role::Text));
    line.pad_to(room.saturating_sub(width(&right)), Look::of(Role::Text));
    let role = match t.state {
        _ if t.asking => Role::Waiting,
        ToolState::Running => Role::Running,
        ToolState::Done(o) if !o.ok() => Role::Error,
        _ => Role::Dim,
    };
    line.push_strict(&right, Look::of(role));
    line
}

/// The last lines, and how many there are besides.
fn tail(t: &ToolCell, keep: usize, role: Role, cx: &CellCx<'_>, all: &mut Vec<Line>) {
    let lines: Vec<&str> = clean::lines(t.output.text()).filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(keep);
    let more = from as u64 + t.output.dropped();
    let room = cx.prose().saturating_sub(indent(cx) + 2);
    for (n, text) in lines[from..].iter().enumerate() {
        let last = n + 1 == lines.len() - from;
        let note = if last && more > 0 { format!("(+{more}, {})", cx.unfold_key) } else { String::new() };
        let text = shorten_end(&clean::plain(text), room.saturating_sub(width(&note) + 1), cx.ascii);
        let mut line = output_lines(&text, role, cx).pop().unwrap_or_default();
        line.wrap = Wrap::Cut;
        if !note.is_empty() {
            line.pad_to(room.saturating_sub(width(&note)), Look::of(Role::Dim));
            line.push_strict(&note, Look::of(Role::Dim));
        }
        all.push(line);
    }
}

fn unfolded(t: &ToolCell, cx: &CellCx<'_>, all: &mut Vec<Line>) {
    // The part of the command that the row had to cut.
    let (_, target) = what(t);
    let whole = if t.verb == ToolVerb::Unnamed {
        describe(&t.name, &t.arguments, t.info.as_ref()).1
    } else {
        t.target.clone()
    };
    if width(&target) + 30 > cx.columns || whole.lines().count() > 1 {
        all.extend(output_lines(&whole, Role::Code, cx));
    }
    if let Some(Display::Diff { files }) = &t.display {
        for f in files {
            all.extend(diff::file(f, cx.columns.saturating_sub(indent(cx)), cx.ascii));
        }
        return;
    }
    let lines: Vec<&str> = clean::lines(t.output.text()).collect();
    let from = lines.len().saturating_sub(SHOWN);
    let above = from as u64 + t.output.dropped();
    if above > 0 {
        let note = format!("{above} lines above; {} shows all", cx.viewer_key);
        let mut line = Line::strict(&note, Look::of(Role::Dim), Wrap::Word);
        line.first = Gutter::blank(2);
        all.push(line);
    }
    if !t.output.is_empty() {
        all.extend(output_lines(&lines[from..].join("\n"), Role::Text, cx));
    } else if matches!(t.state, ToolState::Done(_)) {
        all.extend(output_lines("(no output)", Role::Dim, cx));
    }
}
