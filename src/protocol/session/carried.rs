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
    /// The first message of the session, which was summed up and stands after the summary word for word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<CarriedContent>,
    /// The same of the person's messages in the running turn, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<CarriedContent>,
    /// Kept results and messages that were shortened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<CarriedContent>,
}

impl Carried {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.messages.is_empty() && self.shortened.is_empty()
    }

    /// The messages that stand after the summary, in order.
    pub fn words(&self) -> impl Iterator<Item = &CarriedContent> {
        self.first.iter().chain(&self.messages)
    }

    /// All contents.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut CarriedContent> {
        self.first.iter_mut().chain(&mut self.messages).chain(&mut self.shortened)
    }
}
