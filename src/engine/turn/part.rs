//! The part of the loop's state that belongs to turns.

use std::collections::VecDeque;

use crate::core::Live;
use crate::turn::Input;

/// The turn in flight, and what turns share.
pub(crate) struct TurnPart {
    pub(crate) live: Option<Live>,
    /// Turns that have begun; the number of the last one.
    pub(crate) begun: u64,
    /// Inputs of the turn that wait for the one being handled.
    pub(crate) inputs: VecDeque<Input>,
    pub(crate) prefix: crate::prompts::msg::PrefixTask,
    /// Requests that this run may make.
    pub(crate) max_requests: Option<u32>,
}
