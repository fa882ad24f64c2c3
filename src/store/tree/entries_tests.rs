use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};
use tiller_protocol::{Block, Cost, StopReason, ToolCall, Usage};

use super::*;
use crate::Append;
use crate::testing::*;

fn call(session: SessionId, n: u128, parent: Option<EntryId>, arguments: Value) -> Entry {
    let body = EntryBody::Assistant {
        blocks: vec![
            Block::Thinking { text: "hm\u{0}\u{7f}\u{2028}".into(), signature: Some("c2ln".into()) },
            Block::ToolCall(ToolCall {
                id: "call-1".into(),
                name: "x".into(),
                arguments,
                malformed: None,
                vendor: None,
            }),
        ],
        stop: StopReason::ToolUse,
        model: tiller_protocol::ModelRef("a/b/c".into()),
        usage: Usage {
            input: u64::MAX,
            output: 7,
            cache_read: 1,
            cache_write: 2,
            reasoning: 3,
            ..Usage::default()
        },
        cost: Some(Cost(12)),
    };
    entry(session, entry_id(n), parent, body)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |f| Number::from_f64(f).map(Value::Number)),
        // Any bit pattern of a finite number, including subnormal ones.
        any::<u64>().prop_filter_map("finite", |b| Number::from_f64(f64::from_bits(b)).map(Value::Number)),
        any::<String>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bodies_come_back_byte_for_byte(arguments in any_json()) {
        let before = call(session_id(1), 1, None, arguments);
        let raw = Raw::encode(&before).unwrap();
        let written = raw.payload.clone();
        let after = raw.decode().unwrap();
        prop_assert_eq!(&written, &serde_json::to_string(&after.body).unwrap());
        prop_assert_eq!(before, after);
    }

    #[test]
    fn reading_any_text_never_panics(text in any::<String>()) {
        let _ = read_body(&text);
        let _ = read_body(&format!("{{\"kind\":{text}}}"));
    }
}

#[test]
fn odd_values_come_back_through_the_database() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    let odd = json!({
        "z": 1.0, "a": -0.0, "m": 5e-324, "big": 1.7976931348623157e308, "third": 0.1 + 0.2,
        "near": 8.731_234_567_890_123e-7, "u": u64::MAX, "i": i64::MIN, "é\"\\\u{1f}": "日本\u{2029}🦀\u{0}", "": [[], {}],
    });
    let before = call(session, 1, None, odd);
    let written = serde_json::to_string(&before).unwrap();
    store.entries().append(Append::new(session, "main").entries(vec![before])).wait().unwrap();
    assert_eq!(serde_json::to_string(&store.entries().get(entry_id(1)).unwrap()).unwrap(), written);
    let tail = store.paths().tail(session, "main", 5).unwrap();
    assert_eq!(serde_json::to_string(&tail.entries[0]).unwrap(), written);
}

#[test]
fn deep_values_are_stored_or_refused_but_never_lost() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    let nested = |depth: usize| {
        let mut value = json!(1);
        for _ in 0..depth {
            value = json!([value]);
        }
        value
    };
    // Deeper than serde_json parses by default (128), as a reply at that limit is once it is wrapped.
    store
        .entries()
        .append(Append::new(session, "main").entries(vec![call(session, 1, None, nested(200))]))
        .wait()
        .unwrap();
    assert_eq!(store.entries().get(entry_id(1)).unwrap(), call(session, 1, None, nested(200)));
    let refused = store
        .entries()
        .append(Append::new(session, "main").entries(vec![call(session, 2, None, nested(300))]))
        .wait();
    assert!(matches!(refused, Err(StoreError::Record(_))), "{refused:?}");
    assert_eq!(store.heads().get(session, "main").unwrap(), Some(entry_id(1)));
}

#[test]
fn a_damaged_entry_becomes_a_note_and_closes_nothing() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    grow(&store, session, 1, 5);
    // Unnoticed by SQLite: a letter of the payload changes on the disk.
    let raw = rusqlite::Connection::open(store.path()).unwrap();
    raw.execute(
        "UPDATE entries SET payload = replace(payload, 'message 3', 'massage 3') WHERE id = ?1",
        params![entry_id(3).0],
    )
    .unwrap();
    let tail = store.paths().tail(session, "main", 10).unwrap();
    assert_eq!((tail.entries.len(), tail.damaged), (5, 1));
    assert!(matches!(&tail.entries[2].body, EntryBody::Note { text } if text.contains("damaged")));
    assert_eq!(tail.entries[3], user(session, entry_id(4), Some(entry_id(3)), "message 4"));
    assert!(matches!(store.entries().get(entry_id(3)), Err(StoreError::Record(_))));
    grow(&store, session, 6, 1);
    assert_eq!(store.doctor().unwrap().damaged_entries, 1);
}

#[test]
fn a_tool_result_is_found_by_its_call() {
    let (_dir, store) = scratch();
    let session = session(&store, 1);
    let result = |n: u128, id: &str| {
        let body = EntryBody::ToolResult {
            call_id: id.into(),
            name: "x".into(),
            outcome: tiller_protocol::ToolOutcome::Ok,
            content: vec![],
            display: None,
            seconds: 0.25,
            learnings: Vec::new(),
            taint: None,
            added: tiller_protocol::Additions::default(),
        };
        entry(session, entry_id(n), (n > 1).then(|| entry_id(n - 1)), body)
    };
    let odd = "a\"b\\é";
    let entries = vec![result(1, "one"), result(2, odd), result(3, "one-more")];
    store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
    assert_eq!(store.entries().tool_result(session, odd).unwrap().unwrap().id, entry_id(2));
    assert_eq!(store.entries().tool_result(session, "one").unwrap().unwrap().id, entry_id(1));
    assert_eq!(store.entries().tool_result(session, "on").unwrap(), None);
}

#[test]
fn links_are_checked() {
    let (_dir, store) = scratch();
    let (one, two) = (session(&store, 1), session(&store, 2));
    grow(&store, one, 1, 2);
    let add =
        |session, entry| store.entries().append(Append::new(session, "main").entries(vec![entry])).wait();
    let orphan = add(one, user(one, entry_id(9), Some(entry_id(8)), "x"));
    assert_eq!(orphan, Err(StoreError::NoEntry(entry_id(8))));
    let stray = add(two, user(two, entry_id(9), Some(entry_id(1)), "x"));
    assert!(matches!(stray, Err(StoreError::Conflict(_))), "{stray:?}");
    let twice = add(one, user(one, entry_id(2), Some(entry_id(1)), "x"));
    assert!(matches!(twice, Err(StoreError::Conflict(_))), "{twice:?}");
    let nowhere = add(session_id(7), user(session_id(7), entry_id(9), None, "x"));
    assert_eq!(nowhere, Err(StoreError::NoSession(session_id(7))));
    // None of it moved the head.
    assert_eq!(store.heads().get(one, "main").unwrap(), Some(entry_id(2)));
    assert_eq!(store.sessions().get(one).unwrap().summary.entries, 2);
    assert_eq!(store.entries().children(entry_id(1)).unwrap(), vec![entry_id(2)]);
}
