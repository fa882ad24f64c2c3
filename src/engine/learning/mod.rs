//! Learnings and rules in the loop: what is attached to results and messages, which failures and fixes are paired, and the
//! person's decisions. What they are is in the room `memory`.
//!
//! | module | holds |
//! | --- | --- |
//! | `attach` | what is added to the end of a result or a message |
//! | `pairing` | failed calls and the later calls that worked |
//! | `manage` | the user's decisions, and what the dialog lists |
//! | `rules` | rules with their counts, and what is made of them |
//! | `faults` | notices of matchers that cannot be read |

mod attach;
mod faults;
mod manage;
pub(crate) mod pairing;
mod rules;

pub(crate) use attach::{CallNote, for_message, set_mode};
pub(crate) use faults::notice_of_faults;
pub(crate) use manage::{command, consolidate_if_due, query};
pub(crate) use pairing::seen;
