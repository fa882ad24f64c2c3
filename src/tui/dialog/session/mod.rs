//! Dialogs about sessions: the list, branches, history, search, trees, restoring and comparing.

use crate::registry::Dialog;

pub(crate) mod branch_summary;
pub(crate) mod branches;
pub(crate) mod compact;
pub mod compare;
pub mod history;
pub(crate) mod restore;
pub mod search;
pub mod sessions;
pub(crate) mod tree;

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] = &[
    sessions::DIALOG,
    branches::DIALOG,
    tree::DIALOG,
    history::DIALOG,
    search::DIALOG,
    compare::DIALOG,
    compact::DIALOG,
    restore::DIALOG,
    branch_summary::DIALOG,
];
