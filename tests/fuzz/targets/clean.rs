//! Foreign text on its way to the terminal: cleaned, measured, shortened, wrapped.

use tiller_text::clean::{from_bytes, plain, plain_lines};
use tiller_text::{Line, Look, Role, Wrap, shorten_end, shorten_middle, width, wrap};

use super::texts;
use crate::outline::text_cuts;
use crate::{Outline, Target};

pub(super) const TARGET: Target =
    Target { name: "clean", words: &[super::words::TERMINAL, WORDS], seeds, run };

/// Pieces of text that terminals and eyes read differently.
const WORDS: &[&str] = &[
    "word ",
    "two words",
    "long-word-without-blanks",
    "  ",
    "\u{1b}[31m",
    "\u{1b}]0;t\u{7}",
    "\u{9b}1m",
    "\u{200c}",
    "\u{200d}",
    "\u{200e}",
    "\u{202a}",
    "\u{2066}",
    "\u{2069}",
    "\u{61c}",
    "\u{180e}",
    "\u{feff}",
    "\u{fe0e}",
    "\u{20e3}",
    "1\u{fe0f}\u{20e3}",
    "❤\u{fe0f}",
    "👨\u{200d}👩\u{200d}👧",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0041}",
    "\u{1f3f4}",
    "🇩",
    "🇩🇪",
    "👍🏽",
    "\u{1f3fb}",
    "e\u{301}",
    "\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}",
    "क\u{94d}षि",
    "ك\u{200d}",
    "ﾊ\u{ff9e}",
    "한",
    "\u{1100}",
    "\u{1161}",
    "日本語",
    "。",
    "」",
    "שלום",
    "مرحبا",
    "\u{a0}",
    "\u{2003}",
    "\u{3000}",
    "\u{ad}",
    "\u{2800}",
    "\u{3164}",
    "\u{ffa0}",
    "\u{fffd}",
    "\u{fdd0}",
    "\u{ffff}",
    "\u{10ffff}",
    "\u{e000}",
    "①",
    "§",
    "─",
    "█",
    "\\x1b",
    "<U+202E>",
    "/path/to/file.rs",
    "…",
    "\u{1d159}",
    "\u{13430}",
    "\u{1bca0}",
    "\u{34f}",
    "\u{17b4}",
    "\u{115f}",
    "\u{fff9}",
    "\u{2028}",
    "\u{85}",
];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "plain text",
        "日本語テキスト e\u{301} 👩\u{200d}👩\u{200d}👧",
        "a\tb\u{1b}[31mred\u{1b}[0m",
        "src/engine/context/compaction/preview.rs",
    ])
}

/// Whether a terminal, or a reader, takes this character for something else than a sign.
pub(super) fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}' | '\u{ad}' | '\u{fff9}'..='\u{fffb}')
}

fn run(data: &[u8]) -> u64 {
    let text = from_bytes(data);
    let mut outline = Outline::default();
    for clean in [plain(&text).into_owned(), plain_lines(&text).replace('\n', "")] {
        assert!(!clean.contains(is_hostile), "{clean:?}");
        assert_eq!(plain(&clean), clean, "clean text is clean");
    }
    for (mode, strict) in [(Wrap::Word, false), (Wrap::Hard, true), (Wrap::Cut, true)] {
        let mut line = Line::new(mode);
        // In pieces, as highlighters and Markdown add them.
        let mut from = 0;
        for cut in text_cuts(&text, 3).into_iter().chain([text.len()]) {
            let look = Look::of(if from == 0 { Role::Text } else { Role::Strong });
            if strict {
                line.push_strict(&text[from..cut], look)
            } else {
                line.push(&text[from..cut], look)
            }
            from = cut;
        }
        assert!(!line.text().contains(is_hostile), "{:?}", line.text());
        assert_eq!(
            line.runs().last().map_or(0, |r| r.end as usize),
            line.text().len(),
            "looks cover the text"
        );
        assert!(line.runs().windows(2).all(|r| r[0].end < r[1].end), "looks are in order");
        let columns = 1 + data.len() % 24;
        let mut rows = Vec::new();
        wrap(&line, 0, columns, &mut rows);
        check(&line, &rows, columns);
        outline.size(rows.len());
        outline.size(line.runs().len());
        for columns in [0, 1, 2, columns, 60] {
            for ascii in [false, true] {
                assert!(width(&shorten_end(line.text(), columns, ascii)) <= columns);
                assert!(width(&shorten_middle(line.text(), columns, ascii)) <= columns);
                let mut short = line.clone();
                short.shorten(columns, ascii);
                assert!(width(short.text()) <= columns, "{:?} in {columns}", short.text());
                assert_eq!(short.runs().last().map_or(0, |r| r.end as usize), short.text().len());
            }
        }
    }
    outline.add((text.is_ascii(), text.contains('\t'), width(&plain(&text)) == text.chars().count()));
    outline.end()
}

/// Rows cover the text in order, leave out blanks alone, and fit.
fn check(line: &Line, rows: &[tiller_text::Row], columns: usize) {
    assert!(!rows.is_empty(), "a line has a row");
    let (text, mut at) = (line.text(), 0);
    for row in rows {
        let (start, end) = (row.start as usize, row.end as usize);
        assert!(start >= at && end >= start, "rows are in order");
        assert!(text[at..start].chars().all(|c| c == ' '), "only blanks are left out");
        let shown = text[start..end].trim_end();
        let single = shown.chars().count() > 0 && width(shown) <= 2 && columns < 2;
        assert!(line.wrap == Wrap::Cut || width(shown) <= columns || single, "{shown:?} in {columns}");
        at = end;
    }
    assert!(text[at..].chars().all(|c| c == ' '));
}
