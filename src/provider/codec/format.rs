//! One API format: what `kind` in `[providers.NAME]` names.

use std::path::Path;
use std::sync::Arc;

use tiller_config::schema::Provider as Entry;

use crate::Provider;
use crate::codec::Wire;
use crate::replay::redact::Redact;

/// Makes a provider that reaches no server. The error is a part of a sentence.
pub type MakeLocal = fn(&LocalEntry<'_>) -> Result<Arc<dyn Provider>, String>;

/// What the configuration says of a provider that reaches no server.
pub struct LocalEntry<'a> {
    /// The first part of a model's reference.
    pub name: &'a str,
    pub entry: &'a Entry,
    /// Masks secrets in recordings.
    pub redact: &'a Redact,
}

impl LocalEntry<'_> {
    /// The file of `recording`.
    pub(crate) fn recording(&self) -> Option<&Path> {
        self.entry.recording.as_deref().map(Path::new)
    }
}

/// One API format. It states itself in its own folder.
#[derive(Clone, Copy)]
pub struct ApiFormat {
    /// As in `config.toml`.
    pub(crate) kind: &'static str,
    pub(crate) make: Make,
    /// Whether `recording` names a file to write; otherwise the format reads that file itself.
    pub(crate) records: bool,
}

/// How a provider of the format is made.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// A server is reached over HTTP. The function gets its base URL, without a slash at the end.
    Server(fn(&str) -> Box<dyn Wire>),
    Local(MakeLocal),
}

impl ApiFormat {
    /// A format of servers.
    pub(crate) const fn server(kind: &'static str, wire: fn(&str) -> Box<dyn Wire>) -> Self {
        Self { kind, make: Make::Server(wire), records: true }
    }

    /// A format without a server.
    pub const fn local(kind: &'static str, make: MakeLocal) -> Self {
        Self { kind, make: Make::Local(make), records: true }
    }

    /// The same, when it reads `recording` itself.
    pub(crate) const fn reads_recording(self) -> Self {
        Self { records: false, ..self }
    }
}
