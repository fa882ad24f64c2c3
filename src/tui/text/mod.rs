//! Text on its way to cells: cleaning, width, wrapping, Markdown, highlighting.
//!
//! The order is always the same: foreign text goes through [`clean`] into a [`Line`] (logical, of any
//! length), [`wrap`] cuts lines into [`Row`]s for a width, [`paint`] puts rows into cells. A row only
//! names a piece of its line, so copied text is the logical text: unwrapped, without gutters.

pub mod clean;
pub mod diff;
pub mod highlight;
pub mod line;
pub mod markdown;
pub mod paint;
pub mod sheet;
pub mod shorten;
pub mod width;
pub mod wrap;

pub use line::{Gutter, Line, Look, Wrap};
pub use shorten::{shorten_end, shorten_middle};
pub use width::width;
pub use wrap::{Row, wrap};
