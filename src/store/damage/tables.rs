//! Copies the tables of a damaged database: all of the schema, as far as SQLite can still read them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use crate::damage::header;
use crate::damage::recover::{Read, is_known, remove};
use crate::damage::trees::{CopiedTable, Trees, is_kept};
use crate::error::{Result, StoreError};
use crate::open::Options;
use crate::open::folder;
use crate::open::migrate::{self, DatabaseKind};

/// Tables that are not copied row by row. All others are, including those of a later version.
const NOT_COPIED: &[&str] = &[
    // Read from the pages themselves, each row verified.
    "sessions",
    "entries",
    // Of ended processes: the caller has exclusive access to the database.
    "writers",
    "leases",
    // Counted anew.
    "revisions",
];

/// What a person loses with rows of a table.
fn meaning(table: &str) -> &str {
    match table {
        "agents" => "the list of agents (agents)",
        "asks" => "open questions (asks)",
        "audit" => "the record of permissions (audit)",
        "calls" => "costs (calls)",
        "heads" => "branches (heads)",
        "memory_changes" => "where entries of memory come from (memory_changes)",
        "memory_runs" => "which calls may have written memory files (memory_runs)",
        "memory_seen" => {
            "entries of memory that were removed outside Tiller since the last look (memory_seen)"
        }
        "learnings" => "learnings from failures (learnings)",
        "meta" => "program metadata (meta)",
        "ops" => "the operations log used by undo (ops)",
        "pending" => "text not yet added to the conversation (pending)",
        "prompts" => "the history of prompts (prompts)",
        "queue" => "queued messages (queue)",
        "rule_receipts" => "counts of rules (rule_receipts)",
        "rules" => "permissions granted for a session (rules)",
        "running" => "running work (running)",
        "skill_trials" => "the results of trials of skills (skill_trials)",
        "skill_uses" => "the counts of uses of skills (skill_uses)",
        "steps" => "the record of changed files (steps)",
        "tags" => "checkpoint names (tags)",
        "todo_states" => "todo lists (todo_states)",
        "trust" => "trusted folders (trust)",
        "workflow_steps" => "results of workflow steps (workflow_steps)",
        "workflows" => "workflows (workflows)",
        other => other,
    }
}

/// Removes and reports heads that point to no entry any more. Other heads are kept; a session without any gets one at
/// its newest entry.
pub(crate) fn put_heads(conn: &Connection, losses: &mut Vec<String>) -> Result<()> {
    // Rows that refer to sessions are removed below.
    let named: Vec<String> = of_sessions(conn)?
        .iter()
        .map(|(table, column)| format!("SELECT \"{column}\" AS id FROM {table}"))
        .collect();
    let lost: i64 = conn.query_row(
        &format!(
            "SELECT count(*) FROM ({}) WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM sessions)",
            named.join(" UNION ")
        ),
        [],
        |r| r.get(0),
    )?;
    if lost > 0 {
        losses.push(format!("{lost} sessions, of which no entry was saved"));
    }
    let mut drop_rows = |table: &str, lost: &str, what: &str| -> Result<()> {
        let rows = conn.execute(&format!("DELETE FROM {table} WHERE {lost}"), [])?;
        if rows > 0 {
            losses.push(format!("{rows} of: {}, {what}", meaning(table)));
        }
        Ok(())
    };
    drop_rows(
        "heads",
        "entry IS NOT NULL AND entry NOT IN (SELECT id FROM entries)",
        "their entries are lost",
    )?;
    drop_rows("tags", "entry NOT IN (SELECT id FROM entries)", "their entries are lost")?;
    for (table, column) in of_sessions(conn)? {
        let lost = format!("\"{column}\" NOT IN (SELECT id FROM sessions)");
        drop_rows(&table, &lost, "their sessions are lost")?;
    }
    let made = conn.execute(
        "INSERT INTO heads(session, name, entry, todo)
           SELECT s.id, s.head, e.id, e.todo FROM sessions s
           JOIN entries e ON e.seq = (SELECT max(seq) FROM entries WHERE session = s.id)
           WHERE NOT EXISTS (SELECT 1 FROM heads h WHERE h.session = s.id AND h.name = s.head)",
        [],
    )?;
    if made > 0 {
        losses.push(format!("the position of {made} sessions: they continue at the newest recovered entry"));
    }
    conn.execute_batch(
        "UPDATE heads SET todo = NULL WHERE todo NOT IN (SELECT id FROM todo_states);
         UPDATE entries SET todo = NULL WHERE todo NOT IN (SELECT id FROM todo_states);",
    )?;
    Ok(())
}

/// Tables that refer to sessions, with the column, by the schema.
fn of_sessions(conn: &Connection) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for table in copied(conn)? {
        let mut statement =
            conn.prepare("SELECT \"from\" FROM pragma_foreign_key_list(?1) WHERE \"table\" = 'sessions'")?;
        let columns =
            statement.query_map([&table], |r| r.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        found.extend(columns.into_iter().map(|column| (table.clone(), column)));
    }
    // It refers to its workflow's session without a foreign key.
    found.push(("workflow_steps".into(), "root".into()));
    Ok(found)
}

/// Copies the rows that SQLite can read, from both ends of each table towards the damage, and those that only its pages still
/// show. Works on a copy with a mended header, so that the original stays unchanged.
pub(crate) fn copy_tables(
    conn: &Connection,
    original: &Path,
    read: &Read<'_>,
    options: &Options,
    losses: &mut Vec<String>,
) -> Result<()> {
    let work = folder::beside(original, ".work");
    let io = |e: std::io::Error| StoreError::from_io(&e, &work);
    // The bytes that were read, not the files: a bad sector would end a copy of them.
    for (suffix, bytes) in [("", read.file), ("-wal", read.log)] {
        let to = folder::beside(&work, suffix);
        remove(&to)?;
        if suffix.is_empty() || !bytes.is_empty() {
            let mut open = fs::OpenOptions::new();
            let mended = if suffix.is_empty() { header::mended(bytes, read.log) } else { Vec::new() };
            let file = open.write(true).create_new(true).mode(0o600).open(&to);
            let bytes = if suffix.is_empty() { &mended } else { bytes };
            file.and_then(|mut file| file.write_all(bytes)).map_err(io)?;
        }
    }
    folder::prepare_file(&work, options.uid)?;
    let damaged = Connection::open(&work)?;
    update(&damaged, options);
    let mut trees = None;
    for table in copied(conn)? {
        let skipped = match copy_table(conn, &damaged, &table) {
            Ok(CopiedTable { whole: true, skipped }) => skipped,
            Err(error) if error.is_trouble() => return Err(error),
            Ok(_) | Err(_) => {
                let known = match trees.take() {
                    Some(known) => known,
                    None => Trees::read(read.file, read.log, conn, is_known)?,
                };
                match trees.insert(known).add_missing(conn, &table)? {
                    Some(CopiedTable { whole: true, skipped }) => skipped,
                    _ => {
                        let any = format!("SELECT EXISTS (SELECT 1 FROM {table})");
                        let any: bool = conn.query_row(&any, [], |r| r.get(0))?;
                        let much = if any { "part" } else { "all" };
                        losses.push(format!("{much} of: {}", meaning(&table)));
                        0
                    }
                }
            }
        };
        if skipped > 0 {
            losses.push(format!("{skipped} of: {}", meaning(&table)));
        }
    }
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let path = folder::beside(&work, suffix);
        remove(&path)?;
    }
    Ok(())
}

/// Migrates the working copy of an older program's database to the present schema, as far as the damage allows.
fn update(damaged: &Connection, options: &Options) {
    let older = match migrate::versions(damaged) {
        Ok((version, _)) if version > 0 && version < migrate::latest() => version,
        _ => return,
    };
    let standing = DatabaseKind::Older(older);
    if let Err(error) = migrate::migrate(damaged, None, standing, migrate::MIGRATIONS, options.clock.now()) {
        tracing::warn!(%error, older, "a damaged database is read as it is");
    }
}

/// The tables that are copied row by row, by the schema of the new database.
pub(crate) fn copied(conn: &Connection) -> Result<Vec<String>> {
    let mut statement = conn
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")?;
    let names = statement.query_map([], |r| r.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(names.into_iter().filter(|name| !NOT_COPIED.contains(&name.as_str())).collect())
}

pub(crate) fn copy_table(conn: &Connection, damaged: &Connection, table: &str) -> Result<CopiedTable> {
    let columns = |conn: &Connection| -> Result<Vec<String>> {
        let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let rows = statement.query_map([table], |r| r.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    // An older program's table lacks the newest columns; they get their defaults.
    let theirs = columns(damaged)?;
    let ours: Vec<String> = columns(conn)?.into_iter().filter(|c| theirs.contains(c)).collect();
    if ours.is_empty() {
        // An older program did not have the table, so there is nothing to copy. Without any tables this cannot be
        // determined.
        let there: i64 = damaged.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
        return Ok(CopiedTable { whole: there > 0, skipped: 0 });
    }
    let key: String = conn.query_row(
        &format!("SELECT group_concat('\"' || name || '\" DIR', ', ') FROM (SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk)"),
        [],
        |r| r.get(0),
    )?;
    let width = ours.len();
    let names = ours.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ");
    let marks = (1..=width).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
    let mut insert = conn.prepare(&format!("INSERT INTO {table}({names}) VALUES({marks})"))?;
    for direction in ["ASC", "DESC"] {
        let mut skipped = 0;
        let mut select = damaged.prepare(&format!(
            "SELECT {names} FROM {table} NOT INDEXED ORDER BY {}",
            key.replace("DIR", direction)
        ))?;
        let mut rows = select.query([])?;
        let whole = loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let values =
                        (0..width).map(|n| row.get::<_, Sql>(n)).collect::<rusqlite::Result<Vec<_>>>();
                    let inserted = values.and_then(|values| insert.execute(params_from_iter(values)));
                    skipped += u64::from(!is_kept(inserted)?);
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if whole {
            return Ok(CopiedTable { whole, skipped });
        }
    }
    Ok(CopiedTable { whole: false, skipped: 0 })
}
