//! The workflows of a session.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use serde_json::Value;
use tiller_protocol::workflow::StepState;
use tiller_protocol::{AgentId, SessionId, Time};

use crate::error::Result;
use crate::handles::Workflows;
use crate::write::ticket::Ticket;

/// The last state of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowRow {
    /// The session that it works for.
    pub root: SessionId,
    /// `w1`, `w2`, ...
    pub id: String,
    /// Its definition, in the engine's form.
    pub definition: Value,
    pub state: StepState,
    pub created: Time,
    /// The main agent has received its result.
    pub announced: bool,
    /// By the step's id; a step without a row has not begun.
    pub steps: BTreeMap<String, WorkflowStep>,
}

/// One step of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkflowStep {
    pub state: StepState,
    /// The agent that works on it, or did so last.
    pub agent: Option<AgentId>,
    /// Its result, in the engine's form.
    pub report: Option<Value>,
}

fn word(state: StepState) -> Result<String> {
    Ok(serde_json::to_value(state)?.as_str().unwrap_or_default().to_owned())
}

/// Maps the state of a later version to a state that is not running.
fn state(word: String) -> StepState {
    serde_json::from_value(Value::String(word)).unwrap_or(StepState::Interrupted)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// Marks workflows whose end is reported in an entry of this commit.
pub(crate) fn announced(conn: &Connection, root: SessionId, ids: &[String]) -> Result<()> {
    for id in ids {
        conn.prepare_cached("UPDATE workflows SET announced = 1 WHERE root = ?1 AND id = ?2")?
            .execute(params![root.0, id])?;
    }
    Ok(())
}

impl Workflows<'_> {
    /// Saves a workflow without its steps.
    pub fn put(&self, row: WorkflowRow) -> Ticket<()> {
        self.store.write(move |conn| {
            conn.prepare_cached(
                "INSERT INTO workflows(root, id, definition, state, created, announced)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT(root, id) DO UPDATE SET definition = ?3, state = ?4,
                   announced = max(announced AND ?4 = state, ?6)",
            )?
            .execute(params![
                row.root.0,
                row.id,
                row.definition.to_string(),
                word(row.state)?,
                row.created.millis(),
                row.announced
            ])?;
            Ok(())
        })
    }

    /// Saves one step.
    pub fn put_step(&self, root: SessionId, workflow: String, step: String, row: WorkflowStep) -> Ticket<()> {
        self.store.write(move |conn| {
            conn.prepare_cached(
                "INSERT INTO workflow_steps(root, workflow, step, state, agent, report)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT(root, workflow, step) DO UPDATE SET state = ?4, agent = ?5, report = ?6",
            )?
            .execute(params![
                root.0,
                workflow,
                step,
                word(row.state)?,
                row.agent.as_ref().map(|a| &a.0),
                row.report.as_ref().map(Value::to_string)
            ])?;
            Ok(())
        })
    }

    /// The workflows of a session, in the order of their start.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, root: SessionId) -> Result<Vec<WorkflowRow>> {
        self.store.read(|conn| {
            let mut statement = conn.prepare_cached(
                "SELECT id, definition, state, created, announced FROM workflows
                 WHERE root = ?1 ORDER BY created, id",
            )?;
            let rows = statement.query_map(params![root.0], |r| {
                Ok(WorkflowRow {
                    root,
                    id: r.get(0)?,
                    definition: json(&r.get::<_, String>(1)?),
                    state: state(r.get(2)?),
                    created: Time(r.get(3)?),
                    announced: r.get(4)?,
                    steps: BTreeMap::new(),
                })
            })?;
            let mut all: Vec<WorkflowRow> = rows.collect::<rusqlite::Result<_>>()?;
            for row in &mut all {
                row.steps = steps(conn, root, &row.id)?;
            }
            Ok(all)
        })
    }
}

fn steps(conn: &Connection, root: SessionId, workflow: &str) -> Result<BTreeMap<String, WorkflowStep>> {
    let mut statement = conn.prepare_cached(
        "SELECT step, state, agent, report FROM workflow_steps WHERE root = ?1 AND workflow = ?2",
    )?;
    let rows = statement.query_map(params![root.0, workflow], |r| {
        let row = WorkflowStep {
            state: state(r.get(1)?),
            agent: r.get::<_, Option<String>>(2)?.map(AgentId),
            report: r.get::<_, Option<String>>(3)?.map(|t| json(&t)),
        };
        Ok((r.get(0)?, row))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
#[path = "workflows_tests.rs"]
mod tests;
