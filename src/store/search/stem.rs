//! Words of a text, and their stems: "retries", "retried" and "retrying" are one word for a ranked search.

/// Longest word that has a stem, in bytes; longer ones are hashes and encoded data.
const LONGEST: usize = 40;

/// The words of a text: start and end in bytes. A word is a run of letters and digits.
pub fn words(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (from, _) = chars.by_ref().find(|(_, c)| c.is_alphanumeric())?;
        let mut to = text.len();
        while let Some((at, c)) = chars.peek().copied() {
            if !c.is_alphanumeric() {
                to = at;
                break;
            }
            chars.next();
        }
        Some((from, to))
    })
}

/// Whether a character is of a script that writes no spaces between words: Thai, Lao, Burmese, Khmer, kana, Han. A run of them is a
/// whole sentence.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The parts of a name in camel case, in lower case: `parseRetryAfter` has three. Empty for any other word.
pub fn camel_case_parts(word: &str) -> Vec<String> {
    if !word.is_ascii() || word.len() > LONGEST {
        return Vec::new();
    }
    let bytes = word.as_bytes();
    let mut starts = vec![0];
    for at in 1..bytes.len() {
        let (before, here) = (bytes[at - 1], bytes[at]);
        let next = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let begins = here.is_ascii_uppercase() && (!before.is_ascii_uppercase() || next);
        if begins {
            starts.push(at);
        }
    }
    if starts.len() == 1 {
        return Vec::new();
    }
    starts.push(bytes.len());
    let parts = starts.windows(2).map(|w| word[w[0]..w[1]].to_ascii_lowercase());
    parts.filter(|p| p.len() > 1).collect()
}

/// The stem of a word in lower case, by the algorithm of Porter (1980). A word with other than ASCII letters is its own
/// stem.
pub fn stem(word: &str) -> String {
    let fit = (3..=LONGEST).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    if !fit {
        return word.to_owned();
    }
    let mut stemmer = Porter(word.as_bytes().to_vec());
    stemmer.plurals();
    stemmer.y_to_i();
    stemmer.replace_by(&DOUBLE, 0);
    stemmer.replace_by(&SINGLE, 0);
    stemmer.remove_endings();
    stemmer.final_e();
    String::from_utf8(stemmer.0).unwrap_or_else(|_| word.to_owned())
}

const DOUBLE: [(&str, &str); 20] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const SINGLE: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const ENDINGS: [&str; 18] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
];

/// A word while its endings are removed.
struct Porter(Vec<u8>);

impl Porter {
    fn consonant(&self, at: usize) -> bool {
        match self.0[at] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => at == 0 || !self.consonant(at - 1),
            _ => true,
        }
    }

    /// Number of vowel-consonant sequences in the first `len` letters.
    fn measure(&self, len: usize) -> usize {
        let mut n = 0;
        let mut vowel = false;
        for at in 0..len {
            let consonant = self.consonant(at);
            n += usize::from(vowel && consonant);
            vowel = !consonant;
        }
        n
    }

    fn has_vowel(&self, len: usize) -> bool {
        (0..len).any(|at| !self.consonant(at))
    }

    fn double_consonant(&self, len: usize) -> bool {
        len >= 2 && self.0[len - 1] == self.0[len - 2] && self.consonant(len - 1)
    }

    /// Consonant, vowel, consonant that is not w, x or y.
    fn short(&self, len: usize) -> bool {
        len >= 3
            && self.consonant(len - 3)
            && !self.consonant(len - 2)
            && self.consonant(len - 1)
            && !matches!(self.0[len - 1], b'w' | b'x' | b'y')
    }

    /// Length without this ending, if the word has it.
    fn without(&self, ending: &str) -> Option<usize> {
        self.0.ends_with(ending.as_bytes()).then(|| self.0.len() - ending.len())
    }

    fn plurals(&mut self) {
        if self.without("sses").is_some() || self.without("ies").is_some() {
            self.0.truncate(self.0.len() - 2);
        } else if self.without("ss").is_none() && self.0.ends_with(b"s") {
            self.0.pop();
        }
        if let Some(len) = self.without("eed") {
            if self.measure(len) > 0 {
                self.0.pop();
            }
            return;
        }
        let cut = self.without("ed").or_else(|| self.without("ing")).filter(|len| self.has_vowel(*len));
        let Some(len) = cut else { return };
        self.0.truncate(len);
        if ["at", "bl", "iz"].iter().any(|e| self.without(e).is_some()) {
            self.0.push(b'e');
        } else if self.double_consonant(len) && !matches!(self.0[len - 1], b'l' | b's' | b'z') {
            self.0.pop();
        } else if self.measure(len) == 1 && self.short(len) {
            self.0.push(b'e');
        }
    }

    fn y_to_i(&mut self) {
        let len = self.0.len() - 1;
        if self.0[len] == b'y' && self.has_vowel(len) {
            self.0[len] = b'i';
        }
    }

    /// Replaces the first ending of the table that the word has, when more than `least` sequences stand before it.
    fn replace_by(&mut self, table: &[(&str, &str)], least: usize) {
        let found = table.iter().find_map(|(ending, by)| Some((self.without(ending)?, by)));
        if let Some((len, by)) = found
            && self.measure(len) > least
        {
            self.0.truncate(len);
            self.0.extend(by.bytes());
        }
    }

    fn remove_endings(&mut self) {
        let ion = self.without("ion").filter(|len| *len > 0 && matches!(self.0[len - 1], b's' | b't'));
        let len = ion.or_else(|| ENDINGS.iter().find_map(|e| self.without(e)));
        if let Some(len) = len
            && self.measure(len) > 1
        {
            self.0.truncate(len);
        }
    }

    fn final_e(&mut self) {
        let len = self.0.len() - 1;
        if self.0[len] == b'e' {
            let n = self.measure(len);
            if n > 1 || (n == 1 && !self.short(len)) {
                self.0.truncate(len);
            }
        }
        let len = self.0.len();
        if self.0[len - 1] == b'l' && self.double_consonant(len) && self.measure(len) > 1 {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (forms, is) in [
            ("retry retries retried retrying", "retri"),
            ("connect connects connection connections connected connecting", "connect"),
            ("cache caches cached caching", "cach"),
            ("relational", "relat"),
            ("hopping hop", "hop"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("controlled control", "control"),
            ("generalization generalizations", "gener"),
            ("falling fall", "fall"),
            ("sky", "sky"),
            ("happy", "happi"),
            ("adoption", "adopt"),
            ("is", "is"),
            ("größe", "größe"),
            ("e0308", "e0308"),
        ] {
            for form in forms.split(' ') {
                assert_eq!(stem(form), is, "{form}");
            }
        }
    }

    #[test]
    fn no_word_makes_it_fail() {
        let letters = b"aeybsldtingz";
        // All words of up to four of these letters.
        let mut words = vec![Vec::new()];
        for _ in 0..4 {
            let longer = words.iter().flat_map(|w: &Vec<u8>| {
                letters.iter().map(|l| w.iter().copied().chain([*l]).collect::<Vec<u8>>())
            });
            words = longer.collect();
            for word in &words {
                let word = std::str::from_utf8(word).unwrap();
                assert!(!stem(word).is_empty(), "{word}");
            }
        }
    }

    #[test]
    fn scripts_without_spaces_are_known() {
        for c in "กลកမのカ漢㐀𠀀𰀀\u{f900}\u{fa10}".chars() {
            assert!(is_unspaced(c), "{c}");
        }
        // Korean is written with spaces, and so are Devanagari and Arabic.
        for c in "aéжα한अع1-。".chars() {
            assert!(!is_unspaced(c), "{c}");
        }
    }

    #[test]
    fn words_and_parts_of_names_are_found() {
        let text = "call parse_retryAfter(x), Größe 50%";
        let found: Vec<&str> = words(text).map(|(a, b)| &text[a..b]).collect();
        assert_eq!(found, ["call", "parse", "retryAfter", "x", "Größe", "50"]);
        assert_eq!(camel_case_parts("parseRetryAfter"), ["parse", "retry", "after"]);
        assert_eq!(camel_case_parts("HTTPServer"), ["http", "server"]);
        assert!(
            camel_case_parts("plain").is_empty()
                && camel_case_parts("ALLCAPS").is_empty()
                && camel_case_parts("Title").is_empty()
        );
    }
}
