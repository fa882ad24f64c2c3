//! The part of a text that shows why it was found.

use tiller_protocol::search::CUT;

use crate::search::stem::{stem, words};
use crate::search::words::{Part, is_stop, signed, spellings};

/// Characters of a preview on each side of the match.
const AROUND: usize = 60;
/// Most characters of a word that is left out whole.
const WORD: usize = 24;
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
    let (begin, stop) = (begin(&chars, first), stop(&chars, end));
    let mut before: String = chars[begin..first].iter().collect();
    let found: String = chars[first..end].iter().collect();
    let mut after: String = chars[end..stop].iter().collect();
    if begin > 0 {
        before.insert(0, CUT);
    }
    if stop < chars.len() {
        after.push(CUT);
    }
    let mark = (before.len(), before.len() + found.len());
    (format!("{before}{found}{after}"), mark)
}

/// Where the preview of a match from `first` on begins: with a word, if there is one.
fn begin(chars: &[char], first: usize) -> usize {
    let from = first.saturating_sub(AROUND);
    let word = |at: &usize| !chars[*at].is_whitespace() && chars[at - 1].is_whitespace();
    if from == 0 { 0 } else { (from..first).take(WORD).find(word).unwrap_or(from) }
}

/// Where the preview of a match that ends at `end` stops: behind a word, if there is one.
fn stop(chars: &[char], end: usize) -> usize {
    let to = (end + AROUND).min(chars.len());
    let behind = |at: &usize| chars[*at].is_whitespace() && !chars[at - 1].is_whitespace();
    if to == chars.len() { to } else { (end + 1..=to).rev().take(WORD).find(behind).unwrap_or(to) }
}

/// Start and length of the match in a text in lower case.
fn found(lower: &str, parts: &[Part]) -> Option<(usize, usize)> {
    let together = parts.iter().map(|p| p.text.to_lowercase()).collect::<Vec<_>>().join(" ");
    if !together.is_empty()
        && let Some(at) = lower.find(&together)
    {
        return Some((at, together.len()));
    }
    let each = |p: &Part| {
        let (lower, quoted) = (p.text.to_lowercase(), p.quoted);
        let meant = !is_stop(&lower);
        let signed = signed(&lower).filter(|_| !quoted);
        signed.into_iter().chain(spellings(&lower)).map(move |text| (quoted, meant, text)).collect::<Vec<_>>()
    };
    let mut wanted: Vec<(bool, bool, String)> = parts.iter().flat_map(each).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::words::Words;

    fn of(text: &str, query: &str) -> (String, String) {
        let (preview, (from, to)) = preview(text, &Words::parse(query).with);
        let marked = preview[from..to].to_owned();
        (preview, marked)
    }

    #[test]
    fn a_preview_goes_from_word_to_word_and_says_where_it_is_cut() {
        let text = format!("{} the tunnel was closed {}", "before it ".repeat(20), "and after ".repeat(20));
        let (preview, marked) = of(&text, "tunnel");
        assert_eq!(marked, "tunnel");
        let inner = preview.strip_prefix(CUT).and_then(|p| p.strip_suffix(CUT)).unwrap();
        assert!(text.contains(inner), "{preview}");
        assert!(inner.split(' ').all(|w| text.split(' ').any(|known| known == w)), "{preview}");
        assert!(inner.chars().count() > AROUND, "{preview}");
        assert_eq!(of("the tunnel", "tunnel"), ("the tunnel".into(), "tunnel".into()));
    }

    #[test]
    fn a_text_without_words_is_cut_anywhere() {
        let text = format!("{}tunnel{}", "日".repeat(200), "本".repeat(200));
        let (preview, marked) = of(&text, "tunnel");
        assert_eq!((marked.as_str(), preview.chars().count()), ("tunnel", 2 * AROUND + 6 + 2));
        let (preview, marked) = of(&"word ".repeat(100), "nothing");
        assert!(marked.is_empty() && preview.ends_with("word…"), "{preview}");
    }
}
