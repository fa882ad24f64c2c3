//! The plan profile: the earlier profile returns when the user approves or drops the plan.

use crate::session::manage;
use std::path::PathBuf;

use tiller_protocol::{CommandId, Profile};

use crate::bus::ClientId;
use crate::core::Core;

/// The line about a new profile for the model.
pub(crate) fn news(profile: Profile) -> String {
    if profile == Profile::Plan {
        return "the permission mode is now plan: nothing can be written or run. Explore, ask what only the \
                user can decide, and submit a plan with write_plan; work begins when the user approves it"
            .into();
    }
    format!("the permission mode is now {}", profile.name())
}

/// Folder of this session's plans, outside of the workspace.
pub(crate) fn plans(core: &Core) -> PathBuf {
    core.services.places.state.join("plans").join(core.session.id.to_string())
}

/// Remembers the present profile before the plan profile replaces it.
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
