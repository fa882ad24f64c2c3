//! Protected files that the kernel does not keep from being written: recorded before a command, compared after it, and
//! put back. While something that a command started lives on, they are compared again: when it has written one, before the next
//! command of the same shell, at the end of a background process, and at the end of the session.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::ToolCx;
use crate::shell::backend::ShellError;
use crate::shell::pool::ShellPool;
use crate::shell::processes::launch::{Compared, Confiner, Exit, FileGuard};

/// Time between two looks for protected names that a process has written while it runs.
const PAUSE: Duration = Duration::from_millis(500);

/// The comparisons while a process runs and after its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restoring {
    pub(crate) compared: Compared,
    /// It has ended, and was compared after that.
    pub(crate) over: bool,
}

/// The sender is held by the task that waits for the end.
pub(crate) type Restored = watch::Receiver<Restoring>;

/// Of a process whose files need not be compared.
pub(crate) fn not_compared() -> Restored {
    watch::channel(Restoring { over: true, ..Restoring::default() }).1
}

/// Waits for the comparison after the end of a process.
pub(crate) async fn restored(mut all: Restored) -> Compared {
    all.wait_for(|all| all.over).await.map(|all| all.compared.clone()).unwrap_or_default()
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

    /// Compares the protected files when the process has written some, when it has ended, and once more at the end of the session.
    pub(crate) fn guard_until(
        &self,
        guard: Option<Arc<dyn FileGuard>>,
        mut exit: watch::Receiver<Option<Exit>>,
    ) -> Restored {
        let Some(guard) = guard else { return not_compared() };
        self.watched(Arc::clone(&guard));
        let (tx, restored) = watch::channel(Restoring::default());
        // Ends with the process.
        tokio::spawn(async move {
            // An error: the process is no longer waited for.
            while tokio::time::timeout(PAUSE, exit.wait_for(Option::is_some)).await.is_err() {
                if guard.has_news() {
                    let compared = put_back(&guard).await;
                    tx.send_modify(|all| all.compared.extend(compared));
                }
            }
            let compared = put_back(&guard).await;
            tx.send_modify(|all| {
                all.compared.extend(compared);
                all.over = true;
            });
        });
        restored
    }

    /// Compares the protected files of the agent's shell while no command runs in it, as long as something that the last one
    /// started may write some.
    pub(crate) fn guard_rest(&self, guard: &Arc<dyn FileGuard>, cx: &ToolCx) {
        let (slot, guard) = (self.slot(cx), Arc::clone(guard));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PAUSE).await;
                let mut slot = slot.lock().await;
                match &slot.guard {
                    Some(own) if Arc::ptr_eq(own, &guard) => {
                        if guard.has_news() {
                            let compared = put_back(&guard).await;
                            slot.compared.extend(compared);
                        }
                    }
                    // The next command has compared them, or the session is over.
                    _ => return,
                }
            }
        });
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
