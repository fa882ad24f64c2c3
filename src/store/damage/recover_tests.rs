use std::time::{Duration, Instant};

use super::*;
use crate::testing::*;
use crate::{Append, Filter, Store};

/// For S7; the full figures are 500 damages of 5,000 messages (see the ignored test).
const MESSAGES: u128 = 1_000;
const DAMAGES: u64 = 40;

/// A small seeded generator, the same on each machine.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }
}

/// A database with sessions, branches and long messages, cleanly closed.
fn build(path: &Path, messages: u128) {
    let store = Store::open(path, options()).unwrap();
    let (a, b) = (session(&store, 1), session(&store, 2));
    let mut parent = None;
    for chunk in 0..messages / 100 {
        let mut entries = Vec::new();
        for n in 1..=100 {
            let n = chunk * 100 + n;
            // Occasionally an entry that needs overflow pages.
            let text =
                if n % 50 == 0 { "long ".repeat(3_000) } else { format!("message {n} {}", "x".repeat(300)) };
            entries.push(user(a, entry_id(n), parent, &text));
            parent = Some(entry_id(n));
        }
        store.entries().append(Append::new(a, "main").entries(entries)).wait().unwrap();
    }
    store.heads().set(a, "branch", Some(entry_id(10)), None).wait().unwrap();
    store
        .entries()
        .append(Append::new(b, "main").entries(vec![user(b, entry_id(9_000_000), None, "other")]))
        .wait()
        .unwrap();
    store.branches().set_label(a, "branch", "plan b", None).wait().unwrap();
    store.branches().set_archived(a, "branch", true, None).wait().unwrap();
    store.tags().set(a, "good", Some(entry_id(10)), None).wait().unwrap();
    store.todos().set(a, "main", vec![]).wait().unwrap();
    store.set_meta("kept", Some("yes".into())).wait().unwrap();
}

/// Entries whose pages are equal in both files.
fn untouched(before: &[u8], after: &[u8]) -> HashSet<Uuid> {
    let same = |page: usize| {
        let bytes = page * 4096..(page + 1) * 4096;
        before.get(bytes.clone()) == after.get(bytes)
    };
    // A file with blank pages where the bytes differ: what can still be read does not depend on them.
    let mut blank = before.to_vec();
    for page in 0..before.len() / 4096 {
        if !same(page) {
            blank[page * 4096..(page + 1) * 4096].fill(0);
        }
    }
    read_pages(&Pages::new(&blank, &[])).0.into_iter().map(|f| f.raw.id).collect()
}

fn trials(messages: u128, damages: u64) {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole/tiller.db");
    build(&whole, messages);
    let before = std::fs::read(&whole).unwrap();
    let pages = before.len() / 4096;
    let mut found = 0;
    for seed in 1..=damages {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = before.clone();
        let kind = match seed % 4 {
            0 => {
                let start = dice.roll(pages) * 4096;
                let end = (start + 4096 * (1 + dice.roll(8))).min(bytes.len());
                bytes[start..end].fill(0);
                "zeroed pages"
            }
            1 => {
                bytes.truncate(dice.roll(before.len()));
                "truncated"
            }
            _ => {
                for _ in 0..1 + dice.roll(64) {
                    let at = dice.roll(bytes.len());
                    bytes[at] ^= 1 << dice.roll(8);
                }
                "flips"
            }
        };
        let path = dir.path().join(format!("{seed}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        // The stamp of the clean end was copied too; the file's size, time and inode differ now.
        std::fs::copy(folder::beside(&whole, ".clean"), folder::beside(&path, ".clean")).unwrap();
        let must = untouched(&before, &bytes);

        let began = Instant::now();
        let store = match Store::open(&path, options()) {
            // Changes of the version number in the header.
            Err(StoreError::Newer { .. }) => continue,
            other => other.unwrap_or_else(|e| panic!("seed {seed} {kind}: {e}")),
        };
        let took = began.elapsed();
        assert!(took < Duration::from_secs(60), "seed {seed} {kind}: {took:?}");
        found += u32::from(!store.notices().is_empty());
        // Damage of indexes alone is repaired in place.
        let salvaged = store.notices().iter().any(|n| n.message.starts_with("the database was damaged"));
        for id in &must {
            let entry = store.entries().get(tiller_protocol::EntryId(*id));
            assert!(entry.is_ok(), "seed {seed} {kind}: entry {id} was intact and is lost: {entry:?}");
        }
        if salvaged {
            let original = std::fs::read_dir(path.parent().unwrap())
                .unwrap()
                .map(|e| e.unwrap())
                .find(|e| {
                    e.file_name().to_string_lossy().contains(".damaged-")
                        && e.metadata().unwrap().len() == bytes.len() as u64
                })
                .unwrap_or_else(|| panic!("seed {seed} {kind}: the original is gone"));
            assert_eq!(std::fs::read(original.path()).unwrap(), bytes, "seed {seed} {kind}");
            // The result is a valid database that can be written.
            let doctor = store.doctor().unwrap();
            assert_eq!((doctor.problems, doctor.damaged_entries), (vec![], 0), "seed {seed} {kind}");
            for summary in store.sessions().list(&Filter::default()).unwrap() {
                let tail = store.paths().tail(summary.id, "main", 3).unwrap();
                let parent = tail.entries.last().map(|e| e.id);
                let next =
                    user(summary.id, entry_id(8_000_000 + (summary.id.0.as_u128() & 0xff)), parent, "on");
                store.entries().append(Append::new(summary.id, "main").entries(vec![next])).wait().unwrap();
            }
        }
    }
    assert!(
        found * 3 > u32::try_from(damages).unwrap(),
        "only {found} of {damages} damages were found at open"
    );
}

#[test]
fn s7_damage_is_found_kept_aside_and_salvaged() {
    trials(MESSAGES, DAMAGES);
}

#[test]
#[ignore = "the full figures take minutes"]
fn s7_damage_full() {
    trials(5_000, 500);
}

#[test]
fn s7_an_emptied_file_and_a_lost_log_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 100);
    std::fs::write(&path, "").unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert!(store.notices()[0].message.contains("damaged"), "{:?}", store.notices());
    store.mark_notices_shown();
    drop(store);
    assert!(Store::open(&path, options()).unwrap().notices().is_empty(), "told once");

    // Killed, and then the log was lost.
    let killed = dir.path().join("killed/tiller.db");
    let mut child = crate::testing::child::command(&[], "turns 1000", &killed).spawn().unwrap();
    let acks = crate::testing::child::lines(&mut child).filter(|l| l.starts_with("ack")).take(20).count();
    assert_eq!(acks, 20);
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(folder::beside(&killed, "-wal")).unwrap();
    let store = Store::open(&killed, options()).unwrap();
    assert!(store.notices().iter().any(|n| n.message.contains("log is missing")), "{:?}", store.notices());
}

#[test]
fn s7_a_damaged_log_gives_up_what_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let mut child = crate::testing::child::command(&[], "turns 1000", &path).spawn().unwrap();
    let told: Vec<String> =
        crate::testing::child::lines(&mut child).filter(|l| l.starts_with("ack")).take(60).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let log = folder::beside(&path, "-wal");
    let bytes = std::fs::read(&log).unwrap();
    let stored = |log: &[u8]| -> HashSet<Uuid> {
        let file = std::fs::read(&path).unwrap();
        read_pages(&Pages::new(&file, log)).0.into_iter().map(|f| f.raw.id).collect()
    };
    let all = stored(&bytes);
    for line in &told {
        let id = line.strip_prefix("ack ").unwrap().parse().unwrap();
        assert!(all.contains(&id), "{id}");
    }
    // A damaged frame in the middle ends the log for SQLite, but not for the salvage.
    let mut broken = bytes.clone();
    let middle = 32 + (24 + 4096) * (bytes.len() / (24 + 4096) / 2);
    broken[middle..middle + 24 + 4096].fill(0);
    assert!(stored(&broken).len() + 3 >= all.len(), "{} of {}", stored(&broken).len(), all.len());
}

/// Blanks the last page with entries' texts, which no other table needs, and opens the database, which salvages it.
fn salvaged(path: &Path) -> Store {
    let page = {
        let conn = Connection::open(path).unwrap();
        conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let bytes = std::fs::read(path).unwrap();
        let word = b"long long long";
        bytes.windows(word.len()).position(|w| w == word).unwrap() / 4096
    };
    let mut bytes = std::fs::read(path).unwrap();
    bytes[page * 4096..(page + 1) * 4096].fill(0);
    std::fs::write(path, &bytes).unwrap();
    std::fs::write(folder::beside(path, ".suspect"), "").unwrap();
    let store = Store::open(path, options()).unwrap();
    assert!(store.notices()[0].message.contains("damaged"), "{:?}", store.notices());
    store
}

#[test]
fn s7_the_index_of_a_salvaged_database_has_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let store = Store::open(&path, options()).unwrap();
    let say = |store: &Store, s, n: u128, parent, text: &str| {
        let entry = user(s, entry_id(n), parent, text);
        store.entries().append(Append::new(s, "main").entries(vec![entry])).wait().unwrap();
    };
    let found = |store: &Store, text: &str| {
        let query = tiller_protocol::SearchQuery { text: text.into(), limit: 9, ..Default::default() };
        let page = store.search().find(&query, u64::MAX).unwrap();
        page.hits.iter().map(|hit| hit.entry).collect::<Vec<_>>()
    };
    // The rows of the first session are gone, so that a salvage numbers the others anew.
    let (gone, kept) = (session(&store, 1), session(&store, 2));
    say(&store, gone, 1, None, "a word");
    say(&store, kept, 11, None, "a needle");
    store.trash().discard(gone).wait().unwrap();
    assert_eq!(found(&store, "needle"), [entry_id(11)]);
    drop(store);
    Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The number of the schema's format: SQLite reads no table with it.
    bytes[44..48].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(folder::beside(&path, ".suspect"), "").unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert!(!store.notices().is_empty(), "it was salvaged");
    assert_eq!(found(&store, "needle"), [entry_id(11)]);
    say(&store, kept, 12, Some(entry_id(11)), "a later thread");
    assert_eq!(found(&store, "thread")[0], entry_id(12));
}

#[test]
fn s7_names_of_branches_tags_and_what_is_put_away_are_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 100);
    let store = salvaged(&path);
    let branches = store.branches().list(session_id(1)).unwrap();
    assert_eq!((branches[0].label.as_str(), branches[0].archived), ("plan b", true));
    assert_eq!(branches[0].entry, Some(entry_id(10)));
    assert_eq!((branches[1].label.as_str(), branches[1].archived), ("", false));
    assert_eq!(store.tags().list(session_id(1)).unwrap()[0].entry, entry_id(10));
}

#[test]
fn s7_heads_of_an_older_program_are_salvaged() {
    for version in [2, 3] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tiller.db");
        build(&path, 100);
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(&format!(
            "DROP TABLE tags; ALTER TABLE heads DROP COLUMN label; ALTER TABLE heads DROP COLUMN archived;
             DROP INDEX entries_session; CREATE INDEX entries_session ON entries(session, seq);
             PRAGMA user_version={version};"
        ))
        .unwrap();
        if version < 3 {
            conn.execute_batch("DROP TABLE steps").unwrap();
        }
        drop(conn);
        let store = salvaged(&path);
        assert_eq!(
            store.heads().get(session_id(1), "branch").unwrap(),
            Some(entry_id(10)),
            "version {version}"
        );
        assert_eq!(store.branches().list(session_id(1)).unwrap().len(), 2);
    }
}

#[test]
fn a_salvage_cut_short_is_taken_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 100);
    // Complete, but not in place yet.
    std::fs::rename(&path, folder::beside(&path, SALVAGED)).unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.meta("kept").unwrap().as_deref(), Some("yes"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn reading_pages_of_anything_never_panics(file in proptest::collection::vec(0_u8.., 0..9_000), log in proptest::collection::vec(0_u8.., 0..9_000)) {
        let mut file = file;
        if file.len() > 4096 {
            // Often enough a page type that looks like a leaf.
            file[0] = 13;
            file[3] = 0;
        }
        read_pages(&Pages::new(&file, &log));
    }
}

/// Inserts rows into each table of the schema; returns the tables with their numbers of rows.
pub(super) fn fill(path: &Path) -> BTreeMap<String, i64> {
    build(path, 200);
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA foreign_keys=OFF; BEGIN").unwrap();
    let session: Uuid = conn.query_row("SELECT id FROM sessions LIMIT 1", [], |r| r.get(0)).unwrap();
    let entry: Uuid = conn.query_row("SELECT id FROM entries LIMIT 1", [], |r| r.get(0)).unwrap();
    let mut counts = BTreeMap::new();
    for table in crate::damage::tables::copied(&conn).unwrap() {
        let columns: Vec<(String, String)> = conn
            .prepare("SELECT name, type FROM pragma_table_info(?1)")
            .unwrap()
            .query_map([&table], |r| Ok((r.get(0)?, r.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let marks = vec!["?"; columns.len()].join(", ");
        for n in 1..=60_i64 {
            let values = columns.iter().map(|(name, kind)| match (name.as_str(), kind.as_str()) {
                ("session" | "root", _) => rusqlite::types::Value::Blob(session.as_bytes().to_vec()),
                ("entry", _) => rusqlite::types::Value::Blob(entry.as_bytes().to_vec()),
                ("todo", _) => rusqlite::types::Value::Null,
                (_, "BLOB") => rusqlite::types::Value::Blob(Uuid::from_u128(n as u128).as_bytes().to_vec()),
                (_, "INTEGER") => rusqlite::types::Value::Integer(1000 + n),
                (_, "REAL") => rusqlite::types::Value::Real(1.5),
                _ => rusqlite::types::Value::Text(format!("{n} {}", "words ".repeat(40))),
            });
            conn.execute(
                &format!("INSERT INTO {table} VALUES({marks})"),
                rusqlite::params_from_iter(values.collect::<Vec<_>>()),
            )
            .unwrap_or_else(|e| panic!("{table}: {e}"));
        }
        counts.insert(table.clone(), count(&conn, &table));
    }
    for table in ["sessions", "entries"] {
        counts.insert(table.into(), count(&conn, table));
    }
    conn.execute_batch("COMMIT").unwrap();
    counts
}

pub(super) fn count(conn: &Connection, table: &str) -> i64 {
    conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap()
}

/// Tables with fewer rows than before, and the losses that the salvage reports, one on each line.
fn missing(path: &Path, before: &BTreeMap<String, i64>) -> (Vec<String>, String) {
    let store = Store::open(path, options()).unwrap();
    let details = store.notices().iter().filter_map(|n| n.detail.as_deref());
    let told = details.flat_map(|d| d.lines()).map(|line| format!("{line}\n")).collect();
    drop(store);
    let conn = Connection::open(path).unwrap();
    let fewer = before.iter().filter(|(table, had)| count(&conn, table) < **had);
    (fewer.map(|(table, _)| table.clone()).collect(), told)
}

/// S17: every table of the schema is copied, including those that a later version adds.
#[test]
fn s17_every_table_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let before = fill(&path);
    for table in ["workflows", "workflow_steps", "agents", "running"] {
        assert!(before[table] >= 60, "{table}");
    }
    // Damage without loss of rows: an unused page.
    let mut bytes = std::fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    bytes.extend_from_slice(&[0x55; 4096]);
    bytes[28..32].copy_from_slice(&u32::try_from(pages + 1).unwrap().to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let (fewer, told) = missing(&path, &before);
    assert_eq!(fewer, Vec::<String>::new(), "{told}");
    // A salvage without losses: the notice only says why it was done.
    assert!(told.starts_with("SQLite reported: "), "{told}");
}

/// Each `step`th page of a full store is damaged, one at a time; all missing rows are reported.
fn each_page(step: usize) {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.db");
    let before = fill(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let mut lossy = 0;
    for page in (0..bytes.len() / 4096).step_by(step) {
        let path = dir.path().join(format!("{page}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut damaged = bytes.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0);
        std::fs::write(&path, damaged).unwrap();
        let (fewer, told) = missing(&path, &before);
        lossy += usize::from(!fewer.is_empty());
        for table in fewer {
            let named = match table.as_str() {
                "entries" => {
                    told.lines().any(|l| l.ends_with(" entries") || l.ends_with("between saved ones"))
                }
                "sessions" => told.lines().any(|l| l.contains("sessions, of which no entry")),
                table => told.contains(&format!("({table})")) || told.contains("everything but sessions"),
            };
            assert!(named, "page {page}: {table} lost rows without a word: {told}");
        }
    }
    assert!(lossy > 0);
}

/// A session of which only a row that refers to it is left is counted.
#[test]
fn s17_a_session_that_is_lost_whole_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 100);
    let store = Store::open(&path, options()).unwrap();
    let lost = session(&store, 7);
    store.heads().set(lost, "main", None, None).wait().unwrap();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let title = b"session 7";
    let at = bytes.windows(title.len()).position(|w| w == title).unwrap() / 4096 * 4096;
    bytes[at..at + 4096].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let (fewer, told) = missing(&path, &BTreeMap::from([("sessions".to_owned(), 3)]));
    assert_eq!(fewer, ["sessions"]);
    assert!(told.contains("1 sessions, of which no entry was saved"), "{told}");
}

#[test]
fn s17_every_loss_is_named() {
    each_page(7);
}

#[test]
#[ignore = "a minute: every page"]
fn s17_whole_every_loss_of_every_page_is_named() {
    each_page(1);
}

/// A crash between any two steps of putting a salvage in place: the next start still has the log.
#[test]
fn s7_a_crash_while_a_salvage_is_put_in_place_loses_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 100);
    // As after a kill: the last writes are in the log only.
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA wal_autocheckpoint=0; PRAGMA journal_mode=WAL; UPDATE meta SET value = 'from the log' WHERE key = 'kept'")
        .unwrap();
    let (file, log) = (std::fs::read(&path).unwrap(), std::fs::read(folder::beside(&path, "-wal")).unwrap());
    assert!(log.len() > 4096);
    drop(conn);
    let original = folder::beside(&path, ".damaged-1");
    for done in 0..3 {
        for suffix in ["", "-wal", "-shm", ".clean", ".salvaged", ".damaged-1", ".damaged-1-wal"] {
            remove(&folder::beside(&path, suffix)).unwrap();
        }
        std::fs::write(&path, &file).unwrap();
        std::fs::write(folder::beside(&path, "-wal"), &log).unwrap();
        // A complete salvage, which has fewer rows.
        let fresh = folder::beside(&path, SALVAGED);
        let other = dir.path().join(format!("other-{done}.db"));
        build(&other, 100);
        std::fs::copy(&other, &fresh).unwrap();
        if done > 0 {
            std::fs::rename(&path, &original).unwrap();
        }
        if done > 1 {
            std::fs::rename(folder::beside(&path, "-wal"), folder::beside(&original, "-wal")).unwrap();
        }
        let store = Store::open(&path, options()).unwrap();
        let kept = store.meta("kept").unwrap();
        if done == 0 {
            assert_eq!(kept.as_deref(), Some("from the log"));
        } else {
            assert_eq!(kept.as_deref(), Some("yes"), "the salvage, without a foreign log");
            assert_eq!(std::fs::read(folder::beside(&original, "-wal")).unwrap(), log);
        }
    }
}

/// The process that opens it first may not show notices, or may be killed.
#[test]
fn s17_a_loss_is_told_until_somebody_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 200);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 * 4..4096 * 6].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let damaged = |store: &Store| store.notices().iter().filter(|n| n.message.contains("damaged")).count();
    assert_eq!(damaged(&Store::open(&path, options()).unwrap()), 1);
    let second = Store::open(&path, options()).unwrap();
    assert_eq!(damaged(&second), 1);
    second.mark_notices_shown();
    drop(second);
    assert_eq!(damaged(&Store::open(&path, options()).unwrap()), 0);
}

/// A log that exists and cannot be read is reported as a loss.
#[test]
fn s17_a_log_that_cannot_be_read_is_named_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 100);
    std::fs::create_dir(dir.path().join("tiller.db-wal")).unwrap();
    let salvage = salvage(&path, "test", &options()).unwrap();
    assert!(salvage.losses.iter().any(|l| l.contains("all of the log")), "{:?}", salvage.losses);
    assert_eq!(salvage.entries, 101, "what the file holds is saved");
}

/// A bad sector loses its own bytes only.
#[test]
fn s17_what_cannot_be_read_is_named_and_the_rest_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    build(&path, 100);
    let whole = std::fs::read(&path).unwrap();
    let mut losses = Vec::new();
    let bad = |at: u64| (8192..16384).contains(&at);
    let read = |bytes: &mut [u8], at: u64| {
        if bad(at) {
            return Err(std::io::Error::other("bad sector"));
        }
        let at = usize::try_from(at).unwrap();
        bytes.copy_from_slice(&whole[at..at + bytes.len()]);
        Ok(())
    };
    let got = in_pieces(whole.len(), "the file", &mut losses, read).unwrap();
    assert_eq!(losses, ["8192 bytes of the file, the first at 8192, which cannot be read (bad sector)"]);
    let same = |n: usize| got[n * PIECE..(n + 1) * PIECE] == whole[n * PIECE..(n + 1) * PIECE];
    assert!((0..whole.len() / PIECE).all(|n| same(n) != bad((n * PIECE) as u64)));
    let nothing = |_: &mut [u8], _: u64| Err(std::io::Error::other("gone"));
    assert!(in_pieces(9_000, "the log", &mut losses, nothing).is_err());
}
