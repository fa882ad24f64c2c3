//! A file's text, taken apart: YAML front matter with the place of each value, and the body.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::problem::Problem;

/// Bytes of a definition at most.
pub const LARGEST: usize = 256 * 1024;

/// A value of the front matter.
#[derive(Clone, Debug)]
pub enum Value {
    Nothing,
    Text(String),
    /// `off` and `no` are false to YAML.
    Bool(bool),
    Number(f64),
    List(Vec<Spanned<Self>>),
    Map(Pairs),
}

/// Keys in the order of the file.
pub type Pairs = Vec<(Spanned<String>, Spanned<Value>)>;

impl Value {
    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Text(_) => "text",
            Self::Bool(_) => "yes or no",
            Self::Number(_) => "a number",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a number, a list or a map")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
                Ok(Value::Nothing)
            }
            fn visit_none<E: de::Error>(self) -> Result<Value, E> {
                Ok(Value::Nothing)
            }
            fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
                Value::deserialize(d)
            }
            fn visit_bool<E: de::Error>(self, yes: bool) -> Result<Value, E> {
                Ok(Value::Bool(yes))
            }
            // Counts of a definition are far below where a float is no longer exact.
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Value, E> {
                Ok(Value::Number(n as f64))
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Value, E> {
                Ok(Value::Number(n as f64))
            }
            fn visit_f64<E: de::Error>(self, n: f64) -> Result<Value, E> {
                Ok(Value::Number(n))
            }
            fn visit_str<E: de::Error>(self, s: &str) -> Result<Value, E> {
                Ok(Value::Text(s.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element::<Spanned<Value>>()? {
                    items.push(item);
                }
                Ok(Value::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry::<Spanned<String>, Spanned<Value>>()? {
                    pairs.push(pair);
                }
                Ok(Value::Map(pairs))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A file that was taken apart.
#[derive(Debug)]
pub struct Parts {
    /// Keys and values above the body.
    pub pairs: Pairs,
    /// Lines of the file before the front matter's first.
    pub above: usize,
    /// Without blank lines around it.
    pub body: String,
    /// Line of the body's beginning, from 1.
    pub body_line: usize,
}

/// The mark above and below the front matter.
const FENCE: &str = "---";

/// Takes a file apart.
///
/// # Errors
/// A file without front matter, or with front matter that cannot be read; with the place.
pub fn split(path: &Path, bytes: &[u8]) -> Result<Parts, Problem> {
    let at = |line: usize, column: usize, message: String, hint: &str| Problem {
        at: Some((line, column)),
        hint: Some(hint.to_owned()),
        ..Problem::file(path, message)
    };
    if bytes.len() > LARGEST {
        let most = LARGEST / 1024;
        return Err(at(
            1,
            1,
            format!("the file is larger than {most} KiB"),
            "a prompt of this size does not fit any model",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let good = bytes.get(..e.valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|b| **b == b'\n').count() + 1;
        at(line, 1, "this is not UTF-8 text".into(), "save the file as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let lines: Vec<&str> = text.lines().collect();
    let fence = |from: usize| lines.iter().skip(from).position(|l| l.trim_end() == FENCE).map(|n| n + from);
    let Some(open) =
        lines.iter().position(|l| !l.trim().is_empty()).filter(|i| lines[*i].trim_end() == FENCE)
    else {
        let hint = "start with ---, then name and description, then --- and the prompt";
        return Err(at(1, 1, "the file does not start with front matter".into(), hint));
    };
    let Some(close) = fence(open + 1) else {
        let hint = "add a line --- between the settings and the prompt";
        return Err(at(open + 1, 1, "the front matter has no end".into(), hint));
    };
    let yaml = lines[open + 1..close].join("\n");
    let above = open + 1;
    let body = lines[close + 1..].join("\n").trim().to_owned();
    let pairs = if yaml.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with('#')) {
        Vec::new()
    } else {
        match serde_saphyr::from_str::<Value>(&yaml) {
            Ok(Value::Map(pairs)) => pairs,
            Ok(other) => {
                let hint = "write `name: ...` and so on, one key per line";
                let message = format!("the front matter is {}, not keys with values", other.kind());
                return Err(at(above + 1, 1, message, hint));
            }
            Err(e) => {
                let (line, column) = e.location().map_or((1, 1), |l| (number(l.line()), number(l.column())));
                let said = first_line(&e.to_string());
                let twice = said.strip_prefix("duplicate mapping key: ").and_then(|k| k.split(',').next());
                return Err(match twice {
                    Some(key) => {
                        at(above + line, column, format!("`{key}` appears twice"), "keep one of them")
                    }
                    None => at(above + line, column, said, "text with : or # in it needs quotes"),
                });
            }
        }
    };
    Ok(Parts { pairs, above, body, body_line: close + 2 })
}

/// Lines and columns of a text in memory.
pub fn number(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// The parser's words, without the place (which is given already) and the picture of it.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let place = |head: &str| head.starts_with("line ") && head.contains(" column ");
    line.split_once(": ").filter(|(head, _)| place(head)).map_or(line, |(_, rest)| rest).to_owned()
}
