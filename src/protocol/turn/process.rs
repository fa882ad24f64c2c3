//! Background processes of a session.

use std::fmt;

use crate::base::word::text_form;

/// Whether a background process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// Run time in whole seconds.
    Running { seconds: u64 },
    /// It has ended; its exit code (128 + signal), when that is known.
    Ended { code: Option<i32> },
    /// A state that this version does not know, as it was written.
    Other(String),
}

impl ProcessState {
    /// It has not ended.
    pub fn runs(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { seconds } => write!(f, "running for {seconds} s"),
            Self::Ended { code: None } => f.write_str("ended"),
            Self::Ended { code: Some(code) } => write!(f, "ended, exit {code}"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl From<&str> for ProcessState {
    fn from(words: &str) -> Self {
        let seconds = || words.strip_prefix("running for ")?.strip_suffix(" s")?.parse().ok();
        let code = || words.strip_prefix("ended, exit ")?.parse().ok();
        match (words, seconds(), code()) {
            ("ended", ..) => Self::Ended { code: None },
            (_, Some(seconds), _) => Self::Running { seconds },
            (_, _, Some(code)) => Self::Ended { code: Some(code) },
            _ => Self::Other(words.to_owned()),
        }
    }
}

/// A background process. It is sent as text: `p1: running for 12 s: COMMAND`, then perhaps a line with its last output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRow {
    /// `p1`; empty where a text does not name it.
    pub id: String,
    pub state: ProcessState,
    /// What was done because it took too much memory or started too many processes; empty: nothing.
    pub intervention: String,
    /// The first line of its command, shortened.
    pub command: String,
    /// The last line of its output; empty: none.
    pub last: String,
}

impl ProcessRow {
    /// Its state in words, and what was done about it.
    pub fn state_words(&self) -> String {
        match self.intervention.as_str() {
            "" => self.state.to_string(),
            intervention => format!("{}; {intervention}", self.state),
        }
    }
}

impl fmt::Display for ProcessRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.id.is_empty() {
            f.write_str(&self.state_words())?;
        } else {
            write!(f, "{}: {}: {}", self.id, self.state_words(), self.command)?;
        }
        if self.last.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.last) }
    }
}

impl From<&str> for ProcessRow {
    /// From the form in which it is sent.
    fn from(text: &str) -> Self {
        let (head, last) = text.split_once("\n  ").unwrap_or((text, ""));
        let named = head.split_once(": ").and_then(|(id, rest)| Some((id, rest.split_once(": ")?)));
        let (id, (state, command)) = named.unwrap_or(("", (head, "")));
        let (state, intervention) = state.split_once("; ").unwrap_or((state, ""));
        Self {
            id: id.to_owned(),
            state: state.into(),
            intervention: intervention.to_owned(),
            command: command.to_owned(),
            last: last.to_owned(),
        }
    }
}

text_form!(ProcessRow);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        for (text, state) in [
            ("p1: running for 12 s: npm run dev\n  ready: yes", ProcessState::Running { seconds: 12 }),
            ("p2: ended: a: b", ProcessState::Ended { code: None }),
            ("p3: ended, exit 143: cargo run", ProcessState::Ended { code: Some(143) }),
            ("p4: running for 3 s; ended at 16 GiB: x", ProcessState::Running { seconds: 3 }),
            ("p5: asleep: x", ProcessState::Other("asleep".into())),
            ("p6: ended: ", ProcessState::Ended { code: None }),
            ("p7 sleep", ProcessState::Other("p7 sleep".into())),
        ] {
            let row = ProcessRow::from(text);
            assert_eq!((&row.state, row.to_string().as_str()), (&state, text));
        }
        let row = ProcessRow::from("p4: running for 3 s; ended at 16 GiB: x");
        assert_eq!(
            (row.intervention.as_str(), row.state_words().as_str()),
            ("ended at 16 GiB", "running for 3 s; ended at 16 GiB")
        );
    }
}
