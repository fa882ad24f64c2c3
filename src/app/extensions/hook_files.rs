//! Files that hooks run: no tool and no confined command writes them.

use std::path::PathBuf;

use tiller_config::schema;
use tiller_hooks::file;
use tiller_permit::trust::FolderConfig;
use tiller_permit::{hook_files, pin};

use crate::app::Setup;

/// The files of the folder that the hooks of the settings and of the folder run, relative to it. The folder need not be
/// trusted yet: its hooks may be while the session runs.
pub(crate) fn of(setup: &Setup) -> Vec<PathBuf> {
    let text = setup.folder_config.bytes(file::PROJECT).map(String::from_utf8_lossy).unwrap_or_default();
    let project = file::read(&text).unwrap_or_default();
    let commands = file::commands(&setup.config.config.hooks).chain(file::commands(&project));
    let run = |command| {
        let known = hook_files::run(&setup.project, command).into_iter();
        known.chain(pin::runs(&setup.project, command))
    };
    let mut files: Vec<PathBuf> = commands.flat_map(run).collect();
    files.retain(|path| setup.project.join(path).is_file());
    files.sort();
    files.dedup();
    files
}

/// The hooks in the folder's file, from the bytes that were hashed; `None`: there is no such file.
///
/// # Errors
/// The file and why, without a full stop.
pub(crate) fn read_project(folder_config: &FolderConfig) -> Result<Option<schema::Hooks>, String> {
    let Some(text) = folder_config.text(file::PROJECT)? else { return Ok(None) };
    file::read(&text).map(Some).map_err(|why| format!("{}, {why}", file::PROJECT))
}
