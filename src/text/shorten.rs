//! Shortening of text, always with a mark.

use unicode_segmentation::UnicodeSegmentation;

use crate::sign;
use crate::width::{grapheme, width};

/// The mark of a shortened text.
pub fn ellipsis(ascii: bool) -> &'static str {
    sign::cut(ascii)
}

/// The first graphemes of `text` within `columns`.
pub(crate) fn head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, g) in text.grapheme_indices(true) {
        used += grapheme(g);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// The last graphemes of `text` within `columns`.
fn tail(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, g) in text.grapheme_indices(true).rev() {
        used += grapheme(g);
        if used > columns {
            return &text[at + g.len()..];
        }
    }
    text
}

/// At most `columns` columns of clean `text`, marked at its end when shortened.
pub fn shorten_end(text: &str, columns: usize, ascii: bool) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = ellipsis(ascii);
    match columns.checked_sub(width(mark)) {
        Some(room) => format!("{}{mark}", head(text, room)),
        None => head(mark, columns).to_owned(),
    }
}

/// At most `columns` columns of a clean path, marked in the middle; the file name is kept longest.
pub fn shorten_middle(text: &str, columns: usize, ascii: bool) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = ellipsis(ascii);
    let Some(room) = columns.checked_sub(width(mark)) else {
        return head(mark, columns).to_owned();
    };
    let name = text.rfind('/').map_or(text, |at| &text[at..]);
    let end = if width(name) <= room {
        tail(text, (room * 2 / 3).max(width(name)))
    } else {
        tail(text, room * 2 / 3)
    };
    format!("{}{mark}{end}", head(text, room - width(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_wider_and_the_name_stays() {
        let path = "src/engine/context/compaction/preview_tests.rs";
        for columns in 0..60 {
            let short = shorten_middle(path, columns, false);
            assert!(width(&short) <= columns, "{columns}: {short}");
            assert!(columns < 20 || short.ends_with("preview_tests.rs"), "{columns}: {short}");
            assert!(width(&shorten_end("日本語テキスト", columns, true)) <= columns);
        }
        assert_eq!(shorten_middle(path, 30, true), "src/engine..n/preview_tests.rs");
        assert_eq!(shorten_end("abcdef", 4, false), "abc…");
    }
}
