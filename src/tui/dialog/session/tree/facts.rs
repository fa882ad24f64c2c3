//! Facts of the selected row for the preview, and the hints of the footer.

use tiller_protocol::Time;
use tiller_protocol::tree::NodeKind;

use super::draw::when;
use super::forest::RowKind;
use super::preview_pane::Fact;
use super::{Browser, Field};
use crate::model::Model;
use crate::panel::Hint;
use crate::panel::agents::{agent_lines, look};
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::text::width;
use crate::theme::Role;
use crate::view::words::{money, short};
use crate::widget::activity_table::push_figure;
use crate::widget::{draw, sign};

/// Columns of the labels, and of the figures behind them.
const LABEL: usize = 10;
const FIGURE: usize = 8;

/// A text with a label.
fn labelled(label: &str, text: &str) -> Line {
    let line = Line::strict(text, Look::of(Role::Text), Wrap::Word);
    line.gutter(Gutter::new(format!("{label:<LABEL$}"), Role::Dim))
}

impl Browser {
    /// The text of the selected entry is a model's.
    pub(super) fn is_markdown(&self) -> bool {
        let node = self.at().and_then(|at| at.node).map(|(shape, n, _)| &shape.tree.nodes[n as usize]);
        node.is_some_and(|n| {
            matches!(n.kind, NodeKind::Assistant | NodeKind::Compaction | NodeKind::BranchSummary)
        })
    }

    /// Facts of the selected entry, besides its text.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let Some(at) = self.at() else { return Vec::new() };
        let Some((shape, n, _)) = at.node else { return Vec::new() };
        let node = &shape.tree.nodes[n as usize];
        let what = match node.kind {
            NodeKind::Prefix => "System prompt and tools",
            NodeKind::User if shape.within[n as usize] => "Message within the turn",
            NodeKind::User => "Message",
            NodeKind::Assistant => "Reply",
            NodeKind::ToolResult => "Result of a call",
            NodeKind::InnerCall => "Call of a script",
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
        facts
    }

    /// Returns what the preview shows while the row of a session is selected: the agent with its task and state, or the session,
    /// and its figures below one another. Empty while another row is selected.
    pub(super) fn session_lines(&self, model: &Model, now: Time) -> Vec<Line> {
        let row = self.chosen().filter(|r| r.what == RowKind::Title);
        let Some(tree) = row.and_then(|r| self.forest.trees.get(r.tree as usize)) else { return Vec::new() };
        let live = model.of_session(tree.session).filter(|_| tree.nested);
        let state = live.map(|a| a.state).or(tree.child.state);
        let name = match (&tree.child.agent, live) {
            (_, Some(a)) => model.name_of(&a.id),
            (Some(id), None) => id.name().to_owned(),
            (None, None) if tree.about.title.is_empty() => "(no title yet)".into(),
            (None, None) => tree.about.title.clone(),
        };
        let mut head = Line::strict(&name, Look::of(Role::Strong).bold(), Wrap::Word);
        if let Some((sign, word, role)) = state.map(look) {
            head.push_strict(&format!("  {sign} {word}"), Look::of(role));
        }
        let mut lines = vec![head, Line::new(Wrap::Word)];
        match live {
            Some(a) => lines.extend(agent_lines(model, a)),
            None if tree.child.agent.is_some() && !tree.about.title.is_empty() => {
                lines.push(labelled("Task", &tree.about.title));
            }
            None => lines.push(labelled("Folder", &tree.about.project)),
        }
        lines.push(Line::new(Wrap::Word));
        let model_name = live.map_or(tree.about.model.as_str(), |a| a.model.0.as_str());
        if !model_name.is_empty() {
            lines.push(labelled("Model", model_name));
        }
        let tokens = live.map_or(tree.child.tokens, |a| a.usage.context() + a.usage.output);
        let figures = [
            ("Tokens", (tokens > 0).then(|| short(tokens))),
            ("Cost", live.map_or(tree.about.cost, |a| a.cost).map(|c| money(c.usd()))),
            ("Files", (tree.child.files > 0).then(|| tree.child.files.to_string())),
            ("Entries", (tree.about.entries > 0).then(|| tree.about.entries.to_string())),
            ("Used", tree.about.time.map(|t| when(t, now))),
        ];
        for (label, text) in figures {
            let Some(text) = text else { continue };
            let mut line = Line::new(Wrap::Cut);
            line.push_strict(&format!("{label:<LABEL$}"), Look::of(Role::Dim));
            line.push_strict(&" ".repeat(FIGURE.saturating_sub(width(&text))), Look::of(Role::Text));
            push_figure(&mut line, &text, Look::of(Role::Text));
            lines.push(line);
        }
        lines
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
            let preview = if self.side_shown { "no preview" } else { "preview" };
            hints.extend([Hint::of("list.search"), Hint::as_("tree.preview", preview)]);
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
