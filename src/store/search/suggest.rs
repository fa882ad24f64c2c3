//! "Did you mean": the known word that is nearest to one that nothing contains.

use rusqlite::{Connection, params};
use strsim::osa_distance;

use crate::error::Result;
use crate::search::lookup::Cancel;

/// Letters of a word that is compared.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
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

/// The letters of a word as a set, of which some share a place.
fn letters(word: &str) -> u64 {
    word.chars().fold(0, |all, letter| all | 1 << (u32::from(letter) % 64))
}

/// Of known words, each with its frequency, those near to this one: nearest first, then those that differ in doubled letters
/// alone, then the most frequent. The word is in lower case; one that is too short or is no word has none.
pub fn nearest(word: &str, known: impl Iterator<Item = (String, i64)>) -> Vec<String> {
    if !kept(word) {
        return Vec::new();
    }
    let (most, plain, has) = (errors(word), undoubled(word), letters(word));
    // An error adds one letter at most, and takes one away: most words need no comparison letter by letter.
    let alike = |other: &str| {
        let other = letters(other);
        [has & !other, other & !has].iter().all(|only| only.count_ones() as usize <= most)
    };
    let mut found: Vec<(usize, bool, std::cmp::Reverse<i64>, String)> = known
        .filter(|(other, _)| alike(other))
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

/// Words of the index near to this one, nearest and most frequent first. It may read the whole vocabulary, once and in its order.
///
/// # Errors
/// When the index cannot be read, or the search is cancelled.
pub(crate) fn near(index: &Connection, word: &str, cancel: &Cancel) -> Result<Vec<String>> {
    let Some(first) = word.chars().next().filter(|_| kept(word)) else { return Ok(Vec::new()) };
    let (letters, most) = (word.chars().count(), errors(word));
    let end = char::from_u32(u32::from(first) + 1).unwrap_or(first);
    let mut statement = index.prepare_cached(
        "SELECT word, n FROM vocabulary WHERE word >= ?1 AND word < ?2 AND length(word) BETWEEN ?3 AND ?4",
    )?;
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let (least, longest) = (number(letters.saturating_sub(most)), number(letters + most));
    // The first letter is seldom wrong.
    for (from, to) in [(first, end), ('\0', char::MAX)] {
        let mut rows = statement.query(params![from.to_string(), to.to_string(), least, longest])?;
        let mut next = || -> Result<Option<(String, i64)>> {
            cancel.check()?;
            let row = rows.next()?;
            Ok(row.map(|row| Ok::<_, rusqlite::Error>((row.get(0)?, row.get(1)?))).transpose()?)
        };
        let mut ended = Ok(());
        let known = std::iter::from_fn(|| {
            next().unwrap_or_else(|error| {
                ended = Err(error);
                None
            })
        });
        let found = nearest(word, known);
        ended?;
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

    /// The vocabulary is read in its order, without a limit that would need it sorted, and no longer than the search goes on.
    #[test]
    fn a_rare_word_of_a_large_vocabulary_is_found_and_a_cancelled_search_reads_no_more() {
        let index = Connection::open_in_memory().unwrap();
        index
            .execute_batch(
                "CREATE TABLE vocabulary(word TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
                 WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c WHERE x < 25000)
                 INSERT INTO vocabulary SELECT printf('p%06d', x), 9 FROM c;
                 INSERT INTO vocabulary VALUES('parsers', 1)",
            )
            .unwrap();
        for word in ["parsrs", "arsers", "barsers"] {
            assert_eq!(near(&index, word, &Cancel::default()).unwrap(), ["parsers"], "{word}");
        }
        let cancel = Cancel::new();
        cancel.cancel();
        assert_eq!(near(&index, "parsrs", &cancel), Err(crate::StoreError::Cancelled));
    }

    /// Comparing the sets of letters first leaves no near word out.
    #[test]
    fn a_word_with_as_many_errors_as_it_may_have_is_near() {
        let word = "straßenbeleuchtung";
        let all: Vec<char> = word.chars().collect();
        for at in 0..all.len() - 1 {
            let mut others = vec![all.clone(); 4];
            others[0].remove(at);
            others[1].insert(at, 'ü');
            others[2][at] = 'Ж';
            others[3].swap(at, at + 1);
            for other in others.into_iter().filter(|other| *other != all) {
                let other: String = other.into_iter().collect();
                assert_eq!(nearest(word, std::iter::once((other.clone(), 1))), [other]);
            }
        }
    }
}
