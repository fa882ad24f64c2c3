//! The list itself: how changes are merged, and how it is written for the model.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use tiller_protocol::{TodoItem, TodoStatus};

use crate::text::visible;

/// Items of a list, and characters of one item.
pub(crate) const ITEMS: usize = 256;
pub(crate) const CHARS: usize = 4_000;

// As the model writes it (a doc comment would go into the schema).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl From<Status> for TodoStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Completed => Self::Completed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

// One item of a call; with `merge`, what is left out stays as it was.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoUpdate {
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub content: Option<String>,
    #[serde(default)]
    pub status: Option<Status>,
}

/// The list after a call.
///
/// # Errors
/// What is wrong; the list stays as it was.
pub(crate) fn merged(
    old: Vec<TodoItem>,
    given: Vec<TodoUpdate>,
    merge: bool,
) -> Result<Vec<TodoItem>, String> {
    let mut ids = HashSet::new();
    for id in given.iter().filter_map(|g| g.id.as_deref()) {
        if !ids.insert(id.to_owned()) {
            return Err(format!("two items have the id '{id}'"));
        }
    }
    let mut list = if merge { old } else { Vec::new() };
    ids.extend(list.iter().map(|t| t.id.clone()));
    let mut next = 1u32;
    for item in given {
        let content = item.content.map(|c| tidy(&c)).filter(|c| !c.is_empty());
        if content.as_ref().is_some_and(|c| c.chars().count() > CHARS) {
            return Err(format!("an item has more than {CHARS} characters"));
        }
        let known = item.id.as_ref().and_then(|id| list.iter_mut().find(|t| &t.id == id));
        if let Some(known) = known {
            if let Some(content) = content {
                known.content = content;
            }
            if let Some(status) = item.status {
                known.status = status.into();
            }
            continue;
        }
        let Some(content) = content else {
            return Err(match item.id {
                Some(id) => format!("there is no item '{id}', and a new one needs content"),
                None => "an item has no content".into(),
            });
        };
        let id = match item.id.map(|id| tidy(&id)).filter(|id| !id.is_empty()) {
            Some(id) => id,
            None => fresh(&mut ids, &mut next),
        };
        let status = item.status.map(TodoStatus::from).unwrap_or_default();
        list.push(TodoItem { id, content, status, agent: None });
    }
    if list.len() > ITEMS {
        return Err(format!("the list would have {} items; at most {ITEMS} are kept", list.len()));
    }
    Ok(list)
}

/// The smallest number that is no id yet.
fn fresh(ids: &mut HashSet<String>, next: &mut u32) -> String {
    loop {
        let id = next.to_string();
        *next += 1;
        if ids.insert(id.clone()) {
            return id;
        }
    }
}

/// One line, without controls.
fn tidy(text: &str) -> String {
    visible(&text.replace(['\n', '\r', '\t'], " ")).trim().to_owned()
}

/// One line an item, in order of priority.
pub(crate) fn written(list: &[TodoItem]) -> String {
    if list.is_empty() {
        return "the list is empty\n".into();
    }
    let word = |s: TodoStatus| match s {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Completed => "completed",
        TodoStatus::Cancelled => "cancelled",
    };
    list.iter().map(|t| format!("{} [{}] {}\n", t.id, word(t.status), t.content)).collect()
}

/// Items done (or cancelled) and left.
pub(crate) fn counts(list: &[TodoItem]) -> (usize, usize) {
    let done =
        list.iter().filter(|t| matches!(t.status, TodoStatus::Completed | TodoStatus::Cancelled)).count();
    (done, list.len() - done)
}

/// A word on lists with more than one item in progress.
pub(crate) fn advice(list: &[TodoItem]) -> &'static str {
    let running = list.iter().filter(|t| t.status == TodoStatus::InProgress).count();
    let (_, left) = counts(list);
    match running {
        0 if left > 0 => "note: no item is in_progress\n",
        0 | 1 => "",
        _ => "note: more than one item is in_progress; keep exactly one\n",
    }
}
