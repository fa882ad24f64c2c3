//! The state that the lists of this group share: the answers to changes, the row under the cursor, the way to the source of a row.

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, EntryId, Notice, NoticeKind, SessionId};

use crate::app::effect::{Effect, EntryAction, Navigation, Token};
use crate::dialog::picker::{Item, Outcome};

/// Token of the list, and of a change.
pub(super) const LIST: Token = Token(1);
pub(super) const CHANGE: Token = Token(2);

/// The effect of Enter where a row has a source.
pub(super) const TO_SOURCE: &str = "source";

/// The state of a list.
#[derive(Default)]
pub(super) struct ListState {
    /// The rows were read.
    pub(super) loaded: bool,
    /// The outcome of the last change, until it is shown.
    said: Option<String>,
    /// Id of the row under the cursor.
    at: Option<String>,
    /// Something was changed since the list was opened, so that there is something to undo.
    pub(super) changed: bool,
    /// The text that was sent last in place of another one, until it is taken: one that is refused is not lost.
    draft: Option<(String, String)>,
}

/// The meaning of an answer for the list.
pub(super) enum ListUpdate {
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
    pub(super) fn reply(&mut self, token: Token, reply: &ReplyEvent) -> Option<ListUpdate> {
        match reply {
            ReplyEvent::DoneReply { said } if token == CHANGE => {
                self.said = Some(said.clone());
                self.changed = true;
                self.draft = None;
                Some(ListUpdate::Again)
            }
            // The list may be old: the notice says why it was refused.
            ReplyEvent::ErrorReply { .. } => {
                self.loaded = true;
                Some(if token == CHANGE { ListUpdate::Again } else { ListUpdate::Stay })
            }
            _ => None,
        }
    }

    /// Returns what is edited in place of `old`, in one line: the text that was refused, else the old one.
    pub(super) fn editable(&self, old: &str) -> String {
        let draft = self.draft.as_ref().filter(|(of, _)| of == old).map(|(_, text)| text.as_str());
        draft.unwrap_or(old).replace('\n', " ")
    }

    /// The edited line with the line breaks of the old text, where it was not changed. `None`: nothing was changed.
    pub(super) fn edited(&mut self, old: &str, line: &str) -> Option<String> {
        let text = unflattened(old, line);
        if line.is_empty() || text == old {
            self.draft = None;
            return None;
        }
        self.draft = Some((old.to_owned(), text.clone()));
        Some(text)
    }

    /// Another row is under the cursor, or the rows were read. Says what the last change did.
    pub(super) fn hover(&mut self, item: Option<&Item>) -> Vec<Effect> {
        self.at = item.map(|item| item.id.clone());
        let said = self.said.take().map(|said| Effect::Toast(Notice::new(NoticeKind::Info, said)));
        said.into_iter().collect()
    }
}

/// A line that was made of `old` by putting blanks in place of line breaks, and then edited: with the line breaks before and
/// behind what was edited.
fn unflattened(old: &str, line: &str) -> String {
    let old: Vec<char> = old.trim().chars().collect();
    let line: Vec<char> = line.chars().collect();
    let same = |a: &char, b: &char| a == b || (*a == '\n' && *b == ' ');
    let head = old.iter().zip(&line).take_while(|(a, b)| same(a, b)).count();
    let rest = old.len().min(line.len()) - head;
    let tail = old.iter().rev().zip(line.iter().rev()).take(rest).take_while(|(a, b)| same(a, b)).count();
    let middle = line[head..line.len() - tail].iter();
    old[..head].iter().chain(middle).chain(&old[old.len() - tail..]).collect()
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
