//! Hooks: commands of the settings that see what happens, and may deny or change it.

mod calls;
mod events;
mod matrix;

use std::sync::Arc;

use tiller_config::schema;
use tiller_hooks::{HookSource, Hooks, HooksConfig};
use tiller_protocol::SystemClock;
use tiller_protocol::view::AuditRow;

use crate::rig::*;

/// A hook with this command.
pub(crate) fn hook(command: &str) -> schema::Hook {
    schema::Hook {
        command: command.into(),
        name: None,
        matches: None,
        timeout: 300,
        blocking: false,
        format: schema::HookFormat::Tiller,
    }
}

/// The same for calls that this rule is for.
pub(crate) fn hook_for(matches: &str, command: &str) -> schema::Hook {
    schema::Hook { matches: Some(matches.into()), ..hook(command) }
}

/// The hooks of a session in `place`.
pub(crate) fn hooks(place: &Place, set: impl FnOnce(&mut schema::Hooks)) -> Hooks {
    let mut settings = schema::Hooks::default();
    set(&mut settings);
    let hooks = Hooks::new(HooksConfig {
        folder: place.work.clone(),
        env: tiller_tool::ChildEnv::new(vec![("PATH".into(), "/usr/bin:/bin".into())]),
        confiner: None,
        tools: place.tools.catalog(),
        clock: Arc::new(SystemClock::default()),
    });
    let faults = hooks.set(&HookSource::User, &settings, None);
    assert_eq!(faults, []);
    hooks
}

/// The audit of a place, once its engine has ended.
pub(crate) fn audit(place: &Place) -> Vec<AuditRow> {
    let store = tiller_store::Store::open(&place.db(), tiller_store::Options::default()).unwrap();
    store.audit().list(None, "", 500).unwrap()
}
