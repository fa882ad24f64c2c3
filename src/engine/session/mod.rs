//! The open session: its settings, and the path from the root to its head.

pub(crate) mod branch;
pub(crate) mod change;
pub(crate) mod handle;
pub(crate) mod kept;
mod lease_guard;
pub(crate) mod load;
pub(crate) mod manage;
pub(crate) mod mcp;
pub(crate) mod model;
pub(crate) mod model_choices;
pub(crate) mod msg;
pub(crate) mod open;
pub(crate) mod recover;
pub(crate) mod settings;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tiller_protocol::restore::TurnChanges;
use tiller_protocol::{
    AgentId, Block, BranchName, Cost, Entry, EntryBody, EntryId, ModelRef, Profile, SessionId, Time, Usage,
};
use tiller_store::{ContextPath, Lease, Tail};

use crate::context::{request, tokens};
use crate::core::services::Services;
use tiller_protocol::GoalState;

/// Entries that are kept for a snapshot.
pub(crate) const TAIL: usize = 200;

/// The session that is open.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The agent whose session it is.
    pub(crate) agent: AgentId,
    pub(crate) info: SessionInfo,
    pub(crate) model: ModelRef,
    pub(crate) profile: Profile,
    /// The profile that was in force before a plan was asked for.
    pub(crate) before_plan: Option<Profile>,
    /// How much the model thinks.
    pub(crate) effort: tiller_protocol::Effort,
    /// The goal that the agent pursues by itself.
    pub(crate) goal: Option<crate::goal::pursuit::Pursuit>,
    /// This process may only show it.
    pub(crate) read_only: bool,
    /// `None`: the session is only shown, or another process has this branch.
    pub(crate) lease: Option<Lease>,
    pub(crate) head: Head,
    pub(crate) history: History,
    pub(crate) totals: Totals,
    pub(crate) approvals: Approvals,
    /// Why the last turn ended before it was done.
    pub(crate) interrupted: Option<String>,
}

/// What lists of sessions show.
#[derive(Debug)]
pub(crate) struct SessionInfo {
    /// Empty: none yet.
    pub(crate) title: String,
    /// The user gave it its title.
    pub(crate) titled: bool,
    /// Path of the workspace that it was made in.
    pub(crate) project: String,
    pub(crate) created: Time,
    pub(crate) archived: bool,
    /// Made by a run without a screen.
    pub(crate) exec: bool,
    /// The git branch of the last turn, as stored.
    pub(crate) git_branch: String,
}

/// The head that entries are added to.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) name: String,
    /// The user's name for the branch; empty: none.
    pub(crate) label: String,
    /// The last entry; `None`: there is none yet.
    pub(crate) id: Option<EntryId>,
}

/// The path from the root to the head, as far as it is kept in memory.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// What requests are made of (see [`request::live`]).
    pub(crate) path: Vec<Arc<Entry>>,
    /// The end of the path, for snapshots.
    pub(crate) tail: VecDeque<Arc<Entry>>,
    /// Number of entries of the path before `tail`.
    pub(crate) earlier: u64,
    /// What turns of the tail changed, oldest first.
    pub(crate) turns: Vec<TurnChanges>,
}

impl History {
    /// The same path, with another tail, and what its turns changed.
    pub(crate) fn new(path: Vec<Arc<Entry>>, tail: Tail, turns: Vec<TurnChanges>) -> Self {
        let entries = tail.entries.into_iter().map(Arc::new).collect();
        Self { path, earlier: tail.earlier, tail: entries, turns }
    }

    fn push(&mut self, entry: Arc<Entry>) {
        if sent(&entry) {
            self.path.push(Arc::clone(&entry));
        }
        self.tail.push_back(entry);
        if self.tail.len() > TAIL * 2 {
            let more = self.tail.len() - TAIL;
            self.tail.drain(..more);
            self.earlier += more as u64;
        }
    }
}

/// What all requests of the session used.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) usage: Usage,
    /// `None`: no request had a price.
    pub(crate) cost: Option<Cost>,
}

/// Spending that the user allowed for this session.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    /// The deep tier.
    pub(crate) deep: bool,
}

/// The entries that requests are made of, in the order of the path.
pub(crate) fn path_of(context: ContextPath) -> Vec<Arc<Entry>> {
    let ContextPath { prefix, compaction, kept, after, .. } = context;
    let all = kept.into_iter().chain(compaction).chain(prefix).chain(after);
    all.filter(sent).map(Arc::new).collect()
}

/// Whether requests may need it. Calls of scripts are many and long, and no part of any.
fn sent(entry: &Entry) -> bool {
    !matches!(entry.body, EntryBody::InnerCall { .. })
}

impl Session {
    /// The branch that is open.
    pub(crate) fn branch(&self) -> BranchName {
        BranchName { head: self.head.name.clone(), label: self.head.label.clone() }
    }

    /// The goal's check runs.
    pub(crate) fn checks_goal(&self) -> bool {
        self.goal.as_ref().is_some_and(|p| p.view.state == GoalState::Checking)
    }

    /// Whether the user or a parent agent has sent a message.
    pub(crate) fn has_words(&self) -> bool {
        self.history.tail.iter().any(|e| matches!(e.body, EntryBody::User { .. }))
    }

    /// Tokens of the next request, and whether they were counted by the provider.
    pub(crate) fn context_tokens(&self) -> (u64, bool) {
        tokens::of_path(&request::live(&self.history.path))
    }

    /// What the next request will use for its input, estimated.
    pub(crate) fn next_request(&self) -> Usage {
        tokens::next_request(&request::live(&self.history.path))
    }

    /// Adds an entry and moves the head to it. The caller writes it to disk. Secrets are masked here, so that later
    /// requests repeat what is stored.
    pub(crate) fn grow(&mut self, services: &Services, body: EntryBody) -> Entry {
        let id = EntryId::fresh(&*services.ids, services.clock.now());
        self.grow_as(services, id, body)
    }

    /// Like [`Self::grow`], with an id that the caller made.
    pub(crate) fn grow_as(&mut self, services: &Services, id: EntryId, body: EntryBody) -> Entry {
        let body = crate::context::clean::entry(&services.redaction.redact, body);
        let now = services.clock.now();
        let entry = Entry {
            id,
            parent: self.head.id,
            session: self.id,
            agent: self.agent.clone(),
            time: now,
            body,
            snapshot: None,
        };
        self.head.id = Some(entry.id);
        self.history.push(Arc::new(entry.clone()));
        entry
    }

    /// Drops entries that later requests do not need, after a compaction.
    pub(crate) fn trim(&mut self) {
        let from = request::needed_from(&self.history.path);
        self.history.path.drain(..from);
    }

    pub(crate) fn has_prefix(&self) -> bool {
        self.history.path.iter().any(|e| matches!(e.body, EntryBody::Prefix { .. }))
    }

    /// Ids of every call of the path. A new call must have an id of its own.
    pub(crate) fn call_ids(&self) -> HashSet<String> {
        self.history
            .path
            .iter()
            .filter_map(
                |e| if let EntryBody::Assistant { blocks, .. } = &e.body { Some(blocks) } else { None },
            )
            .flatten()
            .filter_map(|b| if let Block::ToolCall(c) = b { Some(c.id.clone()) } else { None })
            .collect()
    }

    /// The message that the last turn answers.
    pub(crate) fn last_prompt(&self) -> Option<EntryId> {
        let prompt = |e: &&Arc<Entry>| e.body.begins_turn();
        self.history.tail.iter().rev().find(prompt).map(|e| e.id)
    }

    /// The text of the last reply.
    pub(crate) fn last_words(&self) -> String {
        let reply = |e: &Arc<Entry>| match &e.body {
            EntryBody::Assistant { blocks, .. } => Some(blocks.clone()),
            _ => None,
        };
        let blocks = self.history.path.iter().rev().find_map(reply).unwrap_or_default();
        let texts = blocks.into_iter().filter_map(|b| match b {
            Block::Text { text } => Some(text),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The last entry that a model sees.
    pub(crate) fn last_message(&self) -> Option<&Arc<Entry>> {
        self.history.path.iter().rev().find(|e| request::is_message(e))
    }
}
