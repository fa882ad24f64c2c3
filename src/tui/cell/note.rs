//! Small lines: notes, checkpoints, the demo label.

use super::{CellCx, CellLayout, INDENT};
use crate::text::clean::lines;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::sign;

pub(super) fn lay(text: &str, cx: &CellCx<'_>) -> CellLayout {
    let all = lines(text).map(|l| Line::strict(l, Look::of(Role::Dim), Wrap::Word)).collect();
    let mut laid = CellLayout::of(all, cx, INDENT);
    laid.mark = Some((sign::DOT.text(cx.ascii), Role::Dim));
    laid
}

/// Stands for entries that are not loaded.
pub(super) fn not_loaded(entries: u64) -> String {
    format!("{entries} entries in between are not loaded")
}

pub(super) fn checkpoint(name: &str, cx: &CellCx<'_>) -> CellLayout {
    let mut line = Line::strict("Checkpoint ", Look::of(Role::Dim), Wrap::Word);
    line.push_strict(name, Look::of(Role::Strong));
    let mut laid = CellLayout::of(vec![line], cx, INDENT);
    laid.mark = Some((sign::EMPTY.text(cx.ascii), Role::Dim));
    laid
}

/// The label of each turn of the demo model.
pub(super) fn demo(cx: &CellCx<'_>) -> CellLayout {
    let mut line = Line::strict("demo", Look::of(Role::Demo), Wrap::Word);
    line.push(" a script, not a language model", Look::of(Role::Dim));
    CellLayout::of(vec![line], cx, INDENT)
}
