//! Layouts of cells, kept from frame to frame within limits.

use std::collections::{HashMap, HashSet};

use super::LayoutKey;
use crate::cell::CellLayout;
use crate::model::conversation::Conversation;

/// Layouts that are kept though they are not visible.
const KEEP: usize = 400;
/// Their rows, as a layout takes some hundred bytes for each.
const KEEP_ROWS: usize = 2_000;

/// A layout, and what it was made for.
pub(super) struct CachedLayout {
    pub(super) stamp: LayoutKey,
    pub(super) laid: CellLayout,
    /// Frame of its last use.
    used: u64,
    /// Its code is not highlighted yet.
    pub(super) plain: bool,
}

impl CachedLayout {
    pub(super) fn new(stamp: LayoutKey, laid: CellLayout) -> Self {
        Self { stamp, laid, used: 0, plain: true }
    }
}

/// The layouts, by the keys of their cells.
#[derive(Default)]
pub(super) struct Layouts {
    kept: HashMap<u64, CachedLayout>,
    frame: u64,
    /// Rows of all layouts.
    rows: usize,
    /// [`Conversation::epoch`] when cells that are gone were last looked for.
    epoch: u64,
}

impl Layouts {
    /// Begins a frame: what is put from now on stays until its end.
    pub(super) fn begin_frame(&mut self) {
        self.frame += 1;
    }

    /// The layout of a cell.
    pub(super) fn get(&self, key: u64) -> Option<&CachedLayout> {
        self.kept.get(&key)
    }

    /// The same, to change its colours.
    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut CachedLayout> {
        self.kept.get_mut(&key)
    }

    /// Takes a layout out, to be put back as it is or made anew.
    pub(super) fn take(&mut self, key: u64) -> Option<CachedLayout> {
        let old = self.kept.remove(&key)?;
        self.rows = self.rows.saturating_sub(old.laid.height());
        Some(old)
    }

    /// Keeps a layout that is used in this frame.
    pub(super) fn put(&mut self, key: u64, mut layout: CachedLayout) -> &CellLayout {
        layout.used = self.frame;
        self.rows += layout.laid.height();
        &self.kept.entry(key).insert_entry(layout).into_mut().laid
    }

    /// Drops the layouts of cells that are gone and, beyond the limits, those that were used least lately. True when
    /// cells were removed or rebuilt since the last call.
    pub(super) fn forget(&mut self, conv: &Conversation) -> bool {
        let changed = self.epoch != conv.epoch();
        if changed {
            self.epoch = conv.epoch();
            let there: HashSet<u64> = conv.cells().iter().map(|c| c.key).collect();
            self.retain(|key, _| there.contains(&key));
        }
        if self.kept.len() > 2 * KEEP || self.rows > 2 * KEEP_ROWS {
            self.drop_oldest();
        }
        changed
    }

    fn drop_oldest(&mut self) {
        let frame = self.frame;
        let unseen = self.kept.iter().filter(|(_, k)| k.used != frame);
        let mut unseen: Vec<(u64, u64, usize)> =
            unseen.map(|(key, k)| (k.used, *key, k.laid.height())).collect();
        unseen.sort_unstable_by(|a, b| b.cmp(a));
        let mut rows = 0;
        let mut kept = HashSet::new();
        for (_, key, height) in unseen.into_iter().take(KEEP) {
            rows += height;
            if rows > KEEP_ROWS {
                break;
            }
            kept.insert(key);
        }
        self.retain(|key, k| k.used == frame || kept.contains(&key));
    }

    fn retain(&mut self, keep: impl Fn(u64, &CachedLayout) -> bool) {
        self.kept.retain(|key, k| keep(*key, k));
        self.rows = self.kept.values().map(|k| k.laid.height()).sum();
        self.kept.shrink_to(2 * KEEP);
    }

    /// Number of layouts, and of their rows.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.rows)
    }
}
