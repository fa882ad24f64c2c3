//! Something went wrong: cause, what to do, details when unfolded elsewhere (the error log).

use std::borrow::Cow;

use tiller_protocol::notice::{says_continue, sentence};
use tiller_protocol::{Notice, NoticeKind};

use super::{CellCx, CellLayout, INDENT};
use crate::text::clean::lines;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::sign;

/// A hint that says to continue, with the command that does it here.
fn with_command(hint: &str) -> Cow<'_, str> {
    match says_continue(hint) {
        true => Cow::Owned(hint.replacen("continue", "/continue", 1)),
        false => Cow::Borrowed(hint),
    }
}

pub(super) fn lay(notice: &Notice, cx: &CellCx<'_>) -> CellLayout {
    let role = match notice.kind {
        NoticeKind::Info => Role::Dim,
        NoticeKind::Budget | NoticeKind::Denied => Role::Waiting,
        _ => Role::Error,
    };
    let mut all: Vec<Line> =
        lines(&sentence(&notice.message)).map(|l| Line::strict(l, Look::of(role), Wrap::Word)).collect();
    for hint in &notice.hints {
        for (n, text) in lines(&sentence(&with_command(hint))).enumerate() {
            let line = Line::strict(text, Look::of(Role::Text), Wrap::Word);
            let sign = if n == 0 { sign::CHILD.text(cx.ascii) } else { " " };
            all.push(line.gutter(Gutter::new(format!("{sign} "), Role::Dim)));
        }
    }
    let mut laid = CellLayout::of(all, cx, INDENT);
    // Only what went wrong calls for the person.
    let sign = match notice.kind {
        NoticeKind::Info => sign::DOT,
        NoticeKind::Budget | NoticeKind::Denied => sign::ATTENTION,
        _ => sign::FAILED,
    };
    laid.mark = Some((sign.text(cx.ascii), role));
    laid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_to_continue_names_the_command() {
        assert_eq!(with_command("continue to ask again"), "/continue to ask again");
        assert_eq!(with_command("then continue: it goes on"), "then /continue: it goes on");
        assert_eq!(with_command("they continue to run"), "they continue to run");
    }
}
