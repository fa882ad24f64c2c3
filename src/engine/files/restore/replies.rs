//! Replies about files that the user changed by a command.

use crate::files::TakeOutcome;
use crate::files::restore::back;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::review::RejectConflict;
use tiller_snapshot::RestoreResult;

/// The reply about files taken from another branch.
pub(crate) fn reply(done: &RestoreResult, took: TakeOutcome) -> ReplyEvent {
    let n = done.done.len();
    let mut said = match n {
        0 => format!("Nothing was taken from {}", took.from),
        1 => format!("Taken from {}: {}", took.from, back::shown(&done.done[0])),
        _ => format!("Taken from {}: {n} files", took.from),
    };
    if let Some(first) = took.not.first() {
        said.push_str(&format!("; not taken: {} ({})", first.path, first.why));
    }
    if took.not.len() > 1 {
        said.push_str(&format!(" and {} more", took.not.len() - 1));
    }
    ReplyEvent::TakeReply { said, conflicts: took.not }
}

/// The reply about whole files that were restored, and those that were not.
pub(crate) fn whole_reply(done: &tiller_snapshot::RestoreResult) -> ReplyEvent {
    let shown = crate::files::restore::back::shown;
    ReplyEvent::RejectReply {
        rejected: u32::try_from(done.done.len()).unwrap_or(u32::MAX),
        conflicts: done
            .left
            .iter()
            .map(|l| RejectConflict { path: shown(&l.path), why: l.why.to_string() })
            .collect(),
    }
}
