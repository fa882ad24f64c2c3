//! Changes of the screen since an observer last read it: each row stores the number of the state in which it last
//! changed.

use std::sync::atomic::{AtomicU64, Ordering};

use tiller_protocol::{GridRun, ScreenView};

use super::emulator::Emulator;

/// The last published screen.
pub(crate) struct Changes {
    rev: u64,
    /// The state in which the present size was set.
    sized: u64,
    size: (u16, u16),
    rows: Vec<(u64, Vec<GridRun>)>,
    /// Cursor and mouse, and the state of their last change.
    rest: (Option<(u16, u16)>, bool),
    rest_rev: u64,
}

impl Default for Changes {
    /// States of different terminals never share numbers: an observer that switches terminals asks with a number of the
    /// earlier one, and gets the complete screen.
    fn default() -> Self {
        static TERMINALS: AtomicU64 = AtomicU64::new(1);
        let base = TERMINALS.fetch_add(1, Ordering::Relaxed) << 32;
        Self { rev: base, sized: base, size: (0, 0), rows: Vec::new(), rest: (None, false), rest_rev: 0 }
    }
}

impl Changes {
    /// Compares with the present screen. Only rows that the emulator reports as damaged are compared, and those above
    /// them: a wide character without room at the end of a row moves to the next one, and the blank that it leaves is not
    /// reported.
    pub(crate) fn take(&mut self, emulator: &mut Emulator) {
        let size = emulator.size();
        let next = self.rev + 1;
        let mut changed = false;
        if size != self.size {
            (self.size, self.sized, changed) = (size, next, true);
            self.rows = vec![(next, Vec::new()); usize::from(size.1)];
        }
        let damaged = emulator.damage();
        for at in 0..usize::from(size.1) {
            if changed || damaged.as_ref().is_none_or(|d| d.contains(&at) || d.contains(&(at + 1))) {
                let row = emulator.row(at);
                if let Some(kept) = self.rows.get_mut(at).filter(|kept| kept.1 != row) {
                    *kept = (next, row);
                    changed = true;
                }
            }
        }
        let rest = (emulator.cursor(), emulator.modes().mouse != super::encode::Mouse::None);
        if rest != self.rest || self.rest_rev == 0 {
            (self.rest, self.rest_rev, changed) = (rest, next, true);
        }
        if changed {
            self.rev = next;
        }
    }

    /// The changes after `since`; `None`: nothing. An unknown state gives the complete screen.
    pub(crate) fn since(&self, since: u64) -> Option<ScreenView> {
        let since = if since > self.rev { 0 } else { since };
        if since == self.rev {
            return None;
        }
        let whole = since < self.sized;
        let rows = self.rows.iter().zip(0_u16..);
        let rows = rows.filter(|((rev, _), _)| whole || *rev > since).map(|((_, row), at)| (at, row.clone()));
        Some(ScreenView {
            rev: self.rev,
            cols: self.size.0,
            height: self.size.1,
            rows: rows.collect(),
            cursor: self.rest.0,
            mouse: self.rest.1,
            ended: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(view: &ScreenView) -> Vec<u16> {
        view.rows.iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn only_rows_that_became_others_travel() {
        let mut e = Emulator::new(20, 5);
        let mut c = Changes::default();
        e.feed(b"one\r\ntwo");
        c.take(&mut e);
        let first = c.since(0).unwrap();
        assert_eq!((first.cols, first.height, first.cursor), (20, 5, Some((3, 1))));
        assert_eq!(numbers(&first), [0, 1, 2, 3, 4]);
        c.take(&mut e);
        assert_eq!(c.since(first.rev), None, "nothing happened");
        // Writing the same text again is no change; the cursor is where it was.
        e.feed(b"\x1b[1;1Hone\x1b[2;4H");
        c.take(&mut e);
        assert_eq!(c.since(first.rev), None);
        e.feed(b"\x1b[4;1H\x1b[31mred");
        c.take(&mut e);
        let second = c.since(first.rev).unwrap();
        assert_eq!((numbers(&second), second.rows[0].1[0].text.as_str()), (vec![3], "red"));
        e.feed(b"\x1b[?25l");
        c.take(&mut e);
        let third = c.since(second.rev).unwrap();
        assert_eq!((numbers(&third), third.cursor), (vec![], None));
        // An observer that was away longer gets all changes since.
        assert_eq!(numbers(&c.since(first.rev).unwrap()), [3]);
        e.feed(b"\r\n\n\n\n");
        c.take(&mut e);
        assert!(numbers(&c.since(third.rev).unwrap()).len() >= 3, "it scrolled");
        e.resize(30, 4);
        c.take(&mut e);
        assert_eq!(numbers(&c.since(third.rev).unwrap()), [0, 1, 2, 3]);
        // From another terminal, earlier or later.
        for other in [99_999, u64::MAX] {
            assert_eq!(numbers(&c.since(other).unwrap()).len(), 4);
        }
    }

    #[test]
    fn rows_that_were_told_make_up_the_screen_whatever_came() {
        let mut seed = 11_u64;
        let (mut e, mut c) = (Emulator::new(24, 8), Changes::default());
        let mut mine: Vec<Vec<GridRun>> = Vec::new();
        let mut rev = 0;
        for round in 0..400_u16 {
            let bytes: Vec<u8> = (0..60)
                .map(|_| {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let b = (seed >> 33) as u8;
                    if b.is_multiple_of(7) { 0x1b } else { b & 0x7f }
                })
                .collect();
            e.feed(&bytes);
            if round % 40 == 0 {
                e.resize(20 + round % 30, 5 + round % 9);
            }
            if round % 3 == 0 {
                c.take(&mut e);
                if let Some(view) = c.since(rev) {
                    mine.resize(view.height.into(), Vec::new());
                    view.rows.into_iter().for_each(|(at, row)| mine[usize::from(at)] = row);
                    rev = view.rev;
                }
                assert_eq!(mine, e.grid().rows, "round {round}");
            }
        }
    }
}
