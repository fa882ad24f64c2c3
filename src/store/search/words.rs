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

/// Letters that are also written as two.
const LIGATURES: [(char, &str); 5] = [('ß', "ss"), ('æ', "ae"), ('œ', "oe"), ('ﬁ', "fi"), ('ﬂ', "fl")];
/// Spellings of a word at most.
const SPELLINGS: usize = 8;

/// A text in lower case without letters that are also written as two: `straße` is `strasse`.
pub fn unligatured(lower: &str) -> String {
    LIGATURES.iter().fold(lower.to_owned(), |text, (letter, two)| text.replace(*letter, two))
}

/// The spellings of a text in lower case: itself first, then those with one letter where it has two, and the other way round.
pub(crate) fn spellings(lower: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut rest = lower;
    while let Some(c) = rest.chars().next() {
        let pair = LIGATURES.iter().find(|(letter, two)| c == *letter || rest.starts_with(two));
        let (as_is, other) = match pair {
            Some((letter, two)) if c == *letter => (&rest[..c.len_utf8()], (*two).to_owned()),
            Some((letter, two)) => (&rest[..two.len()], letter.to_string()),
            None => (&rest[..c.len_utf8()], String::new()),
        };
        let mut more = Vec::new();
        if !other.is_empty() && 2 * all.len() <= SPELLINGS {
            more.extend(all.iter().map(|before| format!("{before}{other}")));
        }
        all.iter_mut().for_each(|text| text.push_str(as_is));
        all.extend(more);
        rest = &rest[as_is.len()..];
    }
    all
}

/// A word with the signs that tell it from others, in lower case: `c++`, `c#`, `.net`, `@name`. The index has the word without
/// them. `None`: it has none, or is more than a word.
pub fn signed(text: &str) -> Option<String> {
    let mut pieces = words(text);
    let (from, to) = pieces.next()?;
    if pieces.next().is_some() {
        return None;
    }
    let one = |c: &char| ['.', '#', '@', '$'].contains(c);
    let mut before = text[..from].chars().rev();
    let first = before.next().filter(one).filter(|c| before.next() != Some(*c));
    let from = from - first.map_or(0, char::len_utf8);
    let after = text[to..].chars().take_while(|c| ['+', '#'].contains(c)).map(char::len_utf8).sum::<usize>();
    let signs = first.is_some() || after > 0;
    signs.then(|| text[from..to + after].to_lowercase())
}

/// Whether a text in lower case has a word with its signs, and not only a part of another one. `open`: the word may go on.
pub(crate) fn holds(lower: &str, signed: &str, open: bool) -> bool {
    let (first, last) = (signed.chars().next(), signed.chars().next_back());
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    lower.match_indices(signed).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + signed.len()..].chars().next();
        let ends = if word(last) { open || !word(after) } else { after != last };
        ends && !(word(first) && word(before))
    })
}

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
    /// The word with its signs, which the index does not have, and whether it may go on.
    pub(crate) signed: Option<(String, bool)>,
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
            let open = n == last && self.open && !ends_with_sign(&word.text);
            text.push(any_spelling(&word.text, open));
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
            if !terms.iter().any(|t| (&t.matching, &t.signed) == (&term.matching, &term.signed)) {
                terms.push(term);
            }
        };
        let last = self.with.len() - 1;
        for (n, part) in self.with.iter().enumerate().filter(|(_, w)| indexed(&w.text)) {
            let open = n == last && self.open;
            let pieces: Vec<&str> = words(&part.text).map(|(a, b)| &part.text[a..b]).collect();
            if let Some(signed) = signed(&part.text) {
                let open = open && !ends_with_sign(&signed);
                let matching = format!("text : {}", any_spelling(&part.text, open));
                add(Term {
                    word: signed.clone(),
                    matching,
                    near: String::new(),
                    signed: Some((signed, open)),
                });
                continue;
            }
            if part.quoted || pieces.len() > 1 {
                let matching = format!("text : {}", any_spelling(&part.text, open));
                add(Term { word: part.text.to_lowercase(), matching, near: String::new(), signed: None });
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
        let all: Vec<String> =
            self.with.iter().filter(|w| w.quoted).map(|w| any_spelling(&w.text, false)).collect();
        (!all.is_empty()).then(|| format!("(text : ({}))", all.join(" AND ")))
    }

    /// What an entry must not contain, in the syntax of the index; `None`: nothing.
    pub(crate) fn excluded(&self) -> Option<String> {
        let all: Vec<String> = self.unsigned().map(|w| any_spelling(w, false)).collect();
        (!all.is_empty()).then(|| format!("text : ({})", all.join(" OR ")))
    }

    /// A query of the index, narrowed by the filters and the excluded words.
    pub(crate) fn narrowed(&self, matching: &str, query: &SearchQuery) -> String {
        let mut all = matching.to_owned();
        if let Some(tags) = tags(query) {
            all = format!("({all}) AND (tags : ({tags}))");
        }
        for word in self.unsigned() {
            all = format!("({all}) NOT (text : {})", any_spelling(word, false));
        }
        all
    }

    /// The excluded words that the index has.
    fn unsigned(&self) -> impl Iterator<Item = &str> {
        self.without.iter().map(String::as_str).filter(|word| signed(word).is_none())
    }

    /// Words with signs that a hit must have, and those that it must not have. The index has neither. `all`: a hit has each word,
    /// not only those in quotation marks.
    pub(crate) fn with_signs(&self, all: bool) -> (Vec<(String, bool)>, Vec<String>) {
        let last = self.with.len().saturating_sub(1);
        let must = self.with.iter().enumerate().filter(|(_, part)| all || part.quoted);
        let must = must.filter_map(|(n, part)| Some((signed(&part.text)?, n == last && self.open)));
        (must.collect(), self.without.iter().filter_map(|word| signed(word)).collect())
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
        let star = if open { "*" } else { "" };
        let mut forms: Vec<String> = Vec::new();
        for word in spellings(lower) {
            let stem = stem(&word);
            forms.push(format!("{}{star}", quote(&word)));
            forms.extend((open || stem != word).then(|| quote(&stem)));
        }
        let matching = match forms.as_slice() {
            [one] => format!("{{text stems}} : {one}"),
            all => format!("{{text stems}} : ({})", all.join(" OR ")),
        };
        Self { word: lower.to_owned(), matching, near: String::new(), signed: None }
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

/// A word or phrase in each of its spellings, in the syntax of the index. `open`: the last word may be unfinished.
fn any_spelling(text: &str, open: bool) -> String {
    let star = if open { "*" } else { "" };
    let all: Vec<String> =
        spellings(&text.to_lowercase()).iter().map(|t| format!("{}{star}", quote(t))).collect();
    match all.as_slice() {
        [one] => one.clone(),
        all => format!("({})", all.join(" OR ")),
    }
}

/// Whether a word ends with a sign that tells it from others: then it is finished.
fn ends_with_sign(text: &str) -> bool {
    text.ends_with(['+', '#'])
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
    fn a_letter_that_is_also_written_as_two_is_looked_for_in_both_ways() {
        assert_eq!(spellings("straße"), ["straße", "strasse"]);
        assert_eq!(spellings("strasse"), ["strasse", "straße"]);
        assert_eq!(spellings("plain"), ["plain"]);
        assert_eq!(spellings(""), [""]);
        for word in ["mississippissssss", "ßßßßßßßßß", "æœﬁﬂß", "ss"] {
            let all = spellings(word);
            assert!(all[0] == word && all.len() <= SPELLINGS, "{all:?}");
            assert!(all.iter().all(|other| unligatured(other) == unligatured(word)), "{all:?}");
        }
    }

    #[test]
    fn signs_that_tell_a_word_from_others_are_known() {
        for (text, is) in [
            ("C++", Some("c++")),
            ("C#", Some("c#")),
            ("F#", Some("f#")),
            (".NET", Some(".net")),
            ("@ann", Some("@ann")),
            ("#bug", Some("#bug")),
            ("\"C++\"", Some("c++")),
            ("(C++)", Some("c++")),
            ("node.js", None),
            ("retries?", None),
            ("done.", None),
            ("...wait", None),
            ("a+b", None),
            ("++", None),
            ("", None),
        ] {
            assert_eq!(signed(text).as_deref(), is, "{text}");
        }
        for (text, signed, open, is) in [
            ("in c++ and", "c++", false, true),
            ("c++17", "c++", false, true),
            ("abc++", "c++", false, false),
            ("c+++", "c++", false, false),
            ("asp.net", ".net", false, true),
            (".network", ".net", false, false),
            (".network", ".net", true, true),
            ("c", "c++", false, false),
        ] {
            assert_eq!(holds(text, signed, open), is, "{text} {signed}");
        }
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
