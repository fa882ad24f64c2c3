use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::open::migrate::DatabaseKind;
use crate::testing::child::{command, lines};
use crate::testing::*;
use crate::{Append, Filter};

fn modes(dir: &Path) -> Vec<(String, u32)> {
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| {
            let e = e.unwrap();
            (e.file_name().into_string().unwrap(), e.metadata().unwrap().permissions().mode() & 0o777)
        })
        .collect();
    all.sort();
    all
}

fn digest(path: &Path) -> blake3::Hash {
    blake3::hash(&std::fs::read(path).unwrap())
}

#[test]
fn x8_files_are_0600_in_a_folder_that_is_0700() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("a/data");
    let path = data.join("tiller.db");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    {
        let store = Store::open(&path, options()).unwrap();
        session(&store, 1);
        let open = modes(&data);
        assert!(open.len() >= 4, "{open:?}");
        assert!(open.iter().all(|(_, mode)| *mode == 0o600), "{open:?}");
    }
    assert!(modes(&data).iter().all(|(_, mode)| *mode == 0o600), "{:?}", modes(&data));
    assert_eq!((mode(&data), mode(&dir.path().join("a"))), (0o700, 0o700));
    // Loose modes are corrected.
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&path, options()).unwrap());
    assert_eq!((mode(&data), mode(&path)), (0o700, 0o600));
}

#[test]
fn it_is_sqlite_s_safest_setting_and_ours() {
    let (_dir, store) = scratch();
    let pragma = |name: &'static str| {
        store
            .write(move |conn| {
                Ok(conn.query_row(&format!("PRAGMA {name}"), [], |r| {
                    Ok(r.get::<_, i64>(0).map_or_else(|_| r.get(0), |n| Ok(n.to_string())))
                })??)
            })
            .wait()
            .unwrap()
    };
    for (name, value) in [
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("foreign_keys", "1"),
        ("mmap_size", "0"),
        ("user_version", &migrate::latest().to_string()),
        ("application_id", "1414286418"),
    ] {
        let found: String = pragma(name);
        assert_eq!(found, value, "{name}");
    }
    assert!(rusqlite::version_number() >= connect::SQLITE_FLOOR);
    let old = connect::check_version(3_051_002);
    assert_eq!(old, Err(StoreError::OldSqlite { found: "3.51.2".into(), floor: "3.51.3".into() }));
    let cache =
        store.read(|conn| Ok(conn.query_row("PRAGMA cache_size", [], |r| r.get::<_, i64>(0))?)).unwrap();
    assert_eq!(cache, -512, "KiB that a reader keeps");
    // Readers cannot write.
    let written = store.read(|conn| Ok(conn.execute("DELETE FROM meta", [])?));
    assert!(matches!(written, Err(StoreError::ReadOnly { .. })), "{written:?}");
}

#[test]
fn s5_a_folder_of_another_user_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data/tiller.db");
    drop(Store::open(&path, options()).unwrap());
    let mine = rustix::process::geteuid().as_raw();
    let error = Store::open(&path, Options { uid: mine + 1, ..options() }).unwrap_err();
    assert!(matches!(&error, StoreError::Foreign { owner, .. } if *owner == mine), "{error:?}");
    let notice = error.notice();
    assert!(notice.message.contains("belongs to another user") && !notice.message.contains('\n'));
    assert!(notice.hints[0].contains("TILLER_HOME"));

    // After consent everything works in memory, and the health says so.
    let store = Store::not_saving(&notice.message, options()).unwrap();
    assert_eq!(*store.health().borrow(), Health::NotSaving(notice.message.clone()));
    let s = session(&store, 1);
    grow(&store, s, 1, 300);
    assert_eq!(store.paths().tail(s, "main", 5).unwrap().earlier, 295);
    assert_eq!(store.sessions().list(&Filter::default()).unwrap().len(), 1);
    assert_eq!(*store.health().borrow(), Health::NotSaving(notice.message));
    // Another one in the same process is separate.
    assert_eq!(
        Store::not_saving("x", options()).unwrap().sessions().list(&Filter::default()).unwrap(),
        vec![]
    );
}

/// A read-only bind mount in a mount namespace of its own: even root cannot write there.
#[test]
fn s5_a_read_only_folder_is_refused_in_one_line_and_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let path = data.join("tiller.db");
    {
        let store = Store::open(&path, options()).unwrap();
        let s = session(&store, 1);
        grow(&store, s, 1, 3);
    }
    let place = data.to_str().unwrap();
    let script = format!(
        "mount --bind '{place}' '{place}' && mount -o remount,bind,ro '{place}' && exec \"$0\" \"$@\""
    );
    let Ok(mut child) = command(&["unshare", "-Urm", "sh", "-c", &script], "open", &path).spawn() else {
        eprintln!("skipped: unshare is not installed");
        return;
    };
    let said: Vec<String> = lines(&mut child).collect();
    let status = child.wait().unwrap();
    if said.is_empty() && !status.success() {
        eprintln!("skipped: no user name spaces here");
        return;
    }
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("cannot be written"), "{said:?}");
}

#[test]
fn s8_a_newer_schema_is_left_alone_and_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    {
        let store = Store::open(&path, options()).unwrap();
        let s = session(&store, 1);
        grow(&store, s, 1, 3);
    }
    let (known, found) = (migrate::latest(), migrate::latest() + 1);
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(&format!("PRAGMA user_version={found}"))
        .unwrap();
    let before = digest(&path);
    let error = Store::open(&path, options()).unwrap_err();
    let real = path.canonicalize().unwrap();
    assert_eq!(error, StoreError::Newer { path: real, found, known });
    assert_eq!(digest(&path), before);
    assert!(error.notice().hints[0].contains("read-only"));

    let store = Store::read_only(&path, options()).unwrap();
    assert_eq!(store.paths().tail(session_id(1), "main", 9).unwrap().entries.len(), 3);
    assert!(!store.health().borrow().ok());
    let written = store.set_meta("x", Some("y".into())).wait();
    assert!(matches!(written, Err(StoreError::ReadOnly { .. })), "{written:?}");
    drop(store);
    assert_eq!(digest(&path), before);
}

#[test]
fn a_reader_sees_what_a_living_writer_adds() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    grow(&store, s, 1, 3);
    let reader = Store::read_only(&store.path(), options()).unwrap();
    assert_eq!(reader.paths().tail(s, "main", 9).unwrap().entries.len(), 3);
    grow(&store, s, 4, 1);
    assert_eq!(reader.paths().tail(s, "main", 9).unwrap().entries.len(), 4);
}

#[test]
fn other_files_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    let before = digest(&path);
    let real = path.canonicalize().unwrap();
    assert_eq!(Store::open(&path, options()).unwrap_err(), StoreError::NotOurs { path: real.clone() });
    assert_eq!(Store::read_only(&path, options()).unwrap_err(), StoreError::NotOurs { path: real });
    assert_eq!(digest(&path), before);
    // A symbolic link in place of the database (planted by another user) is not followed.
    let link = dir.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let error = Store::open(&link, options()).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    // In a folder of the test: opening a database closes its folder to others.
    let folder = dir.path().join("folder.db");
    std::fs::create_dir(&folder).unwrap();
    let folder = Store::open(&folder, options()).unwrap_err();
    assert!(matches!(folder, StoreError::ReadOnly { .. }), "{folder:?}");
}

#[test]
fn network_file_systems_are_refused_or_flagged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let on_nfs = Options { network: |_| folder::name_of_magic(0x6969).map(Into::into), ..options() };
    let error = Store::open(&path, on_nfs.clone()).unwrap_err();
    assert!(matches!(&error, StoreError::Network { kind, .. } if kind == "NFS"), "{error:?}");
    assert!(!path.exists());
    let store = Store::open(&path, Options { network_ok: true, ..on_nfs }).unwrap();
    assert_eq!(store.notices().len(), 1);
    assert_eq!(folder::name_of_magic(0xef53), None, "ext4");
    assert_eq!(folder::network_kind(Path::new("/proc")), None);
}

#[test]
fn an_older_schema_is_backed_up_and_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    {
        let store = Store::open(&path, options()).unwrap();
        let s = session(&store, 1);
        grow(&store, s, 1, 3);
    }
    let conn = Connection::open(&path).unwrap();
    let (now, next) = (migrate::latest(), migrate::latest() + 1);
    let with = |step| [migrate::MIGRATIONS, &[step]].concat();
    let steps = with("CREATE TABLE later(x); INSERT INTO later VALUES(7);");
    let standing = migrate::judge(&conn, &path, next).unwrap();
    assert_eq!(standing, DatabaseKind::Older(now));
    let broken = with("CREATE TABLE later(x); SELECT * FROM nowhere;");
    assert!(migrate::migrate(&conn, Some(&path), standing, &broken, NOW).is_err());
    assert_eq!(migrate::versions(&conn).unwrap().0, now, "all or nothing");
    let old = now;

    let now = tiller_protocol::Time(NOW.0 + 1);
    migrate::migrate(&conn, Some(&path), standing, &steps, now).unwrap();
    assert_eq!(migrate::judge(&conn, &path, next).unwrap(), DatabaseKind::Current);
    assert_eq!(conn.query_row("SELECT x FROM later", [], |r| r.get::<_, i64>(0)).unwrap(), 7);
    let backup = folder::beside(&path, &format!(".v{old}-{}.bak", now.millis()));
    let copy = Connection::open(&backup).unwrap();
    assert_eq!(copy.query_row("SELECT count(*) FROM entries", [], |r| r.get::<_, i64>(0)).unwrap(), 3);
    assert_eq!(std::fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Version 2: queued messages, the running turn and the lease are assigned to the current head.
#[test]
fn version_1_is_brought_to_heads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..1], NOW).unwrap();
    let (s, head) = (session_id(1), "branch-x");
    conn.execute(
        "INSERT INTO sessions(id, project, created, used, used_order, head) VALUES(?1, '/w', 0, 0, 1, ?2)",
        rusqlite::params![s.0, head],
    )
    .unwrap();
    conn.execute("INSERT INTO heads(session, name) VALUES(?1, ?2)", rusqlite::params![s.0, head]).unwrap();
    let queued = tiller_protocol::Queued {
        state: tiller_protocol::QueuedState::Accepted,
        ..tiller_protocol::Queued::new(
            tiller_protocol::QueueId(uuid::Uuid::from_u128(1)),
            tiller_protocol::Message::text("waits"),
            tiller_protocol::SendMode::Queue,
        )
    };
    let body = serde_json::to_string(&queued).unwrap();
    conn.execute("INSERT INTO queue VALUES(?1, 0, ?2)", rusqlite::params![s.0, body]).unwrap();
    conn.execute("INSERT INTO running VALUES(?1, 'main', 'a reply', 7)", [s.0]).unwrap();
    let me = crate::Process::current();
    conn.execute(
        "INSERT INTO leases VALUES(?1, ?2, ?3, ?4, ?5, ?6, 0)",
        rusqlite::params![s.0, s.0, me.pid, me.start, me.boot, me.space],
    )
    .unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.unfinished().queue(s, head).unwrap(), vec![queued]);
    assert_eq!(store.unfinished().interrupted(s, head).unwrap().unwrap().what, "a reply");
    assert!(store.leases().holder(s, head).unwrap().is_some());
    assert_eq!(store.unfinished().queue(s, "main").unwrap(), vec![]);
    assert_eq!(
        (store.unfinished().interrupted(s, "main").unwrap(), store.leases().holder(s, "main").unwrap()),
        (None, None)
    );
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

/// Version 11 has no table of drafts: imported drafts are found among the prompts.
#[test]
fn drafts_of_version_10_join_the_history_of_prompts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..10], NOW).unwrap();
    let s = session_id(1);
    conn.execute(
        "INSERT INTO sessions(id, project, created, used, used_order, head) VALUES(?1, '/w', 0, 0, 1, 'main')",
        [s.0],
    )
    .unwrap();
    let draft =
        r#"{"message": {"text": "half a thou"}, "cursor": 4, "aside": [{"text": "later"}, {"text": " "}]}"#;
    for (project, body) in [("/w", draft), ("/broken", "{"), ("/empty", "{}"), ("/list", r#"{"aside": 3}"#)] {
        conn.execute("INSERT INTO drafts VALUES(?1, ?2, ?3)", rusqlite::params![project, s.0, body]).unwrap();
    }
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    let mut history =
        store.prompts().list(s, tiller_protocol::command::HistoryScope::Session, "", 9).unwrap();
    history.sort();
    assert_eq!(history, ["half a thou", "later"]);
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

/// Version 12 knows the git branch of a session; of older ones none is known.
#[test]
fn the_git_branch_of_a_session_is_kept_and_those_of_version_11_have_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..11], NOW).unwrap();
    let s = session_id(1);
    conn.execute(
        "INSERT INTO sessions(id, project, created, used, used_order, head) VALUES(?1, '/w', 0, 0, 1, 'main')",
        [s.0],
    )
    .unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    let branch = || store.sessions().list(&Filter::default()).unwrap()[0].git_branch.clone();
    assert_eq!(branch(), "");
    store.sessions().set_git_branch(s, "retry-after").wait().unwrap();
    assert_eq!(branch(), "retry-after");
}

#[test]
fn a_second_store_on_the_same_folder_works() {
    let (dir, one) = scratch();
    let two = Store::open(&dir.path().join("data/tiller.db"), options()).unwrap();
    let a = session(&one, 1);
    let b = session(&two, 2);
    grow(&one, a, 1, 2);
    two.entries()
        .append(Append::new(b, "main").entries(vec![user(b, entry_id(50), None, "x")]))
        .wait()
        .unwrap();
    assert_eq!(
        one.sessions().list(&Filter::default()).unwrap(),
        two.sessions().list(&Filter::default()).unwrap()
    );
    assert!(one.notices().is_empty() && two.notices().is_empty());
}

/// Version 13 records changes of memory files; older databases have none.
#[test]
fn changes_of_memory_can_be_recorded_in_a_database_of_version_12() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..12], NOW).unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.memory_changes().of_files(&["/m".into()]).unwrap(), vec![]);
    let change = tiller_protocol::memory::MemoryChange {
        id: 0,
        time: NOW,
        path: "/m".into(),
        removed: None,
        added: Some("x".into()),
        archived: None,
        state: tiller_protocol::memory::ChangeState::Done,
        from: tiller_protocol::Provenance::default(),
        details: tiller_protocol::memory::ChangeDetails::default(),
    };
    store.memory_changes().add(change).wait().unwrap();
    assert_eq!(store.memory_changes().of_files(&["/m".into()]).unwrap().len(), 1);
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

/// A change that was recorded before archiving was has no move.
#[test]
fn changes_of_memory_of_version_17_moved_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..17], NOW).unwrap();
    conn.execute_batch(
        "INSERT INTO memory_changes(time, path, removed, added, state, branch, agent, taint)
         VALUES(1, '/m', NULL, 'x', 'done', '', 'main', 'agent')",
    )
    .unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    let changes = store.memory_changes().of_files(&["/m".into()]).unwrap();
    assert_eq!((changes.len(), changes[0].archived), (1, None));
}

/// Changes of version 23 have no details.
#[test]
fn changes_of_memory_of_version_23_have_no_details() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..23], NOW).unwrap();
    conn.execute_batch(
        "INSERT INTO memory_changes(time, path, removed, added, state, branch, agent, taint)
         VALUES(1, '/m', NULL, 'x', 'done', '', 'main', 'person')",
    )
    .unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    let changes = store.memory_changes().of_files(&["/m".into()]).unwrap();
    assert!(changes.len() == 1 && changes[0].details.is_none(), "{changes:?}");
}

/// Up to version 19 an entry had a row for each time that it vanished.
#[test]
fn removals_that_were_recorded_again_and_again_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let conn = Connection::open(&path).unwrap();
    migrate::migrate(&conn, None, DatabaseKind::Empty, &migrate::MIGRATIONS[..19], NOW).unwrap();
    let row = |removed: &str, added: &str, state: &str| {
        conn.execute_batch(&format!(
            "INSERT INTO memory_changes(time, path, removed, added, state, taint) VALUES(1, '/m', {removed}, {added}, '{state}', 'agent')"
        ))
        .unwrap();
    };
    for _ in 0..3 {
        row("'gone'", "NULL", "declined");
        row("NULL", "'kept'", "declined");
        row("'by tiller'", "NULL", "done");
    }
    row("'gone'", "NULL", "outside");
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    let rows = store.memory_changes().of_files(&["/m".into()]).unwrap();
    let ids: Vec<i64> = rows.iter().map(|c| c.id).collect();
    assert_eq!(ids, [2, 3, 5, 6, 7, 8, 9, 10]);
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}
