use serde_json::json;

use super::*;

fn read(blocks: Value) -> Result<Message, Error> {
    message(Path::new("/w/my proj"), serde_json::from_value(blocks).unwrap())
}

#[test]
fn files_of_the_folder_are_attached_and_others_are_named() {
    let uri = |u: &str| json!({"type": "resource_link", "uri": u, "name": "N[ame"});
    let of = |u: &str| read(json!([uri(u)])).unwrap();
    let attached = of("file:///w/my%20proj/src/a.rs#L3-9");
    assert_eq!(attached.text, "@src/a.rs:3-9");
    let want =
        Attachment::File { label: "@src/a.rs:3-9".into(), path: "src/a.rs".into(), lines: Some((3, 9)) };
    assert_eq!(attached.attachments, [want]);
    assert_eq!(of("file:///w/my proj").text, "@.");
    assert_eq!(of("file:///w/my%20proj/x#L9-3").text, "@x", "no such lines");
    assert_eq!(of("file:///etc/passwd").text, "/etc/passwd", "what is outside is named, not read");
    assert!(of("file:///etc/passwd").attachments.is_empty());
    for out in [
        "file:///w/my%20proj/../secret",
        "file:///w/my%20proj/a/%2e%2e/%2E./..%2f../etc/passwd",
        "file:///w/my%20proj/..",
    ] {
        let named = of(out);
        assert!(named.attachments.is_empty() && named.text.starts_with("[Name]("), "{out}: {named:?}");
    }
    assert_eq!(of("file:///w/my%20proj/..a/b..").text, "@..a/b..");
    assert_eq!(of("https://h/x").text, "[Name](https://h/x)");
    assert_eq!(of("file:///w/%ff").text, "[Name](file:///w/%ff)", "no text");
    assert_eq!(of("file:///w/%+1").text, "[Name](file:///w/%+1)");
    assert_eq!(of("file://host/x").text, "[Name](file://host/x)", "another machine");
}

#[test]
fn a_label_stands_for_its_resource_only() {
    let got = read(json!([
        {"type": "text", "text": "[resource 1: x] is what I typed: "},
        {"type": "resource", "resource": {"uri": "x", "text": "CONTENT"}},
    ]))
    .unwrap();
    let [Attachment::Paste { label, text }] = &got.attachments[..] else { panic!("{got:?}") };
    assert_eq!(label, "[resource 2: x]");
    assert!(got.text.ends_with(label.as_str()) && text.contains("\nCONTENT\n"), "{got:?}");
}
