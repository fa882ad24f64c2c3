//! Draws the terminal's first row (agent, state, the key that releases it) and its cells.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::{Activity, ActivitySource};
use tiller_protocol::{Notice, NoticeKind, PaneView};

use super::Terminal;
use super::screen::draw_row;
use crate::app::effect::Effect;
use crate::panel::agents::look;
use crate::panel::empty_view::explain;
use crate::panel::{DrawCx, Reply};
use crate::text::width::width;
use crate::theme::Role;
use crate::view::layout::{PADDING, SizeClass};
use crate::widget::{draw, sign};

/// Columns that many programs count on.
const USUAL: u16 = 80;

/// Where the program's cells are: in line with the row above them where the program has its usual width nevertheless, else
/// over the full width.
pub(super) fn cells(area: Rect) -> Rect {
    let pad = if area.width >= USUAL + 2 * PADDING { PADDING } else { 0 };
    let (y, height) = (area.y + 1, area.height.saturating_sub(1));
    Rect { x: area.x + pad, width: area.width - 2 * pad, y, height }
}

pub(super) fn toast(text: &str) -> Effect {
    Effect::Toast(Notice::new(NoticeKind::Info, text))
}

pub(super) fn say(text: &str) -> Reply {
    Reply::with(toast(text))
}

/// How it stands, and how that is known.
pub(crate) fn standing(view: &PaneView) -> (&'static str, String, Role) {
    let (glyph, word, role) = match view.doing {
        Activity::Blocked => (draw::sign(sign::ATTENTION), "needs you", Role::Waiting),
        Activity::Working => (draw::sign(sign::FULL), "working", Role::Running),
        Activity::Idle => (draw::sign(sign::EMPTY), "idle", Role::Ok),
        Activity::Starting => (draw::sign(sign::EMPTY), "starting", Role::Dim),
        Activity::Unknown | Activity::Unseen => (draw::sign(sign::EMPTY), "state unknown", Role::Dim),
    };
    let how = match view.source {
        ActivitySource::Report => " (reported)",
        ActivitySource::Escape => " (signal)",
        ActivitySource::Screen => " (from its screen)",
        ActivitySource::Silence => " (silent)",
        ActivitySource::Process | ActivitySource::Unseen => "",
    };
    (glyph, format!("{word}{how}"), role)
}

pub(super) fn draw(t: &Terminal, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let Some(id) = &t.agent else {
        let words = "Programs in a terminal appear here; /spawn @codex:pty TASK starts one";
        explain(cx, area, words, buf);
        return;
    };
    let view = t.view(cx.model);
    bar(t, cx, &cx.model.name_of(id), view, Rect { height: 1, ..area }, buf);
    let cells = cells(area);
    if t.screen.rev == 0 {
        let words = match (view.is_some(), super::will(cx.model, id)) {
            (true, _) => "Loading...",
            (false, true) => "Starting",
            (false, false) => "It has ended; Esc shows its conversation",
        };
        draw::text(buf, cells, words, cx.theme.style(Role::Dim));
        return;
    }
    match &t.copy {
        Some(copy) => {
            let chosen = cx.theme.style(Role::Selection);
            let shown = copy.rows.iter().enumerate().skip(copy.top).take(cells.height.into());
            for (y, (line, row)) in (0..).zip(shown) {
                let over = copy.chosen(line).map(|(from, to)| (from, to, chosen));
                draw_row(buf, cx.theme, cells, y, row, over);
            }
        }
        None if view.is_some() && t.screen.rows.iter().all(Vec::is_empty) => {
            draw::text(buf, cells, "No output yet", cx.theme.style(Role::Dim));
        }
        None => {
            for (y, row) in (0..cells.height).zip(&t.screen.rows) {
                draw_row(buf, cx.theme, cells, y, row, None);
            }
        }
    }
}

fn bar(t: &Terminal, cx: &DrawCx<'_>, name: &str, view: Option<&PaneView>, area: Rect, buf: &mut Buffer) {
    let right = match (t.entered, &t.copy, view) {
        (true, ..) => {
            let keys = cx.keys.all_of(crate::keymap::action::Action("terminal.release"), "terminal");
            (if keys.is_empty() { "-".into() } else { keys.join(" or ") }, "leave")
        }
        (false, Some(_), _) => (cx.key("copy.leave"), "leave copy mode"),
        (false, None, Some(_)) => (cx.key("terminal.enter"), "enter"),
        (false, None, None) => (String::new(), ""),
    };
    let right = [(right.0, Role::Accent), (format!(" {}", right.1), Role::Dim)];
    let ground = cx.theme.style(if t.entered { Role::Selection } else { Role::Raised });
    draw::paint(buf, area, ground);
    let (columns, rows) = cx.model.window.screen;
    let titled = SizeClass::of(columns, rows) > SizeClass::Xs;
    let pad = if titled { PADDING.min(area.width / 2) } else { 0 };
    let area = Rect { x: area.x + pad, width: area.width - 2 * pad, ..area };
    let room = usize::from(area.width);
    let end = right.iter().map(|(text, _)| width(text)).sum::<usize>().min(room);
    let mut x = area.x;
    let mut put = |buf: &mut Buffer, text: &str, role: Role| {
        let left = area.right().saturating_sub(end as u16 + 1).saturating_sub(x);
        let style = cx.theme.style(role);
        // Entered, the ground says it; words keep to it.
        let style = if t.entered {
            ground
        } else {
            style.patch(ratatui::style::Style { bg: ground.bg, ..Default::default() })
        };
        x += draw::text(buf, Rect { x, width: left, ..area }, text, style);
    };
    // The title of the view says the name, where there is one.
    if !titled {
        put(buf, &format!("{name}  "), Role::Strong);
    }
    if let Some(view) = view {
        let (glyph, words, role) = standing(view);
        put(buf, &format!("{glyph} "), role);
        put(buf, &words, role);
        let bells = view.bells.saturating_sub(cx.model.bells_seen(t.agent.as_ref()));
        if bells > 0 {
            put(buf, &format!("  bell {bells}"), Role::Waiting);
        }
        let title = crate::text::clean::plain(&view.title).into_owned();
        if !title.trim().is_empty() {
            put(buf, &format!("  \"{title}\""), Role::Dim);
        }
    } else if let Some(a) = t.agent.as_ref().and_then(|id| cx.model.row(id)) {
        let (glyph, word, role) = look(a.state);
        put(buf, &format!("{glyph} {word}"), role);
        if let Some(code) = a.child.as_ref().and_then(|c| c.exit) {
            put(buf, &format!("  exit {code}"), if code == 0 { Role::Dim } else { Role::Error });
        }
    }
    let mut x = area.right().saturating_sub(end as u16);
    for (text, role) in right {
        let room = Rect { x, width: area.right().saturating_sub(x), ..area };
        let style = if t.entered { ground } else { cx.theme.style(role) };
        x += draw::text(buf, room, &text, style);
    }
}
