//! Learnings follow the branches of the session that they come from, until the person has decided about them.

use std::collections::HashSet;

use tiller_protocol::{EntryId, Learning, LearningState, SessionId};
use tiller_store::Result;

use super::Learnings;

/// Learnings that went along with a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearningsMoved {
    /// How many were set aside.
    pub aside: usize,
    /// How many came back.
    pub back: usize,
}

impl LearningsMoved {
    /// In a sentence; empty: nothing moved.
    pub fn words(&self) -> String {
        let count = |n: usize| if n == 1 { "1 learning".to_owned() } else { format!("{n} learnings") };
        match (self.aside, self.back) {
            (0, 0) => String::new(),
            (n, 0) => format!("{} of the branch that was left: not in use", count(n)),
            (0, n) => format!("{} of this branch: back", count(n)),
            (n, m) => format!("{} not in use, {} back", count(n), count(m)),
        }
    }
}

impl Learnings {
    /// What [`Self::head_moved`] would do. Blocks.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn would_move(&self, session: SessionId, head: Option<EntryId>) -> Result<LearningsMoved> {
        let (aside, back) = self.leaving(session, head)?;
        Ok(LearningsMoved { aside: aside.len(), back: back.len() })
    }

    /// Follows a session to another place of its tree: what was learned on a branch that is left is no longer attached, and
    /// what belongs to the branch that is entered is again. What the person decided about stays as it is. Blocks.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub fn head_moved(&self, session: SessionId, head: Option<EntryId>) -> Result<LearningsMoved> {
        let (aside, back) = self.leaving(session, head)?;
        let moved = LearningsMoved { aside: aside.len(), back: back.len() };
        if moved != LearningsMoved::default() {
            self.store().learnings().follow_branch(aside, back).wait()?;
        }
        Ok(moved)
    }

    /// Those in use or proposed that do not belong to the path to `head`, and those that were set aside and belong to it.
    fn leaving(&self, session: SessionId, head: Option<EntryId>) -> Result<(Vec<i64>, Vec<i64>)> {
        let all = self.store().learnings().unchanged_of(session)?;
        let entries: Vec<EntryId> = all.iter().filter_map(|l| l.source.entry).collect();
        if entries.is_empty() {
            return Ok(Default::default());
        }
        let off: HashSet<EntryId> =
            self.store().memory_changes().off_path(head, &entries)?.into_iter().collect();
        let is_off = |l: &&Learning| l.source.entry.is_some_and(|e| off.contains(&e));
        let is_aside = |l: &&Learning| l.state == LearningState::Aside;
        let own = all.iter().filter(|l| l.source.entry.is_some());
        let aside = own.clone().filter(|l| is_off(l) && !is_aside(l)).map(|l| l.id).collect();
        let back = own.filter(|l| !is_off(l) && is_aside(l)).map(|l| l.id).collect();
        Ok((aside, back))
    }
}
