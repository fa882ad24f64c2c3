//! Whether a value is a secret: by how random it is, and by what code, words and examples look like.

/// Words of sentences, such as those that ask for a password.
const SENTENCE: &[&str] = &[
    "a",
    "again",
    "an",
    "and",
    "are",
    "as",
    "at",
    "be",
    "by",
    "can",
    "cannot",
    "confirm",
    "email",
    "enter",
    "field",
    "for",
    "from",
    "has",
    "have",
    "if",
    "in",
    "incorrect",
    "invalid",
    "is",
    "it",
    "key",
    "login",
    "missing",
    "must",
    "my",
    "new",
    "no",
    "not",
    "of",
    "old",
    "on",
    "or",
    "passphrase",
    "password",
    "passwords",
    "please",
    "required",
    "secret",
    "set",
    "should",
    "that",
    "the",
    "this",
    "to",
    "token",
    "type",
    "use",
    "used",
    "user",
    "username",
    "value",
    "was",
    "will",
    "with",
    "wrong",
    "your",
];

/// Characters of the longest word that may be a name.
const NAME: usize = 18;

/// Bytes of a value by which it is judged.
const JUDGED: usize = 400;

/// The part of a value by which it is judged.
pub(crate) fn beginning(value: &str) -> &str {
    &value[..value.floor_char_boundary(JUDGED.min(value.len()))]
}

/// A value behind a name.
pub(crate) struct NamedValue<'a> {
    pub value: &'a str,
    pub quoted: bool,
    /// The name is that of a password: those are chosen by people.
    pub password: bool,
    /// Nothing stands between the name, `=` and the value.
    pub tight: bool,
    /// The name and the value are separated by a colon, as a field and its type are.
    pub colon: bool,
    /// The text behind the value.
    pub after: &'a str,
}

impl NamedValue<'_> {
    /// Whether it is a secret and not code.
    pub(crate) fn is_secret(&self) -> bool {
        let Self { value, quoted, password, tight, .. } = *self;
        let value = beginning(value);
        // The end of a line in a text of JSON.
        let value = ["\\n", "\\r", "\\t"]
            .iter()
            .filter_map(|e| value.find(e))
            .min()
            .map_or(value, |end| &value[..end]);
        let least = if password && tight && !quoted { 4 } else { 6 };
        if value.len() < least
            || number(value)
            || placeholder(value)
            || value.contains("[redacted")
            || value.contains("://")
            || value.starts_with('=')
        {
            return false;
        }
        // Code: calls, paths of names, references.
        let code = [
            "::",
            "->",
            "()",
            "process.env",
            "os.environ",
            "env.",
            "self.",
            "this.",
            "config.",
            "args.",
            "...",
        ];
        if code.iter().any(|c| value.contains(c)) || (!quoted && self.is_code()) {
            return false;
        }
        if quoted && value.contains(' ') {
            return password && !sentence(value) && mixed(value) >= 2;
        }
        let digit = value.chars().any(|c| c.is_ascii_digit());
        if password {
            let sign = value.chars().any(|c| !c.is_alphanumeric());
            return mixed(value) >= 2 && (digit || sign || restless(value));
        }
        // A name such as `API_TOKEN_V2` or `user-token-2`, a type such as `Uint8Array`.
        let named = |w: &str| {
            !quoted
                && !tight
                && w.len() <= NAME
                && of_words(w)
                && (value.contains(['_', '.']) || w.starts_with(char::is_uppercase))
        };
        let words = value.split(['_', '-', '.']).all(|w| {
            w.chars().all(|c| c.is_ascii_alphabetic())
                || w.chars().all(|c| c.is_ascii_digit())
                || w.len() <= 3
                || named(w)
        });
        mixed(value) >= 2 && digit && !words && value.len() >= 8 && entropy(value) >= 2.8
    }

    /// Without quotes: a name of something else, which may be called.
    pub(crate) fn is_code(&self) -> bool {
        let Self { value, tight, colon, after, .. } = *self;
        let value = beginning(value);
        if number(value) {
            return true;
        }
        let next = after.chars().next();
        let path = value.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '*'))
            && value.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let called = matches!(next, Some('(' | '[' | '<' | '{'));
        let plain = !value.chars().any(|c| c.is_ascii_digit()) && !restless(value);
        // `Options::new`: the second colon is part of the value.
        if colon && value.starts_with(':') {
            return true;
        }
        path && (called
            || (colon && self.is_type())
            || (plain && (!tight || matches!(next, Some(',' | ')' | ';')))))
    }
}

impl NamedValue<'_> {
    /// The type of a field or constant: `TOKEN: KIND_1 = 3`, `password: CFStringRef;`, `token: TOKEN_KIND,`.
    fn is_type(&self) -> bool {
        let Self { value, after, .. } = *self;
        let value = beginning(value);
        let rest = after.trim_start_matches([' ', '\t']);
        let given = rest.starts_with('=') && !rest.starts_with("==");
        let ended = after.starts_with(';') && value.chars().all(|c| c.is_alphabetic() || c == '_');
        let capitals = value.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        given || ended || (capitals && value.contains('_') && after.starts_with([',', ';']))
    }
}

/// A number, with its type or without, or a time: `1.2.840`, `49703u32`, `2021-01-02T03:04:05Z`.
fn number(value: &str) -> bool {
    let plain =
        value.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['u', 'i', 'f', 'U', 'L', 'Z']);
    let plain = if plain.is_empty() { value } else { plain };
    plain.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b':' | b'T' | b'_' | b'+'))
        && value.bytes().any(|b| b.is_ascii_alphabetic() || matches!(b, b'.' | b':'))
}

/// Kinds of characters: lower case, upper case, digits, others.
fn mixed(value: &str) -> usize {
    let kinds: [fn(char) -> bool; 4] = [
        |c| c.is_ascii_lowercase(),
        |c| c.is_ascii_uppercase(),
        |c| c.is_ascii_digit(),
        |c| !c.is_alphanumeric(),
    ];
    kinds.iter().filter(|kind| value.chars().any(**kind)).count()
}

/// Whether a value is ordinary words, and not a password made of words.
fn sentence(value: &str) -> bool {
    let words: Vec<&str> = value.split(' ').filter(|w| !w.is_empty()).collect();
    let trimmed = |w: &str| w.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    !(2..=8).contains(&words.len())
        || value.ends_with([':', '.', '?', '!', ',', ' '])
        || value.contains(['%', '{', '\\', '='])
        || {
            let of_sentence = words.iter().filter(|w| SENTENCE.contains(&trimmed(w).as_str())).count();
            // `My dog Rex2`: letters and digits in one word are seldom said.
            let mixed = |w: &&&str| {
                w.chars().any(|c| c.is_ascii_digit()) && w.chars().any(|c| c.is_ascii_alphabetic())
            };
            let chosen = words.iter().filter(mixed).count() > 0 && of_sentence * 3 <= words.len();
            of_sentence > 0 && !chosen
        }
}

/// Whether a value that is surely given as a secret, such as behind an option, is one and no name of one.
pub(crate) fn is_value(value: &str) -> bool {
    let value = beginning(value);
    let digit = value.chars().any(|c| c.is_ascii_digit());
    let sign = value.chars().any(|c| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'));
    !placeholder(value)
        && !value.starts_with(['-', '[', '/', '.', '~'])
        && mixed(value) >= 2
        && (digit || sign || restless(value))
}

/// Whether a value that may be a word or a name of something else is too random for either.
pub(crate) fn is_random(value: &str) -> bool {
    const LEAST: usize = 8;
    // The end of a line in a text of JSON.
    let value = beginning(value).split('\\').next().unwrap_or_default();
    let parted = value.contains(['_', '-', '.']);
    let digit = value.chars().any(|c| c.is_ascii_digit());
    let letter = value.chars().any(|c| c.is_ascii_alphabetic());
    let plain = value.split(['_', '-', '.', '/', ':', ' ']).all(|w| {
        w.chars().all(|c| c.is_ascii_alphabetic()) || w.chars().all(|c| c.is_ascii_digit()) || w.len() <= 3
            // `shadow_map_pass2`
            || parted && w.len() <= 12 && of_words(w)
    });
    let code = ["::", "->", "()", "[redacted", "://", "env.", "..."].iter().any(|c| value.contains(c));
    value.len() >= LEAST
        && !value.starts_with(['/', '.', '~'])
        && digit
        && letter
        && !plain
        && !code
        && !placeholder(value)
        && !value.contains(['(', ')', '{', '}', '$'])
        && entropy(value) >= 2.5
}

/// Whether a value is so random that it needs no name that says more than `key`.
pub(crate) fn strong(value: &str) -> bool {
    const LEAST: usize = 16;
    let value = beginning(value);
    let pairs = value.as_bytes().windows(2);
    let turns = pairs.filter(|w| kind(w[0]) != kind(w[1]) && kind(w[0]) < 3 && kind(w[1]) < 3).count();
    // A hash, or a number of something.
    let hash = value.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    value.len() >= LEAST && is_random(value) && !hash && turns * 5 >= value.len() && entropy(value) >= 3.2
}

/// The kind of a sign: small letter, capital, digit, other.
fn kind(b: u8) -> u8 {
    match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}

/// So few vowels that the letters are no words: under a quarter, where words of English have about two fifths.
fn jumbled(value: &str) -> bool {
    let letters = value.chars().filter(char::is_ascii_alphabetic).count();
    let vowels = value.chars().filter(|c| "aeiouAEIOU".contains(*c)).count();
    letters >= 10 && vowels * 4 < letters
}

/// Upper and lower case alternate more than in a name made of words.
fn restless(value: &str) -> bool {
    let letters: Vec<bool> = value.chars().map(char::is_uppercase).collect();
    let turns = letters.windows(2).filter(|w| w[0] != w[1]).count();
    turns * 3 > value.len() || jumbled(value)
}

/// Few changes between small letters, capitals and digits: `dot2`, `x25519`, `PrivateKey`.
pub(crate) fn of_words(word: &str) -> bool {
    let word = beginning(word);
    let pairs = word.as_bytes().windows(2);
    let turns = pairs.filter(|w| kind(w[0]) != kind(w[1]) && (kind(w[0]), kind(w[1])) != (1, 0)).count();
    turns * 4 <= word.len()
}

/// `${TOKEN}`, `<your key>`, `****`, `changeme`.
pub(crate) fn placeholder(value: &str) -> bool {
    let value = beginning(value);
    let lower = value.to_lowercase();
    value.starts_with(['$', '<', '{', '%', '*', '#'])
        || value.contains("${")
        || value.contains("{{")
        || value.contains("xxxx")
        || value.contains("XXXX")
        || value.chars().all(|c| c == value.chars().next().unwrap_or(c))
        || [
            "****",
            "....",
            "example",
            "your-",
            "your_",
            "placeholder",
            "redacted",
            "changeme",
            "dummy",
            "mytoken",
            "mysecret",
            "mypassword",
        ]
        .iter()
        .any(|p| lower.contains(p))
}

/// Bits for each character (Shannon).
pub(crate) fn entropy(text: &str) -> f64 {
    let text = beginning(text);
    let mut counts = [0_u32; 256];
    for b in text.bytes() {
        counts[usize::from(b)] += 1;
    }
    let all = text.len() as f64;
    counts.iter().filter(|c| **c > 0).map(|c| f64::from(*c) / all).map(|p| -p * p.log2()).sum()
}
