//! JSON objects in the output of a hook: with other text around them, a byte order mark, or escape sequences of a terminal.

use serde_json::{Map, Value};

/// Most `{` that are read in vain: each may cost the reading of many nested ones.
const TRIES: usize = 10_000;

/// The objects in an output, and what could not be read.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In the order of the output.
    pub objects: Vec<Map<String, Value>>,
    /// The strongest sign that there was another one.
    pub broken: Option<Broken>,
}

/// Where a `{` stands that begins no JSON object. A later one is a stronger sign that it was meant as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// Somewhere in the text.
    InText,
    /// A quotation mark follows.
    LikeJson,
    /// It is the first of its line.
    Line,
    /// It is the first of the text.
    First,
}

/// Finds all objects that are not within others.
pub(crate) fn find(stdout: &[u8]) -> Found {
    let text = plain(&String::from_utf8_lossy(stdout));
    let mut found = Found::default();
    let first = text.find(|c| !blank(c)).unwrap_or(text.len());
    let mut tries = 0;
    let mut at = 0;
    while let Some(next) = text[at..].find('{') {
        let start = at + next;
        let rest = &text[start..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Once>();
        if let Some(Ok(Once(fields))) = stream.next() {
            at = start + stream.byte_offset();
            found.objects.push(fields);
        } else {
            at = start + 1;
            tries += 1;
            if tries == TRIES {
                // What stands behind it may be a denial.
                found.broken = Some(Broken::First);
                return found;
            }
            found.broken = found.broken.max(Some(sign(start == first, &text[..start], &rest[1..])));
        }
    }
    found
}

/// A sign that may stand before the beginning of a text or a line.
fn blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | '\u{fffd}')
}

/// How strong a sign a `{` between these texts is. `first`: nothing but blanks stands before it.
fn sign(first: bool, before: &str, after: &str) -> Broken {
    if first {
        Broken::First
    } else if before.chars().rev().take_while(|c| *c != '\n').all(blank) {
        Broken::Line
    } else if after.trim_start().starts_with('"') {
        Broken::LikeJson
    } else {
        Broken::InText
    }
}

/// The text without escape sequences and zero bytes. No valid JSON has one of them, so none is changed. A sequence that does not
/// end takes nothing with it.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let rest = chars.as_str();
        let sequence = match c {
            '\u{1b}' => {
                rest.strip_prefix('[').map_or_else(|| short(rest), |rest| control(rest).map(|n| n + 1))
            }
            '\u{9b}' => control(rest),
            '\0' => Some(0),
            c => {
                out.push(c);
                None
            }
        };
        if let Some(length) = sequence {
            chars = rest[length..].chars();
        }
    }
    out
}

/// Length of the rest of a control sequence: parameters, and a letter or sign that JSON does not begin with.
fn control(rest: &str) -> Option<usize> {
    let end = rest.find(|c: char| !(' '..='?').contains(&c) || c == '"')?;
    rest[end..].starts_with(|c: char| c.is_ascii_alphabetic() || "@`~^_".contains(c)).then_some(end + 1)
}

/// Length of the rest of a short sequence, such as the choice of a character set.
fn short(rest: &str) -> Option<usize> {
    let end = rest.find(|c: char| !(' '..='/').contains(&c) || c == '"').filter(|end| *end > 0)?;
    rest[end..].starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(end + 1)
}

/// An object that has each field once: of two decisions, neither is one.
struct Once(Map<String, Value>);

impl<'de> serde::Deserialize<'de> for Once {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> serde::de::Visitor<'de> for Fields {
    type Value = Once;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
        let mut fields = Map::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if fields.insert(name, value).is_some() {
                return Err(serde::de::Error::custom("a field is there twice"));
            }
        }
        Ok(Once(fields))
    }
}
