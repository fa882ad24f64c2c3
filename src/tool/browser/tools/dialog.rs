//! The answer to dialogs that a page opens during a call.

use serde::Deserialize;

use crate::ToolError;
use crate::browser::page::DialogAnswer;
use crate::guard::no_masks;

/// How a dialog is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    Accept,
    Dismiss,
}

/// The answer by the arguments of a call; `None`: the call says nothing. A text alone accepts.
///
/// # Errors
/// When they contradict each other, or the text holds a mask.
pub(super) fn answer(dialog: Option<Answer>, text: Option<&str>) -> Result<Option<DialogAnswer>, ToolError> {
    no_masks(text.unwrap_or_default())?;
    match (dialog, text) {
        (Some(Answer::Dismiss), Some(_)) => {
            Err(ToolError::Tell("a dialog that is dismissed takes no dialog_text".into()))
        }
        (None, None) => Ok(None),
        (dialog, text) => {
            let accept = dialog != Some(Answer::Dismiss);
            Ok(Some(DialogAnswer { accept, text: text.map(str::to_owned) }))
        }
    }
}
