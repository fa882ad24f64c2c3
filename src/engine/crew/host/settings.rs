//! What agents are made of: settings, kinds, models, tools, terminals, as they are now.

use std::sync::{Arc, RwLock};

use tiller_config::Config;
use tiller_config::agents::Definitions;
use tiller_protocol::{ModelRef, ToolCatalog};
use tiller_provider::{ProviderError, Providers};
use tiller_skills::Skills;

use super::CrewHost;
use crate::core::services::CrewConfig;
use crate::crew::rights::Grant;
use crate::session::model;

/// What agents are made of: settings, kinds, models, tools, terminals, as they are now.
pub trait HostSettings {
    /// The settings as they are now.
    fn config(&self) -> Arc<Config>;

    /// Kinds of agents, as they are now.
    fn roles(&self) -> Definitions;

    /// The skills, as they are now.
    fn skills(&self) -> Skills;

    /// What agents are made with.
    fn crew_config(&self) -> &CrewConfig;

    /// Providers of models, as they are now and later.
    fn providers(&self) -> Arc<RwLock<Providers>>;

    /// Whether requests can be sent to a model.
    ///
    /// # Errors
    /// When its provider does not exist or cannot be used.
    fn check_model(&self, model: &ModelRef) -> Result<(), ProviderError>;

    /// All tools.
    fn all_tools(&self) -> ToolCatalog;

    /// Whether the last of `chain`, or the main agent if it is empty, has the tool `name`.
    fn has_tool(&self, chain: &[Grant<'_>], name: &str) -> bool;

    /// Whether commands of an agent can run at a terminal of this name.
    ///
    /// # Errors
    /// A sentence, when they cannot.
    fn check_terminal(&self, name: &str) -> Result<(), String>;
}

impl HostSettings for CrewHost<'_> {
    fn config(&self) -> Arc<Config> {
        self.core.services.config()
    }

    fn roles(&self) -> Definitions {
        self.core.services.roles()
    }

    fn skills(&self) -> Skills {
        self.core.services.skills()
    }

    fn crew_config(&self) -> &CrewConfig {
        &self.core.services.crew
    }

    fn providers(&self) -> Arc<RwLock<Providers>> {
        Arc::clone(&self.core.services.models.providers)
    }

    fn check_model(&self, model: &ModelRef) -> Result<(), ProviderError> {
        model::provider(self.core, model).map(drop)
    }

    fn all_tools(&self) -> ToolCatalog {
        self.core.services.tools.all.catalog()
    }

    fn has_tool(&self, chain: &[Grant<'_>], name: &str) -> bool {
        self.core.services.tools_of(chain).iter().any(|t| t.name() == name)
    }

    fn check_terminal(&self, name: &str) -> Result<(), String> {
        self.terminal(name, &self.core.services.workspace.root).map(drop)
    }
}
