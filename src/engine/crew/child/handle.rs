//! What the loop does with each report about the agent that a parent started.

use crate::core::Core;
use crate::crew::child::msg::ChildMsg;

pub(crate) fn handle(core: &mut Core, msg: ChildMsg) {
    match msg {
        ChildMsg::Pause(paused) => core.child_driver().set_paused(paused),
        ChildMsg::Stop { hard } => core.child_driver().stop(hard),
        ChildMsg::Limits(limits) => core.child_driver().set_limits(limits),
        ChildMsg::Profile(profile) => core.child_driver().parent_profile_changed(profile),
        ChildMsg::ChildEnded { id, text } => core.child_driver().child_ended(id, text),
        ChildMsg::TimeUp { turn } => core.child_driver().time_limit_reached(turn),
        ChildMsg::BudgetChanged { turn } => core.child_driver().budget_changed(turn),
        // The agent may have received another message meanwhile: then that turn's end is reported.
        ChildMsg::Ended { turns, status, text, why } if core.turn.begun == turns && !core.turn_begins() => {
            core.child_driver().report_end(status, text, why);
        }
        ChildMsg::Ended { .. } => {}
    }
}
