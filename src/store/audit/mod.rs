//! The audit table: every action that a rule or a person decided on.

pub(crate) mod costs;

use rusqlite::{Connection, params};
use tiller_protocol::{PermissionOutcome, SessionId, Time, view::AuditRow};

use crate::error::Result;
use crate::handles::Audit;
use crate::session::sessions::like;
use crate::write::ticket::Ticket;

pub(crate) fn insert(conn: &Connection, row: &AuditRow) -> Result<i64> {
    conn.prepare_cached(
        "INSERT INTO audit(session, time, agent, tool, what, decision, by_whom, seconds, outcome)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        row.session.0,
        row.time.millis(),
        row.agent,
        row.tool,
        row.what,
        row.decision.audit_word(),
        row.by,
        // NaN cannot be stored, and a negative time would be an error of the clock.
        if row.seconds.is_finite() { row.seconds.max(0.0) } else { 0.0 },
        row.outcome.word(),
    ])?;
    Ok(conn.last_insert_rowid())
}

impl Audit<'_> {
    /// Records a decision. The returned number identifies the row for [`Audit::finish`].
    pub fn record(&self, row: AuditRow) -> Ticket<i64> {
        self.store.write(move |conn| insert(conn, &row))
    }

    /// Adds the outcome to a row.
    pub fn finish(&self, row: i64, seconds: f64, outcome: &str) -> Ticket<()> {
        let outcome = outcome.to_owned();
        let seconds = if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        self.store.write(move |conn| {
            conn.prepare_cached("UPDATE audit SET seconds = ?2, outcome = ?3 WHERE id = ?1")?
                .execute(params![row, seconds, outcome])?;
            Ok(())
        })
    }

    /// The last `limit` rows (0: all) that contain every word of `filter`, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, session: Option<SessionId>, filter: &str, limit: u32) -> Result<Vec<AuditRow>> {
        let words: Vec<String> = filter.split_whitespace().map(like).collect();
        let clauses: String = (0..words.len())
            .map(|n| {
                format!(
                    " AND (agent || ' ' || tool || ' ' || what || ' ' || decision || ' ' || by_whom || ' ' || outcome)
                      LIKE ?{} ESCAPE '\\'",
                    n + 3
                )
            })
            .collect();
        let limit = if limit == 0 { -1 } else { i64::from(limit) };
        self.store.read(|conn| {
            let mut statement = conn.prepare(&format!(
                "SELECT session, time, agent, tool, what, decision, by_whom, seconds, outcome FROM audit
                 WHERE (?1 IS NULL OR session = ?1){clauses} ORDER BY id DESC LIMIT ?2"
            ))?;
            let id = session.map(|s| s.0);
            let mut values: Vec<&dyn rusqlite::ToSql> = vec![&id, &limit];
            values.extend(words.iter().map(|w| w as &dyn rusqlite::ToSql));
            let rows = statement.query_map(values.as_slice(), |r| {
                Ok(AuditRow {
                    session: SessionId(r.get(0)?),
                    time: Time(r.get(1)?),
                    agent: r.get(2)?,
                    tool: r.get(3)?,
                    what: r.get(4)?,
                    decision: PermissionOutcome::from_audit_word(&r.get::<_, String>(5)?),
                    by: r.get(6)?,
                    seconds: r.get(7)?,
                    outcome: r.get::<_, String>(8)?.as_str().into(),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
