//! Heads: named pointers into the tree. A branch is a head.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{EntryId, Op, SessionId};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Heads;
use crate::tree::append::optional;
use crate::write::ticket::Ticket;
use crate::{session::ops, session::sessions, tree::entries};

/// A head's row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) entry: Option<Uuid>,
    pub(crate) todo: Option<i64>,
}

pub(crate) fn get(conn: &Connection, session: SessionId, name: &str) -> Result<Option<Head>> {
    Ok(conn
        .prepare_cached("SELECT entry, todo FROM heads WHERE session = ?1 AND name = ?2")?
        .query_row(params![session.0, name], |r| Ok(Head { entry: r.get(0)?, todo: r.get(1)? }))
        .optional()?)
}

pub(crate) fn put(
    conn: &Connection,
    session: SessionId,
    name: &str,
    entry: Option<Uuid>,
    todo: Option<i64>,
) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO heads(session, name, entry, todo) VALUES(?1, ?2, ?3, ?4)
         ON CONFLICT(session, name) DO UPDATE SET entry = excluded.entry, todo = excluded.todo",
    )?
    .execute(params![session.0, name, entry, todo])?;
    Ok(())
}

impl Heads<'_> {
    /// The entry of a head. `None`: there is no such head, or it has no entries.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn get(&self, session: SessionId, name: &str) -> Result<Option<EntryId>> {
        self.store.read(|conn| Ok(get(conn, session, name)?.and_then(|h| h.entry).map(EntryId)))
    }

    /// All heads of a session, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, session: SessionId) -> Result<Vec<(String, Option<EntryId>)>> {
        self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT name, entry FROM heads WHERE session = ?1 ORDER BY name")?;
            let rows = statement.query_map(params![session.0], |r| {
                Ok((r.get(0)?, r.get::<_, Option<Uuid>>(1)?.map(EntryId)))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Moves a head (or creates it) without adding an entry: fork, jump, undo. It becomes the session's current head,
    /// and takes the todo list of its entry.
    pub fn set(&self, session: SessionId, name: &str, entry: Option<EntryId>, op: Option<Op>) -> Ticket<()> {
        let name = name.to_owned();
        self.store.write(move |conn| {
            sessions::must_exist(conn, session)?;
            let todo = match entry {
                None => None,
                Some(id) => {
                    let there = entries::inherited(conn, id.0)?.ok_or(StoreError::NoEntry(id))?;
                    if there.session != session.0 {
                        return Err(StoreError::Conflict(format!("entry {id} belongs to another session")));
                    }
                    there.todo
                }
            };
            put(conn, session, &name, optional(entry), todo)?;
            sessions::set_current(conn, session, &name)?;
            op.as_ref().map_or(Ok(()), |op| ops::append(conn, op))
        })
    }

    /// Makes an existing head the session's current one, without moving it.
    ///
    /// The ticket's error is [`StoreError::NotFound`] when there is no such head.
    pub fn go_to(&self, session: SessionId, name: &str, op: Option<Op>) -> Ticket<()> {
        let name = name.to_owned();
        self.store.write(move |conn| {
            get(conn, session, &name)?.ok_or_else(|| StoreError::NotFound(format!("branch {name}")))?;
            sessions::set_current(conn, session, &name)?;
            op.as_ref().map_or(Ok(()), |op| ops::append(conn, op))
        })
    }

    /// Removes a head that was left and holds nothing of its own: its last entry is on another head's path, it has no
    /// name, nothing waits on it, and no process has it open. Returns whether it was removed. (Does not wait for the
    /// disk: a head that returns after a loss of power does no harm.)
    pub fn drop_bare(&self, session: SessionId, name: &str) -> Ticket<bool> {
        let name = name.to_owned();
        self.store.write_passing(move |conn| {
            // An entry with a child is on the path of the branch that added the child, so no path has to be walked.
            let rows = conn
                .prepare_cached(
                    "DELETE FROM heads AS h WHERE h.session = ?1 AND h.name = ?2 AND h.name <> 'main'
                       AND h.label = '' AND NOT h.archived
                       AND h.name <> (SELECT head FROM sessions WHERE id = ?1)
                       AND (h.entry IS NULL
                         OR EXISTS (SELECT 1 FROM entries e WHERE e.parent = h.entry)
                         OR EXISTS (SELECT 1 FROM heads o
                              WHERE o.session = ?1 AND o.name <> ?2 AND o.entry = h.entry))
                       AND NOT EXISTS (SELECT 1 FROM leases WHERE session = ?1 AND head = ?2)
                       AND NOT EXISTS (SELECT 1 FROM running WHERE session = ?1 AND head = ?2)
                       AND NOT EXISTS (SELECT 1 FROM queue WHERE session = ?1 AND head = ?2)
                       AND NOT EXISTS (SELECT 1 FROM asks WHERE session = ?1 AND head = ?2)
                       AND NOT EXISTS (SELECT 1 FROM pending WHERE session = ?1 AND head = ?2)",
                )?
                .execute(params![session.0, name])?;
            Ok(rows > 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::lease::AcquireMode;
    use crate::open::Store;
    use crate::testing::{entry_id, grow, scratch, session};

    #[test]
    fn only_a_head_without_anything_of_its_own_is_taken_away() {
        let (_dir, store) = scratch();
        let s = session(&store, 1);
        grow(&store, s, 1, 3);
        let names = |store: &Store| -> Vec<String> {
            store.heads().list(s).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        let drop = |name: &str| store.heads().drop_bare(s, name).wait().unwrap();
        for (name, at) in
            [("empty", None), ("shared", Some(2)), ("named", Some(2)), ("held", Some(2)), ("now", Some(2))]
        {
            store.heads().set(s, name, at.map(entry_id), None).wait().unwrap();
        }
        store.branches().set_label(s, "named", "plan b", None).wait().unwrap();
        let lease = store.leases().acquire(s, "held", AcquireMode::IfFree).wait().unwrap();
        assert!(!drop("named") && !drop("held") && !drop("now") && !drop("main") && !drop("nobody"));
        assert!(drop("empty") && drop("shared"));
        store.leases().release(lease).wait().unwrap();
        assert!(drop("held"));
        // No other head ends at its last entry.
        store.heads().set(s, "tip", Some(entry_id(3)), None).wait().unwrap();
        store.heads().set(s, "main", Some(entry_id(1)), None).wait().unwrap();
        assert!(!drop("tip"));
        assert_eq!(names(&store), ["main", "named", "now", "tip"]);
        assert!(store.heads().go_to(s, "empty", None).wait().is_err());
        store.heads().go_to(s, "tip", None).wait().unwrap();
        assert_eq!(store.sessions().get(s).unwrap().head, "tip");
        assert_eq!(store.heads().get(s, "tip").unwrap(), Some(entry_id(3)));
    }
}
