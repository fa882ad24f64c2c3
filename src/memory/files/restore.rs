//! Entries that another program than Tiller removed or edited: which entry an edited one became, and bringing the old one back.

use std::collections::{HashMap, HashSet};

use similar::TextDiff;
use tiller_protocol::memory::{ChangeDetails, ChangeState, MemoryChange};
use tiller_protocol::{MemoryTarget, Provenance, Taint};
use tiller_store::{RecordStep, Store};

use super::document::{Document, Entry};
use super::seen::is_back;
use super::taints::unmarked;
use super::{Memory, MemoryError};

/// The share of the words of two entries, from which on one is the other one edited.
const LIKE: f32 = 0.5;
/// Pairs of entries that are compared word by word at one look, at most; beyond it the place in the file decides.
const COMPARED: usize = 2_000;
/// Words of an entry that are compared, at most.
const WORDS: usize = 200;

/// How an entry was brought back.
enum Restored {
    /// It was in the file already.
    There,
    /// It was in the archive.
    Moved,
    /// It was nowhere in the file.
    Added,
    /// It took the place of what it was edited into.
    InPlaceOf(Entry),
}

impl Memory {
    /// Brings back an entry that vanished or was edited outside of Tiller, or with `all` those that were found so at the same
    /// time. Returns a sentence.
    ///
    /// # Errors
    /// When it was brought back or put away already, or the file cannot be written.
    pub fn restore(&self, id: i64, all: bool) -> Result<String, MemoryError> {
        let changes = self.changes(&[ChangeState::Outside])?;
        let gone = || MemoryError::Refused("this entry is not missing any more".into());
        let chosen = changes.iter().find(|c| c.id == id).ok_or_else(gone)?;
        let with = |c: &&MemoryChange| c.id == id || (all && c.time == chosen.time);
        let (mut restored, mut there) = (0, 0);
        for change in changes.iter().filter(with) {
            match self.restore_one(change)? {
                Restored::There => there += 1,
                _ => restored += 1,
            }
        }
        let label = self.target_of(&chosen.path).map_or("", MemoryTarget::label);
        let entries = |n: usize| if n == 1 { "1 entry".to_owned() } else { format!("{n} entries") };
        Ok(match (restored, there) {
            (1, 0) => format!("brought back to {label}"),
            (0, 1) => format!("it is already in {label}"),
            (n, 0) => format!("{} brought back", entries(n)),
            (n, m) => format!("{} brought back, {} already there", entries(n), entries(m)),
        })
    }

    fn restore_one(&self, change: &MemoryChange) -> Result<Restored, MemoryError> {
        let store = self.store.get().ok_or_else(|| MemoryError::Store("there is no database".into()))?;
        let (Some(target), Some(line)) = (self.target_of(&change.path), change.removed.as_deref()) else {
            return Err(MemoryError::Refused(format!("{} is not in use here", change.path)));
        };
        let became = Some(change.details.became.as_str()).filter(|line| !line.is_empty()).map(Entry::of_line);
        let entry = Entry::of_line(line);
        let edit = |document: &mut Document| Ok(put_back(document, line, &entry, became.as_ref()));
        self.change(target, edit, |restored| {
            let mut steps = Vec::new();
            if matches!(restored, Restored::Added | Restored::InPlaceOf(_)) {
                let (from, details) = origin_of(store, &change.path, &entry)?;
                let removed = match restored {
                    Restored::InPlaceOf(edited) => Some(edited.recorded()),
                    _ => None,
                };
                steps.push(self.gives_up_undone());
                steps.push(RecordStep::Add(Box::new(MemoryChange {
                    id: 0,
                    time: self.clock.now(),
                    removed,
                    added: Some(line.to_owned()),
                    state: ChangeState::Done,
                    from,
                    details,
                    ..change.clone()
                })));
            }
            steps.push(RecordStep::Set { id: change.id, state: ChangeState::Declined });
            Ok(steps)
        })
    }
}

/// Puts an entry back, unless its text is there beside what it `became`: an edited one in the place of that, if that has its
/// words.
fn put_back(document: &mut Document, line: &str, entry: &Entry, became: Option<&Entry>) -> Restored {
    if is_back(document, line) {
        return Restored::There;
    }
    let text = unmarked(&entry.text).0;
    let same: Vec<Entry> = document.entries().filter(|own| unmarked(&own.text).0 == text).cloned().collect();
    // What it became stays where the user has written the old text again.
    if same.iter().any(|own| !own.archived && Some(own) != became) {
        return Restored::There;
    }
    // Another entry that was written at its place stays.
    if let Some(edited) = became.filter(|edited| likeness(&entry.text, &edited.text) >= LIKE)
        && document.replace(edited, entry)
    {
        return Restored::InPlaceOf(edited.clone());
    }
    if same.iter().any(|own| !own.archived) {
        return Restored::There;
    }
    if let Some(archived) = same.first() {
        document.archive(archived, false);
        return Restored::Moved;
    }
    document.add(entry, None);
    Restored::Added
}

/// The origin of what is brought back: it is as trusted as it was. The lines of a text that is no entry were recorded one by
/// one, and the least trusted of them counts.
fn origin_of(store: &Store, path: &str, entry: &Entry) -> Result<(Provenance, ChangeDetails), MemoryError> {
    let last = |entry: &Entry| -> Result<Option<MemoryChange>, MemoryError> {
        let recorded = store.memory_changes().of_lines(path, &entry.forms())?;
        let mut done = recorded.into_iter().rev().filter(|c| c.state == ChangeState::Done);
        Ok(done.find(|c| entry.is_in(&c.added)))
    };
    if let Some(change) = last(entry)? {
        return Ok((change.from, change.details));
    }
    let lines: Vec<Entry> = entry.line().lines().map(Entry::of_line).collect();
    let found: Vec<Option<MemoryChange>> = lines.iter().map(last).collect::<Result<_, _>>()?;
    let least = found.into_iter().flatten().map(|change| change.from).max_by_key(|from| from.taint);
    let own = Provenance { taint: Taint::Person, ..Provenance::default() };
    Ok((least.unwrap_or(own), ChangeDetails::default()))
}

/// An entry outside of the archive, with the last entry before it that both states of the file have.
struct Placed<'a> {
    line: String,
    entry: &'a Entry,
    after: Option<String>,
}

/// Which of the `gone` lines of entries became which new entry: by their words, or as the only ones that went and came at one
/// place. `own`: lines that Tiller wrote itself.
pub(super) fn replaced_entries(
    before: &Document,
    now: &Document,
    gone: &[String],
    own: &HashSet<String>,
) -> HashMap<String, String> {
    let lines = |document: &Document| document.entries().map(Entry::line).collect::<HashSet<String>>();
    let (was, is) = (lines(before), lines(now));
    // What is only in the archive now was moved there.
    let gone: HashSet<&str> = gone.iter().map(String::as_str).collect();
    let mut lost = placed(before, &is);
    lost.retain(|p| gone.contains(p.line.as_str()) && !is.contains(&p.line));
    let mut came = placed(now, &was);
    came.retain(|p| !was.contains(&p.line) && !own.contains(&p.line));
    let (lost_at, came_at) = (by_place(&lost), by_place(&came));
    let few = lost.len().saturating_mul(came.len()) <= COMPARED;
    let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
    for (n, old) in lost.iter().enumerate() {
        let at = old.after.as_deref();
        let alone = match (lost_at.get(&at).map(Vec::as_slice), came_at.get(&at).map(Vec::as_slice)) {
            (Some([_]), Some([m])) => Some(*m),
            _ => None,
        };
        if !few {
            pairs.extend(alone.map(|m| (0.0, n, m)));
            continue;
        }
        for (m, new) in came.iter().enumerate() {
            let like = likeness(&old.entry.text, &new.entry.text);
            if like >= LIKE || alone == Some(m) {
                pairs.push((like, n, m));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut taken, mut found) = (HashSet::new(), HashMap::new());
    for (_, n, m) in pairs {
        if !found.contains_key(&lost[n].line) && taken.insert(m) {
            found.insert(lost[n].line.clone(), came[m].line.clone());
        }
    }
    found
}

/// The entries outside of the archive. `both`: the lines of the other state of the file.
fn placed<'a>(document: &'a Document, both: &HashSet<String>) -> Vec<Placed<'a>> {
    let mut after = None;
    let mut all = Vec::new();
    for entry in document.entries().filter(|entry| !entry.archived) {
        let line = entry.line();
        if both.contains(&line) {
            after = Some(line.clone());
        }
        all.push(Placed { line, entry, after: after.clone() });
    }
    all
}

/// The numbers of entries by the entry that they stand behind.
fn by_place<'p>(all: &'p [Placed<'_>]) -> HashMap<Option<&'p str>, Vec<usize>> {
    let mut found: HashMap<Option<&str>, Vec<usize>> = HashMap::new();
    for (n, entry) in all.iter().enumerate() {
        found.entry(entry.after.as_deref()).or_default().push(n);
    }
    found
}

/// The share of the words of two texts that are the same and in the same order, from 0 to 1. Of a long text only the first words
/// count.
fn likeness(one: &str, other: &str) -> f32 {
    TextDiff::from_slices(&words(one), &words(other)).ratio()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().take(WORDS).collect()
}
