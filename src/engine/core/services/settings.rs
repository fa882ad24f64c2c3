//! The port to the settings: reading them again while the engine runs.

use std::sync::Arc;

use tiller_config::Config;
use tiller_protocol::{CommandId, Notice};
use tiller_provider::Providers;
use tiller_provider::registry::Local;

use crate::bus::ClientId;

/// Settings that were read again, and the providers made from them.
pub struct LoadedSettings {
    pub config: Config,
    pub providers: Providers,
}

/// Reads files, so it may block. The error is shown to the user; the last valid settings stay in force.
pub(crate) type ReadSettings = Arc<dyn Fn() -> Result<LoadedSettings, Notice> + Send + Sync>;

/// Stores the user's consent to a server on this machine, for later sessions. May block; an error is a sentence.
pub(crate) type KeepServer = Arc<dyn Fn(&Local) -> Result<(), String> + Send + Sync>;

/// Reads settings again, and stores some.
#[derive(Clone)]
pub struct SettingsSource {
    pub read: ReadSettings,
    pub keep: KeepServer,
}

/// Report of the task that read the settings. `asked`: the client that gets the result.
pub(crate) struct SettingsReport {
    pub(crate) asked: Option<(ClientId, CommandId)>,
    pub(crate) result: Result<LoadedSettings, Notice>,
}
