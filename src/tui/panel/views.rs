//! The panels of the views. One line each; a view without a line shows why it is empty.

use super::{agents, composer, conversation, sessions, terminal, todo, watch};
use crate::dialog::review;
use crate::registry::PanelEntry;

/// All of them.
pub const PANELS: &[PanelEntry] = &[
    composer::PANEL,
    conversation::PANEL,
    todo::PANEL,
    agents::PANEL,
    watch::PANEL,
    sessions::PANEL,
    review::PANEL,
    terminal::PANEL,
];
