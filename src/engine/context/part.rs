//! The part of the loop's state that belongs to what models see.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tiller_protocol::SessionId;

use crate::context::news::News;
use crate::context::todo::Todo;

/// What models see beside the entries, and requests beside the conversation.
#[derive(Default)]
pub(crate) struct ContextPart {
    /// Shared with the tools' ports, which read it.
    pub(crate) todo: Arc<Mutex<Todo>>,
    pub(crate) news: News,
    /// Titles that are asked for, as the prompt alone would make them: for when the engine ends before.
    pub(crate) titling: HashMap<SessionId, String>,
    /// Ends the waits of side calls early.
    pub(crate) side_skip: Arc<tokio::sync::Notify>,
}
