//! Runs a command of the user's on the files of each side. Each runs in a folder of its own, one after the other, so
//! that neither slows the other down; the folders are removed afterwards.

use crate::files::written;
use crate::prompts::msg::PromptMsg;
use crate::tool_call::calls;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::PermissionOutcome;
use tiller_protocol::compare::{Pair, SideRun};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tool::Display;
use tiller_protocol::view::{AuditOutcome, AuditRow};
use tiller_protocol::{CommandId, Notice, NoticeKind, ToolOutcome};
use tiller_tool::shell::run_line;
use tiller_tool::state::ToolState;
use tiller_tool::{CommandProfile, CommandRun, ToolCx, Workspace};

use super::look::{self, SideEnd};
use super::scratch::{Scratch, ScratchLimits, lay_out};
use crate::bus::ClientId;
use crate::core::Core;
use crate::files::{off, off_thread, unknown};
use crate::prompts::msg::RunningLine;
use crate::tool_call::{AUDIT_TEXT, cut, failed, text_of};

/// Characters of the end of an output.
const TAIL: usize = 8_000;
/// Age of a scratch folder that was left by a killed process and is removed.
const OLD: Duration = Duration::from_secs(24 * 3600);
/// The id for stopping it.
pub(crate) const LINE: &str = "compare";

pub(crate) fn run_both(core: &mut Core, client: ClientId, cause: CommandId, pair: Pair, line: String) {
    let off_limits = core.services.tool("terminal").is_none();
    let why = if off_limits {
        Some("commands are turned off")
    } else if core.session.read_only {
        Some("this session is open read-only")
    } else if line.trim().is_empty() {
        Some("the command is empty")
    } else if core.prompts.lines.contains_key(LINE) {
        Some("a command is already running on both sides: stop it first")
    } else {
        None
    };
    if let Some(why) = why {
        return core.refuse(client, cause, Notice::new(NoticeKind::User, why));
    }
    let Some(keeper) = core.services.snapshots.workspace.clone() else {
        return core.refuse(client, cause, off());
    };
    let (cx, live) = calls::tool_cx(core, LINE, None);
    let running = RunningLine { line: line.clone(), cancel: cx.cancel.clone(), hard: cx.hard.clone() };
    core.prompts.lines.insert(LINE.into(), running);
    let (store, session, services) =
        (core.services.store.clone(), core.session.id, Arc::clone(&core.services));
    let folder = core.services.places.cache.join("compare");
    let name = format!("{}-{}", std::process::id(), cause.0);
    let (bus, scope, tx) = (Arc::clone(&core.bus), core.scope_of(Some(cause)), core.tx.clone());
    let written = written::written(core);
    core.spawn(async move {
        written.await;
        // The output is shown when both are done.
        drop(live);
        let made = async {
            let at = folder.clone();
            let ends = off_thread(move || {
                sweep(&at);
                look::ends(&store, session, &pair)
            })
            .await?;
            let mut ran = Vec::new();
            for (n, end) in [&ends.left, &ends.right].into_iter().enumerate() {
                let state = end.state.ok_or_else(unknown)?;
                let scratch = Scratch::new(folder.join(format!("{name}-{n}"))).map_err(|e| no_room(&e))?;
                lay_out(&keeper, state, scratch.path(), ScratchLimits::default()).await?;
                let began = services.clock.mono();
                let run = side(&cx, &scratch, end, &line, || services.since(began)).await?;
                // Removing many files takes time.
                let _ = tokio::task::spawn_blocking(move || drop(scratch)).await;
                ran.push(run);
            }
            let (Some(right), Some(left)) = (ran.pop(), ran.pop()) else { return Err(unknown()) };
            Ok((left, right))
        };
        let result = made.await;
        let audit = AuditRow {
            time: services.clock.now(),
            session,
            agent: "you".into(),
            tool: LINE.into(),
            what: cut(&(services.redaction.redact)(&line), AUDIT_TEXT),
            decision: PermissionOutcome::Allowed,
            by: "your own command".into(),
            seconds: result.as_ref().map_or(0.0, |(a, b)| a.seconds + b.seconds),
            outcome: if result.is_ok() { AuditOutcome::Ok } else { AuditOutcome::Error },
        };
        // The engine may have ended.
        let _ = tx.send(crate::core::msg::Msg::Prompt(PromptMsg::RanOnBoth(Box::new(audit)))).await;
        let reply = match result {
            Ok((mut left, mut right)) => {
                for side in [&mut left, &mut right] {
                    side.tail = (services.redaction.redact)(&side.tail);
                }
                let notes = vec!["ignored files (build folders, dependencies) were not copied".to_owned()];
                ReplyEvent::CompareRunReply { line: (services.redaction.redact)(&line), left, right, notes }
            }
            Err(notice) => ReplyEvent::ErrorReply { notice },
        };
        bus.reply(client, &scope, reply);
    });
}

/// Both runs have ended.
pub(crate) fn ran_both(core: &mut Core, audit: AuditRow) {
    core.prompts.lines.remove(LINE);
    let after = crate::core::saves::After { events: Vec::new(), then: crate::core::saves::Then::Nothing };
    core.saves.push(core.services.store.audit().record(audit), after);
}

fn no_room(error: &std::io::Error) -> Notice {
    Notice::new(NoticeKind::Internal, format!("a folder for the files could not be created: {error}"))
}

/// Removes what a process that was killed left.
fn sweep(folder: &PathBuf) {
    let Ok(all) = std::fs::read_dir(folder) else { return };
    for entry in all.flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            // A folder that cannot be removed is tried again the next time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs the command in one folder, in a shell of its own.
async fn side(
    cx: &ToolCx,
    scratch: &Scratch,
    end: &SideEnd,
    line: &str,
    seconds: impl Fn() -> f64,
) -> Result<SideRun, Notice> {
    let workspace = Workspace::new(scratch.path()).map_err(|e| no_room(&e))?;
    let state = Arc::new(ToolState::default());
    let run = Arc::new(CommandRun::new(CommandProfile::Person));
    let cx = ToolCx { workspace: Arc::new(workspace), state: Arc::clone(&state), run, ..cx.clone() };
    let (text, exit, outcome) = match run_line(&cx, line).await {
        Ok(out) => {
            let exit = if let Some(Display::Output { exit, .. }) = &out.display { *exit } else { None };
            (text_of(&out.content), exit, out.outcome)
        }
        Err(error) => {
            let failed = failed(error);
            (text_of(&failed.content), None, failed.outcome)
        }
    };
    let seconds = seconds();
    crate::watching::end_children(state).await;
    let from = text.char_indices().rev().nth(TAIL - 1).map_or(0, |(at, _)| at);
    let outcome = if cx.cancel.is_cancelled() { ToolOutcome::Interrupted } else { outcome };
    Ok(SideRun { name: end.name.clone(), outcome, exit, seconds, tail: text[from..].to_owned() })
}
