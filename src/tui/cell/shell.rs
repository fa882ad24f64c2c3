//! A `!` line: a command of the person.

use super::tool::seconds;
use super::{CellCx, CellLayout, INDENT, output_lines};
use crate::model::conversation::{ShellRun, TextTail};
use crate::text::clean;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;

/// Lines that a folded cell shows.
const FOLDED: usize = 8;

pub(super) fn lay(
    line: &str,
    output: &TextTail,
    exit: Option<i32>,
    shared: bool,
    run: Option<&ShellRun>,
    cx: &CellCx<'_>,
) -> CellLayout {
    let mut head = Line::default();
    head.push_strict(line, Look::of(Role::User));
    let mut remark = String::new();
    if let Some(code) = exit.filter(|c| *c != 0) {
        remark.push_str(&format!("  exit {code}"));
    }
    match run {
        Some(ShellRun { waits: true, .. }) => remark.push_str("  waiting for the previous command"),
        Some(ShellRun { since, .. }) => {
            let ran = (cx.now.millis() - since.millis()).max(0) / 1000;
            remark.push_str(&format!("  running {}", seconds(ran as f64)));
        }
        None => {}
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
    let mut laid = CellLayout::of(all, cx, INDENT);
    laid.mark = Some(("$ ", Role::User));
    laid
}
