//! Whether one text repeats another one in other words: by the share of its words that the other one has.

use std::collections::HashSet;

/// Fewer words say nothing about where a text comes from.
const WORDS: usize = 4;

/// The words of a text that tell it from others, in lower case. Scripts without spaces have pairs of characters in place of words.
fn words(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let mut spaced = String::new();
        let mut before = None;
        for c in run.chars() {
            if !is_unspaced(c) {
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

/// Whether a character is of a script that writes no spaces between words: Thai to Khmer, kana, Han, Hangul.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Whether at least `least` of 100 words of a text are in another one. False for a text of a few words.
pub fn has_words_of(text: &str, other: &str, least: usize) -> bool {
    let own = words(text);
    own.len() >= WORDS && share(&own, &words(other)) >= least
}

/// Whether one of two texts has at least `least` of 100 words of the other one: the second is the first, shortened or with
/// something added.
pub fn repeats(one: &str, other: &str, least: usize) -> bool {
    let (one, other) = (words(one), words(other));
    let within = |a: &HashSet<String>, b: &HashSet<String>| a.len() >= WORDS && share(a, b) >= least;
    within(&one, &other) || within(&other, &one)
}

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
