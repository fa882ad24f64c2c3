//! What is left out of the trees.

use tiller_protocol::tree::NodeKind;

use super::forest::{Tree, stands};
use super::shape::Shape;

/// Which entries are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Only {
    #[default]
    All,
    /// Named points: checkpoints, tags, branches with a name.
    Named,
    /// Branches that changed files.
    Changes,
    /// Calls that failed, and replies that were cut, stopped or refused.
    Errors,
}

impl Only {
    pub(super) fn next(self) -> Self {
        match self {
            Self::All => Self::Named,
            Self::Named => Self::Changes,
            Self::Changes => Self::Errors,
            Self::Errors => Self::All,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Named => "only checkpoints",
            Self::Changes => "only branches with file changes",
            Self::Errors => "only errors",
        }
    }
}

/// All filters together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// Words that were found; what is being typed may be further on.
    pub text: String,
    pub only: Only,
    /// Only entries of this agent.
    pub agent: Option<String>,
    /// Also what was put away.
    pub archived: bool,
    /// Tool calls and replies are unfolded everywhere.
    pub all: bool,
}

impl Filter {
    /// Something is left out besides what is folded.
    pub(super) fn active(&self) -> bool {
        !self.text.trim().is_empty() || self.only != Only::All || self.agent.is_some()
    }

    /// For one tree.
    pub(super) fn of<'a>(&'a self, tree: &'a Tree, shape: &'a Shape) -> Shown<'a> {
        let agent = self.agent.as_ref().map(|a| shape.tree.agents.iter().position(|n| n == a));
        let words = self.text.trim().to_lowercase();
        let has = |name: &str| !words.is_empty() && name.to_lowercase().contains(&words);
        let tags = shape.tree.tags.iter().filter(|t| has(&t.name)).map(|t| t.node);
        let heads = shape.tree.heads.iter().filter(|h| has(&h.label)).filter_map(|h| h.node);
        let called = tags.chain(heads).collect();
        Shown { filter: self, tree, shape, agent, typed: !words.is_empty(), called }
    }
}

/// A filter on one tree.
pub(super) struct Shown<'a> {
    filter: &'a Filter,
    tree: &'a Tree,
    shape: &'a Shape,
    /// The agent's place; `Some(None)`: it is not in this tree.
    agent: Option<Option<usize>>,
    /// Words are looked for.
    typed: bool,
    /// Nodes with a name that holds them: a few.
    called: Vec<u32>,
}

impl Shown<'_> {
    /// Whether a node has a row.
    pub(super) fn has(&self, n: usize) -> bool {
        let node = &self.shape.tree.nodes[n];
        if self.shape.away[n] && !self.filter.archived {
            return false;
        }
        if self.agent.is_some_and(|a| a != Some(usize::from(node.agent))) {
            return false;
        }
        let kind = match self.filter.only {
            Only::All if !self.typed => self.unfolded(n),
            Only::All => node.kind != NodeKind::Prefix,
            Only::Named => node.kind == NodeKind::Checkpoint || self.named(n),
            Only::Changes => self.shape.changed[n] && self.unfolded(n),
            Only::Errors => self.shape.failed[n],
        };
        kind && (!self.typed || self.found(n))
    }

    fn unfolded(&self, n: usize) -> bool {
        let kind = self.shape.tree.nodes[n].kind;
        stands(kind) || self.filter.all || self.tree.turns.contains(&self.shape.turn[n])
    }

    fn named(&self, n: usize) -> bool {
        let n = n as u32;
        let label = |h: &usize| !self.shape.tree.heads[*h].label.is_empty();
        self.shape.tags.contains_key(&n)
            || self.shape.heads.get(&n).is_some_and(|heads| heads.iter().any(label))
    }

    /// The words stand in the entry, or in a name of it.
    fn found(&self, n: usize) -> bool {
        self.tree.hits.as_ref().is_some_and(|hits| hits[n]) || self.called.contains(&(n as u32))
    }
}
