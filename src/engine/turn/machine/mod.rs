//! The pure machine of a turn: inputs in, effects out as data. It waits for nothing, reads no clock and touches no file.
//!
//! | file | job |
//! | --- | --- |
//! | `effect` | the inputs and the effects: the whole interface |
//! | `state` | the state of a turn, and its limits |
//! | `step` | the transitions |
//! | `reply` | a reply while it arrives |
//! | `slots` | the calls of a reply: which can run, and which may run now |
//! | `meant` | the tool that a misspelt name means |
//! | `repeats` | rounds of calls that repeat |

pub mod effect;
mod meant;
pub mod repeats;
pub mod reply;
mod slots;
pub mod state;
pub mod step;

pub use effect::{Delta, Effect, Input, Prepared};
pub use state::{CallResult, Phase, Slot, SlotState, ToolTable, Turn, TurnLimits};

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod step_tests;
