//! One session's tree in the order of its rows: computed once when the nodes arrive, in a few passes over them.
//! A straight path has one depth; each branch that is left of it stands one deeper, above what went on.

use std::collections::HashMap;
use std::sync::Arc;

use tiller_protocol::Cost;
use tiller_protocol::tree::{NodeKind, SessionTree, TreeMarks, TreeNode};

/// Deeper branches are drawn at this depth: a row's lines are the bits of one number.
pub(crate) const DEEPEST: u8 = 60;
const NONE: u32 = u32::MAX;

/// Totals of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnTotals {
    pub tokens: u64,
    /// `None`: no price is known.
    pub cost: Option<Cost>,
    /// Index of the model that replied last.
    pub model: Option<u16>,
}

/// The nodes of a session with their structure and marks.
#[derive(Debug)]
pub(crate) struct Shape {
    pub tree: Arc<SessionTree>,
    /// Nodes in the order of rows.
    pub order: Vec<u32>,
    /// How many branches deep.
    pub depth: Vec<u8>,
    /// Begins a branch.
    pub first: Vec<bool>,
    /// Messages that begin no turn.
    pub within: Vec<bool>,
    /// The message that begins its turn; itself, where there is none above.
    pub turn: Vec<u32>,
    /// Of whole turns, at the message that begins them; of other nodes their own.
    pub sums: Vec<TurnTotals>,
    /// On the path of the current branch.
    pub path: Vec<bool>,
    /// Nodes that are on archived branches only.
    pub away: Vec<bool>,
    pub files: Vec<u32>,
    pub failed: Vec<bool>,
    /// On a straight path that changed files.
    pub changed: Vec<bool>,
    /// Places of heads, tags and sessions of subagents, by node.
    pub heads: HashMap<u32, Vec<usize>>,
    pub tags: HashMap<u32, Vec<usize>>,
    pub spawned: HashMap<u32, Vec<usize>>,
}

/// The child with which each node goes straight on.
fn trunks(nodes: &[TreeNode], path: &[bool]) -> (Vec<u32>, u32) {
    // The newest entry at or below each; children stand behind their parents.
    let mut newest: Vec<u32> = (0..nodes.len() as u32).collect();
    for (n, node) in nodes.iter().enumerate().rev() {
        if let Some(p) = node.parent {
            newest[p as usize] = newest[p as usize].max(newest[n]);
        }
    }
    let rank = |n: u32| (path[n as usize], newest[n as usize]);
    let (mut trunk, mut root) = (vec![NONE; nodes.len()], NONE);
    for (n, node) in nodes.iter().enumerate() {
        let best = node.parent.map_or(&mut root, |p| &mut trunk[p as usize]);
        if *best == NONE || rank(n as u32) > rank(*best) {
            *best = n as u32;
        }
    }
    (trunk, root)
}

/// Everything from these nodes up.
fn marked(nodes: &[TreeNode], tips: impl Iterator<Item = u32>) -> Vec<bool> {
    let mut all = vec![false; nodes.len()];
    for tip in tips {
        let mut at = Some(tip);
        while let Some(n) = at.filter(|n| !all[*n as usize]) {
            all[n as usize] = true;
            at = nodes[n as usize].parent;
        }
    }
    all
}

fn by_node(nodes: impl Iterator<Item = Option<u32>>) -> HashMap<u32, Vec<usize>> {
    let mut all: HashMap<u32, Vec<usize>> = HashMap::new();
    for (n, node) in nodes.enumerate() {
        if let Some(node) = node {
            all.entry(node).or_default().push(n);
        }
    }
    all
}

/// True where a parent stands before its child, and what hangs at nodes has them.
fn is_sound(tree: &SessionTree) -> bool {
    let there = |node: u32| (node as usize) < tree.nodes.len();
    tree.nodes.iter().enumerate().all(|(n, node)| node.parent.is_none_or(|p| (p as usize) < n))
        && tree.heads.iter().all(|h| h.node.is_none_or(there))
        && tree.tags.iter().all(|t| there(t.node))
        && tree.spawned.iter().all(|s| there(s.node))
}

/// Drops references that lead nowhere.
fn mend(tree: &mut SessionTree) {
    let len = tree.nodes.len();
    let there = |node: u32| (node as usize) < len;
    for (n, node) in tree.nodes.iter_mut().enumerate() {
        node.parent = node.parent.filter(|p| (*p as usize) < n);
    }
    tree.heads.iter_mut().for_each(|h| h.node = h.node.filter(|n| there(*n)));
    tree.tags.retain(|t| there(t.node));
    tree.spawned.retain(|s| there(s.node));
}

impl Shape {
    /// Computes the structure of a tree. References to nodes that do not exist are dropped.
    pub(crate) fn new(tree: impl Into<Arc<SessionTree>>) -> Self {
        let mut tree = tree.into();
        if !is_sound(&tree) {
            mend(Arc::make_mut(&mut tree));
        }
        let nodes = &tree.nodes;
        let len = nodes.len();
        let tips = |which: &dyn Fn(&tiller_protocol::tree::TreeHead) -> bool| {
            let tips: Vec<u32> = tree.heads.iter().filter(|h| which(h)).filter_map(|h| h.node).collect();
            marked(nodes, tips.into_iter())
        };
        let path = tips(&|h| h.current);
        let (live, put) = (tips(&|h| !h.archived || h.current), tips(&|h| h.archived));
        let away = put.iter().zip(&live).map(|(put, live)| *put && !live).collect();
        let (trunk, root) = trunks(nodes, &path);
        let straight = |n: usize| nodes[n].parent.map_or(root, |p| trunk[p as usize]) == n as u32;
        let (mut depth, mut first) = (vec![0_u8; len], vec![false; len]);
        for (n, node) in nodes.iter().enumerate() {
            first[n] = !straight(n);
            let above = node.parent.map_or(0, |p| depth[p as usize]);
            depth[n] = (above + u8::from(first[n])).min(DEEPEST);
        }
        let order = order(nodes, &trunk, root);
        let mut shape = Self {
            order,
            depth,
            first,
            within: vec![false; len],
            turn: vec![0; len],
            sums: vec![TurnTotals::default(); len],
            path,
            away,
            files: vec![0; len],
            failed: vec![false; len],
            changed: vec![false; len],
            heads: by_node(tree.heads.iter().map(|h| h.node)),
            tags: by_node(tree.tags.iter().map(|t| Some(t.node))),
            spawned: by_node(tree.spawned.iter().map(|s| Some(s.node))),
            tree,
        };
        shape.total();
        shape
    }

    /// Finds the turn of each node, and adds up whole turns.
    pub(crate) fn total(&mut self) {
        let Self { tree, within, turn, sums, .. } = self;
        let nodes = &tree.nodes;
        for (n, node) in nodes.iter().enumerate() {
            let is_user = node.kind == NodeKind::User;
            // A message before the first turn stands for itself.
            let above = node.parent.map(|p| turn[p as usize]);
            let above = above.filter(|at| !is_user || nodes[*at as usize].kind == NodeKind::User);
            turn[n] = above.filter(|_| !is_user || within[n]).unwrap_or(n as u32);
            sums[n] = TurnTotals { tokens: node.tokens, cost: node.cost, model: node.model };
            let of = turn[n] as usize;
            if of != n {
                sums[of].tokens = sums[of].tokens.saturating_add(node.tokens);
                sums[of].model = node.model.or(sums[of].model);
                sums[of].cost = match (sums[of].cost, node.cost) {
                    (Some(a), Some(b)) => Some(a.plus(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }

    /// Takes in what came later; returns whether it changed anything.
    pub(crate) fn mark(&mut self, marks: &TreeMarks) -> bool {
        let mut changed = vec![0; self.files.len()];
        for (seq, files) in &marks.files {
            if let Some(n) = self.by_seq(*seq) {
                changed[n] = *files;
            }
        }
        let mut new = changed != self.files;
        self.files = changed;
        for seq in &marks.failed {
            if let Some(n) = self.by_seq(*seq) {
                new |= !self.failed[n];
                self.failed[n] = true;
            }
        }
        let mut within = vec![false; self.within.len()];
        for n in marks.within.iter().filter_map(|seq| self.by_seq(*seq)) {
            within[n] = true;
        }
        if within != self.within {
            self.within = within;
            self.total();
            new = true;
        }
        // A straight path is named by its first node.
        let mut chain: Vec<u32> = Vec::with_capacity(self.tree.nodes.len());
        for (n, node) in self.tree.nodes.iter().enumerate() {
            let above = node.parent.filter(|_| !self.first[n]);
            chain.push(above.map_or(n as u32, |p| chain[p as usize]));
        }
        let mut some = vec![false; chain.len()];
        for (n, of) in chain.iter().enumerate() {
            some[*of as usize] |= self.files[n] > 0;
        }
        self.changed = chain.iter().map(|of| some[*of as usize]).collect();
        new
    }

    /// Index of the node with this number.
    pub(crate) fn by_seq(&self, seq: i64) -> Option<usize> {
        self.tree.nodes.binary_search_by_key(&seq, |n| n.seq).ok()
    }

    /// Which nodes are among these numbers, both growing.
    pub(crate) fn among(&self, seqs: &[i64]) -> Vec<bool> {
        let mut seqs = seqs.iter().peekable();
        let among = |n: &TreeNode| {
            while seqs.next_if(|s| **s < n.seq).is_some() {}
            seqs.peek().is_some_and(|s| **s == n.seq)
        };
        self.tree.nodes.iter().map(among).collect()
    }
}

/// Each node, then the branches that left it, oldest first, then what went straight on.
fn order(nodes: &[TreeNode], trunk: &[u32], root: u32) -> Vec<u32> {
    let len = nodes.len();
    // Children as chains, the newest first; the last place is for the roots.
    let (mut head, mut next) = (vec![NONE; len + 1], vec![NONE; len]);
    for (n, node) in nodes.iter().enumerate() {
        let at = node.parent.map_or(len, |p| p as usize);
        next[n] = head[at];
        head[at] = n as u32;
    }
    let mut order = Vec::with_capacity(len);
    let mut stack = Vec::new();
    let push = |at: usize, straight: u32, stack: &mut Vec<u32>| {
        if straight != NONE {
            stack.push(straight);
        }
        let mut child = head[at];
        while child != NONE {
            if child != straight {
                stack.push(child);
            }
            child = next[child as usize];
        }
    };
    push(len, root, &mut stack);
    while let Some(n) = stack.pop() {
        order.push(n);
        push(n as usize, trunk[n as usize], &mut stack);
    }
    order
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
