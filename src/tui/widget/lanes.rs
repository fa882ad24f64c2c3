//! The lanes of a tree of branches before a row, as a log of branches has them: a lane for each branch that goes on below,
//! and an elbow where one begins.

use crate::widget::draw;

/// The lanes of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Lanes before the row's own.
    pub(crate) depth: u8,
    /// The row begins a branch: a line leads to it from the lane before.
    pub(crate) first: bool,
    /// Lanes that go on below the row, as bits.
    pub(crate) lines: u64,
}

/// Columns of a lane.
const LANE: u16 = 2;

impl Lanes {
    /// Each lane, with true for that of the trunk. In so many columns for the whole row the lanes take a third at most:
    /// of those of a deep row the ones at the left are left out, with a mark.
    pub(crate) fn draw(self, columns: u16, ascii: bool) -> Vec<(String, bool)> {
        let l = draw::lines(ascii);
        let most = u32::from(columns / (3 * LANE)).max(2);
        let depth = u32::from(self.depth);
        let from = depth.saturating_sub(most);
        let lane = |d: u32| {
            let on = self.lines & (1_u64.checked_shl(d).unwrap_or(0)) != 0;
            let elbow = self.first && d + 1 == depth;
            let text = match (elbow, on) {
                _ if from > 0 && d == from => "..".to_owned(),
                (true, true) => format!("{}{}", l.tees[0], l.h),
                (true, false) => format!("{}{}", l.corners[2], l.h),
                (false, true) => format!("{} ", l.v),
                (false, false) => "  ".to_owned(),
            };
            (text, d == 0 && on)
        };
        (from..depth).map(lane).collect()
    }
}
