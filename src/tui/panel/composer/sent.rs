//! What becomes of a text that is sent.

use tiller_protocol::CommandBody;

use crate::app::effect::Effect;

/// What to do with a text that is sent.
pub(crate) enum Sent {
    /// To the engine, as a message; comes back when it is refused.
    Message(CommandBody),
    /// Done at once by these.
    Effects(Vec<Effect>),
    /// Nothing is done, and the text stays: why.
    Stay(String),
}
