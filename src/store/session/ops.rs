//! The operation log: rows are only added.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::{Op, OpId, SessionId};

use crate::error::Result;
use crate::handles::Sessions;

/// Adds `op` after the last one of its session, which becomes its parent.
pub(crate) fn append(conn: &Connection, op: &Op) -> Result<()> {
    let last = conn
        .prepare_cached("SELECT id FROM ops WHERE session = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row(params![op.session.0], |r| r.get(0).map(OpId))
        .optional()?;
    insert(conn, &Op { parent: op.parent.or(last), ..op.clone() })
}

/// Adds `op` unchanged.
pub(crate) fn insert(conn: &Connection, op: &Op) -> Result<()> {
    conn.prepare_cached("INSERT INTO ops(id, session, body) VALUES(?1, ?2, ?3)")?.execute(params![
        op.id.0,
        op.session.0,
        serde_json::to_string(op)?
    ])?;
    Ok(())
}

impl Sessions<'_> {
    /// The last `limit` operations of a session, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn ops(&self, session: SessionId, limit: u32) -> Result<Vec<Op>> {
        let bodies: Vec<String> = self.store.read(|conn| {
            let mut statement =
                conn.prepare_cached("SELECT body FROM ops WHERE session = ?1 ORDER BY seq DESC LIMIT ?2")?;
            let rows = statement.query_map(params![session.0, limit], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })?;
        bodies.iter().map(|body| Ok(serde_json::from_str(body)?)).collect()
    }
}
