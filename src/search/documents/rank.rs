//! The order of texts that are no entries: by the words of the query that they have, each weighted by how few of the texts
//! have it, and by their meaning.

use std::collections::HashMap;

use tiller_store::search::statistics::inverse_frequency;
use tiller_store::search::stem::{camel_case_parts, is_unspaced, stem, words};
use tiller_store::search::words::{is_stop, signed, unligatured};
use tiller_store::search::{nearest, vary};

/// A text that is scored.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Factor for its age, at most 1.
    pub(crate) age: f32,
}

/// Texts that fit a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranked {
    /// Positions of the texts, best first.
    pub best: Vec<usize>,
    /// The query in the spelling of the texts, when they have none of its words of a near spelling.
    pub suggestion: Option<String>,
    /// Some text has each word of the query.
    pub(crate) knows_all: bool,
    /// Vectors were compared, too.
    pub(crate) by_meaning: bool,
}

/// Bytes of a text that are read.
const BYTES: usize = 64 << 10;
/// A hit has at least this share of the meaning of the query's words.
const LEAST: f32 = 0.4;
/// Different words of a query that count; a bit of a mask each.
const WORDS: usize = 32;
/// Letters of an unfinished word that other words may begin with.
const BEGUN: usize = 3;

/// Orders texts; one that says the same as a better one moves down. `meant`: the share from 0 to 1 of each text for its meaning, or
/// empty; it counts with this weight.
pub(crate) fn rank(texts: &[Text], query: &str, (meant, weight): (&[f32], f32)) -> Ranked {
    let wanted = Wanted::of(query);
    if wanted.words.is_empty() && wanted.phrases.is_empty() {
        return Ranked { knows_all: true, ..Ranked::default() };
    }
    let found: Vec<Option<u32>> = texts.iter().map(|t| wanted.found(&t.text)).collect();
    let with: Vec<usize> = (0..wanted.words.len())
        .map(|n| found.iter().flatten().filter(|mask| **mask & (1 << n) != 0).count())
        .collect();
    #[allow(clippy::cast_precision_loss, reason = "a frequency is rounded")]
    let rarity: Vec<f32> =
        with.iter().map(|with| inverse_frequency(texts.len() as f32, *with as f32)).collect();
    let whole = rarity.iter().sum::<f32>().max(f32::EPSILON);
    let mut hits: Vec<(f32, usize)> = Vec::new();
    for (at, mask) in found.iter().enumerate() {
        let Some(mask) = mask else { continue };
        let own =
            rarity.iter().enumerate().filter(|(n, _)| mask & (1 << n) != 0).map(|(_, r)| r).sum::<f32>();
        let share = if wanted.words.is_empty() { 1.0 } else { own / whole };
        let meaning = meant.get(at).copied().unwrap_or(0.0);
        if share >= LEAST || meaning > 0.0 {
            hits.push((share * texts[at].age + weight * meaning, at));
        }
    }
    hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let scored: Vec<(f32, &str)> =
        hits.iter().map(|(score, at)| (*score, texts[*at].text.as_str())).collect();
    let order = vary(&scored);
    let unknown =
        with.iter().zip(&wanted.words).filter(|(with, _)| **with == 0).map(|(_, w)| w.word.as_str());
    let unknown: Vec<&str> = unknown.collect();
    Ranked {
        best: order.into_iter().map(|n| hits[n].1).collect(),
        knows_all: unknown.is_empty(),
        by_meaning: !meant.is_empty(),
        suggestion: suggestion(texts, query, &unknown),
    }
}

/// The query with its unknown words replaced by near ones of the texts.
fn suggestion(texts: &[Text], query: &str, unknown: &[&str]) -> Option<String> {
    if unknown.is_empty() {
        return None;
    }
    let mut known: HashMap<String, i64> = HashMap::new();
    for text in texts {
        let text = &text.text[..text.text.floor_char_boundary(BYTES)];
        for (from, to) in words(text) {
            *known.entry(text[from..to].to_lowercase()).or_default() += 1;
        }
    }
    let (mut changed, mut any) = (query.to_owned(), false);
    for word in unknown {
        let near = nearest(word, known.iter().map(|(word, n)| (word.clone(), *n))).into_iter().next();
        let place = words(&changed).find(|(from, to)| folded(&changed[*from..*to]) == **word);
        if let Some((near, (from, to))) = near.zip(place) {
            changed.replace_range(from..to, &near);
            any = true;
        }
    }
    any.then_some(changed)
}

/// In lower case, and without letters that are also written as two.
fn folded(text: &str) -> String {
    unligatured(&text.to_lowercase())
}

/// A word of a query.
struct Word {
    /// In lower case.
    word: String,
    stem: String,
    /// It may be unfinished.
    open: bool,
    /// It is of a script without spaces, so that it is a part of what [`words`] returns, or has signs, which that leaves out.
    inner: bool,
}

/// A query, taken apart.
struct Wanted {
    words: Vec<Word>,
    phrases: Vec<String>,
    without: Vec<String>,
}

impl Wanted {
    fn of(text: &str) -> Self {
        let (mut plain, mut phrases, mut without) = (String::new(), Vec::new(), Vec::new());
        let mut with_signs: Vec<String> = Vec::new();
        let mut open = false;
        for (n, part) in text.split('"').enumerate() {
            open = false;
            if n % 2 == 1 {
                phrases.push(folded(part.trim()));
                continue;
            }
            for word in part.split_whitespace() {
                let minus = word.strip_prefix('-').filter(|w| w.starts_with(char::is_alphanumeric));
                open = minus.is_none() && part.ends_with(char::is_alphanumeric);
                match minus {
                    Some(word) => without.push(folded(word)),
                    None => match signed(word) {
                        Some(word) => with_signs.push(unligatured(&word)),
                        None => plain = plain + " " + word,
                    },
                }
            }
        }
        phrases.retain(|p| !p.is_empty());
        let mut found: Vec<Word> = Vec::new();
        let all: Vec<String> = words(&plain).map(|(a, b)| folded(&plain[a..b])).collect();
        let spoken = all.iter().any(|w| !is_stop(w));
        for (n, word) in all.iter().enumerate().filter(|(_, w)| !spoken || !is_stop(w)) {
            let open = open && n + 1 == all.len() && word.chars().count() >= BEGUN;
            let stem = stem(word);
            match found.iter_mut().find(|w| w.stem == stem) {
                Some(known) => known.open |= open,
                None => {
                    found.push(Word { word: word.clone(), stem, open, inner: word.chars().any(is_unspaced) });
                }
            }
        }
        found.extend(with_signs.into_iter().map(|word| Word {
            stem: word.clone(),
            word,
            open: false,
            inner: true,
        }));
        found.truncate(WORDS);
        // Signs alone are looked for as they are.
        if found.is_empty() && phrases.is_empty() && without.is_empty() {
            phrases.extend(Some(text.trim().to_lowercase()).filter(|signs| !signs.is_empty()));
        }
        Self { words: found, phrases, without }
    }

    /// Which words a text has, a bit each; `None`: it is out of the question.
    fn found(&self, text: &str) -> Option<u32> {
        let text = &text[..text.floor_char_boundary(BYTES)];
        let mut mask = 0u32;
        let inner = self.words.iter().any(|w| w.inner);
        if inner || !self.phrases.is_empty() || !self.without.is_empty() {
            let lower = folded(text);
            let has = |part: &String| lower.contains(part.as_str());
            if !self.phrases.iter().all(has) || self.without.iter().any(has) {
                return None;
            }
            let all = self.words.iter().enumerate().filter(|(_, w)| w.inner && has(&w.word));
            mask = all.fold(0, |mask, (n, _)| mask | (1 << n));
        }
        for (from, to) in words(text) {
            let word = &text[from..to];
            mask |= self.bits(&folded(word));
            for part in camel_case_parts(word) {
                mask |= self.bits(&part);
            }
        }
        Some(mask)
    }

    /// The words of the query that this word, in lower case, is a form of.
    fn bits(&self, word: &str) -> u32 {
        // A stem keeps the first letter of its word.
        let first = word.as_bytes().first();
        let near = || self.words.iter().enumerate().filter(|(_, w)| w.stem.as_bytes().first() == first);
        if near().next().is_none() {
            return 0;
        }
        let stem = stem(word);
        let fits = |w: &Word| w.stem == stem || (w.open && word.starts_with(&w.word));
        near().filter(|(_, w)| fits(w)).map(|(n, _)| 1 << n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<Text> {
        all.iter().map(|t| Text { text: (*t).into(), age: 1.0 }).collect()
    }

    #[test]
    fn rare_words_decide_forms_are_one_word_and_the_last_may_be_unfinished() {
        let all = texts(&[
            "the tests run with nextest",
            "tests of the parser are slow",
            "the parser uses parseRetryAfter",
            "tabs, not spaces",
        ]);
        let best = |query: &str| rank(&all, query, (&[], 0.0)).best;
        assert_eq!(best("testing nextest "), [0], "the common word alone is too little");
        assert_eq!(best("tests "), [0, 1]);
        assert_eq!(best("next"), [0], "unfinished");
        assert_eq!(best("next "), Vec::<usize>::new(), "finished");
        assert_eq!(best("retries "), [2], "a part of a name");
        assert_eq!(best("\"not spaces\""), [3]);
        assert_eq!(best("parser -slow"), [2]);
        assert_eq!(best("what is it"), Vec::<usize>::new());
        assert_eq!(best(" "), Vec::<usize>::new());
    }

    #[test]
    fn words_of_scripts_without_spaces_and_signs_are_found_inside_a_text() {
        let all = texts(&["部署需要隧道到堡垒机", "アルファベットの順", "a -> b", "the tunnel"]);
        let best = |query: &str| rank(&all, query, (&[], 0.0)).best;
        assert_eq!(best("隧道 "), [0]);
        assert_eq!(best("堡垒机"), [0]);
        assert_eq!(best("部署 tunnel "), [0, 3]);
        assert_eq!(best("の順"), [1]);
        assert_eq!(best("->"), [2]);
        assert_eq!(best("桥 "), Vec::<usize>::new());
        assert!(rank(&all, "隧道 ", (&[], 0.0)).knows_all && !rank(&all, "桥 ", (&[], 0.0)).knows_all);
    }

    #[test]
    fn meaning_adds_texts_and_a_share_of_its_weight() {
        let all = texts(&["a kitten sleeps", "the automobile needs petrol", "a cat and an automobile"]);
        let best = |meant: &[f32]| rank(&all, "automobile ", (meant, 0.3)).best;
        assert_eq!(best(&[]), [1, 2]);
        assert_eq!(best(&[0.0, 0.0, 0.5]), [2, 1]);
        assert_eq!(best(&[1.0, 0.0, 0.0]), [1, 2, 0], "words come before meaning alone");
    }

    #[test]
    fn texts_that_say_the_same_leave_room_for_others() {
        let all = texts(&[
            "deploys need the tunnel to bastion 1",
            "deploys need the tunnel to bastion 2",
            "deploys need the tunnel to bastion 3",
            "deploys need the tunnel to bastion 4",
            "deploys need the tunnel to bastion 5",
            "a tunnel of the railway",
            "ssh goes through a tunnel",
        ]);
        assert_eq!(rank(&all, "tunnel ", (&[], 0.0)).best, [0, 5, 6, 1, 2, 3, 4]);
    }

    #[test]
    fn a_typing_error_is_suggested_in_the_spelling_of_the_texts() {
        let all = texts(&["tests run with nextest", "Deploys need a tunnel"]);
        let suggested = |query: &str| rank(&all, query, (&[], 0.0)).suggestion;
        assert_eq!(suggested("run nextets ").as_deref(), Some("run nextest "));
        assert_eq!(suggested("Tunel deploys").as_deref(), Some("tunnel deploys"));
        assert_eq!(suggested("run nextest"), None);
        assert_eq!(suggested("zebra"), None);
        assert!(rank(&all, "tunnel", (&[], 0.0)).knows_all && !rank(&all, "zebra", (&[], 0.0)).knows_all);
    }
}
