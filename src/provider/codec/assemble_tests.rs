use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fold(chunks: impl IntoIterator<Item = Chunk>) -> Assembled {
    let mut a = Assembler::new("test", "7", []);
    for c in chunks {
        a.push(c);
    }
    a.finish()
}

fn begin(index: usize, id: &str, name: &str) -> Chunk {
    Chunk::ToolBegin { index, id: id.into(), name: name.into(), vendor: None }
}

fn args(index: usize, json: &str) -> Chunk {
    Chunk::ToolArgs { index, json: json.into() }
}

fn text(index: usize, text: &str) -> Chunk {
    Chunk::Text { index, text: text.into() }
}

fn end(index: usize) -> Chunk {
    Chunk::BlockEnd { index }
}

#[test]
fn keeps_the_order_in_which_blocks_began() {
    let reply = fold([
        Chunk::Thinking { index: 0, text: "hm".into() },
        Chunk::Signature { index: 0, signature: "si".into() },
        text(1, "I "),
        Chunk::Signature { index: 0, signature: "g".into() },
        begin(2, "a", "read_file"),
        text(1, "look"),
        end(0),
        args(2, r#"{"path":"#),
        Chunk::Thinking { index: 3, text: "again".into() },
        args(2, r#""x"}"#),
        end(2),
        end(3),
        end(1),
        Chunk::Unknown { index: 4, raw: json!({"type": "new"}) },
        Chunk::Redacted { index: 5, data: "abc".into() },
        Chunk::Stop(StopReason::ToolUse),
    ]);
    assert_eq!(
        reply.blocks,
        [
            Block::Thinking { text: "hm".into(), signature: Some("sig".into()) },
            Block::Text { text: "I look".into() },
            Block::ToolCall(ToolCall {
                id: "a".into(),
                name: "read_file".into(),
                arguments: json!({"path": "x"}),
                malformed: None,
                vendor: None
            }),
            Block::Thinking { text: "again".into(), signature: None },
            Block::Unknown { provider: "test".into(), raw: json!({"type": "new"}) },
            Block::Redacted { data: "abc".into() },
        ]
    );
    assert_eq!(reply.stop, Some(StopReason::ToolUse));
}

#[test]
fn p8_bad_arguments_are_malformed_and_never_objects() {
    for bad in ["{", "[]", "3", "null", "{\"a\":}", "\"text\"", "{\"a\":1} {\"a\":2}"] {
        let reply = fold([begin(0, "a", "t"), args(0, bad), end(0)]);
        let call = reply.calls().next().unwrap();
        assert_eq!(call.malformed.as_deref(), Some(bad));
        assert_eq!(call.arguments, json!({}));
    }
    for fine in ["", "  ", "{}"] {
        let reply = fold([begin(0, "a", "t"), args(0, fine), end(0)]);
        assert_eq!(reply.calls().next().unwrap().malformed, None, "{fine:?}");
    }
}

#[test]
fn p8_depth_100_000_is_malformed_and_does_not_overflow() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{{\"a\":{}1{}}}", open.repeat(100_000), close.repeat(100_000));
        let reply = fold([begin(0, "a", "t"), args(0, &deep), end(0)]);
        let call = reply.calls().next().unwrap();
        assert!(call.malformed.as_ref().unwrap().len() <= MALFORMED_LIMIT);
    }
}

#[test]
fn p8_missing_and_double_ids_get_ours() {
    let chunks = || {
        (0..500).flat_map(|i| {
            let id = match i % 3 {
                0 => String::new(),
                1 => "same".into(),
                _ => format!("v{i}"),
            };
            [begin(i, &id, "t"), end(i)]
        })
    };
    let reply = fold(chunks());
    let ids: HashSet<&str> = reply.calls().map(|c| c.id.as_str()).collect();
    assert_eq!(ids.len(), 500);
    assert_eq!(reply.calls().next().unwrap().id, "call_7_1");
    assert_eq!(reply, fold(chunks()), "deterministic");

    let mut a = Assembler::new("test", "", ["x".to_owned(), "call_1".to_owned()]);
    a.push(begin(0, "x", "t"));
    assert_eq!(a.call_id(0), Some("call_2"), "taken by an earlier reply");
}

/// The result of such a call would not reach the model, and its changes would count to a message.
#[test]
fn a_model_makes_no_call_of_a_message() {
    let mut a = Assembler::new("test", "", []);
    a.push(begin(0, "tiller-message-00000000-0000-0000-0000-000000000001-x-1", "t"));
    assert_eq!(a.call_id(0), Some("call_1"));
}

#[test]
fn calls_that_never_ended_are_dropped_and_reported() {
    let mut a = Assembler::new("test", "", []);
    for c in [text(0, "so"), begin(1, "a", "rm"), args(1, "{}"), begin(2, "b", "ls"), args(2, "{}"), end(2)] {
        a.push(c);
    }
    assert_eq!(a.partial().len(), 2);
    let reply = a.finish();
    assert_eq!(reply.dropped, ["rm"]);
    assert_eq!(reply.calls().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["ls"]);
    assert_eq!(reply.stop, None);
}

#[test]
fn a_call_cut_by_the_output_limit_is_dropped() {
    for cut in ["", "{\"path\":\"a"] {
        let reply = fold([begin(0, "a", "t"), args(0, cut), end(0), Chunk::Stop(StopReason::MaxTokens)]);
        assert_eq!(reply.dropped, ["t"]);
        assert!(reply.blocks.is_empty());
    }
}

/// A block that a format adds behind the reply does not complete the call before it.
#[test]
fn a_call_cut_by_the_output_limit_is_dropped_though_something_stands_behind_it() {
    let raw = json!({"reasoning_details": []});
    let behind = Chunk::Unknown { index: 1, raw };
    let reply = fold([begin(0, "a", "t"), end(0), behind, Chunk::Stop(StopReason::MaxTokens)]);
    assert_eq!((reply.dropped.as_slice(), reply.calls().count()), (&["t".to_owned()][..], 0));
}

#[test]
fn a_partial_thought_has_no_half_signature() {
    let mut a = Assembler::default();
    a.push(Chunk::Thinking { index: 0, text: "hm".into() });
    a.push(Chunk::Signature { index: 0, signature: "half".into() });
    assert_eq!(a.partial(), [Block::Thinking { text: "hm".into(), signature: None }]);
}

#[test]
fn argument_text_is_kept_only_where_it_matters() {
    let begin =
        Chunk::ToolBegin { index: 0, id: "a".into(), name: "t".into(), vendor: Some(json!({"text": null})) };
    let odd = fold([begin.clone(), args(0, "{ \"a\": 1 }"), end(0)]);
    assert_eq!(odd.calls().next().unwrap().vendor, Some(json!({"text": "{ \"a\": 1 }"})));
    let plain = fold([begin, args(0, "{\"a\":1}"), end(0)]);
    assert_eq!(plain.calls().next().unwrap().vendor, None);
}

#[test]
fn parts_and_blocks_are_capped() {
    let mut a = Assembler::default();
    let megabyte = "é".repeat(512 * 1024);
    for _ in 0..70 {
        a.push(text(0, &megabyte));
    }
    assert!(a.truncated);
    let Block::Text { text: kept } = &a.partial()[0] else { panic!("text") };
    assert_eq!(kept.len(), PART_LIMIT);

    let reply = fold((0..BLOCK_LIMIT + 10).map(|i| text(usize::MAX - i, "x")));
    assert_eq!(reply.blocks.len(), BLOCK_LIMIT);
    assert!(reply.truncated);
}

fn any_chunk() -> impl Strategy<Value = Chunk> {
    let index = 0..4_usize;
    prop_oneof![
        (index.clone(), "[aé{}\": ]{0,6}").prop_map(|(index, text)| Chunk::Text { index, text }),
        (index.clone(), "[aé]{0,6}").prop_map(|(index, text)| Chunk::Thinking { index, text }),
        (index.clone(), "[ab]{0,4}").prop_map(|(index, signature)| Chunk::Signature { index, signature }),
        (index.clone(), "[ab]{0,4}").prop_map(|(index, data)| Chunk::Redacted { index, data }),
        (index.clone(), "[ab]{0,1}").prop_map(|(index, id)| Chunk::ToolBegin {
            index,
            id,
            name: "t".into(),
            vendor: None
        }),
        (index.clone(), "[{}\"a:1é]{0,6}").prop_map(|(index, json)| Chunk::ToolArgs { index, json }),
        index.clone().prop_map(|index| Chunk::BlockEnd { index }),
        index.prop_map(|index| Chunk::Unknown { index, raw: json!(1) }),
        Just(Chunk::Ping),
        Just(Chunk::Stop(StopReason::EndTurn)),
    ]
}

/// Cuts the text of a chunk in two at a character boundary near `at`.
fn split(chunk: Chunk, at: usize) -> Vec<Chunk> {
    let halves = |s: &str| {
        let at = s.floor_char_boundary(at.min(s.len()));
        (s[..at].to_owned(), s[at..].to_owned())
    };
    match chunk {
        Chunk::Text { index, text } => {
            let (a, b) = halves(&text);
            vec![Chunk::Text { index, text: a }, Chunk::Text { index, text: b }]
        }
        Chunk::Thinking { index, text } => {
            let (a, b) = halves(&text);
            vec![Chunk::Thinking { index, text: a }, Chunk::Ping, Chunk::Thinking { index, text: b }]
        }
        Chunk::Signature { index, signature } => {
            let (a, b) = halves(&signature);
            vec![Chunk::Signature { index, signature: a }, Chunk::Signature { index, signature: b }]
        }
        Chunk::ToolArgs { index, json } => {
            let (a, b) = halves(&json);
            vec![Chunk::ToolArgs { index, json: a }, Chunk::ToolArgs { index, json: b }]
        }
        other => vec![other],
    }
}

proptest! {
    #[test]
    fn the_same_however_it_was_split(chunks in prop::collection::vec(any_chunk(), 0..24), at in 0..6_usize) {
        let whole = fold(chunks.clone());
        let cut = fold(chunks.clone().into_iter().flat_map(|c| split(c, at)));
        prop_assert_eq!(&whole, &cut);
        let mut joined = std::collections::VecDeque::new();
        for c in chunks {
            Chunk::join(&mut joined, c);
        }
        prop_assert_eq!(&whole, &fold(joined));
    }
}
