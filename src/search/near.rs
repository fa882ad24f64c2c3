//! Words that mean nearly the same as a word of a query, by a table of vectors: an entry with one of them is found as if it had
//! a part of the word itself.

use std::collections::HashMap;

use tiller_store::search::Near;
use tiller_store::search::statistics::mean_and_deviation;
use tiller_store::search::stem::stem;

use crate::embedder::{content_words, cosine};
use crate::table::Table;

/// Words of the index that are compared.
pub(crate) const COMPARED: u32 = 20_000;
/// Near words of one word.
const MOST: usize = 3;
/// Least likeness of a near word, and how many standard deviations above that of all words it is: a table that finds all words
/// alike has no near ones.
const LEAST: f32 = 0.5;
const CLEAR: f32 = 4.0;
/// Letters of a word that has near ones.
const LETTERS: usize = 3;
/// Words whose near ones are kept.
const KEPT: usize = 2_000;

/// The words of an index with their vectors.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    words: Vec<String>,
    /// All of one length, one after the other.
    vectors: Vec<u8>,
    /// Near words that were looked for.
    known: HashMap<String, Vec<String>>,
    /// Entries of the index when it was read.
    pub(crate) entries: u32,
}

impl Vocabulary {
    /// Of these words those that are in the table.
    pub(crate) fn of(table: &Table, words: Vec<String>, entries: u32) -> Self {
        let mut made = Self { entries, ..Self::default() };
        for word in words {
            let vector = table.packed(&word, &|_| 1.0);
            if !vector.is_empty() {
                made.words.push(word);
                made.vectors.extend(vector);
            }
        }
        made
    }

    /// Whether it is to be read again: the index has a tenth more entries now, or fewer.
    pub(crate) fn is_old(&self, entries: u32) -> bool {
        entries < self.entries || entries > self.entries + self.entries / 10 + 100 || self.words.is_empty()
    }

    /// The near words of each word of a text.
    pub(crate) fn near(&mut self, table: &Table, text: &str) -> Near {
        let (mut near, mut asked) = (Near::default(), Vec::new());
        for word in content_words(text) {
            if word.chars().count() < LETTERS || !word.chars().all(char::is_alphabetic) {
                continue;
            }
            asked.push(word);
        }
        if self.known.len() + asked.len() > KEPT {
            self.known.clear();
        }
        let missing: Vec<&String> = asked.iter().filter(|word| !self.known.contains_key(*word)).collect();
        let look_up = |words: &[&String]| words.iter().map(|w| self.look_up(table, w)).collect::<Vec<_>>();
        // Each word is compared with all others: half of them on another thread.
        let (some, others) = missing.split_at(missing.len() / 2);
        let found = std::thread::scope(|scope| {
            let beside = (!some.is_empty()).then(|| scope.spawn(|| look_up(some)));
            let last = look_up(others);
            let first = beside.map_or_else(Vec::new, |beside| beside.join().unwrap_or_default());
            // After a panic those words have no near ones.
            let lost = some.len() - first.len();
            [first, vec![Vec::new(); lost], last].concat()
        });
        let found: Vec<(String, Vec<String>)> = missing.into_iter().cloned().zip(found).collect();
        self.known.extend(found);
        for word in asked {
            if let Some(found) = self.known.get(&word).filter(|f| !f.is_empty()) {
                near.insert(word, found.clone());
            }
        }
        near
    }

    fn look_up(&self, table: &Table, word: &str) -> Vec<String> {
        let wanted = table.packed(word, &|_| 1.0);
        if wanted.is_empty() || self.words.is_empty() {
            return Vec::new();
        }
        let all: Vec<f32> = self.vectors.chunks_exact(wanted.len()).map(|v| cosine(&wanted, v)).collect();
        let (mean, deviation) = mean_and_deviation(&all);
        let least = LEAST.max(mean + CLEAR * deviation.max(0.01));
        let mut found: Vec<usize> = (0..all.len()).filter(|n| all[*n] >= least).collect();
        found.sort_by(|a, b| all[*b].total_cmp(&all[*a]).then(a.cmp(b)));
        let own = stem(word);
        let others = found.into_iter().map(|n| &self.words[n]).filter(|w| stem(w) != own);
        others.take(MOST).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::written;

    #[test]
    fn words_of_one_direction_are_near_and_forms_of_one_word_are_not_listed() {
        // Four pairs of words, each pair in a direction of its own, and many words in others.
        let mut rows: Vec<(String, Vec<f32>)> = Vec::new();
        for n in 0..60 {
            let mut vector = vec![0.0; 64];
            vector[n] = 1.0;
            rows.push((
                format!("word{}", char::from(b'a' + (n % 26) as u8).to_string().repeat(n / 26 + 1)),
                vector,
            ));
        }
        for (word, at) in [("children", 60), ("kids", 60), ("kid", 60), ("car", 61), ("automobile", 61)] {
            let mut vector = vec![0.0; 64];
            (vector[at], vector[63]) = (1.0, 0.1);
            rows.push((word.into(), vector));
        }
        let table = Table::read(&written(64, rows.iter().map(|(w, v)| (w.as_str(), v.as_slice())))).unwrap();
        let mut words = Vocabulary::of(&table, rows.iter().map(|(w, _)| w.clone()).collect(), 10);
        let near = words.near(&table, "where did the kids go by car, and why 42 x");
        assert_eq!(near.get("kids"), Some(&vec!["children".to_owned()]));
        assert_eq!(near.get("car"), Some(&vec!["automobile".to_owned()]));
        assert_eq!(near.len(), 2, "{near:?}");
        assert!(!words.is_old(50) && words.is_old(9) && words.is_old(200));
        // All words alike: none is near.
        let alike = rows.iter().map(|(w, _)| (w.as_str(), &[1.0f32, 0.5][..]));
        let table = Table::read(&written(2, alike)).unwrap();
        let mut words = Vocabulary::of(&table, rows.iter().map(|(w, _)| w.clone()).collect(), 10);
        assert!(words.near(&table, "kids by car").is_empty());
    }
}
