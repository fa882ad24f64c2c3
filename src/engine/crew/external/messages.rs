//! Messages to an external program that runs. Its driver holds them until the program takes messages (between its turns; in a
//! terminal when it is idle) and reports what became of each. Until then they are in the queue, where
//! the user can change or remove them.

use tiller_external::Receipt as Held;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    EntryBody, EventBody, Message, Notice, NoticeKind, Origin, Part, QueueId, Receipt, SendMode, StopReason,
};

use crate::bus::agent_view;
use crate::core::saves::Then;
use crate::crew::driver::ExternalDriver;
use crate::crew::external::QueuedMessage;
use crate::crew::external::prompt::of_masks;
use crate::prompts::queue;

impl ExternalDriver<'_> {
    /// Hands the queued messages to the driver. Files that a message names are read when a
    /// turn begins, so such a message stays in the queue.
    pub(crate) fn offer_queue(&mut self) {
        let plain = |m: &Message| m.attachments.is_empty() && !m.text.contains('@');
        let waiting: Vec<(QueueId, Message)> = self
            .core
            .prompts
            .queue
            .iter()
            .filter(|q| q.mode == SendMode::Steer && plain(&q.message))
            .map(|q| (q.id, q.message.clone()))
            .collect();
        let Some(outside) = self.core.identity.external_mut() else { return };
        let Some(control) = outside.control().cloned() else { return };
        // Messages that were changed or removed in the queue are withdrawn from the driver.
        outside.queued.retain(|h| {
            let same = waiting.iter().any(|(id, message)| *id == h.id && *message == h.message);
            if !same {
                control.unsay(h.no);
            }
            same
        });
        for (id, message) in waiting {
            if outside.queued.iter().any(|h| h.id == id) {
                continue;
            }
            // A message that it cannot take now stays in the queue for the next turn.
            if let Held::Queued { id: no } = control.say(of_masks(message.text.clone())) {
                outside.queued.push(QueuedMessage { no, id, message });
            }
        }
    }

    /// The program has taken a message.
    pub(crate) fn message_delivered(&mut self, no: u64) {
        let Some(outside) = self.core.identity.external_mut() else { return };
        let Some(at) = outside.queued.iter().position(|h| h.no == no) else { return };
        let held = outside.queued.remove(at);
        // Earlier output is stored before the message.
        self.flush(None, StopReason::EndTurn);
        if let Some(outside) = self.core.identity.external_mut() {
            outside.new_answer();
        }
        if let Some(child) = self.core.identity.child_mut() {
            child.work.requests += 1;
        }
        self.core.child_driver().report_work();
        let queue = &mut self.core.prompts.queue;
        let queued = queue.iter().position(|q| q.id == held.id).map(|at| queue.remove(at));
        let (origin, taint) = queued.map_or((Origin::Prompt, None), |q| (q.origin, q.taint));
        let mut events = Vec::new();
        let scope = self.core.scope();
        let text = held.message.text.clone();
        let content = vec![Part::Text { text: text.clone() }];
        let body = EntryBody::User {
            message: held.message,
            origin: origin.within_turn(),
            content,
            taint,
            learnings: Vec::new(),
        };
        let entry = self.core.session.grow(&self.core.services, body);
        let told =
            TurnEvent::UserMessage { entry: entry.id, text: text.clone(), node: Box::new(entry.clone()) };
        events.push((scope.clone(), EventBody::Turn(told)));
        events.extend(self.core.child_driver().take_receipt(held.id));
        events.push((
            scope,
            EventBody::State(StateEvent::QueueChanged { queue: self.core.prompts.queue.clone() }),
        ));
        let mut append = self.core.append().entries(vec![entry]);
        append.queue = Some(self.core.prompts.queue.clone());
        append.prompt = origin.is_prompt().then_some(text);
        self.core.save(append, events, Then::Nothing);
        agent_view::agent_changed(self.core);
    }

    /// The program has not taken a message. A message that was typed in part is not typed again.
    pub(crate) fn message_missed(&mut self, no: u64, why: &str, tried: bool) {
        let Some(outside) = self.core.identity.external_mut() else { return };
        let Some(at) = outside.queued.iter().position(|h| h.no == no) else { return };
        let held = outside.queued.remove(at);
        if !tried {
            return;
        }
        self.core.prompts.queue.retain(|q| q.id != held.id);
        let cause = self.core.identity.child_mut().and_then(|c| c.receipts.remove(&held.id));
        match cause {
            Some(cause) => {
                let receipt = Receipt::Missed { why: why.to_owned() };
                self.core.state(Some(cause), StateEvent::Receipt { receipt });
            }
            None => self.core.notice(Notice::new(NoticeKind::User, format!("a message was not read: {why}"))),
        }
        queue::queue_changed(self.core, None);
    }
}
