//! Keys to actions. A preset file, then the person's overlay; everything else (footer, help, palette, which-key,
//! `tiller keys`) is read from the map that results, so that they always agree with it.

pub mod action;
pub mod chord;
mod file;
pub mod scope;
mod table;
pub mod vocabulary;

pub use chord::{Chord, show, written};
pub(crate) use file::nearest;
pub use file::{KeyError, PRESETS, load, load_with, preset};
pub use table::{Binding, BindingTarget, KeyRow, Keymap, Lookup};
