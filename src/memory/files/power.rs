//! Which entries have power over calls: those that are rules, and that no text of others had a part in.
//!
//! An entry that Tiller wrote has its origin in the database. One without is the user's, written in an editor, unless a
//! program that nothing confines may have written it: while such programs run, new entries without an origin count as output
//! of a tool until the user accepts them. The same holds for lines that are no part of an entry: models see them as well.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use tiller_protocol::memory::{Acceptance, ChangeDetails, ChangeState, MemoryChange};
use tiller_protocol::{AgentId, MemoryFile, MemoryScope, MemoryTarget, Provenance, SessionId, Taint, Time};
use tiller_store::{RecordStep, Store, UnfinishedChange};

use super::disk::Slot;
use super::document::{Document, Entry, Part, Shown};
use super::plan::Planned;
use super::taints::{Origins, unmarked};
use super::{Memory, MemoryError, name};
use crate::rules::matcher::of_others;
use crate::screen::instructs;

/// What the record of a line that is no entry has in place of a removed entry. No entry is empty.
const NO_ENTRY: &str = "";

/// A file whose entries can be rules.
#[derive(Clone, Debug)]
pub struct RuleFilePlace {
    pub path: PathBuf,
    /// As it is shown: `.tiller/MEMORY.md`.
    pub label: &'static str,
    slot: Slot,
}

/// Entries and lines since the first program ran that nothing confines.
#[derive(Debug)]
pub(super) struct SinceUnconfined {
    /// Lines that were there then, and those that were looked at since; by path.
    known: HashMap<String, HashSet<String>>,
    /// New ones whose origin could not be stored, as path and line.
    unstored: HashSet<(String, String)>,
    /// How many the user was not told of.
    unreported: usize,
}

impl SinceUnconfined {
    /// Lines whose origin could not be stored.
    pub(super) fn unstored_lines(&self) -> impl Iterator<Item = String> + '_ {
        self.unstored.iter().map(|(_, line)| line.clone())
    }
}

impl RuleFilePlace {
    /// The file; `None`: there is none, or it cannot be read.
    pub fn document(&self) -> Option<Document> {
        self.read_rules().ok().flatten()
    }

    /// The document that [`Self::document`] reads; `None`: there is no file.
    ///
    /// # Errors
    /// When it cannot be read: its rules are then not known.
    pub fn read_rules(&self) -> Result<Option<Document>, MemoryError> {
        let text = self.slot.read()?;
        Ok(text.map(|text| Document::parse(text.strip_prefix('\u{feff}').unwrap_or(&text))))
    }

    /// The file; an empty document where there is none.
    fn read(&self) -> Result<Document, MemoryError> {
        Ok(Document::parse(&self.slot.read()?.unwrap_or_default()))
    }
}

/// Entries that text of others had a part in, as they are recorded.
pub(super) struct ByOthers {
    /// Each as the path of its file and its line.
    lines: Arc<HashSet<(String, String)>>,
    origins: Arc<Origins>,
    known: KnownLines,
}

/// The files of the project, with the lines that the user agreed to or that were written here. Of another file all are known.
#[derive(Debug, Default)]
pub(crate) struct KnownLines(HashMap<String, HashSet<String>>);

impl KnownLines {
    /// True when models may see this line of the file at `path`.
    pub(crate) fn has(&self, path: &str, line: &str) -> bool {
        self.0.get(path).is_none_or(|known| known.contains(line))
    }
}

impl ByOthers {
    /// Whether it is recorded of the entry of the file at `path`.
    pub(super) fn has(&self, path: &str, entry: &Entry) -> bool {
        self.lines.contains(&(path.to_owned(), entry.line()))
    }

    /// How models see a part that is no rule: what a program wrote beside Tiller went through no check. A line outside of
    /// entries is left out: no mark would end what it says, since an instruction can go over several lines.
    pub(super) fn shown(&self, path: &str, part: Part<'_>) -> Shown {
        let place = (path.to_owned(), part.line());
        if !self.is_known(path, part) {
            return Shown::LeftOut;
        }
        if !self.lines.contains(&place) {
            return Shown::Whole;
        }
        let Part::Entry(entry) = part else { return Shown::LeftOut };
        // First: a program can write a mark as well.
        if instructs(&entry.text) {
            return Shown::LeftOut;
        }
        if of_others(&entry.text) {
            return Shown::Whole;
        }
        let recorded = self.origins.done.get(&place).copied().unwrap_or_default();
        Shown::Marked(recorded.max(Taint::ToolOutput).mark())
    }
}

impl ByOthers {
    /// False for a line that came to a file of the project after the user agreed to it.
    pub(super) fn is_known(&self, path: &str, part: Part<'_>) -> bool {
        !part.says() || self.known.has(path, &part.line())
    }
}

impl Memory {
    /// The files whose entries can be rules: those in use, and the USER.md of the user's settings.
    pub fn rule_files(&self) -> Vec<RuleFilePlace> {
        let own = self.targets().filter_map(|target| {
            let slot = self.slot(target).ok()?;
            Some(RuleFilePlace { path: slot.path.clone(), label: target.label(), slot })
        });
        let slot = self.settings_slot();
        let settings = RuleFilePlace { path: slot.path.clone(), label: MemoryFile::User.file_name(), slot };
        let mut all: Vec<RuleFilePlace> = own.chain([settings]).collect();
        all.dedup_by(|a, b| a.path == b.path);
        all
    }

    /// Memory files whose rules are not known, since they cannot be read: path and a sentence without a full stop.
    pub fn unreadable_rules(&self) -> Vec<(PathBuf, String)> {
        let why = |file: RuleFilePlace| Some((file.path.clone(), file.read_rules().err()?.to_string()));
        self.rule_files().into_iter().filter_map(why).collect()
    }

    /// Entries, each as a path and a line, whose last writer may have had text of others.
    pub fn lines_of_others(&self) -> Arc<HashSet<(String, String)>> {
        let mut others = self.origins().map(|origins| Arc::clone(&origins.others)).unwrap_or_default();
        let since = self.since_unconfined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = since.as_ref().filter(|since| !since.unstored.is_empty()) {
            Arc::make_mut(&mut others).extend(since.unstored.iter().cloned());
        }
        others
    }

    /// What is known of entries that text of others had a part in.
    pub(super) fn by_others(&self) -> ByOthers {
        let origins = self.origins().unwrap_or_default();
        ByOthers { lines: self.lines_of_others(), origins, known: self.known_lines() }
    }

    /// The lines of the project's files that models may see. Blocks.
    pub(crate) fn known_lines(&self) -> KnownLines {
        let agreed = self.agreed.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(agreed) = agreed else { return KnownLines::default() };
        let project = self.targets().filter(|target| target.scope == MemoryScope::Project);
        let paths = project.filter_map(|target| self.path(target)).filter(|path| path.exists());
        let known = |path: PathBuf| {
            let path = name(&path);
            let store = self.store.get();
            let changes = store.and_then(|s| s.memory_changes().of_files(std::slice::from_ref(&path)).ok());
            let own = changes.into_iter().flatten().filter(is_written_here).filter_map(|change| change.added);
            let own = own.map(|line| Entry::of_line(&line).line());
            (path, own.chain(agreed.iter().cloned()).collect())
        };
        KnownLines(paths.map(known).collect())
    }

    /// A program that nothing confines is about to run: what is in the files now is the user's, what comes without an
    /// origin from now on may be the program's. Blocks.
    pub fn before_unconfined_program(&self) {
        let mut since = self.since_unconfined.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_some() {
            return;
        }
        let lines = |file: &RuleFilePlace| {
            file.read().map(|d| d.parts().map(Part::line).collect()).unwrap_or_default()
        };
        let known = self.rule_files().iter().map(|file| (name(&file.path), lines(file))).collect();
        *since = Some(SinceUnconfined { known, unstored: HashSet::new(), unreported: 0 });
    }

    fn lines(&self, target: MemoryTarget) -> HashSet<String> {
        self.read(target).map(|d| d.parts().map(Part::line).collect()).unwrap_or_default()
    }

    /// The user agreed to the files of the project as they are.
    pub(super) fn know_project(&self) {
        let mut since = self.since_unconfined.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(since) = since.as_mut() else { return };
        for target in self.targets().filter(|t| t.scope == MemoryScope::Project) {
            if let Some(path) = self.path(target) {
                since.known.entry(name(&path)).or_default().extend(self.lines(target));
            }
        }
    }

    /// Records entries that may be those of a program that nothing confined. Returns how many were found since the last call.
    /// Blocks.
    pub fn unconfined_entries(&self, session: SessionId) -> usize {
        self.note_unconfined_entries(Some(session));
        let mut since = self.since_unconfined.lock().unwrap_or_else(PoisonError::into_inner);
        since.as_mut().map_or(0, |since| std::mem::take(&mut since.unreported))
    }

    /// Takes note of lines that Tiller wrote itself: no program did.
    pub(super) fn written_here(&self, path: &Path, lines: HashSet<String>) {
        let mut since = self.since_unconfined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = since.as_mut() {
            since.known.entry(name(path)).or_default().extend(lines);
        }
    }

    /// As [`Self::unconfined_entries`], for a caller that shows no notice.
    pub(crate) fn note_unconfined_entries(&self, session: Option<SessionId>) {
        let mut since = self.since_unconfined.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(since) = since.as_mut() else { return };
        let origins = self.origins().unwrap_or_default();
        let runs = self.running(true).is_some();
        for file in self.rule_files() {
            let (path, Ok(document)) = (name(&file.path), file.read()) else { continue };
            let known = since.known.entry(path.clone()).or_default();
            for part in document.parts() {
                let place = (path.clone(), part.line());
                if !known.insert(place.1.clone()) {
                    continue;
                }
                if let Some(taint) = origins.done.get(&place) {
                    // While the program runs another window may have found it first, and recorded it.
                    since.unreported += usize::from(runs && *taint == Taint::ToolOutput);
                    continue;
                }
                let line = place.1;
                let from = Provenance {
                    session,
                    agent: AgentId::main(),
                    taint: Taint::ToolOutput,
                    ..Provenance::default()
                };
                let change = found(part, self.clock.now(), &path, from);
                let stored = self.store.get().map(|store| store.memory_changes().add(change).wait());
                if !matches!(stored, Some(Ok(_))) {
                    since.unstored.insert((path.clone(), line));
                }
                since.unreported += 1;
            }
        }
    }

    /// The same as [`Self::accept_kept`] in the USER.md of the user's settings, which is only read: the entry stays as it is.
    pub(super) fn accept_in_settings(
        &self,
        store: &Store,
        change: &MemoryChange,
    ) -> Result<String, MemoryError> {
        self.record_accepted(store, &change.path, std::slice::from_ref(change))
    }

    /// The user accepts the lines of a file that are no entry, as the list showed them last in the row of this change.
    ///
    /// # Errors
    /// When the list was not shown, or the file has none of them any more.
    pub(super) fn accept_lines(&self, store: &Store, change: &MemoryChange) -> Result<String, MemoryError> {
        let path = change.path.as_str();
        let shown = self.shown_lines.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        let (_, shown) = shown.filter(|(id, _)| *id == change.id).unwrap_or_default();
        let files = self.rule_files();
        let document = files.iter().find(|file| name(&file.path) == path).map(RuleFilePlace::read);
        let (document, others) = (document.transpose()?.unwrap_or_default(), self.by_others());
        let waits = |part: &Part<'_>| others.shown(path, *part) == Shown::LeftOut;
        let lines: HashSet<String> =
            document.live_lines().filter(waits).map(Part::line).filter(|line| shown.contains(line)).collect();
        if lines.is_empty() {
            return Err(MemoryError::Refused("the file has changed: look at the list again".into()));
        }
        let mut last: HashMap<String, MemoryChange> = HashMap::new();
        for change in self.changes(&[ChangeState::Done])? {
            let line = Entry::of_line(change.added.as_deref().unwrap_or_default()).line();
            if is_line(&change) && change.path == path && lines.contains(&line) {
                last.insert(line, change);
            }
        }
        let mut accepted: Vec<MemoryChange> = last.into_values().collect();
        accepted.sort_by_key(|change| change.id);
        self.record_accepted(store, path, &accepted)
    }

    /// Records all of these as the user's, or none.
    fn record_accepted(
        &self,
        store: &Store,
        path: &str,
        changes: &[MemoryChange],
    ) -> Result<String, MemoryError> {
        let mut steps = Vec::new();
        for change in changes {
            self.screened(change.added.as_deref().unwrap_or_default(), Taint::Person)?;
            let from = Provenance { taint: Taint::Person, ..change.from.clone() };
            let details = self.accepted(change);
            let accepted = MemoryChange { id: 0, time: self.clock.now(), from, details, ..change.clone() };
            steps.push(RecordStep::Add(Box::new(accepted)));
        }
        let change = UnfinishedChange { steps, ..UnfinishedChange::default() };
        store.memory_changes().record(path, change)?.wait()?;
        Ok(format!("accepted in {path}"))
    }

    /// The user accepts an entry that text of others had a part in: from then on it is the user's, without the mark at its
    /// end. Returns a sentence.
    pub(super) fn accept_kept(
        &self,
        change: &MemoryChange,
        target: MemoryTarget,
    ) -> Result<String, MemoryError> {
        let line = change.added.as_deref().unwrap_or_default();
        let old = self.present(target, Entry::of_line(line))?;
        let text = unmarked(&old.text).0;
        let new = Entry { text, ..old.clone() };
        self.screened(&new.text, Taint::Person)?;
        let from =
            Provenance { entry: None, branch: String::new(), taint: Taint::Person, ..change.from.clone() };
        let details = self.accepted(change);
        self.carry_out(&Planned { details, ..Planned::new(target, Some(old), Some(new), from) })?;
        Ok(format!("accepted in {}", target.label()))
    }

    /// What is shown about an entry that the user accepts now: who wrote it.
    fn accepted(&self, change: &MemoryChange) -> ChangeDetails {
        let accepted = Acceptance { time: self.clock.now(), from: change.from.clone() };
        ChangeDetails { accepted: Some(accepted), ..change.details.clone() }
    }
}

/// Whether a change is the record of a line that is no entry, and that was found in a file: it changed nothing, so that it
/// cannot be undone.
pub(super) fn is_line(change: &MemoryChange) -> bool {
    change.added.is_some() && change.removed.as_deref() == Some(NO_ENTRY)
}

/// True where Tiller wrote the added line or the user accepted it. False: it was found in its file, or is not there.
pub fn is_written_here(change: &MemoryChange) -> bool {
    // A call that writes has the entry of its reply, an import the name of its file.
    let from = &change.from;
    let is_found = from.taint == Taint::ToolOutput
        && from.entry.is_none()
        && change.details.is_none()
        && change.removed.as_deref().is_none_or(|removed| removed == NO_ENTRY);
    change.state == ChangeState::Done && !is_found
}

/// The change that a part of a file is recorded by, which was found in it.
pub(super) fn found(part: Part<'_>, time: Time, path: &str, from: Provenance) -> MemoryChange {
    let removed = matches!(part, Part::Line(_)).then(|| NO_ENTRY.to_owned());
    let (path, added) = (path.to_owned(), Some(part.line()));
    let (archived, state, details) = (None, ChangeState::Done, ChangeDetails::default());
    MemoryChange { id: 0, time, path, removed, added, archived, state, from, details }
}
