//! A row of buttons, or several rows where they do not fit side by side.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::panel::DrawCx;
use crate::theme::Role;
use crate::widget::draw;

/// How a button looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    Plain,
    Focus,
    /// It does nothing right now.
    Off,
}

/// `[n] no`.
pub fn label(key: &str, name: &str) -> String {
    format!("[{key}] {name}")
}

/// Where each label lies in `columns` columns, from the first row on: column, row, width.
pub fn place(labels: &[String], columns: u16) -> Vec<(u16, u16, u16)> {
    let wide: usize = labels.iter().map(|l| l.width() + 3).sum();
    let gap = if wide <= usize::from(columns) + 3 { 3 } else { 2 };
    let (mut x, mut y) = (0, 0);
    labels
        .iter()
        .map(|l| {
            let width = (l.width() as u16).min(columns);
            if x > 0 && x + width > columns {
                x = 0;
                y += 1;
            }
            let at = (x, y, width);
            x += width + gap;
            at
        })
        .collect()
}

/// How many rows the labels take.
pub fn rows(labels: &[String], columns: u16) -> u16 {
    place(labels, columns).last().map_or(0, |p| p.1 + 1)
}

/// The same as rectangles in `area`; those that lie below it are empty.
pub fn spots(labels: &[String], area: Rect) -> Vec<Rect> {
    place(labels, area.width)
        .into_iter()
        .map(|(x, y, width)| {
            let height = u16::from(y < area.height);
            Rect { x: area.x + x, y: area.y + y, width, height }
        })
        .collect()
}

/// Draws one.
pub fn draw(cx: &DrawCx<'_>, text: &str, spot: Rect, face: Face, buf: &mut Buffer) {
    let role = match face {
        Face::Plain => Role::Button,
        Face::Focus => Role::ButtonFocus,
        Face::Off => Role::Dim,
    };
    draw::text(buf, spot, text, cx.theme.style(role));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_wrap_and_none_is_lost() {
        let all: Vec<String> = ["[n] no", "[c] deny with comment", "[y] yes, once"].map(Into::into).to_vec();
        assert_eq!(place(&all, 80), [(0, 0, 6), (9, 0, 21), (33, 0, 13)]);
        assert_eq!(place(&all, 28), [(0, 0, 6), (0, 1, 21), (0, 2, 13)]);
        assert_eq!(rows(&all, 10), 3);
    }
}
