//! Shared by the tests of this room.

pub(crate) mod child;
pub(crate) mod fault_tests;
pub(crate) mod index_kill_tests;
pub(crate) mod kill_tests;
pub(crate) mod learning_kills;
pub(crate) mod power_tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_protocol::{
    AgentId, Entry, EntryBody, EntryId, FailureKind, Learning, LearningSource, LearningState, ManualClock,
    Message, ModelRef, Origin, Part, Profile, SeqIds, SessionId, Taint, Time,
};
use uuid::Uuid;

use crate::{Append, NewSession, Options, Store};

/// 2026-11-21T20:00:00Z.
pub(crate) const NOW: Time = Time(1_795_291_200_000);

/// A fixed clock, counted ids, UTC.
pub(crate) fn options() -> Options {
    Options {
        clock: Arc::new(ManualClock::new(NOW)),
        ids: Arc::new(SeqIds::default()),
        zone: Some(jiff::tz::TimeZone::UTC),
        network: |_| None,
        ..Options::default()
    }
}

/// A store in a temporary folder.
pub(crate) fn scratch() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("data/tiller.db"), options()).unwrap();
    (dir, store)
}

/// A learning in use about a command that failed, from the output of a command.
pub(crate) fn learning(subject: &str, error: &str, fix: &str) -> Learning {
    let source = LearningSource {
        session: None,
        entry: None,
        agent: "main".into(),
        branch: "main".into(),
        taint: Taint::ToolOutput,
    };
    let kind = FailureKind {
        tool: "terminal".into(),
        subject: subject.into(),
        error_type: error.into(),
        details: Vec::new(),
    };
    Learning {
        pattern: subject.into(),
        fix: fix.into(),
        state: LearningState::Active,
        ..Learning::proposed(kind, source, NOW)
    }
}

pub(crate) fn session_id(n: u128) -> SessionId {
    SessionId(Uuid::from_u128(0x0190_0000_0000_7000_9000_0000_0000_0000 | n))
}

pub(crate) fn entry_id(n: u128) -> EntryId {
    EntryId(Uuid::from_u128(0x0190_0000_0000_7000_a000_0000_0000_0000 | n))
}

/// Makes session `n` in `/work/p`.
pub(crate) fn session(store: &Store, n: u128) -> SessionId {
    store.sessions().create(new_session(n)).wait().unwrap();
    session_id(n)
}

pub(crate) fn new_session(n: u128) -> NewSession {
    NewSession {
        id: session_id(n),
        project: "/work/p".into(),
        title: format!("session {n}"),
        model: ModelRef("demo/planner".into()),
        profile: Profile::Ask,
        spawned_by: None,
        made_by: crate::MadeBy::Person,
    }
}

pub(crate) fn entry(session: SessionId, id: EntryId, parent: Option<EntryId>, body: EntryBody) -> Entry {
    Entry { id, parent, session, agent: AgentId::main(), time: NOW, body, snapshot: None }
}

pub(crate) fn user(session: SessionId, id: EntryId, parent: Option<EntryId>, text: &str) -> Entry {
    let body = EntryBody::User {
        message: Message::text(text),
        origin: Origin::Prompt,
        content: vec![Part::Text { text: text.into() }],
        taint: None,
        learnings: Vec::new(),
    };
    entry(session, id, parent, body)
}

/// Adds `count` user entries with ids from `first` on to head `main`, below the one before `first`.
pub(crate) fn grow(store: &Store, session: SessionId, first: u128, count: u128) {
    let mut parent = (first > 1).then(|| entry_id(first - 1));
    let mut entries = Vec::new();
    for n in first..first + count {
        entries.push(user(session, entry_id(n), parent, &format!("message {n}")));
        parent = Some(entry_id(n));
    }
    store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
}

/// Polls until `done`, at most 5 seconds.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !done() {
        assert!(Instant::now() < end, "{what} did not come about");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
