//! Sessions below another one: those of its agents, at any depth.

use std::collections::HashSet;

use rusqlite::{Connection, params};
use tiller_protocol::{Cost, EntryId, SessionId, Usage};

use crate::error::Result;
use crate::handles::Agents;
use crate::tree::entries::uncount;

/// All of them, without `root` itself: each after its parent, siblings in the order of their ids. Each occurs once,
/// even if an imported file has a cycle of parents.
pub(crate) fn below(conn: &Connection, root: SessionId) -> Result<Vec<SessionId>> {
    let mut statement = conn.prepare_cached(
        "SELECT s.id FROM agents a JOIN sessions s ON s.id = a.session WHERE a.root = ?1
         UNION
         SELECT s.id FROM sessions s JOIN entries e ON e.id = s.spawned_by
           WHERE s.spawned_by IS NOT NULL AND e.session = ?1
         ORDER BY 1",
    )?;
    let (mut family, mut seen) = (vec![root], HashSet::from([root]));
    let mut next = 0;
    while let Some(of) = family.get(next).copied() {
        next += 1;
        let rows = statement.query_map(params![of.0], |r| r.get(0).map(SessionId))?;
        for row in rows {
            let id = row?;
            if seen.insert(id) {
                family.push(id);
            }
        }
    }
    family.remove(0);
    Ok(family)
}

/// Usage and cost of one session's replies.
fn spent(conn: &Connection, session: SessionId) -> Result<(Usage, Option<Cost>)> {
    let mut statement = conn.prepare_cached(
        "SELECT coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0),
           coalesce(sum(cache_write), 0), coalesce(sum(reasoning), 0), sum(cost) FROM entries WHERE session = ?1",
    )?;
    Ok(statement.query_row(params![session.0], |r| {
        let n = |at: usize| r.get(at).map(uncount);
        let usage = Usage {
            input: n(0)?,
            output: n(1)?,
            cache_read: n(2)?,
            cache_write: n(3)?,
            reasoning: n(4)?,
            ..Usage::default()
        };
        Ok((usage, r.get::<_, Option<i64>>(5)?.map(|c| Cost(uncount(c)))))
    })?)
}

impl Agents<'_> {
    /// The sessions of this session's agents, at any depth.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn sessions_below(&self, session: SessionId) -> Result<Vec<SessionId>> {
        self.store.read(|conn| below(conn, session))
    }

    /// Usage of the agents that these entries started, and of the agents below them: number of agents, tokens, cost.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn spent_below(
        &self,
        session: SessionId,
        entries: &HashSet<EntryId>,
    ) -> Result<(u32, Usage, Option<Cost>)> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT s.id, s.spawned_by FROM sessions s JOIN entries e ON e.id = s.spawned_by
                 WHERE s.spawned_by IS NOT NULL AND e.session = ?1",
            )?;
            let rows = statement.query_map(params![session.0], |r| Ok((r.get(0)?, r.get(1)?)))?;
            let mut all = HashSet::new();
            for row in rows {
                let (id, by) = row?;
                if entries.contains(&EntryId(by)) && all.insert(SessionId(id)) {
                    all.extend(below(conn, SessionId(id))?);
                }
            }
            let (mut usage, mut paid) = (Usage::default(), None::<Cost>);
            for id in &all {
                let (sum, cost) = spent(conn, *id)?;
                usage.add(&sum);
                paid = match (paid, cost) {
                    (Some(a), Some(b)) => Some(a.plus(b)),
                    (a, b) => a.or(b),
                };
            }
            Ok((u32::try_from(all.len()).unwrap_or(u32::MAX), usage, paid))
        })
    }
}
