//! A query, taken apart, and written for the index.

use tiller_protocol::SearchQuery;

use crate::search::stem::{camel_case_parts, is_unspaced, stem, words};
use crate::search::tags::{role_tag, tag};

/// Terms of a ranked query at most.
const TERMS: usize = 16;
/// Bytes of a query that are read.
const LONGEST: usize = 4096;

/// Words that say nothing about a text, sorted. A query of nothing else is searched with all of them.
const STOP: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "get", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if",
    "in", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "s", "she", "should", "so",
    "t", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "us",
    "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with",
    "would", "you", "your",
];

/// Whether a word in lower case says nothing about a text.
pub fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

/// A parsed query.
pub(crate) struct Words {
    /// Words and phrases to find, as written; the last may be unfinished.
    pub(crate) with: Vec<Part>,
    pub(crate) without: Vec<String>,
    /// The last of `with` may be a prefix.
    open: bool,
}

/// A word or a phrase of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// It stood in quotation marks: required, and exact.
    pub(crate) quoted: bool,
}

/// A word of a ranked query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// In lower case. A phrase where a word of the query has several words.
    pub(crate) word: String,
    /// In the syntax of the index.
    pub(crate) matching: String,
    /// Words that mean nearly the same, in the syntax of the index; empty: none.
    pub(crate) near: String,
}

impl Words {
    pub(crate) fn parse(text: &str) -> Self {
        let mut words = Self { with: Vec::new(), without: Vec::new(), open: false };
        let mut rest = text[..text.floor_char_boundary(LONGEST)].trim_start();
        while !rest.is_empty() {
            let minus =
                rest.strip_prefix('-').filter(|r| r.starts_with(|c: char| c == '"' || c.is_alphanumeric()));
            rest = minus.unwrap_or(rest);
            let (word, after, quoted) = match rest.strip_prefix('"') {
                Some(inner) => match inner.split_once('"') {
                    Some((word, after)) => (word, after, true),
                    None => (inner, "", false),
                },
                None => {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    (&rest[..end], &rest[end..], false)
                }
            };
            let word = word.trim();
            if !word.is_empty() {
                if minus.is_some() {
                    words.without.push(word.to_owned());
                } else {
                    words.with.push(Part { text: word.to_owned(), quoted });
                }
                words.open = minus.is_none() && !quoted && after.is_empty();
            }
            rest = after.trim_start();
        }
        words
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.with.is_empty()
    }

    /// The most selective part for a scan: the longest one without characters that JSON escapes.
    pub(crate) fn plainest(&self) -> &str {
        let parts = self
            .with
            .iter()
            .flat_map(|w| w.text.split(|c: char| c == '"' || c == '\\' || c == '/' || c.is_control()));
        parts.max_by_key(|w| w.len()).unwrap_or_default()
    }

    /// The query with all words required, in the index's syntax; `None` when the index cannot answer it.
    pub(crate) fn query(&self, query: &SearchQuery) -> Option<String> {
        let texts = self.with.iter().map(|w| w.text.as_str()).chain(self.without.iter().map(String::as_str));
        if !texts.into_iter().all(indexed) {
            return None;
        }
        let last = self.with.len() - 1;
        let mut text: Vec<String> = Vec::new();
        for (n, word) in self.with.iter().enumerate() {
            text.push(format!("{}{}", quote(&word.text), if n == last && self.open { "*" } else { "" }));
        }
        Some(self.narrowed(&format!("text : ({})", text.join(" AND ")), query))
    }

    /// The terms of a ranked query; `None` when the index cannot answer it.
    pub(crate) fn terms(&self) -> Option<Vec<Term>> {
        let required = self.with.iter().filter(|w| w.quoted).map(|w| w.text.as_str());
        let any = self.with.iter().any(|w| indexed(&w.text));
        let foreign = self.with.iter().any(|w| w.text.chars().any(is_unspaced));
        if foreign || !any || !required.chain(self.without.iter().map(String::as_str)).all(indexed) {
            return None;
        }
        let mut terms: Vec<Term> = Vec::new();
        let mut add = |term: Term| {
            if !terms.iter().any(|t| t.matching == term.matching) {
                terms.push(term);
            }
        };
        let last = self.with.len() - 1;
        for (n, part) in self.with.iter().enumerate().filter(|(_, w)| indexed(&w.text)) {
            let open = n == last && self.open;
            let star = if open { "*" } else { "" };
            let pieces: Vec<&str> = words(&part.text).map(|(a, b)| &part.text[a..b]).collect();
            if part.quoted || pieces.len() > 1 {
                let matching = format!("text : {}{star}", quote(&part.text));
                add(Term { word: part.text.to_lowercase(), matching, near: String::new() });
            }
            if part.quoted {
                continue;
            }
            for piece in &pieces {
                let lower = piece.to_lowercase();
                if pieces.len() > 1 && lower.chars().count() < 3 {
                    continue;
                }
                add(Term::of(&lower, open && pieces.len() == 1));
                for part in camel_case_parts(piece) {
                    add(Term::of(&part, false));
                }
            }
        }
        // What says nothing is dropped, unless there is nothing else. The last word may still be growing.
        let spoken = terms.iter().any(|t| !is_stop(&t.word));
        if spoken {
            terms.retain(|t| !is_stop(&t.word));
        }
        terms.truncate(TERMS);
        Some(terms)
    }

    /// Phrases that a ranked hit must contain, in the syntax of the index.
    pub(crate) fn required(&self) -> Option<String> {
        let all: Vec<String> = self.with.iter().filter(|w| w.quoted).map(|w| quote(&w.text)).collect();
        (!all.is_empty()).then(|| format!("(text : ({}))", all.join(" AND ")))
    }

    /// What an entry must not contain, in the syntax of the index; `None`: nothing.
    pub(crate) fn excluded(&self) -> Option<String> {
        let all: Vec<String> = self.without.iter().map(|w| quote(w)).collect();
        (!all.is_empty()).then(|| format!("text : ({})", all.join(" OR ")))
    }

    /// A query of the index, narrowed by the filters and the excluded words.
    pub(crate) fn narrowed(&self, matching: &str, query: &SearchQuery) -> String {
        let mut all = matching.to_owned();
        if let Some(tags) = tags(query) {
            all = format!("({all}) AND (tags : ({tags}))");
        }
        for word in &self.without {
            all = format!("({all}) NOT (text : {})", quote(word));
        }
        all
    }
}

impl Term {
    /// One word in the syntax of the index, as it is.
    pub(crate) fn exact(word: &str) -> String {
        format!("text : {}", quote(word))
    }

    /// Any of these words in the syntax of the index.
    pub(crate) fn any(words: &[String]) -> String {
        let any: Vec<String> = words.iter().flat_map(|w| [quote(w), quote(&stem(w))]).collect();
        if any.is_empty() { String::new() } else { format!("{{text stems}} : ({})", any.join(" OR ")) }
    }

    fn of(lower: &str, open: bool) -> Self {
        let stem = stem(lower);
        let star = if open { "*" } else { "" };
        let matching = if stem == lower && !open {
            format!("{{text stems}} : {}", quote(lower))
        } else {
            format!("{{text stems}} : ({}{star} OR {})", quote(lower), quote(&stem))
        };
        Self { word: lower.to_owned(), matching, near: String::new() }
    }
}

/// The filters of a query as words; `None`: there are none.
fn tags(query: &SearchQuery) -> Option<String> {
    let mut tags = Vec::new();
    tags.extend(query.project.as_deref().map(|p| tag('p', p)));
    tags.extend(query.session.map(|s| tag('s', &s.0.to_string())));
    tags.extend(query.agent.as_deref().map(|a| tag('a', a)));
    if !query.roles.is_empty() {
        let roles: Vec<String> = query.roles.iter().map(|r| role_tag(*r)).collect();
        tags.push(format!("({})", roles.join(" OR ")));
    }
    (!tags.is_empty()).then(|| tags.join(" AND "))
}

fn quote(word: &str) -> String {
    format!("\"{}\"", word.replace('"', " "))
}

/// Whether the index has words of this text. Of a script without spaces it holds whole sentences.
fn indexed(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric) && !word.chars().any(is_unspaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        Words::parse(text).terms().unwrap_or_default().into_iter().map(|t| t.word).collect()
    }

    #[test]
    fn the_table_of_words_without_meaning_is_sorted() {
        assert!(STOP.is_sorted());
        assert!(is_stop("the") && !is_stop("retry"));
    }

    #[test]
    fn a_question_becomes_its_words() {
        assert_eq!(terms("why did the retries stop? "), ["retries", "stop"]);
        assert_eq!(terms("what is it "), ["what", "is", "it"], "nothing else is there");
        assert_eq!(
            terms("src/store/findInTrees.rs "),
            ["src/store/findintrees.rs", "src", "store", "findintrees", "find", "in", "trees"]
                .iter()
                .filter(|w| **w != "in")
                .copied()
                .collect::<Vec<_>>()
        );
        assert_eq!(terms("\"exact words\" -not more "), ["exact words", "more"]);
        assert_eq!(terms("a - b ? fix "), ["b", "fix"]);
        assert!(Words::parse("=> ").terms().is_none() && Words::parse("標頭 retry").terms().is_none());
        assert!(Words::parse("\u{f900}\u{f901}").terms().is_none(), "compatibility ideographs are Han, too");
        let long = "word ".repeat(100_000);
        assert_eq!(terms(&long), ["word", "w"], "the rest is not read");
    }
}
