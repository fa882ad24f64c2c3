//! Damage of indexes: their pages are whole, and do not fit their tables.

use super::tests::{count, fill};
use super::*;
use crate::Store;
use crate::testing::*;

/// The indexes that a statement of the schema made, with their tables.
fn indexes(conn: &Connection) -> Vec<(String, String)> {
    let mut statement = conn
        .prepare("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
        .unwrap();
    let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Changes a row of a table behind the back of one of its indexes.
fn change_behind(path: &Path, index: &str, table: &str) {
    let conn = Connection::open(path).unwrap();
    let schema: (String, i64, String) = conn
        .query_row("SELECT tbl_name, rootpage, sql FROM sqlite_schema WHERE name = ?1", [index], |r| {
            Ok((r.get(0)?, r.get(1)?, r.get(2)?))
        })
        .unwrap();
    let (column, kind): (String, String) = conn
        .query_row(
            "SELECT i.name, t.type FROM pragma_index_info(?1) i, pragma_table_info(?2) t
             WHERE t.name = i.name AND i.seqno = 0",
            [index, table],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .unwrap();
    conn.execute_batch("PRAGMA writable_schema=ON").unwrap();
    conn.execute("DELETE FROM sqlite_schema WHERE name = ?1", [index]).unwrap();
    drop(conn);
    let other = Connection::open(path).unwrap();
    other.execute_batch("PRAGMA foreign_keys=OFF").unwrap();
    let key: String = other
        .query_row(
            "SELECT group_concat('\"' || name || '\"', ', ') FROM pragma_table_info(?1) WHERE pk > 0",
            [table],
            |r| r.get(0),
        )
        .unwrap();
    let value = match kind.as_str() {
        "BLOB" => "randomblob(16)".to_owned(),
        "INTEGER" => format!("{column} + 70000"),
        _ => format!("{column} || 'x'"),
    };
    let changed = other
        .execute(
            &format!(
                "UPDATE {table} SET {column} = {value} WHERE ({key}) IN (SELECT {key} FROM {table} LIMIT 1)"
            ),
            [],
        )
        .unwrap();
    assert_eq!(changed, 1, "{table}");
    other.execute_batch("PRAGMA writable_schema=ON").unwrap();
    other
        .execute(
            "INSERT INTO sqlite_schema(type, name, tbl_name, rootpage, sql) VALUES('index', ?1, ?2, ?3, ?4)",
            params![index, schema.0, schema.1, schema.2],
        )
        .unwrap();
}

fn checked(path: &Path, pragma: &str) -> String {
    let conn = Connection::open(path).unwrap();
    conn.query_row(&format!("PRAGMA {pragma}"), [], |r| r.get(0)).unwrap()
}

/// For each index of the schema: found by the doctor, made again at the next start, told, and nothing lost.
#[test]
fn a_damaged_index_is_found_by_the_doctor_and_made_again_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.db");
    let before = fill(&whole);
    let all = indexes(&Connection::open(&whole).unwrap());
    assert!(all.len() > 15, "{all:?}");
    for (index, table) in all {
        // A partial index may lack the changed row.
        if ["learnings_matchers", "entries_imported", "steps_entry"].contains(&index.as_str()) {
            continue;
        }
        let path = dir.path().join(format!("{index}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::copy(&whole, &path).unwrap();
        change_behind(&path, &index, &table);
        assert_eq!(checked(&path, "quick_check"), "ok", "{index}: the quick check does not find it");
        assert_ne!(checked(&path, "integrity_check"), "ok", "{index}");
        // As after a clean end: nothing is checked.
        std::fs::write(folder::beside(&path, ".clean"), folder::stamp_of(&path)).unwrap();
        let store = Store::open(&path, options()).unwrap();
        assert!(store.notices().is_empty(), "{index}: {:?}", store.notices());
        let found = store.doctor().unwrap().problems;
        assert!(found.iter().any(|p| p.contains(&index)), "{index}: {found:?}");
        drop(store);

        let store = Store::open(&path, options()).unwrap();
        let told = &store.notices()[0];
        assert!(told.message.contains("an index of the database was damaged"), "{index}: {told:?}");
        assert!(told.detail.as_deref().unwrap_or("").contains(&index), "{index}: {told:?}");
        let problems = store.doctor().unwrap().problems;
        assert!(problems.iter().all(|p| p.contains("refers to a missing row")), "{index}: {problems:?}");
        store.mark_notices_shown();
        drop(store);
        assert_eq!(checked(&path, "integrity_check"), "ok", "{index}");
        assert_eq!(count(&Connection::open(&path).unwrap(), &table), before[&table], "{index}");
        let names =
            |end: &str| folder::companions(&path).into_iter().filter(|(_, rest)| rest.contains(end)).count();
        assert_eq!((names(".reindex-"), names(".damaged-")), (1, 0), "{index}");
        assert!(Store::open(&path, options()).unwrap().notices().is_empty(), "{index}: told once");
    }
}

/// Flipped bytes in pages of indexes: among them those that SQLite makes for keys.
#[test]
fn flipped_bytes_in_an_index_lose_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole.db");
    let before = fill(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let wanted = entry_id(7).0.into_bytes();
    // Leaf pages of indexes have type 10.
    let places: Vec<usize> = (0..bytes.len() - 16)
        .filter(|at| bytes[*at..at + 16] == wanted && bytes[at / 4096 * 4096] == 10)
        .collect();
    assert!(places.len() >= 2, "{places:?}");
    for (n, at) in places.into_iter().enumerate() {
        let path = dir.path().join(format!("{n}/tiller.db"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut damaged = bytes.clone();
        damaged[at + 15] ^= 0x40;
        std::fs::write(&path, damaged).unwrap();
        std::fs::write(folder::beside(&path, ".suspect"), "").unwrap();
        let store = Store::open(&path, options()).unwrap();
        assert!(store.notices().iter().any(|t| t.message.contains("damaged")), "{n}: {:?}", store.notices());
        drop(store);
        let conn = Connection::open(&path).unwrap();
        for (table, had) in &before {
            assert_eq!(count(&conn, table), *had, "{n}: {table}");
        }
    }
}

/// An index of a unique column whose table has a value twice cannot be made again: what is readable is salvaged.
#[test]
fn an_index_that_cannot_be_made_again_leads_to_a_salvage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    fill(&path);
    let bytes = std::fs::read(&path).unwrap();
    // The same id in the table, where the index has another: the session follows the id.
    let (one, other) = (entry_id(7).0.into_bytes(), entry_id(8).0.into_bytes());
    let wanted = [one, session_id(1).0.into_bytes()].concat();
    let at = bytes.windows(32).position(|bytes| bytes == wanted).unwrap();
    let mut damaged = bytes;
    damaged[at..at + 16].copy_from_slice(&other);
    std::fs::write(&path, damaged).unwrap();
    std::fs::write(folder::beside(&path, ".suspect"), "").unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert!(
        store.notices().iter().any(|n| n.message.starts_with("the database was damaged")),
        "{:?}",
        store.notices()
    );
    assert_eq!(store.doctor().unwrap().problems, Vec::<String>::new());
}

/// The search index is made of the database: a damaged one is removed.
#[test]
fn a_damaged_search_index_is_found_by_the_doctor_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    let index = folder::search_index(&path);
    let find = |store: &Store| {
        let query = tiller_protocol::SearchQuery { text: "message".into(), limit: 9, ..Default::default() };
        store.search().find(&query, u64::MAX).unwrap().hits.len()
    };
    {
        let store = Store::open(&path, options()).unwrap();
        let s = session(&store, 1);
        grow(&store, s, 1, 50);
        assert_eq!(find(&store), 9);
        assert_eq!(store.doctor().unwrap().search_problems, Vec::<String>::new());
    }
    let conn = Connection::open(&index).unwrap();
    conn.execute_batch("DELETE FROM words_idx; DELETE FROM words_data WHERE id > 10;").unwrap();
    drop(conn);
    let store = Store::open(&path, options()).unwrap();
    let doctor = store.doctor().unwrap();
    assert!(!doctor.search_problems.is_empty() && doctor.problems.is_empty(), "{doctor:?}");
    assert_eq!(find(&store), 9);
    assert_eq!(store.doctor().unwrap().search_problems, Vec::<String>::new());
}
