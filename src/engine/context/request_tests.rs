use tiller_protocol::{AgentId, IdSource, Message, Origin, SeqIds, StopReason, Time, ToolOutcome, Usage};

use super::*;
use crate::context::compaction::compact;
use crate::context::tokens;

pub(crate) struct Path {
    ids: SeqIds,
    pub(crate) entries: Vec<Arc<Entry>>,
}

impl Path {
    pub(crate) fn new() -> Self {
        let mut p = Self { ids: SeqIds::default(), entries: Vec::new() };
        p.prefix("system");
        p
    }

    pub(crate) fn add(&mut self, body: EntryBody) -> EntryId {
        let id = EntryId(self.ids.next(Time(0)));
        self.entries.push(Arc::new(Entry {
            id,
            parent: self.entries.last().map(|e| e.id),
            session: SessionId(uuid::Uuid::nil()),
            agent: AgentId::main(),
            time: Time(0),
            body,
            snapshot: None,
        }));
        id
    }

    pub(crate) fn prefix(&mut self, system: &str) {
        self.add(EntryBody::Prefix { system: system.into(), tools: Vec::new(), layers: Vec::new() });
    }

    pub(crate) fn user(&mut self, text: &str) -> EntryId {
        let content = vec![Part::Text { text: text.into() }];
        self.add(EntryBody::User {
            message: Message::text(text),
            origin: Origin::Prompt,
            content,
            taint: None,
            learnings: Vec::new(),
        })
    }

    pub(crate) fn reply(&mut self, text: &str, calls: &[&str]) -> EntryId {
        let mut blocks = vec![Block::Text { text: text.into() }];
        blocks.extend(calls.iter().map(|id| {
            Block::ToolCall(tiller_protocol::ToolCall {
                id: (*id).into(),
                name: "read_file".into(),
                arguments: serde_json::json!({"path": "a"}),
                malformed: None,
                vendor: None,
            })
        }));
        self.add(EntryBody::Assistant {
            blocks,
            stop: StopReason::EndTurn,
            model: ModelRef("fake/m".into()),
            usage: Usage::default(),
            cost: None,
        })
    }

    pub(crate) fn result(&mut self, id: &str, text: &str) -> EntryId {
        let content = vec![Part::Text { text: text.into() }];
        self.add(EntryBody::plain_result(id.into(), "read_file".into(), ToolOutcome::Ok, content))
    }

    pub(crate) fn compact(&mut self, kept_from: Option<EntryId>) -> EntryId {
        self.compact_with(kept_from, Carried::default())
    }

    pub(crate) fn compact_with(&mut self, kept_from: Option<EntryId>, carried: Carried) -> EntryId {
        self.add(EntryBody::Compaction {
            summary: "SUMMARY".into(),
            focus: None,
            kept_from,
            tokens_before: 0,
            tokens_after: 0,
            taint: None,
            carried,
        })
    }

    fn request(&self) -> Request {
        let settings = RequestSettings {
            model: ModelRef("fake/m".into()),
            session: SessionId(uuid::Uuid::nil()),
            max_output: None,
            effort: Effort::Default,
        };
        build(&self.entries, &settings).unwrap()
    }
}

fn words(r: &Request) -> Vec<String> {
    let text = |content: &[Part]| match content {
        [Part::Text { text }] if text.contains("SUMMARY") => "SUMMARY".into(),
        [Part::Text { text }] => text.clone(),
        _ => String::new(),
    };
    r.messages
        .iter()
        .map(|m| match m {
            ChatMessage::User { content } => format!("user {}", text(content)),
            ChatMessage::Assistant { blocks, .. } => format!("reply {}", blocks.len()),
            ChatMessage::ToolResult { call_id, .. } => format!("result {call_id}"),
        })
        .collect()
}

#[test]
fn each_request_is_the_one_before_it_with_more_at_the_end() {
    let mut p = Path::new();
    let mut before: Vec<ChatMessage> = Vec::new();
    for i in 0..5 {
        p.user(&format!("q{i}"));
        p.add(EntryBody::Note { text: "never sent".into() });
        p.reply("a", &["c"]);
        p.result("c", "r");
        let r = p.request();
        assert_eq!(&r.messages[..before.len()], &before[..]);
        assert_eq!(r.messages.len(), before.len() + 3);
        before = r.messages.to_vec();
    }
}

#[test]
fn after_a_compaction_come_the_summary_what_was_kept_and_what_followed() {
    let mut p = Path::new();
    p.user("old");
    p.reply("old", &[]);
    let kept = p.user("kept");
    p.reply("kept", &["c"]);
    p.result("c", "r");
    p.compact(Some(kept));
    p.prefix("new system");
    p.user("todo");
    p.user("next");
    let r = p.request();
    assert_eq!(&*r.system, "new system");
    assert_eq!(words(&r), ["user SUMMARY", "user kept", "reply 2", "result c", "user todo", "user next"]);
    // What lies before may be left on disk.
    let from = needed_from(&p.entries);
    assert_eq!(p.entries[from].id, kept);
    let rest = Path { ids: SeqIds::default(), entries: p.entries[from..].to_vec() };
    assert_eq!(rest.request().messages, r.messages);
}

#[test]
fn replies_without_words_or_calls_are_not_sent_back() {
    let mut p = Path::new();
    p.user("q");
    p.add(EntryBody::Assistant {
        blocks: vec![
            Block::Thinking { text: "hm".into(), signature: None },
            Block::Text { text: " \n".into() },
        ],
        stop: StopReason::Interrupted,
        model: ModelRef("fake/m".into()),
        usage: Usage::default(),
        cost: None,
    });
    assert_eq!(words(&p.request()), ["user q"]);
}

#[test]
fn compaction_never_parts_a_call_from_its_result_and_keeps_two_messages() {
    let mut p = Path::new();
    for i in 0..10 {
        p.user(&format!("question {i} {}", "x".repeat(100)));
        p.reply("look", &["a", "b"]);
        p.result("a", &"r".repeat(1000));
        p.result("b", &"r".repeat(1000));
    }
    for keep in [0, 1, 500, 900, 1500, 5000] {
        let plan = compact::plan(&p.entries, compact::KeepLimits::tokens(keep, u64::MAX)).unwrap();
        let k = p.entries.iter().position(|e| Some(e.id) == plan.kept_from).unwrap();
        assert!(!matches!(p.entries[k].body, EntryBody::ToolResult { .. }), "keep {keep}");
        assert!(plan.kept >= 2, "keep {keep}");
        assert_eq!(plan.goes.len() + plan.kept, p.entries.len() - 1);
        // The first message stays as well.
        let fixed = tokens::of_entry(&p.entries[0]) + tokens::of_entry(&p.entries[1]);
        assert!(keep < 900 || plan.tokens_kept <= keep + fixed, "keep {keep}");
    }
    // Everything fits: nothing to do.
    assert!(compact::plan(&p.entries, compact::KeepLimits::tokens(u64::MAX, u64::MAX)).is_none());
    // A path of one message cannot be compacted.
    let mut one = Path::new();
    one.user("hello");
    assert!(compact::plan(&one.entries, compact::KeepLimits::tokens(0, u64::MAX)).is_none());
}

#[test]
fn a_second_compaction_summarises_the_first_summary_too() {
    let mut p = Path::new();
    p.user("old");
    p.reply("old", &[]);
    p.compact(None);
    p.prefix("s");
    for i in 0..3 {
        p.user(&format!("q{i}"));
        p.reply("a", &[]);
    }
    let plan = compact::plan(&p.entries, compact::KeepLimits::tokens(0, u64::MAX)).unwrap();
    assert!(matches!(plan.goes[0].body, EntryBody::Compaction { .. }));
    let t = compact::transcript(&plan.goes, Some("the tests"), 100_000);
    assert!(t.starts_with("[earlier summary]\nSUMMARY") && t.ends_with("the tests"), "{t}");
    assert!(compact::transcript(&plan.goes, None, 60).len() < 120);
}

#[test]
fn tokens_are_the_providers_where_it_counted_and_estimates_after_that() {
    let mut p = Path::new();
    p.user(&"x".repeat(2500));
    assert_eq!(tokens::of_path(&live(&p.entries)), (3 + 1000, false));
    p.add(EntryBody::Assistant {
        blocks: vec![Block::Text { text: "a".into() }],
        stop: StopReason::EndTurn,
        model: ModelRef("fake/m".into()),
        usage: Usage { input: 500, cache_read: 100, output: 50, ..Usage::default() },
        cost: None,
    });
    p.user(&"x".repeat(250));
    // 1,004 were guessed where 650 were counted, so 100 guessed ones are taken for 64.
    assert_eq!(tokens::of_path(&live(&p.entries)), (650 + 64, true));
    let settings = tiller_config::schema::Context { compact_tokens: Some(713), ..Default::default() };
    assert!(compact::due(&p.entries, &settings, None, None));
    let settings = tiller_config::schema::Context { compact_tokens: Some(715), ..Default::default() };
    assert!(!compact::due(&p.entries, &settings, None, None));
    assert!(compact::due(&p.entries, &Default::default(), Some(890), None), "80 % of the window");
    let settings = tiller_config::schema::Context { compact_messages: Some(2), ..Default::default() };
    assert!(compact::due(&p.entries, &settings, None, None));
    let last = p.entries.last().map(|e| e.id);
    // Kept replies do not bring them along.
    for kept in [None, last, Some(p.entries[1].id)] {
        let before = p.entries.len();
        p.compact(kept);
        p.prefix("s");
        assert!(!tokens::of_path(&live(&p.entries)).1, "counts from before a compaction do not hold");
        p.entries.truncate(before);
    }
}
