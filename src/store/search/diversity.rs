//! Variety of the first hits: an entry that says the same as a better one moves down (maximal marginal relevance).

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::error::Result;
use crate::handles::Search;
use crate::search::collect::EntryText;
use crate::search::rank::Scored;
use crate::search::statistics::jaccard;
use crate::search::stem::words;
use crate::search::words::is_stop;

/// Hits that are compared with each other.
const COMPARED: usize = 40;
/// Bytes of a text that are compared.
const TEXT: usize = 4 << 10;
/// Share of the score that an entry with the words of a better one loses.
const LIKENESS: f32 = 0.6;
/// Entries that share fewer of their words are different.
const ALIKE: f32 = 0.5;

impl Search<'_> {
    /// The same entries, the first of them varied; and the texts that were read for it.
    pub(crate) fn varied(&self, scored: &[Scored]) -> Result<(Vec<Scored>, HashMap<Uuid, EntryText>)> {
        let (head, rest) = scored.split_at(scored.len().min(COMPARED));
        let mut read = HashMap::with_capacity(head.len());
        for entry in head {
            let whole = EntryText::read(self.store, entry.entry)?;
            read.extend(whole.map(|whole| (entry.entry, whole)));
        }
        let order = {
            // Removed or damaged since: like no other.
            let text = |entry: &Scored| read.get(&entry.entry).map_or("", |whole| whole.text.as_str());
            vary(&head.iter().map(|entry| (entry.score, text(entry))).collect::<Vec<_>>())
        };
        let mut varied = Vec::with_capacity(scored.len());
        varied.extend(order.into_iter().filter_map(|at| head.get(at).cloned()));
        varied.extend_from_slice(rest);
        Ok((varied, read))
    }
}

/// The places of texts with their scores, given best first: one that says the same as a better one moves down. Only the first 40
/// are compared.
pub fn vary(scored: &[(f32, &str)]) -> Vec<usize> {
    let compared = scored.iter().take(COMPARED).enumerate();
    let mut left: Vec<(usize, f32, HashSet<u64>, f32)> =
        compared.map(|(at, (score, text))| (at, *score, word_set(text), 0.0)).collect();
    let mut order = Vec::with_capacity(scored.len());
    while !left.is_empty() {
        let value = |(_, score, _, like): &(usize, f32, HashSet<u64>, f32)| score * (1.0 - LIKENESS * like);
        // The first of equal ones.
        let best =
            (1..left.len()).fold(0, |best, at| if value(&left[at]) > value(&left[best]) { at } else { best });
        let (at, _, set, _) = left.remove(best);
        for (_, _, other, like) in &mut left {
            let same = likeness(&set, other);
            *like = like.max(if same > ALIKE { same } else { 0.0 });
        }
        order.push(at);
    }
    order.extend(order.len()..scored.len());
    order
}

/// Hashes of the different words of a text.
fn word_set(text: &str) -> HashSet<u64> {
    let text = &text[..text.floor_char_boundary(TEXT)];
    let all = words(text).map(|(a, b)| text[a..b].to_lowercase());
    all.filter(|w| !is_stop(w)).map(|w| hash(&w)).collect()
}

fn hash(word: &str) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(word)
}

/// The share of common words.
#[allow(clippy::cast_possible_truncation, reason = "a share is rounded")]
fn likeness(a: &HashSet<u64>, b: &HashSet<u64>) -> f32 {
    jaccard(a.intersection(b).count(), a.len(), b.len()) as f32
}
