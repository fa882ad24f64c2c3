//! Puts hunks into a text. Lines that are kept are those of the file, byte for byte.

use super::parse::{Hunk, Line};
use crate::files::encoding::line_end;
use crate::files::nearest;

/// One line of the file: its text, and its end (`\n`, `\r\n`, or nothing at the end of the file).
struct Row<'a> {
    text: &'a str,
    end: &'a str,
}

/// Applies `hunks`, in order, each after the one before.
///
/// # Errors
/// What to tell the model; nothing was changed then.
pub(crate) fn apply(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let rows: Vec<Row<'_>> = text.split_inclusive('\n').map(row).collect();
    let file_end = line_end(text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for hunk in hunks {
        let want: Vec<&str> = hunk.lines.iter().filter_map(old).collect();
        let start = place(&rows, at, hunk, &want).map_err(|e| match e {
            Miss::Anchor => {
                format!("the hunk at line {} of the patch: no line {:?} after line {at}", hunk.at, hunk.anchor)
            }
            Miss::None => format!(
                "the hunk at line {} of the patch: {}",
                hunk.at,
                nearest::explain(text, &want.join("\n"))
            ),
            Miss::Many(lines) => format!(
                "the hunk at line {} of the patch fits at lines {}; add lines around it, or '@@ ' and a line above it",
                hunk.at,
                lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
            ),
        })?;
        rows[at..start].iter().for_each(|r| push(&mut out, r, file_end));
        at = put(&mut out, &rows, start, hunk, file_end);
    }
    let last = rows.len();
    for (n, row) in rows[at..].iter().enumerate() {
        // The file's own end, whatever it is.
        if at + n + 1 == last {
            out.push_str(row.text);
            out.push_str(row.end);
        } else {
            push(&mut out, row, file_end);
        }
    }
    Ok(out)
}

fn row(line: &str) -> Row<'_> {
    let text = line.strip_suffix('\n').map_or(line, |l| l.strip_suffix('\r').unwrap_or(l));
    Row { text, end: &line[text.len()..] }
}

/// Adds a row that something may follow: it gets a line end if it had none.
fn push(out: &mut String, row: &Row<'_>, file_end: &str) {
    out.push_str(row.text);
    out.push_str(if row.end.is_empty() { file_end } else { row.end });
}

fn old(line: &Line) -> Option<&str> {
    match line {
        Line::Keep(text) | Line::Cut(text) => Some(text),
        Line::Put(_) => None,
    }
}

/// Writes the hunk; gives the row after it.
fn put(out: &mut String, rows: &[Row<'_>], start: usize, hunk: &Hunk, file_end: &str) -> usize {
    let mut at = start;
    // New lines end as their neighbours do.
    let mut end = start.checked_sub(1).or(Some(start)).and_then(|n| rows.get(n)).map_or(file_end, |r| r.end);
    let open = rows.last().is_some_and(|r| r.end.is_empty());
    for line in &hunk.lines {
        match line {
            Line::Keep(_) => {
                push(out, &rows[at], file_end);
                end = rows[at].end;
                at += 1;
            }
            Line::Cut(_) => {
                end = rows[at].end;
                at += 1;
            }
            Line::Put(text) => {
                out.push_str(text);
                out.push_str(if end.is_empty() { file_end } else { end });
            }
        }
    }
    // A file without a line end at its end stays so.
    if open && at == rows.len() && out.ends_with('\n') {
        out.pop();
        if out.ends_with('\r') {
            out.pop();
        }
    }
    at
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
            rows[from..]
                .iter()
                .position(|r| if exact { r.text == hunk.anchor } else { r.text.trim() == hunk.anchor.trim() })
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

fn exactly(a: &str, b: &str) -> bool {
    a == b
}

/// White space at line ends is often lost on the way to and from a model; the file's own is kept.
fn but_trailing(a: &str, b: &str) -> bool {
    a.trim_end() == b.trim_end()
}

#[cfg(test)]
#[path = "hunks_tests.rs"]
mod tests;
