//! The choices of a client: the permission profile, as modes and as an option, and the model.

use serde_json::{Value, json};
use tiller_config::Config;
use tiller_protocol::{ModelRef, Profile};

use tiller_rpc::Error;

/// The names of the options.
pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";

/// The chosen values, and the values to choose from.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    pub(super) profile: Profile,
    pub(super) model: ModelRef,
    models: Vec<ModelRef>,
}

impl Choices {
    /// The models are those of the settings: servers are not queried for their lists before they are used.
    pub(super) fn new(profile: Profile, model: ModelRef, config: &Config) -> Self {
        let set = [&config.model, &config.tiers.main, &config.tiers.fast, &config.tiers.deep];
        let mut models = vec![model.clone()];
        for m in set.into_iter().flatten().map(|m| ModelRef(m.clone())) {
            if !models.contains(&m) {
                models.push(m);
            }
        }
        models.retain(|m| !m.0.is_empty());
        Self { profile, model, models }
    }

    /// The model has changed.
    pub(super) fn chose(&mut self, model: &ModelRef) {
        if !self.models.contains(model) {
            self.models.push(model.clone());
        }
        self.model = model.clone();
    }

    /// For clients that only support modes.
    pub(super) fn modes(&self) -> Value {
        let modes: Vec<Value> = Profile::ALL
            .into_iter()
            .map(|p| json!({"id": p.name(), "name": name(p), "description": about(p)}))
            .collect();
        json!({"currentModeId": self.profile.name(), "availableModes": modes})
    }

    /// The whole state of every option.
    pub(super) fn options(&self) -> Value {
        let profiles: Vec<Value> = Profile::ALL
            .into_iter()
            .map(|p| json!({"value": p.name(), "name": name(p), "description": about(p)}))
            .collect();
        let models: Vec<Value> = self
            .models
            .iter()
            .map(|m| json!({"value": m, "name": m.model(), "description": m.provider()}))
            .collect();
        let mut options = vec![json!({
            "id": MODE,
            "name": "Permissions",
            "category": "mode",
            "type": "select",
            "currentValue": self.profile.name(),
            "options": profiles,
        })];
        if !models.is_empty() {
            options.push(json!({
                "id": MODEL,
                "name": "Model",
                "category": "model",
                "type": "select",
                "currentValue": self.model,
                "options": models,
            }));
        }
        options.into()
    }
}

/// The profile with this id.
pub(super) fn profile(id: &str) -> Result<Profile, Error> {
    id.parse().map_err(Error::invalid_params)
}

fn name(p: Profile) -> &'static str {
    match p {
        Profile::ReadOnly => "Read only",
        Profile::Plan => "Plan",
        Profile::Ask => "Ask",
        Profile::AutoEdit => "Edit",
        Profile::Full => "Auto",
    }
}

fn about(p: Profile) -> &'static str {
    match p {
        Profile::ReadOnly => "No edits, no commands",
        Profile::Plan => "No edits or commands until you approve a plan",
        Profile::Ask => "Reads run; everything else needs approval",
        Profile::AutoEdit => "Edits in the folder run; commands need approval",
        Profile::Full => "Everything runs except denied, protected or dangerous actions",
    }
}
