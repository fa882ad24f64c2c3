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
    /// What it is about; empty: only itself.
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
    /// to do.
    fn laid(&self, cx: &DrawCx<'_>, width: u16, height: u16) -> Vec<Laid> {
        let columns = usize::from(width.saturating_sub(6)).min(WIDEST);
        let gap = gap(cx);
        let mut left = usize::from(height);
        let mut all = Vec::new();
        for n in self.list.iter().rev().map(|t| &t.notice) {
            let tone = match n.kind {
                // What was asked for is not there, or was done: no error.
                NoticeKind::Info | NoticeKind::User => Role::Dim,
                NoticeKind::Budget => Role::Waiting,
                _ => Role::Error,
            };
            if !all.is_empty() {
                left = left.saturating_sub(gap);
            }
            let room = left.min(ROWS);
            if room == 0 {
                break;
            }
            let mut rows: Vec<(String, Role)> =
                wrap(&capital(&n.message), columns).into_iter().map(|row| (row, Role::Text)).collect();
            let hints = n.hints.iter().map(|h| sentence(h)).collect::<Vec<_>>().join(" ");
            // A hint that is one sentence is a label, as the message is.
            let hints = if n.hints.len() == 1 { hints.trim_end_matches('.') } else { &hints };
            if !hints.is_empty() {
                rows.extend(wrap(hints, columns).into_iter().map(|row| (row, Role::Dim)));
            }
            if rows.len() > room {
                // The rest of it is in the log.
                rows.truncate(room);
                if let Some((last, _)) = rows.last_mut() {
                    *last = draw::cut(&format!("{last} ... {}", cx.key("errors.open")), columns);
                }
            }
            left -= rows.len();
            all.push(Laid { tone, rows });
        }
        all
    }

    /// Rows that they take in a room of so many columns and rows.
    pub(crate) fn rows(&self, cx: &DrawCx<'_>, width: u16, height: u16) -> u16 {
        let all = self.laid(cx, width, height);
        let gaps = gap(cx) * all.len().saturating_sub(1);
        (all.iter().map(|toast| toast.rows.len()).sum::<usize>() + gaps) as u16
    }

    /// Draws them at the bottom right of `area`, newest lowest: each on a ground of its own, with a bar in its tone.
    /// Returns the cells that they fill.
    pub(crate) fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) -> Rect {
        let mut bottom = area.bottom();
        let ground = surface::raised(cx.theme);
        let all = self.laid(cx, area.width, area.height);
        let widest = all.iter().flat_map(|toast| &toast.rows).map(|(row, _)| row.width()).max().unwrap_or(0);
        let width = (widest as u16 + 4).min(area.width);
        for (n, Laid { tone, rows }) in all.into_iter().enumerate() {
            let gap = if n > 0 { gap(cx) as u16 } else { 0 };
            bottom -= gap;
            let between = Rect { x: area.right() - width, y: bottom, width, height: gap };
            draw::clear(buf, between, cx.theme.style(Role::Ground));
            bottom -= rows.len() as u16;
            let spot = Rect { x: area.right() - width, y: bottom, width, height: rows.len() as u16 };
            draw::clear(buf, spot, ground);
            surface::bar(cx, spot, tone, buf);
            for (y, (row, role)) in (bottom..).zip(&rows) {
                let line = Rect { x: spot.x + 2.min(width), y, width: width.saturating_sub(3), height: 1 };
                draw::text(buf, line, row, cx.theme.style(*role));
            }
        }
        Rect { x: area.right() - width, y: bottom, width, height: area.bottom() - bottom }
    }
}

/// A toast as it is drawn.
struct Laid {
    /// The tone of its bar.
    tone: Role,
    rows: Vec<(String, Role)>,
}

/// Rows between two toasts: none where the screen is low.
fn gap(cx: &DrawCx<'_>) -> usize {
    usize::from(air(cx.model.window.screen.1))
}
