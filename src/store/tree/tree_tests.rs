//! Trees as the tree browser reads them.

use serde_json::json;
use tiller_protocol::restore::StepFile;
use tiller_protocol::tree::TreeFound;
use tiller_protocol::{
    Block, ChangeKind, EntryBody, ModelRef, Origin, Part, StopReason, ToolCall, ToolOutcome, Usage,
};

use super::*;
use crate::open::Store;
use crate::session::steps::{StepOf, StepRow};
use crate::testing::{NOW, entry, entry_id, scratch, session, user};
use crate::{Append, NewSession};

fn reply(session: SessionId, n: u128, calls: &[&str]) -> tiller_protocol::Entry {
    let call = |id: &&str| {
        Block::ToolCall(ToolCall {
            id: (*id).into(),
            name: "terminal".into(),
            arguments: json!({"command": format!("run {id}"), "long": "x".repeat(1000)}),
            malformed: None,
            vendor: None,
        })
    };
    let body = EntryBody::Assistant {
        blocks: calls.iter().map(call).collect(),
        stop: StopReason::ToolUse,
        model: ModelRef("a/b".into()),
        usage: Usage { input: 10, output: 5, cache_read: 100, ..Usage::default() },
        cost: Some(Cost(7)),
    };
    entry(session, entry_id(n), Some(entry_id(n - 1)), body)
}

fn result(session: SessionId, n: u128, call: &str, outcome: ToolOutcome) -> tiller_protocol::Entry {
    let body = EntryBody::ToolResult {
        call_id: call.into(),
        name: "terminal".into(),
        outcome,
        content: vec![Part::Text { text: "\n all went well\nmore".repeat(400) }],
        display: None,
        seconds: 0.1,
        learnings: Vec::new(),
        taint: None,
        added: tiller_protocol::Additions::default(),
    };
    entry(session, entry_id(n), Some(entry_id(n - 1)), body)
}

/// Two calls of one turn, then two continuations.
fn grown() -> (tempfile::TempDir, Store, SessionId) {
    let (dir, store) = scratch();
    let s = session(&store, 1);
    let odd = "c\"2\\\u{e9}";
    let entries = vec![
        user(s, entry_id(1), None, "\n  first words \nmore"),
        reply(s, 2, &["c1", odd]),
        result(s, 3, "c1", ToolOutcome::Ok),
        result(s, 4, odd, ToolOutcome::TimedOut),
        user(s, entry_id(5), Some(entry_id(4)), "second"),
    ];
    store.entries().append(Append::new(s, "main").entries(entries)).wait().unwrap();
    store.heads().set(s, "branch-2", Some(entry_id(4)), None).wait().unwrap();
    let more = vec![user(s, entry_id(6), Some(entry_id(4)), "instead")];
    store.entries().append(Append::new(s, "branch-2").entries(more)).wait().unwrap();
    for (call, paths) in [("c1", &["a", "b"][..]), (odd, &["b"])] {
        let files = paths.iter().map(|p| StepFile::new(*p, ChangeKind::Added));
        let row = StepRow {
            began: None,
            id: 0,
            of: StepOf::Call(call.into()),
            before: Some("s0".into()),
            after: "s1".into(),
            files: files.collect(),
            time: NOW,
        };
        store.steps().add(s, row).wait().unwrap();
    }
    (dir, store, s)
}

#[test]
fn the_index_alone_gives_the_nodes() {
    let (_dir, store, s) = grown();
    store.tags().set(s, "good", Some(entry_id(2)), None).wait().unwrap();
    let tree = store.tree().load(s).unwrap();
    let parents: Vec<_> = tree.nodes.iter().map(|n| n.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1), Some(2), Some(3), Some(3)]);
    let n = &tree.nodes[1];
    assert_eq!((n.kind, n.tokens, n.cost, n.id), (NodeKind::Assistant, 115, Some(Cost(7)), entry_id(2)));
    assert_eq!((tree.agents[usize::from(n.agent)].as_str(), n.model), ("main", Some(0)));
    assert_eq!((tree.models.as_slice(), tree.nodes[0].model), (&["a/b".to_owned()][..], None));
    let heads: Vec<_> = tree.heads.iter().map(|h| (h.name.as_str(), h.node, h.current)).collect();
    assert_eq!(heads, [("branch-2", Some(5), true), ("main", Some(4), false)]);
    assert_eq!(tree.tags, [TreeTag { name: "good".into(), node: 1 }]);
    let plan: String = store
        .read(|conn| {
            let explain = format!("EXPLAIN QUERY PLAN {NODES}");
            Ok(conn.query_row(&explain, [s.0], |r| r.get(3))?)
        })
        .unwrap();
    assert!(plan.contains("COVERING INDEX entries_session"), "{plan}");
    assert!(matches!(store.tree().load(crate::testing::session_id(9)), Err(StoreError::NoSession(_))));
}

#[test]
fn sessions_of_subagents_hang_where_they_began() {
    let (_dir, store, s) = grown();
    let child = NewSession {
        id: crate::testing::session_id(2),
        project: "/work/p".into(),
        title: "look around".into(),
        model: ModelRef("a/b".into()),
        profile: tiller_protocol::Profile::Ask,
        spawned_by: Some(entry_id(3)),
        made_by: crate::MadeBy::Person,
    };
    store.sessions().create(child).wait().unwrap();
    let tree = store.tree().load(s).unwrap();
    assert_eq!(tree.spawned.len(), 1);
    assert_eq!((tree.spawned[0].node, tree.spawned[0].title.as_str()), (2, "look around"));
    let plan: Vec<String> = store
        .read(|conn| {
            let mut statement = conn.prepare("EXPLAIN QUERY PLAN SELECT 1 FROM sessions s JOIN entries e ON e.id = s.spawned_by WHERE e.session = x''")?;
            let rows = statement.query_map([], |r| r.get(3))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .unwrap();
    assert!(!plan.iter().any(|p| p.contains("SCAN e")), "entries are not walked: {plan:?}");
}

#[test]
fn agents_stand_in_the_order_of_their_names_whatever_the_ids_of_their_sessions() {
    let (_dir, store, s) = grown();
    for (name, id) in [("main/a10", 3), ("main/a2", 4), ("main/a1", 5)] {
        let session = crate::testing::session_id(id);
        let child = NewSession {
            id: session,
            project: "/work/p".into(),
            title: name.into(),
            model: ModelRef("a/b".into()),
            profile: tiller_protocol::Profile::Ask,
            spawned_by: Some(entry_id(3)),
            made_by: crate::MadeBy::Person,
        };
        store.sessions().create(child).wait().unwrap();
        let row = crate::AgentRow {
            root: s,
            id: AgentId(name.into()),
            session,
            brief: serde_json::json!({}),
            state: tiller_protocol::AgentState::Done,
            report: None,
            announced: true,
            created: NOW,
        };
        store.agents().put(row).wait().unwrap();
    }
    let tree = store.tree().load(s).unwrap();
    let titles: Vec<&str> = tree.spawned.iter().map(|s| s.title.as_str()).collect();
    assert_eq!(titles, ["main/a1", "main/a2", "main/a10"]);
}

#[test]
fn files_are_counted_by_call_and_by_turn_and_failures_are_known() {
    let (_dir, store, s) = grown();
    let marks = store.tree().marks(s).unwrap();
    assert_eq!(marks.files, [(1, 2), (3, 2), (4, 1)], "the turn changed two files, one of them twice");
    assert_eq!(marks.failed, [4]);
}

/// All files of the turn are counted once, those before the message and those after it.
#[test]
fn a_message_within_a_turn_begins_none() {
    for (origin, files, within) in [
        (Origin::Prompt, &[(1, 2), (3, 2), (4, 2), (6, 2)][..], &[][..]),
        (Origin::Task, &[(1, 2), (3, 2), (4, 2), (6, 2)], &[]),
        (Origin::Steer, &[(1, 3), (3, 2), (6, 2)], &[4]),
        (Origin::Engine, &[(1, 3), (3, 2), (6, 2)], &[4]),
        (Origin::Shell, &[(1, 3), (3, 2), (6, 2)], &[4]),
    ] {
        let (_dir, store) = scratch();
        let s = session(&store, 1);
        let mut second = user(s, entry_id(4), Some(entry_id(3)), "and \"origin\":\"prompt\"");
        let EntryBody::User { origin: of, .. } = &mut second.body else { panic!() };
        *of = origin;
        let entries = vec![
            user(s, entry_id(1), None, "do it"),
            reply(s, 2, &["c1"]),
            result(s, 3, "c1", ToolOutcome::Ok),
            second,
            reply(s, 5, &["c2"]),
            result(s, 6, "c2", ToolOutcome::Ok),
        ];
        store.entries().append(Append::new(s, "main").entries(entries)).wait().unwrap();
        for (call, paths) in [("c1", ["a", "b"]), ("c2", ["b", "c"])] {
            let files = paths.map(|p| StepFile::new(p, ChangeKind::Modified)).to_vec();
            let of = StepOf::Call(call.into());
            let row = StepRow { began: None, id: 0, of, before: None, after: "s1".into(), files, time: NOW };
            store.steps().add(s, row).wait().unwrap();
        }
        let marks = store.tree().marks(s).unwrap();
        assert_eq!((marks.files.as_slice(), marks.within.as_slice()), (files, within), "{origin:?}");
    }
}

#[test]
fn replies_that_were_cut_are_errors_whatever_they_say() {
    let (_dir, store, s) = grown();
    let reasons = [
        StopReason::EndTurn,
        StopReason::Cut("the server closed \"stop\":\"end_turn\"".into()),
        StopReason::Interrupted,
        StopReason::MaxTokens,
        StopReason::Refusal("no ".repeat(1000)),
        StopReason::ToolUse,
    ];
    for (n, why) in reasons.into_iter().enumerate() {
        let mut entry = reply(s, 20 + n as u128, &[]);
        entry.parent = Some(entry_id(5));
        let EntryBody::Assistant { blocks, stop, .. } = &mut entry.body else { panic!() };
        *stop = why;
        let arguments = json!({"stop": "interrupted", "text": "\"stop\":\"interrupted\""});
        let (id, name) = ("c".into(), "t".into());
        *blocks = vec![Block::ToolCall(ToolCall { id, name, arguments, malformed: None, vendor: None })];
        store.entries().append(Append::new(s, format!("h{n}")).entries(vec![entry])).wait().unwrap();
    }
    let marks = store.tree().marks(s).unwrap();
    assert_eq!(marks.failed, [4, 8, 9, 10, 11], "the call that timed out, and four replies");
}

#[test]
fn calls_of_one_id_on_two_branches_are_not_added_up() {
    let (_dir, store, s) = grown();
    let later = tiller_protocol::Time(NOW.millis() + 60_000);
    let mut again = result(s, 7, "c1", ToolOutcome::Ok);
    (again.parent, again.time) = (Some(entry_id(6)), later);
    store.entries().append(Append::new(s, "branch-2").entries(vec![again])).wait().unwrap();
    assert_eq!(store.tree().marks(s).unwrap().files, [(1, 2), (3, 2), (4, 1)], "it changed nothing");
    let files = vec![StepFile::new("z", ChangeKind::Added)];
    let of = StepOf::Call("c1".into());
    let row = StepRow { began: None, id: 0, of, before: None, after: "s2".into(), files, time: later };
    store.steps().add(s, row).wait().unwrap();
    assert_eq!(store.tree().marks(s).unwrap().files, [(1, 2), (3, 2), (4, 1), (6, 1), (7, 1)]);
}

#[test]
fn lines_say_what_rows_show() {
    let (_dir, store, _) = grown();
    let ids: Vec<_> = [1, 2, 4, 9].map(entry_id).into();
    let lines = store.tree().lines(&ids).unwrap();
    assert_eq!(lines.len(), 3, "one is not there");
    assert_eq!((lines[0].text.as_str(), lines[0].origin), ("first words", Some(Origin::Prompt)));
    assert_eq!(lines[1].text, "terminal, terminal");
    assert_eq!(lines[2].text, "all went well");
    let call = lines[2].call.as_ref().unwrap();
    assert_eq!(call.arguments["command"], "run c\"2\\\u{e9}");
    assert_eq!(call.arguments["long"].as_str().unwrap().len(), LINE_LENGTH);
}

/// Long arguments are shortened to this.
const LINE_LENGTH: usize = 400;

#[test]
fn words_are_found_by_number_in_each_session() {
    let (_dir, store, s) = grown();
    let other = session(&store, 2);
    let more = vec![user(other, entry_id(20), None, "second thoughts, and 価格")];
    store.entries().append(Append::new(other, "main").entries(more)).wait().unwrap();
    let found = store.search().find_in_trees("secon", Some("/work/p"), 100).unwrap();
    assert_eq!(found.sessions, [(s, vec![5]), (other, vec![7])]);
    assert!(!found.more && found.behind == 0);
    assert_eq!(store.search().find_in_trees("second -thoughts", None, 100).unwrap().sessions, [(s, vec![5])]);
    assert_eq!(store.search().find_in_trees("second", Some("/elsewhere"), 100).unwrap().sessions, []);
    assert_eq!(
        store.search().find_in_trees("価格", None, 100).unwrap().sessions,
        [(other, vec![7])],
        "read one by one"
    );
    assert_eq!(store.search().find_in_trees(" ", None, 100).unwrap(), TreeFound::default());
}
