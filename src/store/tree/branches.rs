//! Branches and tags: names that the person gives to heads and entries, and archived branches. Nothing is deleted.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::op::OpChange;
use tiller_protocol::{EntryId, Op, SessionId, Time};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Branches;
use crate::session::ops;
use crate::write::ticket::Ticket;

/// A head, as the person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    /// Never changes; leases and queues refer to it.
    pub name: String,
    /// The name that the person gave it; empty: none.
    pub label: String,
    /// Its last entry; `None`: it has no entries.
    pub entry: Option<EntryId>,
    /// Time of that entry.
    pub time: Option<Time>,
    pub archived: bool,
    /// Process id of a living process that has it open.
    pub open_in: Option<u32>,
}

impl Branches<'_> {
    /// The branches of a session, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, session: SessionId) -> Result<Vec<BranchRow>> {
        self.store.read(|conn| {
            let judge = crate::lease::hold::LivenessCheck::of(conn);
            let mut statement = conn.prepare_cached(
                "SELECT h.name, h.label, h.entry, e.time, h.archived, l.pid, l.start, l.boot, l.space, l.nonce
                 FROM heads h LEFT JOIN entries e ON e.id = h.entry
                   LEFT JOIN leases l ON l.session = h.session AND l.head = h.name
                 WHERE h.session = ?1 ORDER BY h.name",
            )?;
            let rows = statement.query_map(params![session.0], |r| {
                let open_in = match r.get::<_, Option<Uuid>>(9)? {
                    Some(nonce) => {
                        let process = crate::lease::process_from(r, 5)?;
                        judge.alive(nonce, &process).then_some(process.pid)
                    }
                    None => None,
                };
                Ok(BranchRow {
                    name: r.get(0)?,
                    label: r.get(1)?,
                    entry: r.get::<_, Option<Uuid>>(2)?.map(EntryId),
                    time: r.get::<_, Option<i64>>(3)?.map(Time),
                    archived: r.get(4)?,
                    open_in,
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Names a branch (empty: removes the name). The name before is filled into `op`.
    ///
    /// The ticket's error is [`StoreError::Conflict`] when another branch has that name.
    pub fn set_label(&self, session: SessionId, head: &str, label: &str, op: Option<Op>) -> Ticket<()> {
        let (head, label) = (head.to_owned(), label.to_owned());
        self.store.write(move |conn| {
            let taken: bool = conn
                .prepare_cached(
                    "SELECT exists(SELECT 1 FROM heads
                   WHERE session = ?1 AND name <> ?2 AND ?3 <> '' AND (label = ?3 OR name = ?3))",
                )?
                .query_row(params![session.0, head, label], |r| r.get(0))?;
            if taken {
                return Err(StoreError::Conflict(format!("another branch is already named {label}")));
            }
            let was: String = column(conn, session, &head, "label")?;
            conn.prepare_cached("UPDATE heads SET label = ?3 WHERE session = ?1 AND name = ?2")?
                .execute(params![session.0, head, label])?;
            logged(conn, op.as_ref(), |change| {
                if let OpChange::Label { before, .. } = change {
                    *before = was;
                }
            })
        })
    }

    /// Archives a branch, or brings it back.
    pub fn set_archived(&self, session: SessionId, head: &str, archived: bool, op: Option<Op>) -> Ticket<()> {
        let head = head.to_owned();
        self.store.write(move |conn| {
            let was: bool = column(conn, session, &head, "archived")?;
            conn.prepare_cached("UPDATE heads SET archived = ?3 WHERE session = ?1 AND name = ?2")?
                .execute(params![session.0, head, archived])?;
            logged(conn, op.as_ref(), |change| {
                if let OpChange::BranchArchived { before, .. } = change {
                    *before = was;
                }
            })
        })
    }
}

/// `column` is a constant of this file.
fn column<T: rusqlite::types::FromSql>(
    conn: &Connection,
    session: SessionId,
    head: &str,
    column: &'static str,
) -> Result<T> {
    conn.prepare_cached(&format!("SELECT {column} FROM heads WHERE session = ?1 AND name = ?2"))?
        .query_row(params![session.0, head], |r| r.get(0))
        .optional()?
        .ok_or_else(|| StoreError::NotFound(format!("branch {head}")))
}

/// Adds the operation; `right` fills in the value before.
pub(crate) fn logged(conn: &Connection, op: Option<&Op>, right: impl FnOnce(&mut OpChange)) -> Result<()> {
    let Some(op) = op else { return Ok(()) };
    let mut op = op.clone();
    right(&mut op.change);
    ops::append(conn, &op)
}

#[cfg(test)]
mod tests {
    use tiller_protocol::OpId;

    use super::*;
    use crate::testing::{NOW, entry_id, grow, scratch, session};
    use crate::tree::tags::TagRow;

    fn op(session: SessionId, n: u128, change: OpChange) -> Option<Op> {
        let id = OpId(Uuid::from_u128(n));
        Some(Op {
            id,
            session,
            time: NOW,
            parent: None,
            cause: None,
            title: "t".into(),
            of: None,
            with: None,
            change,
        })
    }

    #[test]
    fn branches_are_named_put_away_and_tagged_with_inverses_in_the_log() {
        let (_dir, store) = scratch();
        let s = session(&store, 1);
        grow(&store, s, 1, 3);
        store.heads().set(s, "branch-2", Some(entry_id(2)), None).wait().unwrap();
        let label = |before: &str, after: &str| OpChange::Label {
            name: "branch-2".into(),
            before: before.into(),
            after: after.into(),
        };
        store.branches().set_label(s, "branch-2", "try b", op(s, 1, label("", "try b"))).wait().unwrap();
        store.branches().set_label(s, "branch-2", "plan b", op(s, 2, label("", "plan b"))).wait().unwrap();
        let taken = store.branches().set_label(s, "main", "plan b", None).wait();
        assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
        assert!(
            store.branches().set_label(s, "branch-2", "main", None).wait().is_err(),
            "a head has that name"
        );
        let away = OpChange::BranchArchived { name: "branch-2".into(), before: false, after: true };
        store.branches().set_archived(s, "branch-2", true, op(s, 3, away)).wait().unwrap();
        let rows = store.branches().list(s).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].label.as_str(), rows[0].archived, rows[0].entry),
            ("plan b", true, Some(entry_id(2)))
        );
        assert_eq!(
            (rows[1].name.as_str(), rows[1].entry, rows[1].time),
            ("main", Some(entry_id(3)), Some(NOW))
        );
        let ops = store.sessions().ops(s, 10).unwrap();
        assert_eq!(ops[1].change, label("try b", "plan b"), "what it was called before is put right");
        // A branch that grows keeps its name.
        store.heads().set(s, "branch-2", Some(entry_id(1)), None).wait().unwrap();
        assert_eq!(store.branches().list(s).unwrap()[0].label, "plan b");

        store.tags().set(s, "good", Some(entry_id(1)), None).wait().unwrap();
        let tag = OpChange::Tag { name: "good".into(), before: None, after: Some(entry_id(2)) };
        store.tags().set(s, "good", Some(entry_id(2)), op(s, 4, tag)).wait().unwrap();
        assert_eq!(store.tags().list(s).unwrap(), [TagRow { name: "good".into(), entry: entry_id(2) }]);
        let moved =
            OpChange::Tag { name: "good".into(), before: Some(entry_id(1)), after: Some(entry_id(2)) };
        assert_eq!(store.sessions().ops(s, 1).unwrap()[0].change, moved);
        assert!(store.tags().set(s, "no", Some(entry_id(9)), None).wait().is_err());
        let taken = store.tags().add(s, "good", entry_id(1), None).wait();
        assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
        store.tags().set(s, "good", None, None).wait().unwrap();
        assert!(store.tags().set(s, "good", None, None).wait().is_err());
        assert_eq!(store.tags().list(s).unwrap(), []);
        assert!(store.branches().set_label(s, "gone", "x", None).wait().is_err());
    }
}
