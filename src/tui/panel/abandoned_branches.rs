//! Abandoned branches of a session, from the log of operations, with their text.

use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::op::OpChange;
use tiller_protocol::{CommandBody, Entry, EntryBody, EntryId, Origin, Time};

use crate::app::effect::{Effect, Token};

/// Operations looked at, branches listed, entries of each that are read.
const OPS: u32 = 200;
const MOST: usize = 20;
const ENTRIES: u32 = 100;

const LIST: Token = Token(1);
/// The words of branch `n` come as `WORDS + n`.
const WORDS: u64 = 100;

/// A branch that the session has left.
#[derive(Debug)]
pub(super) struct AbandonedBranch {
    /// Its last entry.
    pub(super) tip: EntryId,
    /// The entry after which the path went another way.
    pub(super) from: Option<EntryId>,
    /// When it was left.
    pub(super) time: Time,
    /// Its text, once it has arrived.
    pub(super) text: String,
}

impl AbandonedBranch {
    /// The first line of it.
    pub(super) fn words(&self) -> &str {
        self.text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("another branch")
    }
}

/// Asks for the operations.
pub(super) fn ask() -> Vec<Effect> {
    vec![Effect::ask(CommandBody::Query(Query::Ops { limit: OPS }), LIST)]
}

/// Takes an answer; returns the next requests.
pub(super) fn answered(list: &mut Vec<AbandonedBranch>, token: Token, reply: &ReplyEvent) -> Vec<Effect> {
    match (token, reply) {
        (LIST, ReplyEvent::OpsReply { ops, .. }) => {
            list.clear();
            // The newest stands first.
            for op in ops {
                let OpChange::Head { before: Some(tip), after, .. } = &op.change else { continue };
                if list.len() < MOST && !list.iter().any(|l| l.tip == *tip) && Some(*tip) != *after {
                    list.push(AbandonedBranch {
                        tip: *tip,
                        from: *after,
                        time: op.time,
                        text: String::new(),
                    });
                }
            }
            let page = |(n, l): (usize, &AbandonedBranch)| {
                let query = Query::Page { before: l.tip, count: ENTRIES };
                Effect::ask(CommandBody::Query(query), Token(WORDS + n as u64))
            };
            list.iter().enumerate().map(page).collect()
        }
        (Token(n), ReplyEvent::PageReply { entries, .. }) if n >= WORDS => {
            if let Some(l) = list.get_mut((n - WORDS) as usize) {
                l.text = said(entries, l.from);
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// The text of the entries after `from`.
fn said(entries: &[Entry], from: Option<EntryId>) -> String {
    let start = from.and_then(|f| entries.iter().position(|e| e.id == f)).map_or(0, |i| i + 1);
    let words = |e: &Entry| match &e.body {
        EntryBody::User { origin: Origin::Engine, .. } => None,
        EntryBody::User { message, .. } => Some(format!("{}\n", message.text)),
        body @ EntryBody::Assistant { .. } => Some(format!("{}\n", body.search_text())),
        _ => None,
    };
    entries.iter().skip(start).filter_map(words).collect::<Vec<_>>().join("\n")
}
