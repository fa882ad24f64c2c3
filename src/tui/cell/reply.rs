//! A reply of the model.

use super::{CellCx, CellLayout, CellRows, INDENT};
use crate::text::markdown::{Doc, Opts};

pub(super) fn lay(text: &str, open: bool, cx: &CellCx<'_>, old: Option<CellLayout>) -> CellLayout {
    let opts =
        Opts { columns: cx.prose().saturating_sub(INDENT).max(1), ascii: cx.ascii, tables_as_text: false };
    let doc = match old {
        Some(CellLayout { inner: CellRows::Doc(doc), .. }) if doc.opts() == opts => Some(*doc),
        _ => None,
    };
    let mut doc = doc.unwrap_or_else(|| Doc::new(opts));
    doc.update(text, !open);
    CellLayout::doc(doc, cx)
}
