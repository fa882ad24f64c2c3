//! Why a reply ended early.

use super::{CellCx, CellLayout, INDENT};
use crate::model::conversation::ReplyEnd;
use crate::text::clean;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;

/// In words.
pub(super) fn words(end: &ReplyEnd) -> String {
    match end {
        ReplyEnd::Interrupted => "stopped by you; what had arrived was kept".into(),
        ReplyEnd::Cut(why) => format!("cut off: {}", clean::plain(why)),
        ReplyEnd::MaxTokens => "the model reached its output limit".into(),
        ReplyEnd::Refusal(why) if why.is_empty() => "the model declined".into(),
        ReplyEnd::Refusal(why) => format!("the model declined: {}", clean::plain(why)),
    }
}

pub(super) fn lay(end: &ReplyEnd, cx: &CellCx<'_>) -> CellLayout {
    let role = if *end == ReplyEnd::Interrupted { Role::Dim } else { Role::Error };
    let mut laid = CellLayout::of(vec![Line::strict(&words(end), Look::of(role), Wrap::Word)], cx, INDENT);
    laid.mark = Some(("- ", role));
    laid
}
