//! Receipts of messages to a child.

use tiller_protocol::event::StateEvent;
use tiller_protocol::{CommandId, EventBody, Receipt};

use crate::bus::EventScope;
use crate::crew::driver::ChildDriver;
use crate::prompts::queue;

impl ChildDriver<'_> {
    /// The receipt of a message that is in the conversation. (Only children give receipts.)
    pub(crate) fn receipt(&self, cause: CommandId) -> Option<(EventScope, EventBody)> {
        let step = self.core.identity.child()?.work.requests;
        let event = StateEvent::Receipt { receipt: Receipt::Delivered { step } };
        Some((self.core.scope_of(Some(cause)), EventBody::State(event)))
    }

    /// As [`Self::receipt`], for a message that waited in the queue.
    pub(crate) fn take_receipt(&mut self, id: tiller_protocol::QueueId) -> Option<(EventScope, EventBody)> {
        let cause = self.core.identity.child_mut()?.receipts.remove(&id)?;
        self.receipt(cause)
    }

    /// Publishes receipts for messages that a stopped agent did not read.
    pub(crate) fn report_unread(&mut self, why: &str) {
        let Some(child) = self.core.identity.child_mut() else { return };
        let missed = std::mem::take(&mut child.receipts);
        if missed.is_empty() {
            return;
        }
        self.core.prompts.queue.retain(|q| !missed.contains_key(&q.id));
        for cause in missed.into_values() {
            self.core
                .state(Some(cause), StateEvent::Receipt { receipt: Receipt::Missed { why: why.to_owned() } });
        }
        queue::queue_changed(self.core, None);
    }
}
