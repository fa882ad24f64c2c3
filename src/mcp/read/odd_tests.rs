//! Answers of servers with odd pieces in them: each costs itself and no other.

use serde_json::{Value, json};
use tiller_protocol::Part;

use super::result::parts;
use crate::known::accepted;

/// A picture of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn of(mut value: Value) -> Vec<Part> {
    parts(&mut value)
}

fn text(parts: &[Part]) -> &str {
    let Some(Part::Text { text }) = parts.first() else { panic!("{parts:?}") };
    text
}

/// Odd pieces, and words of why each is left out.
fn odd() -> Vec<(Value, &'static str)> {
    vec![
        (json!(null), "it is null"),
        (json!(7), "it is a number"),
        (json!("text"), "it is a text"),
        (json!([]), "it is a list"),
        (json!({}), "it has no type"),
        (json!({"type": 7}), "its type is a number"),
        (json!({"type": "text"}), "it has no text"),
        (json!({"type": "text", "text": null}), "it has no text"),
        (json!({"type": "text", "text": {"a": 1}}), "its text is an object"),
        (json!({"type": "video", "data": "AAAA"}), "its kind 'video' is not known"),
        (json!({"type": "vi\u{1b}[2J\ndeo"}), "is not known"),
        (json!({"type": "image", "mimeType": "image/png"}), "it has no data"),
        (json!({"type": "image", "data": "not base64!"}), "not base64"),
        (json!({"type": "image", "mimeType": "image/png", "data": "AAAA"}), "no picture"),
        (json!({"type": "image", "mimeType": "image/png", "data": &PNG[..48]}), "damaged"),
        (json!({"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+"}), "no picture"),
        (json!({"type": "resource"}), "it has no resource"),
        (json!({"type": "resource", "resource": "a"}), "its resource is a text"),
        (json!({"type": "resource", "resource": {"uri": "a://b"}}), "neither text nor data"),
        (json!({"type": "resource", "resource": {"uri": "a://b", "blob": 1}}), "its blob is a number"),
        (json!({"type": "resource_link", "name": "x"}), "it has no uri"),
    ]
}

#[test]
fn every_kind_of_content_is_text_or_a_picture() {
    let parts = of(json!({"content": [
        {"type": "text", "text": "one\u{1b}[2J"},
        {"type": "image", "mimeType": "image/png", "data": PNG},
        {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "a://b", "text": "two"}},
        {"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA"}},
        {"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": PNG}},
        {"type": "resource_link", "uri": "a://c", "name": "three"}
    ]}));
    let [Part::Text { text }, Part::Image { .. }, Part::Image { .. }] = &parts[..] else {
        panic!("{parts:?}")
    };
    assert!(!text.contains('\u{1b}') && !text.contains("left out"), "{text}");
    for word in ["one", "[sound, audio/wav", "two", "[data, an unknown type", "[resource a://c: three]"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let none = [Part::Text { text: "(no content)".into() }];
    assert_eq!(of(json!({"content": []})), none);
    assert_eq!(of(json!({})), none);
    assert_eq!(of(json!({"content": "alone"})), [Part::Text { text: "alone".into() }]);
    assert_eq!(of(json!({"content": {"type": "text", "text": "one"}})), [Part::Text { text: "one".into() }]);
    let structured = json!({"content": [], "structuredContent": {"n": 1}});
    assert_eq!(of(structured), [Part::Text { text: "{\"n\":1}".into() }]);
    assert!(text_of_odd_list().contains("its list of parts is a number"));
}

#[test]
fn an_odd_part_does_not_cost_what_is_structured() {
    let odd = text(&of(json!({"content": [{"type": "video"}], "structuredContent": {"n": 1}}))).to_owned();
    assert!(odd.starts_with("{\"n\":1}\n[part 1 of 1 was left out: "), "{odd}");
    let spoken = json!({"content": [{"type": "text", "text": "it"}], "structuredContent": {"n": 1}});
    assert_eq!(of(spoken), [Part::Text { text: "it".into() }]);
}

fn text_of_odd_list() -> String {
    text(&of(json!({"content": 7}))).to_owned()
}

#[test]
fn an_odd_part_costs_itself_and_says_why() {
    let good = [json!({"type": "text", "text": "before"}), json!({"type": "text", "text": "after"})];
    for (piece, why) in odd() {
        let parts = of(json!({"content": [good[0], piece, good[1]]}));
        let text = text(&parts);
        assert!(
            text.starts_with("before\n[part 2 of 3 was left out: ") && text.ends_with("]\nafter"),
            "{piece}: {text}"
        );
        assert!(text.contains(why), "{piece}: {text}");
        assert!(text.len() < 300 && !text.contains('\u{1b}') && parts.len() == 1, "{text}");
    }
    // All of them at once, and more than are read.
    let all: Vec<Value> = odd().into_iter().map(|(piece, _)| piece).cycle().take(150).collect();
    let parts = of(json!({"content": all}));
    assert_eq!(text(&parts).matches("was left out").count(), 100);
    assert!(text(&parts).ends_with("[50 more parts were left out]"));
}

#[test]
fn pictures_pass_one_gate_of_kind_size_and_number() {
    let picture = json!({"type": "image", "mimeType": "text/html", "data": PNG});
    let parts = of(json!({"content": vec![picture; 6]}));
    let pictures: Vec<&Part> = parts[1..].iter().collect();
    // What it is, not what the server calls it.
    assert!(
        pictures.len() == 4
            && pictures
                .iter()
                .all(|p| matches!(p, Part::Image { media_type, .. } if media_type == "image/png"))
    );
    assert_eq!(text(&parts).matches("only the first 4 pictures").count(), 2, "{}", text(&parts));
    // With line ends in its data, as some programs write it.
    let lines: String =
        PNG.as_bytes().chunks(40).map(|c| format!("{}\n", String::from_utf8_lossy(c))).collect();
    let parts = of(json!({"content": [{"type": "image", "data": lines}]}));
    assert!(matches!(&parts[..], [Part::Image { data, .. }] if data == PNG), "{parts:?}");
    // Too many bytes, and too many pixels.
    use base64::Engine;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let mut large = base64::engine::general_purpose::STANDARD.decode(PNG).unwrap();
    let mut wide = large.clone();
    large.splice(large.len() - 12..large.len() - 12, vec![0; 4_000_000]);
    wide[16..20].copy_from_slice(&100_000u32.to_be_bytes());
    for bytes in [large, wide] {
        let parts = of(json!({"content": [{"type": "image", "data": encode(&bytes)}]}));
        assert!(parts.len() == 1 && text(&parts).contains("left out: a picture of "), "{}", text(&parts));
    }
}

#[test]
fn an_odd_tool_costs_itself_and_says_why() {
    let good = |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}});
    for (tool, why) in [
        (json!(null), "it is null"),
        (json!("echo"), "it is a text"),
        (json!({}), "it has no name"),
        (json!({"name": ""}), "it has no name"),
        (json!({"name": 7}), "its name is a number"),
        (json!({"name": "x".repeat(2000)}), "longer than 1024 bytes"),
        (json!({"name": "odd", "inputSchema": "any"}), "its inputSchema is a text"),
        (json!({"name": "one"}), "another tool has the same name"),
    ] {
        let (known, notes) = accepted(vec![good("one"), tool.clone(), good("two")]);
        assert_eq!(known.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["one", "two"], "{tool}");
        assert!(notes.len() == 1 && notes[0].contains(why), "{tool}: {notes:?}");
    }
    // Odd members of a tool that can be called are read as if they were not there.
    let (known, notes) = accepted(vec![json!({
        "name": "odd", "description": 7, "title": "It", "annotations": "x", "outputSchema": 1, "icons": {}
    })]);
    assert!(notes.is_empty() && known[0].description == "It" && known[0].destructive, "{known:?} {notes:?}");
    assert_eq!(known[0].schema, json!({"type": "object"}));
}

#[test]
fn names_that_could_be_patterns_are_known_by_safe_ones() {
    let tools = ["ok", "*", "a b", "größe", "x\u{202e}y", "ns/tool.v1-a_b"];
    let (known, notes) = accepted(tools.map(|name| json!({"name": name})).into());
    assert!(notes.is_empty() && known.len() == tools.len(), "{known:?} {notes:?}");
    assert!(known.iter().all(|tool| crate::is_name(&tool.name)), "{known:?}");
    for own in tools {
        let tool = known.iter().find(|tool| tool.own_name() == own).unwrap();
        assert_eq!(tool.own.is_empty(), crate::is_name(own), "{tool:?}");
    }
    assert!(known.iter().all(|t| t.destructive && !t.read_only), "no hint means the worst");
}
