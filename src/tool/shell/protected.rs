//! Protected files that the kernel does not keep from being written: recorded before a command, compared after it, and
//! put back. While something that a command started lives on in the background, they are compared again: when it has written one,
//! before the next command of the same shell, at the end of a background process, and at the end of the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tiller_protocol::lock;
use tokio::sync::watch;

use crate::ToolCx;
use crate::shell::backend::{Rest, ShellError};
use crate::shell::pool::ShellPool;
use crate::shell::processes::launch::{Compared, Confiner, Exit, FileGuard};

/// Time between two looks for protected names that a process has written while it runs.
const PAUSE: Duration = Duration::from_millis(500);
/// Comparisons that put something back while one process runs. What writes again and again is compared at its end only.
const LOOKS: usize = 20;
/// Looks from one time to the next at which it is found out whether something lives.
const LIVES: u32 = 20;

/// The way in which a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Its call waits for it: it is compared at its end, and the person is asked then.
    Foreground,
    /// It is compared while it runs. The person is not asked.
    Background,
}

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

    /// Compares the protected files when the process has ended, and once more at the end of the session; in the background also when
    /// it has written some.
    pub(crate) fn guard_until(
        &self,
        guard: Option<Arc<dyn FileGuard>>,
        mut exit: watch::Receiver<Option<Exit>>,
        runs: Runs,
    ) -> Restored {
        let Some(guard) = guard else { return not_compared() };
        self.watched(Arc::clone(&guard));
        let (tx, restored) = watch::channel(Restoring::default());
        // Ends with the process.
        tokio::spawn(async move {
            let mut looks = if runs == Runs::Background { LOOKS } else { 0 };
            // An error: the process is no longer waited for.
            while looks > 0 && tokio::time::timeout(PAUSE, exit.wait_for(Option::is_some)).await.is_err() {
                if guard.has_news() {
                    let compared = put_back(&guard).await.told_only();
                    looks -= usize::from(compared.has_restored());
                    tx.send_modify(|all| all.compared.extend(compared));
                }
            }
            let _ = exit.wait_for(Option::is_some).await;
            let mut compared = put_back(&guard).await;
            if runs == Runs::Background {
                compared = compared.told_only();
            }
            tx.send_modify(|all| {
                all.compared.extend(compared);
                all.over = true;
            });
        });
        restored
    }

    /// Compares the protected files of the agent's shell while no command runs in it, as long as something that the last one
    /// started lives.
    pub(crate) fn guard_rest(&self, guard: &Arc<dyn FileGuard>, rest: Rest, cx: &ToolCx) {
        let (slot, guard, rest) = (self.slot(cx), Arc::clone(guard), Arc::new(rest));
        let (confined, scripts) = (Arc::clone(&self.confined), self.scripts(cx));
        tokio::spawn(async move {
            let mut looks = LOOKS;
            let mut lives = true;
            for turn in 1_u32.. {
                if looks == 0 || !lives {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
                // Before the last comparison.
                if turn.is_multiple_of(LIVES) {
                    let rest = Arc::clone(&rest);
                    lives = tokio::task::spawn_blocking(move || rest.lives()).await.unwrap_or(true);
                }
                let mut slot = slot.lock().await;
                if !slot.guard.as_ref().is_some_and(|own| Arc::ptr_eq(own, &guard)) {
                    // The next command has compared them, or the session is over.
                    return;
                }
                // What a script of the agent writes is judged at its end.
                if scripts.load(Ordering::Acquire) > 0 || !guard.has_news() {
                    continue;
                }
                // The end of the session compares what is in use here.
                lock(&confined).guards.push(Arc::clone(&guard));
                let compared = put_back(&guard).await;
                let guards = &mut lock(&confined).guards;
                if let Some(at) = guards.iter().rposition(|one| Arc::ptr_eq(one, &guard)) {
                    guards.swap_remove(at);
                }
                looks -= usize::from(compared.has_restored());
                slot.compared.extend(compared);
            }
        });
    }

    /// The number of scripts of this agent that run.
    fn scripts(&self, cx: &ToolCx) -> Arc<AtomicUsize> {
        Arc::clone(lock(&self.confined).scripts.entry(cx.agent.clone()).or_default())
    }

    /// Counts a script of this agent, until the result is dropped.
    pub(crate) fn script(&self, cx: &ToolCx) -> ScriptRuns {
        let scripts = self.scripts(cx);
        scripts.fetch_add(1, Ordering::AcqRel);
        ScriptRuns(scripts)
    }
}

/// A script that runs.
#[derive(Debug)]
pub(crate) struct ScriptRuns(Arc<AtomicUsize>);

impl Drop for ScriptRuns {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
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
