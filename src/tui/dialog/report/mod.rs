//! Tables to look at, and the error log.

use crate::registry::Dialog;

pub mod errors;
pub(crate) mod operations;
pub mod tables;

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] = &[errors::DIALOG, tables::DIALOG];
