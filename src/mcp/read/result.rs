//! Results of servers as a model reads them.

use base64::Engine as _;
use serde_json::Value;
use tiller_protocol::Part;
use tiller_tool::foreign::seen;

use super::parts::{LeftOut, kind, list, short, some, text};

/// Maximum number of parts of a result.
const PARTS: usize = 100;
/// Maximum number of pictures of a result.
const PICTURES: usize = 4;

/// The parts of a result: one text, then pictures. Text is cleaned of what could control a terminal, and not cut. Each piece
/// is read by itself: one that is odd is left out, with words for it.
pub(crate) fn parts(result: &mut Value) -> Vec<Part> {
    let mut left = LeftOut::default();
    let (mut text, mut pictures) = (String::new(), Vec::new());
    let content = match result.get_mut("content") {
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": std::mem::take(text)})],
        _ => list(result, "content", "part", &mut left),
    };
    let (all, mut any) = (content.len(), false);
    for (at, block) in content.iter().take(PARTS).enumerate() {
        let piece = match piece(block, &mut pictures) {
            Ok(None) => continue,
            Ok(Some(piece)) => {
                any = true;
                piece
            }
            Err(why) => format!("[part {} of {all} was left out: {why}]", at + 1),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&piece);
    }
    if all > PARTS {
        left.push(format!("{} more parts were left out", all - PARTS));
    }
    for note in left.sentences() {
        text.push_str(&format!("\n[{note}]"));
    }
    if !any
        && pictures.is_empty()
        && let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null())
    {
        text = [clean(structured.to_string().as_bytes()), text].join("\n").trim_end().to_owned();
    }
    if text.is_empty() && pictures.is_empty() {
        text = "(no content)".into();
    }
    let mut parts = if text.is_empty() { Vec::new() } else { vec![Part::Text { text }] };
    parts.extend(pictures);
    parts
}

/// Returns true if the server says that the call failed.
pub(crate) fn has_failed(result: &Value) -> bool {
    result.get("isError") == Some(&Value::Bool(true))
}

/// One piece of content as text; a picture goes to the others. `Err`: why it is left out.
pub(crate) fn piece(block: &Value, pictures: &mut Vec<Part>) -> Result<Option<String>, String> {
    if !block.is_object() {
        return Err(format!("it is {}", kind(block)));
    }
    match text(block, "type").map_err(|why| format!("{why}, which says its kind"))? {
        "text" => Ok(Some(clean(text(block, "text")?.as_bytes()))),
        "image" => add_picture(text(block, "data")?, pictures),
        "audio" => {
            let data = text(block, "data")?;
            Ok(Some(described("sound", some(block, "mimeType").unwrap_or("an unknown type"), data.len())))
        }
        "resource" => match block.get("resource") {
            Some(resource @ Value::Object(_)) => contents(resource, pictures),
            Some(other) => Err(format!("its resource is {}", kind(other))),
            None => Err("it has no resource".into()),
        },
        "resource_link" => {
            let uri = text(block, "uri")?;
            let name = some(block, "name").or(some(block, "title")).unwrap_or_default();
            Ok(Some(clean(format!("[resource {uri}: {name}]").as_bytes())))
        }
        other => Err(format!("its kind '{}' is not known", short(other))),
    }
}

/// The text of a resource; a picture goes to the others. `Err`: why it is left out.
pub(crate) fn contents(resource: &Value, pictures: &mut Vec<Part>) -> Result<Option<String>, String> {
    if resource.get("text").is_some_and(|text| !text.is_null()) {
        return Ok(Some(clean(text(resource, "text")?.as_bytes())));
    }
    let blob = text(resource, "blob").map_err(|why| {
        if resource.get("blob").is_none() { "it has neither text nor data".into() } else { why }
    })?;
    let kind = some(resource, "mimeType").unwrap_or("an unknown type");
    match kind.starts_with("image/") {
        true => add_picture(blob, pictures),
        false => Ok(Some(described("data", kind, blob.len()))),
    }
}

/// The one gate of pictures: at most [`PICTURES`] of a result, each as `read_file` attaches one.
fn add_picture(base64: &str, pictures: &mut Vec<Part>) -> Result<Option<String>, String> {
    let size = tiller_tool::output::human(base64.len() as u64 / 4 * 3);
    let refused = |why: String| Err(format!("a picture of {size}: {why}"));
    if pictures.len() >= PICTURES {
        return refused(format!("only the first {PICTURES} pictures of a result are shown"));
    }
    let plain: String = base64.split_ascii_whitespace().collect();
    let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(&plain) else {
        return refused("its data is not base64".into());
    };
    match tiller_tool::attachable_image(&bytes) {
        Ok((media_type, ..)) => {
            pictures.push(Part::Image { media_type: media_type.into(), data: plain });
            Ok(None)
        }
        Err(why) => refused(why),
    }
}

/// Text of a server without what could control a terminal or hide words.
pub(crate) fn clean(bytes: &[u8]) -> String {
    seen(&tiller_tool::text::clean(bytes))
}

fn described(what: &str, kind: &str, base64: usize) -> String {
    let size = tiller_tool::output::human(base64 as u64 / 4 * 3);
    clean(format!("[{what}, {kind}, {size}; not shown]").as_bytes())
}
