//! What the loop does with each report about the external program.

use crate::core::Core;
use crate::crew::external::msg::ExternalMsg;

pub(crate) fn handle(core: &mut Core, msg: ExternalMsg) {
    match msg {
        ExternalMsg::ProgramTrust { turn, found } => core.external_driver().trust_checked(turn, found),
        ExternalMsg::Judged { turn, reply } if core.is_live(turn) => {
            // The call may have ended.
            let _ = reply.send(core.external_driver().judged_by());
        }
        ExternalMsg::Settled(audit) => core.external_driver().audit_decided(*audit),
        ExternalMsg::Said { turn, said } => core.external_driver().message(turn, *said),
        ExternalMsg::OutputRests { turn, call, piece } if core.is_live(turn) => {
            core.external_driver().output_paused(call, piece);
        }
        ExternalMsg::Titled { turn } if core.is_live(turn) => core.external_driver().title_interval_over(),
        ExternalMsg::OutputRests { .. } | ExternalMsg::Titled { .. } | ExternalMsg::Judged { .. } => {}
    }
}
