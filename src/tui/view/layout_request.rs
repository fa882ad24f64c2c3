//! What the views on the screen ask of the layout.

use ratatui::layout::Rect;

use crate::app::App;
use crate::app::state::Owner;
use crate::panel::{Placement, View};
use crate::view::layout::{Class, LayoutRequest, Section};

/// Sections of the rail, in their fixed order.
pub(crate) const RAIL: [View; 4] = [View::Todo, View::Agents, View::Watch, View::Sessions];

impl App {
    /// What is wished for now; so many rows for the strip.
    pub(crate) fn wish(&self, screen: Rect, strip: u16) -> LayoutRequest {
        let class = Class::of(screen.width, screen.height);
        let docked = self.docked();
        let composer = match docked {
            Some(owner) => match self.panel(owner).map(|p| p.placement(screen.width, &self.model)) {
                // The box has no border of its own there: the frame is its border.
                Some(Placement::Dock { height }) => {
                    height.saturating_sub(if class.wide() { 2 } else { 0 }).max(1)
                }
                _ => 1,
            },
            None => self.composer_rows(screen),
        };
        LayoutRequest {
            screen,
            main: self.screen.main,
            focus: self.screen.focus,
            zoom: self.screen.zoom,
            rail: self.screen.rail,
            half: self.screen.half,
            sections: if class.wide() {
                RAIL.into_iter().map(|view| Section { view, rows: self.section_rows(view) }).collect()
            } else {
                Vec::new()
            },
            composer,
            strip,
            docked: docked.is_some(),
        }
    }

    /// Rows that a section of the rail would fill.
    pub(crate) fn section_rows(&self, view: View) -> u16 {
        let Some(panel) = self.panel(Owner::View(view)).filter(|p| !p.status(&self.model).empty) else {
            return 0;
        };
        match panel.placement(36, &self.model) {
            Placement::Rows(rows) => rows,
            _ => u16::MAX,
        }
    }

    /// Rows that the composer would like.
    pub(crate) fn composer_rows(&self, screen: Rect) -> u16 {
        let width = screen.width.saturating_sub(2);
        match self.panel(Owner::View(View::Composer)).map(|p| p.placement(width, &self.model)) {
            Some(Placement::Rows(rows)) => rows.max(1),
            _ => 1,
        }
    }

    /// The layer that lies in the composer's place, if one does.
    pub(crate) fn docked(&self) -> Option<Owner> {
        self.layers
            .iter()
            .rev()
            .find(|l| matches!(l.placement(&self.model), Placement::Dock { .. }))
            .map(|l| Owner::Layer(l.id))
    }
}
