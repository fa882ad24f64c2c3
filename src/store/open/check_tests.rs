use super::*;
use crate::open::{Store, folder};
use crate::testing::*;

/// Something that an earlier database leaves: its name, and what makes it beside a path.
type Trace = (&'static str, fn(&Path));

/// Everything that only an earlier database leaves beside its place.
fn traces() -> Vec<Trace> {
    fn write(db: &Path, suffix: &str) {
        std::fs::write(folder::beside(db, suffix), "x").unwrap();
    }
    vec![
        ("snapshots", |db| std::fs::create_dir_all(db.with_file_name("snapshots").join("p-1")).unwrap()),
        ("search index", |db| std::fs::write(folder::search_index(db), "x").unwrap()),
        ("backup", |db| write(db, ".v7-12.bak")),
        ("damaged one", |db| write(db, ".damaged-12")),
        ("clean end", |db| write(db, ".clean")),
        ("suspicion", |db| write(db, ".suspect")),
    ]
}

/// What is left of a database: its bytes, `None` if it is gone.
fn remains() -> Vec<(&'static str, Option<Vec<u8>>)> {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("empty.db");
    Connection::open(&other).unwrap().execute_batch("PRAGMA journal_mode=WAL; VACUUM").unwrap();
    vec![
        ("gone", None),
        ("empty", Some(Vec::new())),
        ("a zero", Some(vec![0])),
        ("less than a header", Some(b"SQLite format 3\0\x10\0\x02\x02".to_vec())),
        ("zeros", Some(vec![0; 3 * 4096])),
        ("without tables", Some(std::fs::read(&other).unwrap())),
    ]
}

/// A database of nothing is new only where nothing of an earlier one lies beside it.
#[test]
fn what_is_left_of_a_database_is_not_taken_for_a_new_one() {
    for (what, bytes) in remains() {
        for (trace, leave) in traces() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a data folder/tiller.db");
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            leave(&path);
            if let Some(bytes) = &bytes {
                std::fs::write(&path, bytes).unwrap();
            }
            let store = Store::open(&path, options()).unwrap_or_else(|e| panic!("{what}, {trace}: {e}"));
            let told = store.notices().to_vec();
            let word = if bytes.is_none() { "is missing" } else { "was damaged" };
            assert!(told.iter().any(|n| n.message.contains(word)), "{what}, {trace}: {told:?}");
            let kept = folder::companions(&path).iter().any(|(_, rest)| rest.starts_with(".damaged-1795"));
            assert_eq!(kept, bytes.is_some(), "{what}, {trace}: what was there is kept");
            if trace == "backup" {
                let named = |n: &Notice| n.hints.iter().any(|h| h.contains(".v7-12.bak"));
                assert!(told.iter().any(named), "{what}: {told:?}");
            }
            // It works, and is told once.
            session(&store, 1);
            store.mark_notices_shown();
            drop(store);
            let again = Store::open(&path, options()).unwrap();
            assert!(again.notices().is_empty(), "{what}, {trace}: {:?}", again.notices());
            assert!(again.sessions().get(session_id(1)).is_ok(), "{what}, {trace}");
        }
    }
}

#[test]
fn a_first_start_says_nothing_also_after_a_kill_in_it() {
    for (what, bytes) in remains() {
        if !["gone", "empty", "without tables"].contains(&what) {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiller.db");
        // An empty folder is none of an earlier run.
        std::fs::create_dir(dir.path().join("snapshots")).unwrap();
        if let Some(bytes) = &bytes {
            std::fs::write(&path, bytes).unwrap();
            std::fs::write(folder::beside(&path, "-wal"), "").unwrap();
        }
        let store = Store::open(&path, options()).unwrap();
        assert!(store.notices().is_empty(), "{what}: {:?}", store.notices());
    }
}

/// The log of a database that is gone still has rows.
#[test]
fn the_log_of_a_missing_database_is_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let mut child = crate::testing::child::command(&[], "turns 1000", &path).spawn().unwrap();
    let told: Vec<String> =
        crate::testing::child::lines(&mut child).filter(|l| l.starts_with("ack")).take(20).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(&path).unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert!(store.notices().iter().any(|n| n.message.contains("damaged")), "{:?}", store.notices());
    let id = |line: &String| tiller_protocol::EntryId(line.strip_prefix("ack ").unwrap().parse().unwrap());
    let found = told.iter().filter(|line| store.entries().get(id(line)).is_ok()).count();
    assert!(found > 0, "none of {} entries of the log is there", told.len());
}

/// Backups beside a database.
fn backups(path: &Path) -> Vec<String> {
    let all = folder::companions(path).into_iter().map(|(_, rest)| rest);
    all.filter(|rest| rest.contains(".bak")).collect()
}

#[test]
fn a_migration_that_fails_at_each_start_keeps_one_backup() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    {
        let store = Store::open(&path, options()).unwrap();
        let s = session(&store, 1);
        grow(&store, s, 1, 3);
    }
    let conn = Connection::open(&path).unwrap();
    let now = migrate::latest();
    let broken = [migrate::MIGRATIONS, &["CREATE TABLE later(x); SELECT * FROM nowhere;"]].concat();
    let standing = migrate::judge(&conn, &path, now + 1).unwrap();
    let at = |n: i64| tiller_protocol::Time(NOW.0 + n);
    for start in 0..6 {
        // A kill in the middle of a backup leaves a part of it.
        std::fs::write(folder::beside(&path, &format!(".v{now}-{start}.bak.half")), "part").unwrap();
        assert!(migrate::migrate(&conn, Some(&path), standing, &broken, at(start)).is_err());
        assert_eq!(backups(&path), [format!(".v{now}-{}.bak", at(start).millis())], "start {start}");
    }
    // Those of other versions: the newest are kept. A file of another name is no backup of ours.
    for version in 1..now {
        std::fs::write(folder::beside(&path, &format!(".v{version}-{}.bak", 99 - version)), "old").unwrap();
    }
    std::fs::write(folder::beside(&path, ".mine.bak"), "mine").unwrap();
    assert!(migrate::migrate(&conn, Some(&path), standing, &broken, at(9)).is_err());
    let kept = backups(&path);
    let starts = |start: String| kept.iter().filter(|rest| rest.starts_with(&start)).count();
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert_eq!(
        starts(format!(".v{now}-")) + starts(format!(".v{}-", now - 1)) + starts(format!(".v{}-", now - 2)),
        3
    );
    assert_eq!(starts(".mine".into()), 1);
    assert!(
        migrate::newest_backup(&path).unwrap().ends_with(format!("tiller.db.v{now}-{}.bak", at(9).millis()))
    );
}

/// The check after an unclean end looks at indexes, too; that before a migration and after a sign of damage has no limit.
#[test]
fn each_check_compares_indexes_with_their_tables() {
    for check in [Check::Quick, Check::Full, Check::Everything] {
        let (limit, pragmas) = check.plan();
        assert!(pragmas.contains(&"integrity_check"), "{check:?}");
        assert_eq!(limit.is_none(), check == Check::Everything, "{check:?}");
    }
    for (problem, index) in [
        ("row 5 missing from index entries_parent", true),
        ("wrong # of entries in index sqlite_autoindex_entries_1", true),
        ("row 5 values differ from index entries_parent", true),
        ("non-unique entry in index learnings_text", false),
        ("row not in PRIMARY KEY order for heads", false),
        ("Tree 3 page 3 cell 0: 2nd reference to page 9", false),
        ("NULL value in sessions.title", false),
    ] {
        assert_eq!(of_index(problem), index, "{problem}");
    }
}

/// A database of two tables, each with an index that lacks a row in its middle.
fn with_two_wrong_indexes(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    for table in ["a", "b"] {
        conn.execute_batch(&format!(
            "CREATE TABLE {table}(x, y); CREATE INDEX {table}_x ON {table}(x);
             WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 4000)
             INSERT INTO {table} SELECT v, iif(v = 2000, -1, v) FROM n;"
        ))
        .unwrap();
    }
    conn.execute_batch(
        "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(sql, '(x)', '(y)') WHERE type = 'index'",
    )
    .unwrap();
    drop(conn);
    Connection::open(path).unwrap()
}

/// Ends a check when it asks for the `last` time.
fn ends_at(last: usize, asked: &Arc<std::sync::atomic::AtomicUsize>) -> Late {
    let asked = Arc::clone(asked);
    Box::new(move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 >= last)
}

#[test]
fn what_a_check_found_before_it_was_cut_short_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two.db");
    let mut conn = with_two_wrong_indexes(&path);
    let asked = Arc::default();
    let (all, whole) = problems(&mut conn, &path, "integrity_check", ends_at(usize::MAX, &asked)).unwrap();
    assert!(whole && all.len() == 2 && all.iter().all(|p| of_index(p)), "{all:?}");
    let most = asked.load(std::sync::atomic::Ordering::Relaxed);
    assert!(most > 20, "{most}");
    let mut kept = std::collections::BTreeSet::new();
    for last in 1..=most {
        let (found, whole) =
            problems(&mut conn, &path, "integrity_check", ends_at(last, &Arc::default())).unwrap();
        assert!(!whole && all.starts_with(&found), "{last}: {found:?}");
        kept.insert(found.len());
        // What is found leads to a repair, although the check did not end.
        let again =
            self_check(&mut conn, &path, &["integrity_check"], &mut || ends_at(last, &Arc::default()));
        assert_eq!(again.unwrap(), found, "{last}");
    }
    assert!(kept.contains(&0) && kept.contains(&1), "{kept:?}");
}

#[test]
fn a_check_that_takes_long_is_told_once() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let tell: Arc<dyn Fn(&str) + Send + Sync> =
        Arc::new(move |what| tell.lock().unwrap().push(what.to_owned()));
    let mut quick = tells(None, Duration::MAX, Arc::clone(&tell));
    assert!(!quick() && told.lock().unwrap().is_empty());
    let mut long = tells(None, Duration::ZERO, Arc::clone(&tell));
    assert!(!long() && !long() && !long());
    assert_eq!(told.lock().unwrap().len(), 1);
    let mut limited = tells(Some(Duration::ZERO), Duration::MAX, tell);
    while !limited() {}
}

/// Only a process that is alone checks, so that only such a one may say that it did.
#[test]
fn the_mark_of_a_suspect_database_stays_until_it_was_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let mark = folder::beside(&path, ".suspect");
    let one = Store::open(&path, options()).unwrap();
    one.suspect();
    let other = Store::open(&path, options()).unwrap();
    assert!(mark.exists(), "the other one did not check it");
    drop((one, other));
    drop(Store::open(&path, options()).unwrap());
    assert!(!mark.exists());
}

/// A file without tables that another process has open is one that it is making.
#[test]
fn a_database_that_another_process_makes_is_not_taken_for_a_damaged_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    std::fs::create_dir_all(dir.path().join("snapshots/p-1")).unwrap();
    let (presence, alone) = folder::Presence::take(&path).unwrap();
    assert!(alone);
    presence.share();
    std::fs::write(&path, "").unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert!(store.notices().is_empty(), "{:?}", store.notices());
}

/// The larger copy may have what was lost since.
#[test]
fn a_smaller_backup_does_not_replace_a_larger_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    drop(Store::open(&path, options()).unwrap());
    let conn = Connection::open(&path).unwrap();
    let keep = |n: i64| migrate::backup_before(&conn, &path, "v7", tiller_protocol::Time(n)).unwrap();
    std::fs::write(folder::beside(&path, ".v7-1.bak"), vec![1; 9 << 20]).unwrap();
    std::fs::write(folder::beside(&path, ".v7-2.bak"), vec![1; 8 << 20]).unwrap();
    std::fs::write(folder::beside(&path, ".v7-3.bak"), "small").unwrap();
    for n in 4..7 {
        keep(n);
        assert_eq!(backups(&path), [".v7-1.bak".to_owned(), format!(".v7-{n}.bak")], "{n}");
    }
    std::fs::remove_file(folder::beside(&path, ".v7-1.bak")).unwrap();
    keep(8);
    assert_eq!(backups(&path), [".v7-8.bak"], "one of the same size is replaced");
}
