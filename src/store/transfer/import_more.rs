//! Imports a session that exists already and was continued elsewhere: only new entries are added. Local continuations
//! are kept.

use std::collections::HashSet;
use std::io::BufRead;

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{BranchName, EntryBody, SessionId};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Transfer;
use crate::transfer::import::{Imported, Withheld, changed};
use crate::transfer::lines::{EntryLine, FileLine, HeadLine, Line, ParsedLine, TagLine, each, wrong};
use crate::transfer::source::{Ids, ImportSource};
use crate::tree::entries::{self, Raw, as_written, distrust, read_body};
use crate::write::ticket::Ticket;
use crate::{session::sessions, tree::heads};

impl Transfer<'_> {
    /// Adds the file's new entries to the session with the same id, with its heads and tags. A head that was continued
    /// here, or is open, stays; then the file's head gets a name of its own.
    ///
    /// Errors of the ticket: [`StoreError::NoSession`]; [`StoreError::Conflict`] when the file has an entry that
    /// differs from the one here, or contains more than one session; [`StoreError::Import`].
    pub fn import_more(&self, input: &mut dyn BufRead) -> Ticket<Imported> {
        let mut bytes = Vec::new();
        match input.read_to_end(&mut bytes) {
            Ok(_) => self.import_more_from(ImportSource::Bytes(bytes)),
            Err(error) => Ticket::ready(Err(wrong(1, error))),
        }
    }

    /// As [`Self::import_more`]. The file is read twice, a line at a time; one that changes in between is an error.
    pub fn import_more_from(&self, mut source: ImportSource) -> Ticket<Imported> {
        match source.start().and_then(|mut input| Ids::read(&mut *input, None)) {
            Ok(ids) if ids.sessions.len() > 1 => {
                Ticket::ready(Err(StoreError::Conflict("the file contains more than one session".into())))
            }
            Ok(ids) => self.store.write(move |conn| add(conn, &mut source, &ids)),
            Err(error) => Ticket::ready(Err(error)),
        }
    }
}

fn add(conn: &Connection, source: &mut ImportSource, ids: &Ids) -> Result<Imported> {
    let session = SessionId(ids.sessions.first().copied().unwrap_or_default());
    let (mut fresh, mut cost) = (0_u64, None::<u64>);
    let (mut header, mut places) = (None, Vec::new());
    let hash = each(&mut *source.start()?, |line| {
        let row = match line {
            FileLine::Session(head) => {
                header = Some(head);
                return sessions::must_exist(conn, session);
            }
            FileLine::Row(row) => *row,
        };
        match row {
            ParsedLine { line: Line::Entry(line), body: Some(body), number } => {
                let added = put(conn, session, (&line, &body, number))?;
                fresh += u64::from(added);
                if let (true, EntryBody::Assistant { cost: Some(paid), .. }) = (added, body) {
                    cost = Some(cost.unwrap_or(0).saturating_add(paid.0));
                }
            }
            ParsedLine { line: line @ (Line::Head(_) | Line::Tag(_)), .. } => places.push(line),
            _ => {}
        }
        Ok(())
    })?;
    let header = header.filter(|_| ids.hash == Some(hash)).ok_or_else(changed)?;
    if fresh == 0 {
        return Ok(Imported { session, entries: 0, others: 0, withheld: Withheld::default() });
    }
    let none = HashSet::new();
    let ours = ids.entries.first().unwrap_or(&none);
    for place in &places {
        match place {
            Line::Head(head) => go_on(conn, session, head, ours)?,
            Line::Tag(tag) => name(conn, session, tag, ours)?,
            _ => {}
        }
    }
    conn.execute(
        "UPDATE sessions SET entries = entries + ?2, preview = ?3, used = max(used, ?4),
           cost = CASE WHEN ?5 IS NULL THEN cost ELSE coalesce(cost, 0) + ?5 END WHERE id = ?1",
        params![
            session.0,
            i64::try_from(fresh).unwrap_or(i64::MAX),
            header.preview,
            header.used,
            cost.map(|c| i64::try_from(c).unwrap_or(i64::MAX)),
        ],
    )?;
    Ok(Imported { session, entries: fresh, others: 0, withheld: Withheld::default() })
}

/// Adds an entry of a line of the file. False: it exists here.
fn put(
    conn: &Connection,
    session: SessionId,
    (line, body, number): (&EntryLine, &EntryBody, usize),
) -> Result<bool> {
    if known(conn, session, line, body)? {
        return Ok(false);
    }
    let mut raw = Raw {
        id: line.id,
        parent: line.parent,
        session: session.0,
        agent: line.agent.clone(),
        time: line.time,
        payload: as_written(body, line.body.get())?,
        sum: Vec::new(),
        snapshot: line.snapshot.clone(),
        imported: true,
    };
    raw.sum = raw.checksum();
    entries::insert(conn, &raw, body, None).map_err(|e| match e {
        e if e.is_trouble() => e,
        e => wrong(number, e),
    })?;
    Ok(true)
}

/// Whether an entry exists here, with the same content as in the file.
fn known(conn: &Connection, session: SessionId, line: &EntryLine, body: &EntryBody) -> Result<bool> {
    let there: Option<(Uuid, Option<Uuid>, String)> = conn
        .prepare_cached("SELECT session, parent, payload FROM entries WHERE id = ?1")?
        .query_row(params![line.id], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
        .optional()?;
    let Some((of, parent, payload)) = there else { return Ok(false) };
    // A damaged entry is reported elsewhere; it exists here. One that an earlier version imported has its mark in the body.
    let plain = |mut body: EntryBody| {
        distrust(&mut body);
        body
    };
    let same = read_body(&payload).map_or(true, |was| plain(was) == plain(body.clone()));
    if of == session.0 && parent == line.parent && same {
        return Ok(true);
    }
    Err(StoreError::Conflict(format!("the file has a different version of entry {}", line.id)))
}

/// Where a branch of the file continues: its head moves along, unless it was continued differently here.
fn go_on(conn: &Connection, session: SessionId, head: &HeadLine, ours: &HashSet<Uuid>) -> Result<()> {
    let Some(to) = head.entry.filter(|e| ours.contains(e)) else { return Ok(()) };
    let mut statement =
        conn.prepare_cached("SELECT name, entry FROM heads WHERE session = ?1 AND entry IS NOT NULL")?;
    let rows = statement.query_map(params![session.0], |r| Ok((r.get(0)?, r.get(1)?)))?;
    let there: Vec<(String, Uuid)> = rows.collect::<rusqlite::Result<_>>()?;
    if there.iter().any(|(_, at)| *at == to) {
        return Ok(());
    }
    // Its own name first; numbers of branches differ between files.
    let mut mine: Vec<&(String, Uuid)> = there.iter().collect();
    mine.sort_by_key(|(name, _)| *name != head.name);
    for (name, at) in mine {
        let same_kind =
            *name == head.name || (BranchName::is_generated(name) && BranchName::is_generated(&head.name));
        // Its own head, where it was not continued here: it may have been continued differently there, and the part
        // that was left has a head in the file as well.
        let goes = (*name == head.name && !BranchName::is_generated(&head.name) && ours.contains(at))
            || (same_kind && leads(conn, *at, to, ours)?);
        if goes && !is_open(conn, session, name)? {
            return heads::put(conn, session, name, Some(to), None);
        }
    }
    let mut name = head.name.clone();
    let mut n = 1;
    while heads::get(conn, session, &name)?.is_some() {
        n += 1;
        name = format!("branch-{n}");
    }
    heads::put(conn, session, &name, Some(to), None)?;
    conn.prepare_cached("UPDATE heads SET label = ?3, archived = ?4 WHERE session = ?1 AND name = ?2")?
        .execute(params![session.0, name, head.label, head.archived])?;
    Ok(())
}

/// Whether the path to `to` passes `at`. Placeholder results that the file now replaces are skipped.
fn leads(conn: &Connection, at: Uuid, to: Uuid, ours: &HashSet<Uuid>) -> Result<bool> {
    let row = |id: Uuid| -> Result<(Option<Uuid>, i64, String)> {
        Ok(conn
            .prepare_cached("SELECT parent, depth, kind FROM entries WHERE id = ?1")?
            .query_row(params![id], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?)
    };
    let mut at = at;
    while !ours.contains(&at) {
        match row(at)? {
            (Some(above), _, kind) if kind == "tool_result" => at = above,
            _ => return Ok(false),
        }
    }
    let (_, depth, _) = row(at)?;
    let mut up = to;
    loop {
        let (above, deep, _) = row(up)?;
        match above {
            _ if up == at => return Ok(true),
            Some(above) if deep > depth => up = above,
            _ => return Ok(false),
        }
    }
}

/// Whether a living process works on it.
fn is_open(conn: &Connection, session: SessionId, head: &str) -> Result<bool> {
    let holder = conn
        .prepare_cached("SELECT pid, start, boot, space, nonce FROM leases WHERE session = ?1 AND head = ?2")?
        .query_row(params![session.0, head], |r| Ok((crate::lease::process_from(r, 0)?, r.get(4)?)))
        .optional()?;
    let judge = crate::lease::hold::LivenessCheck::of(conn);
    Ok(holder.is_some_and(|(process, nonce)| judge.alive(nonce, &process)))
}

fn name(conn: &Connection, session: SessionId, tag: &TagLine, ours: &HashSet<Uuid>) -> Result<()> {
    if ours.contains(&tag.entry) {
        conn.prepare_cached("INSERT OR IGNORE INTO tags(session, name, entry, time) VALUES(?1, ?2, ?3, ?4)")?
            .execute(params![session.0, tag.name, tag.entry, tag.time])?;
    }
    Ok(())
}
