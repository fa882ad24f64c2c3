//! A `!` line: a command of the person, and its output.

use super::tool::seconds;
use super::{CellCx, CellLayout, output_lines, user};
use crate::model::conversation::{ShellRun, TextTail};
use crate::text::clean;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;

/// Lines that a folded cell shows.
const FOLDED: usize = 20;

pub(super) fn lay(
    line: &str,
    output: &TextTail,
    exit: Option<i32>,
    shared: bool,
    run: Option<&ShellRun>,
    cx: &CellCx<'_>,
) -> CellLayout {
    let mut head = Line::default();
    head.push("$ ", Look::of(Role::Dim));
    head.push_strict(line, Look::of(Role::User));
    let mut remarks: Vec<String> = Vec::new();
    if !shared {
        remarks.push("private".into());
    }
    match run {
        Some(ShellRun { waits: true, .. }) => remarks.push("waiting for the previous command".into()),
        Some(ShellRun { since, .. }) => {
            let ran = (cx.now.millis() - since.millis()).max(0) / 1000;
            remarks.push(format!("running {}", seconds(ran as f64)));
        }
        None => {}
    }
    remarks.extend(exit.filter(|c| *c != 0).map(|code| format!("exit {code}")));
    let lines: Vec<&str> = clean::lines(output.text()).collect();
    // One line more takes no more room than saying so.
    let from = if cx.unfolded || lines.len() <= FOLDED + 1 { 0 } else { lines.len() - FOLDED };
    let more = from as u64 + output.dropped();
    let mut below = Vec::new();
    if more > 0 {
        let key = if cx.unfolded { String::new() } else { format!(" {}", cx.unfold_key()) };
        below.push(Line::strict(&format!("+{more} lines above{key}"), Look::of(Role::Dim), Wrap::Word));
    }
    if !output.is_empty() {
        below.extend(output_lines(&lines[from..].join("\n"), Role::Text, cx));
    }
    for line in &mut below {
        for gutter in [&mut line.first, &mut line.rest] {
            gutter.text = format!("  {}", gutter.text).into();
        }
    }
    let mut laid = user::banded(vec![head], &remarks.join("  "), cx);
    laid.add(below, cx);
    laid
}
