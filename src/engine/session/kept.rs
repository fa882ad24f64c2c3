//! Facts about a session that are stored beside its tree, so that they survive a restart. Each read blocks.

use tiller_protocol::{Effort, Profile, SessionId};
use tiller_store::{Store, StoreError};

/// The name of the fact that holds a session's effort.
pub(crate) fn effort_key(session: SessionId) -> String {
    format!("effort:{session}")
}

/// The effort of the session's model.
pub(crate) fn effort(store: &Store, id: SessionId) -> Result<Option<Effort>, StoreError> {
    Ok(store.meta(&effort_key(id))?.and_then(|word| word.parse().ok()))
}

/// The name of the fact that holds the profile from before a plan.
pub(crate) fn before_plan_key(session: SessionId) -> String {
    format!("before_plan:{session}")
}

/// The profile from before a plan. An imported session gets no more than `ask`.
pub(crate) fn before_plan(
    store: &Store,
    id: SessionId,
    foreign: bool,
) -> Result<Option<Profile>, StoreError> {
    let kept = store.meta(&before_plan_key(id))?.and_then(|name| name.parse::<Profile>().ok());
    Ok(kept.map(|p| if foreign { p.min(Profile::Ask) } else { p }))
}
