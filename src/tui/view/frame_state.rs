//! The frames so far, as far as the next one depends on them.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::model::{Revision, Revisions};
use crate::panel::{Attention, Hint};
use crate::view::layout::LayoutRequest;
use crate::view::overlay::area::LayerArea;
use crate::view::overlay::cover::Cover;

/// The frames so far, as far as the next one depends on them.
#[derive(Default)]
pub(crate) struct FrameState {
    /// Something may have changed since the last frame.
    pub(crate) dirty: bool,
    /// When the screen changes by itself (monotonic), as of the last frame.
    pub(crate) wake: Option<Duration>,
    /// When the spinners on the screen show their next sign (monotonic); `None`: there are none.
    pub(crate) spin: Option<Duration>,
    /// When what is drawn around the panels changes by itself (monotonic), as of the last frame.
    pub(super) chrome_wake: Option<Duration>,
    /// The cells that the last frame drew: cells elsewhere are as they were.
    pub(crate) drawn: Vec<Rect>,
    /// `None`: the next frame draws everything.
    pub(super) last: Option<LastFrame>,
}

impl FrameState {
    /// No frame yet: the first one is due, and draws everything.
    pub(crate) fn new() -> Self {
        Self { dirty: true, ..Self::default() }
    }

    /// The next frame draws everything.
    pub(crate) fn forget(&mut self) {
        self.dirty = true;
        self.last = None;
    }
}

/// The parts of a frame and what they were made from, the panels aside.
pub(super) struct FrameParts {
    pub(super) request: LayoutRequest,
    /// The dialogs by their ids, each with the cells that it filled.
    pub(super) layers: Vec<LayerArea>,
    pub(super) chrome: Chrome,
    /// The cover over all of it.
    pub(super) cover: Cover,
}

/// The state that the last frame was made from.
pub(super) struct LastFrame {
    pub(super) parts: FrameParts,
    /// Sections of the key file whose keys the panels name.
    pub(super) scopes: Vec<&'static str>,
    /// Sections of the key file that are active.
    pub(super) active_scopes: Vec<&'static str>,
    pub(super) slices: Revisions,
}

/// The state of panels and app that header, footer and borders show.
#[derive(PartialEq, Eq)]
pub(super) struct Chrome {
    pub(super) hints: Vec<Hint>,
    /// Title of each view, whether it is empty, and whether it stands out: for borders and badges.
    pub(super) views: Vec<(String, bool, Attention)>,
    pub(super) errors: usize,
    /// Title of the dialog in the composer's place.
    pub(super) docked: Option<String>,
    /// State of the last sessions, which stand below the composer of the start screen.
    pub(super) recent: Option<Revision>,
}
