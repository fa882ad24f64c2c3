//! Dialogs that answer a question of the engine.

use crate::registry::Dialog;

mod answer_state;
pub mod approval;
pub mod clarify;
pub(crate) mod input_delay;
pub mod program;

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] = &[approval::DIALOG, clarify::DIALOG, program::DIALOG];
