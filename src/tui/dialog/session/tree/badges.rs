//! Names at rows: branches, the current position, tags.

use std::collections::HashMap;

use super::Browser;
use super::forest::{RowKind, TreeRow};
use crate::theme::Role;

/// A name at a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Badge {
    pub(super) text: String,
    pub(super) role: Role,
    /// Index of the head in its tree; `None`: no head.
    pub(super) head: Option<usize>,
}

impl Browser {
    /// Names stand at their entry's row, or at the nearest one above that is shown.
    pub(super) fn name_rows(&mut self) {
        self.badges.clear();
        let filtered = self.filter.active();
        let mut shown: HashMap<u32, Vec<bool>> = HashMap::new();
        for row in &self.rows {
            let Some(shape) = self.forest.trees[row.tree as usize].shape() else { continue };
            if let RowKind::Node(n) = row.what {
                shown.entry(row.tree).or_insert_with(|| vec![false; shape.depth.len()])[n as usize] = true;
            }
        }
        for (tree, shown) in shown {
            let nested = self.forest.trees[tree as usize].nested;
            let Some(shape) = self.forest.trees[tree as usize].shape() else { continue };
            let nodes = &shape.tree.nodes;
            let mut put = |node: Option<u32>, badge: Badge| {
                let mut at = node;
                while let Some(n) = at.filter(|n| !shown[*n as usize]) {
                    // A filter leaves out what lies between: there a name goes no further up than its turn.
                    let turn = shape.turn[n as usize];
                    at = if filtered { Some(turn).filter(|t| *t != n) } else { nodes[n as usize].parent };
                }
                if let Some(n) = at {
                    self.badges.entry((tree, n)).or_default().push(badge);
                }
            };
            let several = shape.tree.heads.len() > 1;
            for (n, h) in shape.tree.heads.iter().enumerate() {
                if h.archived && !h.current && !self.filter.archived {
                    continue;
                }
                let word = match (h.label.is_empty(), h.name.as_str()) {
                    (false, _) => h.label.clone(),
                    (true, "main") if several => "main".into(),
                    (true, _) if several => "branch".into(),
                    _ => String::new(),
                };
                let away = if h.archived { " (archived)" } else { "" };
                if !word.is_empty() {
                    let text = format!(" {word}{away} ");
                    put(h.node, Badge { text, role: Role::Raised, head: Some(n) });
                }
                // The row of an agent shows its own state instead.
                if h.current && (!nested || Some(shape.tree.session) == self.origin.here) {
                    put(h.node, Badge { text: "now".into(), role: Role::Strong, head: Some(n) });
                }
            }
            for t in &shape.tree.tags {
                put(Some(t.node), Badge { text: format!("#{}", t.name), role: Role::Strong, head: None });
            }
        }
    }

    /// The row of the open session's head.
    pub(super) fn now_row(&self) -> Option<usize> {
        let n = self.forest.find(self.origin.here?)? as u32;
        let is_now = |r: &TreeRow| match r.what {
            RowKind::Node(node) => {
                self.badges.get(&(n, node)).is_some_and(|b| r.tree == n && b.iter().any(|b| b.text == "now"))
            }
            _ => false,
        };
        self.rows.iter().position(is_now)
    }
}
