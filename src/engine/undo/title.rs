//! Titles of the rows of the operation log.

use std::fmt;

/// Whether a row takes an operation back or does it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inverse {
    Undo,
    Redo,
}

impl Inverse {
    /// For a command that says whether it is a redo.
    pub fn of(redo: bool) -> Self {
        if redo { Self::Redo } else { Self::Undo }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }
}

/// What a row of the log is called: the operation, and whether the row undoes or redoes it. The log keeps it as text:
/// `fork`, `undo fork`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpTitle {
    pub operation: String,
    pub inverse: Option<Inverse>,
}

impl OpTitle {
    /// Of a row that undoes or redoes an operation.
    pub fn inverse(inverse: Inverse, operation: String) -> Self {
        Self { operation, inverse: Some(inverse) }
    }
}

impl From<String> for OpTitle {
    /// Of the operation itself.
    fn from(operation: String) -> Self {
        Self { operation, inverse: None }
    }
}

impl From<&str> for OpTitle {
    fn from(operation: &str) -> Self {
        operation.to_owned().into()
    }
}

impl fmt::Display for OpTitle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(inverse) = self.inverse {
            write!(f, "{} ", inverse.word())?;
        }
        f.write_str(&self.operation)
    }
}
