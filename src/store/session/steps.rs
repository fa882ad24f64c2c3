//! States of the workspace's files as a session saw them: ids of the snapshot store, in order.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, params};
use tiller_protocol::restore::StepFile;
use tiller_protocol::{EntryId, OpId, SessionId, Time};
use uuid::Uuid;

use crate::error::Result;
use crate::handles::Steps;
use crate::write::ticket::Ticket;

/// The subject of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOf {
    /// The state at an entry.
    Point(EntryId),
    /// The changes of a tool call.
    Call(String),
    /// The changes of a restore.
    Restore(OpId),
    /// Changes of others before a state at an entry.
    OthersBefore(EntryId),
    /// Changes of others before a tool call.
    OthersBeforeCall(String),
    /// Changes of others before a restore.
    OthersBeforeRestore(OpId),
}

/// One state, or one change from a state to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// Ascending with time; 0 for a new row.
    pub id: i64,
    pub of: StepOf,
    /// Snapshot before it; `None` for a point.
    pub before: Option<String>,
    pub after: String,
    /// Changed files, as far as they are listed.
    pub files: Vec<StepFile>,
    pub time: Time,
    /// When the state `before` was taken, where that is known.
    pub began: Option<Time>,
}

const COLUMNS: &str = "id, kind, entry, call, op, before, after, files, time, began";

fn read(row: &Row<'_>) -> rusqlite::Result<StepRow> {
    let of = match row.get::<_, String>(1)?.as_str() {
        "point" => StepOf::Point(EntryId(row.get(2)?)),
        "call" => StepOf::Call(row.get(3)?),
        "others" => match (row.get(3)?, row.get(4)?) {
            (Some(call), _) => StepOf::OthersBeforeCall(call),
            (None, Some(op)) => StepOf::OthersBeforeRestore(OpId(op)),
            (None, None) => StepOf::OthersBefore(EntryId(row.get(2)?)),
        },
        _ => StepOf::Restore(OpId(row.get(4)?)),
    };
    let files: String = row.get(7)?;
    Ok(StepRow {
        id: row.get(0)?,
        of,
        before: row.get(5)?,
        after: row.get(6)?,
        // An unreadable list only loses the names.
        files: serde_json::from_str(&files).unwrap_or_default(),
        time: Time(row.get(8)?),
        began: row.get::<_, Option<i64>>(9)?.map(Time),
    })
}

impl Steps<'_> {
    /// Adds a row; returns its id.
    pub fn add(&self, session: SessionId, step: StepRow) -> Ticket<i64> {
        self.store.write(move |conn| {
            let (kind, entry, call, op): (_, Option<Uuid>, Option<&str>, Option<Uuid>) = match &step.of {
                StepOf::Point(entry) => ("point", Some(entry.0), None, None),
                StepOf::Call(call) => ("call", None, Some(call.as_str()), None),
                StepOf::Restore(op) => ("restore", None, None, Some(op.0)),
                StepOf::OthersBefore(entry) => ("others", Some(entry.0), None, None),
                StepOf::OthersBeforeCall(call) => ("others", None, Some(call.as_str()), None),
                StepOf::OthersBeforeRestore(op) => ("others", None, None, Some(op.0)),
            };
            conn.prepare_cached(
                "INSERT INTO steps(session, kind, entry, call, op, before, after, files, time, began)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                session.0,
                kind,
                entry,
                call,
                op,
                step.before,
                step.after,
                serde_json::to_string(&step.files)?,
                step.time.millis(),
                step.began.map(|t| t.millis())
            ])?;
            Ok(conn.last_insert_rowid())
        })
    }

    /// The rows of a session after row `id` (0: all), oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, session: SessionId, after: i64) -> Result<Vec<StepRow>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM steps WHERE session = ?1 AND id > ?2 ORDER BY id"
            ))?;
            let rows = statement.query_map(params![session.0, after], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The first state at an entry.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn point(&self, entry: EntryId) -> Result<Option<StepRow>> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM steps WHERE entry = ?1 AND kind = 'point' ORDER BY id LIMIT 1"
                ))?
                .query_row([entry.0], read)
                .optional()?)
        })
    }

    /// The last row of a session: its last known state.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn last(&self, session: SessionId) -> Result<Option<StepRow>> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM steps WHERE session = ?1 ORDER BY id DESC LIMIT 1"
                ))?
                .query_row([session.0], read)
                .optional()?)
        })
    }

    /// Files that calls and restores of other sessions of the same folder changed since `since`, each with the session
    /// that changed it last and that session's title.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn changed_elsewhere(
        &self,
        session: SessionId,
        since: Time,
    ) -> Result<HashMap<String, (SessionId, String)>> {
        let rows: Vec<(SessionId, String, String)> = self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT s.id, s.title, st.files FROM sessions s JOIN steps st ON st.session = s.id
                 WHERE s.project = (SELECT project FROM sessions WHERE id = ?1) AND s.id <> ?1
                   AND st.time >= ?2 AND st.kind IN ('call', 'restore') ORDER BY st.id",
            )?;
            let rows = statement.query_map(params![session.0, since.millis()], |r| {
                Ok((SessionId(r.get(0)?), r.get(1)?, r.get(2)?))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        let mut changed = HashMap::new();
        for (id, title, files) in rows {
            for file in serde_json::from_str::<Vec<StepFile>>(&files).unwrap_or_default() {
                changed.insert(file.path, (id, title.clone()));
            }
        }
        Ok(changed)
    }

    /// All rows of one subject, oldest first.
    pub(crate) fn of(&self, session: SessionId, of: &StepOf) -> Result<Vec<StepRow>> {
        let (kind, call) = match of {
            StepOf::Call(call) => ("call", call),
            StepOf::OthersBeforeCall(call) => ("others", call),
            _ => return Ok(Vec::new()),
        };
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM steps WHERE session = ?1 AND kind = ?2 AND call = ?3 ORDER BY id"
            ))?;
            let rows = statement.query_map(params![session.0, kind, call], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Changes of others directly before an entry.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn others_before(&self, entry: EntryId) -> Result<Option<StepRow>> {
        self.store.read(|conn| {
            Ok(conn
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM steps WHERE entry = ?1 AND kind = 'others' ORDER BY id DESC LIMIT 1"
                ))?
                .query_row([entry.0], read)
                .optional()?)
        })
    }

    /// Every snapshot that a session of `project` refers to.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn snapshots_in_use(&self, project: &str) -> Result<Vec<String>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT st.before FROM steps st JOIN sessions s ON s.id = st.session
                   WHERE s.project = ?1 AND st.before IS NOT NULL
                 UNION SELECT st.after FROM steps st JOIN sessions s ON s.id = st.session WHERE s.project = ?1",
            )?;
            let rows = statement.query_map([project], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::ChangeKind;

    use super::*;
    use crate::testing::{NOW, entry_id, grow, scratch, session};

    #[test]
    fn rows_come_back_in_order_and_go_with_their_session() {
        let (_dir, store) = scratch();
        let s = session(&store, 1);
        grow(&store, s, 1, 2);
        let row = |of, before: Option<&str>, after: &str| StepRow {
            began: None,
            id: 0,
            of,
            before: before.map(Into::into),
            after: after.into(),
            files: vec![StepFile::new("a", ChangeKind::Added)],
            time: NOW,
        };
        let point = store.steps().add(s, row(StepOf::Point(entry_id(1)), None, "s0")).wait().unwrap();
        store.steps().add(s, row(StepOf::Call("c1".into()), Some("s0"), "s1")).wait().unwrap();
        let op = OpId(entry_id(9).0);
        store.steps().add(s, row(StepOf::Restore(op), Some("s1"), "s0")).wait().unwrap();
        store.steps().add(s, row(StepOf::Point(entry_id(1)), None, "later")).wait().unwrap();
        let found = store.steps().point(entry_id(1)).unwrap().unwrap();
        assert_eq!((found.id, found.after.as_str()), (point, "s0"), "the first look at it counts");
        assert_eq!(store.steps().point(entry_id(2)).unwrap(), None);
        let rows = store.steps().list(s, point).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].of, StepOf::Call("c1".into()));
        assert_eq!((rows[1].of.clone(), rows[1].before.as_deref()), (StepOf::Restore(op), Some("s1")));
        assert_eq!(rows[0].files, row(StepOf::Restore(op), None, "").files);
        let mut used = store.steps().snapshots_in_use("/work/p").unwrap();
        used.sort();
        assert_eq!(used, ["later", "s0", "s1"]);
        assert!(store.steps().snapshots_in_use("/elsewhere").unwrap().is_empty());
        // Changes of others before an entry are no state at it.
        store.steps().add(s, row(StepOf::OthersBefore(entry_id(2)), Some("s0"), "s3")).wait().unwrap();
        store.steps().add(s, row(StepOf::OthersBeforeCall("c9".into()), Some("s3"), "s4")).wait().unwrap();
        assert_eq!(store.steps().point(entry_id(2)).unwrap(), None);
        let last = store.steps().last(s).unwrap().unwrap();
        assert_eq!((last.of, last.after.as_str()), (StepOf::OthersBeforeCall("c9".into()), "s4"));
        let before = |n| store.steps().others_before(entry_id(n)).unwrap().map(|row| row.after);
        assert_eq!([before(1), before(2)], [None, Some("s3".into())]);
        // Another session of the folder gets the session; changes by others are not attributed to that session.
        let other = session(&store, 2);
        let found = store.steps().changed_elsewhere(other, NOW).unwrap();
        assert_eq!(found["a"], (s, "session 1".to_owned()));
        assert!(store.steps().changed_elsewhere(other, Time(NOW.millis() + 1)).unwrap().is_empty());
        assert!(store.steps().changed_elsewhere(s, NOW).unwrap().is_empty());
    }
}
