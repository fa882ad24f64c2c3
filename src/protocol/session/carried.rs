//! The contents that a compaction carries along.

use serde::{Deserialize, Serialize};

use crate::base::ids::EntryId;
use crate::session::message::Part;

/// The content that later requests have in place of an entry's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CarriedContent {
    pub entry: EntryId,
    pub content: Vec<Part>,
}

/// The contents that requests after a compaction have in place of entries of before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// Messages that were summed up and stand after the summary word for word, oldest first: the first of the session,
    /// and those of the person in the running turn.
    pub messages: Vec<CarriedContent>,
    /// Kept results and messages that were shortened.
    pub shortened: Vec<CarriedContent>,
}

impl Carried {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.shortened.is_empty()
    }

    /// Both kinds.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut CarriedContent> {
        self.messages.iter_mut().chain(&mut self.shortened)
    }
}
