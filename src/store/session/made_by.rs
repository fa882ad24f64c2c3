//! What made a session.

/// The origin of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeBy {
    /// A person at the screen or in an editor.
    #[default]
    Person,
    /// A run without a screen (`tiller exec`, `tiller workflow run`): listed only on request.
    Exec,
    /// A run whose session is not kept: never listed, and removed at its end, or at the next start if it was killed.
    Ephemeral,
}

impl MadeBy {
    /// The value of the column `origin`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Person => "",
            Self::Exec => "exec",
            Self::Ephemeral => "ephemeral",
        }
    }

    /// Any other value is from a newer version: such a session is listed.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "exec" => Self::Exec,
            "ephemeral" => Self::Ephemeral,
            _ => Self::Person,
        }
    }
}
