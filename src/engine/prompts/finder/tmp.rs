//! Completes `@/tmp/` with what lies in the session's own `/tmp`.

use std::path::Path;

use tiller_fs::beneath;
use tiller_protocol::names;
use tiller_protocol::view::{Mention, MentionKind};
use tiller_tool::Workspace;

use super::{PREVIEW, file_tokens};

/// Most names of a folder that are looked at.
const NAMES: usize = 5_000;

/// Files and folders there whose path begins with `text`, those of one folder. Blocks.
pub(crate) fn temporary(workspace: &Workspace, text: &str, limit: usize) -> Vec<Mention> {
    let Some((folder, begun)) = text.rsplit_once('/') else { return Vec::new() };
    let listed = workspace.in_session_tmp(&names::path(folder)).and_then(|real| beneath::folder(&real).ok());
    let entries = listed.and_then(|folder| beneath::entries(&folder, NAMES).ok()).unwrap_or_default();
    let mut found: Vec<String> = entries
        .into_iter()
        .map(|(name, _)| names::written(Path::new(&name)))
        .filter(|name| name.starts_with(begun) && (begun.starts_with('.') || !name.starts_with('.')))
        .collect();
    found.sort();
    let named = found.iter().map(|name| format!("{folder}/{name}"));
    named.filter_map(|name| row(workspace, name)).take(limit).collect()
}

/// A file or folder that may be read.
fn row(workspace: &Workspace, name: String) -> Option<Mention> {
    let real = workspace.readable(&names::path(&name)).ok()?;
    let meta = real.symlink_metadata().ok()?;
    if meta.is_dir() {
        return Some(Mention {
            kind: MentionKind::Folder,
            name,
            size: None,
            tokens: None,
            preview: String::new(),
        });
    }
    let size = Some(meta.len()).filter(|_| meta.is_file())?;
    let head = beneath::read(&real, PREVIEW as u64).ok();
    let preview = head.and_then(|head| tiller_tool::files::readable(&head, true).ok()).map(|head| head.text);
    Some(Mention {
        kind: MentionKind::File,
        tokens: Some(file_tokens(&real, size)),
        name,
        size: Some(size),
        preview: preview.unwrap_or_default(),
    })
}
