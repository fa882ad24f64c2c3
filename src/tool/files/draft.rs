//! The drafts that a call makes of the files that it would write.

use std::sync::Arc;

use serde_json::Value;

use crate::files::change::commit::Change;
use crate::files::change::ledger;
use crate::files::drafts::Drafts;
use crate::files::{patch, write};
use crate::guard::blocking;
use crate::{CommandRun, ToolCx, ToolError};

/// Lays what a call of `tool` would write over the files that later calls with these drafts read. Of a call that writes no
/// files by its own arguments nothing is known.
///
/// # Errors
/// Says why it is not known what the call would write.
pub(crate) async fn draft(
    tool: &str,
    args: &Value,
    drafts: Arc<Drafts>,
    cx: &ToolCx,
) -> Result<(), ToolError> {
    let mut cx = cx.clone();
    cx.run = Arc::new(CommandRun::over(Some(Arc::clone(&drafts))));
    let (tool, args) = (tool.to_owned(), args.clone());
    blocking("draft", move || {
        let edits = match tool.as_str() {
            "write_file" => write::planned(&args, &cx)?.into_iter().collect(),
            "patch" => patch::planned(&args, &cx)?,
            _ => Vec::new(),
        };
        for edit in edits {
            match &edit.change {
                Change::Create { bytes, .. } | Change::Replace { bytes, .. } => {
                    let put = drafts.put(&edit.place.named, bytes);
                    let at = put.map_err(|e| ToolError::Tell(format!("{}: {e}", edit.place.name)))?;
                    // Content that the script has written counts as read.
                    ledger::note(&cx.workspace, &at, bytes);
                }
                Change::Remove { .. } => drafts.remove(&edit.place.named),
            }
        }
        Ok(())
    })
    .await
}
