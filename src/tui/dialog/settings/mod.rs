//! Choosing settings: the screen, the output style, the theme, the model, the permission mode, keys.

use crate::registry::Dialog;

pub mod key_recorder;
pub(crate) mod model;
pub(crate) mod personality;
pub(crate) mod profile;
pub mod screen;
pub(crate) mod style;
pub mod theme;

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] = &[
    theme::DIALOG,
    screen::DIALOG,
    key_recorder::DIALOG,
    model::DIALOG,
    profile::DIALOG,
    personality::DIALOG,
    style::DIALOG,
];
