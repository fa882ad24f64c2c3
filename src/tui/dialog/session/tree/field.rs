//! The line at the bottom: a search, a new name, the name of a file.

use tiller_protocol::{EntryId, SessionId};

use super::Browser;
use crate::widget::edit::Edit;

/// The field at the bottom.
#[derive(Debug)]
pub(super) enum Field {
    None,
    /// Words to look for.
    Find(Edit),
    /// A new name for this branch.
    Branch(SessionId, String, Edit),
    Title(SessionId, Edit),
    Tag(SessionId, EntryId, Edit),
    /// The file that a session is written to.
    Export(SessionId, Edit),
}

impl Browser {
    pub(super) fn field_shown(&self) -> bool {
        !matches!(self.field, Field::None) || !self.search.typed.is_empty()
    }

    /// Returns what stands at the bottom: label and words.
    pub(super) fn field_line(&self) -> (&'static str, Option<&Edit>) {
        match &self.field {
            Field::None => ("/", None),
            Field::Find(edit) => ("/", Some(edit)),
            Field::Branch(_, _, edit) => ("name of the branch: ", Some(edit)),
            Field::Title(_, edit) => ("title: ", Some(edit)),
            Field::Tag(_, _, edit) => ("name of the entry: ", Some(edit)),
            Field::Export(_, edit) => ("new file (.md, .html, .jsonl): ", Some(edit)),
        }
    }

    pub(super) fn editing(&mut self) -> Option<&mut Edit> {
        match &mut self.field {
            Field::None => None,
            Field::Find(edit)
            | Field::Branch(_, _, edit)
            | Field::Title(_, edit)
            | Field::Tag(_, _, edit)
            | Field::Export(_, edit) => Some(edit),
        }
    }

    /// How many entries were found.
    pub(super) fn count(&self) -> String {
        let found = match (&self.field, &self.search.found) {
            (Field::None | Field::Find(_), Some(found)) if !self.search.typed.trim().is_empty() => found,
            _ => return String::new(),
        };
        let n: usize = found.sessions.iter().map(|(_, s)| s.len()).sum();
        let more = if found.more { "+" } else { "" };
        match (n, found.behind) {
            (0, 0) => "nothing found".into(),
            (_, 0) => format!("{n}{more} found"),
            (_, behind) => format!("{n}{more} found, {behind} entries not searched yet"),
        }
    }
}
