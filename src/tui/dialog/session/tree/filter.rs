//! Filters on the trees.

use tiller_protocol::tree::NodeKind;

use super::forest::{SessionNode, stands};
use super::shape::Shape;

/// Which entries are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EntryFilter {
    #[default]
    All,
    /// Named points: checkpoints, tags, branches with a name.
    Named,
    /// Branches that changed files.
    Changes,
    /// Calls that failed, and replies that were cut, stopped or refused.
    Errors,
}

impl EntryFilter {
    /// The filter after this one, round and round.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::All => Self::Named,
            Self::Named => Self::Changes,
            Self::Changes => Self::Errors,
            Self::Errors => Self::All,
        }
    }

    /// Its name on the screen; empty where nothing is left out.
    pub(crate) fn words(self) -> &'static str {
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
pub(crate) struct Filter {
    /// The text of the last search; the text that is being typed may be longer.
    pub text: String,
    pub only: EntryFilter,
    /// Only entries of this agent.
    pub agent: Option<String>,
    /// Archived sessions and branches too.
    pub archived: bool,
    /// Tool calls and replies are unfolded everywhere.
    pub all: bool,
    /// Sessions of child agents have no rows.
    pub alone: bool,
}

impl Filter {
    /// Something is left out besides what is folded.
    pub(crate) fn active(&self) -> bool {
        !self.text.trim().is_empty() || self.only != EntryFilter::All || self.agent.is_some()
    }

    /// For one tree.
    pub(crate) fn of<'a>(&'a self, tree: &'a SessionNode, shape: &'a Shape) -> TreeFilter<'a> {
        let agent = self.agent.as_ref().map(|a| shape.tree.agents.iter().position(|n| n == a));
        let words = self.text.trim().to_lowercase();
        let has = |name: &str| !words.is_empty() && name.to_lowercase().contains(&words);
        let tags = shape.tree.tags.iter().filter(|t| has(&t.name)).map(|t| t.node);
        let heads = shape.tree.heads.iter().filter(|h| has(&h.label)).filter_map(|h| h.node);
        let called = tags.chain(heads).collect();
        TreeFilter { filter: self, tree, shape, agent, typed: !words.is_empty(), called }
    }
}

/// A filter on one tree.
pub(crate) struct TreeFilter<'a> {
    filter: &'a Filter,
    tree: &'a SessionNode,
    shape: &'a Shape,
    /// The agent's place; `Some(None)`: it is not in this tree.
    agent: Option<Option<usize>>,
    /// A search is active.
    typed: bool,
    /// Nodes with a matching name: a few.
    called: Vec<u32>,
}

impl TreeFilter<'_> {
    /// True for a node that has a row.
    pub(crate) fn has(&self, n: usize) -> bool {
        let node = &self.shape.tree.nodes[n];
        if self.shape.away[n] && !self.filter.archived {
            return false;
        }
        if self.agent.is_some_and(|a| a != Some(usize::from(node.agent))) {
            return false;
        }
        let kind = match self.filter.only {
            EntryFilter::All if !self.typed => self.unfolded(n),
            EntryFilter::All => node.kind != NodeKind::Prefix,
            EntryFilter::Named => node.kind == NodeKind::Checkpoint || self.named(n),
            EntryFilter::Changes => self.shape.changed[n] && self.unfolded(n),
            EntryFilter::Errors => self.shape.failed[n],
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

    /// True when the entry or a name of it matches the search.
    fn found(&self, n: usize) -> bool {
        self.tree.hits.as_ref().is_some_and(|hits| hits[n]) || self.called.contains(&(n as u32))
    }
}
