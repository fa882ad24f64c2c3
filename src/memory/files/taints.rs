//! How far the entries of memory can be trusted, as it is recorded, and what they pass on to a text that is made of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use tiller_protocol::memory::ChangeState;
use tiller_protocol::{Provenance, Taint};
use tiller_store::AddedLine;

use super::document::Entry;
use super::{Memory, MemoryError, name};
use crate::likeness::repeats;

/// Percentage of the words of a text or an entry in the other one from which on the text repeats the entry.
const SAME: usize = 80;

/// What the database says of the entries of the files in use, read once for each of its revisions.
#[derive(Debug, Default)]
pub(super) struct Origins {
    revision: i64,
    paths: Vec<String>,
    /// Entries that are in their files, each as a path and a line, with the origin that was recorded last.
    pub(super) done: HashMap<(String, String), Taint>,
    /// Those of `done` that are not trusted.
    pub(super) others: Arc<HashSet<(String, String)>>,
    /// Texts that the user wrote or accepted, without the mark at their end.
    accepted: HashSet<String>,
    /// Texts that are not trusted, without the mark at their end; each with the text in one line.
    texts: BTreeMap<String, (Taint, String)>,
}

impl Origins {
    /// From lines, the one that was added last at the end. An entry that the user accepted is the user's.
    fn of(revision: i64, paths: Vec<String>, lines: Vec<AddedLine>) -> Self {
        let mut made = Self { revision, paths, ..Self::default() };
        let text = |line: &AddedLine| unmarked(&Entry::of_line(&line.line).text).0;
        let by_person = |l: &&AddedLine| l.taint == Taint::Person && l.state == ChangeState::Done;
        made.accepted = lines.iter().filter(by_person).map(text).collect();
        for line in lines {
            made.note(text(&line), line.taint);
            if line.state == ChangeState::Done {
                made.done.insert((line.path, Entry::of_line(&line.line).line()), line.taint);
            }
        }
        let untrusted = made.done.iter().filter(|(_, taint)| taint.is_untrusted());
        made.others = Arc::new(untrusted.map(|(place, _)| place.clone()).collect());
        made
    }

    fn note(&mut self, text: String, taint: Taint) {
        if taint.is_untrusted() && !self.accepted.contains(&text) {
            let line = one_line(&text);
            let known = self.texts.entry(text).or_insert((taint, line));
            known.0 = taint.max(known.0);
        }
    }
}

/// What is recorded of the entries that text of others had a part in.
pub(super) struct Taints {
    recorded: Arc<Origins>,
    /// Texts whose origin could not be stored, without the mark at their end: output of a tool.
    unstored: BTreeSet<String>,
}

impl Taints {
    /// Texts that are not trusted, each as it is and in one line.
    fn texts(&self) -> impl Iterator<Item = (&str, Cow<'_, str>, Taint)> {
        let recorded = self.recorded.texts.iter();
        let recorded = recorded.map(|(text, (taint, line))| (text.as_str(), Cow::from(line), *taint));
        let unstored = self.unstored.iter();
        recorded.chain(unstored.map(|text| (text.as_str(), Cow::from(one_line(text)), Taint::ToolOutput)))
    }

    /// The origin of an entry of a file: as it is recorded, and as it says in its text.
    pub(super) fn of_entry(&self, entry: &Entry) -> Taint {
        let (text, marked) = unmarked(&entry.text);
        let recorded = self.recorded.texts.get(&text).map(|(taint, _)| *taint);
        let unstored = self.unstored.contains(&text).then_some(Taint::ToolOutput);
        marked.max(recorded).max(unstored).unwrap_or(Taint::Agent)
    }

    /// The least trusted entry whose words a text has.
    fn of_text(&self, text: &str) -> Taint {
        let own = one_line(text);
        let same = |known: &str, line: &str| repeats(&own, known, SAME) || own.contains(line);
        let found = self.texts().filter(|(known, line, _)| same(known, line)).map(|(.., taint)| taint);
        found.max().unwrap_or(Taint::Agent)
    }
}

impl Memory {
    /// What is recorded of the entries of the files in use. Costs as much as one look at the database while nothing changes.
    pub(super) fn origins(&self) -> Result<Arc<Origins>, MemoryError> {
        let Some(store) = self.store.get() else { return Ok(Arc::default()) };
        let paths: Vec<String> = self.rule_files().iter().map(|file| name(&file.path)).collect();
        // Before the lines: what is written in between makes this revision an old one.
        let revision = store.memory_changes().revision()?;
        let mut known = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|k| k.revision == revision && k.paths == paths) {
            return Ok(Arc::clone(known));
        }
        let lines = store.memory_changes().added_lines(&paths)?;
        let read = Arc::new(Origins::of(revision, paths, lines));
        *known = Some(Arc::clone(&read));
        Ok(read)
    }

    pub(super) fn taints(&self) -> Result<Taints, MemoryError> {
        let recorded = self.origins()?;
        let since = self.since_unconfined.lock().unwrap_or_else(PoisonError::into_inner);
        let unstored = since.iter().flat_map(|since| since.unstored_lines());
        let unstored = unstored.map(|line| unmarked(&Entry::of_line(&line).text).0);
        let unstored = unstored.filter(|text| !recorded.accepted.contains(text)).collect();
        Ok(Taints { recorded, unstored })
    }

    /// The least trusted of the entries that a text shows word for word. Blocks.
    pub fn taint_in(&self, text: &str) -> Taint {
        // What cannot be read is not trusted.
        let Ok(taints) = self.taints() else { return Taint::Web };
        let text = one_line(text);
        let shown = taints.texts().filter(|(_, line, _)| text.contains(line.as_ref()));
        shown.map(|(.., taint)| taint).max().unwrap_or(Taint::Agent)
    }

    /// The origin of a text that an agent writes: at most as trusted as the entry that it replaces, and as an entry that it
    /// has the words of. The user's own words stay the user's.
    pub(super) fn inherited(
        &self,
        from: Provenance,
        removed: Option<&Entry>,
        text: &str,
    ) -> Result<Provenance, MemoryError> {
        if from.taint == Taint::Person {
            return Ok(from);
        }
        let taints = self.taints()?;
        let replaced = removed.map_or(Taint::Agent, |entry| taints.of_entry(entry));
        let (bare, marked) = unmarked(text.trim());
        let repeated = taints.of_text(&bare).max(marked.unwrap_or_default());
        let taint = from.taint.max(replaced).max(repeated);
        Ok(Provenance { taint, ..from })
    }
}

/// A text without the mark of its origin at its end, and that origin.
pub(super) fn unmarked(text: &str) -> (String, Option<Taint>) {
    let untrusted = [Taint::Web, Taint::ToolOutput];
    let found = untrusted.into_iter().find_map(|taint| Some((text.strip_suffix(taint.mark())?, taint)));
    match found {
        Some((text, taint)) => (unmarked(text).0, Some(taint)),
        None => (text.to_owned(), None),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
