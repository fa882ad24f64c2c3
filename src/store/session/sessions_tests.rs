use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::op::OpChange;
use tiller_protocol::{Clock, ManualClock, OpId};

use super::*;
use crate::open::Store;
use crate::testing::*;
use crate::{AcquireMode, Append, Lease, Options, Running};

fn listed(store: &Store, filter: &Filter) -> Vec<u128> {
    store.sessions().list(filter).unwrap().iter().map(|s| s.id.0.as_u128() & 0xffff).collect()
}

fn say(store: &Store, session: SessionId, n: u128, text: &str) {
    let parent = store.heads().get(session, "main").unwrap();
    let entries = vec![user(session, entry_id(n), parent, text)];
    store.entries().append(Append::new(session, "main").entries(entries)).wait().unwrap();
}

#[test]
fn s14_the_list_is_in_the_order_of_acts_however_the_clock_jumps() {
    let clock = Arc::new(ManualClock::new(NOW));
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::open(&dir.path().join("tiller.db"), Options { clock: clock.clone(), ..options() }).unwrap();
    let (a, b, c) = (session(&store, 1), session(&store, 2), session(&store, 3));
    assert_eq!(listed(&store, &Filter::default()), Vec::<u128>::new(), "nothing was said yet");
    const DAY: i64 = 24 * 3600 * 1000;
    say(&store, a, 1, "first");
    clock.jump(Time(NOW.0 - DAY));
    say(&store, b, 2, "second");
    clock.jump(Time(NOW.0 + DAY));
    say(&store, c, 3, "third");
    clock.jump(Time(NOW.0 - 10 * DAY));
    say(&store, a, 4, "fourth");
    assert_eq!(listed(&store, &Filter::default()), vec![1, 3, 2]);
    // Opening, a model's title and archiving do not move a session up.
    store.sessions().set_title(b, "named", false, None).wait().unwrap();
    store.leases().acquire(b, "main", AcquireMode::IfFree).wait().unwrap();
    assert_eq!(listed(&store, &Filter::default()), vec![1, 3, 2]);
    store.sessions().set_title(b, "by hand", true, None).wait().unwrap();
    assert_eq!(listed(&store, &Filter::default()), vec![2, 1, 3]);
    // Entries stay in the order of their links.
    let tail = store.paths().tail(a, "main", 9).unwrap();
    assert_eq!(tail.entries.iter().map(|e| e.id).collect::<Vec<_>>(), vec![entry_id(1), entry_id(4)]);
}

/// A thousand jumps of the clock of up to a day, in both directions: lists, paths, searches and exports follow the
/// order of actions; nothing is counted twice, and nothing is removed too early.
#[test]
fn s14_a_thousand_jumps_of_the_clock_change_no_order() {
    const DAY: i64 = 24 * 3600 * 1000;
    let clock = Arc::new(ManualClock::new(NOW));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let store = Store::open(&path, Options { clock: clock.clone(), ..options() }).unwrap();
    let sessions: Vec<_> = (1..=3).map(|n| session(&store, n)).collect();
    let thrown = session(&store, 4);
    say(&store, thrown, 900_000, "thrown away");
    store.trash().set_trashed(thrown, true).wait().unwrap();
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    let mut order: Vec<u128> = Vec::new();
    for n in 1..=1_000_u128 {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let by = i64::try_from(dice % (2 * DAY as u64)).unwrap() - DAY;
        clock.jump(Time(NOW.0 + by));
        let which = u128::from(dice >> 40) % 3;
        let s = sessions[usize::try_from(which).unwrap()];
        let parent = store.heads().get(s, "main").unwrap();
        let mut entry = user(s, entry_id(n), parent, &format!("word{n} jump"));
        entry.time = clock.now();
        let call = crate::ModelCall {
            agent: tiller_protocol::AgentId::main(),
            model: tiller_protocol::ModelRef("m".into()),
            tier: "main".into(),
            time: clock.now(),
            usage: tiller_protocol::Usage { input: 1, ..Default::default() },
            cost: Some(tiller_protocol::Cost(1)),
        };
        let append = Append { calls: vec![call], ..Append::new(s, "main").entries(vec![entry]) };
        store.entries().append(append).wait().unwrap();
        order.retain(|o| *o != which + 1);
        order.insert(0, which + 1);
        if n % 100 == 0 {
            assert_eq!(listed(&store, &Filter::default()), order, "after {n} jumps");
            assert_eq!(
                store.trash().sweep().wait().unwrap(),
                crate::RemovedSessions::default(),
                "nothing is 30 days old"
            );
        }
    }
    let mut all = 0;
    for s in &sessions {
        let tail = store.paths().tail(*s, "main", 2_000).unwrap().entries;
        assert!(tail.windows(2).all(|w| w[0].id < w[1].id), "a path is in the order of its links");
        all += tail.len();
    }
    assert_eq!(all, 1_000);
    let order = tiller_protocol::SearchOrder::Newest;
    let query =
        tiller_protocol::SearchQuery { text: "jump".into(), order, limit: 1_000, ..Default::default() };
    let hits = store.search().find(&query, u64::MAX).unwrap().hits;
    assert!(hits.len() == 1_000 && hits.windows(2).all(|w| w[0].entry > w[1].entry), "newest first, by acts");
    let days = store.costs().by(None, tiller_protocol::command::CostBy::Day).unwrap();
    assert_eq!(days.iter().map(|d| d.calls).sum::<u64>(), 1_000, "each call is of one day");
    let mut out = Vec::new();
    store.transfer().export(sessions[0], &mut out).unwrap();
    let other = Store::not_saving("test", options()).unwrap();
    other.transfer().import(&mut &out[..], crate::ImportIds::Keep).wait().unwrap();
    let mut again = Vec::new();
    other.transfer().export(sessions[0], &mut again).unwrap();
    assert!(out == again);
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

#[test]
fn sessions_are_filtered_and_found() {
    let (_dir, store) = scratch();
    let (a, b) = (session(&store, 1), session(&store, 2));
    say(&store, a, 1, "Fix the 100%_parser\nplease");
    say(&store, b, 2, "something else");
    let text = |text: &str| Filter { text: text.into(), ..Filter::default() };
    assert_eq!(listed(&store, &text("parser fix")), vec![1]);
    assert_eq!(listed(&store, &text("100%_")), vec![1]);
    assert_eq!(listed(&store, &text("%")), vec![1]);
    assert_eq!(store.sessions().get(a).unwrap().summary.preview, "Fix the 100%_parser please");
    let elsewhere = Filter { project: Some("/work/q".into()), ..Filter::default() };
    assert_eq!(listed(&store, &elsewhere), Vec::<u128>::new());
    assert_eq!(store.sessions().last("/work/p").unwrap().unwrap().id, b);
    assert_eq!(store.sessions().last("/work/q").unwrap(), None);

    store.sessions().set_archived(b, true, None).wait().unwrap();
    assert_eq!(listed(&store, &Filter::default()), vec![1]);
    assert_eq!(listed(&store, &Filter { archived: true, ..Filter::default() }), vec![2, 1]);
    assert_eq!(store.sessions().last("/work/p").unwrap().unwrap().id, a);

    assert_eq!(store.sessions().find(&a.to_string()).unwrap(), a);
    assert!(matches!(store.sessions().find("0190"), Err(StoreError::Conflict(_))));
    assert!(matches!(store.sessions().find("ffff"), Err(StoreError::NotFound(_))));
    assert!(matches!(store.sessions().find("%"), Err(StoreError::NotFound(_))));
    assert!(matches!(store.sessions().find(""), Err(StoreError::NotFound(_))));
    assert_eq!(store.sessions().get(session_id(9)), Err(StoreError::NoSession(session_id(9))));
}

#[test]
fn settings_and_operations_are_kept_and_reversed() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    store.sessions().set_model(s, &ModelRef("x/y".into())).wait().unwrap();
    store.sessions().set_profile(s, Profile::Full).wait().unwrap();
    store.sessions().set_budget(s, Some(Cost(5))).wait().unwrap();
    let op = |n: u128, change| Op {
        id: OpId(Uuid::from_u128(n)),
        session: s,
        time: NOW,
        parent: None,
        cause: None,
        title: "rename".into(),
        of: None,
        with: None,
        change,
    };
    let rename = op(1, OpChange::Title { before: "session 1".into(), after: "new".into() });
    store.sessions().set_title(s, "new", true, Some(rename.clone())).wait().unwrap();
    let row = store.sessions().get(s).unwrap();
    assert_eq!((row.summary.title.as_str(), row.summary.model.0.as_str()), ("new", "x/y"));
    assert_eq!((row.profile, row.budget, row.head.as_str()), (Profile::Full, Some(Cost(5)), "main"));

    // The caller of an undo need not know the present value, nor the last operation.
    let undo = op(2, OpChange::Title { before: "?".into(), after: "session 1".into() });
    store.sessions().revert(&rename, undo.clone()).wait().unwrap();
    let before = OpChange::Title { before: "new".into(), after: "session 1".into() };
    let undo = Op { parent: Some(rename.id), change: before, ..undo };
    assert_eq!(store.sessions().get(s).unwrap().summary.title, "session 1");
    assert_eq!(store.sessions().ops(s, 10).unwrap(), vec![undo, rename]);
    let nowhere = store.sessions().set_title(session_id(9), "x", true, None).wait();
    assert_eq!(nowhere, Err(StoreError::NoSession(session_id(9))));
}

#[test]
fn what_was_interrupted_is_known_once_the_holder_is_gone() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    say(&store, s, 1, "go");
    let lease: Lease = store.leases().acquire(s, "main", AcquireMode::IfFree).wait().unwrap();
    let now = Running { agent: "main".into(), what: "the command cargo test".into(), since: NOW };
    let mut append = Append::new(s, "main");
    append.running = Some(Some(now.clone()));
    store.entries().append(append).wait().unwrap();
    let row = store.sessions().get(s).unwrap().summary;
    assert_eq!((row.open_in, row.interrupted), (Some(std::process::id().to_string()), None));
    store.leases().release(lease).wait().unwrap();
    let row = store.sessions().get(s).unwrap().summary;
    assert_eq!((row.open_in, row.interrupted.as_deref()), (None, Some("the command cargo test")));
    assert_eq!(store.unfinished().interrupted(s, "main").unwrap(), Some(now));
    store.unfinished().set_running(s, "main", None).wait().unwrap();
    assert_eq!(store.unfinished().interrupted(s, "main").unwrap(), None);
}

#[test]
fn the_trash_keeps_for_thirty_days() {
    let clock = Arc::new(ManualClock::new(NOW));
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::open(&dir.path().join("tiller.db"), Options { clock: clock.clone(), ..options() }).unwrap();
    let (a, b) = (session(&store, 1), session(&store, 2));
    grow(&store, a, 1, 50);
    say(&store, b, 100, "stays");
    store.todos().set(a, "main", vec![]).wait().unwrap();
    store.trash().set_trashed(a, true).wait().unwrap();
    assert_eq!(listed(&store, &Filter::default()), vec![2]);
    assert_eq!(listed(&store, &Filter { trashed: true, ..Filter::default() }), vec![1]);
    clock.advance(Duration::from_secs(29 * 24 * 3600));
    assert_eq!(store.trash().sweep().wait().unwrap(), crate::RemovedSessions::default());
    clock.advance(Duration::from_secs(2 * 24 * 3600));
    assert_eq!(store.trash().sweep().wait().unwrap(), crate::RemovedSessions { sessions: 1, entries: 50 });
    assert_eq!(store.sessions().get(a), Err(StoreError::NoSession(a)));
    assert_eq!(store.paths().tail(b, "main", 9).unwrap().entries.len(), 1);
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

#[test]
fn those_of_agents_go_into_the_trash_with_theirs_and_come_back() {
    let clock = Arc::new(ManualClock::new(NOW));
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::open(&dir.path().join("tiller.db"), Options { clock: clock.clone(), ..options() }).unwrap();
    let main = session(&store, 1);
    grow(&store, main, 1, 3);
    let below = |id: u128, by: u128| {
        let new = crate::NewSession {
            id: session_id(id),
            project: "/work/p".into(),
            title: String::new(),
            model: tiller_protocol::ModelRef("a/b".into()),
            profile: tiller_protocol::Profile::Ask,
            spawned_by: Some(entry_id(by)),
            made_by: crate::MadeBy::Person,
        };
        store.sessions().create(new).wait().unwrap();
        say(&store, session_id(id), id * 100, "acorn");
    };
    below(2, 2);
    below(3, 200);
    let found = || {
        let query =
            tiller_protocol::search::SearchQuery { text: "acorn".into(), limit: 9, ..Default::default() };
        store.search().find(&query, u64::MAX).unwrap().hits.len()
    };
    assert_eq!(found(), 2);
    store.trash().set_trashed(main, true).wait().unwrap();
    assert_eq!(found(), 0, "what was thrown away is not found");
    store.trash().set_trashed(main, false).wait().unwrap();
    assert_eq!(found(), 2);
    store.trash().set_trashed(main, true).wait().unwrap();
    clock.advance(Duration::from_secs(31 * 24 * 3600));
    assert_eq!(store.trash().sweep().wait().unwrap(), crate::RemovedSessions { sessions: 3, entries: 5 });
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

#[test]
fn sessions_of_runs_without_a_screen_are_listed_on_demand_and_can_be_discarded() {
    let (_dir, store) = scratch();
    let (mine, run, none) = (session(&store, 1), session_id(2), session_id(3));
    for (id, made_by) in [(run, MadeBy::Exec), (none, MadeBy::Ephemeral)] {
        let new = NewSession {
            id,
            project: "/work/p".into(),
            title: String::new(),
            model: ModelRef("demo/planner".into()),
            profile: Profile::Ask,
            spawned_by: None,
            made_by,
        };
        store.sessions().create(new).wait().unwrap();
    }
    for id in [mine, run, none] {
        store.sessions().mark_used(id, "words".into()).wait().unwrap();
    }
    let ids = |filter: &Filter| {
        store.sessions().list(filter).unwrap().iter().map(|s| (s.id, s.exec)).collect::<Vec<_>>()
    };
    assert_eq!(ids(&Filter::default()), [(mine, false)]);
    assert_eq!(ids(&Filter { archived: true, ..Filter::default() }), [(mine, false)]);
    assert_eq!(ids(&Filter { exec: true, ..Filter::default() }), [(run, true), (mine, false)]);
    let project = store.sessions().get(run).unwrap().summary.project;
    assert_eq!(store.sessions().last(&project).unwrap().unwrap().id, run);
    let own = || store.sessions().last_own(&project).unwrap().unwrap().id;
    assert_eq!(own(), mine, "a run without a screen does not come between a person and their session");
    store.sessions().set_archived(mine, true, None).wait().unwrap();
    assert_eq!(own(), run, "where there is no other");
    store.sessions().set_archived(mine, false, None).wait().unwrap();
    assert!(store.sessions().adopt(session_id(77)).wait().is_err());
    store.sessions().adopt(run).wait().unwrap();
    assert_eq!(ids(&Filter::default()), [(run, false), (mine, false)]);
    assert_eq!(store.trash().discard(run).wait().unwrap().sessions, 1);
    assert!(store.sessions().get(run).is_err() && store.sessions().get(mine).is_ok());
}

#[test]
fn a_session_of_which_none_is_kept_goes_when_its_process_is_dead() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let path = dir.path().join("data/tiller.db");
    let open = || Store::open(&path, crate::Options { clock: clock.clone(), ..options() }).unwrap();
    let make = |store: &Store, n: u128| {
        let new = NewSession { made_by: MadeBy::Ephemeral, ..crate::testing::new_session(n) };
        store.sessions().create(new).wait().unwrap();
        session_id(n)
    };
    let (one, two) = (open(), open());
    let (held, fresh) = (make(&one, 1), make(&one, 2));
    let lease = one.leases().acquire(held, "main", AcquireMode::IfFree).wait().unwrap();
    assert_eq!(two.trash().discard_ephemeral().wait().unwrap(), [], "one is at work, the other about to be");
    clock.advance(std::time::Duration::from_secs(61));
    assert_eq!(two.trash().discard_ephemeral().wait().unwrap(), [fresh]);
    // As after kill -9: the lease is in the table, and another process took it.
    drop((lease, one));
    let killed = |conn: &rusqlite::Connection| Ok(conn.execute("UPDATE leases SET start = start + 1", [])?);
    assert_eq!(two.write(killed).wait().unwrap(), 1);
    assert_eq!(two.trash().discard_ephemeral().wait().unwrap(), [held]);
    assert!(two.sessions().get(held).is_err());
    assert_eq!(two.doctor().unwrap().problems, Vec::<String>::new());
}
