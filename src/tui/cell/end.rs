//! Why a reply ended early.

use super::{CellCx, INDENT, Laid};
use crate::model::conversation::End;
use crate::text::clean;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;

/// In words.
pub(super) fn words(end: &End) -> String {
    match end {
        End::Interrupted => "stopped by you; what had arrived was kept".into(),
        End::Cut(why) => format!("cut off: {}", clean::plain(why)),
        End::MaxTokens => "the model reached its output limit".into(),
        End::Refusal(why) if why.is_empty() => "the model declined".into(),
        End::Refusal(why) => format!("the model declined: {}", clean::plain(why)),
    }
}

pub(super) fn lay(end: &End, cx: &CellCx<'_>) -> Laid {
    let role = if *end == End::Interrupted { Role::Skipped } else { Role::Error };
    let mut laid = Laid::of(vec![Line::strict(&words(end), Look::of(role), Wrap::Word)], cx, INDENT);
    laid.mark = Some(("- ", role));
    laid
}
