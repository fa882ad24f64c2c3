//! Commands that run in another profile of the sandbox than the agent's shell: in a shell of their own.
//!
//! Those that only read run in a confined shell with the folder and the variables of the agent's shell. It is kept until
//! another command changes the agent's shell, so that several commands in a row start one. What it changes itself is lost
//! then, except for its folder.
//!
//! Those that run outside the sandbox have a fresh shell each, in the folder of the agent's shell. They take over none of
//! its variables and functions: what ran in the sandbox could have set them, so that other programs would run outside.

use std::path::PathBuf;
use std::sync::Arc;

use super::backend::{CommandEnd, Line, ShellError, Sink};
use super::local::quote;
use crate::shell::Compared;
use crate::shell::pool::{FinishedCommand, PooledShell, Reader, ShellPool};
use crate::{CommandProfile, ToolCx};

/// The longest listing of variables and functions that is taken over, in bytes.
const LISTING: u64 = 4 << 20;

impl ShellPool {
    /// Runs a command in a shell beside the agent's, confined as the call says.
    pub(crate) async fn run_beside(
        &self,
        slot: &mut PooledShell,
        line: Line<'_>,
        folder: Option<PathBuf>,
        sink: &mut Sink,
        cx: &ToolCx,
    ) -> Result<FinishedCommand, ShellError> {
        Self::refresh(slot, cx).await;
        let before = self.folder(cx);
        let reads = cx.run.profile == CommandProfile::Read;
        if !reads || slot.reader.as_ref().is_some_and(|reader| !Arc::ptr_eq(&reader.env, &cx.child_env)) {
            self.close_reader(slot);
        }
        if slot.reader.is_none() {
            let folder = if before.is_dir() { before.clone() } else { cx.workspace.root.clone() };
            let exports = if reads { listing(slot).await } else { Vec::new() };
            let shell = self.start(folder, exports, cx.confiner().cloned(), cx).await?;
            slot.reader = Some(Reader { shell, env: Arc::clone(&cx.child_env) });
        }
        let Some(own) = slot.reader.as_mut() else { return Err(ShellError::Missing) };
        if let Some(folder) = &folder
            && !own.shell.enter(folder).await?
        {
            self.close_reader(slot);
            return Err(ShellError::system("the folder cannot be entered")(
                std::io::ErrorKind::NotFound.into(),
            ));
        }
        let command = line.command;
        let mut ended = own.shell.run(line, sink, cx).await?;
        let left = ended.leftover.take().map(|left| self.leave(left, command, cx));
        let alive = ended.how == CommandEnd::Done;
        let mut now = ended.folder.clone().unwrap_or_else(|| before.clone());
        if folder.is_some() {
            now.clone_from(&before);
            if alive {
                let _ = own.shell.enter(&before).await;
            }
        }
        if !alive || !reads {
            self.close_reader(slot);
        }
        let moved = (now != before).then(|| now.clone());
        if let (Some(now), Some(shell)) = (&moved, slot.shell.as_mut()) {
            // A shell that has died is found by the command that comes next.
            let _ = shell.enter(now).await;
        }
        if left.is_some() || !alive {
            self.sweep();
        }
        self.moved_to(now, cx);
        Ok(FinishedCommand { ended, moved, left, restored: Compared::default() })
    }

    /// Ends the shell beside an agent's.
    pub(crate) fn close_reader(&self, slot: &mut PooledShell) {
        if let Some(reader) = slot.reader.take()
            && let Some(root) = reader.shell.root()
        {
            // It ends when its control pipe closes.
            drop(reader);
            self.forget(root);
        }
    }
}

/// Code that gives another shell the variables, functions and options of the agent's shell. Without a shell, or in one
/// that cannot list them, the exported variables.
async fn listing(slot: &mut PooledShell) -> Vec<u8> {
    let exports = slot.exports.clone();
    let Some(shell) = slot.shell.as_mut() else { return exports };
    let Some(path) = shell.pipes().map(|folder| folder.join("listing")) else { return exports };
    let file = quote(&path.display().to_string());
    let list = format!("[ -n \"$BASH_VERSION\" ] && {{ declare -p; declare -f; shopt -p; set +o; }} >{file}");
    let listed = shell.whisper(&list).await;
    let small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= LISTING);
    let code = if small { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
    let _ = std::fs::remove_file(&path);
    if matches!(listed, Ok(true)) && !code.is_empty() { code } else { exports }
}
