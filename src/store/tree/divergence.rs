//! The common part of two paths of a session.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::EntryId;
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Tree;

/// Two entries and their last common entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The last entry on both paths; `None`: there is none.
    pub base: Option<EntryId>,
    /// Number of entries of each path after it.
    pub left: u64,
    pub right: u64,
}

fn above(conn: &Connection, id: Uuid) -> Result<(Option<Uuid>, i64)> {
    conn.prepare_cached("SELECT parent, depth FROM entries WHERE id = ?1")?
        .query_row(params![id], |r| Ok((r.get(0)?, r.get(1)?)))
        .optional()?
        .ok_or(StoreError::NoEntry(EntryId(id)))
}

impl Tree<'_> {
    /// Finds the last common entry of two paths. Walks up only as far as they differ.
    ///
    /// # Errors
    /// [`StoreError::NoEntry`], or when the database cannot be read.
    pub fn divergence(&self, left: EntryId, right: EntryId) -> Result<Divergence> {
        self.store.read(|conn| {
            let (mut a, mut b) = (Some(left.0), Some(right.0));
            let mut apart = Divergence { base: None, left: 0, right: 0 };
            while a != b {
                let (up_a, depth_a) = a.map_or(Ok((None, -1)), |id| above(conn, id))?;
                let (up_b, depth_b) = b.map_or(Ok((None, -1)), |id| above(conn, id))?;
                if depth_a >= depth_b {
                    (a, apart.left) = (up_a, apart.left + 1);
                }
                if depth_b >= depth_a {
                    (b, apart.right) = (up_b, apart.right + 1);
                }
            }
            apart.base = a.map(EntryId);
            Ok(apart)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Append;
    use crate::testing::{entry_id, grow, scratch, session, user};

    #[test]
    fn two_paths_part_at_their_last_common_entry() {
        let (_dir, store) = scratch();
        let s = session(&store, 1);
        grow(&store, s, 1, 3);
        store.heads().set(s, "b", Some(entry_id(2)), None).wait().unwrap();
        let said = |n: u128, parent: Option<u128>| user(s, entry_id(n), parent.map(entry_id), "other");
        let more = vec![said(11, Some(2)), said(12, Some(11))];
        store.entries().append(Append::new(s, "b").entries(more)).wait().unwrap();
        store.entries().append(Append::new(s, "c").entries(vec![said(21, None)])).wait().unwrap();
        let apart = |a, b| {
            let apart = store.tree().divergence(entry_id(a), entry_id(b)).unwrap();
            (apart.base, apart.left, apart.right)
        };
        assert_eq!(apart(3, 12), (Some(entry_id(2)), 1, 2));
        assert_eq!(apart(12, 3), (Some(entry_id(2)), 2, 1));
        assert_eq!(apart(1, 3), (Some(entry_id(1)), 0, 2));
        assert_eq!(apart(3, 3), (Some(entry_id(3)), 0, 0));
        assert_eq!(apart(3, 21), (None, 3, 1));
        assert!(store.tree().divergence(entry_id(3), entry_id(99)).is_err());
    }
}
