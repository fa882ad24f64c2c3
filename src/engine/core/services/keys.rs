//! The port to API keys: storing and testing a key that the user enters.

use std::path::PathBuf;
use std::sync::Arc;

use tiller_protocol::CommandId;
use tiller_provider::registry::EnteredKey;
use tiller_provider::{ProviderError, Providers};

use crate::bus::ClientId;

/// Stores API keys.
#[derive(Clone)]
pub struct KeyStore {
    /// The key file (0600). Its folder is made if it is missing.
    pub file: PathBuf,
    /// Makes new providers from the settings and the key file.
    pub rebuild: Arc<dyn Fn() -> Providers + Send + Sync>,
    /// The effect of a key that is entered for the provider of this name.
    pub entered: Arc<dyn Fn(&str) -> EnteredKey + Send + Sync>,
    /// Adds a text to those that are redacted everywhere.
    pub learn: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Result of storing and testing a key.
pub(crate) struct KeyReport {
    pub(crate) client: ClientId,
    pub(crate) cause: CommandId,
    pub(crate) provider: String,
    pub(crate) file: PathBuf,
    pub(crate) providers: Option<Providers>,
    /// The environment variable that the key overrides.
    pub(crate) over: Option<String>,
    pub(crate) result: Result<(), KeyError>,
}

pub(crate) enum KeyError {
    /// The key was not stored; the reason.
    NotSaved(String),
    /// The key was stored, but could not be tested.
    Untested(ProviderError),
    /// The server rejected the key; the earlier one was restored.
    Refused(ProviderError),
}
