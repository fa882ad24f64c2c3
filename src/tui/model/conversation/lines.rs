//! Shell lines (`!`) that run: a row from the moment they are typed, with their output so far.

use tiller_protocol::Time;
use tiller_protocol::view::ShellLineView;

use super::{Body, Cell, Conversation, ShellRun, TextTail};

impl Conversation {
    /// The shell line that runs, else the first that waits: the id for `stop_tool`.
    pub fn running_line(&self) -> Option<&str> {
        self.lines.first().map(String::as_str)
    }

    fn shell_cell(&mut self, call_id: &str) -> Option<&mut Cell> {
        if !self.lines.iter().any(|l| l == call_id) {
            return None;
        }
        let is = |c: &Cell| matches!(&c.body, Body::Shell { run: Some(r), .. } if r.call_id == call_id);
        self.cells.iter_mut().rev().find(|c| is(c))
    }

    /// Notes that a shell line was accepted, or begins to run.
    pub(super) fn shell_started(&mut self, now: Time, view: &ShellLineView) {
        let fresh = ShellRun { call_id: view.call_id.clone(), waits: view.waits, since: now };
        if let Some(cell) = self.shell_cell(&view.call_id) {
            cell.rev = cell.rev.wrapping_add(1);
            if let Body::Shell { run, .. } = &mut cell.body {
                *run = Some(fresh);
            }
            return;
        }
        if !self.lines.contains(&view.call_id) {
            self.lines.push(view.call_id.clone());
        }
        let (line, shared) = (view.line.clone(), view.shared);
        self.push(
            now,
            Body::Shell { line, output: TextTail::default(), exit: None, shared, run: Some(fresh) },
        );
    }

    /// New output; `false`: it is not of a line.
    pub(super) fn shell_said(&mut self, call_id: &str, text: &str) -> bool {
        let Some(cell) = self.shell_cell(call_id) else { return false };
        cell.rev = cell.rev.wrapping_add(1);
        if let Body::Shell { output, .. } = &mut cell.body {
            output.push(text);
        }
        true
    }

    /// Notes that a shell line has ended. Its row stays where it is; a line without a row gets one now.
    pub(super) fn shell_ended(&mut self, now: Time, call_id: &str, body: Body) {
        let known = self.shell_cell(call_id).map(|cell| {
            cell.rev = cell.rev.wrapping_add(1);
            cell.body = body.clone();
        });
        self.lines.retain(|l| l != call_id);
        if known.is_none() {
            self.push(now, body);
        }
    }
}
