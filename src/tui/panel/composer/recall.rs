//! Text that returns to the composer: queued messages, earlier prompts, refused messages, text that was put aside. No
//! typed text is ever lost, and none is in two places from which it could be sent twice.

use tiller_protocol::command::{HistoryScope, Query, QueueCommand};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::skill::SkillReply;
use tiller_protocol::{CommandBody, Message, Notice, NoticeKind, QueueId, Queued, QueuedState};

use super::content::Content;
use super::draft::Draft;
use super::popup::{Popup, PopupKind};
use super::{ARRIVED, COMMANDS, Composer, EARLIER, FLOWS, HISTORY, MENTIONS, PROMPTS, RECENT, SKILLS, TAKEN};
use crate::app::effect::{Effect, Token};
use crate::model::Model;
use crate::model::conversation::Body;
use crate::panel::Reply;

/// A queued message that was recalled. Its text appears only when the engine has confirmed that it left the queue:
/// until then it could still be sent.
#[derive(Clone, Debug)]
pub(super) struct MessageRecall {
    pub(super) id: QueueId,
    pub(super) message: Message,
    /// This process recalled it; otherwise an earlier process did, and the outcome is unknown.
    pub(super) asked: bool,
}

/// A sent message that the engine has not confirmed to be on disk. Until then it is kept with the draft.
#[derive(Clone, Debug)]
pub(super) struct UnconfirmedMessage {
    pub(super) token: Token,
    pub(super) message: Message,
    /// Its place in the queue, when it waits there.
    pub(super) queued: Option<QueueId>,
}

impl Composer {
    pub(super) fn up(&mut self, model: &Model) -> Reply {
        if self.recent.selected().is_some() {
            self.recent.step(false);
            return Reply::done();
        }
        if let Some(p) = &mut self.popup {
            p.step(false);
            return Reply::done();
        }
        let now = self.content.message();
        if !self.history.walking(&now) && self.vertical(false) {
            return Reply::done();
        }
        if self.content.is_blank()
            && let Some(q) = model.agent.waiting().next_back()
        {
            return self.take_back(q.id, model);
        }
        if !self.history.asked {
            self.history.asked = true;
            let query =
                Query::History { scope: HistoryScope::Project, filter: String::new(), limit: HISTORY };
            return Reply::with(Effect::ask(CommandBody::Query(query), EARLIER));
        }
        if let Some(m) = self.history.older(now) {
            self.content = Content::of(&m);
            self.changed();
        }
        Reply::done()
    }

    pub(super) fn down(&mut self, model: &Model) -> Reply {
        if self.recent.selected().is_some() {
            self.recent.step(true);
            return Reply::done();
        }
        if let Some(p) = &mut self.popup {
            p.step(true);
            return Reply::done();
        }
        let now = self.content.message();
        if !self.history.walking(&now) && self.vertical(true) {
            return Reply::done();
        }
        match self.history.newer(&now) {
            Some(m) => {
                self.content = Content::of(&m);
                self.changed();
                Reply::done()
            }
            None if self.content.is_blank() && self.recent.enter(model) => Reply::done(),
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

    /// Recalls a queued message.
    pub(super) fn take_back(&mut self, id: QueueId, model: &Model) -> Reply {
        let Some(q) = model.agent.waiting().find(|q| q.id == id) else { return Reply::done() };
        if self.outbox.taking.is_some() {
            return Reply::done();
        }
        self.outbox.taking = Some(MessageRecall { id, message: q.message.clone(), asked: true });
        self.changed();
        Reply::with(Effect::ask(CommandBody::Queue(QueueCommand::Remove { id }), TAKEN))
    }

    /// Takes the queue after a recall: the message is recalled once it is not in the queue.
    pub(super) fn taken(&mut self, queue: &[Queued]) {
        if let Some(t) = self.outbox.taking.take_if(|t| !queue.iter().any(|q| q.id == t.id)) {
            self.bring_back(t.message);
        }
    }

    /// Takes a snapshot: at the start, or after a gap in the events. A message that an earlier process was recalling,
    /// and that is still queued, was not recalled.
    pub(super) fn whole_state(&mut self, model: &Model) {
        self.taken(&model.agent.queue);
        // After a gap no event reports any more that it arrived.
        let last = model.agent.conversation.end().rev().find_map(|c| match &c.body {
            Body::User { text, .. } => Some(text.trim()),
            _ => None,
        });
        let there =
            |m: &Message| last == Some(m.text.trim()) || model.agent.queue.iter().any(|q| q.message == *m);
        self.outbox.sent.retain(|s| !there(&s.message));
        self.keep();
        self.sure(there);
        if self.outbox.taking.take_if(|t| !t.asked).is_some() {
            self.changed();
        }
    }

    /// Puts a message into the text; if something was typed since, it is put aside or kept in the history.
    fn bring_back(&mut self, message: Message) {
        if self.content.is_blank() {
            self.content = Content::of(&message);
        } else {
            self.lay_aside(message);
        }
        self.changed();
    }

    /// Takes over the draft of an earlier process. Whether the messages that it sent last are on disk is queried.
    pub(super) fn restore(&mut self, mut draft: Draft) -> Vec<Effect> {
        self.outbox.unsure = draft.unsent();
        self.content = Content::of(&draft.message);
        self.aside = draft.aside;
        draft.unsent.into_iter().for_each(|message| self.history.keep(message));
        self.outbox.taking = draft.taking.map(|(id, message)| MessageRecall { id, message, asked: false });
        if self.outbox.unsure.is_empty() {
            return Vec::new();
        }
        self.keep();
        let limit = HISTORY;
        let query = Query::History { scope: HistoryScope::Project, filter: String::new(), limit };
        vec![Effect::ask(CommandBody::Query(query), ARRIVED)]
    }

    /// The stored prompts came: what an earlier process sent may be among them.
    fn arrived(&mut self, prompts: &[String]) {
        if !self.sure(|m| prompts.iter().any(|p| p.trim() == m.text.trim())) && !self.outbox.unsure.is_empty()
        {
            self.notice =
                Some("Tiller ended before this message was confirmed as sent. Enter sends it.".into());
        }
    }

    /// Drops from the text what an earlier process sent and what arrived: it must not go out twice. (It stands in
    /// the conversation, in the queue or among the earlier prompts.)
    fn sure(&mut self, arrived: impl Fn(&Message) -> bool) -> bool {
        let sure = matches!(&self.outbox.unsure[..], [one] if arrived(one) && self.content.message() == *one);
        if sure {
            self.outbox.unsure.clear();
            self.content = Content::default();
            self.changed();
        }
        sure
    }

    /// The engine has the message of this token on disk.
    pub(super) fn stored(&mut self, token: Token) -> Reply {
        let before = self.outbox.sent.len();
        self.outbox.sent.retain(|s| s.token != token);
        if self.outbox.sent.len() < before {
            self.keep();
        }
        Reply::done()
    }

    /// The message of this token waits: which one it is. It is on disk when the queue says so.
    pub(super) fn waits(&mut self, token: Token, queue: &[Queued]) -> Reply {
        let known: Vec<QueueId> = self.outbox.sent.iter().filter_map(|s| s.queued).collect();
        let fresh = |q: &&Queued| q.state == QueuedState::Queued && !known.contains(&q.id);
        if let Some(sending) = self.outbox.sent.iter_mut().find(|s| s.token == token && s.queued.is_none()) {
            // As it was typed, or else (secrets are masked there) the latest.
            let same = queue.iter().filter(fresh).find(|q| q.message == sending.message);
            sending.queued = same.or_else(|| queue.iter().rfind(fresh)).map(|q| q.id);
        }
        self.queue(queue);
        Reply::done()
    }

    /// Takes the queue: its messages are on disk, or have gone out.
    pub(super) fn queue(&mut self, queue: &[Queued]) {
        let before = self.outbox.sent.len();
        self.outbox.sent.retain(|s| {
            s.queued.is_none_or(|id| queue.iter().any(|q| q.id == id && q.state == QueuedState::Queued))
        });
        if self.outbox.sent.len() < before {
            self.keep();
        }
    }

    pub(super) fn answered(&mut self, token: Token, reply: &ReplyEvent, model: &Model) -> Reply {
        match (token, reply) {
            (MENTIONS, ReplyEvent::MentionsReply { text, mentions }) => {
                // Written out by hand it is as good as chosen.
                if mentions.iter().any(|m| m.name == *text) {
                    self.content.mention(text);
                }
                self.names.found(text, !mentions.is_empty());
                if let Some(p) = &mut self.popup {
                    p.found(text, mentions, &model.crew.kinds);
                }
            }
            (FLOWS, ReplyEvent::WorkflowsReply { files }) => {
                self.reported.flows.clone_from(files);
                if let Some(p) = self.popup.as_mut().filter(|p| p.kind == PopupKind::Workflow) {
                    p.workflows(files);
                }
            }
            (SKILLS, ReplyEvent::SkillsReply { reply: SkillReply::Skills { rows } }) => {
                self.reported.skills.clone_from(rows);
                if let Some(p) = self.popup.as_mut().filter(|p| p.kind == PopupKind::Skill) {
                    p.skills(rows);
                }
            }
            (PROMPTS, ReplyEvent::McpReply { prompts, .. }) => {
                self.reported.prompts.clone_from(prompts);
                if self.popup.as_ref().is_none_or(|p| p.kind == PopupKind::Slash && !p.moved) {
                    self.popup = Popup::at(&self.content.edit, self.commands, &self.reported.prompts)
                        .filter(|p| p.kind == PopupKind::Slash);
                }
            }
            (COMMANDS, ReplyEvent::SkillsReply { reply: SkillReply::Commands { rows } }) => {
                return self.commands_reported(rows, model);
            }
            (EARLIER, ReplyEvent::HistoryReply { prompts }) => {
                self.history.fill(prompts.iter().rev().cloned().collect());
                self.keep();
                if self.content.is_blank() {
                    return self.up(model);
                }
            }
            (RECENT, ReplyEvent::SessionsReply { sessions }) => self.recent.take(sessions, model),
            (ARRIVED, ReplyEvent::HistoryReply { prompts }) => self.arrived(prompts),
            (TAKEN, ReplyEvent::ErrorReply { .. }) => {
                // It has gone out: it stands in the conversation.
                self.outbox.taking = None;
                self.changed();
            }
            // An agent was started by it, or it was kept in memory. A rule that does not work stays longer, and in the log.
            (sent, ReplyEvent::DoneReply { said }) => {
                self.stored(sent);
                let faulty = said.contains(tiller_protocol::memory::BUT_NO_RULE);
                let kind = if faulty { NoticeKind::User } else { NoticeKind::Info };
                return Reply::with(Effect::Toast(Notice::new(kind, said.clone())));
            }
            // A toast says why, once.
            (sent, ReplyEvent::ErrorReply { .. }) => {
                let Some(i) = self.outbox.sent.iter().position(|s| s.token == sent) else {
                    return Reply::Ignored;
                };
                if let Some(UnconfirmedMessage { message, .. }) = self.outbox.sent.remove(i) {
                    self.bring_back(message);
                }
            }
            _ => return Reply::Ignored,
        }
        Reply::done()
    }
}
