//! What an agent has seen so far, for the use of its result for an alike task.

use tiller_protocol::{EntryBody, ToolSet, names};

use crate::core::Core;
use crate::crew::inputs::Inputs;
use crate::lock::lock;

/// Tools whose reading and writing the workspace keeps file by file.
const BY_FILE: &[&str] = &["read_file", "write_file", "edit_file", "patch"];

/// Of the agent of this loop.
pub(super) fn inputs(core: &Core) -> Inputs {
    let catalog = core.services.tools.all.catalog();
    let looks_around = |name: &str| match catalog.get(name).map(|tool| tool.set) {
        Some(ToolSet::Plan | ToolSet::Memory | ToolSet::Web | ToolSet::Browser | ToolSet::Media) => false,
        _ => !BY_FILE.contains(&name),
    };
    let calls: Vec<&str> = core
        .session
        .history
        .path
        .iter()
        .filter_map(|entry| match &entry.body {
            EntryBody::ToolResult { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let made = core.identity.child().map_or(0, |child| child.work.calls);
    // Calls that a compaction took out of the path are not known any more.
    let lost = u32::try_from(calls.len()).is_ok_and(|known| known < made);
    let more = lost || core.identity.external().is_some() || calls.into_iter().any(looks_around);
    let seen = lock(&core.services.workspace.seen);
    let files = seen.iter().map(|(path, file)| (names::written(path), hex(&file.hash))).collect();
    let changed = core.identity.child().is_some_and(|child| !child.files.is_empty());
    Inputs { files, more, changed }
}

fn hex(hash: &[u8; 32]) -> String {
    blake3::Hash::from(*hash).to_hex().to_string()
}
