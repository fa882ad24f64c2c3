//! Lines that go away by themselves. Everything but plain information is in the error log as well.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::notice::{capital, sentence};
use tiller_protocol::{Notice, NoticeKind};
use unicode_width::UnicodeWidthStr;

use crate::panel::DrawCx;
use crate::theme::Role;
use crate::view::layout::air;
use crate::widget::wrap::wrap;
use crate::widget::{draw, surface};

/// How many are shown at once.
const MOST: usize = 3;
/// Rows and columns that one may take.
const ROWS: usize = 5;
const WIDEST: usize = 96;
/// Columns of the header that are left to its own words: mode, agent, and the count that needs the person.
const HEADER: u16 = 34;

/// The toasts on screen.
#[derive(Default)]
pub(crate) struct Toasts {
    list: Vec<Toast>,
    /// Counts the changes of the list.
    revision: u64,
}

struct Toast {
    until: Duration,
    notice: Notice,
    /// Its subject; empty: only itself.
    subject: &'static str,
}

impl Toasts {
    pub(crate) fn push(&mut self, now: Duration, notice: Notice) {
        self.push_about(now, "", notice);
    }

    /// In place of the one before about the same.
    pub(crate) fn push_about(&mut self, now: Duration, subject: &'static str, notice: Notice) {
        let stay = Duration::from_secs(if notice.kind == NoticeKind::Info { 4 } else { 8 });
        let same = |t: &Toast| !subject.is_empty() && t.subject == subject;
        self.list.retain(|t| t.notice.message != notice.message && !same(t));
        self.list.push(Toast { until: now + stay, notice, subject });
        self.revision += 1;
        if self.list.len() > MOST {
            self.list.remove(0);
        }
    }

    /// Drops toasts whose time is over.
    pub(crate) fn expire(&mut self, now: Duration) {
        let before = self.list.len();
        self.list.retain(|t| t.until > now);
        self.revision += u64::from(self.list.len() < before);
    }

    /// Another number for another list.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// None is on the screen.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// When the next one goes.
    pub(crate) fn wake(&self) -> Option<Duration> {
        self.list.iter().map(|t| t.until).min()
    }

    /// Each as rows of words, newest first, in a room of so many columns and rows: what happened, and dimmer below it what
    /// to do. `but_newest`: that one stands elsewhere.
    fn laid(&self, (width, height): (u16, u16), gap: usize, key: &str, but_newest: bool) -> Vec<Laid> {
        let columns = usize::from(width.saturating_sub(4)).min(WIDEST);
        let mut left = usize::from(height);
        let mut all = Vec::new();
        for n in self.list.iter().rev().skip(usize::from(but_newest)).map(|t| &t.notice) {
            if !all.is_empty() {
                left = left.saturating_sub(gap);
            }
            let room = left.min(ROWS);
            if room == 0 {
                break;
            }
            let row = |role| move |row: String| vec![(row, role)];
            let mut rows: Vec<Spans> =
                wrap(&capital(&n.message), columns).into_iter().map(row(Role::Text)).collect();
            let hints = hints(n);
            if !hints.is_empty() {
                rows.extend(wrap(&hints, columns).into_iter().map(row(Role::Dim)));
            }
            if rows.len() > room {
                rows.truncate(room);
                if let Some((last, _)) = rows.last_mut().and_then(|row| row.last_mut()) {
                    // The rest of it is in the log, where it is more than information.
                    let key = if n.kind == NoticeKind::Info { "" } else { key };
                    let end = if key.is_empty() { String::new() } else { format!(" {key}") };
                    let room = columns.saturating_sub(end.width());
                    *last = draw::cut(&format!("{last}{}", draw::ellipsis()), room) + &end;
                }
            }
            left -= rows.len();
            all.push(Laid { tone: tone(n), rows });
        }
        all
    }

    /// The newest in one row, where a header of so many columns has room for it beside its most important words.
    fn line(&self, header: u16) -> Option<Laid> {
        let n = &self.list.last()?.notice;
        let (message, hints) = (capital(&n.message), hints(n));
        if message.contains('\n') || hints.contains('\n') {
            return None;
        }
        let mut spans = vec![(draw::clean(&message), Role::Text)];
        if !hints.is_empty() {
            spans.push(("  ".into(), Role::Text));
            spans.push((draw::clean(&hints), Role::Dim));
        }
        let laid = Laid { tone: tone(n), rows: vec![spans] };
        (laid.width() + usize::from(HEADER) <= usize::from(header)).then_some(laid)
    }

    /// Columns that the newest takes at the right of a header of so many; 0: it does not stand there.
    pub(crate) fn columns(&self, header: u16) -> u16 {
        self.line(header).map_or(0, |laid| laid.width() as u16)
    }

    /// Draws the newest at the right of the header.
    pub(crate) fn draw_line(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        if let Some(laid) = self.line(u16::MAX).filter(|_| area.area() > 0) {
            laid.draw(cx, area, buf);
        }
    }

    /// Rows that they take on a screen of so many rows, in a room of so many columns and rows. `but_newest`: that one
    /// stands in the header.
    pub(crate) fn rows(&self, screen: u16, room: (u16, u16), but_newest: bool) -> u16 {
        let gap = gap(screen);
        let all = self.laid(room, gap, "", but_newest);
        let gaps = gap * all.len().saturating_sub(1);
        (all.iter().map(|toast| toast.rows.len()).sum::<usize>() + gaps) as u16
    }

    /// Draws them at the bottom right of `area`, newest lowest: each on a ground of its own, with a bar in its tone.
    /// Returns the cells that they fill. `but_newest`: that one stands in the header.
    pub(crate) fn draw(&self, cx: &DrawCx<'_>, area: Rect, but_newest: bool, buf: &mut Buffer) -> Rect {
        let mut bottom = area.bottom();
        let gap = gap(cx.model.window.screen.1);
        let all = self.laid((area.width, area.height), gap, &cx.key("errors.open"), but_newest);
        let width = (all.iter().map(Laid::width).max().unwrap_or(0) as u16).min(area.width);
        for (n, laid) in all.iter().enumerate() {
            let gap = if n > 0 { gap as u16 } else { 0 };
            bottom -= gap;
            let between = Rect { x: area.right() - width, y: bottom, width, height: gap };
            draw::clear(buf, between, cx.theme.style(Role::Ground));
            bottom -= laid.rows.len() as u16;
            laid.draw(
                cx,
                Rect { x: area.right() - width, y: bottom, width, height: laid.rows.len() as u16 },
                buf,
            );
        }
        Rect { x: area.right() - width, y: bottom, width, height: area.bottom() - bottom }
    }
}

/// Words with their looks.
type Spans = Vec<(String, Role)>;

/// A toast as it is drawn.
struct Laid {
    /// The tone of its bar.
    tone: Role,
    rows: Vec<Spans>,
}

impl Laid {
    /// Columns with the bar and the blanks around the words.
    fn width(&self) -> usize {
        let words = |row: &Spans| row.iter().map(|(text, _)| text.width()).sum();
        self.rows.iter().map(words).max().unwrap_or(0) + 4
    }

    fn draw(&self, cx: &DrawCx<'_>, spot: Rect, buf: &mut Buffer) {
        draw::clear(buf, spot, surface::raised(cx.theme));
        surface::bar(cx, spot, self.tone, buf);
        for (y, row) in (spot.y..spot.bottom()).zip(&self.rows) {
            let mut x = spot.x + 2.min(spot.width);
            for (text, role) in row {
                let room = Rect { x, y, width: spot.right().saturating_sub(x + 1), height: 1 };
                x += draw::text(buf, room, text, cx.theme.style(*role));
            }
        }
    }
}

fn tone(n: &Notice) -> Role {
    match n.kind {
        // A request that was done, or whose subject does not exist, is no error.
        NoticeKind::Info | NoticeKind::User => Role::Dim,
        NoticeKind::Budget => Role::Waiting,
        _ => Role::Error,
    }
}

/// The hints in one text.
fn hints(n: &Notice) -> String {
    let hints = n.hints.iter().map(|h| sentence(h)).collect::<Vec<_>>().join(" ");
    // A hint that is one sentence is a label, as the message is.
    if n.hints.len() == 1 { hints.trim_end_matches('.').to_owned() } else { hints }
}

/// Rows between two toasts on a screen of so many rows: none where it is low.
fn gap(screen: u16) -> usize {
    usize::from(air(screen))
}

#[cfg(test)]
#[path = "toast_tests.rs"]
mod tests;
