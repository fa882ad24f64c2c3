//! Which parts of a file are marked to be restored: all, none, or some hunks.

use tiller_protocol::RestoreFile;
use tiller_protocol::compare::TakePart;

use crate::text::diff::{Hunk, Patch};

/// One file of the preview.
pub(super) struct FileChoice {
    pub(super) hunks: Vec<Hunk>,
    /// One mark a hunk; at least one, for the file as a whole.
    marked: Vec<bool>,
}

impl FileChoice {
    /// The proposed marks: changes that no agent of the session made are not marked.
    pub(super) fn of(file: &RestoreFile) -> Self {
        let hunks = Patch::read(&file.diff).hunks;
        let marked = vec![file.conflict.is_none(); hunks.len().max(1)];
        Self { hunks, marked }
    }

    /// True when it has parts to choose from.
    pub(super) fn parted(&self) -> bool {
        self.hunks.len() > 1
    }

    pub(super) fn hunk(&self, n: usize) -> bool {
        self.marked.get(n).is_some_and(|m| *m)
    }

    /// How many are marked, of how many.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.marked.iter().filter(|m| **m).count(), self.marked.len())
    }

    pub(super) fn all(&self) -> bool {
        self.marked.iter().all(|m| *m)
    }

    pub(super) fn none(&self) -> bool {
        !self.marked.contains(&true)
    }

    /// The whole file: marked, or not when it was.
    pub(super) fn toggle(&mut self) {
        let all = !self.all();
        self.marked.fill(all);
    }

    pub(super) fn toggle_hunk(&mut self, n: usize) {
        if let Some(mark) = self.marked.get_mut(n) {
            *mark = !*mark;
        }
    }

    /// The marked hunks, when they are not all.
    pub(super) fn parts(&self, file: &RestoreFile) -> Vec<TakePart> {
        if self.all() || self.none() {
            return Vec::new();
        }
        let marked = self.hunks.iter().zip(&self.marked).filter(|(_, marked)| **marked);
        let part =
            |h: &Hunk| TakePart { path: file.path.clone(), hunk: Some(h.to_patch(&file.path, file.kind)) };
        marked.map(|(h, _)| part(h)).collect()
    }
}
