//! Recorded changes: deciding about pending ones, undoing, and following the branches of a session.

use std::collections::HashSet;

use tiller_protocol::memory::{ChangeState, MemoryChange};
use tiller_protocol::{EntryId, SessionId};
use tiller_store::RecordStep;

use super::document::{Document, Entry};
use super::plan::apply;
use super::power::is_line;
use super::taints::unmarked;
use super::{Memory, MemoryError};

/// Most changes that are named because they cannot be undone.
const NAMED: usize = 3;

/// Entries of memory that went along with a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Texts of the changes that were taken back.
    pub aside: Vec<String>,
    /// Texts of those that were made again.
    pub back: Vec<String>,
}

impl Moved {
    /// In a sentence; empty: nothing moved.
    pub fn words(&self) -> String {
        let entries =
            |n: usize| if n == 1 { "1 memory entry".to_owned() } else { format!("{n} memory entries") };
        match (self.aside.len(), self.back.len()) {
            (0, 0) => String::new(),
            (n, 0) => format!("{} of the branch that was left: taken out", entries(n)),
            (0, n) => format!("{} of this branch: back", entries(n)),
            (n, m) => format!("{} taken out, {} back", entries(n), entries(m)),
        }
    }
}

impl Memory {
    /// Carries out a pending change, with another text where one is given, or declines it. Accepting an entry that is in its
    /// file, and that text of others had a part in, makes it the user's. Returns what was done, in a sentence.
    ///
    /// # Errors
    /// When it does not wait any more, the text is refused, or the file cannot be written.
    pub fn decide(&self, id: i64, accept: bool, text: Option<&str>) -> Result<String, MemoryError> {
        let store = self.store.get().ok_or_else(|| MemoryError::Store("there is no database".into()))?;
        let kept = |c: &MemoryChange| c.state == ChangeState::Done && c.from.taint.is_untrusted();
        let waits = |c: &MemoryChange| match c.state {
            ChangeState::Pending => true,
            // It is put away from the list of what vanished.
            ChangeState::Outside => !accept,
            _ => accept && text.is_none() && kept(c),
        };
        let change = store.memory_changes().get(id)?.filter(waits);
        let change =
            change.ok_or_else(|| MemoryError::Refused("this entry does not wait any more".into()))?;
        if !accept {
            store.memory_changes().set(id, ChangeState::Declined).wait()?;
            let vanished = change.state == ChangeState::Outside;
            return Ok(if vanished { "taken off the list" } else { "declined" }.into());
        }
        if is_line(&change) {
            return self.accept_lines(store, &change);
        }
        if change.state == ChangeState::Done && change.path == super::name(&self.settings_slot().path) {
            return self.accept_in_settings(store, &change);
        }
        let target = self
            .target_of(&change.path)
            .ok_or_else(|| MemoryError::Refused(format!("{} is not in use here", change.path)))?;
        if change.state == ChangeState::Done {
            return self.accept_kept(&change, target);
        }
        let mut added = change.added.as_deref().map(Entry::of_line);
        if let (Some(entry), Some(text)) = (&mut added, text) {
            // The user's own text.
            self.screened(text, tiller_protocol::Taint::Person)?;
            *entry = Entry { archived: entry.archived, ..Entry::new(&entry.date, text) };
        }
        // What the user wrote is the user's; and a rule is accepted as a rule, which text of others is not.
        let own =
            text.is_some() || added.as_ref().is_some_and(|entry| self.has_rule(&unmarked(&entry.text).0));
        if let Some(entry) = added.as_mut().filter(|_| own) {
            entry.text = unmarked(&entry.text).0;
        }
        let removed = change.removed.as_deref().map(Entry::of_line);
        let removed = removed.map(|e| self.present(target, e)).transpose()?;
        let edit = |document: &mut _| apply(document, removed.as_ref(), added.as_ref(), target);
        let line = added.as_ref().map(Entry::recorded);
        let accept = RecordStep::Accept { id, added: line, own };
        // It is the last change from now on: what was undone before cannot be redone.
        self.change(target, edit, |()| Ok(vec![self.gives_up_undone(), accept.clone()]))?;
        Ok(format!("kept in {}", target.label()))
    }

    /// A recorded entry as it is in the file: it may have been moved into the archive, or out of it.
    pub(super) fn present(
        &self,
        target: tiller_protocol::MemoryTarget,
        entry: Entry,
    ) -> Result<Entry, MemoryError> {
        let document = self.read(target)?;
        let moved = Entry { archived: !entry.archived, ..entry.clone() };
        Ok(if document.contains(&moved) && !document.contains(&entry) { moved } else { entry })
    }

    /// Undoes the last change of the files in use, or redoes the one that was undone last. A change whose entry was edited since
    /// stays as it is, and the one before it is taken. Returns a sentence, which names the changes that stay.
    ///
    /// # Errors
    /// When there is none, or all of them stay.
    pub fn undo(&self, redo: bool) -> Result<String, MemoryError> {
        if self.store.get().is_none() {
            return Err(MemoryError::Store("there is no database".into()));
        }
        let changes = self.changes(&[ChangeState::Done, ChangeState::Undone])?;
        // A change of a file that Tiller only reads cannot be undone here, and one that only records a line changed nothing.
        let mut changes: Vec<MemoryChange> =
            changes.into_iter().filter(|c| self.target_of(&c.path).is_some() && !is_line(c)).collect();
        let first_undone = changes.iter().find(|c| c.state == ChangeState::Undone).map(|c| c.id);
        let (from, to) = match redo {
            true => (ChangeState::Undone, ChangeState::Done),
            false => (ChangeState::Done, ChangeState::Undone),
        };
        changes.retain(|c| c.state == from);
        if !redo {
            changes.reverse();
        }
        let mut stay = Vec::new();
        for change in &changes {
            if self.turn(change, redo, to)? {
                // Those that an earlier undo has passed were named then.
                stay.retain(|c: &&MemoryChange| redo || first_undone.is_none_or(|undone| c.id < undone));
                let done = format!("{}: {}", if redo { "redone" } else { "undone" }, words(change));
                return Ok(if stay.is_empty() { done } else { format!("{done}; {}", edited(&stay)) });
            }
            stay.push(change);
        }
        Err(MemoryError::Refused(if stay.is_empty() {
            format!("there is no change of memory to {}", if redo { "redo" } else { "undo" })
        } else {
            edited(&stay)
        }))
    }

    /// Does a recorded change to its file (`forward`), or takes it back, and stores its new state. False: the user edited the
    /// entry, so the file stays as it is.
    fn turn(&self, change: &MemoryChange, forward: bool, state: ChangeState) -> Result<bool, MemoryError> {
        let Some(target) = self.target_of(&change.path) else { return Ok(false) };
        let stored = |done: bool| {
            let set = RecordStep::Set { id: change.id, state };
            Ok(if done { vec![set] } else { Vec::new() })
        };
        if let Some(archived) = change.archived {
            let line = change.removed.as_deref().unwrap_or_default();
            let to = if forward { archived } else { !archived };
            let entry = Entry { archived: !to, ..Entry::of_line(line) };
            if !self.read(target)?.contains(&entry) {
                return Ok(false);
            }
            return self.change(target, |document| Ok(document.archive(&entry, to)), |moved| stored(*moved));
        }
        let (from, to) = (change.removed.as_deref(), change.added.as_deref());
        let (from, to) = if forward { (from, to) } else { (to, from) };
        let from = from.map(|line| self.present(target, Entry::of_line(line))).transpose()?;
        let to = to.map(Entry::of_line);
        // An undo may pass over many changes: one that does not fit writes nothing to the file or the database.
        if let Some(entry) = &from
            && !self.read(target)?.contains(entry)
        {
            return Ok(false);
        }
        let edit = |document: &mut _| apply_if_there(document, from.as_ref(), to.as_ref(), target);
        self.change(target, edit, |done| stored(*done))
    }

    /// What [`Self::head_moved`] would do.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn would_move(&self, session: SessionId, head: Option<EntryId>) -> Result<Moved, MemoryError> {
        let (aside, back) = self.leaving(session, head)?;
        Ok(Moved { aside: aside.iter().map(words).collect(), back: back.iter().map(words).collect() })
    }

    /// Changes of a session that are in their file and do not belong to the path to `head`, newest first; and those that were
    /// set aside and belong to it, oldest first.
    fn leaving(
        &self,
        session: SessionId,
        head: Option<EntryId>,
    ) -> Result<(Vec<MemoryChange>, Vec<MemoryChange>), MemoryError> {
        let Some(store) = self.store.get() else { return Ok(Default::default()) };
        let changes = store.memory_changes().of_session(session)?;
        let changes: Vec<MemoryChange> = changes
            .into_iter()
            .filter(|c| {
                matches!(c.state, ChangeState::Done | ChangeState::Aside) && self.target_of(&c.path).is_some()
            })
            .collect();
        let entries: Vec<EntryId> = changes.iter().filter_map(|c| c.from.entry).collect();
        if entries.is_empty() {
            return Ok(Default::default());
        }
        let off: HashSet<EntryId> = store.memory_changes().off_path(head, &entries)?.into_iter().collect();
        let is_off = |c: &MemoryChange| c.from.entry.is_some_and(|e| off.contains(&e));
        let (off, on): (Vec<_>, Vec<_>) =
            changes.into_iter().filter(|c| c.from.entry.is_some()).partition(is_off);
        let aside = off.into_iter().filter(|c| c.state == ChangeState::Done).rev().collect();
        let back = on.into_iter().filter(|c| c.state == ChangeState::Aside).collect();
        Ok((aside, back))
    }

    /// Follows a session to another place of its tree: changes that it made on a branch that is left are taken out of the
    /// files, and those of the branch that is entered come back. What the user edited stays as it is.
    ///
    /// # Errors
    /// When a file or the database cannot be read or written.
    pub fn head_moved(&self, session: SessionId, head: Option<EntryId>) -> Result<Moved, MemoryError> {
        let (aside, back) = self.leaving(session, head)?;
        let mut moved = Moved::default();
        for change in aside {
            if self.turn(&change, false, ChangeState::Aside)? {
                moved.aside.push(words(&change));
            }
        }
        for change in back {
            if self.turn(&change, true, ChangeState::Done)? {
                moved.back.push(words(&change));
            }
        }
        Ok(moved)
    }
}

/// As [`apply`]. False: the entry to take away is not there, and the document stays as it is.
fn apply_if_there(
    document: &mut Document,
    removed: Option<&Entry>,
    added: Option<&Entry>,
    target: tiller_protocol::MemoryTarget,
) -> Result<bool, MemoryError> {
    match removed {
        Some(entry) if !document.contains(entry) => Ok(false),
        _ => apply(document, removed, added, target).map(|()| true),
    }
}

/// Says which changes stay as they are, the first ones by their text.
fn edited(stay: &[&MemoryChange]) -> String {
    let named: Vec<String> = stay.iter().take(NAMED).map(|change| words(change)).collect();
    let more = match stay.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let what = if stay.len() == 1 { "this change stays" } else { "these changes stay" };
    format!("edited since, so {what}: {}{more}", named.join(", "))
}

/// The text that a change is about.
fn words(change: &MemoryChange) -> String {
    let line = change.added.as_ref().or(change.removed.as_ref()).map(|line| Entry::of_line(line).text);
    line.unwrap_or_default()
}
