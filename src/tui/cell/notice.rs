//! Something went wrong: cause, what to do, details when unfolded elsewhere (the error log).

use tiller_protocol::{Notice, NoticeKind};

use super::{CellCx, INDENT, Laid};
use crate::text::clean::lines;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::theme::Role;

pub(super) fn lay(notice: &Notice, cx: &CellCx<'_>) -> Laid {
    let role = match notice.kind {
        NoticeKind::Info => Role::Dim,
        NoticeKind::Budget | NoticeKind::Denied => Role::Waiting,
        _ => Role::Error,
    };
    let mut all: Vec<Line> =
        lines(&notice.message).map(|l| Line::strict(l, Look::of(role), Wrap::Word)).collect();
    for hint in &notice.hints {
        let line = Line::strict(hint, Look::of(Role::Text), Wrap::Word);
        all.push(line.gutter(Gutter::new("-> ", Role::Dim)));
    }
    let mut laid = Laid::of(all, cx, INDENT);
    // Only what went wrong calls for the person.
    laid.mark = Some((if notice.kind == NoticeKind::Info { "- " } else { "! " }, role));
    laid
}
