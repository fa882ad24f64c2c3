//! Puts hunks into a text. Lines that are kept are those of the file, byte for byte.

use std::ops::Range;

use tiller_protocol::mask::has_mask;

use super::parse::{Hunk, Line};
use crate::files::change::nearest;
use crate::files::content::ends::{self, line_end, split};
use crate::files::masks::pictures::{self, Shown};
use crate::files::masks::{MaskedText, restore};

/// One line of the file: its text, and its end (`\n`, `\r\n`, or nothing at the end of the file). Where the hunks
/// have masks in them, it is a line of the masked text, and may stand for several.
struct Row<'a> {
    text: &'a str,
    end: &'a str,
    /// Its bytes in the file, without its end.
    real: Range<usize>,
}

/// The file, and its lines as the hunks speak of them.
struct Lines<'a> {
    name: &'a str,
    file: &'a MaskedText<'a>,
    rows: Vec<Row<'a>>,
    end: &'static str,
}

/// Applies `hunks`, in order, each after the one before.
///
/// # Errors
/// What to tell the model; nothing was changed then.
pub(crate) fn apply(name: &str, file: &MaskedText<'_>, hunks: &[Hunk]) -> Result<String, String> {
    let masked = hunks.iter().any(|h| has_mask(&h.anchor) || h.lines.iter().filter_map(old).any(has_mask));
    let text = if masked { file.shown() } else { file.real() };
    let rows = rows(text, |at| if masked { file.to_real(at).unwrap_or_else(|r| r.end) } else { at });
    let lines = Lines { name, file, rows, end: line_end(text) };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for hunk in hunks {
        let want: Vec<&str> = hunk.lines.iter().filter_map(old).collect();
        let start = place(&lines.rows, at, hunk, &want).map_err(|e| match e {
            Miss::Anchor => {
                format!("the hunk at line {} of the patch: no line {:?} after line {at}", hunk.at, hunk.anchor)
            }
            Miss::None => format!(
                "the hunk at line {} of the patch: {}",
                hunk.at,
                nearest::explain(text, &want.join("\n"))
            ),
            Miss::Many(lines) => format!(
                "the hunk at line {} of the patch fits at lines {}; add lines around it, or '@@ ' and a preceding line",
                hunk.at,
                lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
            ),
        })?;
        (at..start).for_each(|n| lines.push(&mut out, n));
        at = lines.put(&mut out, start, hunk)?;
    }
    let last = lines.rows.len();
    for n in at..last {
        // The file's own end, whatever it is.
        if n + 1 == last {
            out.push_str(lines.real(n..n + 1));
            out.push_str(lines.rows[n].end);
        } else {
            lines.push(&mut out, n);
        }
    }
    Ok(out)
}

fn rows(text: &str, real: impl Fn(usize) -> usize) -> Vec<Row<'_>> {
    let mut at = 0;
    let mut row = |line| {
        let (text, end) = split(line);
        let start = at;
        at += line.len();
        Row { text, end, real: real(start)..real(start + text.len()) }
    };
    text.split_inclusive('\n').map(&mut row).collect()
}

fn old(line: &Line) -> Option<&str> {
    match line {
        Line::Keep(text) | Line::Cut(text) => Some(text),
        Line::Put(_) => None,
    }
}

impl Lines<'_> {
    /// What the file has from the first of these rows to the last, without the last one's end.
    fn real(&self, rows: Range<usize>) -> &str {
        self.real_range(rows).map_or("", |range| &self.file.real()[range])
    }

    /// Adds a row that something may follow: it gets a line end if it had none.
    fn push(&self, out: &mut String, n: usize) {
        out.push_str(self.real(n..n + 1));
        out.push_str(if self.rows[n].end.is_empty() { self.end } else { self.rows[n].end });
    }

    /// Writes the hunk; gives the row after it.
    fn put(&self, out: &mut String, start: usize, hunk: &Hunk) -> Result<usize, String> {
        let mut at = start;
        // New lines end as their neighbours do.
        let neighbour = start.checked_sub(1).or(Some(start)).and_then(|n| self.rows.get(n));
        let mut end = neighbour.map_or(self.end, |r| r.end);
        let open = self.rows.last().is_some_and(|r| r.end.is_empty());
        let count = hunk.lines.iter().filter_map(old).count();
        let mut rest = hunk.lines.as_slice();
        while let Some(line) = rest.first() {
            if matches!(line, Line::Keep(_)) {
                self.push(out, at);
                end = self.rows[at].end;
                at += 1;
                rest = &rest[1..];
                continue;
            }
            // Up to the next line that is kept: lines that go, and lines that come in their place.
            let (block, after) =
                rest.split_at(rest.iter().position(|l| matches!(l, Line::Keep(_))).unwrap_or(rest.len()));
            let went = block.iter().filter_map(old).count();
            let (mut new, mut before) = (String::new(), String::new());
            for line in block {
                match line {
                    Line::Put(text) => {
                        new.push_str(text);
                        new.push('\n');
                    }
                    _ => {
                        before.push_str(self.real(at..at + 1));
                        before.push_str(self.rows[at].end);
                        at += 1;
                    }
                }
            }
            let new =
                ends::adopt(&new, &Shown::of(&before).text, if end.is_empty() { self.end } else { end });
            end = at.checked_sub(1).filter(|_| went > 0).map_or(end, |last| self.rows[last].end);
            let part = |rows: Range<usize>| match self.real_range(rows) {
                Some(range) => self.file.part(range),
                None => MaskedText::plain(""),
            };
            let scopes = [part(at - went..at), part(start..start + count)];
            let new = pictures::restore(&new, scopes[0].shown(), self.file.shown())
                .map_err(|u| format!("the hunk at line {} of the patch: {}", hunk.at, u.tell(self.name)))?;
            let new = restore(&new, &[&scopes[0], &scopes[1], self.file]);
            out.push_str(&new.map_err(|u| {
                format!("the hunk at line {} of the patch: {}", hunk.at, u.tell(self.name, true))
            })?);
            rest = after;
        }
        // A file without a line end at its end stays so.
        if open && at == self.rows.len() && out.ends_with('\n') {
            out.pop();
            if out.ends_with('\r') {
                out.pop();
            }
        }
        Ok(at)
    }

    fn real_range(&self, rows: Range<usize>) -> Option<Range<usize>> {
        let rows = self.rows.get(rows)?;
        Some(rows.first()?.real.start..rows.last()?.real.end)
    }
}

enum Miss {
    Anchor,
    None,
    Many(Vec<usize>),
}

/// The row where the hunk starts, at or after `from`.
fn place(rows: &[Row<'_>], from: usize, hunk: &Hunk, want: &[&str]) -> Result<usize, Miss> {
    let mut from = from;
    if !hunk.anchor.is_empty() {
        let hit = |exact: bool| {
            rows[from..].iter().position(|r| {
                if exact { exactly(&hunk.anchor, r.text) } else { exactly(hunk.anchor.trim(), r.text.trim()) }
            })
        };
        from += hit(true).or_else(|| hit(false)).ok_or(Miss::Anchor)? + 1;
        // The anchor may be repeated as the first line of the hunk.
        if want.first().is_some_and(|w| w.trim() == hunk.anchor.trim()) {
            from -= 1;
        }
    }
    if want.is_empty() {
        // Pure insertion: after the anchor, at the named line, or at the end of the file.
        return Ok(match (hunk.anchor.is_empty(), hunk.near) {
            (false, _) if !hunk.at_end => from,
            (true, Some(line)) => line.clamp(from, rows.len()),
            _ => rows.len(),
        });
    }
    for same in [exactly as fn(&str, &str) -> bool, but_trailing] {
        let fits: Vec<usize> = (from..(rows.len() + 1).saturating_sub(want.len()))
            .filter(|at| want.iter().zip(&rows[*at..]).all(|(w, r)| same(w, r.text)))
            .filter(|at| !hunk.at_end || at + want.len() == rows.len())
            .collect();
        match (fits.as_slice(), hunk.near) {
            ([], _) => {}
            ([one], _) => return Ok(*one),
            (many, Some(line)) => {
                let nearest = many.iter().min_by_key(|at| (*at + 1).abs_diff(line));
                return nearest.copied().ok_or(Miss::None);
            }
            // After an anchor the first is meant.
            (many, None) if !hunk.anchor.is_empty() => return Ok(many[0]),
            (many, None) => return Err(Miss::Many(many.iter().take(20).map(|n| n + 1).collect())),
        }
    }
    Err(Miss::None)
}

/// `row` is a line of the file; in what was written, a picture stands for what it shows.
fn exactly(written: &str, row: &str) -> bool {
    written == row || pictures::has(written) && written == Shown::of(row).text
}

/// White space at line ends is often lost on the way to and from a model; the file's own is kept.
fn but_trailing(written: &str, row: &str) -> bool {
    exactly(written.trim_end(), row.trim_end())
}

#[cfg(test)]
#[path = "hunks_tests.rs"]
mod tests;
