//! Messages to a program of another vendor that runs: it holds them until it takes messages (between its turns; in a
//! terminal when it stands idle), and the receipt tells what became of each. Until then they stand in the queue, where
//! the person may change them or take them back.

use crate::bus::agent_view;
use crate::prompts::queue;
use tiller_external::Receipt as Held;
use tiller_protocol::event::{StateEvent, TurnEvent};
use tiller_protocol::{
    EntryBody, EventBody, Message, Notice, NoticeKind, Origin, Part, QueueId, Receipt, SendMode, StopReason,
};

use super::outside::of_masks;
use crate::core::Core;
use crate::core::saves::Then;
use crate::crew::external::Holding;

impl Core {
    /// Gives the running program what waits for it and was not given yet. Files that a message names are read when a
    /// turn begins with it: such a message waits for that.
    pub(crate) fn hand_over(&mut self) {
        let plain = |m: &Message| m.attachments.is_empty() && !m.text.contains('@');
        let waiting: Vec<(QueueId, Message)> = self
            .prompts
            .queue
            .iter()
            .filter(|q| q.mode == SendMode::Steer && plain(&q.message))
            .map(|q| (q.id, q.message.clone()))
            .collect();
        let Some(outside) = self.outside() else { return };
        let Some(control) = outside.control().cloned() else { return };
        // What was changed, moved out or taken back meanwhile is taken back there, too.
        outside.holds.retain(|h| {
            let same = waiting.iter().any(|(id, message)| *id == h.id && *message == h.message);
            if !same {
                control.unsay(h.no);
            }
            same
        });
        for (id, message) in waiting {
            if outside.holds.iter().any(|h| h.id == id) {
                continue;
            }
            // One that it cannot take now stays in the queue: the next turn begins with it.
            if let Held::Queued { id: no } = control.say(of_masks(message.text.clone())) {
                outside.holds.push(Holding { no, id, message });
            }
        }
    }

    /// The program has it.
    pub(super) fn handed(&mut self, no: u64) {
        let Some(outside) = self.outside() else { return };
        let Some(at) = outside.holds.iter().position(|h| h.no == no) else { return };
        let held = outside.holds.remove(at);
        // What it said before stands before it.
        self.outside_flush(None, StopReason::EndTurn);
        if let Some(outside) = self.outside() {
            outside.new_words();
        }
        if let Some(child) = &mut self.identity.child {
            child.work.requests += 1;
        }
        self.tell_work();
        self.prompts.queue.retain(|q| q.id != held.id);
        let mut events = Vec::new();
        let place = self.place();
        let text = held.message.text.clone();
        let content = vec![Part::Text { text: text.clone() }];
        let body = EntryBody::User { message: held.message, origin: Origin::Steer, content };
        let entry = self.session.grow(&self.services, body);
        let told =
            TurnEvent::UserMessage { entry: entry.id, text: text.clone(), node: Box::new(entry.clone()) };
        events.push((place.clone(), EventBody::Turn(told)));
        events.extend(self.delivered(held.id));
        events
            .push((place, EventBody::State(StateEvent::QueueChanged { queue: self.prompts.queue.clone() })));
        let mut append = self.append().entries(vec![entry]);
        append.queue = Some(self.prompts.queue.clone());
        append.prompt = Some(text);
        self.save(append, events, Then::Nothing);
        agent_view::agent_changed(self);
    }

    /// The program has not got it. One that was half typed is never typed again by itself.
    pub(super) fn not_handed(&mut self, no: u64, why: &str, tried: bool) {
        let Some(outside) = self.outside() else { return };
        let Some(at) = outside.holds.iter().position(|h| h.no == no) else { return };
        let held = outside.holds.remove(at);
        if !tried {
            return;
        }
        self.prompts.queue.retain(|q| q.id != held.id);
        let cause = self.identity.child.as_mut().and_then(|c| c.receipts.remove(&held.id));
        match cause {
            Some(cause) => {
                let receipt = Receipt::Missed { why: why.to_owned() };
                self.state(Some(cause), StateEvent::Receipt { receipt });
            }
            None => self.notice(Notice::new(NoticeKind::User, format!("a message was not read: {why}"))),
        }
        queue::queue_changed(self, None);
    }
}
