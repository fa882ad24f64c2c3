//! A damaged database: the original is kept aside, everything readable goes into a new one, and what was lost
//! is told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params, params_from_iter};
use tiller_protocol::{EntryBody, Notice, NoticeKind};
use uuid::Uuid;

use crate::connect::{self, Target};
use crate::entries::{self, Raw, read_body};
use crate::error::{Result, StoreError};
use crate::folder;
use crate::migrate::{self, Standing};
use crate::open::Options;
use crate::pages::{Pages, RowOf, Value};

/// Tables that are copied row by row, as far as SQLite can still read them. (Sessions, entries and heads have
/// their own ways.)
const COPIED: &[&str] = &[
    "ops",
    "steps",
    "tags",
    "agents",
    "todo_states",
    "audit",
    "calls",
    "queue",
    "asks",
    "pending",
    "drafts",
    "prompts",
    "trust",
    "rules",
    "meta",
];

/// Behind the name of the database while the new one is made.
const SALVAGED: &str = ".salvaged";

/// What came of a salvage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvage {
    /// The damaged file, as it was.
    pub original: PathBuf,
    /// What SQLite said.
    pub damage: String,
    pub sessions: u64,
    pub entries: u64,
    /// What could not be saved, one line each.
    pub losses: Vec<String>,
}

impl Salvage {
    /// For the person.
    pub fn notice(&self) -> Notice {
        let mut detail = self.losses.clone();
        detail.push(format!("sqlite said: {}", self.damage));
        Notice::new(
            NoticeKind::Store,
            format!(
                "the database was damaged: {} entries of {} sessions were saved, {}",
                self.entries,
                self.sessions,
                match self.losses.len() {
                    0 => "nothing that can be named was lost".into(),
                    1 => self.losses[0].clone(),
                    n => format!("{n} kinds of loss are listed"),
                }
            ),
        )
        .hint(format!("the damaged file is kept as {}", self.original.display()))
        .detail(detail.join("\n"))
    }
}

/// An entry's row as read from a page, with where it stood.
struct Found {
    seq: i64,
    raw: Raw,
    todo: Option<i64>,
}

/// Puts the damaged files aside and makes a new database from what can be read. The caller is alone with it.
pub(crate) fn salvage(path: &Path, damage: &str, options: &Options) -> Result<Salvage> {
    let stamp = options.clock.now().millis();
    let mut original = folder::beside(path, &format!(".damaged-{stamp}"));
    let mut n = 1;
    while original.exists() {
        original = folder::beside(path, &format!(".damaged-{stamp}-{n}"));
        n += 1;
    }
    let io = |e: std::io::Error| StoreError::from_io(&e, path);
    let file = fs::read(path).map_err(io)?;
    let log = fs::read(folder::beside(path, "-wal")).unwrap_or_default();

    // Built beside the damaged one, and put in its place when it is complete: a crash before that starts over.
    let fresh = folder::beside(path, SALVAGED);
    for suffix in ["", "-wal", "-shm"] {
        remove(&folder::beside(&fresh, suffix))?;
    }
    let mut salvage = Salvage {
        original: original.clone(),
        damage: damage.into(),
        sessions: 0,
        entries: 0,
        losses: Vec::new(),
    };
    rebuild(path, &fresh, &Pages::new(&file, &log), options, &mut salvage).map_err(|e| e.at(path))?;
    for suffix in ["-wal", "-shm", ""] {
        let from = folder::beside(path, suffix);
        if from.exists() {
            fs::rename(&from, folder::beside(&original, suffix)).map_err(io)?;
        }
    }
    finish(path)?;
    tracing::warn!(original = %original.display(), damage, entries = salvage.entries, "salvaged a database");
    Ok(salvage)
}

/// Puts a complete salvage in place when a crash came between the two renames.
pub(crate) fn finish(path: &Path) -> Result<()> {
    let fresh = folder::beside(path, SALVAGED);
    if !path.exists() && fresh.exists() {
        fs::rename(&fresh, path).map_err(|e| StoreError::from_io(&e, path))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(StoreError::from_io(&e, path)),
        _ => Ok(()),
    }
}

/// Fills a new database at `fresh`, and closes it with everything in the one file.
fn rebuild(
    damaged: &Path,
    fresh: &Path,
    pages: &Pages<'_>,
    options: &Options,
    salvage: &mut Salvage,
) -> Result<()> {
    folder::prepare_file(fresh, options.uid)?;
    let target = Target::File(fresh.to_owned());
    let conn = connect::probe(&target)?;
    connect::into_writer(&conn, &target)?;
    migrate::migrate(&conn, None, Standing::Empty, migrate::MIGRATIONS, options.clock.now())?;
    conn.execute_batch("PRAGMA foreign_keys=OFF; BEGIN IMMEDIATE")?;
    copy_tables(&conn, damaged, options, &mut salvage.losses)?;
    let (found, sessions) = read_pages(pages);
    salvage.entries = found.len() as u64;
    put_sessions(&conn, &found, sessions, options, &mut salvage.losses)?;
    put_entries(&conn, found, &mut salvage.losses)?;
    put_heads(&conn)?;
    salvage.sessions = entries::uncount(conn.query_row("SELECT count(*) FROM sessions", [], |r| r.get(0))?);
    conn.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

fn uuid(value: &Value) -> Option<Uuid> {
    Uuid::from_slice(value.blob()?).ok()
}

/// Entries (each proved by its checksum) and rows that look like sessions.
fn read_pages(pages: &Pages<'_>) -> (Vec<Found>, HashMap<Uuid, Vec<Value>>) {
    let mut found: HashMap<Uuid, Found> = HashMap::new();
    let mut sessions: HashMap<Uuid, Vec<Value>> = HashMap::new();
    pages.rows(&mut |row: RowOf| {
        if let Some(entry) = as_entry(&row) {
            found.entry(entry.raw.id).or_insert(entry);
        } else if let Some(id) = as_session(&row.1) {
            // Frames come newest first.
            sessions.entry(id).or_insert(row.1);
        }
    });
    let mut found: Vec<Found> = found.into_values().collect();
    found.sort_by_key(|f| f.seq);
    (found, sessions)
}

/// Columns as in `0001_init.sql`; later versions only add behind.
fn as_entry((seq, columns): &RowOf) -> Option<Found> {
    if columns.len() < 20 {
        return None;
    }
    let raw = Raw {
        id: uuid(&columns[1])?,
        session: uuid(&columns[2])?,
        parent: if columns[3] == Value::Null { None } else { Some(uuid(&columns[3])?) },
        agent: columns[5].text()?.into(),
        time: columns[7].int()?,
        payload: columns[8].text()?.into(),
        sum: columns[9].blob()?.to_vec(),
        snapshot: columns[10].text().map(Into::into),
    };
    (raw.sum == raw.checksum()).then(|| Found { seq: *seq, raw, todo: columns[13].int() })
}

fn as_session(columns: &[Value]) -> Option<Uuid> {
    let plausible = (16..20).contains(&columns.len())
        && columns[1].text().is_some_and(|project| project.starts_with('/'))
        && columns[2].text().is_some()
        && columns[3].int().is_some()
        && columns[4].int().is_some()
        && columns[6].text().is_some();
    if plausible { uuid(&columns[0]) } else { None }
}

fn put_sessions(
    conn: &Connection,
    found: &[Found],
    rows: HashMap<Uuid, Vec<Value>>,
    options: &Options,
    losses: &mut Vec<String>,
) -> Result<()> {
    let mut counts: BTreeMap<Uuid, i64> = rows.keys().map(|id| (*id, 0)).collect();
    for entry in found {
        *counts.entry(entry.raw.session).or_default() += 1;
    }
    let mut nameless = 0;
    for (order, (id, count)) in counts.into_iter().enumerate() {
        let row = rows.get(&id);
        nameless += i64::from(row.is_none());
        let text = |n: usize| row.and_then(|r| r.get(n)).and_then(Value::text).unwrap_or_default().to_owned();
        let int = |n: usize| row.and_then(|r| r.get(n)).and_then(Value::int);
        let now = options.clock.now().millis();
        let title = if row.is_some() { text(2) } else { "recovered session".into() };
        let head = if text(8).is_empty() { "main".into() } else { text(8) };
        conn.execute(
            "INSERT OR REPLACE INTO sessions(id, project, title, created, used, used_order, model, profile, head,
               budget, archived, trashed, spawned_by, entries, cost, preview)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            params![
                id,
                text(1),
                title,
                int(3).unwrap_or(now),
                int(4).unwrap_or(now),
                int(5).unwrap_or(i64::try_from(order).unwrap_or(0) + 1),
                text(6),
                if text(7).is_empty() { "ask".into() } else { text(7) },
                head,
                int(9),
                int(10).unwrap_or(0),
                int(11),
                row.and_then(|r| uuid(&r[12])),
                count,
                int(14),
                text(15),
            ],
        )?;
    }
    if nameless > 0 {
        losses.push(format!("title and folder of {nameless} sessions"));
    }
    Ok(())
}

/// In the old order, parents first; a lost parent is replaced by a note that stands for it.
fn put_entries(conn: &Connection, found: Vec<Found>, losses: &mut Vec<String>) -> Result<()> {
    let order: Vec<Uuid> = found.iter().map(|f| f.raw.id).collect();
    let mut waiting: HashMap<Uuid, (Found, EntryBody)> = found
        .into_iter()
        .filter_map(|f| read_body(&f.raw.payload).ok().map(|body| (f.raw.id, (f, body))))
        .collect();
    let mut there: HashSet<Uuid> = HashSet::new();
    let mut gaps = 0;
    for id in order {
        // The number that gives the order is not under the checksum, so a child may come before its parent:
        // go up to the first that is there, then down again. Each is taken out once, so this ends.
        let mut chain = Vec::new();
        let mut next = Some(id);
        while let Some((found, body)) = next.and_then(|id| waiting.remove(&id)) {
            next = found.raw.parent;
            chain.push((found, body));
        }
        if let Some(lost) = next
            && let Some((below, _)) = chain.last()
            && there.insert(lost)
        {
            gaps += 1;
            let body = EntryBody::Note { text: "An entry was lost here: the database was damaged.".into() };
            let payload = serde_json::to_string(&body)?;
            let mut gap = Raw { id: lost, parent: None, payload, snapshot: None, ..below.raw.clone() };
            gap.sum = gap.checksum();
            entries::insert(conn, &gap, &body, None)?;
        }
        for (found, body) in chain.into_iter().rev() {
            there.insert(found.raw.id);
            entries::insert(conn, &found.raw, &body, found.todo)?;
        }
    }
    if gaps > 0 {
        losses.push(format!("{gaps} or more entries between saved ones"));
    }
    Ok(())
}

/// Heads that still lead somewhere stay; a session without any gets one at its newest entry.
fn put_heads(conn: &Connection) -> Result<()> {
    conn.execute_batch(
        "DELETE FROM heads WHERE entry IS NOT NULL AND entry NOT IN (SELECT id FROM entries);
         DELETE FROM heads WHERE session NOT IN (SELECT id FROM sessions);
         INSERT INTO heads(session, name, entry, todo)
           SELECT s.id, s.head, e.id, e.todo FROM sessions s
           JOIN entries e ON e.seq = (SELECT max(seq) FROM entries WHERE session = s.id)
           WHERE NOT EXISTS (SELECT 1 FROM heads h WHERE h.session = s.id AND h.name = s.head);
         UPDATE heads SET todo = NULL WHERE todo NOT IN (SELECT id FROM todo_states);
         UPDATE entries SET todo = NULL WHERE todo NOT IN (SELECT id FROM todo_states);
         DELETE FROM queue WHERE session NOT IN (SELECT id FROM sessions);
         DELETE FROM asks WHERE session NOT IN (SELECT id FROM sessions);
         DELETE FROM pending WHERE session NOT IN (SELECT id FROM sessions);
         DELETE FROM ops WHERE session NOT IN (SELECT id FROM sessions);
         DELETE FROM steps WHERE session NOT IN (SELECT id FROM sessions);
         DELETE FROM agents WHERE root NOT IN (SELECT id FROM sessions);
         DELETE FROM workflow_steps WHERE root NOT IN (SELECT id FROM sessions);
         DELETE FROM workflows WHERE root NOT IN (SELECT id FROM sessions);
         DELETE FROM tags WHERE entry NOT IN (SELECT id FROM entries)
           OR session NOT IN (SELECT id FROM sessions);
         DELETE FROM todo_states WHERE session NOT IN (SELECT id FROM sessions);",
    )?;
    Ok(())
}

/// Copies what SQLite can read, from both ends of each table towards the damage. Works on a copy, so that the
/// original stays as it is.
fn copy_tables(
    conn: &Connection,
    original: &Path,
    options: &Options,
    losses: &mut Vec<String>,
) -> Result<()> {
    let work = folder::beside(original, ".work");
    let io = |e: std::io::Error| StoreError::from_io(&e, &work);
    for suffix in ["", "-wal"] {
        let from = folder::beside(original, suffix);
        if from.exists() {
            fs::copy(&from, folder::beside(&work, suffix)).map_err(io)?;
        }
    }
    folder::prepare_file(&work, options.uid)?;
    match Connection::open(&work) {
        Ok(damaged) => {
            update(&damaged, options);
            for table in COPIED.iter().chain(&["heads"]) {
                match copy_table(conn, &damaged, table) {
                    Ok(true) => {}
                    Ok(false) => losses.push(format!("part of the table {table}")),
                    Err(error) if error.is_trouble() => return Err(error),
                    Err(_) => losses.push(format!("the table {table}")),
                }
            }
        }
        Err(error) => losses.push(format!("everything but sessions and entries ({error})")),
    }
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let path = folder::beside(&work, suffix);
        remove(&path)?;
    }
    Ok(())
}

/// Brings the working copy of an older program's database to our tables, where the damage lets it.
fn update(damaged: &Connection, options: &Options) {
    let older = match migrate::versions(damaged) {
        Ok((version, _)) if version > 0 && version < migrate::latest() => version,
        _ => return,
    };
    let standing = Standing::Older(older);
    if let Err(error) = migrate::migrate(damaged, None, standing, migrate::MIGRATIONS, options.clock.now()) {
        tracing::warn!(%error, older, "a damaged database is read as it is");
    }
}

/// True when the whole table could be read.
fn copy_table(conn: &Connection, damaged: &Connection, table: &str) -> Result<bool> {
    let columns = |conn: &Connection| -> Result<Vec<String>> {
        let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let rows = statement.query_map([table], |r| r.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    // An older program's table lacks the newest columns; they get what is usual.
    let theirs = columns(damaged)?;
    let ours: Vec<String> = columns(conn)?.into_iter().filter(|c| theirs.contains(c)).collect();
    if ours.is_empty() {
        return Ok(false);
    }
    let key: String = conn.query_row(
        &format!("SELECT group_concat('\"' || name || '\" DIR', ', ') FROM (SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk)"),
        [],
        |r| r.get(0),
    )?;
    let width = ours.len();
    let names = ours.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ");
    let marks = (1..=width).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
    let mut insert = conn.prepare(&format!("INSERT OR IGNORE INTO {table}({names}) VALUES({marks})"))?;
    for direction in ["ASC", "DESC"] {
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
                    // A row that breaks a rule of its table is damage, too.
                    match values.and_then(|values| insert.execute(params_from_iter(values))) {
                        Ok(_) | Err(rusqlite::Error::Utf8Error(..)) => {}
                        Err(rusqlite::Error::SqliteFailure(code, _))
                            if matches!(
                                code.code,
                                rusqlite::ErrorCode::ConstraintViolation | rusqlite::ErrorCode::TypeMismatch
                            ) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        if whole {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
