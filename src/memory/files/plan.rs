//! One change of a memory file: the entries that it is about are found and screened, the difference is shown, then it is
//! carried out or waits for the user.

use tiller_config::schema::MemoryApproval;
use tiller_protocol::memory::{ChangeDetails, ChangeState, MemoryChange, has_matcher};
use tiller_protocol::{MemoryTarget, Provenance, Taint};
use tiller_store::RecordStep;

use super::document::{Document, Entry, FindError};
use super::taints::unmarked;
use super::{Memory, MemoryError, name};

/// What is to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Adds an entry with this text.
    Append(String),
    /// `old`: the text of an entry, or a part of it that only one has.
    Replace { old: String, text: String },
    /// Removes an entry. `old`: as in [`Self::Replace`].
    Remove { old: String },
}

/// A change that was checked against the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub target: MemoryTarget,
    pub removed: Option<Entry>,
    pub added: Option<Entry>,
    pub from: Provenance,
    /// The difference (unified); empty: it is shown nowhere.
    pub diff: String,
    /// What is shown about the change once it is stored.
    pub details: ChangeDetails,
}

/// What becomes of an agent's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It is written.
    Write,
    /// The user is asked.
    Ask,
    /// It waits in the memory browser.
    Pend,
    /// Agents may not write.
    Never,
}

impl Planned {
    /// A change of which no difference and no details are shown.
    pub(super) fn new(
        target: MemoryTarget,
        removed: Option<Entry>,
        added: Option<Entry>,
        from: Provenance,
    ) -> Self {
        Self { target, removed, added, from, diff: String::new(), details: ChangeDetails::default() }
    }

    /// Whether it makes, changes or removes a rule.
    pub fn is_about_rule(&self) -> bool {
        let mut entries = self.added.iter().chain(&self.removed);
        entries.any(|entry| has_matcher(&entry.text))
    }
}

impl Memory {
    /// What becomes of an agent's change by the settings. Text that may be of others is kept only when the user approves it.
    pub fn route(&self, taint: Taint) -> Route {
        match (self.settings().approve, taint) {
            (_, Taint::Person) => Route::Write,
            (MemoryApproval::Never, _) => Route::Never,
            (MemoryApproval::Ask, _) => Route::Ask,
            (MemoryApproval::Always, Taint::ToolOutput | Taint::Web) => Route::Pend,
            (MemoryApproval::Always, Taint::Agent) => Route::Write,
        }
    }

    /// As [`Self::route`], for a change that was checked. An agent asks before it makes, changes or removes a rule: a rule takes part in
    /// every call that it matches, and the text that leads an agent to one may be that of a repository.
    pub fn route_of(&self, planned: &Planned) -> Route {
        match self.route(planned.from.taint) {
            Route::Write if planned.is_about_rule() && planned.from.taint != Taint::Person => Route::Ask,
            route => route,
        }
    }

    /// Checks a change against the file as it is now. Changes nothing.
    ///
    /// # Errors
    /// When the text is refused, the entry is not there, or the file cannot be read.
    pub fn plan(
        &self,
        target: MemoryTarget,
        edit: &Edit,
        mut from: Provenance,
    ) -> Result<Planned, MemoryError> {
        let before = self.read(target)?;
        let found = |old: &str| before.find(old).map_err(|e| not_found(e, &before, target, old));
        let (mut removed, text) = match edit {
            Edit::Append(text) => (None, Some(text)),
            Edit::Replace { old, text } => (Some(found(old)?), Some(text)),
            Edit::Remove { old } => (Some(found(old)?), None),
        };
        let mut added = None;
        if let Some(text) = text {
            from = self.inherited(from, removed.as_ref(), text)?;
            self.screened(text, from.taint)?;
            let (bare, mark) = (unmarked(text.trim()).0, from.taint.mark());
            let text = match from.taint {
                // What the user writes is theirs, also where they left the mark of the entry before.
                Taint::Person => bare,
                _ if mark.is_empty() => text.trim().to_owned(),
                _ => format!("{bare}{mark}"),
            };
            let entry = Entry::new(&self.today(), &text);
            // The mark of an origin makes no other text.
            let bare = unmarked(&entry.text).0;
            let known = before
                .entries()
                .find(|own| unmarked(&own.text).0 == bare && Some(*own) != removed.as_ref())
                .cloned();
            if let Some(known) = known {
                // What the user writes takes the place of the same text of others.
                let is_of_others = known.text != entry.text && !known.archived;
                if from.taint != Taint::Person || removed.is_some() || !is_of_others {
                    return Err(MemoryError::Known { target, archived: known.archived });
                }
                removed = Some(known);
            }
            added = Some(entry);
        }
        let mut after = before.clone();
        apply(&mut after, removed.as_ref(), added.as_ref(), target)?;
        let diff = difference(target, &before.render(), &after.render());
        Ok(Planned { diff, ..Planned::new(target, removed, added, from) })
    }

    /// Writes a change.
    ///
    /// # Errors
    /// When the file was changed so that it no longer applies, or cannot be written.
    pub fn carry_out(&self, planned: &Planned) -> Result<(), MemoryError> {
        let edit = |document: &mut _| {
            apply(document, planned.removed.as_ref(), planned.added.as_ref(), planned.target)
        };
        self.change(planned.target, edit, |()| Ok(self.steps(planned, None)))
    }

    /// Keeps a change for the user, who decides in the memory browser. Returns its number.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn pend(&self, planned: &Planned) -> Result<i64, MemoryError> {
        let path = self.path(planned.target).map(|path| name(&path));
        // The same text of another day is the same change.
        let added = |c: &MemoryChange| c.added.as_deref().map(|line| Entry::of_line(line).text);
        let same = |c: &MemoryChange| {
            Some(&c.path) == path.as_ref()
                && added(c) == planned.added.as_ref().map(|entry| entry.text.clone())
                && c.removed == planned.removed.as_ref().map(Entry::recorded)
        };
        if let Some(waiting) = self.changes(&[ChangeState::Pending])?.into_iter().find(same) {
            return Ok(waiting.id);
        }
        let change = self.recorded(planned, ChangeState::Pending, None);
        let (Some(store), Some(change)) = (self.store.get(), change) else {
            return Err(MemoryError::Store("there is no database".into()));
        };
        Ok(store.memory_changes().add(change).wait()?)
    }

    /// Plans and writes a change of the user's.
    ///
    /// # Errors
    /// As [`Self::plan`] and [`Self::carry_out`].
    pub fn write(&self, target: MemoryTarget, edit: &Edit, from: Provenance) -> Result<Planned, MemoryError> {
        let planned = self.plan(target, edit, from)?;
        self.carry_out(&planned)?;
        Ok(planned)
    }

    /// Whether a file has an entry with exactly this text. Blocks.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn has(&self, target: MemoryTarget, text: &str) -> Result<bool, MemoryError> {
        let wanted = Entry::new("", text).text;
        Ok(self.read(target)?.entries().any(|e| e.text == wanted || e.line() == wanted))
    }

    /// Moves an entry into the archive of its file, or out of it. The move is recorded, so that it can be undone.
    ///
    /// # Errors
    /// When it is not there, or the file cannot be written.
    pub fn archive(
        &self,
        target: MemoryTarget,
        old: &str,
        archived: bool,
        from: &Provenance,
    ) -> Result<Entry, MemoryError> {
        let edit = |document: &mut Document| {
            // The same text may stand in the archive and outside of it.
            let there = document.entries().find(|e| e.archived != archived && e.text == old).cloned();
            let entry = match there {
                Some(entry) => entry,
                None => document.find(old).map_err(|e| not_found(e, document, target, old))?,
            };
            // Where the other part of the file has its text, the entry is only removed.
            let double = document.has_text_of(&Entry { archived, ..entry.clone() });
            let moved = entry.archived != archived && document.archive(&entry, archived);
            Ok((entry, moved, double))
        };
        let (entry, ..) = self.change(target, edit, |(entry, moved, double)| {
            let (removed, from) = (Some(entry.clone()), from.clone());
            let planned = Planned::new(target, removed, None, from);
            let to = Some(archived).filter(|_| !double);
            Ok(if *moved { self.steps(&planned, to) } else { Vec::new() })
        })?;
        Ok(entry)
    }

    /// What is recorded of a change that is done. `archived`: it moves the entry that it names as removed into the archive, or
    /// out of it.
    pub(super) fn steps(&self, planned: &Planned, archived: Option<bool>) -> Vec<RecordStep> {
        let change = self.recorded(planned, ChangeState::Done, archived).map(Box::new).map(RecordStep::Add);
        [self.gives_up_undone()].into_iter().chain(change).collect()
    }

    /// The step of each new change that gives up those that were undone before it.
    pub(super) fn gives_up_undone(&self) -> RecordStep {
        RecordStep::GiveUpUndone(self.rule_files().iter().map(|file| name(&file.path)).collect())
    }

    /// A change as it is stored; `None`: its file is not in use.
    fn recorded(
        &self,
        planned: &Planned,
        state: ChangeState,
        archived: Option<bool>,
    ) -> Option<MemoryChange> {
        Some(MemoryChange {
            id: 0,
            time: self.clock.now(),
            path: name(&self.path(planned.target)?),
            removed: planned.removed.as_ref().map(Entry::recorded),
            added: planned.added.as_ref().map(Entry::recorded),
            archived,
            state,
            from: planned.from.clone(),
            details: planned.details.clone(),
        })
    }
}

/// Does a change to a document.
///
/// # Errors
/// When the entry to take away is not there.
pub(super) fn apply(
    document: &mut Document,
    removed: Option<&Entry>,
    added: Option<&Entry>,
    target: MemoryTarget,
) -> Result<(), MemoryError> {
    let gone = || {
        MemoryError::Refused(format!(
            "{} was changed meanwhile: the entry is not there any more",
            target.label()
        ))
    };
    match (removed, added) {
        (Some(removed), Some(added)) => document.replace(removed, added).then_some(()).ok_or_else(gone),
        (Some(removed), None) => document.remove(removed).then_some(()).ok_or_else(gone),
        (None, Some(added)) => {
            if !document.has_text_of(added) {
                document.add(added, None);
            }
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn not_found(error: FindError, document: &Document, target: MemoryTarget, old: &str) -> MemoryError {
    let label = target.label();
    let first = old.lines().next().unwrap_or_default().trim();
    let is_line = !first.is_empty() && document.live_lines().any(|part| part.line() == first);
    MemoryError::Refused(match error {
        FindError::Nothing if old.trim().is_empty() => "the text of the entry is empty".into(),
        FindError::Nothing if is_line => {
            format!("this is text of {label} that is no entry of its own: change the file in an editor")
        }
        FindError::Nothing => {
            return MemoryError::NotFound(format!("no entry of {label} contains this text"));
        }
        FindError::Several(n) => format!("{n} entries of {label} contain this text; give more of it"),
    })
}

/// The difference of two states of a file.
fn difference(target: MemoryTarget, before: &str, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(2).header(target.label(), target.label()).to_string()
}
