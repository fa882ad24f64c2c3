//! Variety of the first hits: an entry that says the same as a better one moves down (maximal marginal relevance).

use std::collections::HashSet;

use rusqlite::OptionalExtension;
use uuid::Uuid;

use crate::error::Result;
use crate::handles::Search;
use crate::search::rank::Scored;
use crate::search::stem::words;
use crate::search::words::is_stop;
use crate::tree::entries::{COLUMNS, Raw};

/// Hits that are compared with each other.
const COMPARED: usize = 40;
/// Bytes of a text that are compared.
const TEXT: usize = 4 << 10;
/// Share of the score that an entry with the words of a better one loses.
const LIKENESS: f32 = 0.6;
/// Entries that share fewer of their words are different.
const ALIKE: f32 = 0.5;

impl Search<'_> {
    /// The same entries, the first of them varied.
    pub(crate) fn varied(&self, scored: &[Scored]) -> Result<Vec<Scored>> {
        let (head, rest) = scored.split_at(scored.len().min(COMPARED));
        let mut left = Vec::with_capacity(head.len());
        for entry in head {
            left.push((entry.clone(), self.word_set(entry.entry)?, 0.0f32));
        }
        let mut order = Vec::with_capacity(scored.len());
        while !left.is_empty() {
            let value =
                |(entry, _, like): &(Scored, HashSet<u64>, f32)| entry.score * (1.0 - LIKENESS * like);
            // The first of equal ones.
            let best = (1..left.len())
                .fold(0, |best, at| if value(&left[at]) > value(&left[best]) { at } else { best });
            let (entry, set, _) = left.remove(best);
            for (_, other, like) in &mut left {
                let same = likeness(&set, other);
                *like = like.max(if same > ALIKE { same } else { 0.0 });
            }
            order.push(entry);
        }
        order.extend_from_slice(rest);
        Ok(order)
    }

    /// Hashes of the different words of an entry.
    fn word_set(&self, entry: Uuid) -> Result<HashSet<u64>> {
        let raw = self.store.read(|conn| {
            let found = conn
                .prepare_cached(&format!("SELECT {COLUMNS} FROM entries WHERE id = ?1"))?
                .query_row([entry], Raw::from_row)
                .optional()?;
            Ok(found)
        })?;
        // Removed or damaged since: like no other.
        let Some(entry) = raw.and_then(|raw| raw.decode().ok()) else { return Ok(HashSet::new()) };
        let text = entry.body.search_text();
        let text = &text[..text.floor_char_boundary(TEXT)];
        Ok(words(text)
            .map(|(a, b)| text[a..b].to_lowercase())
            .filter(|w| !is_stop(w))
            .map(|w| hash(&w))
            .collect())
    }
}

fn hash(word: &str) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(word)
}

/// The share of common words.
#[allow(clippy::cast_precision_loss, reason = "a share is rounded")]
fn likeness(a: &HashSet<u64>, b: &HashSet<u64>) -> f32 {
    let both = a.intersection(b).count();
    let all = a.len() + b.len() - both;
    if all == 0 { 0.0 } else { both as f32 / all as f32 }
}
