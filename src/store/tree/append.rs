//! The only way in which a conversation grows: entries, head and everything that belongs to them in one commit.

use rusqlite::{Connection, params};
use tiller_protocol::view::AuditRow;
use tiller_protocol::{
    AgentId, Ask, Entry, EntryBody, EntryId, Op, Origin, Queued, SessionId, Time, TodoItem,
};
use uuid::Uuid;

use crate::audit::costs::ModelCall;
use crate::error::{Result, StoreError};
use crate::handles::Entries;
use crate::lease::Lease;
use crate::session::running::Running;
use crate::tree::entries::{self, Raw};
use crate::write::ticket::Ticket;
use crate::{
    audit, audit::costs, lease, session::agents, session::history, session::ops, session::queue,
    session::running, session::sessions, session::todos, session::workflows, tree::heads,
};

/// The data to be added. All of it is on disk when the ticket resolves, or none.
#[derive(Clone, Debug)]
pub struct Append {
    pub session: SessionId,
    /// Name of the head that moves to the last of `entries`.
    pub head: String,
    /// In order; each refers to its parent.
    pub entries: Vec<Entry>,
    /// When set: the head must be at this entry, else nothing happens ([`StoreError::Conflict`]).
    pub expect: Option<Option<EntryId>>,
    pub op: Option<Op>,
    /// The todo list as of the last entry (or the present list, without entries).
    pub todos: Option<Vec<TodoItem>>,
    /// The running turn: `Some(None)` records its end.
    pub running: Option<Option<Running>>,
    /// The queue afterwards.
    pub queue: Option<Vec<Queued>>,
    pub asks: Option<Vec<Ask>>,
    /// Bodies of entries that are still not in the tree afterwards.
    pub pending: Option<Vec<EntryBody>>,
    /// Model calls that were made.
    pub calls: Vec<ModelCall>,
    pub audit: Vec<AuditRow>,
    /// A prompt for the history.
    pub prompt: Option<String>,
    /// When set: the lease must still be held, else nothing happens ([`StoreError::Held`]).
    pub lease: Option<Lease>,
    /// Agents and workflows whose end is reported in `entries`.
    pub announced: Option<ReportedEnds>,
}

/// Agents and workflows of a session whose end is reported to the main agent.
#[derive(Clone, Debug)]
pub struct ReportedEnds {
    pub root: SessionId,
    pub agents: Vec<AgentId>,
    /// By their ids, `w1`, ...
    pub workflows: Vec<String>,
}

impl Append {
    /// An empty one for head `head` of `session`.
    pub fn new(session: SessionId, head: impl Into<String>) -> Self {
        Self {
            session,
            head: head.into(),
            entries: Vec::new(),
            expect: None,
            op: None,
            todos: None,
            running: None,
            queue: None,
            asks: None,
            pending: None,
            calls: Vec::new(),
            audit: Vec::new(),
            prompt: None,
            lease: None,
            announced: None,
        }
    }

    /// Sets the entries.
    #[must_use]
    pub fn entries(mut self, entries: Vec<Entry>) -> Self {
        self.entries = entries;
        self
    }
}

/// Ready for the writer: the caller has done everything that can fail without the database.
struct PreparedAppend {
    append: Append,
    raws: Vec<Raw>,
    days: Vec<String>,
    now: Time,
}

impl Entries<'_> {
    /// Adds the data and moves the head. Resolves when it is on disk.
    ///
    /// Errors of the ticket: [`StoreError::Conflict`] (an id that is there already, a head that moved),
    /// [`StoreError::NoSession`], [`StoreError::NoEntry`] (parent), [`StoreError::Held`],
    /// [`StoreError::Record`].
    pub fn append(&self, append: Append) -> Ticket<()> {
        let raws = append
            .entries
            .iter()
            .map(|entry| {
                if entry.session == append.session {
                    Raw::encode(entry)
                } else {
                    Err(StoreError::Conflict(format!("entry {} belongs to another session", entry.id)))
                }
            })
            .collect::<Result<Vec<_>>>();
        let raws = match raws {
            Ok(raws) => raws,
            Err(error) => return Ticket::ready(Err(error)),
        };
        let days = append.calls.iter().map(|call| self.store.costs().day(call.time)).collect();
        let prepared = PreparedAppend { append, raws, days, now: self.store.now() };
        self.store.write(move |conn| prepared.run(conn))
    }
}

impl PreparedAppend {
    fn run(&self, conn: &Connection) -> Result<()> {
        let Self { append, raws, days, now } = self;
        let session = append.session;
        sessions::must_exist(conn, session)?;
        if let Some(held) = &append.lease {
            lease::must_hold(conn, held)?;
            if (held.session, &held.head) != (session, &append.head) {
                return Err(StoreError::Held { holder: "another branch of this process".into() });
            }
        }
        let head = heads::get(conn, session, &append.head)?;
        if let Some(expected) = append.expect
            && head.as_ref().and_then(|h| h.entry) != expected.map(|e| e.0)
        {
            return Err(StoreError::Conflict(format!("the branch {} has moved", append.head)));
        }
        let mut todo = head.as_ref().and_then(|h| h.todo);
        let last = raws.last().map(|raw| raw.id);
        for (raw, entry) in raws.iter().zip(&append.entries) {
            // The head's list applies where its path continues; on another branch the parent's does.
            let carried = head.as_ref().filter(|h| h.entry == raw.parent).and(todo);
            entries::insert(conn, raw, &entry.body, carried)?;
        }
        if let Some(last) = last {
            todo = entries::inherited(conn, last)?.and_then(|i| i.todo);
            heads::put(conn, session, &append.head, Some(last), todo)?;
        }
        if let Some(list) = &append.todos {
            todos::put(conn, session, &append.head, list)?;
        }
        self.count(conn, session, *now)?;
        if let Some(op) = &append.op {
            ops::append(conn, op)?;
        }
        if let Some(state) = &append.running {
            running::put(conn, session, &append.head, state.as_ref())?;
        }
        if let Some(waiting) = &append.queue {
            queue::put(conn, "queue", session, &append.head, waiting)?;
        }
        if let Some(asks) = &append.asks {
            queue::put(conn, "asks", session, &append.head, asks)?;
        }
        if let Some(pending) = &append.pending {
            queue::put(conn, "pending", session, &append.head, pending)?;
        }
        for (call, day) in append.calls.iter().zip(days) {
            costs::insert(conn, session, call, day)?;
        }
        for row in &append.audit {
            audit::insert(conn, row)?;
        }
        if let Some(told) = &append.announced {
            agents::announced(conn, told.root, &told.agents)?;
            workflows::announced(conn, told.root, &told.workflows)?;
        }
        if let Some(prompt) = &append.prompt {
            history::insert(conn, session, prompt, *now)?;
        }
        Ok(())
    }

    /// Updates the session's row: number of entries, preview, the person's last action.
    fn count(&self, conn: &Connection, session: SessionId, now: Time) -> Result<()> {
        let said = self.append.entries.iter().rev().find_map(|entry| match &entry.body {
            EntryBody::User { message, origin, .. } if *origin != Origin::Engine => Some(&message.text),
            _ => None,
        });
        if !self.raws.is_empty() {
            conn.prepare_cached("UPDATE sessions SET entries = entries + ?2 WHERE id = ?1")?
                .execute(params![session.0, i64::try_from(self.raws.len()).unwrap_or(0)])?;
        }
        if let Some(text) = said {
            conn.prepare_cached("UPDATE sessions SET preview = ?2 WHERE id = ?1")?
                .execute(params![session.0, preview(text)])?;
        }
        if said.is_some() || self.append.prompt.is_some() {
            sessions::touch(conn, session, now)?;
            // The session is opened next on the branch of the person's last message.
            sessions::set_current(conn, session, &self.append.head)?;
        }
        Ok(())
    }
}

/// The first words of a message, in one line.
pub(crate) fn preview(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(200) {
        Some((end, _)) => words[..end].to_owned(),
        None => words,
    }
}

/// The id or null, for a nullable column.
pub(crate) fn optional(id: Option<EntryId>) -> Option<Uuid> {
    id.map(|id| id.0)
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
