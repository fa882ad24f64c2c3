//! The three-way merge of a memory file, by entry.

use std::collections::HashMap;

use super::document::{Document, Entry};

/// What was changed from `base` to `mine`, done to `theirs`. Other text than entries is always that of `theirs`. An entry
/// that both sides changed is there twice: no side's text is lost.
pub fn merge(base: &Document, mine: &Document, theirs: &Document) -> Document {
    let mut out = theirs.clone();
    let counts = |doc: &Document| {
        let mut counts: HashMap<Entry, usize> = HashMap::new();
        doc.entries().for_each(|entry| *counts.entry(entry.clone()).or_default() += 1);
        counts
    };
    let (mut before, mut after) = (counts(base), counts(mine));
    let mut before_of = None::<Entry>;
    let mut added: Vec<(Entry, Option<Entry>)> = Vec::new();
    for entry in mine.entries() {
        match before.get_mut(entry).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => added.push((entry.clone(), before_of.clone())),
        }
        before_of = Some(entry.clone());
    }
    for entry in base.entries() {
        match after.get_mut(entry).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => {
                out.remove(entry);
            }
        }
    }
    for (entry, before) in added {
        // The same entry of both sides is one.
        if !theirs.contains(&entry) || base.contains(&entry) {
            out.add(&entry, before.as_ref().filter(|before| before.archived == entry.archived));
        }
    }
    out
}
