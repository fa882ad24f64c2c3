//! Commands in the shell of an agent: starting it, going to the folder of a call, running, and what is left running.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::lock;

use super::{FinishedCommand, PooledShell, ShellPool};
use crate::shell::backend::{Backend, CommandEnd, Line, Shell, ShellError, Sink, Start};
use crate::shell::local::{Local, env_update};
use crate::shell::processes::launch::{Compared, Confiner, FileGuard};
use crate::shell::processes::{end, environment};
use crate::shell::protected::put_back;
use crate::{CommandProfile, ToolCx};

/// The shells of an agent while a command uses them. When the command is dropped before its end they are given up: the next
/// command would get its result.
struct ShellsInUse<'a> {
    pool: &'a ShellPool,
    slot: tokio::sync::MutexGuard<'a, PooledShell>,
    /// The protected files before the command, until they were compared.
    guard: Option<Arc<dyn FileGuard>>,
    /// No command runs in them.
    ended: bool,
}

impl Drop for ShellsInUse<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.pool.close_reader(&mut self.slot);
            if let Some(shell) = self.slot.shell.take() {
                let root = shell.root();
                drop(shell);
                root.into_iter().for_each(|root| self.pool.forget(root));
            }
        }
        // The next command compares them, or the end of the session.
        self.slot.guard = self.guard.take().or_else(|| self.slot.guard.take());
        if let Some(guard) = self.slot.guard.take_if(|_| self.pool.check_open().is_err()) {
            // The session has ended meanwhile.
            let _ = std::thread::Builder::new().spawn(move || guard.restore());
        }
    }
}

impl ShellPool {
    /// Tells a shell that runs what another screen has brought.
    pub(crate) async fn refresh(slot: &mut PooledShell, cx: &ToolCx) {
        let old = slot.env.replace(Arc::clone(&cx.child_env));
        // The other side has its own environment.
        if cx.workspace.terminal().is_some() {
            return;
        }
        let same = old.as_ref().is_none_or(|old| Arc::ptr_eq(old, &cx.child_env));
        let line = old.filter(|_| !same).and_then(|old| env_update::change(&old, &cx.child_env));
        if let (Some(line), Some(shell)) = (line, slot.shell.as_mut()) {
            // A shell that has died is found by the command that comes next.
            let _ = shell.whisper(&line).await;
        }
    }

    /// Runs a command in the agent's shell, or in one beside it where the call's profile is not the shell's. Commands of
    /// one agent wait for each other.
    ///
    /// # Errors
    /// When no shell can be started. Nothing has run then.
    pub(crate) async fn run(
        &self,
        command: &str,
        folder: Option<PathBuf>,
        limit: Duration,
        sink: &mut Sink,
        cx: &ToolCx,
    ) -> Result<FinishedCommand, ShellError> {
        let slot = self.slot(cx);
        let slot = slot.lock().await;
        self.check_open()?;
        let mut used = ShellsInUse { pool: self, slot, guard: None, ended: true };
        let beside = match cx.run.profile {
            CommandProfile::Person | CommandProfile::Workspace => false,
            CommandProfile::Read => cx.confiner().is_some(),
            // A shell that is not confined is outside already.
            CommandProfile::Outside => cx.workspace.confines(CommandProfile::Workspace),
        };
        let mut restored = std::mem::take(&mut used.slot.compared);
        if let Some(old) = used.slot.guard.clone() {
            // What the last command left may have written since.
            restored.extend(put_back(&old).await);
            used.slot.guard = None;
        }
        used.guard = match self.guard(cx.confiner().cloned(), cx).await {
            Ok(guard) => guard,
            Err(error) => {
                // For the next command.
                used.slot.compared = restored;
                return Err(error);
            }
        };
        let line = Line {
            command,
            variables: cx.variables(),
            compared: used.guard.is_some(),
            until: std::time::Instant::now() + limit,
            grace: cx.limits.grace,
            cancel: &cx.cancel,
            hard: &cx.hard,
        };
        used.ended = false;
        let slot = &mut *used.slot;
        let ran = if beside {
            self.run_beside(slot, line, folder, sink, cx).await
        } else {
            self.run_own(slot, line, folder, sink, cx).await
        };
        used.ended = true;
        let guard = used.guard.clone();
        if let Some(guard) = &guard {
            restored.extend(put_back(guard).await);
            cx.witness.remade(&restored.remade);
            used.guard = None;
        }
        let mut ran = match ran {
            Ok(ran) => FinishedCommand { restored, ..ran },
            Err(error) => {
                used.slot.compared = restored;
                return Err(error);
            }
        };
        if let (Some(guard), Some(rest)) = (guard, ran.ended.lives_on.take()) {
            if ran.left.is_some() {
                self.watched(Arc::clone(&guard));
            }
            self.guard_rest(&guard, rest, cx);
            used.slot.guard = Some(guard);
        }
        Ok(ran)
    }

    /// Runs it in the agent's shell.
    async fn run_own(
        &self,
        slot: &mut PooledShell,
        line: Line<'_>,
        folder: Option<PathBuf>,
        sink: &mut Sink,
        cx: &ToolCx,
    ) -> Result<FinishedCommand, ShellError> {
        self.close_reader(slot);
        let before = self.folder(cx);
        if slot.shell.is_none() {
            self.open(slot, &before, cx).await?;
        }
        Self::refresh(slot, cx).await;
        if let Some(folder) = &folder {
            self.visit(slot, folder, &before, cx).await?;
        }
        let command = line.command;
        let Some(shell) = slot.shell.as_mut() else { return Err(ShellError::Missing) };
        let mut ended = shell.run(line, sink, cx).await?;
        let left = ended.leftover.take().map(|left| self.leave(left, command, cx));
        if let Some(exports) = ended.exports.take() {
            slot.exports = exports;
        }
        if let Some(state) = ended.state.take() {
            lock(&self.states).insert(cx.agent.clone(), state);
        }
        let alive = ended.how == CommandEnd::Done;
        let mut now = ended.folder.clone().unwrap_or_else(|| before.clone());
        if folder.is_some() {
            // For this call only: go back, so that the next command finds the folder that it knows.
            now = before.clone();
            if alive && let Some(shell) = slot.shell.as_mut() {
                let _ = shell.enter(&before).await;
            }
        }
        if !alive {
            if let Some(root) = slot.shell.as_ref().and_then(|s| s.root()) {
                self.forget(root);
            }
            slot.shell = None;
        }
        if left.is_some() || !alive {
            self.sweep();
        }
        let moved = (now != before).then(|| now.clone());
        self.moved_to(now, cx);
        Ok(FinishedCommand { ended, moved, left, restored: Compared::default() })
    }

    async fn open(
        &self,
        slot: &mut PooledShell,
        before: &std::path::Path,
        cx: &ToolCx,
    ) -> Result<(), ShellError> {
        let there = cx.workspace.terminal().is_some();
        let folder = if there || before.is_dir() { before.to_owned() } else { cx.workspace.root.clone() };
        let confiner = cx.confiner().cloned();
        slot.shell = Some(self.start(folder, slot.exports.clone(), confiner, cx).await?);
        Ok(())
    }

    /// Starts a shell with these exports. `confiner`: confines it.
    pub(crate) async fn start(
        &self,
        folder: PathBuf,
        exports: Vec<u8>,
        confiner: Option<Arc<dyn Confiner>>,
        cx: &ToolCx,
    ) -> Result<Box<dyn Shell>, ShellError> {
        let start = Start {
            folder,
            workspace: cx.workspace.root.clone(),
            exports,
            env: environment::environment(&cx.child_env),
            marker: self.fresh_marker(),
            confiner,
        };
        self.prepare(&environment::outside(&cx.child_env, &cx.workspace.root));
        let mut shell = match cx.workspace.terminal() {
            Some(place) => {
                self.uses(place);
                place.open(Start { env: Vec::new(), confiner: None, ..start }).await?
            }
            None => Local { sandbox: Arc::clone(&self.sandbox) }.open(start).await?,
        };
        if let Some(root) = shell.root() {
            self.adopt(root);
        }
        lock(&self.pipes).extend(shell.pipes());
        // A shutdown between the check and here has not seen this shell.
        if let Err(e) = self.check_open() {
            end::kill_now(&self.everything());
            if cx.workspace.terminal().is_some() {
                shell.close().await;
            }
            return Err(e);
        }
        Ok(shell)
    }

    /// Goes to the folder of one call.
    async fn visit(
        &self,
        slot: &mut PooledShell,
        folder: &std::path::Path,
        before: &std::path::Path,
        cx: &ToolCx,
    ) -> Result<(), ShellError> {
        if let Some(shell) = slot.shell.as_mut()
            && shell.enter(folder).await?
        {
            return Ok(());
        }
        // The shell died meanwhile, or the folder went: a fresh shell gives the clearer error.
        slot.shell = None;
        self.open(slot, before, cx).await?;
        if let Some(shell) = slot.shell.as_mut()
            && shell.enter(folder).await?
        {
            return Ok(());
        }
        Err(ShellError::system("the folder cannot be entered")(std::io::ErrorKind::NotFound.into()))
    }
}
