use serde_json::json;

use super::*;

const RULES: Rules = Rules {
    id: id_64,
    calls: 3,
    images: &["image/png"],
    image_bytes: mib(1),
    image_side: 8_000,
    image_limits: ImageLimits { count: 30, bytes: 4000, many: (20, 2_000) },
};

fn call(id: &str, name: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: json!({}),
        malformed: None,
        vendor: None,
    })
}

fn reply(blocks: Vec<Block>) -> ChatMessage {
    ChatMessage::Assistant { blocks, model: ModelRef("p/m".into()) }
}

fn result(id: &str, text: &str) -> ChatMessage {
    ChatMessage::ToolResult {
        call_id: id.into(),
        name: "t".into(),
        ok: true,
        content: vec![Part::Text { text: text.into() }],
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

/// One line for each message.
fn lines(messages: &[ChatMessage]) -> Vec<String> {
    let parts = |content: &[Part]| -> String {
        content.iter().map(|p| if let Part::Text { text } = p { text.as_str() } else { "[image]" }).collect()
    };
    fit(messages, &RULES, 0)
        .iter()
        .map(|m| match m.as_ref() {
            ChatMessage::User { content } => format!("user {}", parts(content)),
            ChatMessage::ToolResult { call_id, content, .. } => {
                format!("result {call_id} {}", parts(content))
            }
            ChatMessage::Assistant { blocks, .. } => {
                let blocks: Vec<String> = blocks
                    .iter()
                    .map(|b| match b {
                        Block::ToolCall(c) => format!("{}:{}", c.id, c.name),
                        Block::Text { text } => text.clone(),
                        other => format!("{other:?}"),
                    })
                    .collect();
                format!("model {}", blocks.join(" "))
            }
        })
        .collect()
}

#[test]
fn what_is_well_formed_is_borrowed() {
    let messages = vec![
        user("a".into()),
        reply(vec![text("b"), call("c1", "t"), call("c2", "t")]),
        result("c1", "r"),
        result("c2", "r"),
        user("steer".into()),
        reply(vec![text("d")]),
        user("e".into()),
    ];
    let fitted = fit(&messages, &RULES, 0);
    assert_eq!(fitted.len(), messages.len());
    assert!(fitted.iter().all(|m| matches!(m, Cow::Borrowed(_))));
}

#[test]
fn calls_and_results_are_paired_in_order_with_their_own_identifiers() {
    let messages = vec![
        reply(vec![call("c", "t"), call("c", "functions.t"), call("", "t")]),
        result("c", "second stands first"),
        user("between".into()),
        result("x", "lost"),
        result("c", "third"),
        reply(vec![text(" ")]),
        reply(vec![call("c", "t"), call("d", "t"), call("e", "t"), call("f", "t"), text("five")]),
        result("f", "r"),
    ];
    let got = lines(&messages);
    assert_eq!(got[0], "user (The conversation began earlier.)");
    assert!(got[1].starts_with("model c:t c2_") && got[1].contains(":functions_t _"), "{}", got[1]);
    assert_eq!(got[2], "result c second stands first");
    assert!(got[3].ends_with(" third"), "{}", got[3]);
    assert!(got[4].ends_with("There is no result: the call was interrupted."), "{}", got[4]);
    assert_eq!(got[5], "user between");
    assert_eq!(got[6], "user Result of an earlier call to t:lost");
    assert!(got[7].starts_with("model c3_") && got[7].ends_with(" d:t e:t five"), "{}", got[7]);
    assert_eq!(got[11], "model f:t", "a fourth call is over the limit: {got:?}");
    assert_eq!(got[12], "result f r");
    assert_eq!(got.len(), 13, "{got:?}");
}

#[test]
fn the_model_never_has_the_last_word_nor_two_in_a_row() {
    let messages = vec![user("a".into()), reply(vec![text("b")]), user(" ".into()), reply(vec![text("c")])];
    let want = [
        "user a",
        "model b",
        "user Continue from where you stopped.",
        "model c",
        "user Continue from where you stopped.",
    ];
    assert_eq!(lines(&messages), want);
    assert_eq!(lines(&[]), ["user Continue from where you stopped."]);
}

#[test]
fn arguments_texts_and_images_of_the_wrong_kind_are_replaced() {
    let bad = Block::ToolCall(ToolCall {
        id: "c".into(),
        name: "t".into(),
        arguments: json!(["no object"]),
        malformed: None,
        vendor: Some(json!({"text": "[1]", "id": "fc_1"})),
    });
    let image = |kind: &str, data: &str| Part::Image { media_type: kind.into(), data: data.into() };
    let content = vec![
        image("image/png", "aWNvbg=="),
        image("image/bmp", "aWNvbg=="),
        image("image/png", ""),
        image("image/png", &"A".repeat(mib(1) + 1)),
    ];
    let long = "x".repeat(TEXT_LIMIT + 1);
    let messages = [ChatMessage::User { content }, reply(vec![text(&long), bad])];
    let fitted = fit(&messages, &RULES, 0);
    let ChatMessage::User { content } = fitted[0].as_ref() else { panic!("{:?}", fitted[0]) };
    assert!(matches!(&content[0], Part::Image { .. }));
    assert!(matches!(&content[1], Part::Text { text } if text.contains("image/bmp")));
    assert!(matches!(&content[2], Part::Text { .. }));
    assert!(matches!(&content[3], Part::Text { text } if text.contains("larger than 1 MB")));
    let ChatMessage::Assistant { blocks, .. } = fitted[1].as_ref() else { panic!("{:?}", fitted[1]) };
    assert!(
        matches!(&blocks[0], Block::Text { text } if text.len() <= TEXT_LIMIT && text.ends_with("8 MB]"))
    );
    let Block::ToolCall(call) = &blocks[1] else { panic!() };
    assert_eq!((&call.arguments, &call.vendor), (&json!({}), &Some(json!({"id": "fc_1"}))));
}

#[test]
fn a_longer_conversation_repeats_the_shorter_ones_messages() {
    let messages = vec![
        reply(vec![call("c", "a.b"), call("c", "t")]),
        result("c", "1"),
        result("c", "2"),
        reply(vec![call("c", ""), text("x")]),
        result("c", "3"),
        user("y".into()),
        reply(vec![call("c3", "t")]),
        result("c3", "4"),
    ];
    let whole = lines(&messages);
    for end in [3, 5, 6, 8] {
        let part = lines(&messages[..end]);
        assert_eq!(part, whole[..part.len()], "{end}");
    }
}

#[test]
fn names_and_identifiers_have_the_vendors_forms() {
    let table = [
        ("read_file", "read_file"),
        ("functions.read_file", "functions_read_file"),
        ("", "unknown_tool"),
        (" ", "unknown_tool"),
        ("读文件", "unknown_tool"),
        ("9lives", "_9lives"),
        ("-x", "_-x"),
    ];
    for (name, want) in table {
        assert_eq!(wire_name(name), want, "{name:?}");
    }
    assert_eq!(wire_name(&"x".repeat(300)).len(), 64);
    let long = "x".repeat(300);
    for id in ["", "a|b:c/ü", &long, "toolu_01", &"y".repeat(41)] {
        assert!((1..=64).contains(&id_64(id).len()) && (1..=40).contains(&id_40(id).len()), "{id}");
        assert!(id_9(id).len() == 9 && id_9(id).chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    }
    assert_eq!((id_9("abcDEF123"), id_40("toolu_01")), ("abcDEF123".into(), "toolu_01".into()));
    assert_ne!(id_40(&format!("{long}a")), id_40(&format!("{long}b")));
    // The form is unchanged from before names were mapped: sessions keep their bytes.
    assert_eq!(id_64("a|b"), "ab_e726b11905478f76");
}

/// The header of a PNG of this width, in base64.
fn png(width: u32) -> Part {
    use base64::Engine as _;
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(10_u32.to_be_bytes());
    bytes.extend([8, 2, 0, 0, 0]);
    Part::Image {
        media_type: "image/png".into(),
        data: base64::engine::general_purpose::STANDARD.encode(bytes),
    }
}

#[test]
fn the_oldest_images_are_left_out_when_they_are_too_many_together() {
    let of = |widths: &[u32], refused: usize| -> Vec<bool> {
        let messages: Vec<ChatMessage> =
            widths.iter().map(|w| ChatMessage::User { content: vec![png(*w)] }).collect();
        let fitted = fit(&messages, &RULES, refused);
        fitted.iter().map(|m| matches!(parts(m), [Part::Image { .. }])).collect()
    };
    let left = |widths: &[u32]| of(widths, 0).iter().take_while(|kept| !**kept).count();
    assert_eq!(left(&[2400; 20]), 0);
    // In steps, so that the earlier messages seldom change.
    assert_eq!((left(&[2400; 21]), left(&[2400; 30]), left(&[2400; 31])), (10, 10, 20));
    assert_eq!((left(&[1000; 30]), left(&[1000; 31])), (0, 10));
    // An image that is too wide is left out by itself, and does not count.
    assert_eq!(of(&[9000, 10], 0), [false, true]);
    let mut mixed = vec![2400];
    mixed.extend([1000; 24]);
    assert_eq!(left(&mixed), 10);
    assert_eq!(of(&[10, 10, 10], 2), [false, false, true]);
    // All acceptable images are counted.
    assert_eq!(images(&[ChatMessage::User { content: vec![png(9000), png(10)] }], &RULES), 1);
    let Part::Image { data, .. } = png(10) else { panic!("an image") };
    let image_limits = ImageLimits { bytes: data.len() * 3, ..RULES.image_limits };
    assert_eq!(image_limits.too_many(&[data.as_str(); 4]), 1, "bytes");
}
