//! What a message holds its turn to.

/// The terms of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnTerms {
    pub(crate) limits: Vec<ToolList>,
    /// The own command that asks for a model, and the model: a tier or a name.
    pub(crate) model: Option<(String, String)>,
}

/// The only tools that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolList {
    /// What says so: `the skill deploy`.
    pub(crate) of: String,
    /// Entries as they are written.
    pub(crate) entries: Vec<String>,
}
