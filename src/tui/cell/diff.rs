//! Differences: unified, or side by side where there is room; changed words stand out.

use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};
use tiller_protocol::ChangeKind;
use tiller_protocol::tool::FileDiff;

use crate::text::clean;
use crate::text::diff::{DiffLine, Hunk, LineKind, Patch};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::shorten::shorten_middle;
use crate::text::wrap::{Row, wrap};
use crate::theme::Role;

/// From this width on, old and new stand side by side.
pub const SIDE_BY_SIDE: usize = 140;
/// Longer lines are not compared word by word.
const WORDS: usize = 400;
/// Time limit for comparing the words of one hunk.
const PATIENCE: Duration = Duration::from_millis(5);

/// A whole file: its name and its hunks.
pub fn file(f: &FileDiff, columns: usize, ascii: bool) -> Vec<Line> {
    let mut all = vec![title(f, columns, ascii)];
    if f.diff.is_empty() {
        all.push(Line::strict("  (binary, or no text to show)", Look::of(Role::Dim), Wrap::Word));
    }
    for h in &Patch::read(&f.diff).hunks {
        all.push(Line::strict(&h.header, Look::of(Role::Dim), Wrap::Word));
        all.extend(hunk(h, columns, columns >= SIDE_BY_SIDE).into_iter().map(|(line, _)| line));
    }
    all
}

/// `M src/client.rs +18 -4`.
pub fn title(f: &FileDiff, columns: usize, ascii: bool) -> Line {
    let mut line = Line::new(Wrap::Word);
    line.push(letter(f.kind), Look::of(Role::Accent));
    let counts = format!(" +{} -{}", f.added, f.removed);
    let room = columns.saturating_sub(counts.len() + 2);
    line.push(" ", Look::of(Role::Text));
    line.push_strict(&shorten_middle(&clean::plain(&f.path), room, ascii), Look::of(Role::Strong));
    line.push(&counts, Look::of(Role::Dim));
    line
}

/// One letter for what happened to a file.
pub fn letter(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "A",
        ChangeKind::Modified => "M",
        ChangeKind::Deleted => "D",
        ChangeKind::Renamed => "R",
        ChangeKind::Storm => "*",
        ChangeKind::Git => "G",
    }
}

/// The lines of a hunk, each with the index of the hunk's line that it shows.
pub fn hunk(h: &Hunk, columns: usize, side_by_side: bool) -> Vec<(Line, usize)> {
    let painted = emphasised(h);
    if side_by_side { split(h, &painted, columns) } else { unified(h, &painted) }
}

fn unified(h: &Hunk, painted: &[Line]) -> Vec<(Line, usize)> {
    let digits = digits(h);
    h.lines
        .iter()
        .zip(painted)
        .enumerate()
        .map(|(n, (l, line))| {
            let mut line = line.clone();
            let (sign, role) = sign(l.kind);
            let number = l.new.filter(|_| l.kind != LineKind::Removed).or(l.old);
            let number = number.map_or_else(String::new, |n| n.to_string());
            line.first = Gutter::new(format!("{number:>digits$} {sign} "), role);
            // A row that goes on keeps its sign, so that it is never taken for context.
            line.rest = Gutter::new(format!("{:>digits$} {sign} ", ""), role);
            (line, n)
        })
        .collect()
}

/// Columns of the line numbers.
fn digits(h: &Hunk) -> usize {
    let last = h.lines.iter().filter_map(|l| l.old.max(l.new)).max().unwrap_or(0);
    last.to_string().len().max(3)
}

fn sign(kind: LineKind) -> (char, Role) {
    match kind {
        LineKind::Context => (' ', Role::Dim),
        LineKind::Added => ('+', Role::Added),
        LineKind::Removed => ('-', Role::Removed),
        LineKind::Remark => ('\\', Role::Dim),
    }
}

/// Clean lines with looks: changed words of paired lines stand out.
fn emphasised(h: &Hunk) -> Vec<Line> {
    // Files with \r\n would show a mark on every line.
    let crlf = h.lines.iter().filter(|l| l.kind != LineKind::Remark).all(|l| l.text.ends_with('\r'));
    let bare = |l: &DiffLine| -> String {
        let text = if crlf { l.text.strip_suffix('\r').unwrap_or(&l.text) } else { &l.text };
        text.to_owned()
    };
    let mut out: Vec<Line> = h
        .lines
        .iter()
        .map(|l| {
            let role = match l.kind {
                LineKind::Context => Role::Text,
                other => sign(other).1,
            };
            Line::strict(&bare(l), Look::of(role), Wrap::Hard)
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    let mut n = 0;
    while n < h.lines.len() {
        let run = |from: usize, kind: LineKind| h.lines[from..].iter().take_while(|l| l.kind == kind).count();
        let removed = run(n, LineKind::Removed);
        let added = run(n + removed, LineKind::Added);
        for k in 0..removed.min(added) {
            let (a, b) = (n + k, n + removed + k);
            if let Some((old, new)) = words(&bare(&h.lines[a]), &bare(&h.lines[b]), deadline) {
                out[a] = old;
                out[b] = new;
            }
        }
        n += (removed + added).max(1);
    }
    out
}

fn words(old: &str, new: &str, deadline: Instant) -> Option<(Line, Line)> {
    if old.len() > WORDS || new.len() > WORDS || Instant::now() > deadline {
        return None;
    }
    let diff = TextDiff::configure().deadline(deadline).diff_unicode_words(old, new);
    if diff.ratio() < 0.4 {
        return None; // nearly everything changed: marking it all says nothing
    }
    let (mut a, mut b) = (Line::new(Wrap::Hard), Line::new(Wrap::Hard));
    for change in diff.iter_all_changes() {
        let text = change.value();
        match change.tag() {
            ChangeTag::Equal => {
                a.push_strict(text, Look::of(Role::Removed));
                b.push_strict(text, Look::of(Role::Added));
            }
            ChangeTag::Delete => a.push_strict(text, Look::of(Role::RemovedWord).underline()),
            ChangeTag::Insert => b.push_strict(text, Look::of(Role::AddedWord).underline()),
        }
    }
    Some((a, b))
}

/// Old at the left, new at the right.
fn split(h: &Hunk, painted: &[Line], columns: usize) -> Vec<(Line, usize)> {
    let digits = digits(h);
    let half = columns.saturating_sub(3) / 2;
    let room = half.saturating_sub(digits + 3).max(1);
    let mut pairs: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    let mut n = 0;
    while n < h.lines.len() {
        match h.lines[n].kind {
            LineKind::Context | LineKind::Remark => {
                pairs.push((Some(n), Some(n)));
                n += 1;
            }
            _ => {
                let removed = h.lines[n..].iter().take_while(|l| l.kind == LineKind::Removed).count();
                let added = h.lines[n + removed..].iter().take_while(|l| l.kind == LineKind::Added).count();
                for k in 0..removed.max(added) {
                    let old = (k < removed).then_some(n + k);
                    pairs.push((old, (k < added).then_some(n + removed + k)));
                }
                n += removed + added;
            }
        }
    }
    let mut out = Vec::new();
    for (old, new) in pairs {
        let rows = |side: Option<usize>| -> Vec<Row> {
            let mut rows = Vec::new();
            if let Some(n) = side {
                wrap(&painted[n], 0, room, &mut rows);
            }
            rows
        };
        let (left, right) = (rows(old), rows(new));
        for k in 0..left.len().max(right.len()) {
            let mut line = Line::new(Wrap::Cut);
            let mut side = |edge: usize, n: Option<usize>, row: Option<&Row>, old: bool| {
                line.pad_to(edge, Look::of(Role::Text));
                let (Some(n), Some(row)) = (n, row) else { return };
                let l = &h.lines[n];
                let (sign, role) = sign(l.kind);
                let number = if old { l.old } else { l.new }.filter(|_| k == 0);
                let number = number.map_or_else(String::new, |n| n.to_string());
                line.push(&format!("{number:>digits$} {sign} "), Look::of(role));
                line.push_slice(&painted[n], row.start as usize, row.end as usize);
            };
            side(0, old, left.get(k), true);
            side(half + 3, new, right.get(k), false);
            out.push((line, new.or(old).unwrap_or(0)));
        }
    }
    out
}
