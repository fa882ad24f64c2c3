//! Draws the composer: the list above, the text, and a line of messages below. Its ground, its bar and the queued
//! messages are drawn by the view.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::vim::Mode;
use super::{Composer, popup, submit};
use crate::panel::DrawCx;
use crate::theme::Role;
use crate::widget::draw;
use crate::widget::edit::{RowRange, cell_width, chip_number};
use crate::widget::wrap::wrap;

/// Rows of text at most, before it scrolls.
const TEXT: usize = 10;
/// Rows of a notice at most.
const NOTICE: usize = 3;

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
    if let Some(note) = submit::note(c.content.edit.text()) {
        let seen = match tiller_protocol::memory::has_matcher(note) {
            true => "a rule from now on if its matcher is right",
            false => "models see it from the next session on",
        };
        return Some((format!("Kept in {}: {seen}", c.reported.memory.label()), Role::Dim));
    }
    let named = popup::named_skills(&c.content.edit, &c.reported.skills);
    if let Some(name) = named.unknown {
        return Some((format!("There is no skill ${name}: it is sent as plain text"), Role::Waiting));
    }
    let mut words: Vec<String> = c.content.mentioned().into_iter().map(|(word, ..)| word).collect();
    words.extend(named.known.into_iter().map(|name| format!("the skill {name}")));
    (!words.is_empty()).then(|| (format!("with {}", words.join("  ")), Role::Dim))
}

/// The rows under the text. Only a notice has more than one.
fn rows_below(c: &Composer, width: u16) -> (Vec<String>, Role) {
    let Some((text, role)) = below(c) else { return (Vec::new(), Role::Dim) };
    if c.notice.is_none() {
        return (vec![text], role);
    }
    let mut rows = wrap(&text, usize::from(width.max(1)));
    if rows.len() > NOTICE {
        rows.truncate(NOTICE);
        // The last one is cut where it is drawn.
        if let Some(last) = rows.last_mut() {
            last.push(' ');
            last.push_str(draw::ellipsis());
        }
    }
    (rows, role)
}

/// Rows that the composer requests.
pub(super) fn rows(c: &Composer, width: u16) -> u16 {
    let labels = c.content.labels();
    let text = c.content.edit.rows(usize::from(width.max(1)), &|ch| labels.get(ch)).len();
    short(text.clamp(1, TEXT)) + above(c) + short(rows_below(c, width).0.len())
}

/// Where the text stands within `area`. At least one row, whatever else there is.
pub(super) fn text_area(c: &Composer, area: Rect) -> Rect {
    let top = above(c).min(area.height.saturating_sub(1));
    let news = short(rows_below(c, area.width).0.len()).min(area.height.saturating_sub(top + 1));
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
    let shell = c.content.edit.text().starts_with('!') || submit::note(c.content.edit.text()).is_some();
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
    if c.content.edit.is_empty() {
        placeholder(cx, at, buf);
    }
    state(c, cx, at, buf);
    let (news, role) = rows_below(c, area.width);
    for (y, text) in (at.bottom()..area.bottom()).zip(news) {
        draw::text(buf, Rect { y, height: 1, ..area }, &text, cx.theme.style(role));
    }
}

/// Draws what can be written, and the keys that begin something else than a message.
fn placeholder(cx: &DrawCx<'_>, at: Rect, buf: &mut Buffer) {
    let to = cx.model.shown.as_ref().map(|a| cx.model.name_of(a));
    // A message would wait behind the question.
    let agent = cx.model.shown_agent();
    if cx.model.questions.open.iter().any(|a| a.agent == agent) {
        let words = format!("Waiting for your answer ({})", cx.key("global.answer"));
        draw::text(buf, at, &words, cx.theme.style(Role::Waiting));
        return;
    }
    let words = match (cx.model.agent.turn.running, to) {
        (true, _) => "Steer the turn, or write the next message".to_owned(),
        (false, Some(agent)) => format!("Message to {agent}"),
        (false, None) => "What should I do?".to_owned(),
    };
    let used = draw::text(buf, at, &words, cx.theme.style(Role::Dim));
    let mut rest = Rect { x: at.x + used, width: at.width - used, ..at };
    if cx.model.agent.turn.running {
        return;
    }
    for (key, what) in [("@", "file"), ("/", "command"), ("!", "shell"), ("?", "help")] {
        let columns = 4 + short(what.width()) + 1;
        if rest.width < columns {
            return;
        }
        let spot = Rect { x: rest.x + 3, width: rest.width - 3, ..rest };
        draw::text(buf, spot, key, cx.theme.style(Role::Accent));
        draw::text(
            buf,
            Rect { x: spot.x + 2, width: spot.width - 2, ..spot },
            what,
            cx.theme.style(Role::Dim),
        );
        rest = Rect { x: rest.x + columns, width: rest.width - columns, ..rest };
    }
}

/// Draws the state besides the text, at the right end of its first row: the vim mode, a stashed draft, the agent that it
/// goes to. A letter for the mode where there is little room; nothing where there is text.
fn state(c: &Composer, cx: &DrawCx<'_>, at: Rect, buf: &mut Buffer) {
    let mode = c.vim.as_ref().map(|v| match v.mode {
        _ if v.selected(&c.content.edit).is_some() => ("visual", "V"),
        Mode::Normal => ("normal", "N"),
        Mode::Insert => ("insert", "I"),
    });
    let stashed = c.aside.is_some().then_some("draft stashed");
    let words: Vec<&str> = mode.map(|m| m.0).into_iter().chain(stashed).collect();
    let whole = words.join(", ");
    let letter = mode.map_or("", |m| m.1);
    for text in [whole.as_str(), letter].into_iter().filter(|t| !t.is_empty()) {
        let columns = short(text.width());
        if columns + 2 > at.width {
            continue;
        }
        let spot = Rect { x: at.right() - columns, width: columns, height: 1, ..at };
        let free = |x| buf.cell((x, at.y)).is_some_and(|c| c.symbol() == " ");
        if (spot.x - 1..spot.right()).all(free) {
            draw::text(buf, spot, text, cx.theme.style(Role::Dim));
            return;
        }
    }
}
