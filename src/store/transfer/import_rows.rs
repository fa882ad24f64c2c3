//! Inserts the rows of one session of a file. The file is not trusted: nothing in it may refer to a session outside of
//! the file.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};
use serde_json::Value;
use serde_json::value::RawValue;
use tiller_protocol::op::OpChange;
use tiller_protocol::restore::StepFile;
use tiller_protocol::{AgentId, Ask, EntryBody, EntryId, Op, OpId, Queued, SessionId, Time, TodoItem};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::session::agents::AgentRow;
use crate::session::made_by::MadeBy;
use crate::transfer::import::{ImportAs, Withheld};
use crate::transfer::lines::{AgentLine, Line, ParsedLine, SessionLine, StepLine, Waiting, wrong};
use crate::tree::entries::{self, Raw, as_written};

/// Inserts the rows of one session.
pub(crate) struct Rows<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) how: ImportAs,
    /// Old ids → new ones; empty when ids are kept.
    pub(crate) fresh: &'a HashMap<Uuid, Uuid>,
    /// The session's entries, by their old ids.
    pub(crate) ours: &'a HashSet<Uuid>,
    /// The sessions of the file, by their old ids.
    pub(crate) theirs: &'a HashSet<Uuid>,
    /// Ids of todo states in the file → in the database.
    pub(crate) todos: HashMap<i64, i64>,
    /// By its new id.
    pub(crate) session: SessionId,
    /// The session's current head.
    pub(crate) current: String,
    /// Number of the next row. Positions of waiting items only need to be ascending.
    pub(crate) place: i64,
}

impl Rows<'_> {
    fn id(&self, old: Uuid) -> Uuid {
        self.fresh.get(&old).copied().unwrap_or(old)
    }

    /// The new id of an entry that a head or a tag refers to; another session's entry is an error.
    fn ours(&self, old: Uuid) -> Result<Uuid> {
        if self.ours.contains(&old) { Ok(self.id(old)) } else { Err(StoreError::NoEntry(EntryId(old))) }
    }

    fn entry_id(&self, old: EntryId) -> EntryId {
        EntryId(self.id(old.0))
    }

    /// Inserts the session itself.
    pub(crate) fn begin(
        &self,
        head: &SessionLine,
        spawned_by: Option<Uuid>,
        withheld: &mut Withheld,
    ) -> Result<()> {
        let profile =
            if self.how.rights { head.profile.as_str() } else { withheld.profile(&head.profile).name() };
        // A session that is not kept would be removed at the next start.
        let origin = match MadeBy::of(&head.origin) {
            MadeBy::Person => MadeBy::Person,
            MadeBy::Exec | MadeBy::Ephemeral => MadeBy::Exec,
        };
        self.conn.execute(
            "INSERT INTO sessions(id, project, title, created, used, used_order, model, profile, head, budget,
               archived, spawned_by, entries, cost, preview, origin, git_branch)
             VALUES(?1, ?2, ?3, ?4, ?5, 1 + (SELECT coalesce(max(used_order), 0) FROM sessions), ?6, ?7, ?8, ?9, ?10,
               ?11, ?12, ?13, ?14, ?15, ?16)",
            params![
                self.session.0,
                head.project,
                head.title,
                head.created,
                head.used,
                head.model,
                profile,
                head.head,
                head.budget,
                i64::from(head.archived != 0),
                spawned_by.map(|e| self.id(e)),
                i64::try_from(self.ours.len()).unwrap_or(i64::MAX),
                head.cost,
                head.preview,
                origin.name(),
                head.git_branch,
            ],
        )?;
        Ok(())
    }

    /// Inserts what a line states. Rights that are not taken are counted.
    pub(crate) fn row(&mut self, parsed: &ParsedLine, withheld: &mut Withheld) -> Result<()> {
        self.place += 1;
        self.add(parsed, withheld).map_err(|e| match e {
            error if error.is_trouble() => error,
            StoreError::Conflict(detail) => StoreError::Conflict(format!("line {}: {detail}", parsed.number)),
            error => wrong(parsed.number, error),
        })
    }

    fn add(&mut self, parsed: &ParsedLine, withheld: &mut Withheld) -> Result<()> {
        let (conn, session, place) = (self.conn, self.session, self.place);
        let wait = |table, line: &Waiting, body: &str| {
            let head = line.head.as_deref().unwrap_or(&self.current);
            crate::session::queue::put_one(conn, table, session, head, place, body, true)
        };
        match &parsed.line {
            Line::Todo { n, entry, list } => {
                let list = check::<Vec<TodoItem>>(list)?;
                conn.prepare_cached("INSERT INTO todo_states(session, entry, list) VALUES(?1, ?2, ?3)")?
                    .execute(params![session.0, entry.map(|e| self.id(e)), list])?;
                self.todos.insert(*n, conn.last_insert_rowid());
            }
            Line::Entry(line) => {
                let Some(body) = &parsed.body else { return Ok(()) };
                let mut raw = Raw {
                    id: self.id(line.id),
                    parent: line.parent.map(|p| self.id(p)),
                    session: session.0,
                    agent: line.agent.clone(),
                    time: line.time,
                    payload: self.payload(body, &line.body)?,
                    sum: Vec::new(),
                    snapshot: line.snapshot.clone(),
                    imported: true,
                };
                raw.sum = raw.checksum();
                entries::insert(conn, &raw, body, self.todo(line.todo))?;
            }
            Line::Head(head) => {
                let entry = head.entry.map(|e| self.ours(e)).transpose()?;
                crate::tree::heads::put(conn, session, &head.name, entry, self.todo(head.todo))?;
                conn.prepare_cached(
                    "UPDATE heads SET label = ?3, archived = ?4 WHERE session = ?1 AND name = ?2",
                )?
                .execute(params![session.0, head.name, head.label, head.archived])?;
            }
            Line::Tag(tag) => {
                conn.prepare_cached("INSERT INTO tags(session, name, entry, time) VALUES(?1, ?2, ?3, ?4)")?
                    .execute(params![session.0, tag.name, self.ours(tag.entry)?, tag.time])?;
            }
            Line::Step(step) => self.step(session, step)?,
            Line::Op { body } => {
                let op: Op = serde_json::from_str(body.get())?;
                crate::session::ops::insert(conn, &self.op(op, session))?;
            }
            Line::Queued(line) => wait("queue", line, check::<Queued>(&line.body)?)?,
            Line::Ask(line) => {
                let body = check::<Ask>(&line.body)?;
                if self.how.rights {
                    wait("asks", line, body)?;
                } else {
                    withheld.asks += 1;
                }
            }
            Line::Pending(line) => wait("pending", line, check::<EntryBody>(&line.body)?)?,
            Line::Audit(a) => {
                crate::audit::insert(
                    conn,
                    &tiller_protocol::view::AuditRow {
                        time: Time(a.time),
                        session,
                        agent: a.agent.clone(),
                        tool: a.tool.clone(),
                        what: a.what.clone(),
                        decision: a.decision.clone(),
                        by: a.by.clone(),
                        seconds: a.seconds,
                        outcome: a.outcome.as_str().into(),
                    },
                )?;
            }
            Line::Call(c) => {
                let [input, output, read, write, reasoning] = c.tokens.map(|n| n.max(0));
                conn.prepare_cached(
                    "INSERT INTO calls(session, agent, model, tier, day, time, input, output, cache_read,
                       cache_write, reasoning, cost, estimated)
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                )?
                .execute(params![
                    session.0,
                    c.agent,
                    c.model,
                    c.tier,
                    c.day,
                    c.time,
                    input,
                    output,
                    read,
                    write,
                    reasoning,
                    c.cost.map(|cost| cost.max(0)),
                    c.estimated
                ])?;
            }
            Line::Prompt { time, text } => crate::session::history::insert(conn, session, text, Time(*time))?,
            Line::Rule { .. } if !self.how.rights => withheld.rules += 1,
            Line::Rule { time, text } => {
                conn.execute(
                    "INSERT INTO rules(session, time, body) VALUES(?1, ?2, ?3)",
                    params![session.0, time, text],
                )?;
            }
            // Earlier versions export drafts; unsent text goes to the history of prompts.
            Line::Draft { body, .. } => {
                for message in std::iter::once(&body.message).chain(&body.aside) {
                    crate::session::history::insert(conn, session, &message.text, Time(0))?;
                }
            }
            Line::Agent(agent) => self.agent(agent, withheld)?,
            Line::Workflow(w) => {
                conn.execute(
                    "INSERT INTO workflows(root, id, definition, state, created, announced)
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                    params![session.0, w.id, self.renamed(&w.definition)?, w.state, w.created, w.announced],
                )?;
            }
            Line::WorkflowStep(s) => {
                let report = s.report.as_deref().map(|r| self.renamed(r)).transpose()?;
                conn.execute(
                    "INSERT INTO workflow_steps(root, workflow, step, state, agent, report)
                     VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                    params![session.0, s.workflow, s.step, s.state, s.agent, report],
                )?;
            }
            Line::Session(_) => return Err(StoreError::Record("a session within a session".into())),
        }
        Ok(())
    }

    /// An agent of this session. Its own session is in the file, or it never began.
    fn agent(&self, agent: &AgentLine, withheld: &mut Withheld) -> Result<()> {
        let own = SessionId(self.id(agent.session));
        if !self.theirs.contains(&agent.session)
            && crate::session::sessions::must_exist(self.conn, own).is_ok()
        {
            return Err(StoreError::Record(format!("agent {} belongs to another session", agent.name)));
        }
        let mut row = AgentColumns {
            brief: self.renamed(&agent.brief)?,
            state: agent.state.clone(),
            report: agent.report.as_deref().map(|r| self.renamed(r)).transpose()?,
            announced: agent.announced,
        };
        if let Some(clean) = self.how.agent {
            row = row.cleaned(self.session, agent, own, clean)?;
        }
        if !self.how.rights {
            row.narrow(withheld)?;
        }
        self.conn
            .prepare_cached(
                "INSERT INTO agents(root, name, session, brief, state, report, announced, created)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                self.session.0,
                agent.name,
                own.0,
                row.brief,
                row.state,
                row.report,
                row.announced,
                agent.created
            ])?;
        Ok(())
    }

    /// JSON in the engine's form, unchanged; only the ids of a copy are replaced.
    fn renamed(&self, raw: &RawValue) -> Result<String> {
        let mut value: Value = serde_json::from_str(raw.get())?;
        if self.fresh.is_empty() {
            return Ok(raw.get().to_owned());
        }
        self.rename(&mut value);
        Ok(value.to_string())
    }

    /// No deeper than the JSON parser allows.
    fn rename(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let new = Uuid::try_parse(text).ok().and_then(|old| self.fresh.get(&old));
                if let Some(new) = new {
                    *text = new.to_string();
                }
            }
            Value::Array(all) => all.iter_mut().for_each(|v| self.rename(v)),
            Value::Object(all) => all.values_mut().for_each(|v| self.rename(v)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn step(&self, session: SessionId, step: &StepLine) -> Result<()> {
        let about = match step.kind.as_str() {
            "point" => step.entry.is_some() && step.before.is_none(),
            "call" => step.call.is_some(),
            "restore" => step.op.is_some(),
            "others" => step.entry.is_some() || step.call.is_some() || step.op.is_some(),
            _ => false,
        };
        if !about {
            return Err(StoreError::Record(format!("a step of kind {} has no target", step.kind)));
        }
        let files = check::<Vec<StepFile>>(&step.files)?;
        self.conn
            .prepare_cached(
                "INSERT INTO steps(session, kind, entry, call, op, before, after, files, time, began)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                session.0,
                step.kind,
                step.entry.map(|e| self.id(e)),
                step.call,
                step.op.map(|o| self.id(o)),
                step.before,
                step.after,
                files,
                step.time,
                step.began
            ])?;
        Ok(())
    }

    fn todo(&self, n: Option<i64>) -> Option<i64> {
        n.and_then(|n| self.todos.get(&n).copied())
    }

    /// The body, unchanged but for what refers to other rows.
    fn payload(&self, body: &EntryBody, text: &RawValue) -> Result<String> {
        let mut own = body.clone();
        match &mut own {
            _ if self.fresh.is_empty() => {}
            EntryBody::Compaction { kept_from, carried, .. } => {
                kept_from.iter_mut().for_each(|kept| *kept = self.entry_id(*kept));
                carried.all_mut().for_each(|one| one.entry = self.entry_id(one.entry));
            }
            EntryBody::BranchSummary { from, .. } => *from = self.entry_id(*from),
            _ => {}
        }
        // What did not change stays byte for byte.
        if own == *body { as_written(body, text.get()) } else { Ok(serde_json::to_string(&own)?) }
    }

    fn op(&self, op: Op, session: SessionId) -> Op {
        let change = match op.change {
            OpChange::Head { name, before, after, from } => OpChange::Head {
                name,
                before: before.map(|e| self.entry_id(e)),
                after: after.map(|e| self.entry_id(e)),
                from,
            },
            OpChange::Compaction { name, before, after } => OpChange::Compaction {
                name,
                before: before.map(|e| self.entry_id(e)),
                after: self.entry_id(after),
            },
            OpChange::Tag { name, before, after } => OpChange::Tag {
                name,
                before: before.map(|e| self.entry_id(e)),
                after: after.map(|e| self.entry_id(e)),
            },
            OpChange::Files { before, after, files, of, turn } => {
                let (of, mut turn) = (of.map(|o| OpId(self.id(o.0))), turn);
                if let Some(turn) = &mut turn {
                    turn.entry = self.entry_id(turn.entry);
                }
                OpChange::Files { before, after, files, of, turn }
            }
            OpChange::Title { .. }
            | OpChange::Archived { .. }
            | OpChange::Label { .. }
            | OpChange::BranchArchived { .. } => op.change,
        };
        Op {
            id: OpId(self.id(op.id.0)),
            session,
            parent: op.parent.map(|p| OpId(self.id(p.0))),
            of: op.of.map(|o| OpId(self.id(o.0))),
            with: op.with.map(|o| OpId(self.id(o.0))),
            change,
            ..op
        }
    }
}

/// The columns of an agent that an import may change.
struct AgentColumns {
    brief: String,
    state: String,
    report: Option<String>,
    announced: bool,
}

impl AgentColumns {
    /// Keeps a profile of the brief, with which the agent would go on, only where it allows no more than `ask`.
    fn narrow(&mut self, withheld: &mut Withheld) -> Result<()> {
        let mut brief: Value = serde_json::from_str(&self.brief)?;
        if let Some(profile) = brief.get_mut("profile") {
            let named = profile.as_str().map_or_else(|| profile.to_string(), str::to_owned);
            *profile = withheld.profile(&named).name().into();
            self.brief = brief.to_string();
        }
        Ok(())
    }

    /// The columns as `clean` leaves them.
    fn cleaned(
        self,
        root: SessionId,
        line: &AgentLine,
        own: SessionId,
        clean: fn(AgentRow) -> AgentRow,
    ) -> Result<Self> {
        let row = clean(AgentRow {
            root,
            id: AgentId(line.name.clone()),
            session: own,
            brief: serde_json::from_str(&self.brief)?,
            state: crate::session::agents::state(self.state),
            report: self.report.as_deref().map(serde_json::from_str).transpose()?,
            announced: self.announced,
            created: Time(line.created),
        });
        Ok(Self {
            brief: row.brief.to_string(),
            state: serde_json::to_value(row.state)?.as_str().unwrap_or_default().to_owned(),
            report: row.report.as_ref().map(Value::to_string),
            announced: row.announced,
        })
    }
}

/// The text, if it parses as `T`.
fn check<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Result<&str> {
    serde_json::from_str::<T>(raw.get())?;
    Ok(raw.get())
}
