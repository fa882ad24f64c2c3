//! Reasoning: one row, unless unfolded.

use super::{CellCx, CellLayout, INDENT};
use crate::text::clean::lines;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::sign;

pub(super) fn lay(text: &str, took: Option<f64>, open: bool, cx: &CellCx<'_>) -> CellLayout {
    let look = Look::of(Role::Thinking);
    let mut head = String::from(if open { "thinking" } else { "thought" });
    match took.map(|s| s.round() as u64).filter(|s| *s > 0) {
        Some(s) if s < 60 => head.push_str(&format!(" for {s} s")),
        Some(s) => head.push_str(&format!(" for {}", super::seconds(s as f64))),
        None => {}
    }
    if text.is_empty() && !open {
        head.push_str(", not disclosed by the provider");
    }
    let mut all = vec![Line::strict(&head, look, Wrap::Word)];
    if cx.unfolded {
        for l in lines(text) {
            let mut line = Line::default();
            line.push(l, look.italic());
            all.push(line);
        }
    }
    let mut laid = CellLayout::of(all, cx, INDENT);
    laid.mark = open.then(|| (sign::FULL.text(cx.ascii), Role::Running));
    laid
}
