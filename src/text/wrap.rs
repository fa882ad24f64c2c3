//! Wrapping of lines into rows. A row refers to a range of its line; nothing is copied.

use unicode_segmentation::UnicodeSegmentation;

use crate::line::{Line, Wrap};
use crate::width::{grapheme, width};

/// One row of the screen: bytes `start..end` of line number `line`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub line: u32,
    pub start: u32,
    pub end: u32,
}

impl Row {
    /// Whether it is the first row of its line.
    pub fn is_first(self) -> bool {
        self.start == 0
    }
}

/// Wraps `line`, which has number `number`, to `columns` columns. Adds at least one row.
pub fn wrap(line: &Line, number: usize, columns: usize, rows: &mut Vec<Row>) {
    let text = line.text();
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let row = |start: usize, end: usize| Row { line: number, start: start as u32, end: end as u32 };
    let room = |first: bool| {
        let gutter = if first { &line.first } else { &line.rest };
        columns.saturating_sub(width(&gutter.text)).max(1)
    };
    if line.wrap == Wrap::Cut || (text.is_ascii() && text.len() <= room(true)) {
        return rows.push(row(0, text.len()));
    }
    let mut start = 0;
    loop {
        let (end, next) = cut(&text[start..], room(start == 0), line.wrap, start == 0);
        rows.push(row(start, start + end));
        start += next;
        if start >= text.len() {
            return;
        }
    }
}

/// Where the first row of `text` ends, and where the next one starts.
fn cut(text: &str, room: usize, mode: Wrap, first: bool) -> (usize, usize) {
    let mut used = 0;
    let mut split: Option<(usize, usize)> = None;
    let mut word = false; // something other than blanks was seen; leading blanks are no place to split
    let mut was_wide = false;
    let mut was_letter = false;
    for (at, g) in text.grapheme_indices(true) {
        let cells = grapheme(g);
        let blank = g == " ";
        let letter = cells < 2 && g.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if mode == Wrap::Hard && !(letter && was_letter) && used * 2 > room {
            split = Some((at, at));
        }
        if mode == Wrap::Word {
            if blank && (word || !first) {
                // The row ends before the first blank of a run; the next starts after the last.
                match &mut split {
                    Some((_, next)) if *next == at => *next = at + 1,
                    _ => split = Some((at, at + 1)),
                }
                used += 1;
                continue;
            }
            if (was_wide || cells == 2) && at > 0 && !hangs(g) && split.is_none_or(|s| s.1 != at) {
                split = Some((at, at));
            }
        }
        if used + cells > room && at > 0 {
            return match split {
                Some((end, next)) if end > 0 => (end, next),
                _ => (at, at),
            };
        }
        word |= !blank;
        was_wide = cells == 2;
        was_letter = letter;
        used += cells;
    }
    (text.len(), text.len())
}

/// Closing punctuation of wide scripts does not start a row.
fn hangs(g: &str) -> bool {
    matches!(g, "、" | "。" | "，" | "．" | "」" | "』" | "）" | "！" | "？" | "：" | "；" | "】" | "》")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::line::{Gutter, Look};
    use crate::role::Role;

    fn shown(text: &str, columns: usize, mode: Wrap) -> Vec<String> {
        let mut line = Line::new(mode);
        line.push(text, Look::of(Role::Text));
        let mut rows = Vec::new();
        wrap(&line, 0, columns, &mut rows);
        rows.iter().map(|r| line.text()[r.start as usize..r.end as usize].to_owned()).collect()
    }

    #[test]
    fn words_and_long_words() {
        assert_eq!(shown("the quick brown fox", 10, Wrap::Word), ["the quick", "brown fox"]);
        assert_eq!(
            shown("a verylongunbreakableword b", 8, Wrap::Word),
            ["a", "verylong", "unbreaka", "bleword", "b"]
        );
        assert_eq!(shown("  keep indent here", 9, Wrap::Word), ["  keep", "indent", "here"]);
        assert_eq!(
            shown("ends with blanks     ", 16, Wrap::Word),
            ["ends with blanks"].map(|s| s.to_owned() + "     ")
        );
        assert_eq!(shown("", 5, Wrap::Word), [""]);
        assert_eq!(shown("a  b   c", 4, Wrap::Hard), ["a  b", "   c"]);
        // Code keeps its words and every blank; a word that is longer than half of the row is cut.
        assert_eq!(shown("value: str) -> float | None", 18, Wrap::Hard), ["value: str) -> ", "float | None"]);
        assert_eq!(
            shown("a verylongunbreakableword", 8, Wrap::Hard),
            ["a verylo", "ngunbrea", "kablewor", "d"]
        );
    }

    #[test]
    fn u9_wide_and_joined_are_never_split() {
        assert_eq!(shown("日本語です。終", 6, Wrap::Word), ["日本語", "です。", "終"]);
        assert_eq!(shown("👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 5, Wrap::Hard), ["👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "👩‍👩‍👧‍👦"]);
        assert_eq!(shown("ab日", 1, Wrap::Hard), ["a", "b", "日"]);
    }

    #[test]
    fn hanging_indent_takes_room() {
        let mut line = Line::default();
        line.push("aaa bbb ccc", Look::of(Role::Text));
        let line = line.gutter(Gutter::new("- ", Role::Text));
        let mut rows = Vec::new();
        wrap(&line, 3, 5, &mut rows);
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|r| r.line == 3));
    }

    proptest! {
        #[test]
        fn rows_cover_the_text_and_fit(text in "[a-z 日👍e\u{301}-]{0,80}", columns in 2usize..30) {
            for mode in [Wrap::Word, Wrap::Hard] {
                let mut line = Line::new(mode);
                line.push(&text, Look::of(Role::Text));
                let mut rows = Vec::new();
                wrap(&line, 0, columns, &mut rows);
                let mut at = 0;
                for r in &rows {
                    let (s, e) = (r.start as usize, r.end as usize);
                    // Only blanks are left out, and only between rows.
                    prop_assert!(s >= at && line.text()[at..s].chars().all(|c| c == ' '));
                    prop_assert!(width(line.text()[s..e].trim_end()) <= columns);
                    at = e;
                }
                prop_assert!(line.text()[at..].chars().all(|c| c == ' '));
            }
        }
    }
}
