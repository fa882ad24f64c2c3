//! Exact replacement of text, on strings. Masks in what was asked stand for the values of the text.

use std::borrow::Cow;
use std::collections::HashMap;

use tiller_protocol::mask::has_mask;

use crate::files::change::nearest;
use crate::files::content::ends::{self, line_end};
use crate::files::masks::pictures::{self, Shown};
use crate::files::masks::{MaskedText, restore};

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub all: bool,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub text: String,
    /// 1-based first lines of the places, in the old text.
    pub lines: Vec<usize>,
}

/// Replaces in `file`. Line ends of the new text become those of the place; everything outside stays. Pictures of characters
/// that cannot be shown stand for these.
///
/// # Errors
/// What to tell the model: not found (with the nearest place), not unique (with all places), no change, a mask whose
/// value is unknown, a picture that may stand for several characters.
pub(crate) fn replace(name: &str, file: &MaskedText<'_>, ask: Ask<'_>) -> Result<Replacement, String> {
    let text = file.real();
    if ask.old.is_empty() {
        return Err("`old` is empty; to write a whole file use write_file".into());
    }
    if ask.old == ask.new {
        return Err("`old` and `new` are identical".into());
    }
    // What is asked with masks is found where they are shown.
    let masked = has_mask(ask.old);
    let places: Vec<(usize, usize)> = if masked {
        let shown = find(file.shown(), ask.old).into_iter();
        shown.filter_map(|(a, b)| file.real_range(a..b)).map(|r| (r.start, r.end)).collect()
    } else {
        find(text, ask.old)
    };
    if places.is_empty() {
        return Err(nearest::explain(if masked { file.shown() } else { text }, ask.old));
    }
    let lines = line_numbers(text, &places);
    if places.len() > 1 && !ask.all {
        let shown: Vec<String> = lines.iter().take(20).map(usize::to_string).collect();
        let more = if lines.len() > 20 { ", ..." } else { "" };
        return Err(format!(
            "`old` occurs {} times, at lines {}{more}; nothing was changed. Add lines around it until it is \
             unique, or set `replace_all`.",
            lines.len(),
            shown.join(", ")
        ));
    }
    let mut out = String::with_capacity(text.len() + ask.new.len());
    let mut at = 0;
    // Most of many places look alike: each look of the file takes a while.
    let mut restored: HashMap<(String, String), String> = HashMap::new();
    for (start, end) in places {
        out.push_str(&text[at..start]);
        let new = if ask.old.contains('\r') {
            // The model is at the line ends themselves.
            Cow::Borrowed(ask.new)
        } else {
            Cow::Owned(ends::adopt(ask.new, &Shown::of(&text[start..end]).text, end_here(text, start, end)))
        };
        let here = file.part(start..end);
        let new = if pictures::has(&new) {
            let key = (here.shown().to_owned(), new.into_owned());
            if !restored.contains_key(&key) {
                let text =
                    pictures::restore(&key.1, &key.0, file.shown()).map_err(|u| u.tell(name))?.into_owned();
                restored.insert(key.clone(), text);
            }
            restored.get(&key).cloned().map_or(Cow::Borrowed(""), Cow::Owned)
        } else {
            new
        };
        out.push_str(&restore(&new, &[&here, file]).map_err(|u| u.tell(name, true))?);
        at = end;
    }
    out.push_str(&text[at..]);
    if out == text {
        return Err("the edit changes nothing".into());
    }
    Ok(Replacement { text: out, lines })
}

/// Places of `needle`, not overlapping. A `\n` in it also stands for `\r\n`, and a picture for what it shows.
fn find(text: &str, needle: &str) -> Vec<(usize, usize)> {
    if !pictures::has(needle) {
        return find_plain(text, needle);
    }
    let shown = Shown::of(text);
    find_plain(&shown.text, needle).into_iter().map(|(a, b)| (shown.real(a), shown.real(b))).collect()
}

fn find_plain(text: &str, needle: &str) -> Vec<(usize, usize)> {
    if needle.contains('\r') || !needle.contains('\n') || !text.contains("\r\n") {
        return text.match_indices(needle).map(|(at, m)| (at, at + m.len())).collect();
    }
    // Positions, in the text without them, before which a carriage return was left out.
    let mut plain = String::with_capacity(text.len());
    let mut cuts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\r\n") {
        plain.push_str(&rest[..at]);
        cuts.push(plain.len());
        rest = &rest[at + 1..];
    }
    plain.push_str(rest);
    // A match that starts at a line end includes the return; a match that ends before it excludes it.
    let start = |at: usize| at + cuts.partition_point(|c| *c < at);
    plain.match_indices(needle).map(|(at, m)| (start(at), start(at + m.len()))).collect()
}

/// The line end that the place uses: its own first one, else that of its line, else the file's.
fn end_here(text: &str, start: usize, end: usize) -> &'static str {
    let own = text[start..end].find('\n').map(|at| start + at);
    let next = || text[end..].find('\n').map(|at| end + at);
    match own.or_else(next) {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) => "\n",
        None => line_end(text),
    }
}

fn line_numbers(text: &str, places: &[(usize, usize)]) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let mut lines = Vec::with_capacity(places.len());
    for (start, _) in places {
        line += text[at..*start].matches('\n').count();
        at = *start;
        lines.push(line);
    }
    lines
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;
