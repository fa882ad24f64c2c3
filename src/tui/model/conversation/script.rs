//! For tests: a session's events, one after the other.

use serde_json::json;
use tiller_protocol::command::{PathPlace, Query};
use tiller_protocol::event::{ReplyEvent, ToolEvent, TurnEvent};
use tiller_protocol::tool::Display;
use tiller_protocol::view::Snapshot;
use tiller_protocol::{
    AgentId, Block, Entry, EntryBody, EntryId, Event, EventBody, IdSource, Message, ModelRef, Origin, Part,
    SeqIds, SessionId, SessionSummary, StopReason, Time, ToolCall, ToolOutcome, Usage,
};

/// Makes events of one session.
pub(crate) struct Script {
    pub(crate) ids: SeqIds,
    pub(crate) session: SessionId,
    pub(crate) seq: u64,
    pub(crate) now: i64,
    pub(crate) last: Option<EntryId>,
    pub(crate) model: ModelRef,
}

impl Script {
    pub(crate) fn new() -> Self {
        let ids = SeqIds::default();
        let session = SessionId(ids.next(Time(0)));
        Self { ids, session, seq: 0, now: 0, last: None, model: ModelRef("vendor/model".into()) }
    }

    pub(crate) fn event(&mut self, body: EventBody) -> Event {
        self.seq += 1;
        self.now += 10;
        Event {
            seq: self.seq,
            time: Time(self.now),
            session: self.session,
            agent: AgentId::main(),
            cause: None,
            body,
        }
    }

    pub(crate) fn node(&mut self, body: EntryBody) -> Entry {
        let id = EntryId(self.ids.next(Time(0)));
        let parent = self.last.replace(id);
        Entry {
            id,
            parent,
            session: self.session,
            agent: AgentId::main(),
            time: Time(self.now),
            body,
            snapshot: None,
        }
    }

    pub(crate) fn user(&mut self, text: &str) -> Entry {
        let content = vec![Part::Text { text: text.into() }];
        self.node(EntryBody::User {
            message: Message::text(text),
            origin: Origin::Prompt,
            content,
            taint: None,
            learnings: Vec::new(),
        })
    }

    pub(crate) fn assistant(&mut self, blocks: Vec<Block>, stop: StopReason) -> Entry {
        let model = self.model.clone();
        self.node(EntryBody::Assistant { blocks, stop, model, usage: Usage::default(), cost: None })
    }

    pub(crate) fn result(&mut self, call: &str, text: &str) -> Entry {
        self.node(EntryBody::ToolResult {
            call_id: call.into(),
            name: "read_file".into(),
            outcome: ToolOutcome::Ok,
            content: vec![Part::Text { text: text.into() }],
            display: None,
            seconds: 0.1,
            learnings: Vec::new(),
            taint: None,
            added: tiller_protocol::Additions::default(),
        })
    }

    /// A tool from start to end; the events.
    pub(crate) fn tool(
        &mut self,
        id: &str,
        name: &str,
        verb: &str,
        target: &str,
        out: &str,
        display: Option<Display>,
    ) -> Vec<Event> {
        let started = ToolEvent::ToolStarted {
            call_id: id.into(),
            name: name.into(),
            arguments: json!({}),
            verb: verb.into(),
            target: target.into(),
        };
        let node = self.result(id, out);
        let finished = ToolEvent::ToolFinished {
            call_id: id.into(),
            name: name.into(),
            arguments: json!({}),
            ok: true,
            outcome: ToolOutcome::Ok,
            output: out.into(),
            seconds: 0.14,
            display,
            node: Box::new(node),
        };
        vec![self.event(EventBody::Tool(started)), self.event(EventBody::Tool(finished))]
    }

    /// The event of an entry that was just made.
    pub(crate) fn added(&mut self, node: Entry) -> Event {
        let entry = node.id;
        let body = match &node.body {
            EntryBody::User { .. } => {
                TurnEvent::UserMessage { entry, text: String::new(), node: Box::new(node) }
            }
            EntryBody::Assistant { .. } => {
                TurnEvent::AssistantMessage { entry, text: String::new(), node: Box::new(node) }
            }
            _ => TurnEvent::EntryAdded { node: Box::new(node) },
        };
        self.event(EventBody::Turn(body))
    }

    pub(crate) fn snapshot(&mut self, entries: Vec<Entry>, earlier: u64, running: bool) -> Event {
        let summary = SessionSummary {
            id: self.session,
            title: String::new(),
            project: String::new(),
            created: Time(0),
            used: Time(0),
            entries: 0,
            model: self.model.clone(),
            cost: None,
            archived: false,
            exec: false,
            open_in: None,
            interrupted: None,
            preview: String::new(),
            git_branch: String::new(),
        };
        let snapshot = Snapshot {
            seq: 0,
            session: summary,
            model: self.model.clone(),
            profile: Default::default(),
            effort: Default::default(),
            read_only: false,
            head: None,
            branch: Default::default(),
            entries,
            earlier,
            partial: Vec::new(),
            todo: Vec::new(),
            agents: Vec::new(),
            workflows: Vec::new(),
            queue: Vec::new(),
            asks: Vec::new(),
            feed: Vec::new(),
            usage: Usage::default(),
            cost: None,
            running,
            git: None,
            sandbox: None,
            goal: None,
            turns: Vec::new(),
            shell_lines: Vec::new(),
        };
        self.event(EventBody::Reply(Box::new(ReplyEvent::SnapshotReply { snapshot: Box::new(snapshot) })))
    }
}

/// The answer of the engine to a query for entries of a path that consists of `all`; `None`: it is another query.
pub(crate) fn answer(all: &[Entry], query: &Query) -> Option<ReplyEvent> {
    // Ids of a script grow.
    let place = |id: EntryId| all.binary_search_by_key(&id, |e| e.id).ok();
    match query {
        Query::Page { before, count } => {
            let end = place(*before)?;
            let from = end.saturating_sub(*count as usize);
            Some(ReplyEvent::PageReply {
                entries: all[from..end].to_vec(),
                earlier: from as u64,
                turns: Vec::new(),
            })
        }
        Query::PathPart { before, at, count } => {
            let (end, count) = (place(*before)?, *count as usize);
            let range = match at {
                PathPlace::Start {} => 0..count,
                PathPlace::Around { entry } => match place(*entry).filter(|at| *at < end) {
                    Some(at) => at.saturating_sub(count / 2)..at + count / 2 + 1,
                    None => 0..0,
                },
                PathPlace::From { entry } => place(*entry)?..place(*entry)? + count,
                PathPlace::Before { entry } | PathPlace::Search { entry } => {
                    place(*entry)?.saturating_sub(count)..place(*entry)?
                }
            };
            let to = range.end.min(end);
            let range = range.start.min(to)..to;
            Some(ReplyEvent::PathPartReply {
                before: *before,
                at: *at,
                entries: all[range.clone()].to_vec(),
                earlier: range.start as u64,
                later: (end - range.end) as u64,
                next: all[..end].get(range.end).map(|e| e.id),
                turns: Vec::new(),
            })
        }
        _ => None,
    }
}

pub(crate) fn text(t: &str) -> Block {
    Block::Text { text: t.into() }
}

pub(crate) fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: "read_file".into(),
        arguments: json!({ "path": "src/a.rs" }),
        malformed: None,
        vendor: None,
    })
}
