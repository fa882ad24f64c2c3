//! Finds where blocks begin.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

/// One block: a top-level block, or one item of a top-level list.
pub(super) struct Unit<'a> {
    /// Where its first line begins.
    pub start: usize,
    /// Source before its events that produced none: reference definitions.
    pub silent: Option<Range<usize>>,
    /// It is a list item.
    pub item: bool,
    pub events: Vec<(Event<'a>, Range<usize>)>,
}

/// Number and delimiter of an ordered item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ordinal {
    pub n: u64,
    pub delimiter: u8,
}

impl Unit<'_> {
    /// Its number, counted on from the item before.
    pub(super) fn ordinal(&self, source: &str, before: Option<Ordinal>) -> Option<Ordinal> {
        let own = if self.item { ordinal_at(&source[self.start..]) } else { None }?;
        match before {
            Some(b) if b.delimiter == own.delimiter => {
                Some(Ordinal { n: b.n.saturating_add(1), delimiter: own.delimiter })
            }
            _ => Some(own),
        }
    }
}

/// Whether the line before the one at `at` is not blank.
pub(super) fn tight(source: &str, at: usize) -> bool {
    let before = &source[..line_start(source, at)];
    match before.strip_suffix('\n') {
        Some(rest) => {
            !rest[rest.rfind('\n').map_or(0, |n| n + 1)..].trim_matches([' ', '\t', '\r', '>']).is_empty()
        }
        None => true,
    }
}

/// Reads `12.` or `12)`.
pub(super) fn ordinal_at(text: &str) -> Option<Ordinal> {
    let text = text.trim_start_matches([' ', '\t', '>']);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let delimiter = *text.as_bytes().get(digits)?;
    if !(1..=9).contains(&digits) || !matches!(delimiter, b'.' | b')') {
        return None;
    }
    Some(Ordinal { n: text[..digits].parse().ok()?, delimiter })
}

fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |n| n + 1)
}

/// The dialect of Markdown that models write. Footnotes stay as text (`[^1]`, `[^1]: ...`): both ends stay visible, and
/// no block depends on another.
fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Cuts `source` into blocks.
pub(super) fn split(source: &str) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    let mut depth = 0_usize;
    let mut in_list = false;
    let mut covered = 0; // end of the last block
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        let floor = usize::from(in_list);
        match &event {
            Event::Start(tag) => {
                if depth == 0 && matches!(tag, Tag::List(_)) {
                    in_list = true;
                    depth = 1;
                    continue;
                }
                if depth == floor {
                    begin(&mut units, source, &range, covered, matches!(tag, Tag::Item));
                }
                depth += 1;
            }
            Event::End(_) => {
                depth -= 1;
                if depth == 0 && in_list {
                    in_list = false;
                    continue;
                }
                if depth == floor {
                    covered = covered.max(range.end);
                }
            }
            _ if depth == floor => {
                begin(&mut units, source, &range, covered, false);
                covered = covered.max(range.end);
            }
            _ => {}
        }
        if let Some(unit) = units.last_mut() {
            unit.events.push((event, range));
        }
    }
    if let Some(silent) = silent(source, covered, source.len()) {
        let start = line_start(source, silent.start);
        units.push(Unit { start, silent: Some(silent), item: false, events: Vec::new() });
    }
    units
}

fn begin(units: &mut Vec<Unit<'_>>, source: &str, range: &Range<usize>, covered: usize, item: bool) {
    let mut start = line_start(source, range.start).max(covered.min(range.start));
    let mut before = silent(source, covered, start);
    if let Some(s) = before.clone() {
        let at = line_start(source, s.start).max(covered);
        if source[s.end..start].trim_start_matches([' ', '\t', '\r']).matches('\n').count() > 1 {
            // A blank line separates them.
            units.push(Unit { start: at, silent: before.take(), item: false, events: Vec::new() });
        } else {
            start = at;
        }
    }
    units.push(Unit { start, silent: before, item, events: Vec::new() });
}

/// The text between blocks that is not blank, trimmed.
fn silent(source: &str, from: usize, to: usize) -> Option<Range<usize>> {
    let text = source.get(from..to)?;
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return None;
    }
    let start = from + (text.len() - text.trim_start().len());
    Some(start..start + trimmed.len())
}
