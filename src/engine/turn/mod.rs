//! One turn: from the user's message to the model's last reply.
//!
//! [`machine`] decides: a pure state machine, inputs in, effects out as data. The other modules carry out the effects.

pub(crate) mod begin;
pub(crate) mod driver;
pub(crate) mod handle;
pub(crate) mod hold;
pub mod machine;
pub(crate) mod msg;
pub(crate) mod part;
pub(crate) mod prepare;
pub(crate) mod record;
mod stream;
pub(crate) mod terms;

pub use machine::{
    CallResult, Delta, Effect, Input, Phase, Prepared, Slot, SlotState, ToolTable, Turn, TurnLimits,
};
