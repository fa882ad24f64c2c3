//! The port to trust: what a folder's own files bring, and the user's decision about them.

use std::sync::{Arc, Mutex, PoisonError};

use tiller_config::agents::Definitions;
use tiller_permit::Rule;
use tiller_protocol::Notice;
use tiller_protocol::ask::TrustItem;

use super::Roles;
use crate::questions::permission::Permit;

/// What the user's consent brings in, made from the bytes that were hashed.
#[derive(Clone, Debug, Default)]
pub struct TrustGrant {
    pub rules: Vec<Rule>,
    /// It brings settings: they are read again and apply at once.
    pub settings: bool,
    /// The agent definitions from now on; `None`: it brings none.
    pub roles: Option<Definitions>,
    /// Numbers of agents, skills and workflows that it brings.
    pub agents: usize,
    pub skills: usize,
    pub workflows: usize,
    /// Number of hooks that run from now on.
    pub hooks: usize,
    /// Files that could not be read, each with its place.
    pub faults: Vec<Notice>,
}

/// Stores the user's decision. True: trust exactly what was shown. False: never ask again, and load nothing. May
/// block. An error is a sentence.
pub(crate) type TrustDecide = Arc<dyn Fn(bool) -> Result<TrustGrant, String> + Send + Sync>;

/// What the engine stops using once the trust in the folder is revoked.
pub struct TrustLoss {
    /// Its settings were in force: they are read again.
    pub settings: bool,
    /// The agent definitions from now on.
    pub roles: Definitions,
}

/// Checks whether the trust in the folder was revoked since the last call, by this or another process. When a loss is returned,
/// the folder's files are no longer read. May block.
pub type TrustCheck = Arc<dyn Fn() -> Option<TrustLoss> + Send + Sync>;

/// The same check, which takes the rules and agents of the folder out of use before it returns. Checks wait for each other, so
/// that no call is judged with them once a check has begun to find the loss.
pub(crate) fn applied(check: TrustCheck, permit: Permit, roles: Roles) -> TrustCheck {
    let one_at_a_time = Mutex::new(());
    Arc::new(move || {
        let _one = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let loss = check()?;
        permit.drop_project();
        roles.replace(loss.roles.clone());
        Some(loss)
    })
}

/// The question at the start, where a user is present.
#[derive(Clone)]
pub struct TrustOffer {
    pub folder: String,
    pub items: Vec<TrustItem>,
    /// The user trusted other content before.
    pub changed: bool,
    /// The user declined for good: nothing is asked.
    pub never: bool,
    pub decide: TrustDecide,
}
