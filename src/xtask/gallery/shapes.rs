//! Characters that are drawn by geometry, so that lines meet from cell to cell: box drawing, blocks, braille.

/// Covers a part of a cell.
pub(crate) trait Pen {
    /// Covers the pixels from `x0`, `y0` up to but without `x1`, `y1`; `alpha`: 0 to 255.
    fn fill(&mut self, x0: u32, y0: u32, x1: u32, y1: u32, alpha: u8);
}

/// A size in pixels.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Width of a light line.
    pub(crate) line: u32,
}

/// Weights of the four arms of a box drawing character, left, right, up, down: 0 none, 1 light, 2 heavy, 3 double.
type Arms = [u8; 4];

const BOXES: &[(char, Arms)] = &[
    ('─', [1, 1, 0, 0]),
    ('━', [2, 2, 0, 0]),
    ('│', [0, 0, 1, 1]),
    ('┃', [0, 0, 2, 2]),
    ('┌', [0, 1, 0, 1]),
    ('┏', [0, 2, 0, 2]),
    ('┐', [1, 0, 0, 1]),
    ('┓', [2, 0, 0, 2]),
    ('└', [0, 1, 1, 0]),
    ('┗', [0, 2, 2, 0]),
    ('┘', [1, 0, 1, 0]),
    ('┛', [2, 0, 2, 0]),
    ('├', [0, 1, 1, 1]),
    ('┝', [0, 2, 1, 1]),
    ('┣', [0, 2, 2, 2]),
    ('┤', [1, 0, 1, 1]),
    ('┥', [2, 0, 1, 1]),
    ('┫', [2, 0, 2, 2]),
    ('┬', [1, 1, 0, 1]),
    ('┯', [2, 2, 0, 1]),
    ('┳', [2, 2, 0, 2]),
    ('┴', [1, 1, 1, 0]),
    ('┷', [2, 2, 1, 0]),
    ('┻', [2, 2, 2, 0]),
    ('┼', [1, 1, 1, 1]),
    ('┿', [2, 2, 1, 1]),
    ('╋', [2, 2, 2, 2]),
    ('═', [3, 3, 0, 0]),
    ('║', [0, 0, 3, 3]),
    ('╔', [0, 3, 0, 3]),
    ('╗', [3, 0, 0, 3]),
    ('╚', [0, 3, 3, 0]),
    ('╝', [3, 0, 3, 0]),
    ('╠', [0, 3, 3, 3]),
    ('╣', [3, 0, 3, 3]),
    ('╦', [3, 3, 0, 3]),
    ('╩', [3, 3, 3, 0]),
    ('╬', [3, 3, 3, 3]),
    ('╭', [0, 1, 0, 1]),
    ('╮', [1, 0, 0, 1]),
    ('╯', [1, 0, 1, 0]),
    ('╰', [0, 1, 1, 0]),
    ('╴', [1, 0, 0, 0]),
    ('╵', [0, 0, 1, 0]),
    ('╶', [0, 1, 0, 0]),
    ('╷', [0, 0, 0, 1]),
    ('╸', [2, 0, 0, 0]),
    ('╹', [0, 0, 2, 0]),
    ('╺', [0, 2, 0, 0]),
    ('╻', [0, 0, 0, 2]),
];

/// Draws `c` when it is one of these characters; `false`: it is not.
pub(crate) fn draw(c: char, cell: Cell, pen: &mut dyn Pen) -> bool {
    if let Some((_, arms)) = BOXES.iter().find(|(b, _)| *b == c) {
        lines(*arms, cell, pen);
        return true;
    }
    match c {
        '\u{2580}'..='\u{259f}' => block(c, cell, pen),
        '\u{2800}'..='\u{28ff}' => braille(u32::from(c) - 0x2800, cell, pen),
        _ => return false,
    }
    true
}

fn lines(arms: Arms, cell: Cell, pen: &mut dyn Pen) {
    let Cell { width, height, line } = cell;
    let (across, along) = (width / 2, height / 2);
    for (side, weight) in arms.into_iter().enumerate() {
        let level = side < 2;
        let middle = if level { along } else { across };
        let (from, to) = match side {
            0 => (0, across + line),
            1 => (across, width),
            2 => (0, along + line),
            _ => (along, height),
        };
        // Where a line of each kind lies across its direction.
        let tracks: &[(i64, u32)] = match weight {
            0 => continue,
            1 => &[(0, 1)],
            2 => &[(-1, 3)],
            _ => &[(-1, 1), (1, 1)],
        };
        for (offset, thick) in tracks {
            let start = (i64::from(middle) + offset * i64::from(line)).max(0) as u32;
            let end = start + thick * line;
            if level { pen.fill(from, start, to, end, 255) } else { pen.fill(start, from, end, to, 255) }
        }
    }
}

fn block(c: char, cell: Cell, pen: &mut dyn Pen) {
    let Cell { width, height, .. } = cell;
    let eighth = |of: u32, n: u32| (of * n + 4) / 8;
    let n = u32::from(c) - 0x2580;
    let (left, top) = (width.div_ceil(2), height.div_ceil(2));
    match n {
        0 => pen.fill(0, 0, width, height - eighth(height, 4), 255),
        // One to eight eighths from below.
        1..=8 => pen.fill(0, height - eighth(height, n), width, height, 255),
        // Seven to one eighths from the left.
        9..=15 => pen.fill(0, 0, eighth(width, 16 - n), height, 255),
        16 => pen.fill(eighth(width, 4), 0, width, height, 255),
        17..=19 => pen.fill(0, 0, width, height, [64, 128, 192][(n - 17) as usize]),
        20 => pen.fill(0, 0, width, eighth(height, 1), 255),
        21 => pen.fill(width - eighth(width, 1), 0, width, height, 255),
        // Quadrants: upper left, upper right, lower left, lower right.
        _ => {
            let parts = [4u8, 8, 1, 13, 9, 7, 11, 2, 6, 14][(n - 22) as usize];
            let corners = [(1, 0, 0), (2, 1, 0), (4, 0, 1), (8, 1, 1)];
            for (_, x, y) in corners.into_iter().filter(|(bit, ..)| parts & bit != 0) {
                let (x0, x1) = if x == 0 { (0, left) } else { (left, width) };
                let (y0, y1) = if y == 0 { (0, top) } else { (top, height) };
                pen.fill(x0, y0, x1, y1, 255);
            }
        }
    }
}

fn braille(dots: u32, cell: Cell, pen: &mut dyn Pen) {
    // Bit of each dot: column by column, the two lowest last.
    const PLACES: [(u32, u32); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let size = (cell.width / 4).max(1);
    for (_, (x, y)) in PLACES.into_iter().enumerate().filter(|(bit, _)| dots & (1 << bit) != 0) {
        let left = (cell.width * (2 * x + 1) / 4).saturating_sub(size / 2);
        let top = (cell.height * (2 * y + 1) / 8).saturating_sub(size / 2);
        pen.fill(left, top, left + size, top + size, 255);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const CELL: Cell = Cell { width: 9, height: 19, line: 1 };

    /// The pixels that a character covers.
    #[derive(Default)]
    struct Covered(BTreeSet<(u32, u32)>);

    impl Pen for Covered {
        fn fill(&mut self, x0: u32, y0: u32, x1: u32, y1: u32, _alpha: u8) {
            self.0.extend((y0..y1).flat_map(|y| (x0..x1).map(move |x| (x, y))));
        }
    }

    fn covered(c: char) -> BTreeSet<(u32, u32)> {
        let mut pen = Covered::default();
        assert!(draw(c, CELL, &mut pen), "{c}");
        assert!(pen.0.iter().all(|(x, y)| *x < CELL.width && *y < CELL.height), "{c} leaves its cell");
        pen.0
    }

    #[test]
    fn lines_of_neighbours_meet() {
        let right =
            |c| covered(c).into_iter().filter(|(x, _)| *x == CELL.width - 1).map(|(_, y)| y).collect();
        let left = |c| covered(c).into_iter().filter(|(x, _)| *x == 0).map(|(_, y)| y).collect();
        let pairs: [(char, char); 5] = [('─', '┤'), ('└', '─'), ('╭', '╮'), ('═', '╗'), ('━', '┫')];
        for (a, b) in pairs {
            let (a_side, b_side): (Vec<u32>, Vec<u32>) = (right(a), left(b));
            assert!(!a_side.is_empty() && a_side == b_side, "{a} and {b}");
        }
    }

    #[test]
    fn every_block_and_braille_character_stays_in_its_cell() {
        let all = ('\u{2580}'..='\u{259f}').chain('\u{2800}'..='\u{28ff}');
        for c in all {
            assert_eq!(covered(c).is_empty(), c == '\u{2800}', "{c}");
        }
        let all = (CELL.width * CELL.height) as usize;
        assert_eq!(covered('█').len(), all);
        assert_eq!(covered('▀').len() + covered('▄').len(), all, "the halves fill the cell");
        assert_eq!(covered('▌').len() + covered('▐').len(), all);
    }
}
