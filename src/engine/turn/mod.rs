//! One turn: from the user's message to the model's last reply.
//!
//! [`state`], [`step`], `slots`, [`reply`] and [`effect`] are a pure machine: inputs in, effects out as data. They
//! wait for nothing, read no clock and touch no file. The other modules carry out the effects.

pub(crate) mod begin;
pub(crate) mod driver;
pub mod effect;
pub(crate) mod handle;
mod meant;
pub(crate) mod msg;
pub(crate) mod part;
pub(crate) mod prepare;
pub mod repeats;
pub mod reply;
mod slots;
pub mod state;
pub mod step;
mod stream;

pub use effect::{Delta, Effect, Input, Prepared};
pub use state::{CallResult, Phase, Slot, SlotState, ToolTable, Turn, TurnLimits};

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod step_tests;
