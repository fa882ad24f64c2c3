//! Facts of the selected row for the preview, and the hints of the footer.

use tiller_protocol::tree::NodeKind;

use super::preview_pane::Fact;
use super::{Browser, Field};
use crate::model::Model;
use crate::panel::Hint;
use crate::theme::Role;
use crate::view::words::{money, short};
use crate::widget::{draw, sign};

impl Browser {
    /// Facts of the selected entry, besides its text.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let Some(at) = self.at() else { return Vec::new() };
        let Some((shape, n, _)) = at.node else { return Vec::new() };
        let node = &shape.tree.nodes[n as usize];
        let what = match node.kind {
            NodeKind::Prefix => "System prompt and tools",
            NodeKind::User => "Message",
            NodeKind::Assistant => "Reply",
            NodeKind::ToolResult => "Result of a call",
            NodeKind::Compaction => "Summary of the earlier conversation",
            NodeKind::BranchSummary => "Summary of a branch",
            NodeKind::Checkpoint => "Checkpoint",
            NodeKind::Note => "Note",
        };
        let zone = crate::zone::local();
        let time = jiff::Timestamp::from_millisecond(node.time.millis())
            .map_or_else(|_| String::new(), |t| t.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string());
        let mut facts = vec![vec![(what.to_owned(), Role::Strong), (format!("  {time}"), Role::Dim)]];
        let agent = shape.tree.agents.get(usize::from(node.agent)).map_or("", String::as_str);
        let model = shape.sums[n as usize].model.and_then(|m| shape.tree.models.get(usize::from(m)));
        let mut more = Vec::new();
        more.extend((agent != "main").then(|| format!("agent {agent}")));
        more.extend(model.cloned());
        let sum = shape.sums[n as usize];
        more.extend((sum.tokens > 0).then(|| format!("{} tokens", short(sum.tokens))));
        more.extend(sum.cost.map(|c| money(c.usd())));
        if !more.is_empty() {
            facts.push(vec![(more.join(&format!(" {} ", draw::sign(sign::DOT))), Role::Dim)]);
        }
        let badges = self.badges.get(&(at.row.tree, n)).into_iter().flatten();
        let names: Fact = badges.map(|b| (format!("{} ", b.text), b.role)).collect();
        if !names.is_empty() {
            facts.push(names);
        }
        facts
    }

    pub(super) fn row_hints(&self, model: &Model) -> Vec<Hint> {
        match &self.field {
            Field::None => {}
            Field::Find(_) => return vec![Hint::as_("input.done", "to the list")],
            Field::Title(..) | Field::Branch(..) => return vec![Hint::as_("input.done", "save name")],
            Field::Tag(..) => return vec![Hint::as_("input.done", "save name")],
            Field::Export(..) => return vec![Hint::as_("input.done", "write file")],
        }
        let Some(at) = self.at() else { return vec![Hint::of("tree.everywhere")] };
        let here = self.is_here(at.tree.session);
        let Some((shape, n, _)) = at.node else {
            let open = at.tree.open;
            let fold = if open { Hint::of("tree.fold") } else { Hint::of("tree.unfold") };
            let enter = match (here, at.tree.nested) {
                (_, true) if model.of_session(at.tree.session).is_some() => Hint::as_("list.open", "open"),
                (_, true) => fold,
                (true, _) => Hint::as_("list.open", "return to it"),
                _ if self.origin.root == Some(at.tree.session) => Hint::as_("list.open", "back to main"),
                (false, _) => Hint::as_("list.open", "open"),
            };
            let away = if at.tree.about.archived { "unarchive" } else { "archive" };
            let mut hints = vec![enter, fold];
            hints.dedup();
            if at.tree.trashed {
                return vec![Hint::as_("tree.trash", "restore"), fold, Hint::of("list.search")];
            }
            if !at.tree.nested {
                hints.extend([Hint::as_("tree.name", "title"), Hint::as_("tree.archive", away)]);
                if !here && self.origin.root != Some(at.tree.session) {
                    hints.push(Hint::of("tree.trash"));
                }
                hints.push(Hint::of("tree.export"));
            }
            hints.push(Hint::of("list.search"));
            return hints;
        };
        let enter = match () {
            () if !here => Hint::as_("list.open", "open in terminal"),
            () if self.tip(&at).is_some() && !self.ends_here(&at) => Hint::as_("list.open", "continue it"),
            () => Hint::as_("list.open", "look"),
        };
        let unfolded = at.tree.turns.contains(&shape.turn[n as usize]);
        let fold = if unfolded { Hint::of("tree.fold") } else { Hint::of("tree.unfold") };
        let mut hints = Vec::new();
        if !here || shape.path[n as usize] || self.tip(&at).is_some() {
            hints.push(enter);
        }
        if !model.agent.turn.running {
            hints.push(Hint::of("tree.fork"));
        }
        hints.push(Hint::of("tree.restore"));
        if here && (self.marked.is_some() || !self.ends_here(&at)) {
            hints.push(Hint::of("tree.compare"));
        }
        hints.extend([fold, Hint::of("list.search")]);
        let preview = if self.side_shown { "no preview" } else { "preview" };
        hints.push(Hint::as_("tree.preview", preview));
        if here {
            hints.extend([Hint::as_("tree.name", "name branch"), Hint::of("tree.tag")]);
        }
        hints.extend([Hint::of("tree.only"), Hint::of("tree.all"), Hint::of("tree.everywhere")]);
        hints
    }
}
