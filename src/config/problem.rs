//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use tiller_protocol::{Notice, NoticeKind};

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, or `TILLER_MODEL`, or a flag.
    pub source: PathBuf,
    /// Line and column (in characters), from 1; `None` outside files.
    pub at: Option<(usize, usize)>,
    /// The key, for instance `ui.theme`; empty when the file as a whole is meant.
    pub key: String,
    /// In words. Never holds a value: a value may be a key that was put in the wrong place.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source.display())?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl Problem {
    /// About `path` as a whole.
    pub fn file(path: &Path, message: impl Into<String>) -> Self {
        Self { source: path.into(), at: None, key: String::new(), message: message.into(), hint: None }
    }

    /// For the person. Several problems of one reading come as one notice.
    pub fn notice(problems: &[Self]) -> Option<Notice> {
        let first = problems.first()?;
        let more = match problems.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let all = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        Some(
            Notice::new(NoticeKind::Config, format!("{first}{more}"))
                .hint("the previous settings stay in use until this is corrected")
                .detail(all),
        )
    }
}

/// Errors of this room that are not mistakes in a file's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or written.
    #[error("{}: {detail}", path.display())]
    Io { path: PathBuf, detail: String },
    /// The text is wrong, or would be after a change; nothing was written.
    #[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Wrong { problems: Vec<Problem> },
    /// A name that cannot be a key's name, or a value that cannot be stored.
    #[error("{0}")]
    Refused(String),
}

impl ConfigError {
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::Io { path: path.into(), detail: error.to_string() }
    }

    /// For the person.
    pub fn notice(&self) -> Notice {
        match self {
            Self::Wrong { problems } => Problem::notice(problems)
                .unwrap_or_else(|| Notice::new(NoticeKind::Config, "the configuration is wrong")),
            other => Notice::new(NoticeKind::Config, other.to_string()),
        }
    }
}
