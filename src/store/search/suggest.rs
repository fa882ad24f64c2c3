//! "Did you mean": the word of the index that is nearest to one that nothing contains.

use rusqlite::{Connection, params};
use strsim::osa_distance;

use crate::error::Result;

/// Letters of a word that is compared.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// Words of the index that are compared at most.
const COMPARED: i64 = 20_000;

/// Whether the vocabulary keeps this word of an entry, in lower case.
pub(crate) fn kept(word: &str) -> bool {
    LETTERS.contains(&word.len()) && word.chars().all(char::is_alphabetic)
}

/// Words near to this one, nearest and most frequent first.
pub(crate) fn near(index: &Connection, word: &str) -> Result<Vec<String>> {
    let letters = word.chars().count();
    let Some(first) = word.chars().next().filter(|_| kept(word)) else { return Ok(Vec::new()) };
    let most = (letters / 4).max(1);
    let end = char::from_u32(u32::from(first) + 1).unwrap_or(first);
    let mut statement = index.prepare_cached(
        "SELECT word, n FROM vocabulary WHERE word >= ?1 AND word < ?2 AND length(word) BETWEEN ?3 AND ?4 LIMIT ?5",
    )?;
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let (least, longest) = (number(letters.saturating_sub(most)), number(letters + most));
    let mut rows = statement.query(params![first.to_string(), end.to_string(), least, longest, COMPARED])?;
    let mut found: Vec<(usize, std::cmp::Reverse<i64>, String)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (other, n): (String, i64) = (row.get(0)?, row.get(1)?);
        let far = osa_distance(word, &other);
        if (1..=most).contains(&far) {
            found.push((far, std::cmp::Reverse(n), other));
        }
    }
    found.sort();
    found.truncate(8);
    Ok(found.into_iter().map(|(.., word)| word).collect())
}
