//! Text on its way to cells: what `tiller-text` makes of foreign text is painted here ([`paint`]), code with the colours
//! that [`highlight`] finds, differences as [`diff`] reads them.

pub mod diff;
pub mod highlight;
pub mod paint;

pub use tiller_text::{Gutter, Line, Look, Row, Wrap, shorten_end, shorten_middle};
pub use tiller_text::{clean, line, markdown, sheet, shorten, width, wrap};

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
