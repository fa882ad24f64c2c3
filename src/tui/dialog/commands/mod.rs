//! Finding and starting actions: palette, help, the list of keys after a prefix.

use crate::registry::Dialog;

pub mod help;
pub mod palette;
pub(crate) mod which_key;

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] = &[palette::DIALOG, help::DIALOG];
