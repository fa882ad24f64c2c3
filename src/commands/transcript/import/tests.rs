use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use tiller_protocol::{
    Block, Cost, Entry, EntryBody, ManualClock, Part, SearchQuery, SeqIds, Time, ToolOutcome,
};
use tiller_store::{Imported, Options};

use super::*;

pub(super) const CLAUDE: &str = include_str!("fixtures/claude.jsonl");
pub(super) const CODEX: &str = include_str!("fixtures/codex.jsonl");
pub(super) const PI: &str = include_str!("fixtures/pi.jsonl");

pub(super) fn store() -> Store {
    let options = Options {
        clock: Arc::new(ManualClock::new(Time(1_795_291_200_000))),
        ids: Arc::new(SeqIds::default()),
        network: |_| None,
        ..Options::default()
    };
    Store::not_saving("a test", options).unwrap()
}

/// The transcript as a session of a store.
fn import(store: &Store, text: &str) -> (Imported, Report) {
    let format = format_of(text.as_bytes()).unwrap();
    let (lines, report) = translate(format, text.as_bytes(), "/here", &Arc::default());
    let lines = lines.unwrap();
    let came = store
        .transfer()
        .import(&mut lines.as_bytes(), ImportIds::Keep)
        .wait()
        .unwrap_or_else(|e| panic!("{e}\n{lines}"));
    (came, report)
}

pub(super) fn path(store: &Store, session: SessionId, head: &str) -> Vec<Entry> {
    store.paths().tail(session, head, 999).unwrap().entries
}

/// One line for each entry of a path.
fn outline(entries: &[Entry]) -> Vec<String> {
    let parts = |content: &[Part]| -> String {
        content
            .iter()
            .map(|p| match p {
                Part::Text { text } => text.replace('\n', " "),
                Part::Image { media_type, .. } => format!("[{media_type}]"),
            })
            .collect::<Vec<_>>()
            .join("+")
    };
    entries
        .iter()
        .map(|e| match &e.body {
            EntryBody::User { origin, content, .. } => format!("{origin:?}: {}", parts(content)),
            EntryBody::Assistant { blocks, .. } => {
                let bits: Vec<String> = blocks
                    .iter()
                    .map(|b| match b {
                        Block::Text { text } => text.clone(),
                        Block::Thinking { text, .. } => format!("({text})"),
                        Block::ToolCall(c) => format!("{}#{}", c.name, c.id),
                        other => format!("{other:?}"),
                    })
                    .collect();
                format!("reply: {}", bits.join(" "))
            }
            EntryBody::ToolResult { call_id, outcome, content, .. } => {
                format!("result {call_id} {outcome:?}: {}", parts(content))
            }
            EntryBody::Compaction { summary, .. } => format!("summary: {summary}"),
            EntryBody::Note { text } => format!("note: {}", text.replace('\n', " ")),
            other => other.kind().to_owned(),
        })
        .collect()
}

/// The rule of every API: a reply with calls is followed by exactly their results.
pub(super) fn assert_valid(entries: &[Entry]) {
    let mut open: HashSet<&str> = HashSet::new();
    let mut ever: HashSet<&str> = HashSet::new();
    for entry in entries {
        if let EntryBody::ToolResult { call_id, .. } = &entry.body {
            assert!(open.remove(call_id.as_str()), "a result of no open call: {call_id}");
            continue;
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
        if let EntryBody::Assistant { blocks, .. } = &entry.body {
            for block in blocks {
                if let Block::ToolCall(c) = block {
                    assert!(ever.insert(&c.id), "a call twice: {}", c.id);
                    open.insert(&c.id);
                }
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

#[test]
fn claude_code_s_tree_comes_whole() {
    let store = store();
    let (came, report) = import(&store, CLAUDE);
    let s = came.session;
    let row = store.sessions().get(s).unwrap();
    assert_eq!((row.summary.title.as_str(), row.summary.project.as_str()), ("Counting nuts", "/work/nuts"));
    assert_eq!(row.summary.model.0, "anthropic/claude-test-1");
    let main = path(&store, s, "main");
    assert_eq!(
        outline(&main),
        [
            "Prompt: count the nuts",
            "reply: (two bowls) Bash#t1 Bash#t2",
            "result t1 Ok: walnut hazelnut",
            "result t2 Error: no such bowl",
            "reply: Two nuts, one bowl.",
            "Prompt: roast them",
            "reply: Oven#t3",
            "result t3 Interrupted: The transcript contains no result of this call.",
            "summary: Nuts were counted and put into the oven.",
        ]
    );
    let EntryBody::Assistant { usage, blocks, .. } = &main[1].body else { panic!() };
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.cache_write),
        (10, 30, 100, 5),
        "counted once"
    );
    assert!(matches!(&blocks[0], Block::Thinking { signature: Some(s), .. } if s == "c2ln"));
    assert_eq!(main[1].time, Time::parse("2026-11-20T09:00:01Z").unwrap());
    assert!(matches!(&main[8].body, EntryBody::Compaction { tokens_before: 1234, .. }));
    let branches = store.branches().list(s).unwrap();
    let all: Vec<_> = branches.iter().map(|b| (b.name.as_str(), b.label.as_str(), b.archived)).collect();
    assert_eq!(
        all,
        [
            ("branch-2", "", false),
            ("branch-3", "sub-agent 3", false),
            ("main", "", false),
            ("records", "Claude Code (not part of the conversation)", true),
        ]
    );
    assert_eq!(outline(&path(&store, s, "branch-2"))[5], "Prompt: and in this picture?+[image/png]");
    assert_eq!(outline(&path(&store, s, "branch-3")), ["Prompt: look for acorns", "reply: No acorns."]);
    for branch in &branches {
        assert_valid(&path(&store, s, &branch.name));
    }
    // Nothing is dropped: four lines are kept unchanged, the broken one by its number.
    let kept: Vec<(&str, usize)> = report.kept.iter().map(|(k, n)| (k.as_str(), *n)).collect();
    assert_eq!(kept, [("attachment", 1), ("queue-operation", 1), ("summary", 1), ("system", 1)]);
    assert_eq!(report.broken.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [11]);
    let records = path(&store, s, "records");
    assert_eq!(records.len(), 5);
    assert!(outline(&records)[2].contains("this line was cut by a cra"), "{:?}", outline(&records));
    let EntryBody::Assistant { blocks, .. } = &records[1].body else { panic!() };
    let raw: Value = serde_json::from_str(CLAUDE.lines().nth(2).unwrap()).unwrap();
    assert_eq!(blocks[..], [Block::Unknown { provider: "Claude Code".into(), raw }]);
}

#[test]
fn codex_s_way_comes_whole() {
    let store = store();
    let (came, report) = import(&store, CODEX);
    let main = path(&store, came.session, "main");
    assert_eq!(
        outline(&main),
        [
            "Prompt: shell the almonds+[image/png]",
            "reply: (a hammer first) I fetch a hammer. shell#call_1 shell#call_2",
            "result call_2 Error: failed to parse",
            "result call_1 Ok: hammer tongs",
            "reply: apply_patch#call_3",
            "result call_3 Ok: Success",
            "note: A result of a tool without a call: of nobody",
            "summary: Almonds are shelled.",
            "reply: Done.",
        ]
    );
    assert_valid(&main);
    let EntryBody::Assistant { usage, model, blocks, .. } = &main[1].body else { panic!() };
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (100, 800, 40, 10));
    assert_eq!(model.0, "openai-responses/gpt-test");
    assert!(matches!(&blocks[3], Block::ToolCall(c) if c.malformed.as_deref() == Some("not json")));
    let row = store.sessions().get(came.session).unwrap();
    assert_eq!(
        (row.summary.title.as_str(), row.summary.project.as_str()),
        ("shell the almonds [image]", "/work/nuts")
    );
    // The encrypted thought, the instructions of Codex, and duplicates for the screen.
    assert_eq!(report.kept["response_item/message"], 2);
    assert_eq!(report.kept["response_item/reasoning"], 1);
    assert_eq!(report.kept["event_msg/user_message"], 1);
    assert_eq!(report.broken, [(19, "it is not an object".to_owned())]);
    assert_eq!(path(&store, came.session, "records").len(), 9);
}

#[test]
fn pi_s_tree_comes_whole() {
    let store = store();
    let (came, report) = import(&store, PI);
    let s = came.session;
    let main = path(&store, s, "main");
    assert_eq!(
        outline(&main),
        [
            "Prompt: plant a chestnut",
            "reply: (soil?) Looking for soil. bash#k1",
            "result k1 Ok: clay",
            "reply: It is clay.",
            "Engine: Summary of the branch that was left: Sand did not hold.",
            "Shell: I ran this command myself: $ ls spade",
            "summary: A chestnut needs clay.",
            "Prompt: water it",
        ]
    );
    // The same call id twice, and one without a result.
    let side = path(&store, s, "branch-2");
    assert_eq!(
        outline(&side)[4..],
        [
            "Prompt: use sand",
            "reply: bash#k1#2",
            "result k1#2 Interrupted: The transcript contains no result of this call."
        ]
    );
    assert_valid(&main);
    assert_valid(&side);
    let EntryBody::Assistant { usage, cost, .. } = &main[1].body else { panic!() };
    assert_eq!((usage.context(), usage.output, *cost), (55, 9, Some(Cost(2_000))));
    let tags = store.tags().list(s).unwrap();
    assert_eq!((tags.len(), tags[0].name.as_str(), tags[0].entry), (1, "clay", main[3].id));
    let row = store.sessions().get(s).unwrap();
    assert_eq!(
        (row.summary.title.as_str(), row.summary.model.0.as_str()),
        ("Chestnut", "anthropic/claude-test-1")
    );
    assert_eq!(report.kept["garden"], 1);
    assert!(report.broken.is_empty());
    let EntryBody::Compaction { kept_from, tokens_before, .. } = &main[6].body else { panic!() };
    assert_eq!((*kept_from, *tokens_before), (Some(side[4].id), 500));
}

#[test]
fn a_second_import_changes_nothing_and_a_search_finds_it() {
    for (text, word) in [(CLAUDE, "hazelnut"), (CODEX, "tongs"), (PI, "clay")] {
        let store = store();
        let (came, _) = import(&store, text);
        let mut before = Vec::new();
        store.transfer().export(came.session, &mut before).unwrap();
        let (lines, _) =
            translate(format_of(text.as_bytes()).unwrap(), text.as_bytes(), "/elsewhere", &Arc::default());
        let there = there(&store, &mut ImportSource::Bytes(lines.unwrap().into_bytes())).unwrap().unwrap();
        assert_eq!((there.id, there.missing, there.here), (came.session, 0, came.entries));
        let mut after = Vec::new();
        store.transfer().export(came.session, &mut after).unwrap();
        assert_eq!(before, after);
        let query = SearchQuery { text: word.into(), limit: 10, ..SearchQuery::default() };
        let hits = store.search().find(&query, u64::MAX).unwrap().hits;
        assert!(!hits.is_empty() && hits.iter().all(|h| h.session == came.session), "{word}");
        assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
    }
}

fn lines_of(text: &str) -> String {
    translate(format_of(text.as_bytes()).unwrap(), text.as_bytes(), "/here", &Arc::default()).0.unwrap()
}

/// The content of a session: entries by their ids, with parents and bodies.
fn holds(store: &Store, session: SessionId) -> Vec<Entry> {
    let mut all = store.paths().all(session).unwrap();
    all.sort_by_key(|e| e.id);
    all
}

/// A transcript that has grown is continued, wherever it was cut before; nothing is duplicated.
#[test]
fn a_transcript_that_grew_is_gone_on_with() {
    for text in [CLAUDE, CODEX, PI] {
        let whole = store();
        let (came, _) = import(&whole, text);
        let lines: Vec<&str> = text.lines().collect();
        let (mut joined, mut refused) = (0, 0);
        for cut in 2..lines.len() {
            let short: String = lines[..cut].iter().map(|l| format!("{l}\n")).collect();
            let Some(format) = format_of(short.as_bytes()) else { continue };
            if translate(format, short.as_bytes(), "/here", &Arc::default()).0.is_none() {
                continue;
            }
            let store = store();
            let (first, _) = import(&store, &short);
            if first.session != came.session {
                // Its name contains the time of its first line, which did not exist yet.
                continue;
            }
            let more = match store.transfer().import_more(&mut lines_of(text).as_bytes()).wait() {
                Ok(more) => more,
                // Cut within a reply: existing entries are not rewritten.
                Err(StoreError::Conflict(_)) => {
                    refused += 1;
                    assert_eq!(store.paths().all(first.session).unwrap().len() as u64, first.entries);
                    continue;
                }
                Err(e) => panic!("{cut}: {e}"),
            };
            joined += 1;
            let (all, then) = (holds(&whole, came.session), holds(&store, first.session));
            // Only placeholder results for later ones may exist in addition.
            let extra: Vec<_> = then.iter().filter(|e| !all.iter().any(|a| a.id == e.id)).collect();
            assert!(
                extra.iter().all(|e| matches!(&e.body, EntryBody::ToolResult { outcome, .. } if *outcome == ToolOutcome::Interrupted)),
                "{cut}: {extra:?}"
            );
            assert!(all.iter().all(|a| then.contains(a)), "{cut}: all of the file is there");
            assert_eq!(first.entries + more.entries, then.len() as u64);
            let row = store.sessions().get(first.session).unwrap().summary;
            assert_eq!(row.entries, then.len() as u64);
            let main = |s: &Store| outline(&path(s, first.session, "main"));
            assert_eq!(main(&store), main(&whole), "{cut}");
            assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new(), "{cut}");
            // A repeated import adds nothing.
            let again = store.transfer().import_more(&mut lines_of(text).as_bytes()).wait().unwrap();
            assert_eq!(again.entries, 0, "{cut}");
        }
        assert!(joined > 2, "{joined} joined, {refused} refused");
    }
}

/// The result of such a call would not reach a model.
#[test]
fn a_transcript_has_no_call_of_a_message() {
    let store = store();
    let (came, _) = import(&store, &CLAUDE.replace("\"t1\"", "\"tiller-message-t1\""));
    let entries = path(&store, came.session, "main");
    assert_valid(&entries);
    let lines = outline(&entries);
    assert!(lines.iter().any(|line| line.starts_with("result call_tiller-message-t1 ")), "{lines:?}");
}

/// Local continuations are kept, and those of the file get a branch of their own.
#[test]
fn a_transcript_that_went_on_in_both_places_has_both() {
    let store = store();
    let short: String = PI.lines().take(6).map(|l| format!("{l}\n")).collect();
    let (came, _) = import(&store, &short);
    let s = came.session;
    let here = path(&store, s, "main");
    let tip = here.last().unwrap();
    let mine = Entry {
        id: "01900000-0000-7000-8000-000000000099".parse().unwrap(),
        parent: Some(tip.id),
        body: EntryBody::Note { text: "gone on with here".into() },
        ..tip.clone()
    };
    store.entries().append(tiller_store::Append::new(s, "main").entries(vec![mine.clone()])).wait().unwrap();
    let more = store.transfer().import_more(&mut lines_of(PI).as_bytes()).wait().unwrap();
    assert!(more.entries > 0);
    assert_eq!(path(&store, s, "main").last(), Some(&mine), "the branch that is here did not move");
    let whole = self::store();
    let (all, _) = import(&whole, PI);
    let end = path(&whole, all.session, "main");
    let heads = store.branches().list(s).unwrap();
    let other = heads.iter().find(|h| h.entry == end.last().map(|e| e.id)).expect("its end has a branch");
    assert_eq!(outline(&path(&store, s, &other.name)), outline(&end));
}

#[test]
fn a_repeated_line_moves_nothing() {
    let line = |uuid: &str, parent: Option<&str>, kind: &str, message: Value| {
        json!({"type": kind, "sessionId": "s", "cwd": "/p", "uuid": uuid, "parentUuid": parent,
            "timestamp": "2026-01-02T03:04:05Z", "message": message})
    };
    let reply = |uuid: &str, parent: &str, text: &str| {
        let message = json!({"id": "m1", "model": "claude", "content": [{"type": "text", "text": text}]});
        line(uuid, Some(parent), "assistant", message)
    };
    let said =
        |uuid: &str, parent: Option<&str>, text: &str| line(uuid, parent, "user", json!({"content": text}));
    let (first, second) = (reply("a1", "u1", "one"), reply("a2", "a1", "two"));
    let lines =
        [said("u1", None, "go"), first.clone(), second.clone(), first, second, said("u2", Some("a2"), "on")];
    let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let store = store();
    let (came, _) = import(&store, &text);
    let way = outline(&path(&store, came.session, "main"));
    assert_eq!(way, ["Prompt: go", "reply: one two", "Prompt: on"]);
}

#[test]
fn what_is_imported_is_masked() {
    let secrets = tiller_testkit::seeded(80, 0x5EED_0016);
    let mut text = String::new();
    let mut above = None;
    for (n, s) in secrets.iter().enumerate() {
        let uuid = format!("u{n}");
        let line = match n % 4 {
            0 => json!({"type": "user", "message": {"content": s.line}}),
            1 => json!({"type": "assistant", "message": {"id": uuid, "model": "c", "content": [
                {"type": "tool_use", "id": uuid, "name": "Bash", "input": {"command": s.line}},
                {"type": "thinking", "thinking": s.line, "signature": "c2ln"},
                {"type": "of_tomorrow", "words": s.line}]}}),
            2 => json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": format!("u{}", n - 1), "content": s.line}]}}),
            _ => json!({"type": "of_the_program", "said": s.line}),
        };
        let mut line = line;
        (line["sessionId"], line["uuid"], line["parentUuid"]) = (json!("s"), json!(uuid), json!(above));
        text.push_str(&format!("{line}\n"));
        above = Some(uuid);
    }
    text.push_str(&format!("not json {}\n", secrets[4].line));
    text.push_str(&format!("{}\n", json!({"type": "summary", "leafUuid": "u1", "summary": secrets[5].line})));
    let format = format_of(text.as_bytes()).unwrap();
    let lines = translate(format, text.as_bytes(), "/here", &Arc::default()).0.unwrap();
    let left: Vec<&str> =
        secrets.iter().filter(|s| lines.contains(&s.secret)).map(|s| s.line.as_str()).collect();
    assert!(left.is_empty(), "{left:#?}");
    assert!(lines.matches("[redacted ").count() >= secrets.len());
}

#[test]
fn formats_are_told_apart() {
    let name = |text: &str| format_of(text.as_bytes()).map(|f| f.name);
    assert_eq!([name(CLAUDE), name(CODEX), name(PI)], [Some("Claude Code"), Some("Codex"), Some("Pi")]);
    assert_eq!(name("{\"tiller\":\"session\",\"version\":2}\n"), None);
    assert_eq!(
        name("{\"id\":\"x\",\"timestamp\":\"2025-05-01T00:00:00Z\",\"instructions\":null}\n"),
        Some("Codex")
    );
    assert_eq!(name("no json\n{\"a\":1}\n"), None);
    let (lines, report) =
        translate(&FORMATS[2], b"{\"type\":\"mode\",\"sessionId\":\"x\"}\n", "/here", &Arc::default());
    assert_eq!((lines, report.kept.len()), (None, 1));
}

/// The oldest files of Pi: no parents, one path.
#[test]
fn files_without_links_are_one_way() {
    let text = "{\"type\":\"session\",\"id\":\"old\",\"timestamp\":\"2025-01-01T00:00:00Z\",\"cwd\":\"relative\"}\n\
        {\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"one\"}}\n\
        {\"type\":\"thinking_level_change\",\"thinkingLevel\":\"low\"}\n\
        {\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"two\"}}\n";
    let store = store();
    let (came, _) = import(&store, text);
    assert_eq!(outline(&path(&store, came.session, "main")), ["Prompt: one", "Prompt: two"]);
    assert_eq!(store.sessions().get(came.session).unwrap().summary.project, "/here");
}

/// Hostile lines: duplicate ids, cycles, unknown parents, results before calls.
fn line() -> impl Strategy<Value = Value> {
    let key = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f", ""]);
    let call = || prop::sample::select(vec!["k1", "k2", "k3", ""]);
    let kind = 0..7_u8;
    (kind, key(), prop::option::of(key()), call(), call()).prop_map(|(kind, id, parent, one, two)| {
        let message = match kind {
            0 => json!({"role": "user", "content": "words"}),
            1 => json!({"role": "assistant", "content": [{"type": "toolCall", "id": one, "name": "x", "arguments": {}},
                {"type": "toolCall", "id": two, "name": "x", "arguments": 7}], "provider": "p", "model": "m"}),
            2 => json!({"role": "assistant", "content": [{"type": "text", "text": "so"}], "provider": "p", "model": "m"}),
            3 | 4 => json!({"role": "toolResult", "toolCallId": one, "toolName": "x", "content": [{"type": "text", "text": "out"}]}),
            5 => json!({"role": "assistant", "content": 3}),
            _ => json!("nothing"),
        };
        if kind == 6 {
            return json!({"type": "compaction", "id": id, "parentId": parent, "summary": "s", "firstKeptEntryId": one});
        }
        json!({"type": "message", "id": id, "parentId": parent, "message": message})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_the_history_is_valid(lines in prop::collection::vec(line(), 1..24)) {
        let mut text = json!({"type": "session", "id": "s", "cwd": "/w", "timestamp": 5}).to_string() + "\n";
        for line in &lines {
            text.push_str(&format!("{line}\n"));
        }
        let (file, report) = translate(&FORMATS[0], text.as_bytes(), "/here", &Arc::default());
        let Some(file) = file else { return Ok(()) };
        let store = store();
        let came = store.transfer().import(&mut file.as_bytes(), ImportIds::Keep).wait();
        prop_assert!(came.is_ok(), "{:?}\n{}", came, file);
        let session = came.unwrap().session;
        for branch in store.branches().list(session).unwrap() {
            assert_valid(&path(&store, session, &branch.name));
        }
        // Each line became an entry or a record.
        let theirs = store.paths().all(session).unwrap().iter().filter(|e| {
            !matches!(&e.body, EntryBody::ToolResult { outcome: ToolOutcome::Interrupted, .. })
        }).count();
        prop_assert_eq!(theirs, lines.len() + 1);
        prop_assert!(report.broken.is_empty());
    }

    #[test]
    fn no_line_ends_a_reader(lines in prop::collection::vec(".{0,40}|\\{\"type\":\"(user|assistant|message|response_item|summary)\",\"(uuid|payload|message|sessionId)\":(\\{\\}|\"x\"|7|null)\\}", 0..12)) {
        for format in FORMATS {
            let (file, _) = translate(format, lines.join("\n").as_bytes(), "/here", &Arc::default());
            if let Some(file) = file {
                prop_assert!(store().transfer().import(&mut file.as_bytes(), ImportIds::Keep).wait().is_ok(), "{}", file);
            }
        }
    }
}

/// Rights of a file that were not taken are named in one line, whatever its words are.
#[test]
fn what_a_file_was_not_believed_is_said() {
    let profiles = [("full".to_owned(), 1), ("x\u{1b}[31m\ny".to_owned(), 2)].into();
    let withheld = Withheld { profiles, rules: 3, asks: 1 };
    let session = SessionId(uuid::Uuid::nil());
    let came = ImportedFile { session, entries: 4, others: 0, here: None, report: None, withheld };
    let text = report_text(Path::new("a file"), &came, false);
    let (_, line) = text.split_once('\n').unwrap();
    assert!(
        line.starts_with("  Not taken from the file: the profile 'full' (it is 'ask' here), the profile 'x")
    );
    assert!(
        line.ends_with(
            ", 3 permission rule(s), 1 open question(s). --mine takes them from a file of yours.\n"
        )
    );
    assert!(line.lines().count() == 1 && !line.contains('\u{1b}'), "{line:?}");
    let row: Value = serde_json::from_str(&report_text(Path::new("a file"), &came, true)).unwrap();
    assert_eq!(row["withheld"]["profiles"]["full"], 1);
    assert_eq!((&row["withheld"]["rules"], &row["withheld"]["questions"]), (&json!(3), &json!(1)));
    let plain = ImportedFile { withheld: Withheld::default(), ..came };
    assert_eq!(report_text(Path::new("a file"), &plain, false).lines().count(), 1);
    assert!(!report_text(Path::new("a file"), &plain, true).contains("withheld"));
}
