//! Why a reply ended early.

use super::{CellCx, CellLayout, INDENT};
use crate::model::conversation::ReplyEnd;
use crate::text::clean;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::sign;

/// In words.
pub(super) fn words(end: &ReplyEnd) -> String {
    match end {
        ReplyEnd::Interrupted => "You stopped the reply; what had arrived was kept".into(),
        ReplyEnd::Cut(why) => format!("The reply was cut off: {}", clean::plain(why)),
        ReplyEnd::MaxTokens => "The model reached its output limit".into(),
        ReplyEnd::Refusal(why) if why.is_empty() => "The model declined".into(),
        ReplyEnd::Refusal(why) => format!("The model declined: {}", clean::plain(why)),
    }
}

pub(super) fn lay(end: &ReplyEnd, cx: &CellCx<'_>) -> CellLayout {
    let (sign, role) = match end {
        ReplyEnd::Interrupted => (sign::EMPTY, Role::Dim),
        _ => (sign::FAILED, Role::Error),
    };
    let mut laid = CellLayout::of(vec![Line::strict(&words(end), Look::of(role), Wrap::Word)], cx, INDENT);
    laid.mark = Some((sign.text(cx.ascii), role));
    laid
}
