//! Sessions: creating, finding, naming and archiving.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_protocol::op::OpChange;
use tiller_protocol::{Cost, EntryId, ModelRef, Op, Profile, SessionId, SessionSummary, Time};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Sessions;
use crate::lease;
use crate::lease::hold::LivenessCheck;
use crate::search::expiry;
use crate::session::made_by::MadeBy;
use crate::session::ops;
use crate::tree::entries::uncount;
use crate::write::ticket::Ticket;

/// The properties of a new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub id: SessionId,
    /// Absolute real path of the workspace.
    pub project: String,
    pub title: String,
    pub model: ModelRef,
    pub profile: Profile,
    /// The entry of another session that started it (for agents). Such sessions are not listed.
    pub spawned_by: Option<EntryId>,
    pub made_by: MadeBy,
}

/// A session's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub summary: SessionSummary,
    pub profile: Profile,
    /// Name of the current head.
    pub head: String,
    /// The session's own hard budget.
    pub budget: Option<Cost>,
    pub spawned_by: Option<EntryId>,
    /// When it was moved to the trash.
    pub trashed: Option<Time>,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only of this workspace; `None`: of all.
    pub project: Option<String>,
    /// Words that must all occur in title, preview, project or id.
    pub text: String,
    pub archived: bool,
    /// List the trash instead.
    pub trashed: bool,
    /// Include runs without a screen.
    pub exec: bool,
    /// Maximum number; 0: all.
    pub limit: u32,
}

const COLUMNS: &str = "s.id, s.title, s.project, s.created, s.used, s.entries, s.model, s.cost, s.archived, \
   s.preview, s.profile, s.head, s.budget, s.spawned_by, s.trashed, l.pid, l.start, l.boot, l.space, r.what, l.nonce, s.origin,
   s.git_branch";
const FROM: &str = "sessions s LEFT JOIN leases l ON l.session = s.id AND l.head = s.head
   LEFT JOIN running r ON r.session = s.id AND r.head = s.head";

fn from_row(row: &Row<'_>, judge: &LivenessCheck) -> rusqlite::Result<SessionRow> {
    let holder = match row.get::<_, Option<Uuid>>(20)? {
        None => None,
        Some(nonce) => Some(lease::process_from(row, 15)?).filter(|process| judge.alive(nonce, process)),
    };
    let profile: String = row.get(10)?;
    let what: Option<String> = row.get(19)?;
    Ok(SessionRow {
        summary: SessionSummary {
            id: SessionId(row.get(0)?),
            title: row.get(1)?,
            project: row.get(2)?,
            created: Time(row.get(3)?),
            used: Time(row.get(4)?),
            entries: uncount(row.get(5)?),
            model: ModelRef(row.get(6)?),
            cost: row.get::<_, Option<i64>>(7)?.map(|c| Cost(uncount(c))),
            archived: row.get(8)?,
            exec: MadeBy::of(&row.get::<_, String>("origin")?) != MadeBy::Person,
            preview: row.get(9)?,
            git_branch: row.get("git_branch")?,
            // A running turn is interrupted only when no process works on it.
            interrupted: if holder.is_some() { None } else { what },
            open_in: holder.map(|h| h.pid.to_string()),
        },
        profile: profile.parse().unwrap_or_default(),
        head: row.get(11)?,
        budget: row.get::<_, Option<i64>>(12)?.map(|c| Cost(uncount(c))),
        spawned_by: row.get::<_, Option<Uuid>>(13)?.map(EntryId),
        trashed: row.get::<_, Option<i64>>(14)?.map(Time),
    })
}

/// Adds the cost of their agents, at any depth, to those of the sessions.
fn with_agents(conn: &Connection, sessions: &mut [SessionSummary]) -> Result<()> {
    let mut statement = conn.prepare_cached(
        "SELECT a.root, c.cost FROM agents a JOIN sessions c ON c.id = a.session WHERE c.cost IS NOT NULL",
    )?;
    let mut sums: HashMap<Uuid, Cost> = HashMap::new();
    for row in statement.query_map([], |row| Ok((row.get::<_, Uuid>(0)?, row.get::<_, i64>(1)?)))? {
        let (root, cost) = row?;
        let sum = sums.entry(root).or_default();
        *sum = sum.plus(Cost(uncount(cost)));
    }
    for session in sessions {
        if let Some(agents) = sums.get(&session.id.0) {
            session.cost = Some(session.cost.unwrap_or_default().plus(*agents));
        }
    }
    Ok(())
}

pub(crate) fn must_exist(conn: &Connection, id: SessionId) -> Result<()> {
    conn.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?
        .query_row(params![id.0], |_| Ok(()))
        .optional()?
        .ok_or(StoreError::NoSession(id))
}

/// Records an action of the person: the session moves to the top of the list.
pub(crate) fn touch(conn: &Connection, id: SessionId, now: Time) -> Result<()> {
    conn.prepare_cached(
        "UPDATE sessions SET used = ?2, used_order = 1 + (SELECT max(used_order) FROM sessions) WHERE id = ?1",
    )?
    .execute(params![id.0, now.millis()])?;
    Ok(())
}

/// Sets the head on which the session is opened.
pub(crate) fn set_current(conn: &Connection, id: SessionId, head: &str) -> Result<()> {
    conn.prepare_cached("UPDATE sessions SET head = ?2 WHERE id = ?1 AND head <> ?2")?
        .execute(params![id.0, head])?;
    Ok(())
}

/// Escapes `%` and `_` in a person's words.
pub(crate) fn like(word: &str) -> String {
    format!("%{}%", word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"))
}

impl Sessions<'_> {
    /// Creates a session. It is listed from the person's first message on.
    pub fn create(&self, new: NewSession) -> Ticket<()> {
        let now = self.store.now();
        self.store.write(move |conn| {
            conn.execute(
                "INSERT INTO sessions(id, project, title, created, used, used_order, model, profile, spawned_by,
                   origin)
                 VALUES(?1, ?2, ?3, ?4, ?4, 0, ?5, ?6, ?7, ?8)",
                params![
                    new.id.0,
                    new.project,
                    new.title,
                    now.millis(),
                    new.model.0,
                    new.profile.name(),
                    new.spawned_by.map(|e| e.0),
                    new.made_by.name()
                ],
            )?;
            Ok(())
        })
    }

    /// Records that the person did something other than send a message: the session is listed from now on, with these
    /// words until it has a message.
    pub fn mark_used(&self, id: SessionId, words: String) -> Ticket<()> {
        let now = self.store.now();
        self.store.write(move |conn| {
            conn.prepare_cached("UPDATE sessions SET preview = ?2 WHERE id = ?1 AND preview = ''")?
                .execute(params![id.0, crate::tree::append::preview(&words)])?;
            touch(conn, id, now)
        })
    }

    /// One session.
    ///
    /// # Errors
    /// [`StoreError::NoSession`].
    pub fn get(&self, id: SessionId) -> Result<SessionRow> {
        self.store.read(|conn| {
            let judge = LivenessCheck::of(conn);
            conn.prepare_cached(&format!("SELECT {COLUMNS} FROM {FROM} WHERE s.id = ?1"))?
                .query_row(params![id.0], |row| from_row(row, &judge))
                .optional()?
                .ok_or(StoreError::NoSession(id))
        })
    }

    /// Sessions by the time of the person's last action, newest first. Sessions without messages, and those of agents,
    /// are left out.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<SessionSummary>> {
        let words: Vec<String> = filter.text.split_whitespace().map(str::to_lowercase).collect();
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit as usize };
        self.store.read(|conn| {
            let judge = LivenessCheck::of(conn);
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM {FROM}
                 WHERE (?1 IS NULL OR s.project = ?1) AND s.spawned_by IS NULL AND s.used_order > 0
                   AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.session = s.id)
                   AND (s.trashed IS NOT NULL) = ?2 AND (?3 OR s.archived = 0) AND s.origin <> 'ephemeral' AND (?4 OR s.origin <> 'exec')
                 ORDER BY s.used_order DESC"
            ))?;
            let rows = statement.query_map(
                params![
                    filter.project,
                    filter.trashed,
                    filter.archived || filter.trashed,
                    filter.exec || filter.trashed
                ],
                |row| from_row(row, &judge),
            )?;
            let mut found = Vec::new();
            for row in rows {
                let s = row?.summary;
                let all = format!("{} {} {} {}", s.title, s.preview, s.project, s.id).to_lowercase();
                if words.iter().all(|word| all.contains(word.as_str())) {
                    found.push(s);
                }
                if found.len() == limit {
                    break;
                }
            }
            with_agents(conn, &mut found)?;
            Ok(found)
        })
    }

    /// The session for `--continue` at the screen: the session that a person used last in this workspace. If there is none,
    /// that of the last run without a screen.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn last_own(&self, project: &str) -> Result<Option<SessionSummary>> {
        let filter = Filter { project: Some(project.into()), limit: 1, ..Filter::default() };
        match self.list(&filter)?.pop() {
            Some(own) => Ok(Some(own)),
            None => self.last(project),
        }
    }

    /// The session for `--continue` without a screen: the one last used in this workspace, with or without a screen.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn last(&self, project: &str) -> Result<Option<SessionSummary>> {
        let filter = Filter { project: Some(project.into()), exec: true, limit: 1, ..Filter::default() };
        Ok(self.list(&filter)?.pop())
    }

    /// Records that a person continues it at the screen: from now on it is listed like other sessions of persons, and found
    /// by searches.
    pub fn adopt(&self, id: SessionId) -> Ticket<()> {
        self.store.write(move |conn| {
            let before: Option<String> = conn
                .prepare_cached("SELECT origin FROM sessions WHERE id = ?1")?
                .query_row([id.0], |r| r.get(0))
                .optional()?;
            change(conn, id, "origin", &MadeBy::Person.name())?;
            if before.is_some_and(|name| MadeBy::of(&name) == MadeBy::Ephemeral) {
                // It was indexed without its words.
                expiry::expire(conn)?;
            }
            Ok(())
        })
    }

    /// Finds a session by its id or a prefix of it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] when several match.
    pub fn find(&self, prefix: &str) -> Result<SessionId> {
        let wanted: String = prefix.chars().filter(|c| *c != '-').collect::<String>().to_lowercase();
        let ids: Vec<Uuid> = self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT id FROM sessions WHERE lower(hex(id)) LIKE ?1 ESCAPE '\\' ORDER BY used_order DESC LIMIT 2",
            )?;
            let pattern = like(&wanted);
            let rows = statement.query_map(params![&pattern[1..]], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        match ids.as_slice() {
            _ if wanted.is_empty() => Err(StoreError::NotFound("session without an id".into())),
            [id] => Ok(SessionId(*id)),
            [] => Err(StoreError::NotFound(format!("session {prefix}"))),
            _ => Err(StoreError::Conflict(format!("several sessions begin with {prefix}"))),
        }
    }

    /// Sets the title of a session, by the person (which moves the session up) or by a model. The title before is
    /// filled into `op`.
    pub fn set_title(&self, id: SessionId, title: &str, by_person: bool, op: Option<Op>) -> Ticket<()> {
        let (title, now) = (title.to_owned(), self.store.now());
        self.store.write(move |conn| {
            let op = match &op {
                Some(Op { change: OpChange::Title { after, .. }, .. }) => {
                    let before = value(conn, id, "title")?;
                    let change = OpChange::Title { before, after: after.clone() };
                    op.clone().map(|op| Op { change, ..op })
                }
                other => other.clone(),
            };
            change(conn, id, "title", &title)?;
            if by_person {
                touch(conn, id, now)?;
            }
            op.as_ref().map_or(Ok(()), |op| ops::append(conn, op))
        })
    }

    /// Sets the title of a session that has none: a model's title never replaces a person's, in whichever process that
    /// was set.
    pub fn set_title_if_none(&self, id: SessionId, title: &str) -> Ticket<()> {
        let title = title.to_owned();
        self.store.write(move |conn| {
            conn.prepare_cached("UPDATE sessions SET title = ?2 WHERE id = ?1 AND title = ''")?
                .execute(params![id.0, title])?;
            Ok(())
        })
    }

    /// Archives a session, or brings it back.
    pub fn set_archived(&self, id: SessionId, archived: bool, op: Option<Op>) -> Ticket<()> {
        self.store.write(move |conn| {
            change(conn, id, "archived", &archived)?;
            op.as_ref().map_or(Ok(()), |op| ops::append(conn, op))
        })
    }

    /// The model of the session's next turns.
    pub fn set_model(&self, id: SessionId, model: &ModelRef) -> Ticket<()> {
        let model = model.0.clone();
        self.store.write(move |conn| change(conn, id, "model", &model))
    }

    /// The git branch that is checked out in the session's workspace.
    pub fn set_git_branch(&self, id: SessionId, branch: &str) -> Ticket<()> {
        let branch = branch.to_owned();
        self.store.write(move |conn| change(conn, id, "git_branch", &branch))
    }

    /// The session's permission profile.
    pub fn set_profile(&self, id: SessionId, profile: Profile) -> Ticket<()> {
        self.store.write(move |conn| change(conn, id, "profile", &profile.name()))
    }

    /// The session's own hard budget.
    pub fn set_budget(&self, id: SessionId, budget: Option<Cost>) -> Ticket<()> {
        let micro = budget.map(|c| crate::tree::entries::count(c.0));
        self.store.write(move |conn| change(conn, id, "budget", &micro))
    }

    /// Undoes a change of title or archive state: restores the value before.
    pub fn revert(&self, undone: &Op, op: Op) -> Ticket<()> {
        match &undone.change {
            OpChange::Head { name, before, .. } => {
                self.store.heads().set(undone.session, name, *before, Some(op))
            }
            OpChange::Title { before, .. } => self.set_title(undone.session, before, true, Some(op)),
            OpChange::Archived { before, .. } => self.set_archived(undone.session, *before, Some(op)),
            OpChange::Label { name, before, .. } => {
                self.store.branches().set_label(undone.session, name, before, Some(op))
            }
            OpChange::BranchArchived { name, before, .. } => {
                self.store.branches().set_archived(undone.session, name, *before, Some(op))
            }
            OpChange::Tag { name, before, .. } => {
                self.store.tags().set(undone.session, name, *before, Some(op))
            }
            // The snapshots restore the files; a new branch is created when the session is opened.
            OpChange::Files { .. } | OpChange::Compaction { .. } => {
                Ticket::ready(Err(StoreError::Conflict("this is not undone by a row alone".into())))
            }
        }
    }
}

/// `column` is a constant of this file.
fn value(conn: &Connection, id: SessionId, column: &'static str) -> Result<String> {
    conn.prepare_cached(&format!("SELECT {column} FROM sessions WHERE id = ?1"))?
        .query_row(params![id.0], |r| r.get(0))
        .optional()?
        .ok_or(StoreError::NoSession(id))
}

/// `column` is a constant of this file, never a caller's text.
fn change(conn: &Connection, id: SessionId, column: &'static str, to: &dyn rusqlite::ToSql) -> Result<()> {
    let rows = conn
        .prepare_cached(&format!("UPDATE sessions SET {column} = ?2 WHERE id = ?1"))?
        .execute(params![id.0, to])?;
    if rows == 0 { Err(StoreError::NoSession(id)) } else { Ok(()) }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
