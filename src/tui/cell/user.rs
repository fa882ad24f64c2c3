//! A message that the agent answers or takes note of: a band with its time, and whose it is where it is not the user's.

use tiller_protocol::{Origin, Time};

use super::{CellCx, CellLayout, INDENT};
use crate::model::conversation::learned;
use crate::text::clean::lines;
use crate::text::line::{Gutter, Line, Look, Wrap};
use crate::theme::Role;
use crate::widget::sign;

/// Narrower than this, the time is left out.
const TIME_FROM: usize = 40;
/// Columns at the right end for the time.
const TIME: usize = 8;
/// Rows of a folded message that the engine wrote.
const FOLDED: usize = 1;

/// `learnings`: the numbers of those that the model got with it.
pub(super) fn lay(
    (text, origin): (&str, Origin),
    learnings: &[i64],
    time: Time,
    cx: &CellCx<'_>,
) -> CellLayout {
    if matches!(origin, Origin::Engine | Origin::Shell) {
        return quiet(text, cx);
    }
    let all = lines(text).map(|l| {
        let mut line = Line::default();
        line.push(l, Look::of(Role::User));
        line
    });
    let word = match origin {
        Origin::Steer => "steer  ",
        Origin::Task => "Tiller  ",
        Origin::Prompt | Origin::Shell | Origin::Engine => "",
    };
    let right = format!("{word}{}{}", learned::before(learnings), clock(time, cx).unwrap_or_default());
    banded(all.collect(), &right, cx)
}

/// Lines of the person on a band with a bar; `right` stands at the end of the first row.
pub(super) fn banded(mut all: Vec<Line>, right: &str, cx: &CellCx<'_>) -> CellLayout {
    let bar = Gutter::new(format!("{} ", sign::BAR.text(cx.ascii)), Role::User);
    for line in &mut all {
        line.first = bar.clone();
        line.rest = bar.clone();
        line.band = Some(Role::Band);
    }
    let with_right = cx.columns >= TIME_FROM && !right.is_empty();
    if let Some(first) = all.first_mut().filter(|_| with_right) {
        let blank = cx.right_blank();
        first.right = Some(Box::new(Gutter::new(format!("{right}{:blank$}", ""), Role::Dim)));
    }
    let spare = if with_right { TIME.max(crate::text::width(right) + 3) } else { 0 };
    let room = match spare {
        0 => cx.columns.min(cx.measure.max(1) + INDENT),
        _ => cx.prose().saturating_sub(spare),
    };
    CellLayout::wide(all, cx, 0, room.max(1))
}

/// The text that was sent in the place of the typed one: its length, unless unfolded.
pub(super) fn sent(text: &str, cx: &CellCx<'_>) -> Vec<Line> {
    if cx.unfolded {
        // Mostly prose: it is wrapped between words.
        let mut all = super::output_lines(text, Role::Dim, cx);
        all.iter_mut().for_each(|line| line.wrap = Wrap::Word);
        return all;
    }
    let mut line = Line::default();
    line.push(&format!("  sent text +{} {}", lines(text).count(), cx.unfold_key()), Look::of(Role::Dim));
    vec![line]
}

/// Returns what the engine or a shell line says to the model: one dim line, unless unfolded.
fn quiet(text: &str, cx: &CellCx<'_>) -> CellLayout {
    let mut all: Vec<Line> = Vec::new();
    for l in lines(text) {
        let mut line = Line::default();
        line.push(l, Look::of(Role::Dim));
        all.push(line);
    }
    if !cx.unfolded && all.len() > FOLDED {
        let more = all.len() - FOLDED;
        all.truncate(FOLDED);
        if let Some(last) = all.last_mut() {
            last.push(&format!("  +{more} {}", cx.unfold_key()), Look::of(Role::Dim));
        }
    }
    let mut laid = CellLayout::of(all, cx, INDENT);
    laid.mark = Some((sign::DOT.text(cx.ascii), Role::Dim));
    laid
}

/// `10:41` where the person is.
fn clock(time: Time, cx: &CellCx<'_>) -> Option<String> {
    let t = jiff::Timestamp::from_millisecond(time.millis()).ok()?.to_zoned(cx.zone.clone());
    Some(format!("{:02}:{:02}", t.hour(), t.minute()))
}
