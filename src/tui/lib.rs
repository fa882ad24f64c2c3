//! The full-screen face. It knows the protocol, never the engine: commands go out through a function,
//! events come in as messages, and whatever it can do, a script can do too.
//!
//! | room | job |
//! | --- | --- |
//! | [`ui`] | the door: options, the sender for other threads, the start |
//! | `run`, `suspend`, `signals` | the loop: drain messages, dispatch, draw when something changed (at most every 16 ms under load); leaving the screen and coming back |
//! | [`app`] | the stack of layers and the focus; passes keys down, effects up. Small on purpose |
//! | `keying`, `route`, [`global`], `arrange`, `asking`, `deadline`, `mouse`, [`ladder`] | where keys go, what effects do, what can be done from everywhere, which pane has the focus and how they share the screen, when questions open, what Escape does |
//! | `view`, `stale`, `frame`, `wish`, [`layout`], [`header`], [`footer`], `strip`, `toast` | how the whole looks, and what of it a frame draws anew |
//! | [`output`], [`terminal`], [`notify`] | frames to bytes, the writer thread, the terminal's modes, its window |
//! | [`seat`], `resting`, `watchers`, [`looking`] | who sits at the terminal; leaving the screen at work, and taking it again; who looks on |
//! | `stage`, [`pane`] | which agent is on the screen; whose terminal |
//! | [`statusline`] | a line of the person's own in the header |
//! | [`plain`] | the linear face: no drawing at all |
//! | [`action`] | names of what can be done; keys, palette, help and footer are made from them |
//! | [`effect`], [`task`] | what a panel wants done outside of itself; what of it the loop does |
//! | `saver` | keeps what is being written in a file, off the loop |
//! | [`model`] | what events say, one file per concern; changed in `apply` only |
//! | [`panel`] | the trait of everything that is drawn and takes keys, and the panels |
//! | `dialog` | panels that lie on top |
//! | `slash` | the `/` commands, one file each |
//! | `cell` | how one entry of the conversation looks |
//! | `text` | sanitising, width, wrapping, Markdown, highlighting |
//! | `inbox` | where everything arrives that can wake the loop |
//! | `input` | bytes of the terminal to keys, without ever inventing one |
//! | [`keymap`], [`theme`], [`widget`] | as they are called |
//!
//! Drawing changes nothing: `measure` may fill caches, `draw` takes `&self`.

pub mod action;
pub mod app;
mod arrange;
mod asking;
pub mod cell;
pub mod clipboard;
mod deadline;
pub mod dialog;
pub mod effect;
pub mod footer;
mod frame;
pub mod global;
#[cfg(test)]
mod golden_tests;
pub mod header;
mod held;
mod inbox;
pub mod input;
mod keying;
pub mod keymap;
pub mod ladder;
pub mod layout;
pub mod looking;
mod mistakes;
pub mod model;
mod mouse;
#[cfg(test)]
mod mouse_tests;
pub mod msg;
pub mod notify;
pub mod output;
mod outside;
pub mod pane;
pub mod panel;
pub mod plain;
mod resting;
mod route;
mod run;
mod saver;
#[cfg(test)]
mod scene;
pub mod seat;
#[cfg(test)]
mod shell_tests;
mod signals;
pub mod slash;
pub mod stage;
mod stale;
pub mod statusline;
mod strip;
mod suspend;
pub mod task;
pub mod terminal;
#[cfg(test)]
pub mod testing;
pub mod text;
pub mod theme;
mod toast;
pub mod ui;
mod view;
mod watchers;
pub mod widget;
mod wish;
mod withheld;
pub mod zone;

pub use inbox::{Ring, Source};
pub use ui::{Exit, Ui, UiError, UiOptions, UiSender};
