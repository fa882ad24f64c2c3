//! Learnings and rules in the loop: what is attached to results and messages, which failures and fixes are paired, and the
//! person's decisions. What they are is in the room `memory`.

mod attach;
mod faults;
mod manage;
pub(crate) mod pairing;
mod rules;

pub(crate) use attach::{CallNote, for_message, set_mode};
pub(crate) use faults::notice_of_faults;
pub(crate) use manage::{command, query, tend};
pub(crate) use pairing::seen;
