//! Salvages a damaged database: the original is kept under another name, everything readable goes into a new database,
//! and losses are reported.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use tiller_protocol::{EntryBody, Notice, NoticeKind};
use uuid::Uuid;

use crate::damage::pages::{Pages, RowOf, Value};
use crate::damage::report;
use crate::damage::tables::{copy_tables, put_heads};
use crate::error::{Result, StoreError};
use crate::open::Options;
use crate::open::connect::{self, Target};
use crate::open::folder;
use crate::open::migrate::{self, DatabaseKind};
use crate::tree::entries::{self, Raw, read_body};

/// Suffix of the new database while it is built.
const SALVAGED: &str = ".salvaged";

/// The result of a salvage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvage {
    /// The damaged file, as it was.
    pub original: PathBuf,
    /// SQLite's error.
    pub damage: String,
    pub sessions: u64,
    pub entries: u64,
    /// What could not be saved, one line each.
    pub losses: Vec<String>,
    /// The path of the database.
    pub database: PathBuf,
}

impl Salvage {
    /// The notice for the person.
    pub fn notice(&self) -> Notice {
        let mut detail = self.losses.clone();
        detail.push(format!("SQLite reported: {}", self.damage));
        let notice = Notice::new(
            NoticeKind::Store,
            format!(
                "the database was damaged: {} entries of {} sessions were recovered, {}",
                self.entries,
                self.sessions,
                match self.losses.len() {
                    0 => "no known loss".into(),
                    1 => self.losses[0].clone(),
                    n => format!("{n} kinds of loss are listed"),
                }
            ),
        )
        .hint(format!("the damaged file is kept as {}", self.original.display()))
        .detail(detail.join("\n"));
        if self.losses.is_empty() { notice } else { report::with_backup(notice, &self.database) }
    }
}

/// The damaged file and its log (empty: none), as far as they are readable.
pub(crate) struct Read<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) log: &'a [u8],
}

/// An entry's row as read from a page, with its place.
pub(crate) struct RecoveredEntry {
    seq: i64,
    raw: Raw,
    todo: Option<i64>,
}

/// Moves the damaged files away and builds a new database from what is readable. The caller has exclusive access.
pub(crate) fn salvage(path: &Path, damage: &str, options: &Options) -> Result<Salvage> {
    let stamp = options.clock.now().millis();
    let mut original = folder::beside(path, &format!(".damaged-{stamp}"));
    let mut n = 1;
    while original.exists() {
        original = folder::beside(path, &format!(".damaged-{stamp}-{n}"));
        n += 1;
    }
    let io = |e: std::io::Error| StoreError::from_io(&e, path);
    let mut losses = Vec::new();
    let file = read(path, "the file", &mut losses).map_err(io)?;
    let log = match read(&folder::beside(path, "-wal"), "the log", &mut losses) {
        Ok(log) => log,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => {
            losses.push(format!("all of the log, which cannot be read ({e})"));
            Vec::new()
        }
    };

    if file.iter().all(|byte| *byte == 0) {
        let how = if file.is_empty() { "is empty" } else { "holds nothing but zeros" };
        losses.push(format!("everything that was in the file, which {how}"));
    }
    // Built beside the damaged one, and renamed when complete: after a crash before that the salvage starts over.
    let fresh = folder::beside(path, SALVAGED);
    for suffix in ["", "-wal", "-shm"] {
        remove(&folder::beside(&fresh, suffix))?;
    }
    let mut salvage = Salvage {
        original: original.clone(),
        damage: damage.into(),
        sessions: 0,
        entries: 0,
        losses,
        database: path.into(),
    };
    let read = Read { file: &file, log: &log };
    rebuild(path, &fresh, &read, options, &mut salvage).map_err(|e| e.at(path))?;
    // Entries have other rows now.
    let index = folder::search_index(path);
    for suffix in ["", "-wal", "-shm"] {
        remove(&folder::beside(&index, suffix))?;
    }
    // The database file first: while it is in place its log is too, and a start after a crash reads both again.
    fs::rename(path, &original).map_err(io)?;
    put_aside(path, &original)?;
    finish(path)?;
    tracing::warn!(original = %original.display(), damage, entries = salvage.entries, "salvaged a database");
    Ok(salvage)
}

/// Bytes of one piece, when a file cannot be read as a whole.
const PIECE: usize = 4096;

/// Reads the readable bytes of a file: a bad sector loses its own bytes only.
///
/// # Errors
/// When nothing of it can be read.
fn read(path: &Path, what: &str, losses: &mut Vec<String>) -> std::io::Result<Vec<u8>> {
    let whole = fs::read(path);
    if !whole.as_ref().is_err_and(|e| e.kind() != std::io::ErrorKind::NotFound) {
        return whole;
    }
    let file = fs::File::open(path)?;
    let long = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
    in_pieces(long, what, losses, |bytes, at| file.read_exact_at(bytes, at))
}

/// Reads `long` bytes in pieces. Unreadable pieces are zero, and reported.
fn in_pieces(
    long: usize,
    what: &str,
    losses: &mut Vec<String>,
    mut read: impl FnMut(&mut [u8], u64) -> std::io::Result<()>,
) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; long];
    let mut lost: Option<(u64, usize, std::io::Error)> = None;
    for (n, piece) in bytes.chunks_mut(PIECE).enumerate() {
        let at = n as u64 * PIECE as u64;
        if let Err(e) = read(piece, at) {
            piece.fill(0);
            let (first, before, e) = lost.unwrap_or((at, 0, e));
            lost = Some((first, before + piece.len(), e));
        }
    }
    match lost {
        Some((_, all, e)) if all == long => return Err(e),
        Some((first, all, e)) => {
            losses.push(format!("{all} bytes of {what}, the first at {first}, which cannot be read ({e})"));
        }
        None => {}
    }
    Ok(bytes)
}

/// Moves the damaged database's other files along. Its log would otherwise be applied to the new database.
fn put_aside(path: &Path, original: &Path) -> Result<()> {
    for suffix in ["-wal", "-shm"] {
        let from = folder::beside(path, suffix);
        if from.exists() {
            fs::rename(&from, folder::beside(original, suffix)).map_err(|e| StoreError::from_io(&e, path))?;
        }
    }
    Ok(())
}

/// Renames a complete salvage into place when a crash came between the renames.
pub(crate) fn finish(path: &Path) -> Result<()> {
    let fresh = folder::beside(path, SALVAGED);
    if !path.exists() && fresh.exists() {
        put_aside(path, &newest_damaged(path))?;
        fs::rename(&fresh, path).map_err(|e| StoreError::from_io(&e, path))?;
    }
    Ok(())
}

/// The damaged database that was moved away last.
fn newest_damaged(path: &Path) -> PathBuf {
    let start = folder::beside(path, ".damaged-");
    let name = start.file_name().unwrap_or_default().to_owned();
    let items = path.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let ours = items.map(|item| item.path()).filter(|p| {
        let text = p.file_name().unwrap_or_default().as_encoded_bytes();
        text.starts_with(name.as_encoded_bytes()) && !text.ends_with(b"-wal") && !text.ends_with(b"-shm")
    });
    // A rename sets this time.
    let time = |p: &PathBuf| p.metadata().map(|m| (m.ctime(), m.ctime_nsec())).ok();
    ours.max_by_key(time).unwrap_or_else(|| folder::beside(path, ".damaged"))
}

pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(StoreError::from_io(&e, path)),
        _ => Ok(()),
    }
}

/// Fills a new database at `fresh`, and closes it so that everything is in one file.
fn rebuild(
    damaged: &Path,
    fresh: &Path,
    read: &Read<'_>,
    options: &Options,
    salvage: &mut Salvage,
) -> Result<()> {
    folder::prepare_file(fresh, options.uid)?;
    let target = Target::File(fresh.to_owned());
    let conn = connect::probe(&target)?;
    connect::into_writer(&conn, &target)?;
    migrate::migrate(&conn, None, DatabaseKind::Empty, migrate::MIGRATIONS, options.clock.now())?;
    conn.execute_batch("PRAGMA foreign_keys=OFF; BEGIN IMMEDIATE")?;
    copy_tables(&conn, damaged, read, options, &mut salvage.losses)?;
    let (found, sessions) = read_pages(&Pages::new(read.file, read.log));
    salvage.entries = found.len() as u64;
    put_sessions(&conn, &found, sessions, options, &mut salvage.losses)?;
    put_entries(&conn, found, &mut salvage.losses)?;
    put_heads(&conn, &mut salvage.losses)?;
    salvage.sessions = entries::uncount(conn.query_row("SELECT count(*) FROM sessions", [], |r| r.get(0))?);
    conn.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

fn uuid(value: &Value) -> Option<Uuid> {
    Uuid::from_slice(value.blob()?).ok()
}

/// Entries (verified by their checksums) and rows that look like sessions.
fn read_pages(pages: &Pages<'_>) -> (Vec<RecoveredEntry>, HashMap<Uuid, Vec<Value>>) {
    let mut found: HashMap<Uuid, RecoveredEntry> = HashMap::new();
    let mut sessions: HashMap<Uuid, Vec<Value>> = HashMap::new();
    pages.rows(&mut |row: RowOf| {
        if let Some(entry) = as_entry(&row) {
            found.entry(entry.raw.id).or_insert(entry);
        } else if let Some(id) = as_session(&row.1) {
            // Frames are read newest first.
            sessions.entry(id).or_insert(row.1);
        }
    });
    let mut found: Vec<RecoveredEntry> = found.into_values().collect();
    found.sort_by_key(|f| f.seq);
    (found, sessions)
}

/// Columns as in `0001_init.sql`; later versions only append columns.
fn as_entry((seq, columns): &RowOf) -> Option<RecoveredEntry> {
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
        imported: columns.get(21).and_then(Value::int) == Some(1),
    };
    (raw.sum == raw.checksum()).then(|| RecoveredEntry { seq: *seq, raw, todo: columns[13].int() })
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

/// Whether a row is one of an entry, or looks like one of a session.
pub(crate) fn is_known(row: &RowOf) -> bool {
    as_entry(row).is_some() || as_session(&row.1).is_some()
}

fn put_sessions(
    conn: &Connection,
    found: &[RecoveredEntry],
    rows: HashMap<Uuid, Vec<Value>>,
    options: &Options,
    losses: &mut Vec<String>,
) -> Result<()> {
    let mut counts: BTreeMap<Uuid, i64> = rows.keys().map(|id| (*id, 0)).collect();
    for entry in found {
        *counts.entry(entry.raw.session).or_default() += 1;
    }
    let (mut nameless, mut missing) = (0, 0);
    for (order, (id, count)) in counts.into_iter().enumerate() {
        let row = rows.get(&id);
        nameless += i64::from(row.is_none());
        let text = |n: usize| row.and_then(|r| r.get(n)).and_then(Value::text).unwrap_or_default().to_owned();
        let int = |n: usize| row.and_then(|r| r.get(n)).and_then(Value::int);
        // A row contains the number of entries of its session.
        missing += int(13).map_or(0, |had| had.saturating_sub(count).max(0));
        let now = options.clock.now().millis();
        let title = if row.is_some() { text(2) } else { "recovered session".into() };
        let head = if text(8).is_empty() { "main".into() } else { text(8) };
        conn.execute(
            "INSERT OR REPLACE INTO sessions(id, project, title, created, used, used_order, model, profile, head,
               budget, archived, trashed, spawned_by, entries, cost, preview, origin, git_branch)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
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
                text(16),
                text(17),
            ],
        )?;
    }
    if nameless > 0 {
        losses.push(format!("title and folder of {nameless} sessions"));
    }
    if missing > 0 {
        losses.push(format!("{missing} entries"));
    }
    Ok(())
}

/// Inserts entries in their old order, parents first; a lost parent is replaced by a note.
fn put_entries(conn: &Connection, found: Vec<RecoveredEntry>, losses: &mut Vec<String>) -> Result<()> {
    let order: Vec<Uuid> = found.iter().map(|f| f.raw.id).collect();
    let mut waiting: HashMap<Uuid, (RecoveredEntry, EntryBody)> = found
        .into_iter()
        .filter_map(|f| read_body(&f.raw.payload).ok().map(|body| (f.raw.id, (f, body))))
        .collect();
    let mut there: HashSet<Uuid> = HashSet::new();
    let mut gaps = 0;
    for id in order {
        // The sequence number is not covered by the checksum, so a child may come before its parent: walk up to the
        // first existing ancestor, then down again. Each entry is removed once, so this ends.
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
        losses.push(format!("at least {gaps} entries between recovered ones"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod index_tests;
#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "trees_tests.rs"]
mod trees_tests;
