//! Entries of an export or of another file. A file cannot say by itself that its text is the user's: only what is recorded here
//! keeps its origin.

use tiller_protocol::memory::{ChangeDetails, ChangeState, MemoryChange};
use tiller_protocol::{AgentId, MemoryEntry, MemoryState, MemoryTarget, Provenance, Taint};

use super::document::Entry;
use super::plan::Planned;
use super::taints::unmarked;
use super::{Memory, MemoryError, name};

/// An entry that a file brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedEntry {
    pub target: MemoryTarget,
    /// `2026-11-26`; anything else counts as none.
    pub date: String,
    /// May have the mark of its origin at its end.
    pub text: String,
    pub state: MemoryState,
    /// What the file says; `None`: it was written in an editor.
    pub taint: Option<Taint>,
    /// Text of the entry that a pending change takes away; empty: none.
    pub replaces: String,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It is in its file, live or in the archive.
    Added,
    /// It waits for the user.
    Pending,
    /// It was there as text of others, and is the user's from now on.
    Accepted,
    /// It was removed where the file was made: it stays out.
    Removed,
}

impl From<MemoryEntry> for ImportedEntry {
    fn from(e: MemoryEntry) -> Self {
        let taint = e.from.map(|from| from.taint);
        Self { target: e.target, date: e.date, text: e.text, state: e.state, taint, replaces: e.replaces }
    }
}

impl Memory {
    /// Adds an entry of `file` in the state that the file says. What waits or was set aside there waits here. Unless the user says
    /// that the file is `mine`, an entry that is not recorded here counts as text of others, whatever the file says. One that is
    /// here as text of others becomes the user's where the file is theirs and says so: one that waits there was not accepted.
    ///
    /// # Errors
    /// [`MemoryError::Known`] when it is there; else when its text is refused, or a file cannot be read or written.
    pub fn import(&self, entry: &ImportedEntry, mine: bool, file: &str) -> Result<Imported, MemoryError> {
        let target = entry.target;
        let archived = match entry.state {
            MemoryState::Removed => return Ok(Imported::Removed),
            state => state == MemoryState::Archived,
        };
        let before = self.read(target)?;
        let (text, marked) = unmarked(entry.text.trim());
        let changes = self.changes_of(target, entry)?;
        let claimed = marked.max(entry.taint).unwrap_or(Taint::Person);
        let recorded = recorded(&changes, entry);
        let taint = match recorded {
            Some(taint) => taint.max(marked.unwrap_or(taint)),
            None if mine => claimed,
            None => claimed.max(Taint::ToolOutput),
        };
        self.screened(&text, taint)?;
        let text = format!("{text}{}", taint.mark());
        // One that was written here without a date keeps having none.
        let same_date = is_date(&entry.date) || (entry.date.is_empty() && recorded.is_some());
        let date = if same_date { entry.date.clone() } else { self.today() };
        let added = Entry { archived, ..Entry::new(&date, &text) };
        let same = |own: &&Entry| unmarked(&own.text).0 == unmarked(&added.text).0;
        let kept = matches!(entry.state, MemoryState::Kept | MemoryState::Archived);
        if let Some(known) = before.entries().find(same) {
            if mine && kept && !claimed.is_untrusted() && self.accept_known(target, known)? {
                return Ok(Imported::Accepted);
            }
            return Err(MemoryError::Known { target, archived: known.archived });
        }
        let from = Provenance { agent: AgentId::main(), taint, ..Provenance::default() };
        let details = ChangeDetails { imported: file.to_owned(), ..ChangeDetails::default() };
        let mut planned = Planned { details, ..Planned::new(target, None, Some(added), from) };
        if kept {
            self.carry_out(&planned)?;
            return Ok(Imported::Added);
        }
        planned.removed = before.find(&entry.replaces).ok().filter(|found| found.text == entry.replaces);
        let line = planned.added.as_ref().map(Entry::recorded);
        let waiting = self.changes(&[ChangeState::Pending])?;
        let path = self.path(target).map(|path| name(&path));
        if waiting.iter().any(|c| c.added == line && Some(&c.path) == path.as_ref()) {
            return Err(MemoryError::Known { target, archived: false });
        }
        self.pend(&planned)?;
        Ok(Imported::Pending)
    }

    /// Makes an entry of a file the user's that is recorded as text of others. False: it is none.
    fn accept_known(&self, target: MemoryTarget, known: &Entry) -> Result<bool, MemoryError> {
        let (Some(store), Some(path)) = (self.store.get(), self.path(target)) else { return Ok(false) };
        let changes = store.memory_changes().of_lines(&name(&path), &known.forms())?;
        let mut done = changes.into_iter().rev().filter(|c| c.state == ChangeState::Done);
        let added = done.find(|c| known.is_in(&c.added));
        let Some(change) = added.filter(|c| c.from.taint.is_untrusted()) else { return Ok(false) };
        self.accept_kept(&change, target)?;
        Ok(true)
    }

    /// Recorded changes that added or removed this very entry, oldest first.
    fn changes_of(
        &self,
        target: MemoryTarget,
        entry: &ImportedEntry,
    ) -> Result<Vec<MemoryChange>, MemoryError> {
        let (Some(store), Some(path)) = (self.store.get(), self.path(target)) else { return Ok(Vec::new()) };
        Ok(store.memory_changes().of_lines(&name(&path), &live(entry).forms())?)
    }
}

/// The origin of this very entry as it is recorded here; `None`: it is not known here.
fn recorded(changes: &[MemoryChange], entry: &ImportedEntry) -> Option<Taint> {
    let entry = live(entry);
    let added = changes.iter().rev().find(|c| entry.is_in(&c.added)).map(|c| c.from.taint);
    // One that was only removed here was written in an editor.
    added.or_else(|| changes.iter().any(|c| entry.is_in(&c.removed)).then_some(Taint::Person))
}

fn live(entry: &ImportedEntry) -> Entry {
    Entry { date: entry.date.clone(), text: entry.text.clone(), archived: false }
}

fn is_date(date: &str) -> bool {
    !date.is_empty() && Entry::of_line(&format!("{date}: x")).date == date
}
