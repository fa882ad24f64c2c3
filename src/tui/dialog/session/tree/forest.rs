//! Which sessions there are, which of their trees are unfolded, and the rows that come of it. Nothing here draws or
//! asks.

use std::collections::{HashMap, HashSet};

use tiller_protocol::tree::{NodeKind, SessionTree, TreeFound, TreeMarks};
use tiller_protocol::{AgentId, AgentState, Cost, SessionId, SessionSummary, Time};

use super::filter::{Filter, Only};
use super::shape::{DEEPEST, Shape};

/// Where a tree is on its way.
#[derive(Debug)]
pub(super) enum State {
    /// Not asked for.
    Away,
    Asked,
    Here(Box<Shape>),
    /// It could not be read, for this reason.
    Failed(String),
}

/// What the title row of a session says.
#[derive(Debug, Default)]
pub(super) struct About {
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
pub(super) struct Child {
    pub agent: Option<AgentId>,
    pub state: Option<AgentState>,
    pub tokens: u64,
    /// Files that it changed.
    pub files: u32,
}

/// A session: its title row, and its tree below it.
#[derive(Debug)]
pub(super) struct Tree {
    pub session: SessionId,
    pub about: About,
    /// It was moved to the trash in this dialog: the row stays until the list is read again, so that the same key
    /// restores it.
    pub trashed: bool,
    /// Hangs off an entry of another one.
    pub nested: bool,
    pub child: Child,
    pub open: bool,
    pub state: State,
    /// Turns whose calls are shown, and branches that are folded, by their first node.
    pub turns: HashSet<u32>,
    pub folded: HashSet<u32>,
    /// Nodes that hold the words that are looked for.
    pub hits: Option<Vec<bool>>,
    /// How many there are, before the tree is here.
    pub found: usize,
}

impl Tree {
    pub(super) fn shape(&self) -> Option<&Shape> {
        if let State::Here(shape) = &self.state { Some(shape) } else { None }
    }
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A session's title.
    Title,
    Node(u32),
    /// Its tree is not here yet, or holds nothing to show.
    Wait,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Place of its session.
    pub tree: u32,
    pub what: What,
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
pub(super) struct Forest {
    pub trees: Vec<Tree>,
    /// Those with a row of their own, in the order of the list.
    pub roots: Vec<u32>,
    by_id: HashMap<SessionId, u32>,
}

impl Forest {
    pub(super) fn find(&self, session: SessionId) -> Option<usize> {
        self.by_id.get(&session).map(|n| *n as usize)
    }

    fn add(&mut self, tree: Tree) -> u32 {
        let n = self.trees.len() as u32;
        self.by_id.insert(tree.session, n);
        self.trees.push(tree);
        n
    }

    /// The place of a session, known or not, unfolded.
    pub(super) fn ready(&mut self, session: SessionId) -> usize {
        let n = match self.find(session) {
            Some(n) => n,
            None => self.add(fresh(session)) as usize,
        };
        self.trees[n].open = true;
        n
    }

    /// Takes the list of sessions; what is known of them stays.
    pub(super) fn list(&mut self, sessions: &[SessionSummary]) {
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

    /// A tree has come.
    pub(super) fn put(&mut self, tree: SessionTree) {
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
        let old = match std::mem::replace(&mut t.state, State::Away) {
            State::Here(old) => Some(old),
            _ => None,
        };
        let mut shape = Shape::new(tree);
        if let Some(old) = old {
            // Marks come after the nodes: until then, what was known holds. Nodes are only added.
            let known = old.files.len().min(shape.files.len());
            shape.files[..known].copy_from_slice(&old.files[..known]);
            shape.failed[..known].copy_from_slice(&old.failed[..known]);
        }
        t.hits = None;
        t.state = State::Here(Box::new(shape));
    }

    pub(super) fn mark(&mut self, session: SessionId, marks: &TreeMarks) {
        if let Some(n) = self.find(session)
            && let State::Here(shape) = &mut self.trees[n].state
        {
            shape.mark(marks);
        }
    }

    /// Which entries hold the words; `None`: nothing is looked for.
    pub(super) fn found(&mut self, found: Option<&TreeFound>) {
        let of: HashMap<SessionId, &Vec<i64>> =
            found.iter().flat_map(|f| &f.sessions).map(|(id, seqs)| (*id, seqs)).collect();
        for tree in &mut self.trees {
            let seqs = of.get(&tree.session).map_or(&[][..], |s| s.as_slice());
            tree.found = seqs.len();
            tree.hits = match &tree.state {
                State::Here(shape) if found.is_some() => Some(shape.among(seqs)),
                _ => None,
            };
        }
    }

    /// The rows, as filter and folds have them.
    pub(super) fn rows(&self, filter: &Filter) -> Vec<Row> {
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

    /// A session of a subagent below it holds the words.
    fn below(&self, tree: &Tree) -> bool {
        let found = |id: SessionId| self.find(id).is_some_and(|n| self.trees[n].found > 0);
        tree.shape().is_some_and(|s| s.tree.spawned.iter().any(|c| found(c.session)))
    }

    /// A session's title and what is shown below it.
    fn session(&self, n: u32, depth: u8, filter: &Filter, rows: &mut Vec<Row>) {
        let tree = &self.trees[n as usize];
        let row = |what| Row { tree: n, what, depth, first: false, lines: 0, hidden: 0 };
        rows.push(Row { first: tree.nested, ..row(What::Title) });
        // What is looked for is shown, whatever is folded.
        if !tree.open && (filter.text.trim().is_empty() || tree.found == 0) {
            return;
        }
        let Some(shape) = tree.shape() else { return rows.push(row(What::Wait)) };
        let before = rows.len();
        self.nodes(n, tree, shape, depth, filter, rows);
        if rows.len() == before {
            rows.push(row(What::Wait));
        }
    }

    fn nodes(&self, n: u32, tree: &Tree, shape: &Shape, base: u8, filter: &Filter, rows: &mut Vec<Row>) {
        // A folded branch: its depth, and the row that counts what is hidden.
        let mut hiding: Option<(u8, Option<usize>)> = None;
        // By depth: a branch begins, and has no row yet. The line leads to the first that it gets.
        let mut begun = [false; DEEPEST as usize + 1];
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
            let begins = &mut begun[usize::from(depth.min(DEEPEST))];
            *begins |= shape.first[i];
            if shown.has(i) {
                let (first, depth) = (std::mem::take(begins), depth.saturating_add(base));
                rows.push(Row { tree: n, what: What::Node(*at), depth, first, lines: 0, hidden: 0 });
            }
            if tree.folded.contains(at) && filter.text.trim().is_empty() {
                hiding = Some((depth, shown.has(i).then(|| rows.len() - 1)));
            }
            for s in shape.spawned.get(at).into_iter().flatten() {
                let Some(child) = self.find(shape.tree.spawned[*s].session) else { continue };
                let wanted = filter.text.trim().is_empty() || self.trees[child].found > 0;
                if wanted && matches!(filter.only, Only::All) && rows.len() < u32::MAX as usize {
                    let deep = depth.saturating_add(base).saturating_add(1);
                    if deep < DEEPEST {
                        self.session(child as u32, deep, filter, rows);
                    }
                }
            }
        }
    }
}

fn fresh(session: SessionId) -> Tree {
    Tree {
        session,
        about: About::default(),
        trashed: false,
        nested: false,
        child: Child::default(),
        open: false,
        state: State::Away,
        turns: HashSet::new(),
        folded: HashSet::new(),
        hits: None,
        found: 0,
    }
}

/// Finds in which columns lines go on, from the last row up.
fn lines(rows: &mut [Row]) {
    let mut below = 0_u64;
    for row in rows.iter_mut().rev() {
        let d = u32::from(row.depth.min(62));
        row.lines = below;
        if row.what == What::Title && !row.first {
            below = 0;
            continue;
        }
        let left = (1_u64 << d) - 1;
        below = (below & left) | if row.first && d > 0 { 1 << (d - 1) } else { 1 << d };
    }
}

/// Kinds that stand for themselves when everything else is folded.
pub(super) fn stands(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::User | NodeKind::Checkpoint | NodeKind::Compaction | NodeKind::BranchSummary)
}

#[cfg(test)]
#[path = "forest_tests.rs"]
mod tests;

/// For tests: a letter for each node, its parent, and where the current branch ends.
#[cfg(test)]
pub(super) fn made(kinds: &str, parents: &[Option<u32>], now: u32) -> SessionTree {
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
