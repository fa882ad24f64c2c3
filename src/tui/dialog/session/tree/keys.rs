//! Actions on a row.

use tiller_protocol::command::SessionCommand;
use tiller_protocol::compare::{Pair, Side};
use tiller_protocol::tree::NodeKind;
use tiller_protocol::{AgentId, CommandBody, EntryId, Notice, NoticeKind, SessionId};

use super::forest::{LoadState, RowKind, SessionNode, TreeRow};
use super::shape::Shape;
use super::{Browser, Field, PendingCopy};
use crate::app::effect::{Effect, EntryAction, Navigation, Task};
use crate::dialog::session::branches::open_branch;
use crate::dialog::session::compare::Compare;
use crate::dialog::session::restore::Restore;
use crate::keymap::action::Action;
use crate::model::Model;
use crate::panel::{Reply, View};
use crate::widget::edit::Edit;

pub(super) fn say(text: &str) -> Reply {
    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
}

pub(super) fn send(command: SessionCommand) -> Effect {
    Effect::send(CommandBody::Session(command))
}

/// Actions that are not available for a session in the trash.
const OF_SESSION: &[&str] = &[
    "list.open",
    "tree.fork",
    "tree.restore",
    "tree.name",
    "tree.tag",
    "tree.archive",
    "tree.compare",
    "tree.export",
];

/// The selected row with its session and entry.
pub(super) struct SelectedRow<'a> {
    pub(super) row: TreeRow,
    pub(super) tree: &'a SessionNode,
    /// The entry, where it is one.
    pub(super) node: Option<(&'a Shape, u32, EntryId)>,
}

impl Browser {
    pub(super) fn at(&self) -> Option<SelectedRow<'_>> {
        let row = self.chosen()?;
        let tree = &self.forest.trees[row.tree as usize];
        let node = match (row.what, tree.shape()) {
            (RowKind::Node(n), Some(shape)) => Some((shape, n, shape.tree.nodes[n as usize].id)),
            _ => None,
        };
        Some(SelectedRow { row, tree, node })
    }

    pub(super) fn is_here(&self, session: SessionId) -> bool {
        self.origin.here == Some(session)
    }

    /// The branch that ends at this row, unless it is the open one.
    pub(super) fn tip(&self, at: &SelectedRow<'_>) -> Option<usize> {
        let (shape, n, _) = at.node?;
        let badges = self.badges.get(&(at.row.tree, n))?;
        badges.iter().filter_map(|b| b.head).find(|h| !shape.tree.heads[*h].current)
    }

    /// The branch of the row: the open one, else the one with the newest entry.
    pub(super) fn branch(&self, at: &SelectedRow<'_>) -> Option<usize> {
        let (shape, n, _) = at.node?;
        let heads = shape.tree.heads.iter().enumerate();
        let through = |tip: u32| {
            let mut at = Some(tip);
            while let Some(m) = at.filter(|m| *m > n) {
                at = shape.tree.nodes[m as usize].parent;
            }
            at == Some(n)
        };
        let on = heads.filter(|(_, h)| h.node.is_some_and(through));
        on.max_by_key(|(_, h)| (h.current, !h.archived, h.node)).map(|(i, _)| i)
    }

    pub(super) fn act_on_row(&mut self, action: Action, model: &Model) -> Reply {
        let gone = self.at().is_some_and(|at| at.tree.trashed);
        if gone && OF_SESSION.contains(&action.0) {
            return say("This session is in the trash; restore it first");
        }
        let (len, page) = (self.rows.len(), self.page.max(1));
        match action.0 {
            id if self.list.act(id, len, page) => {
                self.list.show(len, page);
            }
            "list.search" => self.field = Field::Find(Edit::with(&self.search.typed)),
            "list.next" => self.jump(true),
            "list.previous" => self.jump(false),
            "list.back" => return Reply::with(Effect::Pop),
            "list.open" => return self.go(model),
            "list.mark" => {
                let entry = self.at().and_then(|at| Some((at.tree.session, at.node?.2)));
                self.marked = if self.marked == entry { None } else { entry };
            }
            "list.copy" => return self.copy(),
            "tree.unfold" => self.unfold(),
            "tree.fold" => self.fold(),
            "tree.all" => {
                self.filter.all = !self.filter.all;
                self.rebuild();
            }
            "tree.only" => {
                self.filter.only = self.filter.only.next();
                self.rebuild();
            }
            "tree.agent" => self.next_agent(),
            "tree.archived" => {
                self.filter.archived = !self.filter.archived;
                self.rebuild();
            }
            "tree.everywhere" => {
                self.origin.everywhere = !self.origin.everywhere;
                self.search.found = None;
                self.filter.text.clear();
                self.forest.found(None);
                return Reply::Done([vec![self.list_query()], self.wants()].into_iter().flatten().collect());
            }
            "tree.preview" => {
                self.side.wanted = Some(!self.side_shown);
                // What is asked for must know that it is seen; the next frame may say otherwise.
                self.side_shown = !self.side_shown;
            }
            "tree.side_down" => self.side.scroll(true),
            "tree.side_up" => self.side.scroll(false),
            "tree.fork" => return self.fork(model),
            "tree.restore" => return self.restore(),
            "tree.name" => return self.name(),
            "tree.tag" => return self.tag(),
            "tree.archive" => return self.archive(),
            "tree.trash" => return self.trash(),
            "tree.compare" => return self.compare(model),
            "tree.export" => return self.export(),
            "tree.undo" => return Reply::with(send(SessionCommand::UndoOp { redo: false })),
            _ => return Reply::Ignored,
        }
        Reply::Done(self.wants())
    }

    /// To the next entry when something is filtered, else to the next branch.
    fn jump(&mut self, down: bool) {
        let active = self.filter.active();
        let fits = |r: &TreeRow| match r.what {
            RowKind::Node(n) => active || r.first || self.badges.contains_key(&(r.tree, n)),
            _ => false,
        };
        let at = self.list.chosen;
        let found = if down {
            let after = self.rows.iter().enumerate().skip(at + 1);
            after.chain(self.rows.iter().enumerate()).find(|(_, r)| fits(r))
        } else {
            let before = self.rows[..at.min(self.rows.len())].iter().enumerate().rev();
            before.chain(self.rows.iter().enumerate().rev()).find(|(_, r)| fits(r))
        };
        if let Some((n, _)) = found {
            self.list.chosen = n;
            self.list.show(self.rows.len(), self.page.max(1));
        }
    }

    /// Opens or continues here.
    fn go(&mut self, model: &Model) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let session = at.tree.session;
        let Some((shape, n, entry)) = at.node else {
            return match at.row.what {
                _ if at.tree.nested => match model.of_session(session) {
                    Some(agent) => Reply::with(Effect::Navigate(Navigation::Agent(agent.id.clone()))),
                    None => {
                        self.unfold();
                        Reply::Done(self.wants())
                    }
                },
                _ if self.is_here(session) => Reply::with(Effect::Focus(View::Composer)),
                _ if self.origin.root == Some(session) => {
                    Reply::with(Effect::Navigate(Navigation::Agent(AgentId::main())))
                }
                _ if model.agent.turn.running => say("A turn is running; stop it first"),
                _ => Reply::Done(vec![
                    send(SessionCommand::Open { id: session }),
                    Effect::Focus(View::Composer),
                ]),
            };
        };
        if !self.is_here(session) {
            if model.agent.turn.running {
                return say("A turn is running; stop it first");
            }
            return Reply::with(Effect::Navigate(Navigation::Entry {
                session,
                entry,
                then: EntryAction::Show,
            }));
        }
        if let Some(head) = self.tip(&at).filter(|_| !self.ends_here(&at)) {
            if model.agent.turn.running {
                return say("A turn is running; stop it first");
            }
            let head = &shape.tree.heads[head];
            let word = if head.label.is_empty() { &head.name } else { &head.label };
            // The row may be the message that its last turn began with; the files are those of the end.
            let last = head.node.and_then(|n| shape.tree.nodes.get(n as usize)).map_or(entry, |node| node.id);
            return Reply::with(open_branch(head.name.clone(), word, Some(last)));
        }
        if shape.path[n as usize] {
            return Reply::with(Effect::Navigate(Navigation::Entry {
                session,
                entry,
                then: EntryAction::Show,
            }));
        }
        say("This is on another branch: fork here, or open the branch at its end")
    }

    /// The open branch ends at this row.
    pub(super) fn ends_here(&self, at: &SelectedRow<'_>) -> bool {
        let Some((shape, n, _)) = at.node else { return false };
        let badges = self.badges.get(&(at.row.tree, n)).into_iter().flatten();
        badges.filter_map(|b| b.head).any(|h| shape.tree.heads[h].current)
    }

    fn fork(&self, model: &Model) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let Some((_, _, entry)) = at.node else { return say("Select one of its entries first") };
        let session = at.tree.session;
        match () {
            () if model.agent.turn.running => say("A turn is running; stop it first"),
            () if !self.is_here(session) => {
                Reply::with(Effect::Navigate(Navigation::Entry { session, entry, then: EntryAction::Branch }))
            }
            () if model.agent.session.read_only => say("This session is open read-only"),
            () => Reply::Done(vec![send(SessionCommand::Fork { entry }), Effect::Focus(View::Composer)]),
        }
    }

    fn restore(&self) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let Some((_, _, entry)) = at.node else { return say("Select one of its entries first") };
        let session = at.tree.session;
        if self.is_here(session) {
            return Reply::with(Effect::Push(Box::new(Restore::to(entry))));
        }
        Reply::with(Effect::Navigate(Navigation::Entry { session, entry, then: EntryAction::Restore }))
    }

    fn copy(&mut self) -> Reply {
        let Some(entry) = self.chosen_entry() else {
            let text = self.at().map_or_else(String::new, |at| at.tree.session.to_string());
            return Reply::with(Effect::Task(Task::Copy { text, what: "id of the session" }));
        };
        if let Some(p) = self.side.of(entry) {
            return Reply::with(Effect::Task(Task::Copy { text: p.text.clone(), what: "entry" }));
        }
        self.copying = PendingCopy::Wanted(entry);
        Reply::Done(self.wants())
    }

    fn unfold(&mut self) {
        let Some(row) = self.chosen() else { return };
        let tree = &mut self.forest.trees[row.tree as usize];
        match (row.what, &tree.state) {
            (RowKind::Title, LoadState::Failed(_)) => {
                (tree.open, tree.state) = (true, LoadState::NotRequested)
            }
            (RowKind::Title, _) => tree.open = true,
            (RowKind::Node(n), LoadState::Loaded(shape)) if !tree.folded.contains(&n) => {
                tree.turns.insert(shape.turn[n as usize]);
            }
            (RowKind::Node(n), _) => drop(tree.folded.remove(&n)),
            _ => {}
        }
        self.rebuild();
    }

    fn fold(&mut self) {
        let Some(row) = self.chosen() else { return };
        let above = self.rows[..self.list.chosen].iter().rposition(|r| {
            let starts = r.what == RowKind::Title || (r.depth == row.depth && r.first);
            r.depth < row.depth || (r.tree == row.tree && starts)
        });
        let tree = &mut self.forest.trees[row.tree as usize];
        let node = match (row.what, tree.shape()) {
            (RowKind::Node(n), Some(shape)) => Some((n, shape.turn[n as usize], shape.first[n as usize])),
            _ => None,
        };
        let folds = match node {
            None => row.what == RowKind::Title && std::mem::take(&mut tree.open),
            Some((n, turn, first)) => {
                tree.turns.remove(&turn) || (first && row.first && tree.folded.insert(n))
            }
        };
        if folds {
            self.rebuild();
        } else if let Some(above) = above {
            self.list.chosen = above;
            self.list.show(self.rows.len(), self.page.max(1));
        }
    }

    fn next_agent(&mut self) {
        let mut agents: Vec<&str> = self
            .forest
            .trees
            .iter()
            .filter_map(SessionNode::shape)
            .flat_map(|s| &s.tree.agents)
            .map(|a| a.as_str())
            .collect();
        agents.sort_unstable();
        agents.dedup();
        let next = match &self.filter.agent {
            None => agents.first(),
            Some(now) => agents.iter().find(|a| **a > now.as_str()),
        };
        self.filter.agent = next.map(|a| (*a).to_owned());
        self.rebuild();
    }

    /// With the marked entry; without one, with the open branch.
    fn compare(&self, model: &Model) -> Reply {
        let Some(at) = self.at() else { return Reply::done() };
        let Some((shape, n, entry)) = at.node else { return say("Select one of its entries first") };
        let marked = self.marked.filter(|(_, e)| *e != entry);
        let heads = &shape.tree.heads;
        let open = &model.agent.session.branch;
        let left = match marked {
            Some((_, entry)) => Side::Entry(entry),
            None if !open.is_empty() => Side::Branch(open.head.clone()),
            None if self.is_here(at.tree.session) && heads.iter().any(|h| h.current) => {
                let current = heads.iter().find(|h| h.current).map(|h| h.name.clone());
                Side::Branch(current.unwrap_or_default())
            }
            None => return say("Mark another entry first to compare with"),
        };
        if marked.is_none() && self.ends_here(&at) {
            return say("This is the open branch: select another row, or mark one first");
        }
        // A branch of another session is named by its end.
        // Its row is that of a message of the branch's last turn.
        let message = shape.tree.nodes[n as usize].kind == NodeKind::User;
        let ends_in = |tip: &u32| *tip == n || message && shape.turn[*tip as usize] == shape.turn[n as usize];
        let ends = || heads.iter().filter_map(|h| h.node).find(ends_in);
        let right = match self.tip(&at) {
            _ if !self.is_here(at.tree.session) => {
                Side::Entry(ends().map_or(entry, |tip| shape.tree.nodes[tip as usize].id))
            }
            Some(h) if heads[h].node.is_some_and(|tip| ends_in(&tip)) => Side::Branch(heads[h].name.clone()),
            _ => Side::Entry(entry),
        };
        Reply::with(Effect::Push(Box::new(Compare::of(Pair { left, right }))))
    }
}
