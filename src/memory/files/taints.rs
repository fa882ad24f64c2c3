//! How far the entries of memory can be trusted, as it is recorded, and what they pass on to a text that is made of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::PoisonError;

use tiller_protocol::memory::{ChangeState, MemoryChange};
use tiller_protocol::{Provenance, Taint};

use super::document::Entry;
use super::{Memory, MemoryError};

/// Percentage of a text's words in an entry from which on it is that entry in other words.
const SAME: usize = 80;
/// Fewer words say nothing about where a text comes from.
const WORDS: usize = 4;

/// What is recorded of the entries that text of others had a part in.
pub(super) struct Taints {
    /// By text, without the mark at its end.
    texts: BTreeMap<String, Taint>,
}

impl Taints {
    /// From changes, oldest first. An entry that the user accepted is the user's.
    pub(super) fn of(changes: &[MemoryChange], unstored: impl Iterator<Item = String>) -> Self {
        let added = |c: &MemoryChange| c.added.as_deref().map(|line| unmarked(&Entry::of_line(line).text).0);
        let by_person = |c: &&MemoryChange| c.from.taint == Taint::Person && c.state == ChangeState::Done;
        let accepted: HashSet<String> = changes.iter().filter(by_person).filter_map(added).collect();
        let mut texts = BTreeMap::new();
        let mut note = |text: String, taint: Taint| {
            if taint.is_untrusted() && !accepted.contains(&text) {
                let known = texts.entry(text).or_insert(taint);
                *known = taint.max(*known);
            }
        };
        for change in changes {
            if let Some(text) = added(change) {
                note(text, change.from.taint);
            }
        }
        unstored.for_each(|line| note(unmarked(&Entry::of_line(&line).text).0, Taint::ToolOutput));
        Self { texts }
    }

    /// The origin of an entry of a file: as it is recorded, and as it says in its text.
    pub(super) fn of_entry(&self, entry: &Entry) -> Taint {
        let (text, marked) = unmarked(&entry.text);
        marked.max(self.texts.get(&text).copied()).unwrap_or(Taint::Agent)
    }

    /// The least trusted entry whose words a text has.
    fn of_text(&self, text: &str) -> Taint {
        let own = words(text);
        if own.len() < WORDS {
            return Taint::Agent;
        }
        let same = |known: &str| {
            let known = words(known);
            own.iter().filter(|word| known.contains(*word)).count() * 100 / own.len() >= SAME
        };
        let found = self.texts.iter().filter(|(known, _)| same(known)).map(|(_, taint)| *taint);
        found.max().unwrap_or(Taint::Agent)
    }
}

impl Memory {
    pub(super) fn taints(&self) -> Result<Taints, MemoryError> {
        let changes = self.changes()?;
        let since = self.since_free.lock().unwrap_or_else(PoisonError::into_inner);
        let unstored = since.iter().flat_map(|since| since.unstored_lines());
        Ok(Taints::of(&changes, unstored))
    }

    /// The least trusted of the entries that a text shows word for word. Blocks.
    pub fn taint_in(&self, text: &str) -> Taint {
        // What cannot be read is not trusted.
        let Ok(taints) = self.taints() else { return Taint::Web };
        let text = one_line(text);
        let shown = taints.texts.iter().filter(|(known, _)| text.contains(&one_line(known)));
        shown.map(|(_, taint)| *taint).max().unwrap_or(Taint::Agent)
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

/// The words of a text that tell it from others.
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.chars().count() >= 3);
    words.map(str::to_lowercase).collect()
}
