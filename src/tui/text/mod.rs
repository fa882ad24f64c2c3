//! Text on its way to cells: what `tiller-text` makes of foreign text is painted here ([`paint`]), code with the colours
//! that [`highlight`] finds, differences as [`diff`] reads them.

pub mod diff;
pub mod highlight;
#[cfg(test)]
mod narrow;
#[cfg(test)]
mod narrow_tests;
pub mod paint;

pub use tiller_text::{Gutter, Line, Look, Row, Wrap, shorten_end, shorten_middle};
pub use tiller_text::{clean, line, markdown, path, sheet, shorten, width, wrap};

/// The lines of a Markdown text, for a width; `None`: for any width, with tables as text.
pub(crate) fn markdown_lines(source: &str, columns: Option<usize>) -> Vec<Line> {
    let opts = markdown::Opts {
        columns: columns.unwrap_or(60).max(1),
        ascii: crate::widget::draw::ascii(),
        tables_as_text: columns.is_none(),
    };
    let doc = markdown::Doc::parse(source, opts);
    (0..doc.stack().lines()).filter_map(|n| doc.stack().line(n).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_lines_without_its_marks_and_without_controls() {
        for columns in [None, Some(80)] {
            let lines = markdown_lines(
                "# Plan\n\n1. `wait` in\u{1b}[2J it\n\n| a | b |\n|---|---|\n| c | d |\n",
                columns,
            );
            let text: Vec<&str> = lines.iter().map(Line::text).collect();
            assert_eq!(text[0], "Plan", "{text:?}");
            assert!(text.iter().all(|l| !l.contains(['#', '`', '\u{1b}'])), "{text:?}");
            assert_eq!(text.iter().any(|l| l.contains("a: c")), columns.is_none(), "{text:?}");
        }
    }
}
