//! The todo list, and when the model is reminded of it.

use std::fmt::Write;

use tiller_protocol::command::TodoCommand;
use tiller_protocol::{TodoItem, TodoStatus, ToolOutcome};

/// Calls without an update after which the model is reminded.
const CALLS: u32 = 10;

/// The list of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Todo {
    pub items: Vec<TodoItem>,
    /// Tool calls since the last change, without those of the planning tools.
    pub calls: u32,
    reminded: bool,
}

impl Todo {
    pub fn new(items: Vec<TodoItem>) -> Self {
        Self { items, ..Self::default() }
    }

    /// Replaces the list, by the model or the user.
    pub fn replace(&mut self, items: Vec<TodoItem>) {
        *self = Self::new(items);
    }

    /// Counts a finished call of a tool other than those of the list; returns a reminder for the end of its result, if
    /// one is due.
    pub fn called(&mut self, outcome: ToolOutcome) -> Option<String> {
        let crossed = self.calls >= CALLS && !self.reminded;
        self.calls = self.calls.saturating_add(1);
        if matches!(outcome, ToolOutcome::Error | ToolOutcome::TimedOut) && !self.items.is_empty() {
            return Some("[The call failed: check whether the plan in the todo list still holds.]".into());
        }
        if !crossed {
            return None;
        }
        self.reminded = true;
        let calls = self.calls - 1;
        Some(if self.items.is_empty() {
            format!(
                "[{calls} calls without a todo list: if the work has several steps, plan it with todo_write.]"
            )
        } else {
            format!("[{calls} calls since the todo list was updated: review the plan.]")
        })
    }

    /// Applies the user's edit; returns a line for the model.
    ///
    /// # Errors
    /// When there is no such item.
    pub fn edit(&mut self, edit: &TodoCommand) -> Result<String, String> {
        let at = |id: &str| {
            self.items.iter().position(|i| i.id == id).ok_or_else(|| format!("there is no todo item '{id}'"))
        };
        let said = match edit {
            TodoCommand::Add { content } => {
                let id = (1..).map(|n| n.to_string()).find(|n| self.items.iter().all(|i| i.id != *n));
                let id = id.unwrap_or_default();
                let said = format!("added {id}: {content}");
                self.items.push(TodoItem {
                    id,
                    content: content.clone(),
                    status: TodoStatus::Pending,
                    agent: None,
                });
                said
            }
            TodoCommand::Edit { id, content } => {
                let i = at(id)?;
                self.items[i].content.clone_from(content);
                format!("changed {id} to: {content}")
            }
            TodoCommand::Status { id, status } => {
                let i = at(id)?;
                self.items[i].status = *status;
                format!("set {id} to {}", word(*status))
            }
            TodoCommand::Move { id, to } => {
                let i = at(id)?;
                let item = self.items.remove(i);
                let to = (*to).min(self.items.len());
                self.items.insert(to, item);
                format!("moved {id} to place {}", to + 1)
            }
        };
        self.calls = 0;
        self.reminded = false;
        Ok(said)
    }
}

fn word(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Completed => "completed",
        TodoStatus::Cancelled => "cancelled",
    }
}

/// The list as text for the model, after a compaction.
pub fn render(items: &[TodoItem]) -> String {
    let mut out = String::from("The todo list at this point:");
    for i in items {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n- {} [{}] {}", i.id, word(i.status), i.content);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Todo {
        let item = |id: &str| TodoItem {
            id: id.into(),
            content: id.into(),
            status: TodoStatus::Pending,
            agent: None,
        };
        Todo::new(vec![item("a"), item("b")])
    }

    #[test]
    fn the_reminder_comes_once_for_each_crossing() {
        let mut t = list();
        let mut hints = Vec::new();
        for n in 1..=30 {
            if t.called(ToolOutcome::Ok).is_some() {
                hints.push(n);
            }
        }
        assert_eq!(hints, [11]);
        t.replace(t.items.clone());
        for n in 1..=11 {
            assert_eq!(t.called(ToolOutcome::Ok).is_some(), n == 11);
        }
    }

    #[test]
    fn a_failed_call_reminds_of_the_plan_only_where_there_is_one() {
        assert!(list().called(ToolOutcome::Error).unwrap().contains("plan"));
        assert!(Todo::default().called(ToolOutcome::Error).is_none());
        assert!(list().called(ToolOutcome::Denied).is_none());
    }

    #[test]
    fn the_persons_edits_are_done_and_put_into_words() {
        let mut t = list();
        let edit = |t: &mut Todo, e| t.edit(&e);
        assert_eq!(edit(&mut t, TodoCommand::Add { content: "c".into() }).unwrap(), "added 1: c");
        assert_eq!(edit(&mut t, TodoCommand::Move { id: "1".into(), to: 0 }).unwrap(), "moved 1 to place 1");
        edit(&mut t, TodoCommand::Status { id: "a".into(), status: TodoStatus::Completed }).unwrap();
        assert!(edit(&mut t, TodoCommand::Edit { id: "zz".into(), content: String::new() }).is_err());
        let text = render(&t.items);
        assert_eq!(text, "The todo list at this point:\n- 1 [pending] c\n- a [completed] a\n- b [pending] b");
    }
}
