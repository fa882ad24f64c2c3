//! A project's hooks: the file, and whether what it runs is still what the user trusted.

use std::path::Path;
use std::sync::Arc;

use tiller_config::schema;
use tiller_permit::trust::{FolderConfig, discover};
use tiller_protocol::ToolCatalog;
use tiller_protocol::ask::TrustKind;

use crate::list::ChangedFile;

/// The file in the project.
pub const PROJECT: &str = ".tiller/hooks.toml";

/// Reads the file.
///
/// # Errors
/// A sentence with the line.
pub fn read(text: &str) -> Result<schema::Hooks, String> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        // The first line says what; the rest would quote the text.
        format!("line {line}: {}", e.message().lines().next().unwrap_or("invalid TOML"))
    })
}

/// Compares the files of hooks in `folder` with those of `trusted`.
pub fn changed(folder: &Path, trusted: &FolderConfig, tools: &ToolCatalog) -> ChangedFile {
    let hooks = |config: &FolderConfig| -> Vec<(String, String)> {
        let of = |kind: &TrustKind| matches!(kind, TrustKind::Hooks | TrustKind::Hook);
        let found = config.found.iter().filter(|f| of(&f.item.kind));
        found.map(|f| (f.item.path.clone(), f.item.hash.clone())).collect()
    };
    let (folder, tools, before) = (folder.to_owned(), tools.clone(), hooks(trusted));
    Arc::new(move || {
        let now = hooks(&discover(&folder, &tools));
        let differs = |(path, hash): &&(String, String)| !before.iter().any(|(p, h)| p == path && h == hash);
        let gone = |(path, _): &&(String, String)| !now.iter().any(|(p, _)| p == path);
        let found = now.iter().find(differs).or_else(|| before.iter().find(gone));
        found.map(|(path, _)| path.clone())
    })
}
