//! Why a server cannot be used, in words for people and for models.

use tiller_tool::foreign::framed;

use crate::read::result::clean;

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A sentence without a full stop.
    pub why: String,
    /// The end of its standard error.
    pub tail: String,
    /// The person has to log in.
    pub login: bool,
    /// No person could be asked.
    pub unanswered: bool,
}

impl Failure {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), tail: String::new(), login: false, unanswered: false }
    }

    /// The user took the trust in the folder that names the server back.
    pub(crate) fn revoked() -> Self {
        Self::new(
            "you no longer trust the folder that names it; after `tiller trust` it is used again from the next \
             start on",
        )
    }

    /// In words, with the end of what the program printed.
    pub fn words(&self) -> String {
        if self.tail.is_empty() {
            return self.why.clone();
        }
        format!("{}\nits standard error ends with:\n{}", self.why, self.last_lines())
    }

    /// The same for a model: what the program printed is marked as text of others.
    pub(crate) fn for_model(&self, server: &str) -> String {
        let why = clean(self.why.as_bytes());
        if self.tail.is_empty() {
            return why;
        }
        let from = format_args!("the standard error of the MCP server {server}");
        let printed = framed(from, &clean(self.last_lines().as_bytes()), "");
        format!("{why}\nits standard error ends with:\n{}", printed.trim_end())
    }

    /// The last lines of its standard error.
    pub fn last_lines(&self) -> String {
        let lines: Vec<&str> = self.tail.lines().rev().take(12).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}
