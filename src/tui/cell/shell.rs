//! A command of the person's own.

use super::{CellCx, INDENT, Laid, output_lines};
use crate::model::conversation::Tail;
use crate::text::clean;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;

/// Lines that a folded cell shows.
const FOLDED: usize = 8;

pub(super) fn lay(line: &str, output: &Tail, exit: Option<i32>, shared: bool, cx: &CellCx<'_>) -> Laid {
    let mut head = Line::default();
    head.push_strict(line, Look::of(Role::User));
    let mut remark = String::new();
    if let Some(code) = exit.filter(|c| *c != 0) {
        remark.push_str(&format!("  exit {code}"));
    }
    if !shared {
        remark.push_str("  private");
    }
    head.push(&remark, Look::of(Role::Dim));
    let mut all = vec![head];
    let lines: Vec<&str> = clean::lines(output.text()).collect();
    let from = if cx.unfolded { 0 } else { lines.len().saturating_sub(FOLDED) };
    let more = from as u64 + output.dropped();
    if more > 0 {
        let key = if cx.unfolded { String::new() } else { format!(", {}", cx.unfold_key) };
        all.push(Line::strict(&format!("(+{more} lines above{key})"), Look::of(Role::Dim), Wrap::Word));
    }
    if !output.is_empty() {
        all.extend(output_lines(&lines[from..].join("\n"), Role::Text, cx));
    }
    let mut laid = Laid::of(all, cx, INDENT);
    laid.mark = Some(("$ ", Role::User));
    laid
}
