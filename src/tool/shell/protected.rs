//! Protected files that the kernel does not keep from being written: recorded before a command, compared after it, and
//! put back. While something that a command started lives on, they are compared again: before the next command of the
//! same shell, at the end of a background process, and at the end of the session.

use std::sync::Arc;

use tokio::sync::watch;

use crate::ToolCx;
use crate::shell::backend::ShellError;
use crate::shell::pool::ShellPool;
use crate::shell::processes::launch::{Compared, Confiner, Exit, FileGuard};

/// The result of the comparison after the end of a process; `None`: not compared yet. The sender is held by
/// the task that waits for the end.
pub(crate) type Restored = watch::Receiver<Option<Compared>>;

/// Of a process whose files need not be compared.
pub(crate) fn not_compared() -> Restored {
    watch::channel(Some(Compared::default())).1
}

impl ShellPool {
    /// Records the protected files before a command of this call, which `confiner` confines.
    ///
    /// # Errors
    /// When they cannot be recorded: the command must not run then.
    pub(crate) async fn guard(
        &self,
        confiner: Option<Arc<dyn Confiner>>,
        cx: &ToolCx,
    ) -> Result<Option<Arc<dyn FileGuard>>, ShellError> {
        let Some(confiner) = confiner else { return Ok(None) };
        let root = cx.workspace.root.clone();
        let guard = tokio::task::spawn_blocking(move || confiner.guard(&root)).await;
        let guard = guard.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        guard.map_err(ShellError::system("the protected files cannot be compared"))
    }

    /// Compares the protected files when the process has ended, and once more at the end of the session.
    pub(crate) fn guard_until(
        &self,
        guard: Option<Arc<dyn FileGuard>>,
        mut exit: watch::Receiver<Option<Exit>>,
    ) -> Restored {
        let Some(guard) = guard else { return not_compared() };
        self.watched(Arc::clone(&guard));
        let (tx, restored) = watch::channel(None);
        // Ends with the process.
        tokio::spawn(async move {
            // An error: the process is no longer waited for.
            let _ = exit.wait_for(Option::is_some).await;
            let _ = tx.send(Some(put_back(&guard).await));
        });
        restored
    }
}

/// Compares them now, on a thread for work that blocks.
pub(crate) async fn put_back(guard: &Arc<dyn FileGuard>) -> Compared {
    let guard = Arc::clone(guard);
    let compared = tokio::task::spawn_blocking(move || guard.restore()).await.unwrap_or_default();
    for line in compared.restored.iter().chain(compared.held.iter().map(|file| &file.words)) {
        tracing::warn!(line, "a command wrote a protected file");
    }
    compared
}
