//! The JSON that a hook reads on standard input.
//!
//! All events have `version`, `event`, `session`, `agent`, `folder` and `time`; what the event is about stands beside
//! them. Fields are added, never changed: a hook ignores those that it does not know.

use std::path::Path;

use serde_json::{Map, Value, json};
use tiller_protocol::{AgentId, HookEvent, Profile, SessionId, Time};

/// Version of the form.
const VERSION: u32 = 1;

/// What happens, and where.
#[derive(Clone, Copy, Debug)]
pub struct HookScene<'a> {
    pub event: HookEvent,
    pub session: SessionId,
    pub agent: &'a AgentId,
    /// The agent's folder.
    pub folder: &'a Path,
    /// The profile of the call that it is about.
    pub profile: Option<Profile>,
}

/// The whole input.
pub(crate) fn input(scene: &HookScene<'_>, time: Time, about: &Map<String, Value>) -> Value {
    let mut all = json!({
        "version": VERSION,
        "event": scene.event.name(),
        "session": scene.session.to_string(),
        "agent": scene.agent.0,
        "folder": tiller_protocol::names::written(scene.folder),
        "time": time.to_rfc3339(),
    });
    if let Some(fields) = all.as_object_mut() {
        fields.extend(scene.profile.map(|profile| ("profile".to_owned(), profile.name().into())));
        fields.extend(about.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    all
}
