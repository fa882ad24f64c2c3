//! What may reach a terminal: foreign text made safe, measured, shortened, wrapped, and Markdown laid out.
//!
//! The path of text: [`clean`] makes it safe, a [`Line`] holds it (logical, of any length), [`wrap()`] cuts lines into
//! [`Row`]s for a width. A row refers to a range of its line, so copied text is the logical text: unwrapped, without
//! gutters. The look of text is a [`Role`] and a few modifiers ([`Look`]); colours belong to the themes of the TUI,
//! which also paints rows into cells and classifies highlighted code.
//!
//! | module | holds |
//! | --- | --- |
//! | [`clean`] | controls, escapes and invisible characters made visible |
//! | [`mod@width`], [`shorten`] | columns of text; text shortened to columns |
//! | [`role`], [`line`] | meanings of text and areas; clean text with looks |
//! | [`sign`] | the signs of the screen, with ASCII forms |
//! | [`mod@wrap`], [`sheet`] | lines cut into rows; rows of many lines |
//! | [`path`] | paths as rows and questions name them |
//! | [`markdown`] | Markdown to lines, also while its source still grows |
//!
//! May use: nothing of this project. Not here: files, clocks and settings, except [`width::ambiguous_wide`], which is a
//! property of the terminal; and colours (`tui/theme`).

pub mod clean;
pub mod line;
pub mod markdown;
pub mod path;
pub mod role;
pub mod sheet;
pub mod shorten;
pub mod sign;
pub mod width;
pub mod wrap;

pub use line::{Gutter, Line, Look, Wrap};
pub use role::Role;
pub use shorten::{shorten_end, shorten_middle};
pub use width::width;
pub use wrap::{Row, wrap};
