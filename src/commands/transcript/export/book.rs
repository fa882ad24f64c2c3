//! The content of an export: the tree, branches and agents of a session. The order is in [`super::order`].

use std::collections::{HashMap, HashSet};

use tiller_protocol::command::CostBy;
use tiller_protocol::{Block, Cost, Entry, EntryBody, EntryId, SessionId, ToolCall, Usage};
use tiller_store::{BranchRow, Result, SessionRow, Store, TagRow};

/// Everything to be exported.
pub(super) struct SessionContent {
    pub(super) row: SessionRow,
    pub(super) branches: Vec<BranchRow>,
    pub(super) tags: Vec<TagRow>,
    /// Entries of the session, then those of each agent; parents before children.
    pub(super) entries: Vec<Entry>,
    /// Its agents, at any depth.
    pub(super) agents: Vec<Helper>,
    /// Calls by the entry with their result, since ids of calls may occur twice.
    calls: HashMap<EntryId, ToolCall>,
    /// Calls that have a result: the reply, and their id in it.
    answered: HashSet<(EntryId, String)>,
    pub(super) at: HashMap<EntryId, usize>,
    /// The last entry of the main path: that of the current head, or of the chosen branch.
    pub(super) end: Option<EntryId>,
    /// Tokens and cost of all requests of the session, and of its agents, those beside the conversation too. `None`: only a branch
    /// is exported.
    spent: Option<[(Usage, Option<Cost>); 2]>,
}

/// An agent's session.
pub(super) struct Helper {
    pub(super) row: SessionRow,
    /// Its name in the session that started it; empty: unknown.
    pub(super) name: String,
    /// Its last state.
    pub(super) state: &'static str,
    /// The last entry of its own path.
    pub(super) end: Option<EntryId>,
}

/// Tokens and cost of the requests of one session.
fn spent_in(store: &Store, id: SessionId) -> Result<(Usage, Option<Cost>)> {
    let mut sum = (Usage::default(), None);
    for row in store.costs().by(Some(id), CostBy::Model)? {
        add(&mut sum, (row.usage, row.cost));
    }
    Ok(sum)
}

fn add(sum: &mut (Usage, Option<Cost>), more: (Usage, Option<Cost>)) {
    sum.0.add(&more.0);
    sum.1 = more.1.map(|cost| sum.1.unwrap_or_default().plus(cost)).or(sum.1);
}

fn end_of(branches: &[BranchRow], head: &str) -> Option<EntryId> {
    branches.iter().find(|b| b.name == head).and_then(|b| b.entry)
}

impl Helper {
    /// The agent in a line: name, task, state.
    pub(super) fn line(&self) -> String {
        let s = &self.row.summary;
        let title = if s.title.is_empty() { &s.preview } else { &s.title };
        let mut line = if self.name.is_empty() { "Agent".to_owned() } else { format!("Agent {}", self.name) };
        if !title.is_empty() {
            line.push_str(": ");
            line.push_str(title);
        }
        if !self.state.is_empty() {
            line.push_str(&format!(" · {}", self.state));
        }
        line
    }
}

/// The name of a branch.
pub(super) fn called(branch: &BranchRow) -> &str {
    if branch.label.is_empty() { &branch.name } else { &branch.label }
}

/// Maximum number of entries between a call's reply and its result.
const NEAR: usize = 1024;

impl SessionContent {
    pub(super) fn read(store: &Store, id: SessionId) -> Result<Self> {
        let row = store.sessions().get(id)?;
        let branches = store.branches().list(id)?;
        let end = end_of(&branches, &row.head);
        let mut entries = store.paths().all(id)?;
        let rows = store.agents().list(id)?;
        let mut agents = Vec::new();
        let mut spent = [spent_in(store, id)?, (Usage::default(), None)];
        for child in store.agents().sessions_below(id)? {
            let row = store.sessions().get(child)?;
            let known = rows.iter().find(|a| a.session == child);
            agents.push(Helper {
                name: known.map(|a| a.id.name().to_owned()).unwrap_or_default(),
                state: known.map_or("", |a| a.state.word()),
                end: end_of(&store.branches().list(child)?, &row.head),
                row,
            });
            entries.extend(store.paths().all(child)?);
            add(&mut spent[1], spent_in(store, child)?);
        }
        let mut book = Self {
            row,
            branches,
            tags: store.tags().list(id)?,
            entries,
            agents,
            calls: HashMap::new(),
            answered: HashSet::new(),
            at: HashMap::new(),
            end,
            spent: Some(spent),
        };
        book.index();
        Ok(book)
    }

    fn index(&mut self) {
        self.at = self.entries.iter().enumerate().map(|(n, e)| (e.id, n)).collect();
        self.calls.clear();
        self.answered.clear();
        for entry in &self.entries {
            let EntryBody::ToolResult { call_id, .. } = &entry.body else { continue };
            let mut above = entry.parent;
            for _ in 0..NEAR {
                let Some(at) = above.and_then(|id| self.at.get(&id)) else { break };
                let near = &self.entries[*at];
                let EntryBody::Assistant { blocks, .. } = &near.body else {
                    above = near.parent;
                    continue;
                };
                let call = blocks.iter().find_map(|b| match b {
                    Block::ToolCall(call) if call.id == *call_id => Some(call),
                    _ => None,
                });
                if let Some(call) = call {
                    self.calls.insert(entry.id, call.clone());
                    self.answered.insert((near.id, call.id.clone()));
                    break;
                }
                above = near.parent;
            }
        }
    }

    /// The call whose result an entry is.
    pub(super) fn call_of(&self, result: EntryId) -> Option<&ToolCall> {
        self.calls.get(&result)
    }

    /// Whether a call of a reply has a result.
    pub(super) fn answered(&self, reply: EntryId, call: &str) -> bool {
        self.answered.contains(&(reply, call.to_owned()))
    }

    /// Whether the entry is of an agent's session.
    pub(super) fn by_agent(&self, entry: &Entry) -> bool {
        entry.session != self.row.summary.id
    }

    /// Entries of the session itself.
    pub(super) fn own(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| !self.by_agent(e))
    }

    /// Removes all branches but the one with this name. False: it does not exist.
    pub(super) fn only(&mut self, name: &str) -> bool {
        let found = self
            .branches
            .iter()
            .find(|b| b.label == name)
            .or_else(|| self.branches.iter().find(|b| b.name == name));
        let Some(branch) = found.cloned() else { return false };
        self.spent = None;
        self.end = branch.entry;
        let mut keep: HashSet<EntryId> =
            self.path(branch.entry).into_iter().map(|at| self.entries[at].id).collect();
        // With the agents that were started on it, and their own agents.
        let mut agents = std::mem::take(&mut self.agents);
        loop {
            let (more, rest) =
                agents.into_iter().partition(|a| a.row.spawned_by.is_some_and(|e| keep.contains(&e)));
            agents = rest;
            if Vec::is_empty(&more) {
                break;
            }
            let ids: HashSet<SessionId> = more.iter().map(|a: &Helper| a.row.summary.id).collect();
            keep.extend(self.entries.iter().filter(|e| ids.contains(&e.session)).map(|e| e.id));
            self.agents.extend(more);
        }
        self.entries.retain(|e| keep.contains(&e.id));
        self.row.head.clone_from(&branch.name);
        self.branches = vec![branch];
        self.index();
        let at = &self.at;
        self.tags.retain(|t| at.contains_key(&t.entry));
        true
    }

    /// The path from the root to `end`, as indices of `entries`.
    pub(super) fn path(&self, end: Option<EntryId>) -> Vec<usize> {
        let mut path = Vec::new();
        let mut next = end;
        while let Some(at) = next.and_then(|id| self.at.get(&id)).copied() {
            path.push(at);
            next = self.entries[at].parent;
        }
        path.reverse();
        path
    }

    /// Ends of all paths: branches first (the current one before the others), then ends without a branch.
    pub(super) fn ends(&self) -> Vec<(Option<&BranchRow>, EntryId)> {
        let mut branches: Vec<&BranchRow> = self.branches.iter().collect();
        branches.sort_by_key(|b| (b.name != self.row.head, b.archived));
        let mut ends: Vec<_> = branches.into_iter().filter_map(|b| b.entry.map(|e| (Some(b), e))).collect();
        let parents: HashSet<EntryId> = self.own().filter_map(|e| e.parent).collect();
        ends.extend(self.own().filter(|e| !parents.contains(&e.id)).map(|e| (None, e.id)));
        ends
    }

    /// Tokens and cost of all requests, of the session itself or of its agents; of a branch, and of a session that was imported
    /// without its requests, those of the replies.
    pub(super) fn totals(&self, agents: bool) -> (Usage, Option<Cost>) {
        let mut sum = (Usage::default(), None::<Cost>);
        for entry in self.entries.iter().filter(|e| self.by_agent(e) == agents) {
            if let EntryBody::Assistant { usage, cost, .. } = &entry.body {
                add(&mut sum, (*usage, *cost));
            }
        }
        let all = |of: &(Usage, Option<Cost>)| of.0.context().saturating_add(of.0.output);
        let booked = self.spent.map(|spent| spent[usize::from(agents)]);
        booked.filter(|booked| all(booked) >= all(&sum)).unwrap_or(sum)
    }

    /// Number of agents, and their usage.
    pub(super) fn agents_in_short(&self) -> String {
        let (usage, cost) = self.totals(true);
        let money = cost.map_or("cost unknown".into(), |c| format!("${:.4}", c.usd()));
        let entries = self.entries.iter().filter(|e| self.by_agent(e)).count();
        let n = self.agents.len();
        format!("{n} ({entries} entries, {} tokens in, {} out, {money})", usage.context(), usage.output)
    }

    /// Branches that end at an entry.
    pub(super) fn heads_at(&self, id: EntryId) -> impl Iterator<Item = &BranchRow> {
        self.branches.iter().filter(move |b| b.entry == Some(id))
    }

    /// Tags on an entry.
    pub(super) fn tags_at(&self, id: EntryId) -> impl Iterator<Item = &TagRow> {
        self.tags.iter().filter(move |t| t.entry == id)
    }

    /// The first line of the messages at or after an index, for the title of a branch.
    pub(super) fn first_words(&self, at: usize) -> &str {
        match &self.entries[at].body {
            EntryBody::User { message, .. } => message.text.lines().next().unwrap_or(""),
            EntryBody::Checkpoint { name } => name,
            other => other.kind(),
        }
    }
}
