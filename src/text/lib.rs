//! What may reach a terminal: foreign text made safe, measured, shortened, wrapped, and Markdown laid out.
//!
//! Text takes the same way everywhere: [`clean`] makes it safe, a [`Line`] holds it (logical, of any length), [`wrap()`]
//! cuts lines into [`Row`]s for a width. A row names a piece of its line, so copied text is the logical text: unwrapped,
//! without gutters. How something looks is a [`Role`] and a few modifiers ([`Look`]); colours belong to the themes of the
//! TUI, which also paints rows into cells and finds the classes of highlighted code.
//!
//! | module | holds |
//! | --- | --- |
//! | [`clean`] | controls, escapes and invisible characters made visible |
//! | [`mod@width`], [`shorten`] | columns of text; text shortened to columns |
//! | [`role`], [`line`] | meanings of text; clean text with looks |
//! | [`mod@wrap`], [`sheet`] | lines cut into rows; rows of many lines |
//! | [`markdown`] | Markdown to lines, while it still grows |
//!
//! Nothing here reads a file, a clock or a setting, but for [`width::ambiguous_wide`], which belongs to the terminal.

pub mod clean;
pub mod line;
pub mod markdown;
pub mod role;
pub mod sheet;
pub mod shorten;
pub mod width;
pub mod wrap;

pub use line::{Gutter, Line, Look, Wrap};
pub use role::Role;
pub use shorten::{shorten_end, shorten_middle};
pub use width::width;
pub use wrap::{Row, wrap};
