//! What to do with a text that is submitted.

use tiller_protocol::CommandBody;

use crate::app::effect::Effect;

/// What to do with a text that is sent.
pub(crate) enum SubmitAction {
    /// To the engine, as a message; comes back when it is refused.
    Message(CommandBody),
    /// Done at once by these.
    Effects(Vec<Effect>),
    /// Nothing is done, and the text stays: why.
    Stay(String),
}
