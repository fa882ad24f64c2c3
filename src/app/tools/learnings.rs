//! Learnings and rules of memory files: their tools, and what the engine gets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_memory::Learnings;
use tiller_memory::learnings::Promotion;
use tiller_memory::rules::RuleBook;
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

/// The learnings of this person, with the rules of their memory files and, where the folder is trusted, of the project's.
pub(crate) fn service(setup: &Setup, store: &Store, trusted: bool) -> Arc<Learnings> {
    let named = |folder: &Path, name: &str, shown: &str| (folder.join(name), shown.to_owned());
    let (data, config) = (&setup.places.data, &setup.places.config);
    let mut files: Vec<(PathBuf, String)> = vec![
        named(data, "MEMORY.md", "MEMORY.md"),
        named(data, "USER.md", "USER.md"),
        named(config, "USER.md", "USER.md"),
    ];
    if trusted {
        let own = setup.project.join(".tiller");
        files.push(named(&own, "MEMORY.md", ".tiller/MEMORY.md"));
        files.push(named(&own, "USER.md", ".tiller/USER.md"));
    }
    files.dedup_by(|a, b| a.0 == b.0);
    let tools = setup.tools.catalog();
    let file = config.join("permissions.yaml");
    let promotion = Promotion { file: file.display().to_string(), write: writer(file, tools.clone()) };
    let learnings = Learnings::new(store.clone(), Arc::clone(&setup.clock))
        .with_rules(RuleBook::new(files, tools), Some(promotion));
    let learnings = Arc::new(learnings);
    // A process opens one database.
    let _ = setup.services.learnings.set(Arc::clone(&learnings));
    learnings
}

/// Adds a deny rule to the person's file, or takes it out, without changing anything else in it.
fn writer(path: PathBuf, tools: ToolCatalog) -> tiller_memory::learnings::WriteRule {
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
