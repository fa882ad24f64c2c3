//! Small parts that panels and dialogs are made of. They have state and draw; they send nothing.
//!
//! | part | for |
//! | --- | --- |
//! | [`edit`] | text with a caret and the readline set; one line or many |
//! | [`input`] | a one-line field made of it, with its actions `edit.*` |
//! | [`list`] | which row is chosen and which rows are visible, with names of groups; the actions `list.*` |
//! | `line_list` | lines of which one is chosen; each may wrap |
//! | `lanes` | the lanes of a tree of branches before a row |
//! | [`table`] | rows in columns, the figures at the right |
//! | `excerpt` | the part of a text around a match |
//! | [`buttons`] | labels with keys, wrapped |
//! | [`field`] | a field of several rows, drawn through the cleaner |
//! | [`scroll`] | scrolled lines that know what has been seen |
//! | [`sign`] | the signs of the screen, the spinner, the gauge |
//! | [`diff`] | the one drawing of a diff |
//! | `surface` | grounds, bars, and the lines that stand for them without colours |
//! | [`draw`] | text and styles on cells, cutting with a mark, scroll marks |

pub(crate) mod activity_table;
pub mod buttons;
pub mod diff;
pub mod draw;
pub mod edit;
pub(crate) mod excerpt;
pub mod field;
pub mod input;
pub(crate) mod lanes;
pub(crate) mod line_list;
pub mod list;
pub mod scroll;
pub(crate) mod surface;
pub mod table;
pub(crate) mod wrap;

pub use tiller_text::sign;
