//! Lines of the person's own that run: a row from the moment they are typed, with what they say so far.

use tiller_protocol::Time;
use tiller_protocol::view::ShellLineView;

use super::{Body, Cell, Conversation, ShellRun, Tail};

impl Conversation {
    /// The line of the person's own that runs, else the first one that waits: what `stop_tool` names.
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

    /// It was taken, or begins to run.
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
        self.push(now, Body::Shell { line, output: Tail::default(), exit: None, shared, run: Some(fresh) });
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

    /// It has run. Its row stays where it stands; one that is not here gets a row now.
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
