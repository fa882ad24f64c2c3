//! A tool that panics fails its call, not the session.

use std::any::Any;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde_json::Value;
use tiller_protocol::mask::{has_mask, masks};
use tiller_protocol::{Access, Part, Touch};

use crate::shell::elsewhere;
use crate::text::visible;
use crate::{Tool, ToolCx, ToolError, ToolOutput};

/// The remark for the model below text with masks in it; it appears once.
pub const MASKED: &str = "[Values masked as [redacted ...] are kept in the file: write_file, edit_file and patch restore the real \
                      value wherever a mask is unchanged (not in files above 4 MiB).]";

/// Runs a tool; a panic in it becomes an error for the model, and no control character of a hostile name or
/// file gets through to the model, whatever the tool forgot.
///
/// # Errors
/// Those of the tool, and [`ToolError::Tell`] after a panic.
pub async fn run_guarded(tool: &dyn Tool, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
    // Asking the user and keeping the plan need no folder.
    if tool.touch() != Touch::Plan
        && let Some(why) = cx.workspace.moved()
    {
        return Err(tidied(ToolError::Tell(why)));
    }
    elsewhere::before(tool.touch(), cx).await?;
    let result = run_alone(tool, args, cx).await;
    elsewhere::after(tool.touch(), result, cx).await
}

/// [`run_guarded`], with the files as they are here.
async fn run_alone(tool: &dyn Tool, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
    // The tool's own state is behind locks that are taken over when poisoned.
    match AssertUnwindSafe(async { tool.run(args, cx).await }).catch_unwind().await {
        Ok(Ok(mut out)) => {
            for part in &mut out.content {
                if let Part::Text { text } = part {
                    tidy(text);
                }
            }
            if matches!(tool.touch(), Touch::Read | Touch::Execute)
                && out.content.iter().any(|p| masked(p, cx))
            {
                out.content.push(Part::Text { text: MASKED.into() });
            }
            Ok(out)
        }
        Ok(Err(error)) => Err(tidied(error)),
        Err(panic) => Err(panicked(tool.verb().word(), &*panic)),
    }
}

/// What a call declares; a panic in it becomes an error for the model.
///
/// # Errors
/// Those of the tool, and [`ToolError::Tell`] after a panic.
pub fn access_guarded(tool: &dyn Tool, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
    match std::panic::catch_unwind(AssertUnwindSafe(|| tool.access(args, cx))) {
        Ok(result) => result.map_err(tidied),
        Err(panic) => Err(panicked(tool.verb().word(), &*panic)),
    }
}

/// Whether a model reads masks in it.
fn masked(part: &Part, cx: &ToolCx) -> bool {
    let Part::Text { text } = part else { return false };
    has_mask(text) || !(cx.workspace.secrets)(text).is_empty()
}

/// Refuses words for a program, such as a command, that hold a mask: the program would take the mask for the value, and
/// write it where the value stands.
///
/// # Errors
/// [`ToolError::Tell`] with the mask.
pub(crate) fn no_masks(words: &str) -> Result<(), ToolError> {
    match masks(words).next() {
        None => Ok(()),
        Some(at) => Err(ToolError::Tell(format!(
            "nothing was run: {} is a mask for a value that you are not shown, and a program would take it for \
             the value itself. Let the program read the value from its source, change the file with edit_file, which \
             keeps masked values, or ask the user.",
            &words[at]
        ))),
    }
}

fn tidied(mut error: ToolError) -> ToolError {
    let (ToolError::Tell(text)
    | ToolError::Interrupted(text)
    | ToolError::TimedOut(text)
    | ToolError::Declined(text)
    | ToolError::Unanswered(text)) = &mut error;
    tidy(text);
    error
}

fn tidy(text: &mut String) {
    if let Cow::Owned(clean) = visible(text) {
        *text = clean;
    }
}

/// Runs blocking work off the async threads; a panic in it becomes an error too. When the call is dropped
/// the work goes on to its end, so long work must look at the cancellation token.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) if e.is_panic() => Err(panicked(what, &*e.into_panic())),
        Err(_) => Err(ToolError::Interrupted(String::new())),
    }
}

fn panicked(what: &str, panic: &(dyn Any + Send)) -> ToolError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(tool = what, panic = text, "a tool panicked");
    ToolError::Tell(format!(
        "the tool failed internally ({what}): {text}. This is a bug in Tiller; try another way."
    ))
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
