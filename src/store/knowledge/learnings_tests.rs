use rusqlite::Connection;
use tiller_protocol::{Learning, LearningState, LearningText, PromotionKind, RuleReceipts, Taint, Time};

use crate::Store;
use crate::open::migrate::{self, DatabaseKind};
use crate::testing::{NOW, options, scratch};

fn learning(subject: &str, error: &str, fix: &str) -> Learning {
    let mut learning = crate::testing::learning(subject, error, fix);
    learning.kind.details = vec!["x".into()];
    Learning { pattern: format!("{subject} --all"), tags: vec!["git".into()], ..learning }
}

#[test]
fn a_learning_is_kept_found_by_its_subject_and_counted() {
    let (_dir, store) = scratch();
    let l = store.learnings();
    let (id, new) = l.add(learning("git push", "rejected", "git pull first")).wait().unwrap();
    assert!(new);
    assert_eq!(l.add(learning("git push", "rejected", "git pull first")).wait().unwrap(), (id, false));
    l.add(learning("cargo test", "no such package", "-p store")).wait().unwrap();
    let found = l.about("terminal", &["git push".into(), "ls".into()], true, 9).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0], Learning { id, ..learning("git push", "rejected", "git pull first") });
    l.used(vec![id]).wait().unwrap();
    let used = l.get(id).unwrap();
    assert_eq!((used.times_used, used.last_used_at), (1, Some(NOW)));
    assert_eq!(l.list("PUSH pull", None, 9).unwrap().len(), 1);
    assert_eq!(l.list("", Some(&LearningState::Proposed), 9).unwrap(), []);
    let mut subjects = l.subjects("terminal").unwrap();
    subjects.sort();
    assert_eq!(subjects, ["cargo test", "git push"]);
}

#[test]
fn a_change_can_be_undone_and_done_again() {
    let (_dir, store) = scratch();
    let l = store.learnings();
    let (id, _) = l.add(learning("git push", "rejected", "git pull first")).wait().unwrap();
    l.change(id, Some(LearningState::Retired), None).wait().unwrap();
    assert_eq!(l.about("terminal", &["git push".into()], true, 9).unwrap(), []);
    assert_eq!(l.undo(id).wait().unwrap().state, LearningState::Active);
    assert_eq!(l.undo(id).wait().unwrap().state, LearningState::Retired);
    let text = LearningText { pattern: "push".into(), fix: "pull".into(), context: "shared".into() };
    let edited = l.change(id, None, Some(text)).wait().unwrap();
    assert_eq!((edited.fix.as_str(), edited.context.as_str()), ("pull", "shared"));
    assert_eq!(l.undo(id).wait().unwrap().fix, "git pull first");
    assert!(l.change(99, None, None).wait().is_err());
    assert!(l.undo(99).wait().is_err());
}

#[test]
fn a_change_that_changes_nothing_keeps_what_undo_brings_back() {
    let (_dir, store) = scratch();
    let l = store.learnings();
    let (id, _) = l.add(learning("git push", "rejected", "git pull first")).wait().unwrap();
    l.change(id, Some(LearningState::Active), None).wait().unwrap();
    for _ in 0..2 {
        let retired = l.change(id, Some(LearningState::Retired), None).wait().unwrap();
        assert_eq!(retired.state, LearningState::Retired);
    }
    assert_eq!(l.undo(id).wait().unwrap().state, LearningState::Active);
}

/// A rule that the user writes into a learning in use has power: its text is the user's.
#[test]
fn a_text_that_the_user_changes_is_the_users_where_the_learning_is_in_use() {
    let (_dir, store) = scratch();
    let l = store.learnings();
    for (state, taint) in
        [(LearningState::Active, Taint::Person), (LearningState::Proposed, Taint::ToolOutput)]
    {
        let new = Learning { state, ..learning("git push", "rejected", "git pull first") };
        let (id, _) = l.add(new).wait().unwrap();
        let text = LearningText {
            pattern: "push".into(),
            fix: format!("ask {id} [when: read]"),
            context: String::new(),
        };
        assert_eq!(l.change(id, None, Some(text)).wait().unwrap().source.taint, taint);
    }
}

#[test]
fn receipts_add_up() {
    let (_dir, store) = scratch();
    let one = |shown, followed, violated| RuleReceipts { shown, followed, violated };
    store.receipts().count(vec![("a".into(), one(1, 0, 0)), ("b".into(), one(1, 0, 0))]).wait().unwrap();
    store.receipts().count(vec![("a".into(), one(0, 1, 2))]).wait().unwrap();
    let line = (PromotionKind::Permission, "terminal(git push*)".to_owned());
    let hook = (PromotionKind::Hook, "[[hooks.before-tool-call]]".to_owned());
    store.receipts().promote("b", Some(line.clone())).wait().unwrap();
    store.receipts().promote("c", Some(line.clone())).wait().unwrap();
    store.receipts().promote("c", Some(hook.clone())).wait().unwrap();
    store.receipts().promote("d", Some(hook.clone())).wait().unwrap();
    store.receipts().promote("d", None).wait().unwrap();
    let all = store.receipts().all().unwrap();
    assert_eq!(all["a"], (one(1, 1, 2), None));
    assert_eq!(all["b"], (one(1, 0, 0), Some(line)));
    assert_eq!((all["c"].1.clone(), all["d"].1.clone()), (Some(hook), None));
}

/// Two processes look after the learnings; one of them consolidates a day.
#[test]
fn one_of_two_processes_consolidates() {
    let (dir, one) = scratch();
    let two = Store::open(&dir.path().join("data/tiller.db"), options()).unwrap();
    let due = |s: &Store| s.learnings().consolidation_due(1_000).wait().unwrap();
    assert_eq!([due(&one), due(&two), due(&one)], [true, false, false]);
}

/// Two processes save at once: each learning is there once, and no count is lost.
#[test]
fn two_processes_save_and_count_at_once() {
    let (dir, one) = scratch();
    let two = Store::open(&dir.path().join("data/tiller.db"), options()).unwrap();
    let work = |store: &Store, from: u32| {
        let mut tickets = Vec::new();
        for n in 0..100 {
            let fix = format!("fix {}", if n % 2 == 0 { n } else { n + from });
            tickets.push(store.learnings().add(learning("git push", "rejected", &fix)));
        }
        let ids: Vec<i64> = tickets.into_iter().map(|t| t.wait().unwrap().0).collect();
        store.learnings().used(ids).wait().unwrap();
    };
    std::thread::scope(|s| {
        s.spawn(|| work(&one, 1_000));
        s.spawn(|| work(&two, 2_000));
    });
    let all = one.learnings().list("", None, 1_000).unwrap();
    assert_eq!(all.len(), 150);
    assert_eq!(all.iter().map(|l| l.times_used).sum::<u32>(), 200);
}

/// Version 14 has learnings; older databases have none, and keep what they have.
#[test]
fn a_database_of_version_13_gets_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..13], Time(1)).unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.learnings().list("", None, 9).unwrap(), []);
    assert!(store.learnings().add(learning("git push", "rejected", "pull")).wait().unwrap().1);
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

/// Before version 17 each promotion was a permission rule.
#[test]
fn a_promotion_of_version_15_is_a_permission_rule() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..15], Time(1)).unwrap();
    conn.execute("INSERT INTO rule_receipts(rule, promoted) VALUES('a', 'terminal(git push*)')", []).unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    let made = store.receipts().all().unwrap()["a"].1.clone();
    assert_eq!(made, Some((PromotionKind::Permission, "terminal(git push*)".into())));
}

/// One of a branch that was left may have had other texts, which were judged for another state.
#[test]
fn one_that_was_set_aside_comes_back_with_the_texts_of_now() {
    let (_dir, store) = scratch();
    let mut first = learning("git push", "rejected", "pull first");
    first.context = "[never: terminal \"git push*\"]".into();
    first.state = LearningState::Proposed;
    let id = store.learnings().add(first).wait().unwrap().0;
    store.learnings().follow_branch(vec![id], Vec::new()).wait().unwrap();
    assert_eq!(store.learnings().get(id).unwrap().state, LearningState::Aside);
    let again = learning("git push", "rejected", "pull first");
    assert_eq!(store.learnings().add(again.clone()).wait().unwrap(), (id, true));
    let kept = store.learnings().get(id).unwrap();
    assert_eq!((kept.state, kept.context.as_str(), kept.pattern), (LearningState::Active, "", again.pattern));
}

/// What a plain import brought is the user's once they say that the file is theirs.
#[test]
fn an_import_of_the_users_own_file_takes_over_what_a_plain_import_brought() {
    let (_dir, store) = scratch();
    let l = store.learnings();
    let brought = |own: &Learning| {
        let mut learning = own.clone();
        learning.state = LearningState::Proposed;
        learning.source.agent = crate::IMPORT.into();
        (learning.source.session, learning.source.entry) = (None, None);
        learning.source.taint = Taint::Web;
        (learning.times_used, learning.last_used_at) = (0, None);
        learning
    };
    let mut own = learning("git push", "rejected", "git pull first");
    (own.state, own.times_used) = (LearningState::Active, 7);
    own.source.taint = Taint::Person;
    let mut other = learning("cargo test", "no such package", "-p store");
    other.source.taint = Taint::Person;
    let mut derived = brought(&other);
    derived.kind.subject = "cargo".into();
    assert_eq!(l.add_all(vec![brought(&own), derived]).wait().unwrap(), 2);
    let third = learning("npm ci", "no lock file", "npm install");
    let file = vec![own.clone(), other.clone(), third];
    assert_eq!(l.add_own(file.clone()).wait().unwrap(), (1, 2));
    assert_eq!(l.add_own(file).wait().unwrap(), (0, 0), "once");
    let all = l.list("", None, 9).unwrap();
    assert_eq!(all.len(), 3, "none is there twice");
    for wanted in [own, other] {
        let found = all.iter().find(|l| l.fix == wanted.fix).unwrap();
        assert_eq!(*found, Learning { id: found.id, ..wanted });
    }
}
