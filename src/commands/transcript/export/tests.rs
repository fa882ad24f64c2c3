use std::sync::Arc;

use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag};
use tiller_protocol::tool::Display;
use tiller_protocol::{
    AgentId, Attachment, Block, Cost, Entry, EntryBody, EntryId, ManualClock, Message, ModelRef, Origin,
    Part, Profile, SeqIds, StopReason, Time, ToolCall, ToolOutcome, Usage,
};
use tiller_store::{Append, NewSession, Options};
use uuid::Uuid;

use super::*;

/// 2026-11-21T20:00:00Z.
const NOW: Time = Time(1_795_291_200_000);

const NASTY: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\n```\n````\n</details></summary>\n\
    ~~~\n### You · faked\nfaked\n=====\n[x](javascript:alert(3)) ![p](http://there/p.png) <http://ok/>\n\
    \u{1b}]0;owned\u{7}\u{202e}gnp.exe\u{200b}\r\0 </pre></style></title>\n<!--\n![q](http://there/q.png)\n-->\n\
    [r]: javascript:alert(4)\n<details open ontoggle=alert(5)>\n    indented <b>\n";

fn id(n: u128) -> EntryId {
    EntryId(Uuid::from_u128(0x0190_0000_0000_7000_a000_0000_0000_0000 | n))
}

fn session_id() -> SessionId {
    SessionId(Uuid::from_u128(0x0190_0000_0000_7000_9000_0000_0000_0001))
}

fn said(text: &str) -> EntryBody {
    EntryBody::User {
        message: Message::text(text),
        origin: Origin::Prompt,
        content: vec![],
        taint: None,
        learnings: Vec::new(),
    }
}

fn reply(blocks: Vec<Block>) -> EntryBody {
    EntryBody::Assistant {
        blocks,
        stop: StopReason::EndTurn,
        model: ModelRef("demo/planner".into()),
        usage: Usage { input: 120, output: 30, ..Usage::default() },
        cost: Some(Cost(1_500)),
    }
}

fn call(call_id: &str, arguments: serde_json::Value) -> Block {
    Block::ToolCall(ToolCall {
        id: call_id.into(),
        name: "read_file".into(),
        arguments,
        malformed: None,
        vendor: None,
    })
}

fn result(call_id: &str, text: &str) -> EntryBody {
    EntryBody::ToolResult {
        call_id: call_id.into(),
        name: "read_file".into(),
        outcome: ToolOutcome::Ok,
        content: vec![Part::Text { text: text.into() }],
        display: None,
        seconds: 0.25,
        learnings: Vec::new(),
        taint: None,
        added: tiller_protocol::Additions::default(),
    }
}

/// A session with these entries, each below the given parent, with its head at the last.
fn book(title: &str, entries: Vec<(Option<u128>, EntryBody)>) -> (Store, SessionContent) {
    let options = Options {
        clock: Arc::new(ManualClock::new(NOW)),
        ids: Arc::new(SeqIds::default()),
        network: |_| None,
        ..Options::default()
    };
    let store = Store::not_saving("a test", options).unwrap();
    let session = session_id();
    let new = NewSession {
        id: session,
        project: "/work/p".into(),
        title: title.into(),
        model: ModelRef("demo/planner".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: tiller_store::MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let entries = (1..).zip(entries).map(|(n, (parent, body))| Entry {
        id: id(n),
        parent: parent.map(id),
        session,
        agent: AgentId::main(),
        time: Time(NOW.0 + i64::try_from(n).unwrap() * 1000),
        body,
        snapshot: None,
    });
    store.entries().append(Append::new(session, "main").entries(entries.collect())).wait().unwrap();
    let book = SessionContent::read(&store, session).unwrap();
    (store, book)
}

/// Two paths after the first answer, the second the current one; the first has a name.
fn forked() -> (Store, SessionContent) {
    let (store, _) = book(
        "Nuts",
        vec![
            (None, said("what is here?")),
            (Some(1), reply(vec![call("c1", serde_json::json!({"path": "walnut.txt"}))])),
            (Some(2), result("c1", "brown\n```\nnot the end")),
            (Some(3), reply(vec![Block::Text { text: "A **walnut**:\n\n- brown\n- hard\n".into() }])),
            (Some(4), said("crack it")),
            (Some(5), reply(vec![Block::Text { text: "Cracked.".into() }])),
            (Some(4), said("plant it")),
            (Some(7), reply(vec![Block::Text { text: "Planted.".into() }])),
        ],
    );
    let session = session_id();
    store.heads().set(session, "branch-2", Some(id(6)), None).wait().unwrap();
    store.branches().set_label(session, "branch-2", "hammer", None).wait().unwrap();
    store.branches().set_archived(session, "branch-2", true, None).wait().unwrap();
    store.heads().set(session, "main", Some(id(8)), None).wait().unwrap();
    store.tags().set(session, "found", Some(id(4)), None).wait().unwrap();
    let book = SessionContent::read(&store, session).unwrap();
    (store, book)
}

#[test]
fn markdown_reads_well() {
    let (_store, book) = forked();
    insta::assert_snapshot!("markdown_current", markdown::write(&book, false));
    let all = markdown::write(&book, true);
    assert!(all.contains("## Branch hammer\n\nfrom: what is here?\n"), "{all}");
    assert!(all.contains("> crack it") && all.contains("> Cracked."), "{all}");
    assert_eq!(all.matches("> what is here?").count(), 1, "what branches share stands once");
}

#[test]
fn one_branch_can_be_had() {
    let (_store, mut book) = forked();
    assert!(book.only("hammer"));
    let text = markdown::write(&book, false);
    assert!(
        text.contains("> crack it") && !text.contains("plant it") && !text.contains("more branch"),
        "{text}"
    );
    let page = html::write(&book);
    assert!(page.contains("crack it") && !page.contains("plant it"));
    assert!(!book.only("no such branch"));
}

#[test]
fn the_page_shows_the_tree() {
    let (_store, book) = forked();
    let page = html::write(&book);
    let whole = dom_query::Document::from(page.as_str());
    let texts = |selector: &str| -> Vec<String> {
        whole
            .select(selector)
            .iter()
            .map(|s| s.text().split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    assert_eq!(texts("h1"), ["Nuts"]);
    // The side branch is folded within the first turn, before the turn that continued.
    assert_eq!(texts("details.branch > summary"), ["Branch: crack it 2026-11-21 20:00"]);
    assert_eq!(whole.select("details.turn details.branch details.turn").length(), 1);
    assert_eq!(texts("main > details.turn > summary .first"), ["what is here?", "plant it"]);
    assert_eq!(texts("article .chip"), ["found", "end of hammer", "end of main"]);
    assert!(texts("dd").contains(&"hammer (archived), main (current)".to_owned()), "{:?}", texts("dd"));
    assert!(texts("dd").contains(&"$0.0060".to_owned()), "{:?}", texts("dd"));
    assert_eq!(texts("details.fold > summary"), ["read_file walnut.txt · ok, 0.2 s"]);
    assert_eq!(texts("article.model strong"), ["walnut"]);
    for link in whole.select("dd a").iter() {
        let href = link.attr("href").unwrap();
        assert_eq!(whole.select(&format!("article[id=\"{}\"]", &href[1..])).length(), 1, "{href}");
    }
}

/// Adds the session of an agent below an entry: a question, an answer.
fn hang(store: &Store, n: u128, name: &str, by: Option<EntryId>, words: &str) -> SessionId {
    let session = SessionId(Uuid::from_u128(0x0190_0000_0000_7000_9000_0000_0000_0000 | n));
    let new = NewSession {
        id: session,
        project: "/work/p".into(),
        title: words.into(),
        model: ModelRef("demo/planner".into()),
        profile: Profile::Ask,
        spawned_by: by,
        made_by: tiller_store::MadeBy::Person,
    };
    store.sessions().create(new).wait().unwrap();
    let entry = |n: u128, parent: Option<u128>, body| Entry {
        id: id(n),
        parent: parent.map(id),
        session,
        agent: AgentId(name.into()),
        time: NOW,
        body,
        snapshot: None,
    };
    let answer = reply(vec![Block::Text { text: format!("Done: {words}") }]);
    let entries = vec![entry(n * 100, None, said(words)), entry(n * 100 + 1, Some(n * 100), answer)];
    store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
    let row = tiller_store::AgentRow {
        root: session_id(),
        id: AgentId(name.into()),
        session,
        brief: serde_json::json!({}),
        state: tiller_protocol::AgentState::Done,
        report: None,
        announced: true,
        created: NOW,
    };
    store.agents().put(row).wait().unwrap();
    session
}

#[test]
fn agents_are_folded_where_they_were_started() {
    let (store, _) = forked();
    hang(&store, 2, "main/a1", Some(id(2)), "crack three");
    hang(&store, 3, "main/a1/a2", Some(id(201)), "count them");
    // On the other branch, and without an entry.
    hang(&store, 4, "main/a3", Some(id(6)), "find a hammer");
    hang(&store, 5, "main/a4", None, "look around");
    let book = SessionContent::read(&store, session_id()).unwrap();
    let page = html::write(&book);
    assert_tame(&page);
    let whole = dom_query::Document::from(page.as_str());
    let count = |selector: &str| whole.select(selector).length();
    assert_eq!(count("details.agent"), 4);
    // The second within the first, that within its turn; the third in the branch that was left.
    assert_eq!(count("details.turn > details.agent details.turn details.agent"), 1, "{page}");
    assert_eq!(count("details.branch details.agent"), 1);
    assert!(page.contains("<summary>Agent a1: crack three · done"), "{page}");
    assert_eq!(page.matches("<dd>4 (8 entries, 480 tokens in, 120 out, $0.0060)</dd>").count(), 1, "{page}");
    assert_eq!(page.matches("Done: count them").count(), 1);
    assert!(page.contains("<b>To the agent</b>"));

    let all = markdown::write(&book, true);
    assert_tame_markdown(&all, all.matches("\n### ").count() + all.matches("\n## ").count());
    for words in ["crack three", "count them", "find a hammer", "look around"] {
        assert_eq!(all.matches(&format!("> Done: {words}")).count(), 1, "{all}");
    }
    let (outer, inner) = (all.find("Agent a1: crack").unwrap(), all.find("Agent a2: count").unwrap());
    assert!(outer < inner && inner < all.find("### demo/planner · 2026-11-21 20:00:04").unwrap(), "{all}");
    let current = markdown::write(&book, false);
    assert!(!current.contains("find a hammer") && current.contains("look around"), "{current}");

    let mut one = SessionContent::read(&store, session_id()).unwrap();
    assert!(one.only("hammer"));
    let one = html::write(&one);
    assert!(one.contains("find a hammer") && one.contains("count them") && !one.contains("look around"));
}

/// An imported file may claim that two sessions started each other.
#[test]
fn agents_in_a_circle_are_told_once() {
    let (store, _) = forked();
    hang(&store, 2, "main/a1", Some(id(300)), "egg");
    hang(&store, 3, "main/a2", Some(id(200)), "hen");
    let page = html::write(&SessionContent::read(&store, session_id()).unwrap());
    assert_tame(&page);
    assert_eq!((page.matches("Done: egg").count(), page.matches("Done: hen").count()), (1, 1));
}

/// Servers may give the same id to calls of two branches: each result is shown with its own call.
#[test]
fn one_id_of_two_calls_is_told_apart() {
    let (_store, book) = book(
        "t",
        vec![
            (None, said("read")),
            (Some(1), reply(vec![call("c1", serde_json::json!({"path": "one.txt"}))])),
            (Some(2), result("c1", "1")),
            (Some(1), reply(vec![call("c1", serde_json::json!({"path": "two.txt"}))])),
            (Some(4), result("c1", "2")),
            (Some(5), said("and then")),
            (Some(6), reply(vec![call("c1", serde_json::json!({"path": "three.txt"}))])),
        ],
    );
    let page = html::write(&book);
    for line in ["one.txt · ok", "two.txt · ok", "three.txt · no result"] {
        assert_eq!(page.matches(line).count(), 1, "{line}: {page}");
    }
}

/// Tiller's own elements and attributes; the output must not contain others, whatever the input is.
fn assert_tame(page: &str) {
    const ELEMENTS: &str = " html head meta title style body header h1 dl dt dd code main details summary span article h3 \
        b div pre p img a h4 h5 h6 ul ol li em strong s blockquote table thead tbody tr th td br hr ";
    const ATTRIBUTES: &str = " lang charset http-equiv content name class id open href rel alt src start ";
    let whole = dom_query::Document::from(page);
    for element in whole.select("*").iter() {
        let name = element.nodes()[0].node_name().unwrap().to_string();
        assert!(ELEMENTS.contains(&format!(" {name} ")), "an element <{name}> of theirs");
        for attr in element.attrs() {
            let (key, value) = (attr.name.local.to_string(), attr.value.to_string());
            assert!(ATTRIBUTES.contains(&format!(" {key} ")), "an attribute {key} of theirs on {name}");
            match key.as_str() {
                "href" => assert!(value.starts_with('#') || prose::harmless(&value), "{value}"),
                "src" => assert!(value.starts_with("data:image/"), "{value}"),
                _ => {}
            }
        }
    }
    let odd = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}')
    };
    assert_eq!(page.chars().find(|c| odd(*c)), None);
    assert_eq!(whole.select("script").length(), 0);
}

/// Tiller's own headings only, no HTML but Tiller's, no images, no active links.
fn assert_tame_markdown(text: &str, entries: usize) {
    let mut headings = 0;
    for (event, range) in Parser::new_ext(text, prose::OPTIONS).into_offset_iter() {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => {
                let ours = html.trim_end() == "</details>"
                    || html.strip_prefix("<details><summary>").is_some_and(|rest| {
                        rest.trim_end()
                            .strip_suffix("</summary>")
                            .is_some_and(|line| !line.contains(['<', '>']))
                    });
                assert!(ours, "HTML of theirs: {html}");
            }
            Event::Start(Tag::Heading { .. }) if text[..range.start].ends_with('\n') || range.start == 0 => {
                headings += 1
            }
            Event::Start(Tag::Image { .. }) => panic!("a picture: {}", &text[range]),
            Event::Start(Tag::Link { dest_url, .. }) => assert!(prose::harmless(&dest_url), "{dest_url}"),
            _ => {}
        }
    }
    assert_eq!(headings, entries + 1, "{text}");
    let odd = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}')
    };
    assert_eq!(text.chars().find(|c| odd(*c)), None);
}

/// Everything that can contain untrusted text contains this. Five of the entries have a heading.
fn hostile(nasty: &str) -> (Store, SessionContent) {
    let mut first = said(nasty);
    if let EntryBody::User { message, .. } = &mut first {
        message.attachments = vec![
            Attachment::Paste { label: nasty.into(), text: nasty.into() },
            Attachment::File { label: nasty.into(), path: nasty.into(), lines: Some((1, 2)) },
            Attachment::Image {
                label: nasty.into(),
                media_type: "image/svg+xml".into(),
                data: "PHN2Zz4=".into(),
                width: 1,
                height: 1,
            },
        ];
    }
    let mut last = result("c1", nasty);
    if let EntryBody::ToolResult { name, content, display, .. } = &mut last {
        *name = nasty.into();
        content.push(Part::Image {
            media_type: "image/png".into(),
            data: format!("{nasty}\" onload=\"alert(1)"),
        });
        content.push(Part::Image { media_type: nasty.into(), data: nasty.into() });
        let file = tiller_protocol::tool::FileDiff {
            path: nasty.into(),
            kind: tiller_protocol::ChangeKind::Modified,
            added: 1,
            removed: 1,
            diff: nasty.into(),
        };
        *display = Some(Display::Diff { files: vec![file] });
    }
    let blocks = vec![
        Block::Thinking { text: nasty.into(), signature: None },
        Block::Text { text: nasty.into() },
        Block::Unknown { provider: nasty.into(), raw: serde_json::json!({ nasty: nasty }) },
        call("c1", serde_json::json!({ "path": nasty })),
        call("c2", serde_json::json!({ nasty: nasty })),
    ];
    let mut answer = reply(blocks);
    if let EntryBody::Assistant { stop, model, .. } = &mut answer {
        *stop = StopReason::Cut(nasty.into());
        *model = ModelRef(nasty.into());
    }
    let (store, _) = book(
        nasty,
        vec![
            (None, first),
            (Some(1), answer),
            (Some(2), last),
            (Some(3), EntryBody::Checkpoint { name: nasty.into() }),
            (Some(4), EntryBody::Note { text: nasty.into() }),
            (
                Some(5),
                EntryBody::Compaction {
                    summary: nasty.into(),
                    focus: None,
                    kept_from: None,
                    tokens_before: 1,
                    tokens_after: 1,
                    taint: None,
                    carried: tiller_protocol::Carried::default(),
                },
            ),
        ],
    );
    let session = session_id();
    store.branches().set_label(session, "main", nasty, None).wait().unwrap();
    store.tags().set(session, nasty, Some(id(1)), None).wait().unwrap();
    store.heads().set(session, nasty, Some(id(2)), None).wait().unwrap();
    store.heads().set(session, "main", Some(id(6)), None).wait().unwrap();
    let book = SessionContent::read(&store, session).unwrap();
    (store, book)
}

#[test]
fn nothing_hostile_gets_out_of_its_place() {
    let (_store, book) = hostile(NASTY);
    let page = html::write(&book);
    assert_tame(&page);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("&lt;U+202E&gt;gnp.exe"));
    // One style block, which is all that the policy permits.
    assert_eq!(page.matches("<style>").count(), 1);
    let hash = ring::digest::digest(&ring::digest::SHA256, include_bytes!("page.css"));
    let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, hash);
    assert!(page.contains(&format!("default-src 'none'; style-src 'sha256-{hash}'; img-src data:;")));
    assert_tame_markdown(&markdown::write(&book, true), 5);
}

#[test]
fn pictures_are_in_the_page() {
    let mut body = said("look");
    if let EntryBody::User { message, .. } = &mut body {
        let image = |media_type: &str| Attachment::Image {
            label: "[image]".into(),
            media_type: media_type.into(),
            data: "iVBORw0KGgo=".into(),
            width: 1,
            height: 1,
        };
        message.attachments = vec![image("image/png"), image("image/svg+xml")];
    }
    let (_store, book) = book("t", vec![(None, body)]);
    let page = html::write(&book);
    assert!(page.contains("<img alt=\"\" src=\"data:image/png;base64,iVBORw0KGgo=\">"));
    assert!(page.contains("(picture, image/svg+xml)"));
}

#[test]
fn deep_and_wide_trees_are_told_once_and_in_order() {
    // A comb: each entry has a side branch, along one long path.
    let mut entries = vec![(None, said("0"))];
    for n in 1..3_000_u128 {
        let parent = if n % 2 == 0 { n - 1 } else { n };
        entries.push((Some(parent.max(1)), said(&n.to_string())));
    }
    let (_store, book) = book("comb", entries);
    let steps = order::Order::new(&book).all();
    let rendered: std::collections::HashSet<_> =
        steps.iter().filter(|s| matches!(s, order::Step::Entry(_))).map(|s| format!("{s:?}")).collect();
    assert_eq!(rendered.len(), 3_000);
    let (mut depth, mut seen) = (0_i32, std::collections::HashSet::new());
    for step in &steps {
        match step {
            order::Step::Open(_) | order::Step::Agent(_) => depth += 1,
            order::Step::Close => depth -= 1,
            order::Step::Entry(at) => {
                seen.insert(book.entries[*at].id);
                let parent = book.entries[*at].parent;
                assert!(parent.is_none_or(|p| seen.contains(&p)), "a child before its parent");
            }
        }
        assert!(depth >= 0);
    }
    assert_eq!(depth, 0);
    assert_tame(&html::write(&book));
}

fn soup() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        "<",
        ">",
        "</",
        "<b>",
        "<!--",
        "-->",
        "<script>",
        "</details>",
        "`",
        "```",
        "````",
        "~~~",
        "\n",
        "\n\n",
        "    ",
        "#",
        "# a",
        "===",
        "---",
        "- ",
        "1. ",
        "> ",
        "[",
        "]",
        "](",
        ")",
        "![a](http://x)",
        "[a]: x\n",
        "[a]",
        "javascript:x",
        "java\tscript:x",
        "&lt;",
        "&#x6a;",
        "\\",
        "*",
        "_",
        "|a|\n|-|\n",
        "a",
        " ",
        "\t",
        "\u{202e}",
        "\u{1b}",
        "\"",
        "'",
        "<a href=x>",
        "<http://x>",
        "<x:y>",
        "é",
        "漢",
        "<![CDATA[",
        "<?",
        "<!X",
        "]]>",
        "?>",
        "<pre>",
        "<style>",
        "\r\n",
        "\r",
    ]);
    prop::collection::vec(bits, 0..24).prop_map(|v| v.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_soup_gets_out(text in soup()) {
        let (_store, book) = hostile(&text);
        assert_tame(&html::write(&book));
        assert_tame_markdown(&markdown::write(&book, false), 5);
    }
}
