//! What the person says, and what of it waits: sent at once, or queued, edited, moved and taken back.

use tiller_protocol::command::QueueCommand;
use tiller_protocol::event::{StateEvent, TurnStatus};
use tiller_protocol::{CommandId, Message, Notice, NoticeKind, QueueId, Queued, QueuedState, SendMode};
use tiller_store::MadeBy;

use crate::bus::ClientId;
use crate::context::clean;
use crate::core::Core;
use crate::core::saves::Then;
use crate::prompts::msg::Goal;
use crate::turn::Input;

/// Messages that may wait.
const QUEUE: usize = 100;

impl Core {
    pub(crate) fn submit(
        &mut self,
        client: ClientId,
        cause: CommandId,
        mut message: Message,
        mode: SendMode,
    ) {
        clean::message(&self.services.redact, &mut message);
        if let Some(why) = self.cannot_send(&message) {
            self.refuse(client, cause, why.clone());
            if !self.occupied() {
                // A child counts as running from the moment of its command.
                self.child_over(TurnStatus::Failed, String::new(), Some(why));
            }
            return;
        }
        self.adopt();
        if !self.occupied() {
            return self.compose(Goal::Prompt { client: Some((client, cause)) }, vec![(None, message)]);
        }
        if self.prompts.queue.len() >= QUEUE {
            let notice = Notice::new(NoticeKind::User, format!("{QUEUE} messages are already waiting"));
            return self.refuse(client, cause, notice);
        }
        let id = QueueId::fresh(&*self.services.ids, self.services.clock.now());
        let queued = Queued { id, message, mode, state: QueuedState::Queued };
        if self.turn.live.is_none() && !self.turn_begins() {
            self.prompts.behind_job.push(id);
        }
        if let Some(child) = &mut self.identity.child {
            child.receipts.insert(id, cause);
        }
        if mode == SendMode::Now {
            self.prompts.queue.insert(0, queued)
        } else {
            self.prompts.queue.push(queued)
        }
        self.queue_changed(Some(cause));
        self.hand_over();
        self.send_by_mode(mode);
    }

    /// A session of a run without a screen becomes the person's own with their first message in it.
    fn adopt(&mut self) {
        if self.session.exec && self.services.made_by == MadeBy::Person && self.identity.child.is_none() {
            self.session.exec = false;
            // What cannot be written is reported by the writes of the turn.
            drop(self.services.store.adopt(self.session.id));
        }
    }

    fn cannot_send(&self, message: &Message) -> Option<Notice> {
        if self.session.read_only {
            return Some(
                Notice::new(NoticeKind::User, "this session is open read-only")
                    .hint("fork it, or start a new one"),
            );
        }
        if message.text.trim().is_empty() && message.attachments.is_empty() {
            return Some(Notice::new(NoticeKind::User, "there is nothing to send"));
        }
        if self.session.model.0.is_empty() {
            return Some(
                Notice::new(NoticeKind::Config, "no model is set up yet, so nothing was sent")
                    .hint("choose one with /model, or set one up with /setup"),
            );
        }
        None
    }

    fn send_by_mode(&mut self, mode: SendMode) {
        match mode {
            SendMode::Now if self.turn.live.is_some() => self.feed(Input::Interrupt { hard: false }),
            SendMode::Steer if self.turn.live.is_some() => self.feed(Input::Steer(true)),
            _ => {}
        }
    }

    /// Shows the queue and saves it; what was `queued` is `accepted` once it is on disk.
    pub(crate) fn queue_changed(&mut self, cause: Option<CommandId>) {
        self.state(cause, StateEvent::QueueChanged { queue: self.prompts.queue.clone() });
        let mut append = self.append();
        append.queue = Some(self.prompts.queue.clone());
        let ids = self.queued_ids();
        self.save(append, Vec::new(), Then::Accepted(ids));
    }

    pub(crate) fn accepted(&mut self, ids: &[QueueId]) {
        let mut changed = false;
        for q in
            self.prompts.queue.iter_mut().filter(|q| ids.contains(&q.id) && q.state == QueuedState::Queued)
        {
            q.state = QueuedState::Accepted;
            changed = true;
        }
        if changed {
            self.state(None, StateEvent::QueueChanged { queue: self.prompts.queue.clone() });
        }
    }

    pub(crate) fn queue_command(&mut self, client: ClientId, cause: CommandId, command: QueueCommand) {
        let id = match &command {
            QueueCommand::Edit { id, .. }
            | QueueCommand::Remove { id }
            | QueueCommand::Move { id, .. }
            | QueueCommand::Mode { id, .. } => *id,
        };
        let Some(at) = self.prompts.queue.iter().position(|q| q.id == id) else {
            return self.refuse(
                client,
                cause,
                Notice::new(NoticeKind::User, "this message is no longer waiting"),
            );
        };
        let mut mode = None;
        match command {
            QueueCommand::Edit { mut message, .. } => {
                clean::message(&self.services.redact, &mut message);
                if let Some(why) = self.cannot_send(&message) {
                    return self.refuse(client, cause, why);
                }
                self.prompts.queue[at].message = message;
                self.prompts.queue[at].state = QueuedState::Queued;
                mode = (!self.occupied()).then_some(self.prompts.queue[at].mode);
            }
            QueueCommand::Remove { .. } => {
                self.prompts.queue.remove(at);
            }
            QueueCommand::Move { to, .. } => {
                let q = self.prompts.queue.remove(at);
                let to = to.min(self.prompts.queue.len());
                self.prompts.queue.insert(to, q);
            }
            QueueCommand::Mode { mode: m, .. } => {
                self.prompts.queue[at].mode = m;
                if m == SendMode::Now {
                    let q = self.prompts.queue.remove(at);
                    self.prompts.queue.insert(0, q);
                }
                mode = Some(m);
            }
        }
        self.queue_changed(Some(cause));
        self.hand_over();
        match mode {
            Some(m) if self.occupied() => self.send_by_mode(m),
            Some(SendMode::Steer | SendMode::Now) => self.send_queued(id),
            _ => {}
        }
        let steering = self.steering();
        if self.turn.live.is_some() {
            self.feed(Input::Steer(steering));
        }
    }

    pub(crate) fn steering(&self) -> bool {
        !self.prompts.pending.is_empty() || self.prompts.queue.iter().any(|q| q.mode == SendMode::Steer)
    }

    /// After a turn: the next waiting message, if it is to go out by itself.
    pub(crate) fn next_queued(&mut self, status: TurnStatus) {
        let by_itself = matches!(status, TurnStatus::Done | TurnStatus::Refused);
        let next = self.prompts.queue.iter().find(|q| by_itself || q.mode == SendMode::Now).map(|q| q.id);
        if let Some(id) = next {
            self.send_queued(id);
        }
    }

    /// After a job that moved nothing and began no turn: the first message that was sent while it was under way. What
    /// waited before the job waits on. Does nothing while another job or a turn is under way.
    pub(crate) fn send_behind_job(&mut self) {
        let behind = std::mem::take(&mut self.prompts.behind_job);
        if let Some(id) = behind.into_iter().find(|id| self.prompts.queue.iter().any(|q| q.id == *id)) {
            self.send_queued(id);
        }
    }

    fn send_queued(&mut self, id: QueueId) {
        if self.occupied() || self.lifecycle.quitting.is_some() || self.session.read_only {
            return;
        }
        if let Some(q) = self.prompts.queue.iter().find(|q| q.id == id) {
            let message = q.message.clone();
            self.compose(Goal::Prompt { client: None }, vec![(Some(id), message)]);
        }
    }
}
