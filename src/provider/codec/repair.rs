//! Reads the arguments of a call as servers send them: as JSON, encoded twice, repeated, behind an empty object, or in a
//! frame of a chat template. Only what has one reading is repaired; everything else stays unclear, and the model gets
//! an error as the result of the call.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

/// Levels of strings that are unpacked.
const LEVELS: usize = 3;
/// Bytes that are parsed while the last of several growing copies is looked for.
const WORK_LIMIT: usize = 4 * 1024 * 1024;

/// The arguments of one call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Repaired {
    /// The object, and its text.
    Object(Value, String),
    /// There are none.
    Nothing,
    /// They have no reading, or several.
    Unclear,
}

/// Reads the text of a complete call.
pub(crate) fn arguments(text: &str) -> Repaired {
    if let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
        return Repaired::Object(value, text.to_owned());
    }
    if text.trim().is_empty() {
        return Repaired::Nothing;
    }
    object(unframed(text), LEVELS)
        .map_or(Repaired::Unclear, |(value, text)| Repaired::Object(value, text.into_owned()))
}

/// True for a whole object, or several. Cheap for most texts that still grow.
pub(crate) fn is_whole(text: &str) -> bool {
    let text = unframed(text);
    text.ends_with(['}', '"']) && whole_values(text, LEVELS).is_some_and(|found| found.is_some())
}

/// True for an empty object, as some servers send it before the arguments.
pub(crate) fn is_placeholder(text: &str) -> bool {
    matches!(serde_json::from_str::<Value>(text), Ok(Value::Object(map)) if map.is_empty())
}

/// An object and its text.
type Found<'a> = (Value, Cow<'a, str>);

/// The object that the text stands for.
fn object(text: &str, levels: usize) -> Option<Found<'_>> {
    match whole_values(text, levels) {
        Some(found) => found,
        None => last_copy(text),
    }
}

/// The object that a text of whole values stands for. `None`: it does not consist of whole values.
fn whole_values(text: &str, levels: usize) -> Option<Option<Found<'_>>> {
    let empty = |v: &Value| v.as_object().is_some_and(serde_json::Map::is_empty);
    let mut found: Option<Found<'_>> = None;
    let mut unclear = false;
    let mut parts = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let from = parts.byte_offset();
        let Some(part) = parts.next() else { break };
        let part = part.ok()?;
        let own = text.get(from..parts.byte_offset())?.trim();
        let next = match part {
            Value::Object(_) => Some((part, Cow::Borrowed(own))),
            // Encoded twice.
            Value::String(inner) if levels > 0 => {
                object(unframed(&inner), levels - 1).map(|(value, own)| (value, Cow::Owned(own.into_owned())))
            }
            _ => None,
        };
        match (&found, next) {
            (_, None) => unclear = true,
            // An empty object before or behind the arguments, and the same ones again.
            (Some((before, _)), Some((value, _))) if *before == value || empty(&value) => {}
            (Some((before, _)), Some(_)) if !empty(before) => unclear = true,
            (_, Some(next)) => found = Some(next),
        }
    }
    Some(found.filter(|_| !unclear))
}

/// The last copy of arguments of which each piece repeated all that was there before: the rest of the text consists of
/// beginnings of that copy. `None` also where the text may be one object that was cut: the last copy may be a part of it.
fn last_copy(text: &str) -> Option<Found<'_>> {
    if serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof()) {
        return None;
    }
    let mut end = text.len();
    let mut work = 0;
    while let Some(at) = text.get(..end)?.rfind('{') {
        end = at;
        let copy = text.get(at..)?.trim_end();
        work += copy.len();
        if work > WORK_LIMIT {
            return None;
        }
        if at > 0
            && let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(copy)
            && are_beginnings(text.get(..at)?, copy)
        {
            return Some((value, copy.into()));
        }
    }
    None
}

/// True when `text` consists of beginnings of `copy`, none shorter than the one before it.
fn are_beginnings(mut text: &str, copy: &str) -> bool {
    let mut least = 1;
    while !text.is_empty() {
        let same = text.bytes().zip(copy.bytes()).take_while(|(a, b)| a == b).count();
        let Some(rest) = text.get(same..).filter(|_| same >= least) else { return false };
        (least, text) = (same, rest);
    }
    true
}

/// The text without the fence of a code block, and without a closing tag or mark of a chat template behind it.
fn unframed(text: &str) -> &str {
    let mut text = text.trim();
    if let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
        text = inner.strip_prefix("json").unwrap_or(inner).trim();
    }
    while let Some((before, mark)) = text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        let of_template = mark.starts_with(['/', '|'])
            && mark.len() <= 40
            && mark.chars().all(|c| c.is_ascii_alphanumeric() || "_-|/▁".contains(c));
        // Within a text the mark is part of it: then nothing whole stands before it.
        if !of_template || !before.trim_end().ends_with(['}', '"']) {
            break;
        }
        text = before.trim_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p17_arguments_with_one_reading_are_repaired_and_others_are_not() {
        let object = r#"{"path":"a"}"#;
        let string = |text: &str| Value::from(text).to_string();
        let fine = [
            object.to_owned(),
            format!(" {object}\n"),
            // Encoded twice, and three times.
            string(object),
            string(&string(object)),
            // Behind an empty object, before one, and repeated.
            format!("{{}}{object}"),
            format!("{{}} {object}"),
            format!("{object}{{}}"),
            format!("{object}{object}"),
            format!("{object}{object}\n{object}"),
            format!("{}{}", string(object), string(object)),
            // Each piece has all of it.
            format!(r#"{{"pa{{"path":{object}"#),
            format!(r#"{{{{"path":"{object}{object}"#),
            // Frames of chat templates.
            format!("```json\n{object}\n```"),
            format!("```{object}```"),
            format!("{object}</tool_call>"),
            format!("{object}<|tool_call_end|>"),
            format!("{object}\n</s>"),
        ];
        for text in fine {
            let Repaired::Object(value, own) = arguments(&text) else { panic!("{text}") };
            assert_eq!(value.to_string(), object, "{text}");
            assert_eq!(own.trim(), object, "{text}");
        }
        for text in ["", " ", "\n\t"] {
            assert_eq!(arguments(text), Repaired::Nothing, "{text:?}");
        }
        let unclear = [
            "{".to_owned(),
            r#"{"path":"#.into(),
            "[]".into(),
            format!("[{object}]"),
            "null".into(),
            "7".into(),
            string("text"),
            r#"{"path":"a"}{"path":"b"}"#.into(),
            // Cut before its last brace: the inner object is no copy of the outer one.
            r#"{"query":{"query":"x"}"#.into(),
            r#"{"a":{"a":{"a":1}}"#.into(),
            r#"{"a":[{"a":1}"#.into(),
            string(r#"{"query":{"query":"x"}"#),
            format!("{object}{{"),
            format!(r#"{{"path":"b{object}"#),
            format!("rm {object}"),
            string(r#"{"path":"a"}{"path":"b"}"#),
            format!("{object} {}", string(r#"{"path":"b"}"#)),
            format!("{object}<b>"),
        ];
        for text in unclear {
            assert_eq!(arguments(&text), Repaired::Unclear, "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_frame_in_a_text_is_part_of_it() {
        for text in [r#"{"text":"a</s>"}"#, r#"{"text":"```json"}"#, r#"{"a":{"a":1}}"#] {
            let Repaired::Object(_, own) = arguments(text) else { panic!("{text}") };
            assert_eq!(own, text);
        }
    }

    #[test]
    fn hostile_arguments_cost_little() {
        // Quadratic work would take hours here.
        for text in [
            "{".repeat(2_000_000),
            "{}".repeat(1_000_000),
            format!("{}{{\"a\":1}}", "{\"a".repeat(500_000)),
            format!("{}{{\"a\":1}}", "{\"a\":".repeat(500_000)),
            format!("{}{{\"a\":1}}", "{\n".repeat(500_000)),
        ] {
            let _ = arguments(&text);
        }
    }
}
