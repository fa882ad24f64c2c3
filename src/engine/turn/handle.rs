//! What the loop does with each report about the turn in flight.

use crate::core::Core;
use crate::tool_call::{calls, inner};
use crate::turn::Input;
use crate::turn::driver;
use crate::turn::msg::TurnMsg;

pub(crate) fn handle(core: &mut Core, msg: TurnMsg) {
    match msg {
        TurnMsg::Chunks { n, chunks, .. } => {
            for chunk in chunks {
                core.feed(Input::Chunk { n, chunk });
            }
        }
        TurnMsg::Quiet { .. } => driver::pause_deltas(core),
        TurnMsg::Awaited { n, wait, .. } => driver::awaited(core, n, &wait),
        TurnMsg::StreamEnded { n, result, .. } => core.feed(Input::StreamEnded { n, result }),
        TurnMsg::WaitOver { turn, n } => core.child_driver().retry_wait_over(turn, n),
        TurnMsg::Checked { tell, .. } => core.feed(Input::Checked { tell }),
        TurnMsg::InnerCall { request, .. } => inner::prepare(core, *request),
        TurnMsg::InnerDone { done, .. } => inner::done(core, *done),
        TurnMsg::ToolDone { call_id, done, .. } => calls::tool_done(core, &call_id, *done),
    }
}
