//! A hook before every change to a file system, so that a test can stop the program, or write files itself, between any
//! two changes.

use std::io;
use std::sync::Arc;

type Hook = dyn Fn(&str) -> io::Result<()> + Send + Sync;

/// The hook. The program has none.
#[derive(Clone, Default)]
pub(crate) struct Steps(Option<Arc<Hook>>);

impl Steps {
    /// Calls `hook` before each change; its error prevents the change, as a kill or a full disk would.
    #[cfg(test)]
    pub(crate) fn with(hook: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Whether to wait for the disk. Not in tests with thousands of kills: a kill loses nothing that was written.
    pub(crate) fn durable(&self) -> bool {
        self.0.is_none()
    }

    /// Announces the next change, which is called `what`.
    pub(crate) fn at(&self, what: &str) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |hook| hook(what))
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Steps(test)" } else { "Steps" })
    }
}
