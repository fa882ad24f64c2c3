//! The part of a text that shows why it was found.

use crate::search::stem::{stem, words};
use crate::search::words::{Part, is_stop};

/// Characters of a preview on each side of the match.
const AROUND: usize = 60;
/// Bytes of a text that are searched for a form of a word.
const FORMS: usize = 64 << 10;

/// The first match with its surroundings: the words together if they are adjacent, else the longest word that occurs, or
/// another form of it. Lower case may be longer than the original, so positions are counted in characters of the
/// original.
pub(crate) fn preview(text: &str, parts: &[Part]) -> (String, (usize, usize)) {
    let chars: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lower = String::with_capacity(text.len());
    // For each byte of `lower`: the index of its character in `text`.
    let mut from = Vec::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        let start = lower.len();
        lower.extend(c.to_lowercase());
        from.extend(std::iter::repeat_n(n, lower.len() - start));
    }
    // Spelled differently (accents), or found by its neighbours: the beginning.
    let (first, end) = found(&lower, parts).map_or((0, 0), |(at, long)| (from[at], from[at + long - 1] + 1));
    let (begin, stop) = (first.saturating_sub(AROUND), (end + AROUND).min(chars.len()));
    let before: String = chars[begin..first].iter().collect();
    let found: String = chars[first..end].iter().collect();
    let after: String = chars[end..stop].iter().collect();
    let mark = (before.len(), before.len() + found.len());
    (format!("{before}{found}{after}"), mark)
}

/// Start and length of the match in a text in lower case.
fn found(lower: &str, parts: &[Part]) -> Option<(usize, usize)> {
    let together = parts.iter().map(|p| p.text.to_lowercase()).collect::<Vec<_>>().join(" ");
    if !together.is_empty()
        && let Some(at) = lower.find(&together)
    {
        return Some((at, together.len()));
    }
    let mut wanted: Vec<(bool, bool, String)> =
        parts.iter().map(|p| (p.quoted, !is_stop(&p.text.to_lowercase()), p.text.to_lowercase())).collect();
    wanted.retain(|(.., w)| !w.is_empty());
    // What is required first, then what says most; equal ones keep their order.
    wanted.sort_by_key(|(quoted, meant, _)| std::cmp::Reverse((*quoted, *meant)));
    let head = &lower[..lower.floor_char_boundary(FORMS)];
    wanted.iter().find_map(|(quoted, _, word)| {
        // A whole word, or the beginning of one, comes before a part of another word.
        let starts = |at: &usize| !lower[..*at].ends_with(char::is_alphanumeric);
        let whole = lower.match_indices(word.as_str()).map(|(at, _)| at).find(starts);
        if let Some(at) = whole.or_else(|| if *quoted { lower.find(word.as_str()) } else { None }) {
            return Some((at, word.len()));
        }
        let inner: Vec<String> = words(word).map(|(a, b)| stem(&word[a..b])).collect();
        let form = words(head).find(|(a, b)| inner.contains(&stem(&head[*a..*b]))).map(|(a, b)| (a, b - a));
        form.or_else(|| lower.find(word.as_str()).map(|at| (at, word.len())))
    })
}
