//! Requests of other panels and the app to the composer.

use tiller_protocol::{Message, Notice, NoticeKind, QueueId};

use crate::app::effect::Effect;
use crate::panel::{Reply, View};

/// Requests to the composer ([`crate::app::effect::Effect::Tell`]).
pub enum ComposerRequest {
    /// Take this waiting message out of the queue and into the text.
    Take(QueueId),
    /// Keep this text among the earlier prompts.
    Keep(Message),
    /// Insert these words before the text.
    Prepend(String),
    /// Insert this at the caret.
    Insert(Message),
    /// Delete these words, which were typed last, from before the caret. Ignored when something else stands there.
    TakeBack(String),
    /// Replace the text, which is kept among the earlier prompts.
    Replace(Message),
    /// Send this message; when it is refused it comes back into the text.
    Send(Message),
}

/// Keeps text that a dialog loses because its question is closed, and tells the person where it is.
pub(crate) fn keep_unsent(text: Option<String>) -> Reply {
    let Some(text) = text else { return Reply::Ignored };
    let keep = ComposerRequest::Keep(Message::text(text));
    let said = "Your unsent text is in the composer's history";
    Reply::Done(vec![
        Effect::Tell(View::Composer, Box::new(keep)),
        Effect::Toast(Notice::new(NoticeKind::Info, said)),
    ])
}
