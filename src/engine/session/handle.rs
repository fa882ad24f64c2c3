//! What the loop does with each report about the session.

use crate::core::Core;
use crate::session::branch;
use crate::session::branch::carry;
use crate::session::branch::fork;
use crate::session::msg::SessionMsg;
use crate::session::open;

pub(crate) fn handle(core: &mut Core, msg: SessionMsg) {
    match msg {
        SessionMsg::Opened { no, client, cause, result } => open::opened(core, no, client, cause, *result),
        SessionMsg::ForkReport(forked) => fork::forked(core, *forked),
        SessionMsg::BranchLoaded(went) => branch::went(core, *went),
        SessionMsg::CarryReport(done) => carry::carried(core, *done),
    }
}
