//! A session as a page shows it: its tree, its branches, and an order in which to tell it.

use std::collections::{HashMap, HashSet};

use tiller_protocol::{Block, Cost, Entry, EntryBody, EntryId, SessionId, ToolCall, Usage};
use tiller_store::{BranchRow, Result, SessionRow, Store, TagRow};

/// Everything that is told.
pub(super) struct Book {
    pub(super) row: SessionRow,
    pub(super) branches: Vec<BranchRow>,
    pub(super) tags: Vec<TagRow>,
    /// Parents before children.
    pub(super) entries: Vec<Entry>,
    /// Calls by their id, for the results.
    pub(super) calls: HashMap<String, ToolCall>,
    /// Ids of calls that have a result.
    pub(super) answered: HashSet<String>,
    at: HashMap<EntryId, usize>,
    /// The entry where the telling ends: the current head's, or the chosen branch's.
    pub(super) end: Option<EntryId>,
}

/// One step of the telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Entry(usize),
    /// A side branch begins, with this entry.
    Open(usize),
    Close,
}

/// What the person calls a branch.
pub(super) fn called(branch: &BranchRow) -> &str {
    if branch.label.is_empty() { &branch.name } else { &branch.label }
}

impl Book {
    pub(super) fn read(store: &Store, id: SessionId) -> Result<Self> {
        let row = store.session(id)?;
        let branches = store.branches(id)?;
        let end = branches.iter().find(|b| b.name == row.head).and_then(|b| b.entry);
        let mut book = Self {
            row,
            branches,
            tags: store.tags(id)?,
            entries: store.all_entries(id)?,
            calls: HashMap::new(),
            answered: HashSet::new(),
            at: HashMap::new(),
            end,
        };
        book.index();
        Ok(book)
    }

    fn index(&mut self) {
        self.at = self.entries.iter().enumerate().map(|(n, e)| (e.id, n)).collect();
        for entry in &self.entries {
            match &entry.body {
                EntryBody::Assistant { blocks, .. } => {
                    for block in blocks {
                        if let Block::ToolCall(call) = block {
                            self.calls.insert(call.id.clone(), call.clone());
                        }
                    }
                }
                EntryBody::ToolResult { call_id, .. } => {
                    self.answered.insert(call_id.clone());
                }
                _ => {}
            }
        }
    }

    /// Leaves only the branch with this name. False: there is none.
    pub(super) fn only(&mut self, name: &str) -> bool {
        let found = self
            .branches
            .iter()
            .find(|b| b.label == name)
            .or_else(|| self.branches.iter().find(|b| b.name == name));
        let Some(branch) = found.cloned() else { return false };
        self.end = branch.entry;
        let keep: HashSet<usize> = self.path(branch.entry).into_iter().collect();
        let mut n = 0;
        self.entries.retain(|_| {
            n += 1;
            keep.contains(&(n - 1))
        });
        self.row.head.clone_from(&branch.name);
        self.branches = vec![branch];
        self.calls.clear();
        self.answered.clear();
        self.index();
        let at = &self.at;
        self.tags.retain(|t| at.contains_key(&t.entry));
        true
    }

    /// The way from the root to `end`, as places in `entries`.
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

    /// The whole tree in reading order: at a fork the side branches come first, then it goes on towards the end.
    pub(super) fn steps(&self) -> Vec<Step> {
        enum Task {
            Say(Step),
            Run(usize),
        }
        let main: HashSet<usize> = self.path(self.end).into_iter().collect();
        let mut below: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (n, entry) in self.entries.iter().enumerate() {
            let parent = entry.parent.and_then(|p| self.at.get(&p)).copied();
            below.entry(parent).or_default().push(n);
        }
        let mut steps = Vec::new();
        // A stack of our own: branches may nest as deep as the session is long.
        let mut tasks = Vec::new();
        let fork = |of: Option<usize>, tasks: &mut Vec<Task>| {
            let children = below.get(&of).map_or(&[][..], Vec::as_slice);
            let on = children.iter().find(|c| main.contains(c)).or(children.first());
            let Some(on) = on else { return };
            tasks.push(Task::Run(*on));
            for side in children.iter().rev().filter(|c| *c != on) {
                tasks.extend([Task::Say(Step::Close), Task::Run(*side), Task::Say(Step::Open(*side))]);
            }
        };
        fork(None, &mut tasks);
        while let Some(task) = tasks.pop() {
            match task {
                Task::Say(step) => steps.push(step),
                Task::Run(at) => {
                    steps.push(Step::Entry(at));
                    fork(Some(at), &mut tasks);
                }
            }
        }
        steps
    }

    /// Ends of all ways: branches first (the current one before the others), then what no branch leads to.
    pub(super) fn ends(&self) -> Vec<(Option<&BranchRow>, EntryId)> {
        let mut branches: Vec<&BranchRow> = self.branches.iter().collect();
        branches.sort_by_key(|b| (b.name != self.row.head, b.archived));
        let mut ends: Vec<_> = branches.into_iter().filter_map(|b| b.entry.map(|e| (Some(b), e))).collect();
        let parents: HashSet<EntryId> = self.entries.iter().filter_map(|e| e.parent).collect();
        ends.extend(self.entries.iter().filter(|e| !parents.contains(&e.id)).map(|e| (None, e.id)));
        ends
    }

    /// Tokens and money of all replies.
    pub(super) fn totals(&self) -> (Usage, Option<Cost>) {
        let (mut sum, mut paid) = (Usage::default(), None::<Cost>);
        for entry in &self.entries {
            if let EntryBody::Assistant { usage, cost, .. } = &entry.body {
                sum.add(usage);
                if let Some(cost) = cost {
                    paid = Some(paid.unwrap_or_default().plus(*cost));
                }
            }
        }
        (sum, paid)
    }

    /// Branches that end at an entry.
    pub(super) fn heads_at(&self, id: EntryId) -> impl Iterator<Item = &BranchRow> {
        self.branches.iter().filter(move |b| b.entry == Some(id))
    }

    /// Tags on an entry.
    pub(super) fn tags_at(&self, id: EntryId) -> impl Iterator<Item = &TagRow> {
        self.tags.iter().filter(move |t| t.entry == id)
    }

    /// The first line of what was said at or after an entry's place on its path, for the title of a branch.
    pub(super) fn first_words(&self, at: usize) -> &str {
        match &self.entries[at].body {
            EntryBody::User { message, .. } => message.text.lines().next().unwrap_or(""),
            EntryBody::Checkpoint { name } => name,
            other => other.kind(),
        }
    }
}
