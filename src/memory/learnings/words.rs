//! Words of texts, and how many two texts share.

use std::collections::BTreeSet;

/// Most words of a text that are compared.
const MOST: usize = 60;

/// The words of a text in small letters; what replaces paths and numbers is left out.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '<' | '>')))
        .filter(|w| !w.is_empty() && !w.starts_with('<') && w.chars().any(char::is_alphanumeric))
        .map(str::to_lowercase)
        .take(MOST)
        .collect()
}

/// The Dice coefficient of two sets of words, from 0 (no common word) to 1 (the same words). Two empty sets are alike.
pub(super) fn likeness(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let all = a.len() + b.len();
    if all == 0 {
        return 1.0;
    }
    let common = a.intersection(b).count();
    2.0 * f64::from(u32::try_from(common).unwrap_or(u32::MAX))
        / f64::from(u32::try_from(all).unwrap_or(u32::MAX))
}

/// At most `most` bytes of one line of a text, without control characters, and three dots where it was longer. A text that
/// was cut before is not cut again.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let line: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect();
    let end = line.floor_char_boundary(most);
    let was_cut = line.len() <= most + 3 && line.ends_with("...");
    if end < line.len() && !was_cut { format!("{}...", &line[..end]) } else { line }
}
