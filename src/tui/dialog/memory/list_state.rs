//! What the lists of this group share: the answers to changes, the row under the cursor, the way to the source of a row.

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, EntryId, Notice, NoticeKind, SessionId};

use crate::app::effect::{Effect, EntryAction, Navigation, Token};
use crate::dialog::picker::{Item, Outcome};

/// Token of the list, and of a change.
pub(super) const LIST: Token = Token(1);
pub(super) const CHANGE: Token = Token(2);

/// What Enter does where a row has a source.
pub(super) const TO_SOURCE: &str = "go to source";

/// The state of a list.
#[derive(Default)]
pub(super) struct ListState {
    /// The rows were read.
    pub(super) loaded: bool,
    /// What the last change did, until it is shown.
    said: Option<String>,
    /// Id of the row under the cursor.
    at: Option<String>,
}

/// What an answer means for the list.
pub(super) enum Answered {
    /// The rows are read again.
    Again,
    /// They stay.
    Stay,
}

impl ListState {
    /// With rows, for the tests that visit all dialogs.
    pub(super) fn loaded() -> Self {
        Self { loaded: true, ..Self::default() }
    }

    /// The row under the cursor, by its id.
    pub(super) fn at(&self) -> Option<&str> {
        self.at.as_deref()
    }

    /// Takes an answer that is no list of rows; `None`: it is not for this list.
    pub(super) fn reply(&mut self, token: Token, reply: &ReplyEvent) -> Option<Answered> {
        match reply {
            ReplyEvent::DoneReply { said } if token == CHANGE => {
                self.said = Some(said.clone());
                Some(Answered::Again)
            }
            // The list may be old: the notice says why it was refused.
            ReplyEvent::ErrorReply { .. } => {
                self.loaded = true;
                Some(if token == CHANGE { Answered::Again } else { Answered::Stay })
            }
            _ => None,
        }
    }

    /// Another row is under the cursor, or the rows were read. Says what the last change did.
    pub(super) fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.at = item.map(|item| item.id.clone());
        let said = self.said.take().map(|said| Effect::Toast(Notice::new(NoticeKind::Info, said)));
        said.into_iter().collect()
    }
}

/// Sends a change, whose answer comes with [`CHANGE`].
pub(super) fn send(body: CommandBody) -> Outcome {
    Outcome::Stay { effects: vec![Effect::ask(body, CHANGE)], reload: false }
}

/// Says something short.
pub(super) fn toast(words: &str) -> Outcome {
    let notice = Notice::new(NoticeKind::Info, words);
    Outcome::Stay { effects: vec![Effect::Toast(notice)], reload: false }
}

/// Goes to the message that a row comes from, or says why there is none.
pub(super) fn visit(source: Option<(SessionId, EntryId)>, none: &str) -> Outcome {
    match source {
        Some((session, entry)) => {
            let to = Navigation::Entry { session, entry, then: EntryAction::Show };
            Outcome::Close(vec![Effect::Navigate(to)])
        }
        None => toast(none),
    }
}
