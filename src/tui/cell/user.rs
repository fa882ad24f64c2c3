//! A message of the person, with its time.

use tiller_protocol::{Origin, Time};

use super::{CellCx, CellLayout, INDENT};
use crate::text::clean::lines;
use crate::text::line::{Line, Look};
use crate::theme::Role;

/// Narrower than this, the time is left out.
const TIME_FROM: usize = 40;
/// Rows of a folded message that the engine wrote.
const FOLDED: usize = 1;

pub(super) fn lay(text: &str, origin: Origin, time: Time, cx: &CellCx<'_>) -> CellLayout {
    let quiet = matches!(origin, Origin::Engine | Origin::Shell);
    let look = Look::of(if quiet { Role::Dim } else { Role::User });
    let mut all: Vec<Line> = Vec::new();
    for l in lines(text) {
        let mut line = Line::default();
        line.push(l, look);
        all.push(line);
    }
    if quiet && !cx.unfolded && all.len() > FOLDED {
        let more = all.len() - FOLDED;
        all.truncate(FOLDED);
        if let Some(last) = all.last_mut() {
            last.push(&format!(" (+{more}, {})", cx.unfold_key), Look::of(Role::Dim));
        }
    }
    let with_time = cx.columns >= TIME_FROM;
    let inner = CellCx { columns: cx.prose().saturating_sub(if with_time { 7 } else { 0 }), ..cx.clone() };
    let mut laid = CellLayout::of(all, &inner, INDENT);
    laid.mark = Some(match origin {
        Origin::Prompt => ("> ", Role::User),
        Origin::Steer => ("+ ", Role::User),
        Origin::Shell => ("$ ", Role::User),
        Origin::Engine => ("# ", Role::Dim),
    });
    laid.right = with_time.then(|| clock(time, cx)).flatten();
    laid
}

/// `10:41` where the person is.
fn clock(time: Time, cx: &CellCx<'_>) -> Option<String> {
    let t = jiff::Timestamp::from_millisecond(time.millis()).ok()?.to_zoned(cx.zone.clone());
    Some(format!("{:02}:{:02}", t.hour(), t.minute()))
}
