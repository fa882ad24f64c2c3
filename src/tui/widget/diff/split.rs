//! Old at the left, new at the right.

use super::{DiffLayout, DiffText, LineLook, digits, wrapped};
use crate::text::diff::{Hunk, LineKind};
use crate::text::line::{Line, Look, Wrap};
use crate::text::wrap::{Row, wrap};
use crate::theme::Role;

/// Indices of the lines that stand beside each other.
fn pairs(h: &Hunk) -> Vec<(Option<usize>, Option<usize>)> {
    let mut pairs = Vec::new();
    let mut n = 0;
    while n < h.lines.len() {
        if matches!(h.lines[n].kind, LineKind::Context | LineKind::Remark) {
            pairs.push((Some(n), Some(n)));
            n += 1;
            continue;
        }
        let removed = h.lines[n..].iter().take_while(|l| l.kind == LineKind::Removed).count();
        let added = h.lines[n + removed..].iter().take_while(|l| l.kind == LineKind::Added).count();
        for k in 0..removed.max(added) {
            let old = (k < removed).then_some(n + k);
            pairs.push((old, (k < added).then_some(n + removed + k)));
        }
        n += removed + added;
    }
    pairs
}

/// The lines of a hunk whose clean code is `code`.
pub(super) fn lines(h: &Hunk, code: &[Line], o: DiffLayout) -> DiffText {
    let digits = digits(h);
    let half = o.columns.saturating_sub(2) / 2;
    let room = half.saturating_sub(digits + 4).max(1);
    let mut all = DiffText::default();
    for (old, new) in pairs(h) {
        let rows = |side: Option<usize>| -> Vec<Row> {
            let mut rows = Vec::new();
            if let Some(n) = side {
                wrap(&code[n], 0, room, &mut rows);
                if o.cut {
                    rows.truncate(1);
                }
            }
            rows
        };
        let (left, right) = (rows(old), rows(new));
        for k in 0..left.len().max(right.len()) {
            let mut line = Line::new(Wrap::Cut);
            let mut side = |edge: usize, n: Option<usize>, row: Option<&Row>, old: bool| {
                line.pad_to(edge, Look::of(Role::Text));
                let Some(n) = n else { return };
                let l = &h.lines[n];
                let look = LineLook::of(l.kind, o.ascii);
                let on = |role: Role| look.band.map_or(Look::of(role), |band| Look::of(role).on(band));
                let number = if old { l.old } else { l.new }.filter(|_| k == 0);
                let number = number.map_or_else(String::new, |n| n.to_string());
                line.push(&format!("{number:>digits$} "), on(look.number));
                match (k, row) {
                    (0, _) => line.push(&look.gutter(), on(look.mark)),
                    (_, Some(_)) => line.push(&wrapped(o.ascii), on(Role::Dim)),
                    (_, None) => {}
                }
                if let Some(row) = row {
                    line.push_slice_on(&code[n], row.start as usize..row.end as usize, look.band);
                }
                line.pad_to(edge + half, on(Role::Text));
            };
            side(0, old, left.get(k), true);
            side(half + 2, new, right.get(k), false);
            all.lines.push(line);
            all.origins.push(new.or(old).unwrap_or(0));
        }
    }
    all
}
