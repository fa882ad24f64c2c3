//! Memory across sessions, and its tool.

use std::path::Path;
use std::sync::Arc;

use tiller_config::{Config, Places};
use tiller_memory::files::FindSecret;
use tiller_memory::{Memory, MemoryPlaces, MemorySettings};
use tiller_permit::Redactor;
use tiller_permit::trust::Status;
use tiller_protocol::{Clock, MemoryScope, MemoryTarget};
use tiller_store::Store;
use tiller_tool::{Registry, Secrets};

use crate::app::Setup;

/// Makes the memory of this process and adds its tool. Reads no file.
pub(crate) fn add(
    registry: &mut Registry,
    config: &Config,
    places: &Places,
    project: &Path,
    clock: &Arc<dyn Clock>,
    secrets: &[String],
) -> Arc<Memory> {
    let places = MemoryPlaces {
        data: places.data.clone(),
        settings: places.config.clone(),
        project: Some(project.to_owned()),
    };
    let redactor = Redactor::new(secrets.to_vec());
    let secret: FindSecret = Arc::new(move |text: &str| redactor.secrets(text).first().map(|s| s.name));
    let memory = Arc::new(Memory::new(places, Arc::clone(clock), secret, MemorySettings::of(config)));
    tiller_memory::tools(Arc::clone(&memory)).into_iter().for_each(|tool| registry.push(tool));
    memory
}

/// Keeps the origin of entries in the store, and uses the files of the folder where they may be used.
pub(crate) fn open(setup: &Setup, store: &Store, status: &Status, secrets: Secrets) {
    let memory = &setup.services.memory;
    memory.open(store.clone());
    memory.find_secrets(Arc::new(move |text: &str| secrets(text).first().map(|s| s.name)));
    if may_use(setup, store, status) {
        memory.trust_project();
    }
}

/// Whether the folder's own memory files may be used: it is trusted; or it brings nothing that needs trust, and the files are
/// not there yet or were made here. Files that came with a repository are not used before the user trusts it.
pub(crate) fn may_use(setup: &Setup, store: &Store, status: &Status) -> bool {
    match status {
        Status::Trusted => true,
        Status::Nothing => {
            MemoryTarget::ALL.iter().filter(|t| t.scope == MemoryScope::Project).all(|target| {
                let path = setup.project.join(target.label());
                let made_here = || {
                    let path = path.to_string_lossy().into_owned();
                    store.memory_changes().of_files(&[path]).is_ok_and(|changes| !changes.is_empty())
                };
                std::fs::symlink_metadata(&path).is_err() || made_here()
            })
        }
        Status::New | Status::Changed(_) | Status::Never => false,
    }
}
