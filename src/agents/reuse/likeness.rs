//! How alike two tasks are, by their words.

use std::collections::BTreeSet;

use tiller_store::search::statistics::jaccard;
use tiller_store::search::stem::{stem, words};
use tiller_store::search::words::is_stop;

/// Words that turn a task into another one. They must be the same in both.
const TURNING: &[&str] = &[
    "not", "no", "never", "without", "except", "only", "all", "every", "each", "none", "any", "first",
    "last", "before", "after", "instead", "but", "unless", "if", "don't", "dont", "nicht", "kein", "keine",
    "ohne", "nur",
];

/// Words that say nothing of a task.
const POLITE: &[&str] = &["please", "kindly", "bitte", "can", "could", "would", "you", "thanks"];

/// From 0 (other tasks) to 1 (the same words in the same order). Names, numbers, paths, code and words that turn the sense must
/// be the same, in the same order; else it is 0.
pub(crate) fn likeness(a: &str, b: &str) -> f64 {
    if a.split_whitespace().eq(b.split_whitespace()) {
        return 1.0;
    }
    if exact(a) != exact(b) {
        return 0.0;
    }
    let (a, b) = (meaning(a), meaning(b));
    let pairs = |list: &[String]| -> BTreeSet<(String, String)> {
        list.windows(2).map(|two| (two[0].clone(), two[1].clone())).collect()
    };
    let single = shared(&a.iter().collect(), &b.iter().collect());
    // The order of the words distinguishes subject and object.
    if a.len() < 2 || b.len() < 2 { single } else { (single + shared(&pairs(&a), &pairs(&b))) / 2.0 }
}

/// What both have as a share of what either has.
fn shared<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
    jaccard(a.intersection(b).count(), a.len(), b.len())
}

/// The parts of a text that must not differ, in their order: names, numbers, paths, code, and words that turn the sense.
fn exact(text: &str) -> Vec<String> {
    let trim = |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '(' | ')' | '[' | ']' | '"' | '\'');
    let tokens =
        text.split_whitespace().map(|token| token.trim_matches(trim)).filter(|token| !token.is_empty());
    let is_name = |token: &str| {
        let plain = token.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '\u{2019}'));
        !plain && token.chars().any(char::is_alphanumeric) || token.chars().skip(1).any(char::is_uppercase)
    };
    tokens
        .filter_map(|token| {
            let small = token.to_lowercase();
            if TURNING.contains(&small.as_str()) {
                Some(small)
            } else {
                is_name(token).then(|| token.to_owned())
            }
        })
        .collect()
}

/// The stems of the words that carry meaning, in their order.
fn meaning(text: &str) -> Vec<String> {
    words(text)
        .map(|(from, to)| text[from..to].to_lowercase())
        .filter(|word| !is_stop(word) && !POLITE.contains(&word.as_str()))
        .map(|word| stem(&word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_task_in_other_words_is_alike_and_another_task_is_not() {
        let alike = [
            ("Count the functions in src/a.rs", "count  the functions in src/a.rs"),
            ("Count the functions in src/a.rs", "Please count the functions of src/a.rs."),
            (
                "List all public functions of the parser and say what each one does",
                "List all the public functions in the parser, and say what each does",
            ),
        ];
        for (a, b) in alike {
            assert!(likeness(a, b) >= 0.8, "{a} / {b}: {}", likeness(a, b));
        }
        let other = [
            ("Count the functions in src/a.rs", "Count the functions in src/b.rs"),
            ("Delete the old tests", "Do not delete the old tests"),
            ("Does the parser call the lexer", "Does the lexer call the parser"),
            ("Move a.rs to b.rs", "Move b.rs to a.rs"),
            ("Fix issue 17", "Fix issue 18"),
            ("Rename FooBar everywhere", "Rename FooBaz everywhere"),
            ("Explain the retry logic of the client", "Test the retry logic of the client"),
            ("Explain `parse`", "Explain `print`"),
            ("Summarise the design of the store", "Summarise the design of the search"),
        ];
        for (a, b) in other {
            assert!(likeness(a, b) < 0.8, "{a} / {b}: {}", likeness(a, b));
            assert!((likeness(a, b) - likeness(b, a)).abs() < 1e-9);
        }
        assert!((likeness("", "") - 1.0).abs() < 1e-9 && likeness("", "word") < 0.5);
    }
}
