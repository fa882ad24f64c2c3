//! The question before a command loses many files.

use std::sync::Arc;

use crate::ToolCx;
use crate::shell::confined::watch::{Deletion, DeletionGuard};

/// The guard of the commands of this call. The question goes to the person; without an answer it is a no. The answer
/// stands in the audit of the call.
pub(crate) fn guard(cx: &ToolCx) -> DeletionGuard {
    let limit = cx.limits.deletions;
    let runtime = tokio::runtime::Handle::try_current().ok();
    let cx = cx.clone();
    let answer = move |deletion: Deletion| {
        let count = deletion.removed.len() + deletion.next.len();
        let yes = runtime.as_ref().is_some_and(|runtime| {
            runtime.block_on(async {
                tokio::select! {
                    yes = cx.ports.confirm_deletion(&cx.agent, deletion) => yes,
                    () = cx.cancel.cancelled() => false,
                }
            })
        });
        let word = if yes { "allowed" } else { "stopped" };
        cx.run.note(format!("removal of {count} files and more {word}"));
        yes
    };
    DeletionGuard { limit, answer: Arc::new(answer) }
}
