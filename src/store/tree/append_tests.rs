use serde_json::json;
use tiller_protocol::command::{CostBy, HistoryScope};
use tiller_protocol::{
    AgentId, AskBody, AskId, Attachment, Cost, Message, ModelRef, QueueId, QueuedState, SendMode, TodoStatus,
    Usage,
};

use super::*;
use crate::CostSum;
use crate::testing::*;

fn todo(id: &str, status: TodoStatus) -> TodoItem {
    TodoItem { id: id.into(), content: format!("do {id}"), status, agent: None }
}

fn queued(n: u128) -> Queued {
    Queued {
        state: QueuedState::Accepted,
        ..Queued::new(
            QueueId(Uuid::from_u128(n)),
            Message {
                text: "see [paste 1]".into(),
                attachments: vec![Attachment::Paste { label: "[paste 1]".into(), text: "é\u{0}".into() }],
                effort: None,
            },
            SendMode::Queue,
        )
    }
}

fn call(model: &str, tier: &str, cost: Option<u64>) -> ModelCall {
    ModelCall {
        agent: AgentId::main(),
        model: ModelRef(model.into()),
        tier: tier.into(),
        time: NOW,
        usage: Usage { input: u64::MAX, output: 2, ..Usage::default() },
        cost: cost.map(Cost),
    }
}

fn audit_row(session: SessionId, what: &str) -> AuditRow {
    AuditRow {
        time: NOW,
        session,
        agent: "main".into(),
        tool: "terminal".into(),
        what: what.into(),
        decision: tiller_protocol::PermissionOutcome::Allowed,
        by: "rule".into(),
        seconds: f64::NAN,
        outcome: tiller_protocol::view::AuditOutcome::None,
    }
}

#[test]
fn everything_of_a_moment_is_added_or_nothing() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let ask = Ask {
        id: AskId(Uuid::from_u128(1)),
        agent: AgentId::main(),
        call: None,
        body: AskBody::NotSaving { why: "x".into() },
    };
    let full = |n: u128, parent: Option<EntryId>| Append {
        expect: Some(parent),
        todos: Some(vec![todo("a", TodoStatus::Pending)]),
        queue: Some(vec![queued(2), queued(1)]),
        asks: Some(vec![ask.clone()]),
        calls: vec![call("a/b", "main", Some(7))],
        audit: vec![audit_row(s, "cargo test")],
        prompt: Some("hello".into()),
        ..Append::new(s, "main").entries(vec![user(s, entry_id(n), parent, "hello")])
    };
    store.entries().append(full(1, None)).wait().unwrap();
    // The second expects an empty head.
    let late = store.entries().append(full(2, None)).wait();
    assert!(matches!(late, Err(StoreError::Conflict(_))), "{late:?}");

    assert_eq!(store.unfinished().queue(s, "main").unwrap(), vec![queued(2), queued(1)]);
    assert_eq!(store.unfinished().asks(s, "main").unwrap(), vec![ask.clone()]);
    assert_eq!(store.todos().list(s, "main").unwrap(), vec![todo("a", TodoStatus::Pending)]);
    assert_eq!(store.audit().list(None, "", 0).unwrap().len(), 1);
    assert_eq!(store.costs().spent_in(s).unwrap(), CostSum { cost: Cost(7), calls: 1, unpriced: 0 });
    assert_eq!(store.prompts().list(s, HistoryScope::All, "", 9).unwrap(), vec!["hello"]);
    assert_eq!(store.sessions().get(s).unwrap().summary.cost, Some(Cost(7)));

    store.entries().append(full(2, Some(entry_id(1)))).wait().unwrap();
    assert_eq!(store.heads().get(s, "main").unwrap(), Some(entry_id(2)));
}

#[test]
fn each_branch_has_the_list_that_it_had_there() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let list = |name: &str| vec![todo(name, TodoStatus::InProgress)];
    let add = |head: &str, n: u128, parent: Option<u128>, todos: Option<Vec<TodoItem>>| {
        let entries = vec![user(s, entry_id(n), parent.map(entry_id), "x")];
        store.entries().append(Append { todos, ..Append::new(s, head).entries(entries) }).wait().unwrap();
    };
    // Before the first message.
    store.todos().set(s, "main", list("zero")).wait().unwrap();
    add("main", 1, None, None);
    add("main", 2, Some(1), Some(list("two")));
    add("main", 3, Some(2), None);
    store.todos().set(s, "main", list("by hand")).wait().unwrap();
    add("main", 4, Some(3), None);
    for (n, name) in [(1, "zero"), (2, "two"), (3, "by hand"), (4, "by hand")] {
        assert_eq!(store.todos().at(entry_id(n)).unwrap(), list(name), "at {n}");
    }
    store.heads().set(s, "b", Some(entry_id(2)), None).wait().unwrap();
    assert_eq!(store.todos().list(s, "b").unwrap(), list("two"));
    store.todos().set(s, "b", list("other")).wait().unwrap();
    add("b", 5, Some(2), None);
    assert_eq!(store.todos().list(s, "b").unwrap(), list("other"));
    assert_eq!(store.todos().at(entry_id(3)).unwrap(), list("by hand"));
    assert_eq!(store.todos().list(s, "main").unwrap(), list("by hand"));
    assert_eq!(store.todos().at(entry_id(99)).unwrap(), vec![]);
}

#[test]
fn costs_are_grouped_and_saturate() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    for call in [
        call("a/b", "main", Some(5)),
        call("a/b", "main", Some(u64::MAX)),
        call("c/d", "fast", None),
        call("c/d", "fast", Some(1)),
    ] {
        store.costs().record(s, call).wait().unwrap();
    }
    let rows = store.costs().by(Some(s), CostBy::Model).unwrap();
    assert_eq!(
        rows.iter().map(|r| (r.key.as_str(), r.calls, r.unpriced)).collect::<Vec<_>>(),
        vec![("a/b", 2, 0), ("c/d", 2, 1)]
    );
    assert_eq!(rows[0].usage.input, (i64::MAX as u64) * 2);
    assert!(rows[0].cost.unwrap() >= Cost(i64::MAX as u64));
    assert_eq!(store.costs().by(None, CostBy::Day).unwrap()[0].key, "2026-11-21");
    assert_eq!(store.costs().by(None, CostBy::Agent).unwrap()[0].key, "main");
    assert_eq!(store.costs().by(Some(session_id(9)), CostBy::Agent).unwrap(), vec![]);
    let fast = store.costs().spent_on("2026-11-21", Some("fast")).unwrap();
    assert_eq!(fast, CostSum { cost: Cost(1), calls: 2, unpriced: 1 });
    assert_eq!(store.costs().spent_on("2026-11-21", None).unwrap().calls, 4);
    assert_eq!(store.costs().spent_on("2026-11-22", None).unwrap(), CostSum::default());
}

#[test]
fn the_audit_is_filtered_and_completed() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    let row = store.audit().record(audit_row(s, "rm -rf 100%_x")).wait().unwrap();
    store.audit().record(audit_row(s, "cargo test")).wait().unwrap();
    store.audit().finish(row, 1.5, "exit 0").wait().unwrap();
    let found = store.audit().list(Some(s), "100%_ rm", 5).unwrap();
    assert_eq!(
        found,
        vec![AuditRow { seconds: 1.5, outcome: "exit 0".into(), ..audit_row(s, "rm -rf 100%_x") }]
    );
    assert_eq!(store.audit().list(None, "cargo rf", 5).unwrap(), vec![]);
    let all = store.audit().list(None, "", 1).unwrap();
    assert_eq!((all.len(), all[0].what.as_str(), all[0].seconds), (1, "cargo test", 0.0));
}

#[test]
fn history_rules_trust_and_facts() {
    let (_dir, store) = scratch();
    let (a, b) = (session(&store, 1), session(&store, 2));
    for (session, text) in [(a, "one"), (b, "two"), (a, "three"), (b, "one"), (b, "  ")] {
        store.prompts().add(session, text).wait().unwrap();
    }
    let history = |scope, filter| store.prompts().list(a, scope, filter, 9).unwrap();
    assert_eq!(history(HistoryScope::All, ""), vec!["one", "three", "two"]);
    assert_eq!(history(HistoryScope::Session, ""), vec!["three", "one"]);
    assert_eq!(history(HistoryScope::Project, "t"), vec!["three", "two"]);
    assert_eq!(history(HistoryScope::Project, "%"), Vec::<String>::new());

    store.rules().add(a, "allow terminal(cargo test*)").wait().unwrap();
    assert_eq!(store.rules().list(a).unwrap(), vec!["allow terminal(cargo test*)"]);
    assert_eq!(store.rules().list(b).unwrap(), Vec::<String>::new());

    let item = |hash: &str| {
        serde_json::from_value::<tiller_protocol::ask::TrustItem>(
            json!({"kind": "hook", "path": "x", "detail": "d", "hash": hash}),
        )
        .unwrap()
    };
    store.trust().set("/work/p", true, vec![item("1")]).wait().unwrap();
    let row = store.trust().get("/work/p").unwrap().unwrap();
    assert!(row.trusted && row.news(&[item("1")]).is_empty());
    assert_eq!(row.news(&[item("1"), item("2")]), vec![&item("2")]);
    assert_eq!(store.trust().list().unwrap(), vec![row]);
    assert!(store.trust().revoke("/work/p").wait().unwrap());
    assert!(!store.trust().revoke("/work/p").wait().unwrap());
    assert_eq!(store.trust().get("/work/p").unwrap(), None);

    store.set_meta("model", Some("x".into())).wait().unwrap();
    assert_eq!(store.meta("model").unwrap().as_deref(), Some("x"));
    store.set_meta("model", None).wait().unwrap();
    assert_eq!(store.meta("model").unwrap(), None);
}
