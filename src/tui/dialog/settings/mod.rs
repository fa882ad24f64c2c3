//! Choosing settings: the screen, the theme, the model, the permission mode, keys.

pub mod key_recorder;
pub(crate) mod model;
pub(crate) mod profile;
pub mod screen;
pub mod theme;
