//! The state that all dialogs of questions have: when they take input, whether the answer is sent, and their feedback.

use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{AskId, Event, EventBody};

use super::input_delay::InputDelay;
use crate::model::Model;

/// Which of the open questions this is, and how many there are; `None`: it is the only one.
pub(super) fn which_of(id: AskId, model: &Model) -> Option<(usize, usize)> {
    let open = &model.questions.open;
    let at = open.iter().position(|a| a.id == id).map_or(1, |i| i + 1);
    (open.len() > 1).then_some((at, open.len()))
}

/// The state of the answer to one question.
#[derive(Debug, Default)]
pub(super) struct AnswerState {
    pub(super) delay: InputDelay,
    /// The answer is on its way to the engine.
    pub(super) sent: bool,
    /// It was drawn last without the keys.
    pub(super) covered: bool,
    /// Feedback on the last input: one sentence.
    pub(super) feedback: Option<String>,
}

impl AnswerState {
    /// True when input counts now.
    pub(super) fn accepts(&self, model: &Model) -> bool {
        !self.sent && self.delay.is_over(model)
    }

    /// True when the input that came counts. What comes too soon begins the delay anew.
    pub(super) fn takes(&mut self, model: &Model) -> bool {
        !self.sent && self.delay.take(model)
    }

    /// The dialog is on the screen again.
    pub(super) fn resume(&mut self) {
        self.delay.restart();
        (self.sent, self.feedback) = (false, None);
    }

    /// Takes the engine's reply to the answer. `true`: it was refused, and can be given again.
    pub(super) fn is_refused(&mut self, event: &Event) -> bool {
        let EventBody::Reply(reply) = &event.body else { return false };
        let ReplyEvent::ErrorReply { notice } = reply.as_ref() else { return false };
        self.sent = false;
        self.feedback = Some(format!("Not accepted: {}", notice.message));
        true
    }
}
