//! Every column of every table of a session comes through export and import, or is left out for a reason.

use std::collections::BTreeSet;

use rusqlite::types::Value as Sql;
use tiller_protocol::{AgentState, EntryBody, ModelRef, Profile, StopReason, Usage};

use super::tests::{crew, fill, text_of};
use super::*;
use crate::open::Store;
use crate::testing::*;
use crate::{Append, ImportAs, ImportIds, ImportSource, Withheld};

/// Tables that an export does not have, and why.
const NO_TABLES: &[(&str, &str)] = &[
    ("writers", "of processes of this machine"),
    ("leases", "of processes of this machine"),
    ("running", "of processes of this machine"),
    ("memory_runs", "of processes of this machine"),
    ("revisions", "counts of this database"),
    ("meta", "of this installation"),
    ("trust", "of folders of this machine"),
    ("memory_changes", "of memory, which has its own export"),
    ("memory_seen", "of memory files of this machine"),
    ("learnings", "have their own export"),
    ("rule_receipts", "of memory"),
    ("skill_uses", "of skills"),
    ("skill_trials", "of skills"),
];

/// Columns that differ after an import, and why.
const NO_COLUMNS: &[(&str, &str)] = &[
    ("sessions.used_order", "the place in the list of this database"),
    ("sessions.trashed", "an export of what was thrown away brings it back"),
    ("entries.imported", "set by the import"),
    ("entries.sum", "covers the mark of the import"),
    ("queue.imported", "set by the import"),
    ("asks.imported", "set by the import"),
    ("pending.imported", "set by the import"),
    ("queue.place", "ascends"),
    ("asks.place", "ascends"),
    ("pending.place", "ascends"),
];

/// A column with its default.
type Column = (String, Option<String>);

/// The columns that are compared, by table.
fn compared(conn: &Connection) -> Vec<(String, Vec<Column>)> {
    let mut tables = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1")
        .unwrap();
    let names: Vec<String> = tables.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect();
    let columns = |table: &str| {
        let mut columns = conn
            .prepare("SELECT name, dflt_value, pk, type FROM pragma_table_info(?1) ORDER BY cid")
            .unwrap();
        let rows = columns
            .query_map([table], |r| {
                let numbered = r.get::<_, i64>(2)? == 1 && r.get::<_, String>(3)? == "INTEGER";
                Ok((r.get::<_, String>(0)?, r.get(1)?, numbered))
            })
            .unwrap();
        let rows = rows.map(Result::unwrap);
        // Numbers of rows ascend.
        rows.filter(|(_, _, numbered)| !numbered)
            .map(|(name, default, _)| (name, default))
            .collect::<Vec<_>>()
    };
    let kept = |table: &String| !NO_TABLES.iter().any(|(name, _)| name == table);
    names
        .into_iter()
        .filter(kept)
        .map(|table| {
            let mut all = columns(&table);
            all.retain(|(name, _)| !NO_COLUMNS.iter().any(|(left, _)| *left == format!("{table}.{name}")));
            (table, all)
        })
        .collect()
}

/// The compared rows of a database, one text each.
fn rows(conn: &Connection) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (table, columns) in compared(conn) {
        let names: Vec<String> = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let mut statement = conn.prepare(&format!("SELECT {} FROM {table}", names.join(", "))).unwrap();
        let mut all = statement.query([]).unwrap();
        while let Some(row) = all.next().unwrap() {
            let values = names
                .iter()
                .enumerate()
                .map(|(n, name)| format!("{name}={:?}", row.get::<_, Sql>(n).unwrap()));
            found.insert(format!("{table}: {}", values.collect::<Vec<_>>().join(" ")));
        }
    }
    found
}

/// Columns that have nothing but their default in each row: a comparison would not see that they are lost.
fn only_defaults(conn: &Connection) -> Vec<String> {
    let mut found = Vec::new();
    for (table, columns) in compared(conn) {
        for (name, default) in columns {
            let plain = default.unwrap_or_else(|| "NULL".into());
            let set: i64 = conn
                .query_row(
                    &format!(
                        "SELECT count(*) FROM {table} WHERE \"{name}\" IS NOT {plain} AND \"{name}\" <> 0"
                    ),
                    [],
                    |r| r.get(0),
                )
                .unwrap();
            if set == 0 {
                found.push(format!("{table}.{name}"));
            }
        }
    }
    found
}

/// A session and those of its agents, with something in each column.
fn everything(path: &std::path::Path) -> SessionId {
    let shape: Vec<(usize, u8, String)> =
        (0..40).map(|n| (n % 3, u8::try_from(n).unwrap(), format!("text {n}"))).collect();
    let s = {
        let store = Store::open(path, options()).unwrap();
        let s = fill(&store, &shape);
        crew(&store, s, &shape);
        let usage =
            Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 5, estimated: true };
        let model = ModelRef("m/n".into());
        let body = EntryBody::Assistant {
            blocks: vec![],
            stop: StopReason::EndTurn,
            model: model.clone(),
            usage,
            cost: Some(tiller_protocol::Cost(7)),
        };
        let parent = store.paths().tail(s, "side", 1).unwrap().entries.last().map(|e| e.id);
        let mut append = Append::new(s, "side").entries(vec![entry(s, entry_id(900), parent, body)]);
        append.calls = vec![crate::ModelCall {
            agent: tiller_protocol::AgentId("main/a1".into()),
            model,
            tier: "fast".into(),
            time: NOW,
            usage,
            cost: Some(tiller_protocol::Cost(7)),
        }];
        store.entries().append(append).wait().unwrap();
        s
    };
    let conn = Connection::open(path).unwrap();
    let ask = tiller_protocol::Ask {
        id: tiller_protocol::AskId(uuid::Uuid::from_u128(1)),
        agent: tiller_protocol::AgentId::main(),
        call: None,
        body: tiller_protocol::AskBody::NotSaving { why: "x".into() },
    };
    let ask = serde_json::to_string(&ask).unwrap();
    conn.execute("INSERT INTO asks(session, head, place, body) VALUES(?1, 'side', 3, ?2)", params![s.0, ask])
        .unwrap();
    conn.execute(
        "INSERT INTO audit(session, time, agent, tool, what, decision, by_whom, seconds, outcome)
         VALUES(?1, 5, 'main/a1', 'terminal', 'cargo test', ?2, 'rule', 1.5, 'ok')",
        params![s.0, tiller_protocol::PermissionOutcome::Session.audit_word()],
    )
    .unwrap();
    conn.execute(
        "UPDATE sessions SET profile = 'full', budget = 9, archived = 1, head = 'side', cost = 11,
           origin = 'exec', git_branch = 'topic' WHERE id = ?1",
        [s.0],
    )
    .unwrap();
    conn.execute_batch(
        "UPDATE heads SET todo = (SELECT max(id) FROM todo_states) WHERE name = 'side';
         UPDATE todo_states SET entry = (SELECT id FROM entries WHERE session = todo_states.session LIMIT 1);
         UPDATE steps SET began = time + 1;
         UPDATE workflows SET announced = 2 - 1 WHERE id = 'w1';
         UPDATE workflow_steps SET report = '{\"summary\":\"done\"}';",
    )
    .unwrap();
    // A default of 1 is one that a row must not have.
    conn.execute("INSERT INTO workflows SELECT root, 'w2', definition, state, created, 0 FROM workflows", [])
        .unwrap();
    s
}

#[test]
fn every_column_of_a_session_comes_through_export_and_import() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("here/tiller.db");
    let s = everything(&path);
    let here = Connection::open(&path).unwrap();
    let bare = only_defaults(&here);
    // Two flags whose value beside the default is 0.
    let flags = ["workflows.announced"];
    let bare: Vec<&String> = bare.iter().filter(|name| !flags.contains(&name.as_str())).collect();
    assert_eq!(bare, Vec::<&String>::new(), "set them in `everything`, and export them or say why not");
    let text = text_of(&Store::open(&path, options()).unwrap(), s);

    let other = dir.path().join("there/tiller.db");
    let store = Store::open(&other, options()).unwrap();
    let came = store.transfer().import(&mut text.as_bytes(), ImportIds::Keep).wait().unwrap();
    assert_eq!((came.session, came.withheld), (s, Withheld::default()));
    let there = Connection::open(&other).unwrap();
    let (mine, theirs) = (rows(&here), rows(&there));
    let lost: Vec<&String> = mine.difference(&theirs).collect();
    let new: Vec<&String> = theirs.difference(&mine).collect();
    assert!(lost.is_empty() && new.is_empty(), "lost {lost:#?}\nnew {new:#?}");
    assert_eq!(text_of(&store, s), text);
}

/// A file of another takes no rights: what its profile allows beyond `ask`, its rules and its questions are left out and
/// counted, and a profile that restricts stays.
#[test]
fn the_rights_of_a_file_are_taken_only_where_it_is_said_that_it_is_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("here/tiller.db");
    let s = everything(&path);
    let text = text_of(&Store::open(&path, options()).unwrap(), s);
    let quiet = |mut row: crate::AgentRow| {
        (row.brief, row.state) =
            (serde_json::json!({"goal": "clean", "profile": "full"}), AgentState::Interrupted);
        row
    };
    let import = |profile: &str, mine: bool, ids: ImportIds| {
        let store = Store::not_saving("test", options()).unwrap();
        let text = text.replacen("\"profile\":\"full\"", &format!("\"profile\":\"{profile}\""), 1);
        let how = ImportAs { ids, rights: mine, agent: Some(quiet) };
        let came = store.transfer().import_from(ImportSource::Bytes(text.into_bytes()), how).wait().unwrap();
        let row = store.sessions().get(came.session).unwrap();
        let left = store.unfinished().asks(came.session, "side").unwrap().len()
            + store.rules().list(came.session).unwrap().len();
        let agents = store.agents().list(came.session).unwrap();
        assert!(agents.iter().all(|a| a.brief["goal"] == "clean" && a.state == AgentState::Interrupted));
        // What they go on with.
        let most = if mine { "full" } else { "ask" };
        assert!(!agents.is_empty() && agents.iter().all(|a| a.brief["profile"] == most));
        let mut withheld = came.withheld;
        if !mine {
            let named = withheld.profiles.get_mut("full").unwrap();
            *named -= agents.len() as u64;
        }
        (row.profile, left, withheld)
    };
    for ids in [ImportIds::Keep, ImportIds::Fresh] {
        for (named, gets, told) in [
            ("full", Profile::Ask, 1),
            ("auto-edit", Profile::Ask, 1),
            ("everything at once", Profile::Ask, 1),
            ("FULL", Profile::Ask, 1),
            ("ask", Profile::Ask, 0),
            ("plan", Profile::Plan, 0),
            ("read-only", Profile::ReadOnly, 0),
        ] {
            let (profile, left, withheld) = import(named, false, ids);
            assert_eq!((profile, left), (gets, 0), "{named}");
            assert_eq!((withheld.rules, withheld.asks), (1, 1), "{named}");
            assert_eq!(withheld.profiles.get(named).copied().unwrap_or(0), told, "{named}: {withheld:?}");
        }
        let (profile, left, withheld) = import("full", true, ids);
        assert_eq!((profile, left, withheld), (Profile::Full, 2, Withheld::default()));
    }
}

/// A session that is not kept would vanish at the next start.
#[test]
fn an_imported_session_of_a_run_that_keeps_none_is_kept() {
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    grow(&store, s, 1, 2);
    let text = text_of(&store, s).replacen("\"preview\":", "\"origin\":\"ephemeral\",\"preview\":", 1);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiller.db");
    {
        let other = Store::open(&path, options()).unwrap();
        other.transfer().import(&mut text.as_bytes(), ImportIds::Keep).wait().unwrap();
        other.trash().sweep().wait().unwrap();
    }
    let other = Store::open(&path, options()).unwrap();
    assert!(other.sessions().get(s).unwrap().summary.exec);
    assert_eq!(other.paths().tail(s, "main", 9).unwrap().entries.len(), 2);
}

/// The ids come from a first look at a file, the rows from a second one.
#[test]
fn a_file_that_changes_while_it_is_imported_is_refused() {
    use std::io::{Seek, Write};
    let (_dir, store) = scratch();
    let s = session(&store, 1);
    grow(&store, s, 1, 30);
    let text = text_of(&store, s);
    let (_other_dir, other) = scratch();
    // The writer waits for this job, so that the file changes between the two looks.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let busy = other.write(move |_| {
        let _ = wait.lock().map(|wait| wait.recv());
        Ok(())
    });
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut same = file.try_clone().unwrap();
    let ticket = other.transfer().import_from(ImportSource::File(file), ImportIds::Keep);
    same.seek(std::io::SeekFrom::Start(0)).unwrap();
    same.write_all(text.replace("message 7", "message 8").as_bytes()).unwrap();
    go.send(()).unwrap();
    busy.wait().unwrap();
    let error = ticket.wait().unwrap_err();
    assert!(error.to_string().contains("the file changed"), "{error}");
    assert_eq!(other.sessions().get(s), Err(StoreError::NoSession(s)));

    // The same from a file that stays as it is.
    let mut whole = tempfile::tempfile().unwrap();
    whole.write_all(text.as_bytes()).unwrap();
    let came = other.transfer().import_from(ImportSource::File(whole), ImportIds::Keep).wait().unwrap();
    assert_eq!((came.session, came.entries), (s, 30));
    assert_eq!(text_of(&other, s), text);
}
