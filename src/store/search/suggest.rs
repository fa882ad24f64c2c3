//! "Did you mean": the known word that is nearest to one that nothing contains.

use rusqlite::{Connection, params};
use strsim::osa_distance;

use crate::error::Result;

/// Letters of a word that is compared.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// Words of the index that are compared at most: the most frequent.
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

/// A word without doubled letters: a letter that is typed once or twice is the commonest error.
fn undoubled(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    letters.dedup();
    letters.into_iter().collect()
}

/// Of known words, each with its frequency, those near to this one: nearest first, then those that differ in doubled letters
/// alone, then the most frequent. The word is in lower case; one that is too short or is no word has none.
pub fn nearest(word: &str, known: impl Iterator<Item = (String, i64)>) -> Vec<String> {
    if !kept(word) {
        return Vec::new();
    }
    let (most, plain) = (errors(word), undoubled(word));
    let mut found: Vec<(usize, bool, std::cmp::Reverse<i64>, String)> = known
        .filter_map(|(other, n)| {
            let far = osa_distance(word, &other);
            let near = (1..=most).contains(&far);
            near.then(|| (far, undoubled(&other) != plain, std::cmp::Reverse(n), other))
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
        "SELECT word, n FROM vocabulary WHERE word >= ?1 AND word < ?2 AND length(word) BETWEEN ?3 AND ?4
         ORDER BY n DESC LIMIT ?5",
    )?;
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let (least, longest) = (number(letters.saturating_sub(most)), number(letters + most));
    // The first letter is seldom wrong.
    for (from, to) in [(first, end), ('\0', char::MAX)] {
        let rows = statement
            .query_map(params![from.to_string(), to.to_string(), least, longest, COMPARED], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let found = nearest(word, rows.into_iter());
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_that_was_typed_once_comes_before_a_more_frequent_word() {
        let known = |all: &[(&str, i64)]| {
            let all: Vec<(String, i64)> = all.iter().map(|(word, n)| ((*word).to_owned(), *n)).collect();
            all.into_iter()
        };
        let all = [("tune", 90), ("tunnel", 2), ("tuned", 50), ("channel", 80)];
        assert_eq!(nearest("tunel", known(&all)), ["tunnel", "tune", "tuned"]);
        // A nearer word is the first all the same.
        assert_eq!(nearest("commitees", known(&[("committees", 1), ("committee", 9)]))[0], "committees");
        assert_eq!(nearest("tun", known(&all)), Vec::<String>::new());
    }
}
