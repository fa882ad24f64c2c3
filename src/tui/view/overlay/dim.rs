//! The ground behind a dialog: the same text and areas, nearer to the ground.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use crate::theme::{Role, Theme};

/// How much of a colour is left, in 256ths.
const LEFT: u32 = 112;

/// Dims the cells of `area`. Twice is more than once: only cells that were drawn since the last time.
pub(crate) fn dim(theme: &Theme, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    let ground = theme.style(Role::Ground).bg.unwrap_or(Color::Reset);
    for y in area.top()..area.bottom() {
        let start = buf.index_of(area.x.min(buf.area.right().saturating_sub(1)), y);
        for cell in &mut buf.content[start..start + usize::from(area.width)] {
            cell.modifier.remove(Modifier::BOLD);
            cell.bg = mixed(cell.bg, ground).unwrap_or(cell.bg);
            let below = if let Color::Rgb(..) = cell.bg { cell.bg } else { ground };
            match mixed(cell.fg, below) {
                Some(fg) => cell.fg = fg,
                None => cell.modifier.insert(Modifier::DIM),
            }
        }
    }
}

/// Leaves nothing but the background of the cells of `area`.
pub(super) fn blank(area: Rect, buf: &mut Buffer) {
    for at in area.intersection(buf.area).positions() {
        if let Some(cell) = buf.cell_mut(at) {
            let bg = cell.bg;
            cell.reset();
            cell.bg = bg;
        }
    }
}

/// A colour nearer to another; `None`: one of them is the terminal's own.
fn mixed(of: Color, to: Color) -> Option<Color> {
    match (of, to) {
        (Color::Rgb(r, g, b), Color::Rgb(to_r, to_g, to_b)) => {
            Some(Color::Rgb(mix(r, to_r), mix(g, to_g), mix(b, to_b)))
        }
        _ => None,
    }
}

fn mix(of: u8, to: u8) -> u8 {
    let mixed = (u32::from(of) * LEFT + u32::from(to) * (256 - LEFT)) / 256;
    mixed.min(255) as u8
}
