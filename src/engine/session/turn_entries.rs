//! The entries of one turn.

use crate::core::Core;
use crate::undo::changed::changed_paths;
use std::sync::Arc;
use tiller_protocol::{Entry, EntryId};

/// The turn that an entry belongs to, as a range of the tail.
pub(crate) fn turn_entries(core: &Core, turn: Option<EntryId>) -> Option<(EntryId, String, Vec<Arc<Entry>>)> {
    let tail: Vec<&Arc<Entry>> = core.session.history.tail.iter().collect();
    let starts: Vec<usize> = (0..tail.len()).filter(|i| tail[*i].body.begins_turn()).collect();
    for (n, start) in starts.iter().enumerate().rev() {
        let end = starts.get(n + 1).copied().unwrap_or(tail.len());
        let entries = &tail[*start..end];
        let wanted = match turn {
            Some(id) => entries.iter().any(|e| e.id == id),
            None => !changed_paths(entries.iter().map(|e| &***e)).is_empty(),
        };
        if wanted {
            let title = entries[0].body.search_text().lines().next().unwrap_or_default().to_owned();
            return Some((entries[0].id, title, entries.iter().map(|e| Arc::clone(e)).collect()));
        }
    }
    None
}
