//! What the person reads when files were changed at their command.

use crate::files::Took;
use crate::files::restore::back;
use tiller_protocol::event::ReplyEvent;
use tiller_snapshot::Restored;

/// What the person hears.
pub(crate) fn reply(done: &Restored, took: Took) -> ReplyEvent {
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

/// What went back as a whole, and what did not.
pub(crate) fn whole_reply(done: &tiller_snapshot::Restored) -> ReplyEvent {
    let shown = crate::files::restore::back::shown;
    ReplyEvent::RejectReply {
        rejected: u32::try_from(done.done.len()).unwrap_or(u32::MAX),
        conflicts: done.left.iter().map(|l| format!("{}: {}", shown(&l.path), l.why)).collect(),
    }
}
