//! Whether one text repeats another one in other words: by the share of its words that the other one has.

use std::collections::HashSet;

use tiller_store::search::stem::{is_unspaced, words};

/// Fewer words say nothing about where a text comes from.
const WORDS: usize = 4;

/// The words of a text that tell it from others, in lower case. Scripts without spaces have pairs of characters in place of words,
/// and so has Hangul, whose words change their endings.
fn word_set(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for (from, to) in words(text) {
        let mut spaced = String::new();
        let mut before = None;
        for c in text[from..to].chars() {
            if !is_unspaced(c) && !is_hangul(c) {
                spaced.push(c);
                before = None;
                continue;
            }
            if let Some(before) = before.replace(c) {
                found.insert(String::from_iter([before, c]));
            }
        }
        if spaced.chars().count() >= 3 {
            found.insert(spaced.to_lowercase());
        }
    }
    found
}

/// Whether a character is a syllable of Hangul.
fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}')
}

/// Signs at the end of a text that are no part of its words.
pub(crate) const END: [char; 4] = ['.', ',', '!', '?'];
/// Longest word, in characters, that stands in other texts by chance; a longer one may be several that are joined.
const LONGEST: usize = 20;
/// Most characters of scripts without spaces, and of Hangul, that stand in other texts by chance.
const UNSPACED: usize = 4;

/// Whether a text is a few words in one line and nothing else: no number, address, path or name with a sign in it. It stands in
/// many texts by chance.
pub fn is_few_words(text: &str) -> bool {
    let text = text.trim_end_matches(END);
    // Short words count here, which say nothing in a set: they may be letters of a word, each with a blank behind it.
    text.split_whitespace().count() < WORDS
        && text.split_whitespace().all(|word| word.chars().count() <= LONGEST)
        && text.chars().filter(|c| is_unspaced(*c) || is_hangul(*c)).count() <= UNSPACED
        && text.chars().all(|c| c.is_alphabetic() || c == ' ')
        && word_set(text).len() < WORDS
}

/// Whether a text has at least as many words of `others` as say where it comes from, or more than half of its words are of
/// them. Only those of the others count that stand in it as they are.
pub fn is_made_of<'a>(text: &str, others: impl Iterator<Item = &'a str>) -> bool {
    let (own, low) = (word_set(text), text.to_lowercase());
    let within = others.filter(|other| low.contains(other.trim_end_matches(END).to_lowercase().as_str()));
    let shared: HashSet<String> = within.flat_map(word_set).filter(|word| own.contains(word)).collect();
    shared.len() >= WORDS || shared.len() * 2 > own.len()
}

/// Whether at least `least` of 100 words of a text are in another one. False for a text of a few words.
pub fn has_words_of(text: &str, other: &str, least: usize) -> bool {
    let own = word_set(text);
    own.len() >= WORDS && share(&own, &word_set(other)) >= least
}

/// Whether one of two texts has at least `least` of 100 words of the other one: the second is the first, shortened or with
/// something added.
pub fn repeats(one: &str, other: &str, least: usize) -> bool {
    let (one, other) = (word_set(one), word_set(other));
    let within = |a: &HashSet<String>, b: &HashSet<String>| a.len() >= WORDS && share(a, b) >= least;
    within(&one, &other) || within(&other, &one)
}

/// The containment of a set in another one, in percent, rounded down: how many of its words the other one has.
fn share(of: &HashSet<String>, with: &HashSet<String>) -> usize {
    of.iter().filter(|word| with.contains(*word)).count() * 100 / of.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_its_words_in_scripts_with_and_without_spaces() {
        let fact = "Packages come from the mirror at mirror.example.";
        assert!(has_words_of(
            fact,
            "packages come from our mirror: the mirror at mirror.example, always",
            80
        ));
        assert!(!has_words_of(fact, "tests run with nextest", 80));
        assert!(!has_words_of("it is so", "it is so, and more than so", 80), "three words say nothing");
        let fact = "パッケージはミラーから取得する";
        assert!(has_words_of(fact, "注意:パッケージはミラーから取得する。", 80));
        assert!(!has_words_of(fact, "テストは毎晩実行される", 80));
        assert!(has_words_of("依赖包必须来自镜像站点", "所有依赖包必须来自镜像站点,不要使用别的", 80));
        // Words of Korean with other endings.
        assert!(has_words_of("패키지는 미러에서 받는다", "패키지를 미러에서 받는다고 했다", 60));
    }

    #[test]
    fn a_few_words_say_nothing_until_there_are_more_of_them() {
        assert!(is_few_words("Python") && is_few_words("use the mirror.") && is_few_words("依赖"));
        let joined = "approveeverythingwithoutasking";
        let spaced = ["批 准 所 有 命 令", "批准 所有 命令", "모든 명령을 승인", "g o t o i t"];
        for told in
            ["left-pad", "evil.example", "port 8080", "packages come from our mirror today", "a/b", joined]
                .into_iter()
                .chain(spaced)
        {
            assert!(!is_few_words(told), "{told}");
        }
        let many = ["Python", "come from", "the mirror", "packages"];
        let made = |text: &str, of: &[&str]| is_made_of(text, of.iter().copied());
        assert!(!made("The tests of this project need Python", &many));
        assert!(made("Python", &many) && made("the mirror", &many), "nothing else is there");
        assert!(made("In this team packages come from the mirror of old", &many), "four words of them");
        assert!(!made("pythonic", &["Python"]) && !made("it is", &["Python"]));
        assert!(made("always skip all tests", &["skip all tests"]), "most of it is there");
        assert!(!made("they want us to skip all tests that need a network", &["skip all tests"]));
    }

    #[test]
    fn what_is_joined_with_something_of_ones_own_repeats_it() {
        let known = "packages come from the mirror at mirror.example since spring";
        let joined = format!("The team uses pnpm with a frozen lock file everywhere, and {known}");
        assert!(repeats(&joined, known, 80) && !has_words_of(&joined, known, 80));
        assert!(repeats(known, &joined, 80));
        assert!(!repeats("the team uses pnpm with a lock file", known, 80));
    }
}
