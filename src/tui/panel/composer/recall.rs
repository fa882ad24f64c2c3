//! What comes back into the composer: waiting messages, earlier prompts, what was refused, what was put
//! aside. Nothing that was typed is ever thrown away, and nothing is in two places from which it could be
//! sent twice.

use tiller_protocol::command::{HistoryScope, Query, QueueCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{CommandBody, Message, QueueId, Queued, QueuedState};

use super::content::Content;
use super::{Composer, EARLIER, HISTORY, MENTIONS, TAKEN};
use crate::effect::{Effect, Token};
use crate::model::Model;
use crate::panel::Reply;

/// What others want of the composer ([`Effect::Tell`]).
pub enum Recall {
    /// Take this waiting message out of the queue and into the text.
    Take(QueueId),
    /// Keep this text among the earlier prompts.
    Keep(Message),
}

/// A message that is on its way back. Its text appears only when the engine has said that it waits no
/// more: until then it could still be sent.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    pub(super) id: QueueId,
    pub(super) message: Message,
    /// This process asked for it; otherwise an earlier one did, and nobody knows how that ended.
    pub(super) asked: bool,
}

/// Messages that have not gone out yet, next one first.
pub(crate) fn waiting(model: &Model) -> impl DoubleEndedIterator<Item = &Queued> {
    model.queue.iter().filter(|q| q.state != QueuedState::Delivered)
}

impl Composer {
    pub(super) fn up(&mut self, model: &Model) -> Reply {
        if let Some(p) = &mut self.popup {
            p.step(false);
            return Reply::done();
        }
        let now = self.content.message();
        if !self.history.walking(&now) && self.vertical(false) {
            return Reply::done();
        }
        if self.content.is_blank()
            && let Some(q) = waiting(model).next_back()
        {
            return self.take_back(q.id, model);
        }
        if !self.asked_history {
            self.asked_history = true;
            let query =
                Query::History { scope: HistoryScope::Project, filter: String::new(), limit: HISTORY };
            return Reply::with(Effect::Ask(CommandBody::Query(query), EARLIER));
        }
        if let Some(m) = self.history.older(now) {
            self.content = Content::of(&m);
            self.changed();
        }
        Reply::done()
    }

    pub(super) fn down(&mut self) -> Reply {
        if let Some(p) = &mut self.popup {
            p.step(true);
            return Reply::done();
        }
        let now = self.content.message();
        if !self.history.walking(&now) && self.vertical(true) {
            return Reply::done();
        }
        match self.history.newer() {
            Some(m) => {
                self.content = Content::of(&m);
                self.changed();
                Reply::done()
            }
            None => Reply::Ignored,
        }
    }

    fn vertical(&mut self, down: bool) -> bool {
        let labels = self.content.labels();
        self.content.edit.vertical(down, self.width.max(1), &|c| labels.get(c))
    }

    pub(super) fn put_aside(&mut self) -> Reply {
        let now = self.content.message();
        let back = self.aside.take();
        if !now.text.trim().is_empty() {
            self.aside = Some(now);
        }
        self.content = back.as_ref().map(Content::of).unwrap_or_default();
        self.popup = None;
        self.changed();
        Reply::done()
    }

    /// Asks for a waiting message back.
    pub(super) fn take_back(&mut self, id: QueueId, model: &Model) -> Reply {
        let Some(q) = waiting(model).find(|q| q.id == id) else { return Reply::done() };
        if self.taking.is_some() {
            return Reply::done();
        }
        self.taking = Some(Taking { id, message: q.message.clone(), asked: true });
        self.changed();
        Reply::with(Effect::Ask(CommandBody::Queue(QueueCommand::Remove { id }), TAKEN))
    }

    /// The queue after our asking: without the message it is ours.
    pub(super) fn taken(&mut self, queue: &[Queued]) {
        if let Some(t) = self.taking.take_if(|t| !queue.iter().any(|q| q.id == t.id)) {
            self.bring_back(t.message);
        }
    }

    /// The whole state came: after a gap in the events, or at the start. A message that an earlier
    /// process was taking back, and that still waits, was not taken.
    pub(super) fn whole_state(&mut self, model: &Model) {
        self.taken(&model.queue);
        if self.taking.take_if(|t| !t.asked).is_some() {
            self.changed();
        }
    }

    /// Into the text; when something was typed since, it is put aside or kept among the earlier prompts.
    fn bring_back(&mut self, message: Message) {
        if self.content.is_blank() {
            self.content = Content::of(&message);
        } else if self.aside.is_none() {
            self.aside = Some(message);
        } else {
            self.history.push(message);
        }
        self.changed();
    }

    pub(super) fn answered(&mut self, token: Token, reply: &ReplyEvent, model: &Model) -> Reply {
        match (token, reply) {
            (MENTIONS, ReplyEvent::MentionsReply { text, mentions }) => {
                // Written out by hand it is as good as chosen.
                if mentions.iter().any(|m| m.name == *text) {
                    self.content.mention(text);
                }
                if let Some(p) = &mut self.popup {
                    p.found(text, mentions);
                }
            }
            (EARLIER, ReplyEvent::HistoryReply { prompts }) => {
                self.history.fill(prompts.iter().rev().cloned().collect());
                if self.content.is_blank() {
                    return self.up(model);
                }
            }
            (TAKEN, ReplyEvent::ErrorReply { notice }) => {
                // It has gone out: it stands in the conversation.
                self.taking = None;
                self.changed();
                self.notice = Some(notice.message.clone());
            }
            (sent, ReplyEvent::ErrorReply { notice }) => {
                let Some(i) = self.sent.iter().position(|(t, _)| *t == sent) else { return Reply::Ignored };
                if let Some((_, message)) = self.sent.remove(i) {
                    self.bring_back(message);
                    self.notice = Some(notice.message.clone());
                }
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }
}
