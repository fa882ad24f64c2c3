//! The agents that worked for a session.

use rusqlite::{Connection, params};
use serde_json::Value;
use tiller_protocol::command::CostBy;
use tiller_protocol::{AgentId, AgentState, Cost, SessionId, Time, Usage};
use uuid::Uuid;

use crate::error::Result;
use crate::handles::Agents;
use crate::tree::entries::uncount;
use crate::write::ticket::Ticket;

/// The last state of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    /// The session that it works for.
    pub root: SessionId,
    pub id: AgentId,
    /// Its own session.
    pub session: SessionId,
    /// Its task, in the engine's form.
    pub brief: Value,
    pub state: AgentState,
    /// Its result, in the engine's form.
    pub report: Option<Value>,
    /// Its end was reported to its parent.
    pub announced: bool,
    pub created: Time,
}

/// An agent's work, as recorded in its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentWork {
    /// Replies of its model.
    pub replies: u64,
    /// Results of its calls.
    pub results: u64,
    /// The time of its last entry.
    pub last: Option<Time>,
    /// Sums over all model calls.
    pub usage: Usage,
    /// Sum of the known prices.
    pub cost: Cost,
}

/// Marks agents whose end is reported in an entry of this commit.
pub(crate) fn announced(conn: &Connection, root: SessionId, ids: &[AgentId]) -> Result<()> {
    for id in ids {
        conn.prepare_cached("UPDATE agents SET announced = 1 WHERE root = ?1 AND name = ?2")?
            .execute(params![root.0, id.0])?;
    }
    Ok(())
}

/// Maps the state of a later version to a state that is not running.
pub(crate) fn state(word: String) -> AgentState {
    serde_json::from_value(Value::String(word)).unwrap_or(AgentState::Interrupted)
}

impl Agents<'_> {
    /// Saves the state of an agent.
    pub fn put(&self, row: AgentRow) -> Ticket<()> {
        self.store.write(move |conn| {
            let state = serde_json::to_value(row.state)?;
            conn.prepare_cached(
                "INSERT INTO agents(root, name, session, brief, state, report, announced, created)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT(root, name) DO UPDATE SET session = ?3, brief = ?4, state = ?5, report = ?6,
                   announced = max(announced AND ?5 = state, ?7)",
            )?
            .execute(params![
                row.root.0,
                row.id.0,
                row.session.0,
                row.brief.to_string(),
                state.as_str().unwrap_or_default(),
                row.report.as_ref().map(Value::to_string),
                row.announced,
                row.created.millis()
            ])?;
            Ok(())
        })
    }

    /// The work of an agent, from the entries of its session.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn work(&self, session: SessionId) -> Result<AgentWork> {
        let mut worked = self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT count(*) FILTER (WHERE kind = 'assistant'),
                   count(*) FILTER (WHERE kind = 'tool_result'), max(time) FROM entries WHERE session = ?1",
            )?;
            Ok(statement.query_row(params![session.0], |r| {
                let last = r.get::<_, Option<i64>>(2)?.map(Time);
                let (replies, results) = (uncount(r.get(0)?), uncount(r.get(1)?));
                Ok(AgentWork { replies, results, last, ..AgentWork::default() })
            })?)
        })?;
        for row in self.store.costs().by(Some(session), CostBy::Model)? {
            worked.usage.add(&row.usage);
            worked.cost = worked.cost.plus(row.cost.unwrap_or_default());
        }
        Ok(worked)
    }

    /// The agents of a session, in the order in which they were started.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, root: SessionId) -> Result<Vec<AgentRow>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT name, session, brief, state, report, announced, created FROM agents
                 WHERE root = ?1 ORDER BY created, name",
            )?;
            let rows = statement.query_map(params![root.0], |r| {
                let json = |text: String| serde_json::from_str(&text).unwrap_or(Value::Null);
                Ok(AgentRow {
                    root,
                    id: AgentId(r.get(0)?),
                    session: SessionId(r.get::<_, Uuid>(1)?),
                    brief: json(r.get(2)?),
                    state: state(r.get(3)?),
                    report: r.get::<_, Option<String>>(4)?.map(json),
                    announced: r.get(5)?,
                    created: Time(r.get(6)?),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
