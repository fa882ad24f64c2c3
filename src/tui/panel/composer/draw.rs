//! Draws the composer: the list above, the text, and a line of messages below. The frame, its title and the queued
//! messages are drawn by the view.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;

use super::vim::Mode;
use super::{Composer, popup};
use crate::panel::DrawCx;
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::edit::{RowRange, cell_width, chip_number};

/// Rows of text at most, before it scrolls.
const TEXT: usize = 10;

fn short(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// Rows of the list.
fn above(c: &Composer) -> u16 {
    c.popup.as_ref().map_or(0, |p| short(p.rows.len().min(popup::ROWS)))
}

/// The line under the text: a sentence, or what is mentioned.
fn below(c: &Composer) -> Option<(String, Role)> {
    if let Some(n) = &c.notice {
        return Some((n.clone(), Role::Error));
    }
    let words: Vec<String> = c.content.mentioned().into_iter().map(|(word, ..)| word).collect();
    (!words.is_empty()).then(|| (format!("with {}", words.join("  ")), Role::Dim))
}

/// Rows that the composer requests.
pub(super) fn rows(c: &Composer, width: u16) -> u16 {
    let labels = c.content.labels();
    let text = c.content.edit.rows(usize::from(width.max(1)), &|ch| labels.get(ch)).len();
    short(text.clamp(1, TEXT)) + above(c) + u16::from(below(c).is_some())
}

/// Where the text stands within `area`. At least one row, whatever else there is.
pub(super) fn text_area(c: &Composer, area: Rect) -> Rect {
    let top = above(c).min(area.height.saturating_sub(1));
    let news = u16::from(below(c).is_some() && area.height > top + 1);
    Rect { y: area.y + top, height: area.height - top - news, ..area }
}

/// The first visual row that is shown, so that the caret's row is.
pub(super) fn first_row(c: &Composer, rows: &[RowRange], height: usize) -> usize {
    let labels = c.content.labels();
    let (row, _) = c.content.edit.position(rows, &|ch| labels.get(ch));
    (row + 1).saturating_sub(height.max(1))
}

/// The caret's cell.
pub(super) fn cursor(c: &Composer, area: Rect) -> Option<Position> {
    let at = text_area(c, area);
    let labels = c.content.labels();
    let label = |ch| labels.get(ch);
    let rows = c.content.edit.rows(usize::from(at.width.max(1)), &label);
    let (row, col) = c.content.edit.position(&rows, &label);
    let row = row.checked_sub(first_row(c, &rows, usize::from(at.height)))?;
    let (x, y) = (short(col).min(at.width.saturating_sub(1)), short(row));
    (y < at.height).then_some(Position { x: at.x + x, y: at.y + y })
}

pub(super) fn draw(c: &Composer, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let at = text_area(c, area);
    if let Some(list) = &c.popup {
        popup::draw_list(list, cx, Rect { height: at.y - area.y, ..area }, buf);
    }
    let shell = c.content.edit.text().starts_with('!');
    let style = cx.theme.style(if shell { Role::Accent } else { Role::Text });
    let labels = c.content.labels();
    let label = |ch| labels.get(ch);
    let rows = c.content.edit.rows(usize::from(at.width.max(1)), &label);
    let first = first_row(c, &rows, usize::from(at.height));
    let chosen = c.vim.as_ref().and_then(|v| v.selected(&c.content.edit));
    for (y, row) in rows.iter().skip(first).take(usize::from(at.height)).enumerate() {
        let mut line = Rect { y: at.y + short(y), height: 1, ..at };
        let text = &c.content.edit.text()[row.clone()];
        if chosen.is_none() && text.bytes().all(|b| matches!(b, b' '..=b'~')) {
            buf.set_stringn(line.x, line.y, text, usize::from(line.width), style);
            continue;
        }
        for (byte, g) in text.grapheme_indices(true) {
            let on = chosen.as_ref().is_some_and(|r| r.contains(&(row.start + byte)));
            let style = if on { cx.theme.style(Role::Selection) } else { style };
            let chip = g.chars().next().filter(|ch| chip_number(*ch).is_some()).and_then(label);
            match chip {
                Some(l) => draw::text(buf, line, &l, cx.theme.style(Role::Accent)),
                None if g == "\t" => 0,
                None => draw::text(buf, line, g, style),
            };
            let step = short(cell_width(g, &label)).min(line.width);
            line.x += step;
            line.width -= step;
        }
    }
    mode(c, cx, at, buf);
    if c.content.edit.is_empty() {
        let say = if cx.model.agent.turn.running {
            "Steer the turn, or write the next message"
        } else {
            "What should I do?   @ file   / command   ! shell   ? help"
        };
        draw::text(buf, at, say, cx.theme.style(Role::Dim));
    }
    if let Some((text, role)) = below(c)
        && at.bottom() < area.bottom()
    {
        draw::text(buf, Rect { y: at.bottom(), height: 1, ..area }, &text, cx.theme.style(role));
    }
}

/// The vim mode as a letter, on screens that have no room for a title that says it.
fn mode(c: &Composer, cx: &DrawCx<'_>, at: Rect, buf: &mut Buffer) {
    let (width, height) = cx.model.window.screen;
    let Some(v) = c.vim.as_ref().filter(|_| width < 100 || height < 16) else { return };
    let sign = match v.mode {
        _ if v.selected(&c.content.edit).is_some() => "V",
        Mode::Normal => "N",
        Mode::Insert => "I",
    };
    let corner = Rect { x: at.right().saturating_sub(1), width: 1, height: 1, ..at };
    if buf.cell((corner.x, corner.y)).is_some_and(|c| c.symbol() == " ") {
        draw::text(buf, corner, sign, cx.theme.style(Role::Strong));
    }
}
