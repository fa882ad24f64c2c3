//! What clients see of memory.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::PoisonError;

use tiller_protocol::memory::{ChangeState, MemoryChange, MemoryPage, MemoryUse};
use tiller_protocol::{MemoryEntry, MemoryFile, MemoryQuery, MemoryState, MemoryTarget, RuleReceipts};
use tiller_store::Store;

use super::document::{Document, Entry, Part, Shown};
use super::power::{ByOthers, RuleFilePlace, is_line};
use super::seen::{Stamp, stamp};
use super::{Memory, MemoryError, SETTINGS, name};
use crate::rules::matcher::without_matchers;

/// Entries that were removed outside of Tiller are listed up to this number, the newest first.
const VANISHED: usize = 500;
/// What is shown at an entry that a program wrote beside Tiller, and that models do not get.
const NOT_SENT: &str = "It is in no prompt until you accept it: a program wrote it, and it reads like an instruction to an agent";
/// The same at an entry that came to a file of the project.
const NOT_AGREED: &str = "It is in no prompt until you trust the folder with it (`tiller trust`): it came after your last yes, and not by Tiller";
/// The same at lines that are no entry.
const NOT_SENT_LINE: &str =
    "It is in no prompt until you accept it: a program wrote it into the file, and it is no entry";

/// The state of the entries of memory, to be compared with a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryMark {
    files: Vec<Stamp>,
    changes: (i64, i64),
}

impl Memory {
    /// All entries: pending ones first, then those of the files, then those that were set aside, then what vanished. With words in the query those
    /// that fit, best first.
    ///
    /// # Errors
    /// When the database cannot be read. A file that cannot be read has its fault in the page.
    pub fn page(&self, query: &MemoryQuery) -> Result<MemoryPage, MemoryError> {
        self.look();
        use ChangeState::{Aside, Done, Outside, Pending};
        let changes = self.changes(&[Pending, Done, Aside, Outside])?;
        let mut page = MemoryPage::default();
        let others = self.by_others();
        let waiting = |state: ChangeState| changes.iter().filter(move |c| c.state == state);
        page.entries
            .extend(waiting(ChangeState::Pending).filter_map(|c| self.of_change(c, MemoryState::Pending)));
        for target in self.targets() {
            let Some(path) = self.path(target).map(|p| name(&p)) else { continue };
            let mut used =
                MemoryUse { target, path, bytes: 0, budget: self.budget(target.file), fault: String::new() };
            match self.read(target) {
                Ok(document) => {
                    used.bytes = self.cost(&used.path, &document);
                    let sources = sources(&changes, &used.path);
                    // The newest entries first.
                    page.entries.extend(
                        document.entries().rev().map(|e| shown(target, e, &sources, &used.path, &others)),
                    );
                    let lines = self.waiting_lines(target, &document, &sources, &used.path, &others);
                    page.entries.extend(lines);
                }
                Err(error) => used.fault = error.to_string(),
            }
            page.files.push(used);
        }
        page.entries.extend(self.of_others_in_settings(&changes, &others));
        page.entries
            .extend(waiting(ChangeState::Aside).filter_map(|c| self.of_change(c, MemoryState::Aside)));
        // One that vanished again has its row from before.
        let mut vanished: Vec<&MemoryChange> = waiting(ChangeState::Outside).collect();
        vanished.sort_by_key(|c| std::cmp::Reverse((c.time, c.id)));
        vanished.truncate(VANISHED);
        page.entries.extend(vanished.into_iter().filter_map(|c| self.of_change(c, MemoryState::Removed)));
        if !query.filter.trim().is_empty() {
            self.search(&mut page, &query.filter);
        }
        self.count(&mut page)?;
        Ok(page)
    }

    /// What models see beside the entries that a list has, each with the name of its file: text that is no entry, and all of the
    /// USER.md of the user's settings. Blocks.
    pub fn other_text(&self) -> Vec<(MemoryTarget, String, Vec<String>)> {
        let settings = self.settings_slot().path;
        let mut all = Vec::new();
        for file in [MemoryFile::Memory, MemoryFile::User] {
            for (path, text) in self.live(file) {
                let own = self.targets().find(|target| self.path(*target).as_ref() == Some(&path));
                let (target, label, lines): (_, _, Vec<String>) = match own {
                    Some(target) => {
                        let lines = Document::parse(&text).other_lines().map(str::to_owned).collect();
                        (target, format!("{}, text that is no entry", target.label()), lines)
                    }
                    None => {
                        (SETTINGS, settings.display().to_string(), text.lines().map(str::to_owned).collect())
                    }
                };
                if !lines.is_empty() {
                    all.push((target, label, lines));
                }
            }
        }
        all
    }

    /// What is another one after each change of the entries, by whatever program. Blocks.
    pub fn mark(&self) -> MemoryMark {
        let files = self.rule_files().iter().map(|file| stamp(&file.path)).collect();
        // What cannot be read counts as changed: a list that is read once too often shows the same.
        let changes = self.store.get().and_then(|store| store.memory_changes().mark().ok());
        MemoryMark { files, changes: changes.unwrap_or_default() }
    }

    /// The folders of the files in which a change of the entries is seen, links resolved, and the names of those files. Folders
    /// that do not exist are left out. Blocks.
    pub fn folders(&self) -> Vec<(PathBuf, Vec<OsString>)> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for RuleFilePlace { path, .. } in self.rule_files() {
            paths.extend(path.canonicalize());
            paths.push(path);
        }
        // What waits for the user is in the database only.
        if let Some(database) = self.store.get().map(Store::path) {
            let mut log = database.clone().into_os_string();
            log.push("-wal");
            paths.extend([database, log.into()]);
        }
        let mut folders: Vec<(PathBuf, Vec<OsString>)> = Vec::new();
        for path in paths {
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let (Some(folder), Some(name)) = (folder, path.file_name()) else { continue };
            match folders.iter_mut().find(|(known, _)| *known == folder) {
                Some((_, names)) => names.push(name.to_owned()),
                None => folders.push((folder, vec![name.to_owned()])),
            }
        }
        folders
    }

    /// How many changes wait for the user.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn pending(&self) -> Result<usize, MemoryError> {
        let waiting = self.changes(&[ChangeState::Pending])?;
        Ok(waiting.iter().filter(|c| self.target_of(&c.path).is_some()).count())
    }

    /// Keeps the entries that fit, best first. Those that contain all words, in whatever script, are never missed.
    fn search(&self, page: &mut MemoryPage, filter: &str) {
        let texts: Vec<String> =
            page.entries.iter().map(|e| format!("{} {} {}", e.text, e.date, e.target.label())).collect();
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let lower = texts.iter().map(|text| text.to_lowercase()).enumerate();
        let containing = lower.filter(|(_, text)| words.iter().all(|w| text.contains(w))).map(|(at, _)| at);
        let containing: Vec<usize> = containing.collect();
        let ordered = self.order.get().and_then(|order| order(filter, texts));
        let (mut best, suggestion) = ordered.unwrap_or_default();
        let missed: Vec<usize> = containing.into_iter().filter(|at| !best.contains(at)).collect();
        page.suggestion = suggestion.filter(|_| !best.is_empty() || missed.is_empty());
        best.extend(missed);
        page.entries = best.into_iter().filter_map(|at| page.entries.get(at).cloned()).collect();
    }

    /// What came of the entries that are rules.
    fn count(&self, page: &mut MemoryPage) -> Result<(), MemoryError> {
        let mut rules = page.entries.iter_mut().filter(|e| e.has_matcher()).peekable();
        let Some(store) = self.store.get().filter(|_| rules.peek().is_some()) else { return Ok(()) };
        let receipts = store.receipts().all()?;
        for entry in rules {
            let counts = without_matchers(&entry.text).and_then(|text| receipts.get(&text));
            entry.counts = counts.map(|(counts, _)| *counts).unwrap_or_default();
        }
        Ok(())
    }

    /// Entries of the USER.md of the user's settings that other programs may have written, so that they can be accepted.
    fn of_others_in_settings(&self, changes: &[MemoryChange], others: &ByOthers) -> Vec<MemoryEntry> {
        let slot = self.settings_slot();
        let path = name(&slot.path);
        let Ok(Some(text)) = slot.read() else { return Vec::new() };
        let (document, sources) = (Document::parse(&text), sources(changes, &path));
        let all = document.entries().map(|own| shown(SETTINGS, own, &sources, &path, others));
        let entries = all.filter(|e| e.from.as_ref().is_some_and(|from| from.taint.is_untrusted()));
        entries.chain(self.waiting_lines(SETTINGS, &document, &sources, &path, others)).collect()
    }

    /// The lines of the file at `path` that are no part of an entry and that a program may have written, in one row. Its
    /// change is the one that was recorded last; accepting it accepts these lines.
    fn waiting_lines(
        &self,
        target: MemoryTarget,
        document: &Document,
        sources: &HashMap<String, &MemoryChange>,
        path: &str,
        others: &ByOthers,
    ) -> Option<MemoryEntry> {
        let found = document.live_lines().filter(|part| others.shown(path, *part) == Shown::LeftOut);
        let lines: Vec<String> = found.map(Part::line).collect();
        let recorded = lines.iter().filter_map(|line| sources.get(line)).filter(|change| is_line(change));
        let last = recorded.max_by_key(|change| change.id)?;
        let own = Entry { text: lines.join("\n"), ..Entry::default() };
        let mut shown = self.shown_lines.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert(path.to_owned(), (last.id, lines.into_iter().collect()));
        Some(MemoryEntry {
            change: Some(last.id),
            from: Some(last.from.clone()),
            hidden: true,
            fault: NOT_SENT_LINE.to_owned(),
            ..entry(target, &own, sources)
        })
    }

    fn of_change(&self, change: &MemoryChange, state: MemoryState) -> Option<MemoryEntry> {
        let target = self.target_of(&change.path)?;
        let line = change.added.as_deref().or(change.removed.as_deref())?;
        let Entry { date, text, .. } = Entry::of_line(line);
        let vanished = state == MemoryState::Removed;
        Some(MemoryEntry {
            target,
            state,
            date,
            text,
            change: Some(change.id),
            // Without a session no agent was at work.
            from: Some(change.from.clone()).filter(|from| !vanished || from.session.is_some()),
            removed_at: vanished.then_some(change.time),
            hidden: false,
            fault: String::new(),
            replaces: change.removed.as_deref().map(|line| Entry::of_line(line).text).unwrap_or_default(),
            counts: RuleReceipts::default(),
            details: change.details.clone(),
        })
    }
}

/// The last change that added each entry of a file.
fn sources<'a>(changes: &'a [MemoryChange], path: &str) -> HashMap<String, &'a MemoryChange> {
    let done = changes.iter().filter(|c| c.state == ChangeState::Done && c.path == path);
    done.filter_map(|c| Some((Entry::of_line(c.added.as_deref()?).line(), c))).collect()
}

/// An entry of the file at `path`, with the fault that it has where models do not get it.
fn shown(
    target: MemoryTarget,
    own: &Entry,
    sources: &HashMap<String, &MemoryChange>,
    path: &str,
    others: &ByOthers,
) -> MemoryEntry {
    let entry = entry(target, own, sources);
    match others.shown(path, Part::Entry(own)) {
        Shown::LeftOut => {
            let known = others.is_known(path, Part::Entry(own));
            let fault = if known { NOT_SENT } else { NOT_AGREED };
            MemoryEntry { hidden: true, fault: fault.to_owned(), ..entry }
        }
        Shown::Whole | Shown::Marked(_) => entry,
    }
}

fn entry(target: MemoryTarget, own: &Entry, sources: &HashMap<String, &MemoryChange>) -> MemoryEntry {
    let source = sources.get(&own.line());
    MemoryEntry {
        target,
        state: if own.archived { MemoryState::Archived } else { MemoryState::Kept },
        date: own.date.clone(),
        text: own.text.clone(),
        change: source.map(|c| c.id),
        from: source.map(|c| c.from.clone()),
        removed_at: None,
        hidden: false,
        fault: String::new(),
        replaces: String::new(),
        counts: RuleReceipts::default(),
        details: source.map(|c| c.details.clone()).unwrap_or_default(),
    }
}
