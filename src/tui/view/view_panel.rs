//! Panels with what the last frame showed of them. One place decides whether a panel is drawn again, in the layout as in
//! a dialog.

use std::time::Duration;

use ratatui::layout::{Position, Rect};

use crate::model::{Model, Revision, Revisions, Slice, Tracked};
use crate::panel::{Attention, Panel, PanelEvent, Placement, Refresh, Reply, View};

/// The state that something was made from: of the panel itself and of the model.
#[derive(Clone, Copy)]
struct DrawnState {
    panel: Revision,
    slices: Revisions,
}

impl DrawnState {
    /// True when the panel and these slices, and those that everything depends on, are still in this state.
    fn is_current(&self, panel: Revision, slices: &Revisions, reads: &[Slice]) -> bool {
        self.panel == panel && self.slices.same(slices, reads) && self.slices.same(slices, Slice::SHARED)
    }
}

/// A panel, the number of its state, and the state in which it was drawn last.
pub(crate) struct TrackedPanel {
    panel: Tracked<Box<dyn Panel>>,
    /// `None`: it is not on the screen.
    drawn: Option<DrawnState>,
    /// When it changes by itself (monotonic), as it said when it was drawn.
    wake: Option<Duration>,
    /// Its cells with a spinner, on the screen.
    spinners: Vec<Position>,
}

impl TrackedPanel {
    /// A panel that was not drawn yet.
    pub(crate) fn new(panel: Box<dyn Panel>) -> Self {
        Self { panel: Tracked::new(panel), drawn: None, wake: None, spinners: Vec::new() }
    }

    pub(crate) fn panel(&self) -> &dyn Panel {
        self.panel.as_ref()
    }

    /// The panel alone, for a place where it is not drawn.
    pub(crate) fn into_panel(self) -> Box<dyn Panel> {
        self.panel.into_inner()
    }

    /// For measuring and drawing: caches are not part of its state.
    pub(crate) fn panel_to_draw(&mut self) -> &mut dyn Panel {
        self.panel.untracked().as_mut()
    }

    /// Calls the panel. Its state counts as changed unless it ignored the call.
    pub(crate) fn call(&mut self, model: &Model, f: impl FnOnce(&mut dyn Panel, &Model) -> Reply) -> Reply {
        let reply = f(self.panel.untracked().as_mut(), model);
        if let Reply::Done(_) = reply {
            self.panel.touch();
        }
        reply
    }

    /// When it changes by itself (monotonic).
    pub(crate) fn wake(&self) -> Option<Duration> {
        self.wake
    }

    /// Its cells with a spinner, as drawn last.
    pub(crate) fn spinners(&self) -> &[Position] {
        &self.spinners
    }

    /// True when it would look the same as it was drawn last. `reads`: the slices of the model that it reads.
    pub(crate) fn is_drawn(&self, model: &Model, slices: &Revisions, reads: &[Slice]) -> bool {
        self.is_current(self.drawn, model, slices, reads)
    }

    /// Notes that it was drawn in this state at `now` (monotonic), and what changes by itself in its `area`.
    pub(crate) fn was_drawn(&mut self, slices: &Revisions, now: Duration, area: Rect, refresh: &Refresh) {
        self.drawn = Some(self.source(slices));
        self.wake = refresh.wake.map(|after| now + after);
        let on_screen = |(x, y): &(u16, u16)| Position::new(area.x + x, area.y + y);
        self.spinners.clear();
        self.spinners.extend(refresh.spinners.iter().map(on_screen).filter(|p| area.contains(*p)));
    }

    /// Notes that a timer has fired: a panel whose look depends on the time is drawn in the next frame, whichever
    /// panel the timer was for.
    pub(crate) fn tick(&mut self) {
        self.wake = self.wake.map(|_| Duration::ZERO);
    }

    /// Notes that it is not on the screen.
    pub(crate) fn was_hidden(&mut self) {
        self.drawn = None;
        self.wake = None;
        self.spinners.clear();
    }

    fn source(&self, slices: &Revisions) -> DrawnState {
        DrawnState { panel: self.panel.revision(), slices: *slices }
    }

    /// True when nothing has changed since `source`, and no change by itself is due.
    fn is_current(
        &self,
        source: Option<DrawnState>,
        model: &Model,
        slices: &Revisions,
        reads: &[Slice],
    ) -> bool {
        let due = self.wake.is_some_and(|w| w <= model.mono);
        !due && source.is_some_and(|s| s.is_current(self.panel.revision(), slices, reads))
    }
}

/// The facts of a panel that layout, titles and badges show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PanelFacts {
    pub(crate) title: String,
    /// There is nothing to show.
    pub(crate) empty: bool,
    pub(crate) attention: Attention,
    /// Rows that it fills with so many columns; `None`: as many as there are.
    pub(crate) rows: Option<u16>,
    columns: u16,
}

/// A panel of the layout.
pub(crate) struct ViewPanel {
    pub(crate) view: View,
    panel: TrackedPanel,
    reads: &'static [Slice],
    facts: PanelFacts,
    /// The state that the facts were made from.
    counted: Option<DrawnState>,
    /// How often its rows were counted, and how often it was drawn.
    #[cfg(test)]
    pub(crate) calls: (u32, u32),
}

impl ViewPanel {
    /// `reads`: the slices of the model that the panel reads.
    pub(crate) fn new(view: View, panel: Box<dyn Panel>, reads: &'static [Slice]) -> Self {
        Self {
            view,
            panel: TrackedPanel::new(panel),
            reads,
            facts: PanelFacts::default(),
            counted: None,
            #[cfg(test)]
            calls: (0, 0),
        }
    }

    pub(crate) fn panel(&self) -> &dyn Panel {
        self.panel.panel()
    }

    /// For measuring and drawing: caches are not part of its state.
    pub(crate) fn panel_to_draw(&mut self) -> &mut dyn Panel {
        self.panel.panel_to_draw()
    }

    /// Calls the panel. Its state counts as changed unless it ignored the call.
    pub(crate) fn call(&mut self, model: &Model, f: impl FnOnce(&mut dyn Panel, &Model) -> Reply) -> Reply {
        self.panel.call(model, f)
    }

    /// Puts another panel in its place and returns the former panel.
    pub(crate) fn replace(&mut self, panel: Box<dyn Panel>) -> Box<dyn Panel> {
        std::mem::replace(&mut *self.panel.panel, panel)
    }

    /// Returns what layout, titles and badges show of it, as of the last [`ViewPanel::count`].
    pub(crate) fn facts(&self) -> &PanelFacts {
        &self.facts
    }

    /// When it changes by itself (monotonic).
    pub(crate) fn wake(&self) -> Option<Duration> {
        self.panel.wake()
    }

    /// Brings the facts up to date, when the state that they were made from has changed. `columns`: those that it would
    /// get in the layout.
    pub(crate) fn count(&mut self, model: &Model, slices: &Revisions, columns: u16) {
        if self.facts.columns == columns && self.panel.is_current(self.counted, model, slices, self.reads) {
            return;
        }
        let rows = match self.panel().placement(columns, model) {
            Placement::Rows(rows) => Some(rows),
            _ => None,
        };
        self.facts = PanelFacts { rows, columns, ..PanelFacts::default() };
        self.name(model);
        self.counted = Some(self.panel.source(slices));
        #[cfg(test)]
        {
            self.calls.0 += 1;
        }
    }

    /// Title and emptiness once more: measuring may have changed them.
    fn name(&mut self, model: &Model) {
        self.facts.title = self.panel().title(model);
        let status = self.panel().status(model);
        (self.facts.empty, self.facts.attention) = (status.empty, status.attention);
    }

    /// True when it would look the same as it was drawn last.
    pub(crate) fn is_drawn(&self, model: &Model, slices: &Revisions) -> bool {
        self.panel.is_drawn(model, slices, self.reads)
    }

    /// Its cells with a spinner, as drawn last.
    pub(crate) fn spinners(&self) -> &[Position] {
        self.panel.spinners()
    }

    /// Notes that it was drawn in this state, and what changes by itself in its `area`.
    pub(crate) fn was_drawn(&mut self, model: &Model, slices: &Revisions, area: Rect, refresh: &Refresh) {
        self.panel.was_drawn(slices, model.mono, area, refresh);
        self.name(model);
        #[cfg(test)]
        {
            self.calls.1 += 1;
        }
    }

    /// Notes that a timer has fired: see [`TrackedPanel::tick`].
    pub(crate) fn tick(&mut self) {
        self.panel.tick();
    }

    /// Notes that it is not on the screen.
    pub(crate) fn was_hidden(&mut self, model: &Model) {
        let _ = self.panel_to_draw().handle(PanelEvent::Hidden, model);
        self.panel.was_hidden();
    }
}
