//! Content to read: a text, a picture, the whole conversation, an answer on the side.

use crate::registry::Dialog;

pub mod aside;
pub mod calls;
pub(crate) mod peek;
pub mod picture;
pub mod text;
pub mod viewer;

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] =
    &[viewer::DIALOG, text::DIALOG, picture::DIALOG, aside::DIALOG, calls::DIALOG, peek::DIALOG];
