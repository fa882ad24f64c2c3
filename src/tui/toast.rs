//! Lines that go away by themselves. Everything but plain information is in the error log as well.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tiller_protocol::{Notice, NoticeKind};
use unicode_width::UnicodeWidthStr;

use crate::panel::DrawCx;
use crate::theme::Role;
use crate::widget::draw;

/// How many are shown at once.
const MOST: usize = 3;

/// The toasts on screen.
#[derive(Default)]
pub(crate) struct Toasts {
    list: Vec<(Duration, Notice)>,
}

impl Toasts {
    pub(crate) fn push(&mut self, now: Duration, notice: Notice) {
        let stay = Duration::from_secs(if notice.kind == NoticeKind::Info { 4 } else { 8 });
        self.list.retain(|(_, n)| n.message != notice.message);
        self.list.push((now + stay, notice));
        if self.list.len() > MOST {
            self.list.remove(0);
        }
    }

    /// Forgets those whose time is over.
    pub(crate) fn expire(&mut self, now: Duration) {
        self.list.retain(|(until, _)| *until > now);
    }

    /// When the next one goes.
    pub(crate) fn wake(&self) -> Option<Duration> {
        self.list.iter().map(|(until, _)| *until).min()
    }

    /// Draws them at the bottom right of `area`, newest lowest.
    pub(crate) fn draw(&self, cx: &DrawCx<'_>, area: Rect, buf: &mut Buffer) {
        for (i, (_, n)) in self.list.iter().rev().enumerate() {
            let Some(y) = area.bottom().checked_sub(1 + i as u16).filter(|y| *y >= area.y) else { break };
            let role = match n.kind {
                NoticeKind::Info => Role::Strong,
                NoticeKind::Budget | NoticeKind::Denied => Role::Waiting,
                _ => Role::Error,
            };
            let mut words = format!(" {}", n.message);
            for h in &n.hints {
                words.push_str(" - ");
                words.push_str(h);
            }
            let mut words = draw::cut(&words, usize::from(area.width.saturating_sub(2)));
            words.push(' ');
            let width = (words.width() as u16).min(area.width);
            let spot = Rect { x: area.right() - width, y, width, height: 1 };
            draw::clear(buf, spot, cx.theme.style(Role::Dialog));
            draw::text(buf, spot, &words, cx.theme.style(Role::Dialog).patch(cx.theme.style(role)));
        }
    }
}
