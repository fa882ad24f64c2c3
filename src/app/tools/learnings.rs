//! Learnings and rules of memory files: their tools, and what the engine gets.

use std::path::PathBuf;
use std::sync::Arc;

use tiller_config::schema::ProviderKinds;
use tiller_memory::Learnings;
use tiller_memory::rules::{Promotions, RuleBook, RuleFile, WriteText};
use tiller_memory::{LearningsSlot, learning_tools};
use tiller_permit::Effect;
use tiller_permit::rules::rulefile::{with_rule, without_deny};
use tiller_protocol::ToolCatalog;
use tiller_store::Store;
use tiller_tool::Registry;

use crate::app::Setup;

/// Adds the tools. They have no learnings until [`service`] gives them some.
pub(crate) fn add(registry: &mut Registry) -> LearningsSlot {
    let slot = LearningsSlot::default();
    learning_tools(&slot).into_iter().for_each(|tool| registry.push(tool));
    slot
}

/// The learnings of this person, with the rules of the memory files in use.
/// `reload`: reads the hooks of the settings again.
pub(crate) fn service(setup: &Setup, store: &Store, reload: Arc<dyn Fn() + Send + Sync>) -> Arc<Learnings> {
    let config = &setup.places.config;
    let tools = setup.tools.catalog();
    let (permissions, settings) = (crate::app::rules::file(config), config.join(tiller_config::FILE));
    let promotions = Promotions {
        permissions: RuleFile {
            file: permissions.display().to_string(),
            write: permission_writer(permissions, tools.clone()),
        },
        hooks: RuleFile {
            file: settings.display().to_string(),
            write: hook_writer(settings, setup.formats.kinds(), reload),
        },
    };
    let memory = Arc::clone(&setup.services.memory);
    let learnings = Learnings::new(store.clone(), Arc::clone(&setup.clock))
        .with_rules(RuleBook::new(Arc::clone(&memory), tools), Some(promotions))
        .finding_secrets(Arc::new(move |text: &str| memory.secret_in(text)));
    let learnings = Arc::new(learnings);
    // A process opens one database.
    let _ = setup.services.learnings.set(Arc::clone(&learnings));
    learnings
}

/// Adds a deny rule to the person's file, or takes it out, without changing anything else in it.
fn permission_writer(path: PathBuf, tools: ToolCatalog) -> WriteText {
    Arc::new(move |pattern, add| {
        let old = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(format!("{} could not be read: {e}", path.display())),
        };
        let new = if add {
            with_rule(&old, Effect::Deny, pattern, &tools)
        } else {
            without_deny(&old, pattern, &tools)
        };
        let new = new.map_err(|e| format!("{}, {e}", path.display()))?;
        tiller_config::write_private(&path, &new).map_err(|e| e.to_string())
    })
}

/// Adds hooks to the person's settings, or takes them out; from then on they are in force, or no longer.
fn hook_writer(path: PathBuf, kinds: ProviderKinds, reload: Arc<dyn Fn() + Send + Sync>) -> WriteText {
    Arc::new(move |tables, add| {
        tiller_config::set_tables(&path, tables, add, &kinds)
            .map_err(|e| format!("{}: {e}", path.display()))?;
        reload();
        Ok(())
    })
}
