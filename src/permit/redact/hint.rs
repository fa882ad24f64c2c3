//! Words that are looked for in every text: signs of shapes, and words in the names of secrets. A table says by three
//! bytes whether one of them may begin, so that most texts need nothing else.

use std::ops::Range;

/// Words, each of at least three bytes.
#[derive(Debug)]
pub(crate) struct Words {
    /// One bit for each value of [`Words::place`].
    bits: Vec<u64>,
    /// With their number, in order.
    words: Vec<(Vec<u8>, usize)>,
    any_case: bool,
}

/// Values of [`Words::place`].
const PLACES: usize = 1 << 15;

impl Words {
    /// `words` with their numbers; in lower case and meant in any where `any_case` says so. Shorter ones are left out.
    pub(crate) fn new<'w>(words: impl IntoIterator<Item = (&'w str, usize)>, any_case: bool) -> Self {
        let mut all: Vec<(Vec<u8>, usize)> =
            words.into_iter().filter(|(w, _)| w.len() > 2).map(|(w, n)| (w.into(), n)).collect();
        all.sort_unstable();
        let mut bits = vec![0; PLACES / 64];
        for (word, _) in &all {
            let at = Self::place([word[0], word[1], word[2]]);
            bits[at / 64] |= 1 << (at % 64);
        }
        Self { bits, words: all, any_case }
    }

    fn place([a, b, c]: [u8; 3]) -> usize {
        (usize::from(a) << 10 ^ usize::from(b) << 5 ^ usize::from(c)) % PLACES
    }

    /// Calls `found` with the range and the number of each word in `text`, in order of the places.
    pub(crate) fn each(&self, text: &[u8], mut found: impl FnMut(Range<usize>, usize)) {
        for (at, here) in text.windows(3).enumerate() {
            let mut first = [here[0], here[1], here[2]];
            if self.any_case {
                first.make_ascii_lowercase();
            }
            let place = Self::place(first);
            if self.bits[place / 64] >> (place % 64) & 1 == 1 {
                for (word, n) in self.begin(first) {
                    if self.is(word, &text[at..]) {
                        found(at..at + word.len(), *n);
                    }
                }
            }
        }
    }

    /// Whether a word stands in `text`.
    pub(crate) fn any(&self, text: &[u8]) -> bool {
        let mut any = false;
        self.each(text, |_, _| any = true);
        any
    }

    /// All words.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.words.iter().map(|(word, _)| word.as_slice())
    }

    fn begin(&self, first: [u8; 3]) -> impl Iterator<Item = &(Vec<u8>, usize)> {
        let from = self.words.partition_point(|(word, _)| word[..3] < first[..]);
        self.words[from..].iter().take_while(move |(word, _)| word[..3] == first)
    }

    fn is(&self, word: &[u8], text: &[u8]) -> bool {
        text.get(..word.len()).is_some_and(|t| t == word || self.any_case && t.eq_ignore_ascii_case(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_stand() {
        let found = |words: &Words, text: &str| {
            let mut all = Vec::new();
            words.each(text.as_bytes(), |at, n| all.push((at.start, n)));
            all
        };
        let exact = Words::new([("abc", 0), ("abcd", 1), ("xy", 2), ("b-c", 3)], false);
        assert_eq!(found(&exact, "xyabcdABCb-c"), [(2, 0), (2, 1), (9, 3)]);
        assert_eq!(found(&Words::new([("abc", 7)], true), "aBcabé"), [(0, 7)]);
        assert!(!exact.any(b"ab") && exact.iter().count() == 3);
    }
}
