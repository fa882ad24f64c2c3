//! Processes that keep variables between runs, by agent and name.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tiller_protocol::{AgentId, lock};

use super::child::Child;
use crate::CommandProfile;

/// Sessions of one conversation.
pub(super) const MOST: usize = 8;
/// After this time without a run a session ends.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// Which session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub agent: AgentId,
    pub name: String,
}

/// A process that waits for its next script.
pub(super) struct Kept {
    pub child: Child,
    /// How it is confined: a run with another profile cannot use it.
    pub profile: CommandProfile,
    since: Instant,
}

/// The sessions of one conversation. Dropping it ends them.
#[derive(Default)]
pub struct CodeSessions(Mutex<HashMap<SessionKey, Kept>>);

impl CodeSessions {
    /// Takes a session out for a run. Sessions that were idle for long end.
    pub(super) fn take(&self, key: &SessionKey) -> Option<Kept> {
        let mut all = lock(&self.0);
        all.retain(|_, kept| kept.since.elapsed() < IDLE && kept.child.leader.exited().is_none());
        all.remove(key)
    }

    /// Puts it back. The oldest one ends where there are too many.
    pub(super) fn put(&self, key: SessionKey, child: Child, profile: CommandProfile) {
        let mut all = lock(&self.0);
        if all.len() >= MOST
            && let Some(oldest) = all.iter().min_by_key(|(_, kept)| kept.since).map(|(key, _)| key.clone())
        {
            all.remove(&oldest);
        }
        all.insert(key, Kept { child, profile, since: Instant::now() });
    }
}
