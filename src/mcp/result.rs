//! Results of servers as a model reads them.

use base64::Engine as _;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use tiller_protocol::Part;
use tiller_tool::foreign::seen;

/// Maximum number of parts of a result.
const PARTS: usize = 100;
/// Maximum number of pictures of a result.
pub(crate) const PICTURES: usize = 4;
/// Kinds of pictures that models take.
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The parts of a result: one text, then pictures. Text is cleaned of what could control a terminal, and not cut.
pub(crate) fn parts(result: &CallToolResult) -> Vec<Part> {
    let (mut text, mut pictures) = (String::new(), Vec::new());
    for block in result.content.iter().take(PARTS) {
        let piece = match block {
            ContentBlock::Text(it) => clean(it.text.as_bytes()),
            ContentBlock::Image(it)
                if KINDS.contains(&it.mime_type.as_str()) && pictures.len() < PICTURES =>
            {
                pictures.push(Part::Image { media_type: it.mime_type.clone(), data: it.data.clone() });
                continue;
            }
            ContentBlock::Image(it) => described("picture", &it.mime_type, it.data.len()),
            ContentBlock::Audio(it) => described("sound", &it.mime_type, it.data.len()),
            ContentBlock::Resource(it) => contents(&it.resource),
            ContentBlock::ResourceLink(it) => clean(format!("[resource {}: {}]", it.uri, it.name).as_bytes()),
            _ => "[content of a kind that is not known]".to_owned(),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&piece);
    }
    if result.content.len() > PARTS {
        text.push_str(&format!("\n[{} more parts were left out]", result.content.len() - PARTS));
    }
    if text.is_empty()
        && pictures.is_empty()
        && let Some(structured) = &result.structured_content
    {
        text = clean(structured.to_string().as_bytes());
    }
    if text.is_empty() && pictures.is_empty() {
        text = "(no content)".into();
    }
    let mut parts = if text.is_empty() { Vec::new() } else { vec![Part::Text { text }] };
    parts.extend(pictures);
    parts
}

/// Text of a server without what could control a terminal or hide words.
pub(crate) fn clean(bytes: &[u8]) -> String {
    seen(&tiller_tool::text::clean(bytes))
}

/// The text of a resource.
pub(crate) fn contents(resource: &ResourceContents) -> String {
    match resource {
        ResourceContents::TextResourceContents { text, .. } => clean(text.as_bytes()),
        ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
            described("data", mime_type.as_deref().unwrap_or("an unknown type"), blob.len())
        }
        _ => "[a resource of a kind that is not known]".into(),
    }
}

/// A picture that models take; `None`: it is none, damaged or too large.
pub(crate) fn picture(base64: &str) -> Option<Part> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64.trim()).ok()?;
    let (media_type, ..) = tiller_tool::image_info(&bytes)?;
    Some(Part::Image { media_type: media_type.into(), data: base64.trim().to_owned() })
}

fn described(what: &str, kind: &str, base64: usize) -> String {
    let size = tiller_tool::output::human(base64 as u64 / 4 * 3);
    clean(format!("[{what}, {kind}, {size}; not shown]").as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: serde_json::Value) -> Vec<Part> {
        parts(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn every_kind_of_content_is_text_or_a_picture() {
        let parts = of(json!({"content": [
            {"type": "text", "text": "one\u{1b}[2J"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "image", "mimeType": "image/svg+xml", "data": "AAAA"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}},
            {"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "a://c", "name": "three"}
        ]}));
        let [Part::Text { text }, Part::Image { .. }] = &parts[..] else { panic!("{parts:?}") };
        assert!(!text.contains('\u{1b}'));
        for word in [
            "one",
            "[picture, image/svg+xml, 3 B",
            "[sound, audio/wav",
            "two",
            "[data, an unknown type",
            "[resource a://c: three]",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert_eq!(of(json!({"content": []})), [Part::Text { text: "(no content)".into() }]);
        assert_eq!(
            of(json!({"content": [], "structuredContent": {"n": 1}})),
            [Part::Text { text: "{\"n\":1}".into() }]
        );
    }
}
