//! A tool call: one row with sign, verb, target, measure and time in columns; the first changed rows of an edit; a live
//! tail while it runs; the cause when it failed; everything when unfolded. Neighbours of one kind share a row.

mod inner;

use tiller_protocol::ToolOutcome;
use tiller_protocol::ToolVerb;
use tiller_protocol::tool::Display;

pub use inner::inner_sign;

use super::cause::cause;
use super::{CellCx, CellLayout, describe, output_lines};
use crate::model::conversation::{ToolCell, ToolState, learned};
use crate::text::clean;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::path::words_below;
use crate::text::shorten::{shorten_end, shorten_middle};
use crate::text::width::width;
use crate::theme::Role;
use crate::widget::diff::{self, DiffLayout, DiffText, Uncoloured};
use crate::widget::sign;

/// Columns left of a row's text: the sign stands where the text of replies begins.
fn indent(cx: &CellCx<'_>) -> usize {
    if cx.columns < 50 { 2 } else { 4 }
}

/// Lines of the live tail.
const LIVE: usize = 3;
/// Rows of an edit that a folded call shows.
const CHANGED: usize = 3;
/// Lines of output that unfolding shows; the viewer shows all.
const SHOWN: usize = 200;
/// Seconds without output after which the row says how long the tool has been silent.
const SILENT: i64 = 15;
/// Seconds from which on a row says how long the call took.
const SLOW: f64 = 0.5;
/// Columns of the time, with the blanks before it.
const TIME: usize = 8;
/// Below this many columns there is no column for the time.
const NARROW: usize = 50;

/// Verb and target, clean, with each path as it was given.
pub(super) fn whole(t: &ToolCell) -> (String, String) {
    what(t, &[])
}

/// Verb and target of a row, clean, with paths named without these folders.
fn what(t: &ToolCell, folders: &[String]) -> (String, String) {
    let (verb, target) = row_words(t, folders);
    let first = target.lines().next().unwrap_or_default();
    let more = target.lines().count().saturating_sub(1);
    let mut target = clean::plain(first).into_owned();
    if more > 0 {
        target.push_str(&format!(" (+{more} lines)"));
    }
    (clean::plain(&verb).into_owned(), target)
}

/// Verb and target of a row, with paths named without these folders. Not cleaned for a terminal.
pub(crate) fn row_words(t: &ToolCell, folders: &[String]) -> (String, String) {
    if t.verb != ToolVerb::Unnamed {
        return (t.verb.to_string(), named(&t.verb, &t.target, folders));
    }
    let (verb, target) = describe(&t.name, &t.arguments, t.info.as_ref());
    let target = t.info.as_ref().map(|info| named(&info.verb, &target, folders)).unwrap_or(target);
    (verb, target)
}

/// A target with its paths named without these folders. The words of a command or of a pattern stay as they are.
pub(crate) fn named(verb: &ToolVerb, target: &str, folders: &[String]) -> String {
    match verb {
        ToolVerb::Read
        | ToolVerb::Write
        | ToolVerb::Edit
        | ToolVerb::Patch
        | ToolVerb::List
        | ToolVerb::Draw => words_below(folders, target),
        ToolVerb::Search => match target.rsplit_once(" in ") {
            Some((what, place)) => format!("{what} in {}", words_below(folders, place)),
            None => target.to_owned(),
        },
        _ => target.to_owned(),
    }
}

/// The state as a sign.
fn mark(t: &ToolCell, cx: &CellCx<'_>) -> (&'static str, Role) {
    if t.asked.is_some() {
        return (sign::ATTENTION.text(cx.ascii), Role::Waiting);
    }
    match t.state {
        ToolState::Begun | ToolState::Running => (sign::FULL.text(cx.ascii), Role::Running),
        ToolState::Waiting => (sign::EMPTY.text(cx.ascii), Role::Dim),
        ToolState::Done(ToolOutcome::Ok) => (sign::OK.text(cx.ascii), Role::Ok),
        ToolState::Done(ToolOutcome::Error | ToolOutcome::Denied | ToolOutcome::TimedOut) => {
            (sign::FAILED.text(cx.ascii), Role::Error)
        }
        ToolState::Done(ToolOutcome::Interrupted) | ToolState::Lost => {
            (sign::EMPTY.text(cx.ascii), Role::Dim)
        }
    }
}

/// The measure at the right, and the time.
pub(super) fn measure(t: &ToolCell, now: tiller_protocol::Time) -> (String, String) {
    let since =
        |at: Option<tiller_protocol::Time>| at.map_or(0, |s| (now.millis() - s.millis()).max(0) / 1000);
    let time = || if t.seconds >= SLOW { seconds(t.seconds) } else { String::new() };
    let size = || match &t.display {
        Some(Display::Measure { text }) => clean::plain(text).into_owned(),
        Some(Display::Diff { .. }) => {
            let (added, removed) = changed(t);
            format!("+{added} -{removed}")
        }
        Some(Display::Calls { .. }) => {
            t.inner.as_ref().and_then(|calls| inner::count(calls, false)).unwrap_or_default()
        }
        Some(Display::Output { exit: Some(code), .. }) if *code != 0 => format!("exit {code}"),
        _ => String::new(),
    };
    match t.state {
        _ if t.asked.is_some() => ("needs you".into(), String::new()),
        ToolState::Begun => ("preparing".into(), String::new()),
        ToolState::Waiting => ("waiting".into(), String::new()),
        ToolState::Running => {
            let silent = since(t.heard);
            let calls = t.inner.as_ref().and_then(|calls| inner::count(calls, true));
            let said = if let Some(calls) = calls {
                calls
            } else if silent >= SILENT {
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
                ToolOutcome::Error if size.is_empty() || t.inner.is_some() => "failed",
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

/// Lines that a call added and removed.
fn changed(t: &ToolCell) -> (u32, u32) {
    match &t.display {
        Some(Display::Diff { files }) => {
            (files.iter().map(|f| f.added).sum(), files.iter().map(|f| f.removed).sum())
        }
        _ => (0, 0),
    }
}

/// `0.6s`, `12s`, `2m05`, `1h02m`.
pub fn seconds(s: f64) -> String {
    let whole = s.max(0.0) as u64;
    match whole {
        0..10 if s.fract() > 0.0 => format!("{s:.1}s"),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// True when two calls, one right below the other, share a row: neighbours that look at something, and edits of one file.
pub(crate) fn joins(above: &ToolCell, below: &ToolCell) -> bool {
    if above.asked.is_some() || below.asked.is_some() || kind(above) != kind(below) {
        return false;
    }
    // A mark stands on the row of its own call.
    if [above, below].iter().any(|t| !learned::mark(t).is_empty()) {
        return false;
    }
    let calm = |t: &ToolCell| {
        matches!(t.state, ToolState::Running | ToolState::Done(ToolOutcome::Ok)) && !whole(t).1.is_empty()
    };
    match kind(above) {
        ToolVerb::Read | ToolVerb::List | ToolVerb::Search => calm(above) && calm(below),
        ToolVerb::Edit | ToolVerb::Write | ToolVerb::Patch => {
            let one = |t: &ToolCell| match (&t.state, &t.display) {
                (ToolState::Done(ToolOutcome::Ok), Some(Display::Diff { files })) if files.len() == 1 => {
                    Some(files[0].path.clone())
                }
                _ => None,
            };
            one(above).is_some_and(|path| one(below) == Some(path))
        }
        _ => false,
    }
}

fn kind(t: &ToolCell) -> ToolVerb {
    match &t.verb {
        ToolVerb::Unnamed => t.info.as_ref().map_or(ToolVerb::Unnamed, |i| i.verb.clone()),
        verb => verb.clone(),
    }
}

/// True when the call works on the todo list, whose panel shows what came of it.
pub(crate) fn is_todo(t: &ToolCell) -> bool {
    kind(t) == ToolVerb::Todo
}

/// Lays a call out. `above`: the calls that share its row, oldest first.
pub(super) fn lay(t: &ToolCell, above: &[&ToolCell], cx: &CellCx<'_>) -> CellLayout {
    let indent = indent(cx);
    // What stands at the right end ends where the time of a message does.
    let room = cx.prose().saturating_sub(indent + 1);
    let all: Vec<&ToolCell> = above.iter().copied().chain([t]).collect();
    let mut text = DiffText::default();
    text.push(row(&all, room, cx));
    let failed =
        matches!(t.state, ToolState::Done(ToolOutcome::Error | ToolOutcome::TimedOut | ToolOutcome::Denied));
    for line in t.inner.iter().flat_map(|calls| inner::rows(calls, room, cx)) {
        text.push(line);
    }
    if cx.unfolded {
        unfolded(t, cx, &mut text);
    } else if matches!(t.state, ToolState::Running) {
        tail(t, room, cx, &mut text);
    } else if failed {
        failure(t, room, cx, &mut text);
    } else {
        preview(&all, cx, &mut text);
    }
    let mut laid = CellLayout::coded(text.lines, text.codes, cx, indent, cx.columns);
    laid.mark = Some(mark(all.iter().find(|t| t.state == ToolState::Running).unwrap_or(&t), cx));
    laid
}

/// Returns what stands at the right end of a row: the measure, then the time in a column of its own.
fn right(calls: &[&ToolCell], narrow: bool, cx: &CellCx<'_>) -> Line {
    let look = Look::of(match calls.last() {
        Some(t) if t.asked.is_some() => Role::Waiting,
        Some(t) if matches!(t.state, ToolState::Running) => Role::Running,
        Some(t) if matches!(t.state, ToolState::Done(o) if !o.ok()) => Role::Error,
        _ => Role::Dim,
    });
    let (size, mut time) = match calls {
        [one] => measure(one, cx.now),
        many => total(many, cx.now),
    };
    let mut line = Line::new(Wrap::Cut);
    let diff = calls.iter().all(|t| matches!(t.display, Some(Display::Diff { .. })));
    if diff && matches!(calls.last(), Some(t) if t.state == ToolState::Done(ToolOutcome::Ok)) {
        let (added, removed) = calls.iter().map(|t| changed(t)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        line = diff::counts(added, removed, cx.ascii);
    } else if let Some((n, unit)) = size.split_once(' ').filter(|(n, _)| look.role == Role::Dim && number(n))
    {
        line.push_strict(n, Look::of(Role::Text));
        line.push_strict(&format!(" {unit}"), look);
    } else {
        line.push_strict(&size, look);
    }
    if narrow {
        if !line.is_empty() {
            time.clear();
        }
        line.push(&time, look);
    } else {
        // The column stays where it is when there is no time.
        line.push(&format!("{time:>TIME$}"), look);
    }
    line
}

fn number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'.')
}

/// Measure and time of calls that share a row.
fn total(calls: &[&ToolCell], now: tiller_protocol::Time) -> (String, String) {
    if let Some(t) = calls.iter().find(|t| matches!(t.state, ToolState::Running)) {
        return measure(t, now);
    }
    let spent: f64 = calls.iter().map(|t| t.seconds).sum();
    let time = if spent >= SLOW { seconds(spent) } else { String::new() };
    let parts = calls.iter().map(|t| {
        let size = measure(t, now).0;
        let (n, unit) = size.split_once(' ')?;
        Some((n.parse::<u64>().ok()?, unit.strip_suffix('s').unwrap_or(unit).to_owned()))
    });
    let Some(parts) = parts.collect::<Option<Vec<_>>>() else { return (String::new(), time) };
    let sum: u64 = parts.iter().map(|p| p.0).sum();
    let size = match parts.first() {
        Some((_, unit)) if parts.iter().all(|p| p.1 == *unit) => {
            // `1 entry` and `9 entries`: the last one's own word where it is a plural.
            let own = measure(calls[calls.len() - 1], now).0;
            let plural = own.split_once(' ').map(|p| p.1.to_owned()).filter(|u| u.ends_with('s'));
            format!("{sum} {}", plural.unwrap_or_else(|| format!("{unit}s")))
        }
        _ => String::new(),
    };
    (size, time)
}

fn row(calls: &[&ToolCell], room: usize, cx: &CellCx<'_>) -> Line {
    let narrow = room < NARROW;
    let mut line = Line::new(Wrap::Cut);
    let Some(last) = calls.last() else { return line };
    let (verb, target) = what(last, cx.folders);
    line.push(&shorten_end(&verb, if narrow { 6 } else { 12 }, cx.ascii), Look::of(Role::Strong));
    line.pad_to(if narrow { 7 } else { 8 }, Look::of(Role::Text));
    if !line.text().ends_with(' ') {
        line.push(" ", Look::of(Role::Text));
    }
    let left = width(line.text());
    let mut right = right(calls, narrow, cx);
    right.shorten(room / 2, cx.ascii);
    let space = room.saturating_sub(left + width(right.text()) + 2);
    let targets: Vec<String> = calls.iter().map(|t| what(t, cx.folders).1).collect();
    if calls.len() > 1 && targets.iter().all(|t| *t == target) {
        let note = format!("  {} {verb}s", calls.len());
        let note = if verb.ends_with(|c: char| "xsh".contains(c)) {
            format!("  {} calls", calls.len())
        } else {
            note
        };
        line.push_strict(&short(&target, space.saturating_sub(width(&note)), cx.ascii), Look::of(Role::Text));
        line.push_strict(&note, Look::of(Role::Dim));
    } else if calls.len() > 1 {
        let (said, more) = listed(&targets, space, cx.ascii);
        line.push_strict(&said, Look::of(Role::Text));
        line.push_strict(&more, Look::of(Role::Dim));
    } else {
        let mark = learned::mark(last);
        line.push_strict(&short(&target, space.saturating_sub(width(&mark)), cx.ascii), Look::of(Role::Text));
        line.push_strict(&mark, Look::of(Role::Dim));
    }
    line.pad_to(room.saturating_sub(width(right.text())), Look::of(Role::Text));
    line.push_slice(&right, 0, right.text().len());
    line
}

/// Paths keep their end, everything else its beginning.
pub(super) fn short(target: &str, columns: usize, ascii: bool) -> String {
    if target.contains('/') && !target.contains(' ') {
        shorten_middle(target, columns, ascii)
    } else {
        shorten_end(target, columns, ascii)
    }
}

/// As many targets as fit, and how many are not named.
fn listed(targets: &[String], columns: usize, ascii: bool) -> (String, String) {
    let more = |n: usize| if n == 0 { String::new() } else { format!(", +{n} more") };
    let mut distinct: Vec<&str> = Vec::new();
    targets.iter().for_each(|t| {
        if !distinct.contains(&t.as_str()) {
            distinct.push(t);
        }
    });
    for kept in (1..=distinct.len()).rev() {
        let said = distinct[..kept].join(", ");
        let more = more(distinct.len() - kept);
        if width(&said) + width(&more) <= columns {
            return (said, more);
        }
    }
    let more = more(distinct.len() - 1);
    (short(distinct.first().unwrap_or(&""), columns.saturating_sub(width(&more)), ascii), more)
}

/// A line of output with a bar, cut at `room`; `note` stands at its end.
pub(super) fn quoted(mut line: Line, note: &str, room: usize, bar: Role, cx: &CellCx<'_>) -> Line {
    let gutter = Gutter::new(format!("{} ", sign::QUOTE.text(cx.ascii)), bar);
    let room = room.saturating_sub(2);
    let spare = if note.is_empty() { 0 } else { width(note) + 2 };
    line.shorten(room.saturating_sub(spare), cx.ascii);
    if !note.is_empty() {
        line.pad_to(room.saturating_sub(width(note)), Look::of(Role::Dim));
        line.push_strict(note, Look::of(Role::Dim));
    }
    line.wrap = Wrap::Cut;
    line.gutter(gutter)
}

pub(super) fn unfold_note(more: u64, cx: &CellCx<'_>) -> String {
    if more > 0 { format!("+{more} {}", cx.unfold_key()) } else { String::new() }
}

/// The last lines of a call that runs, and how many there are besides.
fn tail(t: &ToolCell, room: usize, cx: &CellCx<'_>, all: &mut DiffText) {
    let lines: Vec<&str> = clean::lines(t.output.text()).filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LIVE);
    let note = unfold_note(from as u64 + t.output.dropped(), cx);
    for (n, text) in lines[from..].iter().enumerate() {
        let note = if n + 1 == lines.len() - from { note.as_str() } else { "" };
        let line = Line::strict(text, Look::of(Role::Dim), Wrap::Cut);
        all.push(quoted(line, note, room, Role::Border, cx));
    }
}

/// True when the output of a call that failed is that of a program, of Tiller's or of another agent's.
fn ran(t: &ToolCell) -> bool {
    let denied = matches!(t.state, ToolState::Done(ToolOutcome::Denied));
    let program = matches!(t.display, Some(Display::Output { .. } | Display::Calls { .. }));
    !denied && (program || t.info.is_none())
}

/// Why a call failed, where that came from, and how many lines there are besides.
fn failure(t: &ToolCell, room: usize, cx: &CellCx<'_>, all: &mut DiffText) {
    let lines: Vec<&str> = clean::lines(t.output.text()).filter(|l| !l.trim().is_empty()).collect();
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
    let cause = if ran(t) { cause(&lines) } else { None };
    // A refusal, and the error of a tool, begin with the reason; a program ends with it.
    let reason = if ran(t) { last } else { first };
    let stands = cause.as_ref().map_or(1, |c| c.lines);
    let note = unfold_note(lines.len().saturating_sub(stands) as u64 + t.output.dropped(), cx);
    let mut origin = cause.as_ref().and_then(|c| c.origin.clone()).unwrap_or_default();
    origin = clean::plain(&origin).into_owned();
    let said = clean::plain(cause.as_ref().map_or(reason, |c| &c.text)).into_owned();
    // The origin stands behind the cause, or goes when there is no room.
    let room_for = room.saturating_sub(width(&note) + 4);
    if !origin.is_empty() && width(&said).min(room_for / 2) + width(&origin) + 3 > room_for {
        origin.clear();
    }
    let spare = if origin.is_empty() { 0 } else { width(&origin) + 3 };
    let mut line = Line::strict(&said, Look::of(Role::Text), Wrap::Cut);
    line.shorten(room_for.saturating_sub(spare), cx.ascii);
    if !origin.is_empty() {
        line.push(&format!("   {origin}"), Look::of(Role::Dim));
    }
    all.push(quoted(line, &note, room, Role::Error, cx));
}

/// The first changed rows of edits, and how many there are besides.
fn preview(calls: &[&ToolCell], cx: &CellCx<'_>, all: &mut DiffText) {
    let files = calls.iter().flat_map(|t| match &t.display {
        Some(Display::Diff { files }) => files.as_slice(),
        _ => &[],
    });
    let layout = DiffLayout::new(cx.columns.saturating_sub(indent(cx)), cx.ascii).unified().cut();
    let (mut shown, mut more) = (0, 0);
    let mut rows = DiffText::default();
    for f in files {
        let (text, left) = diff::first_changes(f, CHANGED - shown, layout, &mut Uncoloured);
        shown += text.lines.len();
        more += left;
        rows.append(text);
    }
    let note = unfold_note(more as u64, cx);
    if let Some(last) = rows.lines.last_mut().filter(|_| more > 0) {
        let used = width(&last.first.text) + width(&note) + 1;
        // In the column of the other notes, unless the line needs the rest of the row.
        let blank = cx.right_blank();
        let fits = used + width(last.text()) + blank <= layout.columns;
        let blank = if fits { blank } else { 1 };
        last.shorten(layout.columns.saturating_sub(used + blank), cx.ascii);
        last.right = Some(Box::new(Gutter::new(format!("{note}{:blank$}", ""), Role::Dim)));
    }
    all.append(rows);
}

/// Adds the whole call.
fn unfolded(t: &ToolCell, cx: &CellCx<'_>, all: &mut DiffText) {
    // The part of the command that the row had to cut.
    let (_, target) = what(t, cx.folders);
    let whole = if t.verb == ToolVerb::Unnamed {
        describe(&t.name, &t.arguments, t.info.as_ref()).1
    } else {
        t.target.clone()
    };
    if width(&target) + 30 > cx.columns || whole.lines().count() > 1 {
        output_lines(&whole, Role::Code, cx).into_iter().for_each(|l| all.push(l));
    }
    if let Some(Display::Diff { files }) = &t.display {
        let layout = DiffLayout::new(cx.columns.saturating_sub(indent(cx)), cx.ascii);
        for f in files {
            // One file is named by the row already.
            let whole = if files.len() == 1 { diff::body } else { diff::file };
            all.append(whole(f, layout, &mut Uncoloured));
        }
        return behind(t, cx, all);
    }
    let lines: Vec<&str> = clean::lines(t.output.text()).collect();
    let from = lines.len().saturating_sub(SHOWN);
    let above = from as u64 + t.output.dropped();
    if above > 0 {
        let note = format!("{above} lines above; {} shows all", cx.viewer_key());
        let mut line = Line::strict(&note, Look::of(Role::Dim), Wrap::Word);
        line.first = Gutter::blank(2);
        all.push(line);
    }
    if !t.output.is_empty() {
        output_lines(&lines[from..].join("\n"), Role::Text, cx).into_iter().for_each(|l| all.push(l));
    } else if matches!(t.state, ToolState::Done(_)) {
        output_lines("no output", Role::Dim, cx).into_iter().for_each(|l| all.push(l));
    }
    behind(t, cx, all);
}

/// Adds what the model reads behind the result: rules, learnings, reminders.
fn behind(t: &ToolCell, cx: &CellCx<'_>, all: &mut DiffText) {
    for text in learned::behind(t) {
        output_lines(&text, Role::Dim, cx).into_iter().for_each(|l| all.push(l));
    }
}
