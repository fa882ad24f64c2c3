//! The profile in which nothing but a plan is made: what was there before comes back when the person approves the
//! plan, or drops it.

use crate::session::manage;
use std::path::PathBuf;

use tiller_protocol::{CommandId, Profile};

use crate::bus::ClientId;
use crate::core::Core;

/// The text about a new profile for the model.
pub(crate) fn news(profile: Profile) -> String {
    if profile == Profile::Plan {
        return "the permission profile is now plan: nothing can be written or run. Explore, ask what only the \
                user can decide, and submit a plan with write_plan; work begins when the user approves it"
            .into();
    }
    format!("the permission profile is now {}", profile.name())
}

/// Where the plans of this session are: the person's, outside of the workspace.
pub(crate) fn plans(core: &Core) -> PathBuf {
    core.services.places.state.join("plans").join(core.session.id.to_string())
}

/// The profile is about to change: what is there is kept for the way back.
pub(crate) fn planning_begins(core: &mut Core, to: Profile) {
    let before = (to == Profile::Plan).then_some(core.session.profile);
    if before != core.session.before_plan {
        core.session.before_plan = before;
        drop(core.services.store.set_meta(
            &crate::session::kept::before_plan_key(core.session.id),
            before.map(|p| p.name().to_owned()),
        ));
    }
}

/// The plan was approved or dropped.
pub(crate) fn stop_planning(core: &mut Core, client: ClientId, cause: CommandId) {
    if core.session.profile != Profile::Plan {
        return;
    }
    let usual = Some(core.services.config().profile).filter(|p| *p != Profile::Plan);
    let back = core.session.before_plan.or(usual).unwrap_or_default();
    manage::set_profile(core, client, cause, back);
}
