//! The reply in flight: deltas, calls that begin, and what takes it away again.

use tiller_protocol::Time;

use super::{Body, Cell, Conversation, ToolCell, ToolState, message_lines};

impl Conversation {
    /// More of the reply. Costs its own length.
    pub(super) fn text_delta(&mut self, now: Time, delta: &str) {
        if delta.is_empty() {
            return;
        }
        if let Some(Cell { open: true, rev, body: Body::Reply { text }, .. }) = self.cells.back_mut() {
            text.push_str(delta);
            *rev = rev.wrapping_add(1);
            return;
        }
        if delta.trim().is_empty() {
            return; // some servers begin with blank lines
        }
        self.open(now, Body::Reply { text: delta.to_owned() });
    }

    /// More of the reasoning.
    pub(super) fn thinking_delta(&mut self, now: Time, delta: &str) {
        if let Some(Cell { open: true, rev, time, body: Body::Thinking { text, seconds }, .. }) =
            self.cells.back_mut()
        {
            text.push_str(delta);
            *rev = rev.wrapping_add(1);
            *seconds = Some((now.millis() - time.millis()).max(0) as f64 / 1000.0);
            return;
        }
        self.open(now, Body::Thinking { text: delta.to_owned(), seconds: Some(0.0) });
    }

    /// The model begins to write a call.
    pub(super) fn call_begun(&mut self, now: Time, name: &str) {
        let tool = ToolCell { started: Some(now), ..ToolCell::new("", name, &self.tools) };
        self.open(now, Body::Tool(Box::new(tool)));
    }

    fn open(&mut self, now: Time, body: Body) {
        let demo = self.model.is_demo();
        let labelled = |c: &Cell| c.turn == self.turn && matches!(c.body, Body::Demo);
        if demo && !self.cells.iter().rev().take(256).any(labelled) {
            self.push(now, Body::Demo);
        }
        self.push(now, body);
        if let Some(cell) = self.cells.back_mut() {
            cell.open = true;
        }
    }

    /// The try failed: what it had streamed comes again.
    pub(super) fn discard_open(&mut self) {
        let before = self.cells.len();
        while self.cells.back().is_some_and(|c| c.open) {
            self.cells.pop_back();
        }
        if self.cells.len() != before {
            self.epoch += 1;
        }
    }

    /// Nothing more comes, and no entry took its place: what is there stays.
    pub(super) fn close_open(&mut self) {
        for cell in self.cells.iter_mut().rev().take(256).filter(|c| c.open) {
            cell.open = false;
            cell.rev = cell.rev.wrapping_add(1);
            if let Body::Tool(t) = &mut cell.body
                && t.call_id.is_empty()
            {
                t.state = ToolState::Lost;
            }
        }
    }

    /// Changes the row of a call, which is made when it is not there. Its key.
    pub(super) fn with_tool(
        &mut self,
        now: Time,
        call_id: &str,
        name: &str,
        change: impl FnOnce(&mut ToolCell),
    ) -> Option<u64> {
        let is = |c: &Cell| matches!(&c.body, Body::Tool(t) if t.call_id == call_id);
        if !self.cells.iter().rev().any(is) {
            if name.is_empty() {
                return None; // progress of something that was never announced
            }
            self.turn += i64::from(message_lines::begins(self.cells.iter(), call_id));
            let tool = ToolCell::new(call_id, name, &self.tools);
            self.push(now, Body::Tool(Box::new(tool)));
        }
        let cell = self.cells.iter_mut().rev().find(|c| is(c))?;
        cell.rev = cell.rev.wrapping_add(1);
        if let Body::Tool(t) = &mut cell.body {
            change(t);
        }
        Some(cell.key)
    }
}
