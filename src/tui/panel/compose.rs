//! Requests of other panels to the composer.

use tiller_protocol::{Message, QueueId};

/// Requests to the composer ([`crate::app::effect::Effect::Tell`]).
pub enum Recall {
    /// Take this waiting message out of the queue and into the text.
    Take(QueueId),
    /// Keep this text among the earlier prompts.
    Keep(Message),
    /// Put these words before what is written.
    Before(String),
    /// Send this message; when it is refused it comes back into the text.
    Send(Message),
}
