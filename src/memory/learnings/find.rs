//! Which learnings concern a failed call.

use tiller_protocol::{FailureKind, Learning};

use super::words::{likeness, words};

/// Least likeness of the errors.
const ALIKE: f64 = 0.72;

/// How well a learning fits a failure, from 0 (not at all) to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Relevance(pub f64);

impl Relevance {
    /// Whether it is attached.
    pub fn fits(self) -> bool {
        self.0 >= ALIKE
    }
}

/// How well a learning fits a failure of the same tool. `output`: the whole result, in which names of the cause may stand.
pub fn relevance(learning: &Learning, failed: &FailureKind, output: &str) -> Relevance {
    let known = &learning.kind;
    if known.tool != failed.tool || (!known.subject.is_empty() && known.subject != failed.subject) {
        return Relevance(0.0);
    }
    if known.error_type.is_empty() {
        // It was saved for any error of the command.
        return Relevance(if known.subject.is_empty() { 0.0 } else { 0.75 });
    }
    if failed.error_type.is_empty() {
        return Relevance(0.0);
    }
    let (a, b) = (words(&known.error_type), words(&failed.error_type));
    let (codes_a, codes_b) = (codes(&known.error_type), codes(&failed.error_type));
    if !codes_a.is_empty() && !codes_b.is_empty() && codes_a != codes_b {
        return Relevance(0.0);
    }
    let mut score = likeness(&a, &b);
    if known.error_type == failed.error_type {
        score = 1.0;
    }
    // Names tell causes apart: another missing module is another cause.
    if !known.details.is_empty() {
        let output = output.to_lowercase();
        let common =
            known.details.iter().filter(|d| failed.details.contains(d) || has_word(&output, d)).count();
        let named: Vec<&String> =
            known.details.iter().filter(|d| has_word(&learning.fix.to_lowercase(), d)).collect();
        let essential = named.iter().all(|d| failed.details.contains(d) || has_word(&output, d));
        if common == 0 || !essential {
            return Relevance(score * 0.5);
        }
        score = score.max(0.5 + score / 2.0);
    }
    Relevance(score.min(1.0))
}

/// `e0432`, `ts2345`: words of letters and then digits.
fn codes(error_type: &str) -> Vec<String> {
    words(error_type)
        .into_iter()
        .filter(|w| {
            let letters = w.chars().take_while(char::is_ascii_alphabetic).count();
            letters > 0 && letters < w.len() && w.chars().skip(letters).all(|c| c.is_ascii_digit())
        })
        .collect()
}

/// Whether `word` stands in `text` with no letter or digit beside it.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    text.match_indices(word).any(|(at, found)| {
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !joins(text[..at].chars().next_back()) && !joins(text[at + found.len()..].chars().next())
    })
}
