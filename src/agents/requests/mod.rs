//! Requests of tools to the crew.

pub(crate) mod wait;

use std::time::Duration;

use tiller_engine::Envelope;
use tiller_engine::crew::{HostSettings, HostTasks};
use tiller_protocol::command::TurnCommand;
use tiller_protocol::{AgentId, CommandBody, EntryId, Message, SendMode};
use tiller_tool::crew::Note;
use tiller_tool::crew::{AgentSummary, CrewReply, CrewRequest};

use crate::driver::CrewDriver;
use crate::msg::TaskMsg;
use crate::requests::wait::{AgentWait, WaitKind};
use crate::reuse;
use crate::roster::Roster;
use crate::start::recruit::TaskSource;
use crate::workflow::state::CrewReplySender;
use crate::workflow::state::Starter;

/// Most notes of one board, and most bytes of a note.
const NOTES: usize = 200;
const NOTE: usize = 20_000;

impl CrewDriver<'_> {
    pub(crate) fn request(
        &mut self,
        by: &AgentId,
        call: String,
        entry: Option<EntryId>,
        request: CrewRequest,
        reply: CrewReplySender,
    ) {
        let starts = match &request {
            // Steps of a resumed workflow start agents below the agent that started it, even if that has ended.
            CrewRequest::Run(brief) => brief.step.is_none(),
            CrewRequest::Start(_) | CrewRequest::Workflow(_) => true,
            _ => false,
        };
        if starts && self.crew.members.get(by).is_some_and(|m| m.stopping || !m.state().at_work()) {
            // The agent sent this before it was stopped. Its call may have ended meanwhile.
            let _ = reply.send(Err("you are being stopped, so no more agents are started".into()));
            return;
        }
        let Some((request, reply)) = self.workflows().admit(by, (&call, entry), request, reply) else {
            return;
        };
        let said = match request {
            CrewRequest::Run(brief) => return reuse::run_or_reuse(self, by, (call, entry), *brief, reply),
            CrewRequest::Again { agent, text } => match self.crew.find(by, &agent) {
                Ok(id) => {
                    self.send_text(&id, text);
                    return self.wait_for(by, vec![id], WaitKind::Own, None, reply);
                }
                Err(why) => Err(why),
            },
            CrewRequest::Continue { agent } => match self.crew.find(by, &agent) {
                Ok(id) => match self.continue_for_caller(&id) {
                    Ok(()) => return self.wait_for(by, vec![id], WaitKind::Own, None, reply),
                    Err(why) => Err(why),
                },
                Err(why) => Err(why),
            },
            // The task of the call runs these, with one request for each agent.
            CrewRequest::Tasks(_) | CrewRequest::Goal(_) => Err("this request starts no agents".into()),
            CrewRequest::Workflow(flow) => {
                let by = by.clone();
                return self.workflows().check(Starter::Call { by, call, entry, reply }, Ok(*flow));
            }
            CrewRequest::Start(briefs) => self.start_all(by, &call, entry, briefs),
            CrewRequest::List => Ok(self.list_agents(by)),
            CrewRequest::Result { agent } => self.crew.find(by, &agent).map(|id| {
                self.mark_announced(&id);
                CrewReply::Report(Box::new(self.crew.report_of(&id)))
            }),
            CrewRequest::Info { agent } => self.agent_info(by, &agent),
            CrewRequest::Send { agent, text } => self.crew.find(by, &agent).map(|id| {
                let works = self.crew.members.get(&id).is_some_and(|m| m.state().at_work());
                if !works && let Some(member) = self.crew.members.get_mut(&id) {
                    // It works again, and the caller does not wait for it.
                    member.order.background = true;
                }
                self.send_text(&id, text);
                let when = if works { "at its next step" } else { "now, and resumes work" };
                CrewReply::Text(format!("{} receives it {when}.", id.name()))
            }),
            CrewRequest::Wait { agents, any, seconds } => {
                let ids: Result<Vec<AgentId>, String> =
                    agents.iter().map(|a| self.crew.find(by, a)).collect();
                match ids {
                    Ok(ids) if ids.is_empty() => Err("name the agents to wait for".into()),
                    Ok(ids) => {
                        let how = if any { WaitKind::Any } else { WaitKind::All };
                        return self.wait_for(by, ids, how, Some(seconds), reply);
                    }
                    Err(why) => Err(why),
                }
            }
            CrewRequest::Cancel { agent } => self.crew.find(by, &agent).map(|id| {
                self.cancel_tree(&id);
                CrewReply::Text(format!("{} is cancelled. Its changes are kept.", id.name()))
            }),
            CrewRequest::Board { put, key } => self.crew.board(by, put, key),
        };
        // The call may have ended meanwhile.
        let _ = reply.send(said);
        self.start_waiting();
    }

    /// Starts an agent for a task, and waits for its end.
    pub(crate) fn run_brief(
        &mut self,
        by: &AgentId,
        (call, entry): (String, Option<EntryId>),
        brief: tiller_tool::crew::Brief,
        reply: CrewReplySender,
    ) {
        let call = Some(call).filter(|c| !c.is_empty());
        match self.recruit(by, TaskSource { call, entry, of_user: false }, brief, false) {
            Ok(id) => {
                self.workflows().agent_started(&id);
                self.wait_for(by, vec![id], WaitKind::Own, None, reply);
            }
            Err(why) => {
                // The call may have ended meanwhile.
                let _ = reply.send(Err(why));
                self.start_waiting();
            }
        }
    }

    pub(crate) fn wait_for(
        &mut self,
        by: &AgentId,
        ids: Vec<AgentId>,
        how: WaitKind,
        seconds: Option<u64>,
        reply: CrewReplySender,
    ) {
        self.crew.next += 1;
        let no = self.crew.next;
        self.crew.waits.push(AgentWait { no, by: by.clone(), ids, how, reply });
        if let Some(seconds) = seconds {
            let mailbox = self.mailbox();
            self.host.spawn(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let _ = mailbox.send(TaskMsg::WaitTimedOut(no)).await;
            });
        }
        self.settle_waits();
    }

    /// The time of a wait is over: it is answered with the reports so far.
    pub(crate) fn wait_timed_out(&mut self, no: u64) {
        if let Some(at) = self.crew.waits.iter().position(|w| w.no == no) {
            let wait = self.crew.waits.remove(at);
            self.answer_wait(wait);
        }
    }

    pub(crate) fn start_all(
        &mut self,
        by: &AgentId,
        call: &str,
        entry: Option<EntryId>,
        briefs: Vec<tiller_tool::crew::Brief>,
    ) -> Result<CrewReply, String> {
        let (mut started, mut why) = (Vec::new(), None);
        for brief in briefs {
            let from = TaskSource { call: Some(call.to_owned()), entry, of_user: false };
            match self.recruit(by, from, brief, true) {
                Ok(id) => started.push(id.name().to_owned()),
                Err(e) => {
                    why = Some(e);
                    break;
                }
            }
        }
        match (started.is_empty(), why) {
            (true, Some(why)) => Err(why),
            (_, why) => {
                let rest = why.map_or(String::new(), |w| format!(" The rest was not started: {w}."));
                let names = started.join(", ");
                Ok(CrewReply::Text(format!(
                    "Started in the background: {names}. You receive their results when they end.{rest}"
                )))
            }
        }
    }

    pub(crate) fn list_agents(&self, by: &AgentId) -> CrewReply {
        let rows = self.crew.members.values().filter(|m| m.id.is_below(by) && m.id != *by);
        let rows = rows
            .map(|m| AgentSummary {
                agent: m.id.name().to_owned(),
                label: m.order.label.clone(),
                state: m.state(),
                role: m.order.brief.agent.clone().unwrap_or_else(|| "no role".into()),
                act: m.view.act.to_string(),
                tokens: self.crew.reservations.used(&m.id).0,
                seconds: m.report.as_ref().map_or(0.0, |r| r.seconds),
            })
            .collect();
        let roles = self.host.roles();
        let skills = self.host.skills();
        let skills = skills.iter().map(|s| (s.name.clone(), s.description.clone())).collect();
        let roles = roles.iter().map(|r| (r.name.clone(), r.description.clone())).collect();
        let caps = &self.host.config().agents;
        let more = caps.total.saturating_sub(self.crew.members.len());
        let mut left = format!("Remaining: {more} agents, {} at a time", caps.running);
        let money = self.crew.reservations.left();
        if !money.is_empty() {
            left.push_str(", ");
            left.push_str(&money);
        }
        CrewReply::Agents { agents: rows, roles, skills, remaining: left }
    }

    pub(crate) fn agent_info(&self, by: &AgentId, name: &str) -> Result<CrewReply, String> {
        let id = match self.crew.find(by, name) {
            Ok(id) => id,
            Err(why) => {
                let row = self.host.process_row(name.trim());
                return row.map(|r| CrewReply::Text(r.to_string())).ok_or(why);
            }
        };
        let Some(m) = self.crew.members.get(&id) else {
            return Err(format!("there is no agent {name}"));
        };
        let (tokens, cost) = self.crew.reservations.used(&id);
        let limits = serde_json::to_string(&m.order.limits).unwrap_or_default();
        let act = if m.view.act.is_nothing() { "nothing" } else { m.view.act.words() };
        Ok(CrewReply::Text(format!(
            "{} \"{}\": {}\nmodel {}, doing: {act}\nused {tokens} tokens, ${:.4}; limits {limits} (cost in millionths)\nlast message: {}",
            id.name(),
            m.order.label,
            m.state().word(),
            m.view.model,
            cost.usd(),
            m.report.as_ref().map_or("none yet", |r| r.summary.as_str()),
        )))
    }

    /// Sends an agent a message of another agent.
    pub(crate) fn send_text(&mut self, id: &AgentId, text: String) {
        let message = Message::text(text);
        let body = CommandBody::Turn(TurnCommand::Submit { message, mode: SendMode::Steer });
        self.deliver(id, Envelope::internal(body));
    }
}

impl Roster {
    pub(crate) fn board(
        &mut self,
        by: &AgentId,
        put: Option<(String, String, Option<u64>)>,
        key: Option<String>,
    ) -> Result<CrewReply, String> {
        let board = self.members.get(by).and_then(|m| m.order.brief.board.clone());
        let Some(board) = board else { return Err("you do not share a board with any agent".into()) };
        let notes = self.boards.entry(board).or_default();
        if let Some((key, value, version)) = put {
            if value.len() > NOTE || key.len() > 200 {
                return Err(format!(
                    "a note can have at most {NOTE} bytes; write a file and put its name into the note"
                ));
            }
            if notes.len() >= NOTES && !notes.contains_key(&key) {
                return Err(format!("the board is full: {NOTES} notes"));
            }
            let now = notes.get(&key).map_or(0, |n| n.version);
            if let Some(wanted) = version.filter(|v| *v != now) {
                return Err(format!("{key} is at version {now}, not {wanted}: read it again first"));
            }
            let note = Note { key: key.clone(), value, version: now + 1, by: by.name().to_owned() };
            notes.insert(key.clone(), note);
            return Ok(CrewReply::Text(format!("{key} is at version {} now", now + 1)));
        }
        match key {
            None => {
                // The list has no values: an agent that needs one reads it by key.
                let list =
                    notes.values().map(|n| Note { value: format!("{} bytes", n.value.len()), ..n.clone() });
                Ok(CrewReply::Notes(list.collect()))
            }
            Some(key) => match notes.get(&key) {
                Some(note) => Ok(CrewReply::Notes(vec![note.clone()])),
                None => Err(format!("note {key} does not exist yet; do not wait for it")),
            },
        }
    }
}
