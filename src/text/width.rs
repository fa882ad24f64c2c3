//! Width of text in columns.

use std::sync::atomic::{AtomicBool, Ordering};

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Set once at the start from `ui.ambiguous_wide`; terminals with East Asian fonts draw such characters two columns
/// wide. A property of the terminal, of which a process has one.
static AMBIGUOUS_WIDE: AtomicBool = AtomicBool::new(false);

/// Whether characters of ambiguous width take two columns on this terminal.
pub fn set_ambiguous_wide(wide: bool) {
    AMBIGUOUS_WIDE.store(wide, Ordering::Relaxed);
}

/// The present setting.
pub fn ambiguous_wide() -> bool {
    AMBIGUOUS_WIDE.load(Ordering::Relaxed)
}

/// Columns of `text`, by the terminal's setting.
pub fn width(text: &str) -> usize {
    width_as(text, ambiguous_wide())
}

/// Columns of `text`, grapheme by grapheme.
pub fn width_as(text: &str, wide: bool) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(|g| grapheme_as(g, wide)).sum()
}

/// Columns of one grapheme: 0, 1 or 2.
pub fn grapheme(g: &str) -> usize {
    grapheme_as(g, ambiguous_wide())
}

/// As [`grapheme`], with the setting as a parameter.
pub fn grapheme_as(g: &str, wide: bool) -> usize {
    if g.len() == 1 {
        return 1;
    }
    let cells = if wide { g.width_cjk() } else { g.width() };
    // By the Unicode standard half-width sound marks extend their base, but terminals give them a column.
    let sound = g.chars().filter(|c| matches!(c, '\u{ff9e}' | '\u{ff9f}')).count();
    (cells + sound).min(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u9_width_of_the_corpus() {
        let rows: [(&str, usize); 12] = [
            ("abc", 3),
            ("日本語", 6),
            ("e\u{301}", 1),
            ("👩‍👩‍👧‍👦", 2),
            ("👍🏽", 2),
            ("🇩🇪", 2),
            ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", 2),
            ("שלום", 4),
            ("한국어", 6),
            ("ﾊﾞ", 2),
            ("क्षि", 2),
            ("❤\u{fe0f}", 2),
        ];
        for (text, want) in rows {
            assert_eq!(width_as(text, false), want, "{text:?}");
        }
        assert_eq!(width_as("①§", false), 2);
        assert_eq!(width_as("①§", true), 4);
    }
}
