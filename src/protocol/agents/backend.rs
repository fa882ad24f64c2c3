//! What does an agent's work: Tiller itself, or an external program.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::word::text_form;

/// The way to communicate with an external program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Agent Client Protocol: JSON-RPC over its standard input and output.
    Acp,
    /// Its mode without a screen, with JSON lines where it has them.
    Headless,
    /// In one of Tiller's terminals.
    Pty,
}

impl Transport {
    const ALL: [Self; 3] = [Self::Acp, Self::Headless, Self::Pty];

    /// As written in files and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Headless => "headless",
            Self::Pty => "pty",
        }
    }

    /// The transport with this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }
}

/// What does an agent's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Tiller itself.
    #[default]
    Tiller,
    /// An external program that has not started: its name, and the transport where one was asked for.
    Requested { program: String, transport: Option<Transport> },
    /// An external program that has started.
    Started { program: String, transport: Transport },
}

impl Backend {
    /// For a program as it was asked for, `codex` or `codex:pty`, and the transport that it was started with.
    pub fn program(requested: &str, started: Option<Transport>) -> Self {
        let named = requested
            .rsplit_once(':')
            .and_then(|(program, name)| Some((program.to_owned(), Some(Transport::of(name)?))));
        let (program, transport) = named.unwrap_or_else(|| (requested.to_owned(), None));
        match started {
            Some(transport) => Self::Started { program, transport },
            None => Self::Requested { program, transport },
        }
    }

    /// An external program does the work.
    pub fn is_external(&self) -> bool {
        *self != Self::Tiller
    }

    /// It runs in a terminal, or will.
    pub fn in_terminal(&self) -> bool {
        match self {
            Self::Tiller => false,
            Self::Requested { transport, .. } => *transport == Some(Transport::Pty),
            Self::Started { transport, .. } => *transport == Transport::Pty,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tiller => Ok(()),
            Self::Requested { program, transport: None } => f.write_str(program),
            Self::Requested { program, transport: Some(transport) } => {
                write!(f, "{program}:{}", transport.name())
            }
            Self::Started { program, transport } => write!(f, "{program}, {}", transport.name()),
        }
    }
}

impl From<&str> for Backend {
    /// From the form in which it is stored and sent.
    fn from(form: &str) -> Self {
        if form.is_empty() {
            return Self::Tiller;
        }
        let started = form.rsplit_once(", ").and_then(|(program, name)| {
            Some(Self::Started { program: program.to_owned(), transport: Transport::of(name)? })
        });
        started.unwrap_or_else(|| Self::program(form, None))
    }
}

text_form!(Backend);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        for (form, external, in_terminal) in [
            ("", false, false),
            ("codex", true, false),
            ("codex:pty", true, true),
            ("codex:later", true, false),
            ("claude, acp", true, false),
            ("claude, pty", true, true),
            ("claude, later", true, false),
        ] {
            let backend = Backend::from(form);
            assert_eq!(backend.to_string(), form);
            assert_eq!((backend.is_external(), backend.in_terminal()), (external, in_terminal), "{form}");
        }
        let started = Backend::program("codex:pty", Some(Transport::Headless));
        assert_eq!(started.to_string(), "codex, headless");
    }
}
