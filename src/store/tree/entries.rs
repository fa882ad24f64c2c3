//! Entries as rows. The payload is the body exactly as serde_json wrote it, or as it stood in an imported file.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::{Addition, Additions, Entry, EntryBody, EntryId, Part, SessionId, Taint, Time, Usage};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Entries;

/// Maximum nesting of JSON in a payload. Parsing is recursive, and a model chooses the depth.
const MAX_DEPTH: usize = 256;

/// The columns that [`Raw::from_row`] reads, in this order.
pub(crate) const COLUMNS: &str = "id, parent, session, agent, time, payload, sum, snapshot, imported";

/// An entry with its body serialised.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) id: Uuid,
    pub(crate) parent: Option<Uuid>,
    pub(crate) session: Uuid,
    pub(crate) agent: String,
    pub(crate) time: i64,
    pub(crate) payload: String,
    pub(crate) sum: Vec<u8>,
    pub(crate) snapshot: Option<String>,
    /// A file brought it: [`distrust`] applies where it is read.
    pub(crate) imported: bool,
}

impl Raw {
    /// Serialises the body. Refuses a body that could not be read back.
    pub(crate) fn encode(entry: &Entry) -> Result<Self> {
        let payload = serde_json::to_string(&entry.body)?;
        let depth = depth_of(&payload);
        if depth > MAX_DEPTH {
            return Err(StoreError::Record(format!("nested {depth} deep, {MAX_DEPTH} is the limit")));
        }
        let mut raw = Self {
            id: entry.id.0,
            parent: entry.parent.map(|p| p.0),
            session: entry.session.0,
            agent: entry.agent.0.clone(),
            time: entry.time.millis(),
            payload,
            sum: Vec::new(),
            snapshot: entry.snapshot.clone(),
            imported: false,
        };
        raw.sum = raw.checksum();
        Ok(raw)
    }

    /// First 8 bytes of BLAKE3 over everything that must not change, each part with its length before it.
    pub(crate) fn checksum(&self) -> Vec<u8> {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(self.id.as_bytes());
        part(self.parent.as_ref().map_or(&[][..], |p| p.as_bytes()));
        part(self.session.as_bytes());
        part(self.agent.as_bytes());
        part(&self.time.to_le_bytes());
        part(self.payload.as_bytes());
        part(self.snapshot.as_deref().unwrap_or("").as_bytes());
        if self.imported {
            part(b"imported");
        }
        hasher.finalize().as_bytes()[..8].to_vec()
    }

    pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            parent: row.get(1)?,
            session: row.get(2)?,
            agent: row.get(3)?,
            time: row.get(4)?,
            payload: row.get(5)?,
            sum: row.get(6)?,
            snapshot: row.get(7)?,
            imported: row.get(8)?,
        })
    }

    /// Parses the body.
    pub(crate) fn decode(self) -> Result<Entry> {
        if self.sum != self.checksum() {
            return Err(StoreError::Record(format!("entry {} does not match its checksum", self.id)));
        }
        let mut body = read_body(&self.payload)?;
        if self.imported {
            distrust(&mut body);
        }
        Ok(self.with(body))
    }

    /// As [`Raw::decode`], but a damaged entry becomes a note that says so: one bad record must not prevent opening a
    /// session. The flag: it was damaged.
    pub(crate) fn decode_or_note(self) -> (Entry, bool) {
        match self.clone().decode() {
            Ok(entry) => (entry, false),
            Err(error) => {
                tracing::warn!(id = %self.id, %error, "damaged entry");
                let text = format!("This entry is damaged and cannot be shown ({error}).");
                (self.with(EntryBody::Note { text }), true)
            }
        }
    }

    fn with(self, body: EntryBody) -> Entry {
        Entry {
            id: EntryId(self.id),
            parent: self.parent.map(EntryId),
            session: SessionId(self.session),
            agent: tiller_protocol::AgentId(self.agent),
            time: Time(self.time),
            body,
            snapshot: self.snapshot,
        }
    }
}

/// The row of an entry.
pub(crate) fn one(conn: &Connection, id: Uuid) -> rusqlite::Result<Option<Raw>> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM entries WHERE id = ?1"))?
        .query_row(params![id], Raw::from_row)
        .optional()
}

/// Parses a payload: deeper than serde_json allows by default, but not deeper than is written.
pub(crate) fn read_body(payload: &str) -> Result<EntryBody> {
    if depth_of(payload) > MAX_DEPTH {
        return Err(StoreError::Record("nested too deep".into()));
    }
    let mut reader = serde_json::Deserializer::from_str(payload);
    reader.disable_recursion_limit();
    let body = EntryBody::deserialize(&mut reader)?;
    reader.end()?;
    Ok(body)
}

/// The text of a body in the spelling that searches in payloads expect: as it is, unless another program spelled it, with
/// blanks or escapes.
pub(crate) fn as_written(body: &EntryBody, text: &str) -> Result<String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let ours = serde_json::to_string(&serde_json::Value::deserialize(&mut reader)?)?;
    if ours == text { Ok(text.to_owned()) } else { Ok(serde_json::to_string(body)?) }
}

/// Takes out of the body of an imported entry what is not known from a file: the numbers of learnings belong to the database that it
/// comes from, and the origin of the words of a message or a summary is known to that database only, so that they count as
/// text of others.
pub(crate) fn distrust(body: &mut EntryBody) {
    match body {
        EntryBody::ToolResult { learnings, taint, added, content, .. } => {
            learnings.clear();
            *added = of_file(std::mem::take(added), content);
            *taint = Some(Taint::Web);
        }
        EntryBody::User { taint, learnings, .. } => {
            learnings.clear();
            *taint = Some(Taint::Web);
        }
        EntryBody::Compaction { taint, .. } | EntryBody::BranchSummary { taint, .. } => {
            *taint = Some(Taint::Web);
        }
        _ => {}
    }
}

/// The additions to a result that was read from a file. They stay additions, so that the result looks as it did where it was
/// written; they are shown in full, and none counts as a rule of the user. Parts before the tool's own would not be shown, and a
/// result that is nothing but additions would look empty: such parts count as said by the tool.
fn of_file(added: Additions, content: &[Part]) -> Additions {
    if added.after.len() >= content.len() {
        return Additions::default();
    }
    let kind = |what| if matches!(what, Addition::Rule(_)) { Addition::Hook } else { what };
    Additions { before: 0, after: added.after.into_iter().map(kind).collect() }
}

/// Nesting depth of brackets, outside strings.
fn depth_of(json: &str) -> usize {
    let (mut depth, mut deepest, mut text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'{' | b'[' if !text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A count as an SQLite integer; larger ones saturate.
pub(crate) fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Reverses [`count`].
pub(crate) fn uncount(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Values that an entry inherits from its parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inherited {
    pub(crate) session: Uuid,
    pub(crate) depth: i64,
    pub(crate) prefix: Option<Uuid>,
    pub(crate) compaction: Option<Uuid>,
    pub(crate) todo: Option<i64>,
}

pub(crate) fn inherited(conn: &Connection, id: Uuid) -> rusqlite::Result<Option<Inherited>> {
    conn.prepare_cached("SELECT session, depth, prefix, compaction, todo FROM entries WHERE id = ?1")?
        .query_row(params![id], |r| {
            Ok(Inherited {
                session: r.get(0)?,
                depth: r.get(1)?,
                prefix: r.get(2)?,
                compaction: r.get(3)?,
                todo: r.get(4)?,
            })
        })
        .optional()
}

/// The key in `meta` of the highest row number of a removed entry.
const REMOVED: &str = "entry_rows";

/// Notes the highest row number before entries are removed: the search index identifies entries by their rows, so a number never
/// comes back.
pub(crate) fn keep_row_numbers(conn: &Connection) -> rusqlite::Result<()> {
    let next = next_row(conn)?;
    conn.prepare_cached("INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)")?
        .execute(params![REMOVED, (next - 1).to_string()])?;
    Ok(())
}

/// The row number of the next entry: above those of all entries that exist or were removed.
fn next_row(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "SELECT 1 + max(coalesce((SELECT max(seq) FROM entries), 0),
           coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?1), 0))",
    )?
    .query_row([REMOVED], |r| r.get(0))
}

/// Adds one row under its parent. `todo`: the list in force, `None` to inherit the parent's.
pub(crate) fn insert(conn: &Connection, raw: &Raw, body: &EntryBody, todo: Option<i64>) -> Result<()> {
    let above = match raw.parent {
        None => Inherited { depth: -1, ..Inherited::default() },
        Some(parent) => {
            let above = inherited(conn, parent)?.ok_or(StoreError::NoEntry(EntryId(parent)))?;
            if above.session != raw.session {
                return Err(StoreError::Conflict(format!("entry {parent} belongs to another session")));
            }
            above
        }
    };
    let kind = body.kind();
    let own = |name: &str, above: Option<Uuid>| if kind == name { Some(raw.id) } else { above };
    let (model, usage, cost) = match body {
        EntryBody::Assistant { model, usage, cost, .. } => (Some(&model.0), Some(*usage), *cost),
        _ => (None, None, None),
    };
    let tokens = |of: fn(&Usage) -> u64| usage.as_ref().map(|u| count(of(u)));
    conn.prepare_cached(
        "INSERT INTO entries(id, session, parent, depth, agent, kind, time, payload, sum, snapshot, prefix,
           compaction, todo, model, input, output, cache_read, cache_write, reasoning, cost, imported, seq)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
    )?
    .execute(params![
        raw.id,
        raw.session,
        raw.parent,
        above.depth + 1,
        raw.agent,
        kind,
        raw.time,
        raw.payload,
        raw.sum,
        raw.snapshot,
        own("prefix", above.prefix),
        own("compaction", above.compaction),
        todo.or(above.todo),
        model,
        tokens(|u| u.input),
        tokens(|u| u.output),
        tokens(|u| u.cache_read),
        tokens(|u| u.cache_write),
        tokens(|u| u.reasoning),
        cost.map(|c| count(c.0)),
        raw.imported,
        next_row(conn)?,
    ])?;
    Ok(())
}

impl Entries<'_> {
    /// One entry.
    ///
    /// # Errors
    /// [`StoreError::NoEntry`]; [`StoreError::Record`] when it is damaged.
    pub fn get(&self, id: EntryId) -> Result<Entry> {
        let raw = self.store.read(|conn| Ok(one(conn, id.0)?))?;
        raw.ok_or(StoreError::NoEntry(id))?.decode()
    }

    /// The entries of a session that a file brought.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn imported(&self, session: SessionId) -> Result<HashSet<EntryId>> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT id FROM entries WHERE session = ?1 AND imported = 1")?;
            let rows = statement.query_map(params![session.0], |r| r.get(0).map(EntryId))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The [`EntryBody::kind`] of an entry; `None`: it does not exist.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn kind(&self, id: EntryId) -> Result<Option<String>> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT kind FROM entries WHERE id = ?1")?
                .query_row(params![id.0], |r| r.get(0))
                .optional()?)
        })
    }

    /// Entries directly below one (where branches diverge), oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn children(&self, id: EntryId) -> Result<Vec<EntryId>> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT id FROM entries WHERE parent = ?1 ORDER BY seq")?;
            let rows = statement.query_map(params![id.0], |r| r.get(0).map(EntryId))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The result of a tool call, or a call of a script, by the call's id within a session. The newest, if there are
    /// several.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn tool_result(&self, session: SessionId, call_id: &str) -> Result<Option<Entry>> {
        for raw in self.of_call(session, "call_id", call_id)? {
            let entry = raw.decode()?;
            if let EntryBody::ToolResult { call_id: id, .. } | EntryBody::InnerCall { call_id: id, .. } =
                &entry.body
                && id == call_id
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The calls that a call made, by its id within a session, in their order. Of branches that use the id twice, the
    /// newest counts.
    ///
    /// # Errors
    /// When the database cannot be read, or an entry is damaged.
    pub fn inner_calls(&self, session: SessionId, outer: &str) -> Result<Vec<InnerCall>> {
        let mut calls: Vec<InnerCall> = Vec::new();
        for raw in self.of_call(session, "of", outer)? {
            if let EntryBody::InnerCall { of, call, .. } = raw.decode()?.body
                && of == outer
                && calls.iter().all(|known| known.number != call.number)
            {
                calls.push(*call);
            }
        }
        calls.sort_by_key(|call| call.number);
        Ok(calls)
    }

    /// Entries that name a call in this field, newest first. Others may be among them.
    fn of_call(&self, session: SessionId, field: &str, call_id: &str) -> Result<Vec<Raw>> {
        // The id stands in the payload as JSON text.
        let quoted = serde_json::to_string(call_id)?;
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM entries WHERE session = ?1 AND kind IN ('tool_result', 'inner_call')
                   AND instr(payload, ?2) > 0 ORDER BY seq DESC"
            ))?;
            let rows =
                statement.query_map(params![session.0, format!("\"{field}\":{quoted}")], Raw::from_row)?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
