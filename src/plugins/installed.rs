//! The plugins in their folder, and whether each is exactly what the user agreed to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::PluginPlace;
use tiller_permit::trust::{FolderConfig, Status, TrustDecision, discover_for, status};

use crate::manifest::{MANIFEST, Manifest, parse, read};

/// Behind the folder's path in the name of a decision: no real path holds two slashes.
const DECISION: &str = "//plugin";
/// Most plugins that are looked at.
const MOST: usize = 200;

/// Whether a plugin may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginState {
    /// All of its files are as the user agreed to them.
    Trusted,
    /// It is in the folder, and the user never agreed to it.
    New,
    /// Files differ from those that the user agreed to: the first of them.
    Changed(String),
    /// It holds what cannot be bound to its content: a link, a file that is too large, too many files.
    Refused(String),
}

/// A plugin in the folder of plugins.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The name of its folder.
    pub name: String,
    pub folder: PathBuf,
    /// An error is a sentence.
    pub manifest: Result<Manifest, String>,
    pub state: PluginState,
    /// All of its files, hashed.
    pub files: FolderConfig,
}

/// The name under which the decision about a plugin is stored.
pub fn decision_name(folder: &Path) -> String {
    format!("{}{DECISION}", tiller_protocol::names::written(folder))
}

/// Whether a stored decision is about a plugin.
pub fn is_decision(name: &str) -> bool {
    name.ends_with(DECISION)
}

/// Looks at one folder. `decided`: the decision of this name.
pub fn look(folder: &Path, decided: &dyn Fn(&str) -> Option<TrustDecision>) -> Installed {
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let files = files(folder);
    let stored = decided(&decision_name(folder));
    let refused = files.found.iter().find(|f| f.bytes.is_none());
    let state = match (refused, status(&files, stored.as_ref())) {
        _ if files.too_much => PluginState::Refused("it has too many files".into()),
        (Some(file), _) => PluginState::Refused(format!("{} is a link, or too large", file.item.path)),
        (None, Status::Trusted) => PluginState::Trusted,
        (None, Status::Changed(changes)) => PluginState::Changed(first(&changes)),
        (None, Status::Nothing | Status::New | Status::Never) => PluginState::New,
    };
    // From the bytes that were hashed: the file may have changed since.
    let manifest = match files.bytes(MANIFEST) {
        Some(bytes) => parse(bytes),
        None if files.too_much || refused.is_some() => read(folder),
        None => Err(format!("there is no {MANIFEST}")),
    };
    let manifest = manifest.and_then(|manifest| match manifest.name == name {
        true => Ok(manifest),
        false => Err(format!("it is named {}, but its folder {name}", manifest.name)),
    });
    Installed { name, folder: folder.to_owned(), manifest, state, files }
}

fn first(changes: &[tiller_permit::trust::Change]) -> String {
    use tiller_permit::trust::Change;
    match changes.first() {
        Some(Change::Added(path) | Change::Changed(path) | Change::Removed(path)) => path.clone(),
        None => "its files".into(),
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> FolderConfig {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> =
        entries.map(|e| tiller_protocol::names::written(Path::new(&e.file_name()))).collect();
    discover_for(folder, &names)
}

/// All plugins in `home`, by name.
pub fn all(home: &Path, decided: &dyn Fn(&str) -> Option<TrustDecision>) -> Vec<Installed> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path());
    let mut folders: Vec<PathBuf> =
        folders.filter(|f| !f.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."))).collect();
    folders.sort();
    folders.truncate(MOST);
    folders.iter().map(|folder| look(folder, decided)).collect()
}

impl Installed {
    /// Its folder, with what its files were when it was looked at.
    pub fn in_use(&self) -> PluginPlace {
        let known = self.files.found.iter().filter(|file| file.bytes.is_some());
        let hashes = known.map(|file| (file.item.path.clone(), file.item.hash.clone())).collect();
        PluginPlace { folder: self.folder.clone(), hashes: Arc::new(hashes) }
    }

    /// The folder that a plugin of this name has.
    pub fn place(home: &Path, name: &str) -> PathBuf {
        home.join(name)
    }
}
