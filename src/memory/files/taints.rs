//! How far the entries of memory can be trusted, as it is recorded, and what they pass on to a text that is made of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use tiller_protocol::memory::ChangeState;
use tiller_protocol::{Provenance, Taint};
use tiller_store::AddedLine;

use super::document::Entry;
use super::{Memory, MemoryError, name};
use crate::likeness::{END, is_few_words, is_made_of, repeats};
use crate::screen::{comparable, instructs};

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
    /// The text as it is compared, without the signs at its end.
    line: String,
    /// It is a few plain words, which stand in other texts by chance: it is known only where nothing else stands beside it, or
    /// together with others. One that reads like an instruction is never taken for this.
    few: bool,
}

impl KnownText {
    fn new(text: &str, taint: Taint) -> Self {
        let line = comparable(text).trim_end_matches(END).to_owned();
        Self { taint, line, few: is_few_words(text) && !instructs(text) }
    }

    /// Whether a text shows it word for word, in capitals or not.
    fn is_in(&self, text: &Compared) -> bool {
        // One that is nothing but signs is in every text.
        let shown = !self.line.is_empty() && text.whole.contains(&self.line);
        shown && (!self.few || text.lines.iter().any(|line| is_item(line, &self.line)))
    }
}

/// A text in which known ones are looked for.
struct Compared {
    whole: String,
    lines: Vec<String>,
}

impl Compared {
    fn new(text: &str) -> Self {
        Self { whole: comparable(text), lines: text.lines().map(comparable).collect() }
    }
}

/// Whether a line of a text is `item`, behind a mark of a list, a number or a date, and before a note in brackets.
fn is_item(line: &str, item: &str) -> bool {
    let Some(at) = line.find(item) else { return false };
    let (before, after) = (&line[..at], line[at + item.len()..].trim_start_matches(END).trim());
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
            let known = self.texts.entry(text).or_insert_with_key(|text| KnownText::new(text, taint));
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
    /// Texts that are not trusted.
    fn texts(&self) -> impl Iterator<Item = &KnownText> {
        self.recorded.texts.values().chain(self.unstored.values())
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
        let own = Compared::new(text);
        let (few, long): (Vec<&KnownText>, Vec<&KnownText>) = self.texts().partition(|known| known.few);
        let repeated =
            long.iter().filter(|known| repeats(&own.whole, &known.line, SAME) || known.is_in(&own));
        let shown = few.iter().filter(|known| known.is_in(&own));
        let found = repeated.chain(shown).map(|known| known.taint).max();
        let made = |taint: &Taint| {
            let of = few.iter().filter(|known| known.taint >= *taint);
            is_made_of(&own.whole, of.map(|known| known.line.as_str()))
        };
        // Of less trusted ones alone, or of all together.
        let made = [Taint::Web, Taint::ToolOutput].into_iter().find(made);
        found.max(made).unwrap_or(Taint::Agent)
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
        let text = Compared::new(text);
        let shown = taints.texts().filter(|known| known.is_in(&text));
        shown.map(|known| known.taint).max().unwrap_or(Taint::Agent)
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
