//! Memory across sessions, and its tool.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use tiller_config::{Config, Places};
use tiller_memory::files::{Document, Entry, is_written_here};
use tiller_memory::{Memory, MemoryPlaces, MemorySettings};
use tiller_permit::Redactor;
use tiller_permit::trust::{FolderConfig, Status, agreed_line};
use tiller_protocol::{Clock, MemoryScope, MemoryTarget};
use tiller_store::{Store, TrustRow};
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
    let secret = super::skills::find_secret(&Arc::new(Redactor::new(secrets.to_vec())));
    let memory = Arc::new(Memory::new(places, Arc::clone(clock), secret, MemorySettings::of(config)));
    tiller_memory::tools(Arc::clone(&memory)).into_iter().for_each(|tool| registry.push(tool));
    memory
}

/// Keeps the origin of entries in the store, and uses the files of the folder if they may be used (`own_files`).
pub(crate) fn open(setup: &Setup, store: &Store, own_files: bool, secrets: Secrets) {
    let memory = &setup.services.memory;
    memory.open(store.clone());
    memory.find_secrets(Arc::new(move |text: &str| secrets(text).first().map(|s| s.name)));
    if own_files {
        trust(memory, &setup.folder_config);
    } else if let Ok(Some(agreed)) = store.trust().get(&setup.project_name())
        && agreed.trusted
    {
        keep_agreed(memory, &setup.folder_config, &agreed);
    }
}

/// Uses the files of the folder, with the lines that they have in `folder_config`: another line that was not written here stands
/// in no prompt.
pub(crate) fn trust(memory: &Memory, folder_config: &FolderConfig) {
    memory.agree_project(lines(folder_config).map(|(_, line)| line));
    memory.trust_project();
}

/// Uses the files of a folder of which something changed since the user's yes, with the lines that were agreed to: rules among
/// them stay in force.
fn keep_agreed(memory: &Memory, folder_config: &FolderConfig, agreed: &TrustRow) {
    let is_agreed = |(label, line): &(&str, String)| {
        agreed.items.iter().any(|item| item.path == *label && agreed_line(&item.hash, line))
    };
    let known: Vec<String> = lines(folder_config).filter(is_agreed).map(|(_, line)| line).collect();
    if !known.is_empty() {
        memory.agree_project(known.into_iter());
        memory.trust_project();
    }
}

/// The lines of the folder's memory files, each with the name of its file.
fn lines(folder_config: &FolderConfig) -> impl Iterator<Item = (&'static str, String)> {
    let project = MemoryTarget::ALL.iter().filter(|t| t.scope == MemoryScope::Project);
    project.flat_map(|target| {
        let text = folder_config.bytes(target.label()).map(String::from_utf8_lossy).unwrap_or_default();
        Document::parse(&text).lines().map(|line| (target.label(), line)).collect::<Vec<_>>()
    })
}

/// Whether the folder's own memory files may be used: the user trusts the folder, or it brings nothing that needs trust. Files
/// that came with a repository are not used before the user trusts it.
pub(crate) fn may_use(status: &Status) -> bool {
    matches!(status, Status::Trusted | Status::Nothing)
}

/// What a folder brings, without the memory files that were made on this machine: Tiller wrote each of their entries. An entry
/// that came another way, such as with `git pull`, makes the file one that the folder brings.
pub(crate) fn without_own(folder_config: FolderConfig, folder: &Path, store: &Store) -> FolderConfig {
    let project = MemoryTarget::ALL.iter().filter(|t| t.scope == MemoryScope::Project);
    project.fold(folder_config, |folder_config, target| {
        let path = folder.join(target.label()).to_string_lossy().into_owned();
        let Some(bytes) = folder_config.bytes(target.label()) else { return folder_config };
        let document = Document::parse(&String::from_utf8_lossy(bytes));
        // What cannot be read of the database was not written here.
        let changes = store.memory_changes().of_files(&[path]).unwrap_or_default();
        let own = changes.into_iter().filter(is_written_here).filter_map(|c| c.added);
        let lines: HashSet<String> = own.map(|line| Entry::of_line(&line).line()).collect();
        let mut foreign: Vec<String> = document.lines().filter(|line| !lines.contains(line)).collect();
        foreign.sort();
        foreign.dedup();
        let mut folder_config = folder_config;
        folder_config.set_lines(target.label(), &foreign);
        if foreign.is_empty() { folder_config.without_memory(target.label()) } else { folder_config }
    })
}
