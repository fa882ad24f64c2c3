//! Exports a session as JSONL, with those of its agents, from one state of the database. The format is in
//! [`crate::transfer::lines`].

use std::collections::HashSet;
use std::io::{BufWriter, Write};

use crate::error::{Result, StoreError};
use crate::handles::Transfer;
use crate::session::family;
use crate::transfer::lines::{
    AgentLine, AuditLine, CallLine, EntryLine, HeadLine, Header, Line, SessionLine, StepLine, TagLine,
    VERSION, Waiting, WorkflowLine, WorkflowStepLine,
};
use crate::tree::entries::{COLUMNS, Raw};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::value::RawValue;
use tiller_protocol::{EntryId, PermissionOutcome, SessionId};

fn raw(text: String) -> Result<Box<RawValue>> {
    Ok(RawValue::from_string(text)?)
}

/// Writes one JSON value and a line feed.
struct Lines<'a> {
    out: BufWriter<&'a mut dyn Write>,
    count: u64,
}

impl Lines<'_> {
    fn put(&mut self, line: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n").map_err(|e| StoreError::from_io(&e, "export".as_ref()))?;
        self.count += 1;
        Ok(())
    }

    /// Writes every row of `query` (with the session as its parameter) as the line that `to` creates.
    fn all(
        &mut self,
        conn: &Connection,
        session: SessionId,
        query: &str,
        to: fn(&Row<'_>) -> Result<Line>,
    ) -> Result<()> {
        let mut statement = conn.prepare(query)?;
        let mut rows = statement.query(params![session.0])?;
        while let Some(row) = rows.next()? {
            self.put(&to(row)?)?;
        }
        Ok(())
    }

    /// Writes everything that belongs to a session.
    fn rows(&mut self, conn: &Connection, session: SessionId) -> Result<()> {
        self.all(
            conn,
            session,
            "SELECT id, entry, list FROM todo_states WHERE session = ?1 ORDER BY id",
            |r| Ok(Line::Todo { n: r.get(0)?, entry: r.get(1)?, list: raw(r.get(2)?)? }),
        )?;
        let query = format!("SELECT {COLUMNS}, todo FROM entries WHERE session = ?1 ORDER BY seq");
        self.all(conn, session, &query, entry_line)?;
        self.all(
            conn,
            session,
            "SELECT name, entry, todo, label, archived FROM heads WHERE session = ?1 ORDER BY name",
            head_line,
        )?;
        self.all(
            conn,
            session,
            "SELECT name, entry, time FROM tags WHERE session = ?1 ORDER BY name",
            |r| Ok(Line::Tag(TagLine { name: r.get(0)?, entry: r.get(1)?, time: r.get(2)? })),
        )?;
        self.all(conn, session, "SELECT body FROM ops WHERE session = ?1 ORDER BY seq", |r| {
            Ok(Line::Op { body: raw(r.get(0)?)? })
        })?;
        self.all(
            conn,
            session,
            "SELECT kind, entry, call, op, before, after, files, time, began FROM steps WHERE session = ?1 ORDER BY id",
            step_line,
        )?;
        let waiting =
            |table: &str| format!("SELECT body, head FROM {table} WHERE session = ?1 ORDER BY head, place");
        self.all(conn, session, &waiting("queue"), |r| Ok(Line::Queued(wait_line(r)?)))?;
        self.all(conn, session, &waiting("asks"), |r| Ok(Line::Ask(wait_line(r)?)))?;
        self.all(conn, session, &waiting("pending"), |r| Ok(Line::Pending(wait_line(r)?)))?;
        self.all(
            conn,
            session,
            "SELECT time, agent, tool, what, decision, by_whom, seconds, outcome FROM audit
             WHERE session = ?1 ORDER BY id",
            audit_line,
        )?;
        self.all(
            conn,
            session,
            "SELECT agent, model, tier, day, time, input, output, cache_read, cache_write, reasoning, cost,
               estimated FROM calls WHERE session = ?1 ORDER BY id",
            call_line,
        )?;
        self.all(conn, session, "SELECT time, text FROM prompts WHERE session = ?1 ORDER BY id", |r| {
            Ok(Line::Prompt { time: r.get(0)?, text: r.get(1)? })
        })?;
        self.all(conn, session, "SELECT time, body FROM rules WHERE session = ?1 ORDER BY id", |r| {
            Ok(Line::Rule { time: r.get(0)?, text: r.get(1)? })
        })?;
        self.all(
            conn,
            session,
            "SELECT name, session, brief, state, report, announced, created FROM agents
             WHERE root = ?1 ORDER BY created, name",
            agent_line,
        )?;
        self.all(
            conn,
            session,
            "SELECT id, definition, state, created, announced FROM workflows
             WHERE root = ?1 ORDER BY created, id",
            workflow_line,
        )?;
        self.all(
            conn,
            session,
            "SELECT workflow, step, state, agent, report FROM workflow_steps
             WHERE root = ?1 ORDER BY workflow, step",
            workflow_step_line,
        )
    }
}

impl Transfer<'_> {
    /// The ids of all entries that an export of a session has.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn entries_of(&self, session: SessionId) -> Result<HashSet<EntryId>> {
        self.store.read(|conn| {
            let mut all = HashSet::new();
            for of in family::below(conn, session)?.into_iter().chain([session]) {
                let mut statement = conn.prepare_cached("SELECT id FROM entries WHERE session = ?1")?;
                for id in statement.query_map(params![of.0], |r| r.get(0))? {
                    all.insert(EntryId(id?));
                }
            }
            Ok(all)
        })
    }

    /// Writes a session and the sessions of its agents to `out`; returns the number of lines.
    ///
    /// # Errors
    /// [`StoreError::NoSession`]; when it cannot be read, or `out` cannot be written.
    pub fn export(&self, session: SessionId, out: &mut dyn Write) -> Result<u64> {
        self.store.read_once(|conn| {
            let mut lines = Lines { out: BufWriter::new(out), count: 0 };
            lines.put(&Header {
                tiller: "session".into(),
                version: VERSION,
                session: about(conn, session)?,
            })?;
            lines.rows(conn, session)?;
            for child in family::below(conn, session)? {
                lines.put(&Line::Session(Box::new(about(conn, child)?)))?;
                lines.rows(conn, child)?;
            }
            lines.out.flush().map_err(|e| StoreError::from_io(&e, "export".as_ref()))?;
            Ok(lines.count)
        })
    }
}

fn about(conn: &Connection, session: SessionId) -> Result<SessionLine> {
    conn.query_row(
        "SELECT id, project, title, created, used, model, profile, head, budget, archived, spawned_by, cost,
               preview, origin, git_branch FROM sessions WHERE id = ?1",
        params![session.0],
        |r| {
            Ok(SessionLine {
                id: r.get(0)?,
                project: r.get(1)?,
                title: r.get(2)?,
                created: r.get(3)?,
                used: r.get(4)?,
                model: r.get(5)?,
                profile: r.get(6)?,
                head: r.get(7)?,
                budget: r.get(8)?,
                archived: r.get(9)?,
                spawned_by: r.get(10)?,
                cost: r.get(11)?,
                preview: r.get(12)?,
                origin: r.get(13)?,
                git_branch: r.get(14)?,
            })
        },
    )
    .optional()?
    .ok_or(StoreError::NoSession(session))
}

fn entry_line(row: &Row<'_>) -> Result<Line> {
    let entry = Raw::from_row(row)?;
    let whole = entry.sum == entry.checksum();
    let (body, damaged) = match RawValue::from_string(entry.payload.clone()) {
        Ok(body) if whole => (body, None),
        _ => {
            let (note, _) = entry.clone().decode_or_note();
            (raw(serde_json::to_string(&note.body)?)?, Some(entry.payload))
        }
    };
    Ok(Line::Entry(EntryLine {
        id: entry.id,
        parent: entry.parent,
        agent: entry.agent,
        time: entry.time,
        snapshot: entry.snapshot,
        todo: row.get(9)?,
        body,
        damaged,
    }))
}

fn head_line(r: &Row<'_>) -> Result<Line> {
    Ok(Line::Head(HeadLine {
        name: r.get(0)?,
        entry: r.get(1)?,
        todo: r.get(2)?,
        label: r.get(3)?,
        archived: r.get(4)?,
    }))
}

fn step_line(r: &Row<'_>) -> Result<Line> {
    Ok(Line::Step(StepLine {
        kind: r.get(0)?,
        entry: r.get(1)?,
        call: r.get(2)?,
        op: r.get(3)?,
        before: r.get(4)?,
        after: r.get(5)?,
        files: raw(r.get(6)?)?,
        time: r.get(7)?,
        began: r.get(8)?,
    }))
}

fn wait_line(row: &Row<'_>) -> Result<Waiting> {
    Ok(Waiting { body: raw(row.get(0)?)?, head: row.get(1)? })
}

fn audit_line(r: &Row<'_>) -> Result<Line> {
    Ok(Line::Audit(AuditLine {
        time: r.get(0)?,
        agent: r.get(1)?,
        tool: r.get(2)?,
        what: r.get(3)?,
        decision: PermissionOutcome::from_audit_word(&r.get::<_, String>(4)?),
        by: r.get(5)?,
        seconds: r.get(6)?,
        outcome: r.get(7)?,
    }))
}

fn call_line(r: &Row<'_>) -> Result<Line> {
    Ok(Line::Call(CallLine {
        agent: r.get(0)?,
        model: r.get(1)?,
        tier: r.get(2)?,
        day: r.get(3)?,
        time: r.get(4)?,
        tokens: [r.get(5)?, r.get(6)?, r.get(7)?, r.get(8)?, r.get(9)?],
        cost: r.get(10)?,
        estimated: r.get(11)?,
    }))
}

fn agent_line(r: &Row<'_>) -> Result<Line> {
    Ok(Line::Agent(AgentLine {
        name: r.get(0)?,
        session: r.get(1)?,
        brief: raw(r.get(2)?)?,
        state: r.get(3)?,
        report: r.get::<_, Option<String>>(4)?.map(raw).transpose()?,
        announced: r.get(5)?,
        created: r.get(6)?,
    }))
}

fn workflow_line(r: &Row<'_>) -> Result<Line> {
    Ok(Line::Workflow(WorkflowLine {
        id: r.get(0)?,
        definition: raw(r.get(1)?)?,
        state: r.get(2)?,
        created: r.get(3)?,
        announced: r.get(4)?,
    }))
}

fn workflow_step_line(r: &Row<'_>) -> Result<Line> {
    Ok(Line::WorkflowStep(WorkflowStepLine {
        workflow: r.get(0)?,
        step: r.get(1)?,
        state: r.get(2)?,
        agent: r.get(3)?,
        report: r.get::<_, Option<String>>(4)?.map(raw).transpose()?,
    }))
}

#[cfg(test)]
#[path = "columns_tests.rs"]
mod columns_tests;
#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
