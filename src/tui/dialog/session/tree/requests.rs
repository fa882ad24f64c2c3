//! Requests of the browser to the engine: trees that are unfolded, the texts of visible rows, entries that match the
//! search, the preview of the selected row. Each has one request at a time.

use std::sync::Arc;

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tree::{TreeQuery, TreeReply};
use tiller_protocol::{CommandBody, EntryId, SessionId};

use super::filter::EntryFilter;
use super::forest::{LoadState, RowKind};
use super::{Browser, PendingCopy};
use crate::app::effect::{Effect, Task, Token};
use crate::panel::Reply;

const LIST: Token = Token(1);
const LINES: Token = Token(2);
const FIND: Token = Token(3);
const PREVIEW: Token = Token(4);
/// Token of changes to names in a session that is not open.
pub(super) const CHANGE: Token = Token(5);
/// Tokens: `NODES + n` for the nodes of the tree at index `n`, `MARKS + n` for its marks.
const NODES: u64 = 1 << 20;
const MARKS: u64 = 1 << 40;

/// Tokens of the trash: `TRASH + n` for the tree at index `n`.
pub(super) const TRASH: u64 = 1 << 50;

/// Rows above and below the visible ones whose texts are requested too; more are requested when fewer than `NEAR` of
/// them are known.
const AHEAD: usize = 120;
const NEAR: usize = 40;
/// Texts that are kept; beyond this number all but those near the screen are dropped.
const KEPT: usize = 20_000;
/// Trees that are read at once.
const TREES: usize = 4;

fn ask(query: TreeQuery, token: Token) -> Effect {
    Effect::ask(CommandBody::Query(Query::Tree { query }), token)
}

impl Browser {
    /// The list of sessions.
    pub(super) fn list_query(&self) -> Effect {
        let query = Query::Sessions {
            everywhere: self.origin.everywhere,
            filter: String::new(),
            archived: true,
            trashed: false,
        };
        Effect::ask(CommandBody::Query(query), LIST)
    }

    /// Requests for everything that is missing on the screen and not requested yet.
    pub(super) fn wants(&mut self) -> Vec<Effect> {
        let mut all = Vec::new();
        self.want_trees(&mut all);
        self.want_lines(&mut all);
        self.want_find(&mut all);
        self.want_preview(&mut all);
        all
    }

    fn want_trees(&mut self, all: &mut Vec<Effect>) {
        let (from, page) = (self.list.top, self.page.max(1));
        let visible = self.rows.iter().skip(from).take(page * 2);
        let waiting: Vec<u32> = visible.filter(|r| r.what == RowKind::Wait).map(|r| r.tree).collect();
        let mut asked = self.forest.trees.iter().filter(|t| matches!(t.state, LoadState::Requested)).count();
        for n in waiting {
            if asked < TREES && matches!(self.forest.trees[n as usize].state, LoadState::NotRequested) {
                all.push(self.load(n as usize));
                asked += 1;
            }
        }
    }

    /// Reads a tree, or reads it again.
    pub(super) fn load(&mut self, n: usize) -> Effect {
        let tree = &mut self.forest.trees[n];
        if !matches!(tree.state, LoadState::Loaded(_)) {
            tree.state = LoadState::Requested;
        }
        ask(TreeQuery::Nodes { session: Some(tree.session) }, Token(NODES + n as u64))
    }

    fn entry_at(&self, row: usize) -> Option<EntryId> {
        let row = self.rows.get(row)?;
        let RowKind::Node(n) = row.what else { return None };
        Some(self.forest.trees[row.tree as usize].shape()?.tree.nodes[n as usize].id)
    }

    fn want_lines(&mut self, all: &mut Vec<Effect>) {
        if self.lines.asked {
            return;
        }
        let unknown = |s: &Self, around: usize| -> Vec<EntryId> {
            let from = s.list.top.saturating_sub(around);
            let to = (s.list.top + s.page.max(40) + around).min(s.rows.len());
            let entries = (from..to).filter_map(|n| s.entry_at(n));
            entries.filter(|e| !s.lines.by_entry.contains_key(e)).collect()
        };
        if unknown(self, NEAR).is_empty() {
            return;
        }
        if self.lines.by_entry.len() > KEPT {
            self.lines.by_entry.clear();
        }
        let entries = unknown(self, AHEAD);
        self.lines.asked = true;
        all.push(ask(TreeQuery::Lines { entries }, LINES));
    }

    fn want_find(&mut self, all: &mut Vec<Effect>) {
        let text = self.search.typed.trim();
        if self.search.finding.is_some() || text == self.filter.text.trim() {
            return;
        }
        if text.is_empty() {
            self.filter.text.clear();
            self.search.found = None;
            self.forest.found(None);
            self.rebuild();
            // Rows that come into view this way.
            self.want_trees(all);
            self.want_lines(all);
            return;
        }
        self.search.finding = Some(text.to_owned());
        all.push(ask(TreeQuery::Find { text: text.to_owned(), everywhere: self.origin.everywhere }, FIND));
    }

    /// The preview of the selected entry is needed, and was not requested.
    pub(super) fn preview_missing(&self) -> bool {
        let Some(entry) = self.chosen_entry() else { return false };
        let copies = matches!(self.copying, PendingCopy::Wanted(e) if e == entry);
        let failed = self.side.failed.as_ref().is_some_and(|(e, _)| *e == entry);
        (self.side_shown || copies) && self.side.asked.is_none() && !failed && self.side.of(entry).is_none()
    }

    fn want_preview(&mut self, all: &mut Vec<Effect>) {
        if let Some(entry) = self.chosen_entry().filter(|_| self.preview_missing()) {
            self.side.asked = Some(entry);
            all.push(ask(TreeQuery::Preview { entry }, PREVIEW));
        }
    }

    /// Takes an answer, and requests what is missing after it.
    pub(super) fn answered(&mut self, token: Token, reply: &ReplyEvent) -> Reply {
        let mut all = Vec::new();
        match (token, reply) {
            (LIST, ReplyEvent::SessionsReply { sessions }) => {
                self.loading.listed = true;
                self.forest.list(sessions);
                self.rebuild();
                if let Some(here) = self.origin.here {
                    self.show_now(here);
                }
            }
            (CHANGE, ReplyEvent::DoneReply { .. }) => {
                let there = self.loading.changing.take().and_then(|id| self.forest.find(id));
                all.extend(there.map(|n| self.load(n)));
            }
            (_, ReplyEvent::TreeReply { reply }) => self.tree_answered(reply, &mut all),
            (_, ReplyEvent::ErrorReply { notice }) => {
                let why = notice.message.clone();
                match token {
                    LINES => self.lines.asked = false,
                    FIND => {
                        self.search.finding = None;
                        self.filter.text = self.search.typed.clone();
                    }
                    Token(n) if n >= TRASH => {
                        if let Some(tree) = self.forest.trees.get_mut((n - TRASH) as usize) {
                            tree.trashed = !tree.trashed;
                        }
                    }
                    PREVIEW => self.side.failed = self.side.asked.take().map(|e| (e, why)),
                    Token(n) if (NODES..MARKS).contains(&n) => {
                        if let Some(tree) = self.forest.trees.get_mut((n - NODES) as usize)
                            && !matches!(tree.state, LoadState::Loaded(_))
                        {
                            tree.state = LoadState::Failed(why);
                        }
                    }
                    _ => {}
                }
                // Texts that cannot be read are not requested again.
                return match token {
                    LINES | PREVIEW => Reply::done(),
                    _ => Reply::Done(self.wants()),
                };
            }
            _ => return Reply::Ignored,
        }
        all.extend(self.wants());
        Reply::Done(all)
    }

    fn tree_answered(&mut self, reply: &TreeReply, all: &mut Vec<Effect>) {
        match reply {
            TreeReply::Nodes { tree } => {
                let session = tree.session;
                self.forest.put(Arc::clone(tree));
                if let Some(n) = self.forest.find(session) {
                    all.push(ask(TreeQuery::Marks { session }, Token(MARKS + n as u64)));
                    if std::mem::take(&mut self.loading.stale) && Some(session) == self.origin.here {
                        all.push(self.load(n));
                    }
                }
                self.forest.found(self.search.found.as_ref());
                self.rebuild();
                self.show_now(session);
            }
            TreeReply::Marks { session, marks } => {
                self.forest.mark(*session, marks);
                // Else they change what stands in rows, not which rows there are.
                if matches!(self.filter.only, EntryFilter::Changes | EntryFilter::Errors) {
                    self.rebuild();
                }
            }
            TreeReply::Lines { lines } => {
                self.lines.asked = false;
                self.lines.by_entry.extend(lines.iter().map(|l| (l.entry, l.clone())));
            }
            TreeReply::Find { text, everywhere, found } => {
                self.search.finding = None;
                // What was typed since is asked for next; what was found meanwhile is shown.
                if *everywhere == self.origin.everywhere && !self.search.typed.trim().is_empty() {
                    self.filter.text.clone_from(text);
                    self.forest.found(Some(found));
                    let behind = self.search.found.replace(found.clone()).map_or(u64::MAX, |f| f.behind);
                    self.rebuild();
                    // A long history is indexed step by step; each query indexes some more of it.
                    if found.behind > 0 && found.behind < behind && *text == self.search.typed.trim() {
                        self.search.finding = Some(text.clone());
                        all.push(ask(TreeQuery::Find { text: text.clone(), everywhere: *everywhere }, FIND));
                    }
                }
            }
            TreeReply::Preview { preview } => {
                self.side.asked = None;
                let entry = preview.entry;
                if self.copying == PendingCopy::Wanted(entry) {
                    self.copying = PendingCopy::No;
                    all.push(Effect::Task(Task::Copy { text: preview.text.clone(), what: "entry" }));
                }
                self.side.put(preview.as_ref().clone());
            }
        }
    }

    /// The first time, the choice is at what is to be shown, or where the person is.
    fn show_now(&mut self, session: SessionId) {
        if self.loading.placed || Some(session) != self.origin.here {
            return;
        }
        let goal = self.origin.goal.and_then(|entry| self.unfold_to(session, entry));
        let Some(at) = goal.or_else(|| self.now_row()) else { return };
        self.loading.placed = true;
        self.list.chosen = at;
        self.list.top = at.saturating_sub(self.page.saturating_sub(3));
    }

    /// The row of an entry, after its turn was unfolded where it stands in one.
    fn unfold_to(&mut self, session: SessionId, entry: EntryId) -> Option<usize> {
        let n = self.forest.find(session)?;
        let node = self.forest.trees[n].shape()?.tree.nodes.iter().position(|node| node.id == entry)? as u32;
        let is_it = |r: &super::forest::TreeRow| r.tree == n as u32 && r.what == RowKind::Node(node);
        if let Some(at) = self.rows.iter().position(is_it) {
            return Some(at);
        }
        let turn = self.forest.trees[n].shape()?.turn[node as usize];
        self.forest.trees[n].turns.insert(turn);
        self.rebuild();
        self.rows.iter().position(is_it)
    }
}
