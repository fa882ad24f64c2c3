//! Ends of lines.

use std::time::Duration;

use similar::{Algorithm, DiffOp};

/// Time for the comparison of old and new lines.
const TIMEOUT: Duration = Duration::from_millis(400);

/// `\r\n` or `\n`: what most lines of `text` end with.
pub(crate) fn line_end(text: &str) -> &'static str {
    let all = text.matches('\n').count();
    let crlf = text.matches("\r\n").count();
    if crlf * 2 > all { "\r\n" } else { "\n" }
}

/// `text` with `end` at each line end.
fn with_line_ends(text: &str, end: &str) -> String {
    let unix = text.replace("\r\n", "\n");
    if end == "\n" { unix } else { unix.replace('\n', end) }
}

/// A line, and its end (`\n`, `\r\n`, or nothing at the end of the text).
pub(crate) fn split(line: &str) -> (&str, &str) {
    let text = line.strip_suffix('\n').map_or(line, |l| l.strip_suffix('\r').unwrap_or(l));
    (text, &line[text.len()..])
}

/// `new` with the line ends of `old`, in whose place it comes. A line that stays keeps its end, one that comes in the
/// place of another takes over that one's, and further lines end as the line before; the first with `end`.
pub(crate) fn adopt(new: &str, old: &str, end: &str) -> String {
    let crlf = old.matches("\r\n").count();
    match old.matches('\n').count() {
        0 => return with_line_ends(new, end),
        _ if crlf == 0 => return with_line_ends(new, "\n"),
        n if crlf == n => return with_line_ends(new, "\r\n"),
        _ => {}
    }
    let lines = |text| str::split_inclusive(text, '\n').map(split).collect::<Vec<_>>();
    let (had, has) = (lines(old), lines(new));
    let texts = |lines: &[(&str, &str)]| lines.iter().map(|(text, _)| (*text).to_owned()).collect::<Vec<_>>();
    let deadline = std::time::Instant::now().checked_add(TIMEOUT);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &texts(&had), &texts(&has), deadline);
    let mut ends: Vec<Option<&str>> = vec![None; has.len()];
    for op in ops {
        let (from, to, count) = match op {
            DiffOp::Equal { old_index, new_index, len } => (old_index, new_index, len),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                (old_index, new_index, old_len.min(new_len))
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => continue,
        };
        for n in 0..count {
            ends[to + n] = Some(had[from + n].1).filter(|end| !end.is_empty());
        }
    }
    let mut out = String::with_capacity(new.len());
    let mut last = end;
    for ((text, own), end) in has.into_iter().zip(ends) {
        out.push_str(text);
        if !own.is_empty() {
            last = end.unwrap_or(last);
            out.push_str(last);
        }
    }
    out
}
