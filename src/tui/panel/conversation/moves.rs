//! The actions that move, fold, search and copy.

use tiller_protocol::{CommandBody, LearningCommand, LearningState, Notice, NoticeKind};

use super::GoTo;
use super::copy_mode::CopyMode;
use super::search::{self, Search};
use super::viewport::ScrollPosition;
use super::{ConversationPanel, Reply, WRONG};
use crate::app::effect::{Effect, Task};
use crate::cell;
use crate::model::Model;
use crate::model::conversation::{Body, Cell};
use crate::panel::View;
use tiller_protocol::Origin;

/// Begins a turn.
fn is_turn(c: &Cell) -> bool {
    matches!(
        &c.body,
        Body::User { origin: Origin::Prompt | Origin::Task | Origin::Shell, .. }
            | Body::Shell { shared: true, .. }
    )
}

/// True when Alt-Up and Alt-Down stop at this cell.
fn is_message(c: &Cell) -> bool {
    matches!(&c.body, Body::User { .. } | Body::Reply { .. })
}

fn is_tool(c: &Cell) -> bool {
    matches!(&c.body, Body::Tool(_))
}

impl ConversationPanel {
    pub(super) fn do_action(&mut self, id: &str, model: &Model) -> Reply {
        let conv = &model.agent.conversation;
        let page = self.view.page() as isize;
        // Another move in the meantime cancels the jump to the start.
        self.to_start = matches!(id, "conversation.first" | "list.first") && conv.above() > 0;
        match id {
            "conversation.page_up" | "list.page_up" => self.scroll(model, -page),
            "conversation.page_down" | "list.page_down" => self.scroll(model, page),
            "conversation.message_up" => self.jump(model, false, is_message),
            "conversation.message_down" => self.jump(model, true, is_message),
            "conversation.turn_up" => self.jump(model, false, is_turn),
            "conversation.turn_down" => self.jump(model, true, is_turn),
            "conversation.tool_up" => self.jump(model, false, is_tool),
            "conversation.tool_down" => self.jump(model, true, is_tool),
            "conversation.first" | "list.first" => {
                if let Some(c) = conv.cells().front() {
                    self.cursor = Some(c.key);
                    self.view.scroll = ScrollPosition::At { key: c.key, row: 0 };
                    self.view.measure(conv);
                }
            }
            "conversation.last" | "list.last" => {
                self.view.scroll = ScrollPosition::End;
                self.cursor = conv.cells().back().map(|c| c.key);
                self.view.measure(conv);
            }
            "conversation.unfold" => {
                let chosen = self.cursor.and_then(|k| conv.find(k)).and_then(|n| conv.cells().get(n));
                let turn = chosen.filter(|_| self.copy.is_none()).map_or(conv.turn(), |c| c.turn);
                self.view.toggle_turn(conv, turn);
            }
            "conversation.learning_wrong" => return self.call_wrong(model),
            "conversation.search" | "list.search" => {
                self.search = Some(Search { typing: true, ..Search::default() });
                self.hit = None;
                let effects = if self.viewer { Vec::new() } else { vec![Effect::Focus(View::Conversation)] };
                return Reply::Done(effects);
            }
            "list.next" | "list.previous" => return self.step(model, id == "list.next"),
            "conversation.copy_mode" => {
                self.copy = CopyMode::begin(&self.view);
                let effects = if self.viewer { Vec::new() } else { vec![Effect::Focus(View::Conversation)] };
                return if self.copy.is_some() { Reply::Done(effects) } else { Reply::Ignored };
            }
            "conversation.copy_reply" => {
                let last = conv.cells().iter().rev().find(|c| matches!(c.body, Body::Reply { .. }));
                return last.map_or(Reply::Ignored, copy);
            }
            "conversation.dump" | "copy.dump" | "viewer.dump" => return self.dump(model),
            "conversation.edit" | "copy.edit" | "viewer.edit" => return self.edit(model),
            "list.down" if self.viewer => self.scroll(model, 1),
            "list.up" if self.viewer => self.scroll(model, -1),
            "list.down" => self.walk(model, true),
            "list.up" => self.walk(model, false),
            "list.open" | "list.mark" => return self.open(model, id == "list.open"),
            "list.copy" => {
                if let Some(reply) = self.copy_selection(model) {
                    return reply;
                }
                return self.chosen(model).map_or(Reply::Ignored, copy);
            }
            "list.back" if self.viewer => return Reply::with(Effect::Pop),
            _ => return Reply::Ignored,
        }
        self.done(model)
    }

    fn scroll(&mut self, model: &Model, by: isize) {
        self.view.scroll_by(&model.agent.conversation, by);
        self.view.measure(&model.agent.conversation);
        self.cursor_onto_screen(model);
    }

    /// Puts an entry or a tool call at the top, after the part around it was loaded where need be. What is not on this path
    /// is shown in the tree.
    pub(super) fn go_to(&mut self, model: &Model, to: &GoTo) -> Reply {
        if matches!(to, GoTo::End) {
            self.wanted = None;
            return self.do_action("conversation.last", model);
        }
        let conv = &model.agent.conversation;
        let found = match to {
            GoTo::Entry(id) => conv.find_entry(*id),
            GoTo::Call(id) => {
                conv.cells().iter().rposition(|c| matches!(&c.body, Body::Tool(t) if t.call_id == *id))
            }
            GoTo::End => None,
        };
        self.wanted = None;
        let Some(n) = found else {
            if let (GoTo::Entry(id), Some(_)) = (to, conv.page_before()) {
                self.wanted = Some(*id);
                return self.done(model);
            }
            return match to {
                GoTo::Entry(id) => {
                    Reply::with(Effect::Push(Box::new(crate::dialog::session::tree::at(model, *id))))
                }
                GoTo::Call(_) | GoTo::End => {
                    let text = "That call is not on this branch";
                    Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)))
                }
            };
        };
        self.cursor = Some(conv.cells()[n].key);
        self.view.to_top(conv, n);
        self.view.measure(conv);
        Reply::done()
    }

    /// Keeps the chosen cell among the visible ones.
    fn cursor_onto_screen(&mut self, model: &Model) {
        let (Some(first), Some(last)) = (self.view.visible.first(), self.view.visible.last()) else { return };
        let at = self.cursor.and_then(|k| model.agent.conversation.find(k));
        self.cursor = match at {
            Some(n) if n < first.index => Some(first.key),
            Some(n) if n > last.index => Some(last.key),
            Some(_) => self.cursor,
            None => Some(last.key),
        };
    }

    /// Puts the next cell of a kind at the top.
    fn jump(&mut self, model: &Model, down: bool, is: fn(&Cell) -> bool) {
        let conv = &model.agent.conversation;
        let Some(top) = self.view.visible.first().copied() else { return };
        let gap = self.view.kept(top.key).map_or(0, |l| l.gap);
        let run = conv.run_of(top.index);
        let found = if down {
            (top.index + 1..run.end).find(|n| is(&conv.cells()[*n]) && !self.view.hidden(conv, *n))
        } else {
            // The top one itself, when its start is above the window.
            let from = if top.from > gap { top.index + 1 } else { top.index };
            (run.start..from).rev().find(|n| is(&conv.cells()[*n]) && !self.view.hidden(conv, *n))
        };
        match found {
            Some(n) => {
                self.cursor = Some(conv.cells()[n].key);
                self.view.to_top(conv, n);
            }
            None if down && run.end == conv.cells().len() => self.view.scroll = ScrollPosition::End,
            None if down => return self.scroll(model, self.view.env.rows as isize),
            None => return self.scroll(model, -(self.view.env.rows as isize)),
        }
        self.view.measure(conv);
    }

    /// Chooses the next cell; scrolls through tall ones first.
    fn walk(&mut self, model: &Model, down: bool) {
        let conv = &model.agent.conversation;
        let Some(index) = self.cursor.and_then(|k| conv.find(k)) else {
            return self.cursor_onto_screen(model);
        };
        let half = (self.view.env.rows / 2).max(1) as isize;
        if let Some(seen) = self.view.visible.iter().find(|s| s.index == index) {
            let height = self.view.kept(seen.key).map_or(0, cell::CellLayout::height);
            if down && seen.from + seen.rows < height {
                return self.scroll(model, half);
            }
            if !down && seen.from > 0 && seen.rows == self.view.window() {
                return self.scroll(model, -half);
            }
        }
        let next = if down { (index + 1).min(conv.cells().len() - 1) } else { index.saturating_sub(1) };
        let next = self.view.shown_from(conv, next, down);
        self.cursor = Some(conv.cells()[next].key);
        self.view.reveal(conv, next);
        self.view.measure(conv);
    }

    fn chosen<'a>(&self, model: &'a Model) -> Option<&'a Cell> {
        model.agent.conversation.cells().get(model.agent.conversation.find(self.cursor?)?)
    }

    /// The learnings at the end of the chosen call or message.
    pub(super) fn learnings(&self, model: &Model) -> Vec<i64> {
        match self.chosen(model).map(|cell| &cell.body) {
            Some(Body::Tool(t)) => t.learnings().to_vec(),
            Some(Body::User { learnings, .. }) => learnings.clone(),
            _ => Vec::new(),
        }
    }

    /// Retires the learnings of the chosen call or message: they were wrong.
    fn call_wrong(&self, model: &Model) -> Reply {
        let learnings = self.learnings(model);
        if learnings.is_empty() {
            let text = "Choose a call or a message with a learning first";
            return Reply::with(Effect::Toast(Notice::new(NoticeKind::Info, text)));
        }
        let retire = |id| {
            let state = LearningState::Retired;
            Effect::ask(CommandBody::Learning(LearningCommand::Decide { id, state }), WRONG)
        };
        Reply::Done(learnings.into_iter().map(retire).collect())
    }

    /// True when there is more of the chosen cell to be seen.
    pub(super) fn opens(&self, model: &Model) -> bool {
        self.copy.is_none() && self.chosen(model).is_some_and(cell::folds)
    }

    /// Unfolds a cell; Enter on an unfolded cell shows its whole output, or the calls of a script.
    fn open(&mut self, model: &Model, enter: bool) -> Reply {
        let conv = &model.agent.conversation;
        let Some(cell) = self.chosen(model) else { return Reply::Ignored };
        if !cell::folds(cell) {
            return Reply::done();
        }
        if let Body::Tool(t) = &cell.body
            && enter
            && self.view.unfolded(cell)
            && !t.call_id.is_empty()
        {
            let all = crate::dialog::reader::calls::open(t);
            let viewer = || Box::new(crate::dialog::reader::viewer::OutputViewer::new(t));
            return Reply::with(Effect::Push(all.unwrap_or_else(|| viewer())));
        }
        self.view.toggle(conv, cell);
        if let Some(n) = model.agent.conversation.find(cell.key) {
            self.view.reveal(&model.agent.conversation, n);
        }
        Reply::done()
    }

    /// The words are typed: go to the nearest hit, and look through the whole path.
    pub(super) fn find(&mut self, model: &Model) -> Reply {
        let Some(search) = &mut self.search else { return Reply::Ignored };
        if search.words().is_empty() {
            self.search = None;
            return Reply::done();
        }
        search.typing = false;
        search.whole = search.before.is_some();
        self.step(model, false)
    }

    pub(super) fn step(&mut self, model: &Model, forward: bool) -> Reply {
        let conv = &model.agent.conversation;
        let near = self.view.visible.last().map(|s| s.index);
        let Some(search) = &mut self.search else { return Reply::Ignored };
        if search.step(conv, forward, near).is_none() {
            return self.done(model);
        }
        self.show_hit(model)
    }

    /// Shows the current hit, after the part around it was loaded where need be.
    pub(super) fn show_hit(&mut self, model: &Model) -> Reply {
        let conv = &model.agent.conversation;
        let Some(search) = &self.search else { return Reply::Ignored };
        let (words, Some(hit)) = (search.words().to_owned(), search.hit()) else { return self.done(model) };
        let Some((index, n)) = search::place(conv, hit, &words) else {
            self.wanted = hit.entry;
            return self.done(model);
        };
        // What is folded away may hold it.
        if let Some(c) = conv.cells().get(index) {
            self.view.unfold(c);
            self.cursor = Some(c.key);
        }
        self.hit = self.locate(model, index, &words, n);
        let row = self.hit.and_then(|(_, line, _)| {
            let laid = self.view.laid(conv, index)?;
            let byte = search::matches(laid.stack().line(line)?.text(), &words).next().map_or(0, |m| m.0);
            Some(laid.gap + laid.stack().row_of(line, byte as u32)?)
        });
        self.view.show(conv, index, row.unwrap_or(0));
        self.view.measure(conv);
        self.done(model)
    }

    /// The line of a cell in which the n-th hit stands, and its number there. Hits that the drawing has
    /// split or left out count as the last one.
    fn locate(
        &mut self,
        model: &Model,
        index: usize,
        words: &str,
        hit: usize,
    ) -> Option<(u64, usize, usize)> {
        let key = model.agent.conversation.cells().get(index)?.key;
        let laid = self.view.laid(&model.agent.conversation, index)?;
        let mut last = None;
        let mut count = 0;
        for n in 0..laid.stack().lines() {
            let here = search::matches(laid.stack().line(n)?.text(), words).count();
            for k in 0..here {
                last = Some((key, n, k));
                if count == hit {
                    return last;
                }
                count += 1;
            }
        }
        last
    }

    /// Copies what is selected in copy mode, or the caret's line, and leaves.
    pub(super) fn take(&mut self, model: &Model) -> Reply {
        let text = self.selected_text(model).or_else(|| {
            let caret = self.copy?.caret;
            Some(self.view.kept(caret.key)?.stack().line(caret.line)?.text().trim_end().to_owned())
        });
        self.copy = None;
        match text {
            Some(text) if !text.is_empty() => {
                Reply::with(Effect::Task(Task::Copy { text, what: "selection" }))
            }
            _ => Reply::done(),
        }
    }
}

/// A cell's source to the clipboard.
fn copy(cell: &Cell) -> Reply {
    let text = cell::source(cell);
    if text.is_empty() {
        return Reply::Ignored;
    }
    Reply::with(Effect::Task(Task::Copy { text, what: cell::kind(cell) }))
}
