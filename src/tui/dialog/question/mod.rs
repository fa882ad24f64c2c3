//! Dialogs that answer a question of the engine.

use std::cell::Cell;

use crate::panel::Placement;
use crate::registry::Dialog;
use crate::text::line::Line;
use crate::text::sheet::Sheet;
use crate::widget::edit::Edit;

mod answer_state;
pub mod approval;
pub mod clarify;
pub(crate) mod input_delay;
pub mod program;

/// Rows that a question leaves to header, conversation and footer, where they are not more than three eighths.
const LEFT: u16 = 9;
/// Rows of its text that are in sight at least, where it has them.
const SEEN: u16 = 3;

/// True where a question leaves the conversation in view, and has a row for its title.
pub(crate) fn is_roomy((columns, rows): (u16, u16)) -> bool {
    columns >= 60 && rows >= 16
}

/// The move in the text of a question that an action stands for while `field` has the keys; `None`: none. Home and End are
/// keys of the field where something is written in it.
pub(crate) fn reads(action: &str, field: &Edit) -> Option<&'static str> {
    match action {
        "clarify.page_down" | "list.page_down" => Some("list.page_down"),
        "clarify.page_up" | "list.page_up" => Some("list.page_up"),
        "edit.home" if field.is_empty() => Some("list.first"),
        "edit.end" if field.is_empty() => Some("list.last"),
        _ => None,
    }
}

/// Where a question lies with so many rows of text, and beside them so many `others` that do not scroll: in the composer's
/// place, with what was said last above it. Text that does not fit scrolls. On small screens it fills the screen.
pub(crate) fn placed(screen: (u16, u16), text: u16, others: u16) -> Placement {
    let most = screen.1.saturating_sub(LEFT).max(screen.1 / 8 * 5);
    if !is_roomy(screen) || others.saturating_add(text.min(SEEN)) > most {
        return Placement::Full;
    }
    Placement::Dock { height: others.saturating_add(text).min(most) }
}

/// The rows of a text, by width: where a dialog lies is asked many times for each frame.
#[derive(Default)]
pub(crate) struct TextRows(Cell<Option<(u16, u16)>>);

impl TextRows {
    /// The rows of these lines at so many columns.
    pub(crate) fn of(&self, columns: u16, lines: impl FnOnce() -> Vec<Line>) -> u16 {
        if let Some((_, rows)) = self.0.get().filter(|known| known.0 == columns) {
            return rows;
        }
        let rows = Sheet::new(lines(), usize::from(columns).max(1)).rows.len();
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        self.0.set(Some((columns, rows)));
        rows
    }

    /// The text is another one.
    pub(crate) fn forget(&self) {
        self.0.set(None);
    }
}

/// The dialogs of this group, those that open by an action in the order of help.
pub(crate) const DIALOGS: &[Dialog] = &[approval::DIALOG, clarify::DIALOG, program::DIALOG];

#[cfg(test)]
mod paging_tests;
