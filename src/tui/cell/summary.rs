//! A compaction: how much went, and the summary when unfolded.

use super::{CellCx, CellLayout, INDENT};
use crate::text::clean::lines;
use crate::text::line::{Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::sign;

pub(super) fn lay(
    summary: &str,
    focus: Option<&str>,
    tokens: Option<(u64, u64)>,
    cx: &CellCx<'_>,
) -> CellLayout {
    let head = match tokens {
        Some((before, after)) => {
            format!("Compacted from {} to {} tokens", thousands(before), thousands(after))
        }
        None => "Summary of another branch".to_owned(),
    };
    let mut line = Line::strict(&head, Look::of(Role::Strong), Wrap::Word);
    if let Some(focus) = focus {
        line.push(" with focus: ", Look::of(Role::Dim));
        line.push_strict(focus, Look::of(Role::Text));
    }
    let mut all = vec![line];
    if cx.unfolded {
        for l in lines(summary) {
            let mut line = Line::default();
            line.push(l, Look::of(Role::Quote));
            all.push(line);
        }
    } else {
        let many = lines(summary).count();
        all[0].push(&format!("  +{many} {}", cx.unfold_key()), Look::of(Role::Dim));
    }
    let mut laid = CellLayout::of(all, cx, INDENT);
    laid.mark = Some((sign::DOT.text(cx.ascii), Role::Dim));
    laid
}

/// `12k`, `1.2M`.
pub(crate) fn thousands(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{}k", n / 1000),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}
