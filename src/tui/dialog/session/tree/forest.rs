//! The sessions, which of their trees are unfolded, and the rows that result. Nothing here draws or sends requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tiller_protocol::tree::{NodeKind, SessionTree, TreeFound, TreeMarks};
use tiller_protocol::{AgentId, AgentState, Cost, SessionId, SessionSummary, Time};

use super::filter::{EntryFilter, Filter};
use super::shape::{DEEPEST, Shape};

/// How far a tree is loaded.
#[derive(Debug)]
pub(crate) enum LoadState {
    /// Not requested.
    NotRequested,
    Requested,
    Loaded(Box<Shape>),
    /// It could not be read, for this reason.
    Failed(String),
}

/// The facts in the title row of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionFacts {
    pub title: String,
    pub project: String,
    pub time: Option<Time>,
    pub model: String,
    pub entries: u64,
    pub cost: Option<Cost>,
    pub archived: bool,
    /// A run of `tiller exec`: shown with what is archived.
    pub exec: bool,
    /// Another process has it open.
    pub open_in: bool,
}

/// The agent of a nested session: its last state, and what it used.
#[derive(Debug, Default)]
pub(crate) struct ChildAgent {
    pub agent: Option<AgentId>,
    pub state: Option<AgentState>,
    pub tokens: u64,
    /// Files that it changed.
    pub files: u32,
}

/// A session: its title row, and its tree below it.
#[derive(Debug)]
pub(crate) struct SessionNode {
    pub session: SessionId,
    pub about: SessionFacts,
    /// It was moved to the trash in this dialog: the row stays until the list is read again, so that the same key
    /// restores it.
    pub trashed: bool,
    /// The session of a child agent: it is shown below an entry of its parent's.
    pub nested: bool,
    pub child: ChildAgent,
    pub open: bool,
    pub state: LoadState,
    /// Turns whose calls are shown, and branches that are folded, by their first node.
    pub turns: HashSet<u32>,
    pub folded: HashSet<u32>,
    /// Nodes that match the search.
    pub hits: Option<Vec<bool>>,
    /// Number of matches, before the tree is loaded.
    pub found: usize,
}

impl SessionNode {
    /// Its tree, once it is loaded.
    pub(crate) fn shape(&self) -> Option<&Shape> {
        if let LoadState::Loaded(shape) = &self.state { Some(shape) } else { None }
    }
}

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RowKind {
    /// A session's title.
    Title,
    Node(u32),
    /// Placeholder: the tree is not loaded yet, or has nothing to show.
    Wait,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeRow {
    /// Index of its session.
    pub tree: u32,
    pub what: RowKind,
    pub depth: u8,
    /// It begins a branch: a line leads to it from the column before.
    pub first: bool,
    /// Columns in which a line goes on below it.
    pub lines: u64,
    /// Nodes of a folded branch that it stands for.
    pub hidden: u32,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    pub trees: Vec<SessionNode>,
    /// Those with a row of their own, in the order of the list.
    pub roots: Vec<u32>,
    by_id: HashMap<SessionId, u32>,
}

impl Forest {
    /// Index of a session in `trees`.
    pub(crate) fn find(&self, session: SessionId) -> Option<usize> {
        self.by_id.get(&session).map(|n| *n as usize)
    }

    fn add(&mut self, tree: SessionNode) -> u32 {
        let n = self.trees.len() as u32;
        self.by_id.insert(tree.session, n);
        self.trees.push(tree);
        n
    }

    /// The place of a session, known or not, unfolded.
    pub(crate) fn ready(&mut self, session: SessionId) -> usize {
        let n = match self.find(session) {
            Some(n) => n,
            None => self.add(fresh(session)) as usize,
        };
        self.trees[n].open = true;
        n
    }

    /// Takes the list of sessions; what is known of them stays.
    pub(crate) fn list(&mut self, sessions: &[SessionSummary]) {
        self.roots.clear();
        for s in sessions {
            let n = match self.find(s.id) {
                Some(n) => n as u32,
                None => self.add(fresh(s.id)),
            };
            let tree = &mut self.trees[n as usize];
            tree.about.title = if s.title.is_empty() { s.preview.clone() } else { s.title.clone() };
            (tree.about.project, tree.about.time) = (s.project.clone(), Some(s.used));
            (tree.about.model, tree.about.entries, tree.about.cost) = (s.model.0.clone(), s.entries, s.cost);
            // Our own process has it for an agent that is not on the screen.
            let own = std::process::id().to_string();
            let elsewhere = s.open_in.as_ref().is_some_and(|pid| *pid != own);
            (tree.about.archived, tree.about.open_in, tree.trashed) = (s.archived, elsewhere, false);
            tree.about.exec = s.exec;
            self.roots.push(n);
        }
    }

    /// Takes a tree that has arrived.
    pub(crate) fn put(&mut self, tree: impl Into<Arc<SessionTree>>) {
        let tree = tree.into();
        for s in &tree.spawned {
            let n = match self.find(s.session) {
                Some(n) => n as u32,
                None => self.add(fresh(s.session)),
            };
            let child = &mut self.trees[n as usize];
            child.nested = true;
            child.about.project.clone_from(&tree.project);
            (child.about.title, child.about.entries, child.about.cost) = (s.title.clone(), s.entries, s.cost);
            (child.child.agent, child.child.state, child.about.time) = (s.agent.clone(), s.state, s.time);
            (child.child.tokens, child.child.files) = (s.tokens, s.files);
        }
        let n = match self.find(tree.session) {
            Some(n) => n,
            None => self.add(fresh(tree.session)) as usize,
        };
        let t = &mut self.trees[n];
        if !tree.title.is_empty() {
            t.about.title.clone_from(&tree.title);
        }
        let old = match std::mem::replace(&mut t.state, LoadState::NotRequested) {
            LoadState::Loaded(old) => Some(old),
            _ => None,
        };
        let mut shape = Shape::new(tree);
        if let Some(old) = old {
            // Marks come after the nodes: until then, what was known holds. Nodes are only added.
            let known = old.files.len().min(shape.files.len());
            shape.files[..known].copy_from_slice(&old.files[..known]);
            shape.failed[..known].copy_from_slice(&old.failed[..known]);
            shape.within[..known].copy_from_slice(&old.within[..known]);
            shape.total();
        }
        t.hits = None;
        t.state = LoadState::Loaded(Box::new(shape));
    }

    /// Takes the marks of a session; returns whether they changed anything.
    pub(crate) fn mark(&mut self, session: SessionId, marks: &TreeMarks) -> bool {
        let Some(n) = self.find(session) else { return false };
        match &mut self.trees[n].state {
            LoadState::Loaded(shape) => shape.mark(marks),
            _ => false,
        }
    }

    /// Takes the entries that match the search; `None`: no search.
    pub(crate) fn found(&mut self, found: Option<&TreeFound>) {
        let of: HashMap<SessionId, &Vec<i64>> =
            found.iter().flat_map(|f| &f.sessions).map(|(id, seqs)| (*id, seqs)).collect();
        for tree in &mut self.trees {
            let seqs = of.get(&tree.session).map_or(&[][..], |s| s.as_slice());
            tree.found = seqs.len();
            tree.hits = match &tree.state {
                LoadState::Loaded(shape) if found.is_some() => Some(shape.among(seqs)),
                _ => None,
            };
        }
    }

    /// The rows, as filter and folds have them.
    pub(crate) fn rows(&self, filter: &Filter) -> Vec<TreeRow> {
        let mut rows = Vec::new();
        let words = filter.text.trim().to_lowercase();
        for n in &self.roots {
            let tree = &self.trees[*n as usize];
            let named = words.is_empty() || tree.about.title.to_lowercase().contains(&words);
            let away = tree.about.archived || tree.about.exec;
            if (away && !filter.archived) || !(named || tree.found > 0 || self.below(tree)) {
                continue;
            }
            self.session(*n, 0, filter, &mut rows);
        }
        lines(&mut rows);
        rows
    }

    /// True where the session of a child agent below this one matches the search.
    fn below(&self, tree: &SessionNode) -> bool {
        let found = |id: SessionId| self.find(id).is_some_and(|n| self.trees[n].found > 0);
        tree.shape().is_some_and(|s| s.tree.spawned.iter().any(|c| found(c.session)))
    }

    /// A session's title and what is shown below it.
    fn session(&self, n: u32, depth: u8, filter: &Filter, rows: &mut Vec<TreeRow>) {
        let tree = &self.trees[n as usize];
        let row = |what| TreeRow { tree: n, what, depth, first: false, lines: 0, hidden: 0 };
        rows.push(TreeRow { first: tree.nested, ..row(RowKind::Title) });
        // What is looked for is shown, whatever is folded.
        if !tree.open && (filter.text.trim().is_empty() || tree.found == 0) {
            return;
        }
        let Some(shape) = tree.shape() else { return rows.push(row(RowKind::Wait)) };
        let before = rows.len();
        self.nodes(n, tree, shape, depth, filter, rows);
        if rows.len() == before {
            rows.push(row(RowKind::Wait));
        }
    }

    fn nodes(
        &self,
        n: u32,
        tree: &SessionNode,
        shape: &Shape,
        base: u8,
        filter: &Filter,
        rows: &mut Vec<TreeRow>,
    ) {
        // A folded branch: its depth, and the row that counts what is hidden.
        let mut hiding: Option<(u8, Option<usize>)> = None;
        // Of each node, the depth of the nearest row at or above it, and whether it goes straight on from there.
        let mut near: Vec<(u8, bool)> = vec![(0, true); shape.depth.len()];
        let shown = filter.of(tree, shape);
        for at in &shape.order {
            let i = *at as usize;
            let depth = shape.depth[i];
            if let Some((deep, counts)) = hiding {
                if depth > deep || (depth == deep && !shape.first[i]) {
                    if let Some(row) = counts.and_then(|c| rows.get_mut(c)) {
                        row.hidden += 1;
                    }
                    continue;
                }
                hiding = None;
            }
            // A node without a row takes no lane: a line leads from each row to the nearest row above it on its branch.
            let (above, straight) = shape.tree.nodes[i].parent.map_or((0, true), |p| near[p as usize]);
            let straight = straight && !shape.first[i];
            near[i] = (above, straight);
            if shown.has(i) {
                let own = if straight { above } else { above.saturating_add(1).min(DEEPEST) };
                near[i] = (own, true);
                let (first, depth) = (!straight, own.saturating_add(base));
                rows.push(TreeRow { tree: n, what: RowKind::Node(*at), depth, first, lines: 0, hidden: 0 });
            }
            if tree.folded.contains(at) && filter.text.trim().is_empty() {
                hiding = Some((depth, shown.has(i).then(|| rows.len() - 1)));
            }
            for s in shape.spawned.get(at).into_iter().flatten() {
                let Some(child) = self.find(shape.tree.spawned[*s].session) else { continue };
                let wanted = filter.text.trim().is_empty() || self.trees[child].found > 0;
                let all = matches!(filter.only, EntryFilter::All) && !filter.alone;
                if wanted && all && rows.len() < u32::MAX as usize {
                    let deep = near[i].0.saturating_add(base).saturating_add(1);
                    if deep < DEEPEST {
                        self.session(child as u32, deep, filter, rows);
                    }
                }
            }
        }
    }
}

fn fresh(session: SessionId) -> SessionNode {
    SessionNode {
        session,
        about: SessionFacts::default(),
        trashed: false,
        nested: false,
        child: ChildAgent::default(),
        open: false,
        state: LoadState::NotRequested,
        turns: HashSet::new(),
        folded: HashSet::new(),
        hits: None,
        found: 0,
    }
}

/// Finds in which columns lines go on, from the last row up.
fn lines(rows: &mut [TreeRow]) {
    let mut below = 0_u64;
    for row in rows.iter_mut().rev() {
        let d = u32::from(row.depth.min(62));
        row.lines = below;
        if row.what == RowKind::Title && !row.first {
            below = 0;
            continue;
        }
        let left = (1_u64 << d) - 1;
        below = (below & left) | if row.first && d > 0 { 1 << (d - 1) } else { 1 << d };
    }
}

/// Kinds of entries that keep their row when a turn is folded.
pub(crate) fn stands(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::User | NodeKind::Checkpoint | NodeKind::Compaction | NodeKind::BranchSummary)
}

#[cfg(test)]
#[path = "forest_tests.rs"]
mod tests;

/// For tests: a letter for each node, its parent, and where the current branch ends.
#[cfg(test)]
pub(crate) fn made(kinds: &str, parents: &[Option<u32>], now: u32) -> SessionTree {
    use tiller_protocol::tree::{TreeHead, TreeNode};
    let node = |(n, (kind, parent)): (usize, (char, &Option<u32>))| TreeNode {
        id: format!("{:032x}", 1000 + n).parse().expect("an id"),
        seq: 10 + n as i64,
        parent: *parent,
        kind: match kind {
            'u' => NodeKind::User,
            'a' => NodeKind::Assistant,
            't' => NodeKind::ToolResult,
            'c' => NodeKind::Checkpoint,
            'p' => NodeKind::Prefix,
            _ => NodeKind::Note,
        },
        time: Time(crate::testing::START.0 + n as i64 * 60_000),
        agent: 0,
        model: (kind == 'a').then_some(0),
        tokens: if kind == 'a' { 10 } else { 0 },
        cost: (kind == 'a').then_some(Cost(2)),
    };
    let nodes: Vec<TreeNode> = kinds.chars().zip(parents).enumerate().map(node).collect();
    let head = TreeHead {
        name: "main".into(),
        label: String::new(),
        node: (!nodes.is_empty()).then_some(now),
        archived: false,
        current: true,
        open_in: None,
    };
    SessionTree {
        session: format!("{:032x}", 1).parse().expect("an id"),
        title: "retry work".into(),
        project: "/home/ann/api".into(),
        agents: vec!["main".into()],
        models: vec!["vendor/model-x".into()],
        nodes,
        heads: vec![head],
        tags: Vec::new(),
        spawned: Vec::new(),
    }
}
