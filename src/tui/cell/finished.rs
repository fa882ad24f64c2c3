//! The end of a turn: how long it took, what it called, which files it changed.

use super::{CellCx, CellLayout, INDENT};
use crate::model::conversation::TurnSummary;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::diff;
use crate::widget::sign;

/// `1m 12s`, `4s`, `2h 05m`.
fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m {:02}s", whole / 60, whole % 60),
        _ => format!("{}h {:02}m", whole / 3600, whole % 3600 / 60),
    }
}

fn count(n: u32, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

pub(super) fn lay(sum: &TurnSummary, cx: &CellCx<'_>) -> CellLayout {
    let dim = Look::of(Role::Dim);
    let rule = &sign::RULE.text(cx.ascii).repeat(2);
    let dot = format!(" {} ", sign::DOT.text(cx.ascii));
    let mut line = Line::new(Wrap::Word);
    line.push(rule, Look::of(Role::Border));
    line.push(" ", dim);
    line.push(&duration(sum.seconds), dim);
    if sum.calls > 0 {
        line.push(&format!("{dot}{}", count(sum.calls, "call")), dim);
    }
    let files = u32::try_from(sum.files.len() as u64 + sum.more).unwrap_or(u32::MAX);
    if files > 0 {
        line.push(&format!("{dot}{} ", count(files, "file")), dim);
        let counts = diff::counts(sum.added, sum.removed, cx.ascii);
        line.push_slice(&counts, 0, counts.text().len());
        // The review is of the last turn only.
        if cx.last_turn && !cx.review_key().is_empty() {
            line.push(&format!("{dot}{} review", cx.review_key()), dim);
        }
    }
    line.push(" ", dim);
    line.push(rule, Look::of(Role::Border));
    CellLayout::of(vec![line], cx, INDENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_short_and_whole() {
        for (s, want) in [(0.4, "0s"), (4.0, "4s"), (72.0, "1m 12s"), (59.6, "1m 00s"), (7500.0, "2h 05m")] {
            assert_eq!(duration(s), want);
        }
    }
}
