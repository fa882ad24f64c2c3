//! The model's words.

use super::{CellCx, INDENT, Inner, Laid};
use crate::text::markdown::{Doc, Opts};
use crate::theme::Role;

pub(super) fn lay(text: &str, open: bool, cx: &CellCx<'_>, old: Option<Laid>) -> Laid {
    let opts =
        Opts { columns: cx.prose().saturating_sub(INDENT).max(1), ascii: cx.ascii, tables_as_text: false };
    let doc = match old {
        Some(Laid { inner: Inner::Doc(doc), .. }) if doc.opts() == opts => Some(*doc),
        _ => None,
    };
    let mut doc = doc.unwrap_or_else(|| Doc::new(opts));
    doc.update(text, !open);
    let mut laid = Laid::doc(doc, cx);
    laid.mark = cx.lead.then_some(("* ", Role::Agent));
    laid
}
