//! "Did you mean": the known word that is nearest to one that nothing contains.

use rusqlite::{Connection, params};
use strsim::osa_distance;

use crate::error::Result;

/// Letters of a word that is compared.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// Words of the index that are compared at most.
const COMPARED: i64 = 20_000;
/// Near words that are returned at most.
const NEAREST: usize = 8;

/// Whether the vocabulary keeps this word of an entry, in lower case.
pub(crate) fn kept(word: &str) -> bool {
    LETTERS.contains(&word.len()) && word.chars().all(char::is_alphabetic)
}

/// Typing errors that a word may have.
fn errors(word: &str) -> usize {
    (word.chars().count() / 4).max(1)
}

/// Of known words, each with its frequency, those near to this one: nearest and most frequent first. The word is in lower
/// case; one that is too short or is no word has none.
pub fn nearest(word: &str, known: impl Iterator<Item = (String, i64)>) -> Vec<String> {
    if !kept(word) {
        return Vec::new();
    }
    let most = errors(word);
    let mut found: Vec<(usize, std::cmp::Reverse<i64>, String)> = known
        .filter_map(|(other, n)| {
            let far = osa_distance(word, &other);
            (1..=most).contains(&far).then_some((far, std::cmp::Reverse(n), other))
        })
        .collect();
    found.sort();
    found.truncate(NEAREST);
    found.into_iter().map(|(.., word)| word).collect()
}

/// Words of the index near to this one, nearest and most frequent first.
pub(crate) fn near(index: &Connection, word: &str) -> Result<Vec<String>> {
    let Some(first) = word.chars().next().filter(|_| kept(word)) else { return Ok(Vec::new()) };
    let (letters, most) = (word.chars().count(), errors(word));
    let end = char::from_u32(u32::from(first) + 1).unwrap_or(first);
    let mut statement = index.prepare_cached(
        "SELECT word, n FROM vocabulary WHERE word >= ?1 AND word < ?2 AND length(word) BETWEEN ?3 AND ?4 LIMIT ?5",
    )?;
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let (least, longest) = (number(letters.saturating_sub(most)), number(letters + most));
    let rows = statement
        .query_map(params![first.to_string(), end.to_string(), least, longest, COMPARED], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    Ok(nearest(word, rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter()))
}
