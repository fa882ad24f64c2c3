//! The open session: its settings, and the path from the root to its head.

pub(crate) mod branch;
pub(crate) mod change;
pub(crate) mod handle;
pub(crate) mod kept;
mod lease_guard;
pub(crate) mod load;
pub(crate) mod manage;
pub(crate) mod model;
pub(crate) mod model_choices;
pub(crate) mod msg;
pub(crate) mod open;
pub(crate) mod recover;
pub(crate) mod settings;
pub(crate) mod turn_entries;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tiller_protocol::{
    AgentId, Block, BranchName, Cost, Entry, EntryBody, EntryId, ModelRef, Origin, Profile, SessionId, Time,
    Usage,
};
use tiller_store::{ContextPath, Lease};

use crate::context::{request, tokens};
use crate::core::services::Services;
use tiller_protocol::GoalState;

/// Entries that are kept for a snapshot.
pub(crate) const TAIL: usize = 200;

/// The session that is open.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Whose it is.
    pub(crate) agent: AgentId,
    pub(crate) title: String,
    pub(crate) project: String,
    pub(crate) created: Time,
    pub(crate) model: ModelRef,
    pub(crate) profile: Profile,
    /// The profile that was there before a plan was asked for.
    pub(crate) before_plan: Option<Profile>,
    /// What the agent pursues by itself.
    pub(crate) goal: Option<crate::goal::pursuit::Pursuit>,
    pub(crate) archived: bool,
    /// Made by a run without a screen.
    pub(crate) exec: bool,
    /// This process may only look.
    pub(crate) read_only: bool,
    /// `None`: only looking, or a branch beside another process.
    pub(crate) lease: Option<Lease>,
    /// Name of the head that entries are added to.
    pub(crate) head_name: String,
    /// What the person calls it; empty: nothing.
    pub(crate) label: String,
    pub(crate) head: Option<EntryId>,
    /// What requests are made of (see [`request::live`]).
    pub(crate) path: Vec<Arc<Entry>>,
    /// The end of the path, for clients that come.
    pub(crate) tail: VecDeque<Arc<Entry>>,
    /// Entries of the path before `tail`.
    pub(crate) earlier: u64,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Cost>,
    /// How much the model thinks.
    pub(crate) effort: tiller_protocol::Effort,
    /// The person allowed the deep tier for this session.
    pub(crate) deep_allowed: bool,
    /// Models without a price that the person allowed for this session, whatever the budget.
    pub(crate) unpriced_allowed: HashSet<ModelRef>,
    /// The last turn ended before it was done, or was interrupted.
    pub(crate) interrupted: Option<String>,
    /// The person gave it its title.
    pub(crate) titled: bool,
}

/// What the store gives for requests, in the order of the path.
pub(crate) fn path_of(context: ContextPath) -> Vec<Arc<Entry>> {
    let ContextPath { prefix, compaction, kept, after, .. } = context;
    kept.into_iter().chain(compaction).chain(prefix).chain(after).map(Arc::new).collect()
}

impl Session {
    /// The branch that is open.
    pub(crate) fn branch(&self) -> BranchName {
        BranchName { head: self.head_name.clone(), label: self.label.clone() }
    }

    /// The goal's check runs.
    pub(crate) fn checks_goal(&self) -> bool {
        self.goal.as_ref().is_some_and(|p| p.view.state == GoalState::Checking)
    }

    /// Whether the person or a parent has said anything in it.
    pub(crate) fn has_words(&self) -> bool {
        self.tail.iter().any(|e| matches!(e.body, EntryBody::User { .. }))
    }

    /// Tokens of the next request, and whether they were counted by the provider.
    pub(crate) fn context_tokens(&self) -> (u64, bool) {
        tokens::of_path(&request::live(&self.path))
    }

    /// What the next request will use for its input, estimated.
    pub(crate) fn next_request(&self) -> Usage {
        tokens::next_request(&request::live(&self.path))
    }

    /// A fresh entry at the head, which moves there. It is not on disk yet. Secrets are masked in it here,
    /// so that the requests to come repeat what is stored.
    pub(crate) fn grow(&mut self, w: &Services, body: EntryBody) -> Entry {
        let id = EntryId::fresh(&*w.ids, w.clock.now());
        self.grow_as(w, id, body)
    }

    /// The same, with an id that was given before.
    pub(crate) fn grow_as(&mut self, w: &Services, id: EntryId, body: EntryBody) -> Entry {
        let body = crate::context::clean::entry(&w.redaction.redact, body);
        let now = w.clock.now();
        let entry = Entry {
            id,
            parent: self.head,
            session: self.id,
            agent: self.agent.clone(),
            time: now,
            body,
            snapshot: None,
        };
        self.head = Some(entry.id);
        let shared = Arc::new(entry.clone());
        self.path.push(Arc::clone(&shared));
        self.tail.push_back(shared);
        if self.tail.len() > TAIL * 2 {
            let more = self.tail.len() - TAIL;
            self.tail.drain(..more);
            self.earlier += more as u64;
        }
        entry
    }

    /// Forgets what later requests do not need: after a compaction.
    pub(crate) fn trim(&mut self) {
        let from = request::needed_from(&self.path);
        self.path.drain(..from);
    }

    pub(crate) fn has_prefix(&self) -> bool {
        self.path.iter().any(|e| matches!(e.body, EntryBody::Prefix { .. }))
    }

    /// Ids of every call of the path: no two may be alike.
    pub(crate) fn call_ids(&self) -> HashSet<String> {
        self.path
            .iter()
            .filter_map(
                |e| if let EntryBody::Assistant { blocks, .. } = &e.body { Some(blocks) } else { None },
            )
            .flatten()
            .filter_map(|b| if let Block::ToolCall(c) = b { Some(c.id.clone()) } else { None })
            .collect()
    }

    /// The message of the person's that the last turn answers.
    pub(crate) fn last_prompt(&self) -> Option<EntryId> {
        let prompt = |e: &&Arc<Entry>| matches!(&e.body, EntryBody::User { origin: Origin::Prompt, .. });
        self.tail.iter().rev().find(prompt).map(|e| e.id)
    }

    /// The text of the last reply.
    pub(crate) fn last_words(&self) -> String {
        let reply = |e: &Arc<Entry>| match &e.body {
            EntryBody::Assistant { blocks, .. } => Some(blocks.clone()),
            _ => None,
        };
        let blocks = self.path.iter().rev().find_map(reply).unwrap_or_default();
        let texts = blocks.into_iter().filter_map(|b| match b {
            Block::Text { text } => Some(text),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The last entry that a model sees.
    pub(crate) fn last_message(&self) -> Option<&Arc<Entry>> {
        self.path.iter().rev().find(|e| request::is_message(e))
    }
}
