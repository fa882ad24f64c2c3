//! Text on its way to cells: what `tiller-text` makes of foreign text is painted here ([`paint`]), code with the colours
//! that [`highlight`] finds, differences as [`diff`] reads them.

pub mod diff;
pub mod highlight;
pub mod paint;

pub use tiller_text::{Gutter, Line, Look, Row, Wrap, shorten_end, shorten_middle};
pub use tiller_text::{clean, line, markdown, sheet, shorten, width, wrap};
