//! Secrets that are recognised by the name before them: `password = value`, `"token": "value"`, `scheme://name:value@host`.

use crate::redact::hint::may_be_assigned;
use crate::redact::{LazyPattern, Span, group, range, regex};

/// `scheme://name:secret@host`.
static URL: LazyPattern = LazyPattern::new(|| {
    regex(r"://[^\s/:@'\x22]{0,100}:(?P<secret>[^\s/@'\x22]{3,200})@(?P<host>[A-Za-z0-9.-]{0,200})")
});

/// `password = value`, from the word on.
pub(crate) const ASSIGNED: &str = concat!(
    r"(?i:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|",
    r"encryption[_-]?key|account[_-]?key|auth[_-]?key|credentials?|client[_-]?key|app[_-]?key|master[_-]?key|",
    r"hmac[_-]?key|shared[_-]?key|pass|pw|psk)",
    // Behind backslashes: JSON as a text of JSON.
    r#"(?P<rest>[A-Za-z0-9_.-]{0,30})(?:\\{0,7}["'\]]){0,2}"#,
    // The type of a constant.
    r"(?:\s{0,2}:?\s{0,2}(?:[Ss]tring|str|&(?:'static )?str|any|bytes)\s{0,2})?",
    // A text of YAML that begins on the next line.
    r#"\s{0,3}(?:=>|:=|=|:)\s{0,3}(?:[|>][+-]?(?:\s|\\[nrt]){1,8})?(?:[a-z]{0,2}#{0,3}"(?P<d>[^"\n]{6,400})"|'(?P<s>[^'\n]{6,400})'|(?:[a-z]{0,2}#{0,3})\\{1,7}"(?P<e>[^"\\\n]{6,400})|(?P<b>[^\s"',;&<>(){}\[\]]{8,400}))"#,
);

static ASSIGN: LazyPattern = LazyPattern::new(|| regex(ASSIGNED));

/// Names that are about a secret and do not hold one: `passwordPrompt`, `token_url`. Last words of a name, in lower case.
const ABOUT: &[&str] = &[
    "algorithm",
    "class",
    "color",
    "count",
    "dir",
    "endpoint",
    "env",
    "error",
    "expires",
    "expiry",
    "field",
    "file",
    "format",
    "header",
    "hint",
    "input",
    "kind",
    "label",
    "len",
    "length",
    "message",
    "name",
    "names",
    "param",
    "path",
    "pattern",
    "placeholder",
    "policy",
    "prompt",
    "provider",
    "regex",
    "size",
    "style",
    "text",
    "title",
    "ttl",
    "type",
    "uri",
    "url",
    "var",
    "version",
];

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

/// Values that stand for a secret in examples.
const EXAMPLES: &[&str] =
    &["bar", "foo", "pass", "passwd", "password", "pw", "pwd", "secret", "test", "token", "user"];

/// Adds passwords in addresses.
pub(crate) fn in_addresses(text: &str, found: &mut Vec<Span>) {
    let Some(url) = URL.for_text(text, |text| text.contains("://")) else { return };
    for c in url.captures_iter(text.as_bytes()) {
        let Some((range, secret)) = group(text, &c, "secret") else { continue };
        let host = group(text, &c, "host").map_or("", |(_, host)| host);
        // Names that are kept free for examples (RFC 2606).
        let example = ["example.com", "example.net", "example.org"].iter().any(|e| host.ends_with(e));
        if !placeholder(secret) && !example && !EXAMPLES.contains(&secret.to_lowercase().as_str()) {
            found.push((range, "password"));
        }
    }
}

/// Adds values whose name says that they are secret.
pub(crate) fn assigned(text: &str, found: &mut Vec<Span>) {
    let Some(assign) = ASSIGN.for_text(text, may_be_assigned) else { return };
    for c in assign.captures_iter(text.as_bytes()) {
        let rest = group(text, &c, "rest").map_or("", |(_, rest)| rest);
        // `tokenizer`, `tokens`, `secretary`: another word.
        if (rest.starts_with(|c: char| c.is_ascii_lowercase()) && !rest.starts_with("_")) || about(rest) {
            continue;
        }
        let quoted = ["d", "s", "e"].into_iter().find_map(|name| group(text, &c, name));
        let is_quoted = quoted.is_some();
        let Some((span, value)) = quoted.or_else(|| group(text, &c, "b")) else { continue };
        let Some(whole) = c.get(0).map(|m| range(text, m)) else { continue };
        let head = text[whole.start..span.start].to_lowercase();
        let password = ["passw", "passphrase", "pwd"].iter().any(|p| head.starts_with(p));
        // `DB_PASS`, `pass`: short names, which other words end in and other things are called by.
        let short = !password && ["pass", "pw", "psk"].iter().any(|p| head.starts_with(p));
        if short && (!rest.is_empty() || !begins_name(&text[..whole.start], &text[whole.clone()])) {
            continue;
        }
        let given = NamedValue {
            value,
            quoted: is_quoted,
            password,
            // `NAME=value`, as in a file of variables and on a command line.
            tight: head.strip_suffix('=').is_some_and(|h| !h.ends_with([' ', '\t', ':', '='])),
            colon: head.trim_end().ends_with(':'),
            after: &text[span.end..],
        };
        if if short { is_random(value) && !given.is_code() } else { given.is_secret() } {
            found.push((span, if password || short { "password" } else { "secret" }));
        }
    }
}

/// Whether a word of a name begins behind `before`: `_PASS`, `dbPass`, not `compass`.
fn begins_name(before: &str, name: &str) -> bool {
    let camel = || {
        let mut letters = name.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
    };
    match before.chars().next_back() {
        None => true,
        Some(c) if c.is_ascii_lowercase() => camel(),
        Some(c) => !c.is_alphanumeric(),
    }
}

/// Whether the rest of a name says that its value is no secret.
fn about(rest: &str) -> bool {
    let capital = rest.rfind(|c: char| c.is_ascii_uppercase());
    let word = match rest.rfind(['_', '-', '.']) {
        Some(at) => &rest[at + 1..],
        // `passwordPrompt`; in capitals there is no such end of a word.
        None if rest.chars().any(|c| c.is_ascii_lowercase()) => &rest[capital.unwrap_or(0)..],
        None => rest,
    };
    ABOUT.contains(&word.to_ascii_lowercase().as_str())
}

/// A value behind a name.
struct NamedValue<'a> {
    value: &'a str,
    quoted: bool,
    /// The name is that of a password: those are chosen by people.
    password: bool,
    /// Nothing stands between the name, `=` and the value.
    tight: bool,
    /// The name and the value are separated by a colon, as a field and its type are.
    colon: bool,
    /// The text behind the value.
    after: &'a str,
}

impl NamedValue<'_> {
    /// Whether it is a secret and not code.
    fn is_secret(&self) -> bool {
        let Self { value, quoted, password, tight, .. } = *self;
        if placeholder(value)
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
    fn is_code(&self) -> bool {
        let Self { value, tight, colon, after, .. } = *self;
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
        let rest = after.trim_start_matches([' ', '\t']);
        let given = rest.starts_with('=') && !rest.starts_with("==");
        let ended = after.starts_with(';') && value.chars().all(|c| c.is_alphabetic() || c == '_');
        let capitals = value.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        given || ended || (capitals && value.contains('_') && after.starts_with([',', ';']))
    }
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
    let value = value.split('\\').next().unwrap_or_default();
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
    let kind = |b: u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let pairs = word.as_bytes().windows(2);
    let turns = pairs.filter(|w| kind(w[0]) != kind(w[1]) && (kind(w[0]), kind(w[1])) != (1, 0)).count();
    turns * 4 <= word.len()
}

/// `${TOKEN}`, `<your key>`, `****`, `changeme`.
pub(crate) fn placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    value.starts_with(['$', '<', '{', '%', '*', '#'])
        || value.contains("${")
        || value.contains("{{")
        || value.chars().all(|c| c == value.chars().next().unwrap_or(c))
        || [
            "xxxx",
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
    let mut counts = [0_u32; 256];
    for b in text.bytes() {
        counts[usize::from(b)] += 1;
    }
    let all = text.len() as f64;
    counts.iter().filter(|c| **c > 0).map(|c| f64::from(*c) / all).map(|p| -p * p.log2()).sum()
}
