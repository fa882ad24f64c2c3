//! A command in the foreground under a pseudo-terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use crate::foreign::Connections;
use crate::shell::backend::{CommandEnd, ShellError};
use crate::shell::confined::{cause, held};
use crate::shell::outcome::CommandOutcome;
use crate::shell::output::capture::Capture;
use crate::shell::output::progress::Live;
use crate::shell::processes::end;
use crate::shell::protected::restored;
use crate::shell::{hints, terminal};
use crate::{ToolCx, ToolOutput};
use tiller_protocol::lock;

/// Runs it to its end, its limit, or the person's stop.
pub(crate) async fn run(
    command: &str,
    folder: Option<PathBuf>,
    limit: Duration,
    cx: &ToolCx,
) -> Result<ToolOutput, ShellError> {
    let pool = &cx.state.shells;
    let begun = Instant::now();
    let connections = Connections::now(cx);
    let folder = folder.unwrap_or_else(|| pool.folder(cx));
    let live = Arc::new(Live::of(command, cx));
    let job = pool.start_pty(command, &folder, Some(Arc::clone(&live)), cx).await?;
    let mut exit = job.exit.clone();
    let how = tokio::select! {
        biased;
        () = cx.hard.cancelled() => CommandEnd::Stopped,
        () = cx.cancel.cancelled() => CommandEnd::Stopped,
        _ = exit.wait_for(Option::is_some) => CommandEnd::Done,
        () = sleep_until((begun + limit).into()) => CommandEnd::TimedOut,
        // It does not end.
        () = live.send_when_due() => CommandEnd::Stopped,
    };
    let mut stuck = 0;
    let mut waited = false;
    if how != CommandEnd::Done {
        waited = how == CommandEnd::TimedOut && hints::someone_waits(&job.family.living());
        stuck = end::end(&job.family, cx.limits.grace, Some(&cx.hard)).await;
    }
    job.settle().await;
    let mut restored = restored(job.restored.clone()).await;
    cx.witness.remade(&restored.remade);
    job.family.roots.iter().for_each(|root| pool.forget(*root));
    let Some(screen) = job.screen() else { return Err(ShellError::Missing) };
    let text = lock(&screen).text();
    let mut capture = Capture::default();
    capture.push(text.as_bytes(), cx);
    let mut text = capture.finish(cx).masked(command, cx);
    if text.full.is_none()
        && let Ok(path) = lock(&job.output.log).source()
    {
        text.full = Some(path.display().to_string());
    }
    let exit = job.exit.borrow().filter(|_| how == CommandEnd::Done).map(|e| e.code);
    let refused = terminal::refusals(cx);
    let blocked = match exit {
        Some(0) => Vec::new(),
        _ => cause::find(cx, &text.model, &job.refusals(), &refused),
    };
    let took = begun.elapsed();
    if !restored.restored.is_empty() {
        cx.block();
    }
    held::settle(&mut restored, cx).await;
    let facts = CommandOutcome {
        refused,
        blocked,
        how,
        exit,
        took,
        limit,
        moved: None,
        left: None,
        waited: waited || how == CommandEnd::TimedOut && hints::prompt(&text.model),
        stuck,
        excess: job.guard.said(),
        note: None,
        restored,
        shell: false,
    };
    Ok(terminal::finish(text, connections.source(command, cx).as_deref(), &facts))
}
