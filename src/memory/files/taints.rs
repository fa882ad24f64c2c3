//! How far the entries of memory can be trusted, as it is recorded, and what they pass on to a text that is made of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use tiller_protocol::memory::ChangeState;
use tiller_protocol::{Provenance, Taint};
use tiller_store::AddedLine;

use super::document::Entry;
use super::{Memory, MemoryError, name};
use crate::likeness::{is_few_words, is_made_of, repeats};
use crate::screen::instructs;

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
    /// Texts that are not trusted, without the mark at their end.
    texts: BTreeMap<String, KnownText>,
}

/// A text that is not trusted.
#[derive(Debug)]
struct KnownText {
    taint: Taint,
    /// The text in one line.
    line: String,
    /// It is a few plain words, which stand in other texts by chance: it is known only where nothing else stands beside it, or
    /// together with others. One that reads like an instruction is never taken for this.
    few: bool,
}

impl KnownText {
    fn new(text: &str, taint: Taint) -> Self {
        Self { taint, line: one_line(text), few: is_few_words(text) && !instructs(text) }
    }

    /// Whether a text shows it word for word. `line`: that text in one line.
    fn is_in(&self, text: &str, line: &str) -> bool {
        if !self.few {
            return line.contains(&self.line);
        }
        line.contains(&self.line) && text.lines().any(|shown| is_item(shown, &self.line))
    }
}

/// Whether a line of a text is `item`, behind a mark of a list, a number or a date, and before a note in brackets.
fn is_item(line: &str, item: &str) -> bool {
    let Some(at) = line.find(item) else { return false };
    let (before, after) = (&line[..at], line[at + item.len()..].trim());
    !before.chars().any(char::is_alphabetic) && (after.is_empty() || after.starts_with(['(', '[']))
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
            let new = KnownText::new(&text, taint);
            let known = self.texts.entry(text).or_insert(new);
            known.taint = taint.max(known.taint);
        }
    }
}

/// What is recorded of the entries that text of others had a part in.
pub(super) struct Taints {
    recorded: Arc<Origins>,
    /// Texts whose origin could not be stored, without the mark at their end: output of a tool.
    unstored: BTreeMap<String, KnownText>,
}

impl Taints {
    /// Texts that are not trusted, each with its text as it is.
    fn texts(&self) -> impl Iterator<Item = (&str, &KnownText)> {
        self.recorded.texts.iter().chain(&self.unstored).map(|(text, known)| (text.as_str(), known))
    }

    /// The origin of an entry of a file: as it is recorded, and as it says in its text.
    pub(super) fn of_entry(&self, entry: &Entry) -> Taint {
        let (text, marked) = unmarked(&entry.text);
        let recorded = self.recorded.texts.get(&text).map(|known| known.taint);
        let unstored = self.unstored.get(&text).map(|known| known.taint);
        marked.max(recorded).max(unstored).unwrap_or(Taint::Agent)
    }

    /// The least trusted entry whose words a text has. Of entries of a few words all are taken together: what is made of many
    /// of them is known as what is made of a long one.
    fn of_text(&self, text: &str) -> Taint {
        let own = one_line(text);
        let (few, long): (Vec<_>, Vec<_>) = self.texts().partition(|(_, known)| known.few);
        let same = |text: &str, known: &KnownText| repeats(&own, text, SAME) || own.contains(&known.line);
        let found = long.into_iter().filter(|(text, known)| same(text, known)).map(|(_, known)| known.taint);
        let shown = few.iter().filter(|(_, known)| known.is_in(text, &own));
        let shown = shown.map(|(_, known)| known.taint).max();
        let made = |taint: &Taint| {
            let of = few.iter().filter(|(_, known)| known.taint >= *taint);
            is_made_of(&own, of.map(|(_, known)| known.line.as_str()))
        };
        // Of less trusted ones alone, or of all together.
        let made = [Taint::Web, Taint::ToolOutput].into_iter().find(made);
        found.max().max(shown).max(made).unwrap_or(Taint::Agent)
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
        let unstored = unstored.filter(|text| !recorded.accepted.contains(text));
        let unstored = unstored.map(|text| {
            let known = KnownText::new(&text, Taint::ToolOutput);
            (text, known)
        });
        let unstored = unstored.collect();
        Ok(Taints { recorded, unstored })
    }

    /// The least trusted of the entries that a text shows word for word. Blocks.
    pub fn taint_in(&self, text: &str) -> Taint {
        // What cannot be read is not trusted.
        let Ok(taints) = self.taints() else { return Taint::Web };
        let line = one_line(text);
        let shown = taints.texts().filter(|(_, known)| known.is_in(text, &line));
        shown.map(|(_, known)| known.taint).max().unwrap_or(Taint::Agent)
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
