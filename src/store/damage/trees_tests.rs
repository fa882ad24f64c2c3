//! All rows whose pages are whole are recovered, whatever else is damaged.

use std::collections::BTreeSet;

use super::tests::{Dice, count, fill};
use super::*;
use crate::Store;
use crate::damage::pages::page_size;
use crate::damage::tables::copy_table;
use crate::damage::trees::{CopiedTable, Trees};
use crate::testing::*;

/// A page of a database: the table or index that it belongs to, its type and its number of rows.
#[derive(Clone, Debug)]
struct PageOf {
    of: String,
    kind: String,
    rows: i64,
    number: usize,
}

/// The pages of a whole database.
fn pages(path: &Path) -> Vec<PageOf> {
    let conn = Connection::open(path).unwrap();
    let mut statement = conn.prepare("SELECT name, pagetype, ncell, pageno FROM dbstat").unwrap();
    let rows = statement
        .query_map([], |r| {
            Ok(PageOf {
                of: r.get(0)?,
                kind: r.get(1)?,
                rows: r.get(2)?,
                number: usize::try_from(r.get::<_, i64>(3)?).unwrap(),
            })
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// Tables that have their rows in all pages of their tree.
fn keyed(path: &Path) -> BTreeSet<String> {
    let conn = Connection::open(path).unwrap();
    let mut statement =
        conn.prepare("SELECT name FROM pragma_table_list WHERE wr AND schema = 'main'").unwrap();
    statement.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The number of rows of a table that a notice tells as lost for this reason.
fn told_of(told: &str, table: &str, why: &str) -> i64 {
    let end = format!("({table}), {why}");
    let lines = told.split("\\n").filter(|line| line.contains(&end));
    lines.filter_map(|line| line.split(' ').next()?.parse::<i64>().ok()).sum()
}

/// What only its own tree gives back.
const IN_PLACE: &[&str] = &["asks", "memory_runs", "meta", "pending", "queue", "rules", "running", "trust"];

#[test]
fn rows_whose_pages_are_whole_are_recovered() {
    damages(24);
}

#[test]
#[ignore = "the full figures take minutes"]
fn rows_whose_pages_are_whole_are_recovered_from_600_damages() {
    damages(600);
}

fn damages(trials: u64) {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.db");
    let before = fill(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let (all, keyed) = (pages(&whole), keyed(&whole));
    let last = bytes.len() / 4096;
    assert_eq!(page_size(&bytes, &[]), 4096);
    let mut below_damage = 0;
    for seed in 1..=trials {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut damaged = bytes.clone();
        let blank = |damaged: &mut Vec<u8>, page: usize| {
            damaged[(page - 1) * 4096..page * 4096].iter_mut().for_each(|byte| *byte ^= 0xa5);
        };
        match seed % 8 {
            0 => (0..1 + dice.roll(100)).for_each(|_| damaged[dice.roll(100)] ^= 1 << dice.roll(8)),
            1 => damaged[..100].fill(u8::try_from(seed % 256).unwrap()),
            2 => damaged.truncate((1 + dice.roll(last - 1)) * 4096),
            3 => damaged.truncate(4096 + dice.roll(bytes.len() - 4096)),
            4 => blank(&mut damaged, 2 + dice.roll(last - 1)),
            // The number of pages, or what is said of unused ones.
            5 => {
                let field = [28, 32, 36][dice.roll(3)];
                damaged[field..field + 4].fill_with(|| u8::try_from(dice.roll(256)).unwrap());
            }
            6 => {
                let page = 1 + dice.roll(last - 1);
                damaged[page * 4096..(page + 1) * 4096].fill(0);
            }
            // A page that only leads to others.
            _ => {
                let above: Vec<usize> = all
                    .iter()
                    .filter(|p| p.kind == "internal")
                    .map(|p| p.number)
                    .filter(|n| *n > 1)
                    .collect();
                blank(&mut damaged, above[dice.roll(above.len())]);
            }
        }
        let same = |page: usize| {
            let range = (page - 1) * 4096..page * 4096;
            // Damage of the header is not one of the rows in the first page.
            let from = if page == 1 { 100 } else { 0 };
            damaged.get(range.clone()).map(|part| &part[from..]) == bytes.get(range).map(|part| &part[from..])
        };
        let touched: Vec<&PageOf> = all.iter().filter(|page| !same(page.number)).collect();
        let above: BTreeSet<&str> =
            touched.iter().filter(|p| p.kind == "internal").map(|p| p.of.as_str()).collect();

        let path = dir.path().join(format!("{seed}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &damaged).unwrap();
        std::fs::write(folder::beside(&path, ".suspect"), "").unwrap();
        let store = match Store::open(&path, options()) {
            // The version number in the header.
            Err(StoreError::Newer { .. }) => continue,
            other => other.unwrap_or_else(|e| panic!("seed {seed}: {e}")),
        };
        let told = format!("{:?}", store.notices());
        assert!([0, 5, 6].contains(&(seed % 8)) || told.contains("damaged"), "seed {seed}: {told}");
        drop(store);
        let conn = Connection::open(&path).unwrap();
        for (table, had) in &before {
            let lost: i64 = touched
                .iter()
                .filter(|page| page.of == *table)
                .map(|page| match page.kind.as_str() {
                    "internal" if keyed.contains(table) => page.rows,
                    "internal" => 0,
                    "overflow" => 1,
                    _ => page.rows,
                })
                .sum();
            // Where two trees are cut, a page may be of either.
            if above.contains(table.as_str()) && (above.len() > 1 || IN_PLACE.contains(&table.as_str())) {
                continue;
            }
            below_damage += i64::from(above.contains(table.as_str()));
            let has = count(&conn, table);
            // A head whose entry is lost leads nowhere.
            let lost = lost + told_of(&told, table, "their entries are lost");
            // A session of which nothing is left takes its rows along.
            let gone: i64 = before["sessions"] - count(&conn, "sessions");
            assert!(
                has >= had - lost || gone > 0,
                "seed {seed}: {table} had {had} rows, {lost} in damaged pages, {has} came back: {told}"
            );
        }
    }
    assert!(below_damage > 0, "no page above others was damaged");
}

/// A log that is cut or changed keeps what was committed before that place, also where the header of the file is damaged.
#[test]
fn a_cut_log_loses_only_what_was_committed_behind_the_cut() {
    const FRAME: usize = 24 + 4096;
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.db");
    let before = fill(&whole)["prompts"];
    let conn = Connection::open(&whole).unwrap();
    conn.execute_batch("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0").unwrap();
    for _ in 0..12 {
        conn.execute_batch(
            "INSERT INTO prompts(project, session, time, text)
             SELECT project, session, time, 'later ' || text FROM prompts LIMIT 10",
        )
        .unwrap();
    }
    let read = |suffix| std::fs::read(folder::beside(&whole, suffix)).unwrap();
    let (file, log) = (read(""), read("-wal"));
    let frames = (log.len() - 32) / FRAME;
    // Rows of the commits that end before a byte of the log.
    let rows = |at: usize| {
        let whole = (0..frames).map(|n| 32 + n * FRAME).filter(|from| from + FRAME <= at);
        10 * i64::try_from(whole.filter(|from| log[from + 4..from + 8] != [0; 4]).count()).unwrap()
    };
    assert_eq!(rows(log.len()), 120);
    for seed in 1..=24_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (mut file, mut part) = (file.clone(), log.clone());
        let at = 32 + dice.roll(log.len() - 32);
        match seed % 3 {
            0 => part.truncate(at),
            1 => part[at..].fill(0),
            _ => part[at] ^= 0x10,
        }
        if dice.roll(2) == 0 {
            file[..100].fill(0x5a);
        }
        let path = dir.path().join(format!("{seed}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, file).unwrap();
        std::fs::write(folder::beside(&path, "-wal"), part).unwrap();
        drop(Store::open(&path, options()).unwrap());
        let has = count(&Connection::open(&path).unwrap(), "prompts");
        assert!(has >= before + rows(at), "seed {seed}: {has} of {before} + {}", rows(at));
    }
}

/// Without its schema a database is read by that of a new one. What could be another table gives no rights.
#[test]
fn rights_are_not_read_where_the_schema_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let before = fill(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..4096].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(&path, options()).unwrap();
    let told = format!("{:?}", store.notices());
    drop(store);
    let conn = Connection::open(&path).unwrap();
    for table in ["sessions", "entries", "prompts", "queue", "todo_states"] {
        assert_eq!(count(&conn, table), before[table], "{table}: {told}");
    }
    assert_eq!((count(&conn, "rules"), count(&conn, "trust")), (0, 0), "{told}");
    assert!(told.contains("all of: permissions granted for a session (rules)"), "{told}");
}

/// An old log behind the present one, and what no commit follows, are not the state of the database.
#[test]
fn frames_that_no_commit_follows_are_not_read_as_rows_of_tables() {
    let frame = |page: u32, commit: u32, salt: u64, byte: u8| {
        let mut frame = Vec::new();
        frame.extend_from_slice(&page.to_be_bytes());
        frame.extend_from_slice(&commit.to_be_bytes());
        frame.extend_from_slice(&salt.to_be_bytes());
        frame.extend_from_slice(&[0; 8]);
        frame.extend_from_slice(&[byte; 4096]);
        frame
    };
    let mut log = vec![0; 32];
    log[8..12].copy_from_slice(&4096_u32.to_be_bytes());
    log[16..24].copy_from_slice(&7_u64.to_be_bytes());
    for (page, commit, salt, byte) in [(2, 0, 7, 10), (3, 3, 7, 10), (2, 0, 7, 13), (3, 3, 6, 13)] {
        log.extend(frame(page, commit, salt, byte));
    }
    let file = vec![13; 3 * 4096];
    let kind = |pages: &Pages<'_>, page| pages.rows_of(page, crate::damage::pages::Kind::Table).is_some();
    let committed = Pages::committed(&file, &log);
    assert!(!kind(&committed, 2) && !kind(&committed, 3));
    assert_eq!(page_size(&file, &log), 4096);
}

/// A row of a table that gives rights comes back only from its place.
#[test]
fn a_deleted_right_does_not_come_back_from_a_page_that_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    fill(&path);
    let conn = Connection::open(&path).unwrap();
    let had = count(&conn, "rules");
    assert!(had > 20);
    conn.execute_batch("DELETE FROM rules WHERE id % 2 = 0; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let left = count(&conn, "rules");
    drop(conn);
    let root = pages(&path).into_iter().find(|p| p.of == "rules" && p.kind == "internal").unwrap().number;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(root - 1) * 4096..root * 4096].fill(0);
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(folder::beside(&path, ".suspect"), "").unwrap();
    let store = Store::open(&path, options()).unwrap();
    let told = format!("{:?}", store.notices());
    drop(store);
    assert!(count(&Connection::open(&path).unwrap(), "rules") <= left);
    assert!(told.contains("(rules)"), "what was granted is named as lost: {told}");
}

/// Where it is not known which pages are in use, none is taken for one that lost its place: it may have what a person removed.
#[test]
fn removed_rows_do_not_come_back_where_the_list_of_unused_pages_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.db");
    fill(&whole);
    let conn = Connection::open(&whole).unwrap();
    conn.execute_batch("PRAGMA foreign_keys=OFF").unwrap();
    let tables = ["learnings", "prompts", "workflows", "agents", "memory_changes"];
    let mut left = std::collections::BTreeMap::new();
    for table in tables {
        let key: String = conn
            .query_row("SELECT name FROM pragma_table_info(?1) WHERE pk = 1", [table], |r| r.get(0))
            .unwrap();
        let old = format!("SELECT {key} FROM {table} ORDER BY {key} LIMIT 45");
        conn.execute(&format!("DELETE FROM {table} WHERE {key} IN ({old})"), []).unwrap();
        left.insert(table, count(&conn, table));
    }
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(conn);
    let (all, bytes) = (pages(&whole), std::fs::read(&whole).unwrap());
    let roots: Vec<&PageOf> =
        all.iter().filter(|p| p.kind == "internal" && tables.contains(&p.of.as_str())).collect();
    assert!(roots.len() >= 3, "{roots:?}");
    for (n, root) in roots.iter().enumerate() {
        let mut damaged = bytes.clone();
        damaged[(root.number - 1) * 4096..root.number * 4096].fill(0);
        match n % 3 {
            0 => damaged[39] ^= 1,
            1 => damaged[..100].fill(0),
            _ => damaged[28..40].fill(0),
        }
        let path = dir.path().join(format!("{n}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &damaged).unwrap();
        std::fs::write(folder::beside(&path, ".suspect"), "").unwrap();
        let store = Store::open(&path, options()).unwrap();
        let told = format!("{:?}", store.notices());
        drop(store);
        let has = count(&Connection::open(&path).unwrap(), &root.of);
        assert!(has <= left[root.of.as_str()], "{n}: {has} of {root:?}: {told}");
        assert!(told.contains(&format!("({})", root.of)), "{root:?} is named as lost: {told}");
    }
}

/// A row that could be read and is not kept is counted, whichever way it was read; one that is there already is not.
#[test]
fn rows_that_do_not_fit_their_table_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old.db"), dir.path().join("new.db"));
    fill(&old);
    drop(Store::open(&new, options()).unwrap());
    let conn = Connection::open(&new).unwrap();
    conn.execute_batch("PRAGMA foreign_keys=OFF; CREATE UNIQUE INDEX one ON prompts(session)").unwrap();
    let bytes = std::fs::read(&old).unwrap();
    let trees = Trees::read(&bytes, &[], &conn, is_known).unwrap();
    let dropped = Some(CopiedTable { whole: true, skipped: 59 });
    for _ in 0..2 {
        assert_eq!(trees.add_missing(&conn, "prompts").unwrap(), dropped);
        assert_eq!(copy_table(&conn, &Connection::open(&old).unwrap(), "prompts").ok(), dropped);
        assert_eq!(count(&conn, "prompts"), 1);
    }
    let other = dir.path().join("other.db");
    let made = Connection::open(&other).unwrap();
    made.execute_batch(
        "CREATE TABLE prompts(id INTEGER PRIMARY KEY, text TEXT);
         INSERT INTO prompts VALUES(2001, 'no project'), (2002, x'00');",
    )
    .unwrap();
    drop(made);
    let bytes = std::fs::read(&other).unwrap();
    let trees = Trees::read(&bytes, &[], &conn, is_known).unwrap();
    let dropped = Some(CopiedTable { whole: true, skipped: 2 });
    assert_eq!(trees.add_missing(&conn, "prompts").unwrap(), dropped);
}
