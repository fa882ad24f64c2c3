//! What a frame has to draw anew. Most frames are a key or some words of a reply: then only the inside of one view is
//! drawn, and the rest of the screen stays as the frame before left it.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::app::state::{Around, Owner, Stale};
use crate::panel::View;
use crate::view::layout::{Class, LayoutRequest};

impl App {
    /// Everything may have changed, and is drawn anew.
    pub(crate) fn redraw(&mut self) {
        self.dirty = true;
        self.stale = Stale::All;
    }

    /// What the last frame drew: cells elsewhere are as they were.
    pub fn drawn(&self) -> &[Rect] {
        &self.last.drawn
    }

    /// As it is drawn now.
    pub(crate) fn around(&self, wish: &LayoutRequest) -> Around {
        let views = View::ALL.map(|v| self.told_by(v));
        let sections = wish.sections.clone();
        Around { screen: wish.screen, composer: wish.composer, sections, hints: self.hints(), views }
    }

    fn told_by(&self, view: View) -> (String, bool) {
        (self.title(view), self.is_empty(Owner::View(view)))
    }

    /// Draws the insides of `views` into the frame before, when that is all that has to be done; `None`: it is not.
    pub(crate) fn draw_inside(&mut self, views: u8, buf: &mut Buffer) -> Option<Option<Position>> {
        let before = self.last.around.as_ref()?;
        // What lies over the views, and what counts in the strip above the composer, is not theirs.
        let covered = !self.layers.is_empty() || !self.keys.pending.is_empty() || !self.toasts.is_empty();
        let late = self.wake.is_some_and(|w| w <= self.model.mono);
        if covered || late || self.model.tour.step().is_some() || buf.area != before.screen {
            return None;
        }
        let rows = |v: View| before.sections.iter().all(|s| s.view != v || self.section_rows(v) == s.rows);
        let same =
            |v: View| views & 1 << v.digit() == 0 || self.told_by(v) == before.views[v.digit()] && rows(v);
        if self.composer_rows(buf.area) != before.composer
            || !View::ALL.into_iter().all(same)
            || self.hints() != before.hints
        {
            return None;
        }
        let areas = self.screen.areas.take().filter(|a| a.class != Class::Tiny)?;
        let focused = self.status_of(Owner::View(self.screen.focus)).map_or("global", |s| s.scope);
        let scopes = self.registry.words().chain(focused);
        let (mut cursor, mut wake) = (None, self.wake);
        self.last.drawn.clear();
        for part in areas.parts().filter(|p| p.inner.area() > 0) {
            let focus = self.screen.focus == part.view;
            if views & 1 << part.view.digit() != 0 {
                let new = self.panel_again(part, &scopes, buf, &mut cursor, &mut wake);
                self.last.drawn.push(new);
            } else if focus {
                let panel = self.panel(Owner::View(part.view));
                cursor = panel.and_then(|p| p.cursor(part.inner, &self.model));
                cursor = cursor.filter(|p| part.inner.contains(*p));
            }
        }
        self.screen.areas = Some(areas);
        self.wake = self.next_wake(wake);
        Some(cursor)
    }
}
