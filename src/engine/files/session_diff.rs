//! What the calls of a session changed, as a diff for the user.

use std::collections::HashSet;
use std::fmt::Write as _;

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandId, EntryBody, SessionId};
use tiller_snapshot::{Id, Shadow, TextChange};
use tiller_store::{StepRow, Store, StoreError};

use crate::bus::ClientId;
use crate::core::Core;
use crate::files::{Keeper, written};
use crate::session::load;

/// Most entries of a session that are read.
const ENTRIES: u32 = 20_000;
/// Most bytes of a diff.
const SHOWN: usize = 1 << 20;

/// What one call changed.
enum Part {
    /// As the tool reported it.
    Told(String),
    /// Of a command: the difference between two states of the files.
    Between { name: String, step: Box<StepRow> },
}

/// Replies with what the calls of a session changed, file by file, as far as it is known. `path`: the name of the diff.
pub(crate) fn reply_diff(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    path: String,
    session: SessionId,
) {
    let (store, keeper) = (core.services.store.clone(), core.services.snapshots.workspace.clone());
    let (bus, scope) = (std::sync::Arc::clone(&core.bus), core.scope_of(Some(cause)));
    let redact = std::sync::Arc::clone(&core.services.redaction.redact);
    let written = written::written(core);
    core.spawn(async move {
        // What the last calls changed is stored after they have ended.
        written.await;
        let reply = match load::blocking(move || parts(&store, session)).await {
            Ok(parts) => ReplyEvent::DiffReply { path, diff: redact(&words(parts, keeper).await) },
            Err(error) => ReplyEvent::ErrorReply { notice: error.notice() },
        };
        bus.reply(client, &scope, reply);
    });
}

/// The changes of a session's calls, in order.
fn parts(store: &Store, session: SessionId) -> Result<Vec<Part>, StoreError> {
    let row = store.sessions().get(session)?;
    let tail = store.paths().tail(session, &row.head, ENTRIES)?;
    let mut out = Vec::new();
    // Scripts whose calls have told of their files.
    let mut told: HashSet<&str> = HashSet::new();
    for entry in &tail.entries {
        let files = entry.body.files();
        match &entry.body {
            EntryBody::ToolResult { .. } | EntryBody::InnerCall { .. } if !files.is_empty() => {
                out.extend(files.into_iter().map(|f| Part::Told(format!("# {}\n{}", f.path, f.diff))));
                if let EntryBody::InnerCall { of, .. } = &entry.body {
                    told.insert(of);
                }
            }
            EntryBody::ToolResult { call_id, name, .. } if !told.contains(call_id.as_str()) => {
                let step = store.steps().of_call(session, call_id, entry.time)?;
                let step = step.filter(|s| !s.files.is_empty());
                out.extend(step.map(|step| Part::Between { name: name.clone(), step: Box::new(step) }));
            }
            _ => {}
        }
    }
    Ok(out)
}

async fn words(parts: Vec<Part>, keeper: Option<Keeper>) -> String {
    let mut out: Vec<String> = Vec::new();
    for part in parts {
        if out.iter().map(String::len).sum::<usize>() > SHOWN {
            out.push("# shortened; its conversation has the full diff\n".into());
            break;
        }
        out.push(match part {
            Part::Told(text) => text,
            Part::Between { name, step } => between(&name, *step, keeper.as_ref()).await,
        });
    }
    if out.is_empty() { "It changed no files.\n".into() } else { out.join("\n") }
}

/// The difference between two states; the names of the files when the states are no longer kept.
async fn between(name: &str, step: StepRow, keeper: Option<&Keeper>) -> String {
    let names: Vec<&str> = step.files.iter().map(|f| f.path.as_str()).collect();
    let names = format!("# changed by {name}: {}\n", names.join(", "));
    let ids = step.before.as_deref().and_then(|b| Some((b.parse().ok()?, step.after.parse().ok()?)));
    let (Some(keeper), Some((before, after))) = (keeper, ids) else { return names };
    let read = keeper.run(move |s| texts(s, before, after)).await;
    match read {
        Ok(text) if !text.is_empty() => text,
        _ => names,
    }
}

fn texts(shadow: &mut Shadow, before: Id, after: Id) -> Result<String, tiller_snapshot::SnapshotError> {
    let mut out = String::new();
    for file in shadow.compare(before, after)? {
        if out.len() > SHOWN {
            break;
        }
        let path = crate::files::restore::back::shown(&file.path);
        let text = match shadow.text(&file)? {
            TextChange::Lines { diff, .. } => diff,
            TextChange::Binary { before, after } => format!("(no text: {before} bytes became {after})\n"),
        };
        let _ = writeln!(out, "# {path}\n{text}");
    }
    Ok(out)
}
