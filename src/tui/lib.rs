//! The full-screen workbench. It knows the protocol, never the engine: commands go out through a function,
//! events come in as messages, and whatever it can do, a script can do too.
//!
//! | room | job |
//! | --- | --- |
//! | [`app`] | the loop, the stack of layers, where keys and effects go, when questions open |
//! | [`view`] | how the whole looks: layout, borders, header, footer, notices, toasts, and what a frame draws again |
//! | [`input`] | bytes of the terminal to keys, keys to where they belong, what Escape does |
//! | [`terminal`] | the terminal's modes; leaving the screen and taking it again; observers; clipboard, notifications |
//! | [`output`] | frames to bytes, by a thread of its own |
//! | [`model`] | state that events report, one file per concern; changed in `apply` only |
//! | [`panel`], `dialog` | what is drawn and takes keys; what lies on top |
//! | `slash` | the `/` commands, one file each |
//! | `cell`, `text`, [`widget`], [`theme`] | blocks of the conversation, text on its way to cells, small parts, colours |
//! | [`registry`], [`shipped`] | what the screen is made of: one line for each dialog, panel and command |
//! | [`keymap`] | keys to actions |
//! | [`pane`] | which agent's terminal is shown |
//! | [`gallery`] | every screen as a picture, for those who change how it looks |
//! | [`plain`] | linear text: no drawing at all |
//!
//! Drawing changes nothing: `measure` may fill caches, `draw` takes `&self`. Each slice of the model and each panel has a
//! revision number; a frame draws the panels of which a number has changed ([`view`]).
//!
//! May use: `protocol`, `config`, `text`. Not here: the engine and its decisions (`engine`), cleaning and wrapping of text
//! (`text`), and separating the screen from its terminal (`detach`).

pub mod app;
pub mod cell;
pub mod dialog;
pub mod gallery;
#[cfg(test)]
mod golden_tests;
pub mod input;
pub mod keymap;
mod mistakes;
pub mod model;
#[cfg(test)]
mod mouse_tests;
pub mod output;
pub mod pane;
pub mod panel;
pub mod plain;
pub mod registry;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod shell_tests;
pub mod shipped;
pub mod slash;
pub mod terminal;
#[cfg(test)]
pub mod testing;
pub mod text;
pub mod theme;
pub mod view;
pub mod widget;
pub mod zone;

pub use app::inbox::{EventSource, Waker};
pub use app::ui::{Exit, Ui, UiError, UiOptions, UiSender};
