//! Secrets that are recognised by their own form: keys of vendors begin with a fixed sign. The forms are data, in
//! `vendors/rules.txt`; each is compiled when its sign is first found.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::Regex;

use crate::redact::hint::Words;
use crate::redact::pattern::{LazyPattern, Span, range, regex};
use crate::redact::values::{beginning, entropy, of_words};

/// Bytes before a sign, and behind it, that may belong to its secret.
const BEFORE: usize = 96;
const BEHIND: usize = 4 << 10;

/// A row of the file.
#[derive(Debug)]
pub(crate) struct Rule {
    /// In the mask.
    pub name: &'static str,
    pub form: &'static str,
    kind: Kind,
    compiled: OnceLock<Option<Regex>>,
}

/// Where a form stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Behind its sign.
    Behind,
    /// Around its sign.
    Around,
    /// It is the whole value of a name.
    Value,
}

impl Rule {
    fn new(row: &'static str, sign: &str) -> Option<Self> {
        let (name, rest) = row.split_once('\t')?;
        let (_, form) = rest.split_once('\t')?;
        let kind = match sign.as_bytes().first()? {
            b'~' => Kind::Around,
            b'@' => Kind::Value,
            _ => Kind::Behind,
        };
        Some(Self { name, form, kind, compiled: OnceLock::new() })
    }

    /// Compiled; `None`: it is invalid and finds nothing.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        let compile = || {
            regex(&match self.kind {
                Kind::Behind => format!("^(?:{})", self.form),
                Kind::Around => self.form.to_owned(),
                Kind::Value => format!("(?i)^(?:{})$", self.form),
            })
        };
        #[cfg(test)]
        crate::redact::pattern::LOOKS.with(|looks| looks.set(looks.get() + 1));
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// The rows of the file.
#[derive(Debug)]
pub(crate) struct Rules {
    pub rules: Vec<Rule>,
    /// Signs of shapes, with the numbers of their rules.
    pub signs: Words,
    /// Those of them that may stand inside of a secret.
    pub within: Vec<&'static str>,
    /// Words in names, with the numbers of their rules.
    pub vendors: Vec<(&'static str, usize)>,
}

impl Rules {
    /// Of a file of rules.
    pub(crate) fn new(text: &'static str) -> Self {
        let (mut rules, mut signs, mut vendors): (Vec<Rule>, Vec<_>, Vec<_>) = Default::default();
        let mut within = Vec::new();
        for row in text.lines().filter(|row| !row.starts_with('#')) {
            let all = row.split('\t').nth(1).unwrap_or_default();
            let Some(rule) = all.split(' ').next().and_then(|sign| Rule::new(row, sign)) else { continue };
            let list = if rule.kind == Kind::Value { &mut vendors } else { &mut signs };
            list.extend(all.split(' ').map(|sign| (sign.trim_start_matches(['~', '@']), rules.len())));
            if rule.kind == Kind::Around {
                within.extend(all.split(' ').map(|sign| sign.trim_start_matches('~')));
            }
            rules.push(rule);
        }
        Self { rules, signs: Words::new(signs, false), within, vendors }
    }

    /// Whether the rule of this number matches the whole value, which is no word and no number.
    pub(crate) fn is_value(&self, rule: usize, value: &str) -> bool {
        value.bytes().any(|b| b.is_ascii_digit())
            && value.bytes().any(|b| b.is_ascii_alphabetic())
            && entropy(value) > 2.5
            && self.rules[rule].regex().is_some_and(|r| r.is_match(value.as_bytes()))
    }
}

/// Parsed when it is first needed.
pub(crate) static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new(include_str!("vendors/rules.txt")));

/// Signs without a separator, which base64 may hold by chance.
const JOINED: &[&str] = &[
    "cio", "dapi", "EAA", "EZTK", "EZAK", "AKCp", "cmVmd", "pat", "oy2", "4b1d", "LTAI", "ABSK", "A3T", "SK",
];

/// Adds what has the shape of a secret.
pub(crate) fn shapes(text: &str, found: &mut Vec<Span>) {
    let mut end = 0;
    RULES.signs.each(text.as_bytes(), |sign, n| {
        let rule = &RULES.rules[n];
        if sign.start >= end
            && let Some(span) = shape(text, sign, rule)
        {
            end = span.end;
            found.push((span, rule.name));
        }
    });
    discord(text, found);
    facebook(text, found);
}

/// The secret with this sign.
fn shape(text: &str, sign: Range<usize>, rule: &Rule) -> Option<Range<usize>> {
    let at = sign.start;
    let behind = if rule.kind == Kind::Behind { BEHIND } else { 2 * BEFORE };
    let to = text.floor_char_boundary((at + behind).min(text.len()));
    let span = match rule.kind {
        Kind::Behind => {
            let rest = text.get(sign.end..to)?;
            at..sign.end + range(rest, rule.regex()?.find(rest.as_bytes())?).end
        }
        _ => {
            let mut from = text.floor_char_boundary(at.saturating_sub(BEFORE));
            loop {
                let found = range(&text[from..], rule.regex()?.find(&text.as_bytes()[from..to])?);
                let span = from + found.start..from + found.end;
                if span.contains(&at) {
                    break span;
                }
                if span.start > at {
                    return None;
                }
                from = next(text, span.start);
            }
        }
    };
    is_one(text, &span).then_some(span)
}

/// Whether what has a shape is a secret, by what stands around it.
fn is_one(text: &str, span: &Range<usize>) -> bool {
    let word = &text[span.clone()];
    let before = text[..span.start].chars().next_back();
    // Part of a longer word: a hash, an identifier, base64.
    let inner = before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+'))
        && !word.starts_with(['?', '&', '-', '$'])
        && !word_begins(&text[..span.start]);
    let joined = JOINED.iter().any(|sign| word.starts_with(sign));
    // A sign that letters follow at once: in base64 any letters do.
    let longer = joined
        && text[span.end..].starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='));
    // `/` before it is a path or base64.
    let path = before == Some('/') && joined && !word.contains('.');
    !inner && !longer && !path && random(word)
}

/// `Mxxx.xxxxxx.xxx`: no sign but two points.
fn discord(text: &str, found: &mut Vec<Span>) {
    static SHAPE: LazyPattern =
        LazyPattern::new(|| regex(r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"));
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('.') {
        let words = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if bytes.get(at + 7) != Some(&b'.') || at < 24 || !bytes[at - 24..at].iter().all(words) {
            continue;
        }
        let from = text.floor_char_boundary(at.saturating_sub(26));
        let to = text.ceil_char_boundary((at + 200).min(text.len()));
        let Some(hit) = SHAPE.get().and_then(|r| r.find(&bytes[from..to])) else { continue };
        let span = range(&text[from..], hit);
        let span = from + span.start..from + span.end;
        if is_one(text, &span) {
            found.push((span, "discord token"));
        }
    }
}

/// `123456789012345|xxx`: its sign is too short to be looked for.
fn facebook(text: &str, found: &mut Vec<Span>) {
    static SHAPE: LazyPattern = LazyPattern::new(|| regex(r"[0-9]{15,16}\|[0-9A-Za-z_-]{27,40}\b"));
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('|') {
        let digits = bytes[..at].iter().rev().take(17).take_while(|b| b.is_ascii_digit()).count();
        let word =
            bytes[at + 1..].iter().take(27).take_while(|b| b.is_ascii_alphanumeric() || b"_-".contains(b));
        if !(15..=16).contains(&digits) || word.count() < 27 {
            continue;
        }
        let from = at - digits;
        let to = text.floor_char_boundary((at + 100).min(text.len()));
        let Some(hit) = SHAPE.get().and_then(|r| r.find(&bytes[from..to])) else { continue };
        let span = range(&text[from..], hit);
        let span = from + span.start..from + span.end;
        if is_one(text, &span) {
            found.push((span, "facebook token"));
        }
    }
}

/// What stands at the end of `before` belongs to no word: the sign of an added line in a diff, or a line end
/// or tab as JSON spells it.
pub(crate) fn word_begins(before: &str) -> bool {
    before == "+"
        || before.ends_with("\n+")
        || ["\\n", "\\r", "\\t", "\\n+"].iter().any(|e| before.ends_with(e))
}

/// The start of the next character.
pub(crate) fn next(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(text.len(), |c| at + c.len_utf8())
}

/// Not a name made of words: it has a digit and letters, or is long and mixed.
pub(crate) fn random(text: &str) -> bool {
    let text = beginning(text);
    !slug(text)
        && ((text.chars().any(|c| c.is_ascii_digit()) && text.chars().any(|c| c.is_ascii_alphabetic()))
            || (text.chars().any(char::is_uppercase)
                && text.chars().any(char::is_lowercase)
                && entropy(text) > 3.5))
}

/// Characters of the longest word in a name.
const WORD: usize = 20;

/// Words between separators, as in addresses and names of files: `sk-test-driven-design-2026`.
fn slug(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', '_', '.']).filter(|p| !p.is_empty()).collect();
    parts.len() > 2
        && !text.bytes().any(|b| b.is_ascii_uppercase())
        && parts.iter().all(|p| p.len() < 4 || (p.len() <= WORD && of_words(p)))
}

#[cfg(test)]
mod tests {
    use crate::redact::Redactor;

    #[test]
    fn a_token_of_two_halves_is_masked() {
        let (number, word) = ("1234567890123456", "aB3xK9mQ2pL7wR5tY8uZaB3xK9mQ2p");
        for id in [number, &number[1..]] {
            for text in [format!("{id}|{word}"), format!("a={id}|{word}&b"), format!("| {id}|{word} |")] {
                let shown = Redactor::default().redact(&text).into_owned();
                assert!(shown.contains("[redacted facebook token]") && !shown.contains(word), "{shown}");
            }
        }
        let plain = format!("|{number}|12|\n12|{word}");
        assert_eq!(Redactor::default().redact(&plain), plain);
    }
}
