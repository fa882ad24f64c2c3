//! A one-line field: text that scrolls sideways so that the caret is always seen.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::edit::Edit;
use crate::keymap::action::ActionSpec;

/// The readline set, shared by every place where text is typed.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("edit.left", "left", "Move one character to the left"),
    ActionSpec::key_only("edit.right", "right", "Move one character to the right"),
    ActionSpec::key_only("edit.word_left", "word left", "Move to the start of the word"),
    ActionSpec::key_only("edit.word_right", "word right", "Move to the end of the word"),
    ActionSpec::key_only("edit.home", "line start", "Move to the start of the line"),
    ActionSpec::key_only("edit.end", "line end", "Move to the end of the line"),
    ActionSpec::key_only("edit.backspace", "erase", "Delete the character before the caret"),
    ActionSpec::key_only("edit.delete", "delete", "Delete the character under the caret"),
    ActionSpec::key_only("edit.kill_word_left", "cut word", "Cut back to the last space"),
    ActionSpec::key_only("edit.kill_part_left", "cut part", "Cut back to the start of the word"),
    ActionSpec::key_only("edit.kill_word_right", "cut next word", "Cut to the end of the word"),
    ActionSpec::key_only("edit.kill_start", "cut to start", "Cut to the start of the line"),
    ActionSpec::key_only("edit.kill_end", "cut to end", "Cut to the end of the line"),
    ActionSpec::key_only("edit.yank", "yank", "Insert what was cut last"),
    ActionSpec::key_only("edit.transpose", "swap", "Swap the two characters around the caret"),
    ActionSpec::key_only(
        "edit.yank_pop",
        "yank older",
        "Right after a yank: replace it with the previous cut",
    ),
    ActionSpec::key_only("edit.upper", "upper case", "Make the word upper case"),
    ActionSpec::key_only("edit.capital", "capital", "Capitalize the word"),
    ActionSpec::key_only("edit.top", "text start", "Move to the start of the text"),
    ActionSpec::key_only("edit.bottom", "text end", "Move to the end of the text"),
    ActionSpec::key_only("edit.redo", "redo", "Redo the undone change"),
    ActionSpec::key_only("input.done", "done", "Submit the text"),
    ActionSpec::key_only("edit.undo", "undo", "Undo the last change of the text"),
];

/// Draws the field and says where the caret is. Control characters are never in it: pasted and typed
/// text is cleaned before it arrives.
pub fn draw(edit: &Edit, area: Rect, buf: &mut Buffer, style: Style) -> Position {
    let width = usize::from(area.width);
    let caret = edit.text()[..edit.caret()].width();
    // Keep one column for the caret behind the last character.
    let skip = (caret + 1).saturating_sub(width);
    let mut x = 0;
    if area.height > 0 {
        for g in edit.text().graphemes(true) {
            let w = g.width();
            if x >= skip && x + w <= skip + width {
                buf.set_string(area.x + (x - skip) as u16, area.y, g, style);
            }
            x += w;
        }
    }
    Position::new(area.x + (caret - skip.min(caret)) as u16, area.y)
}

/// Where the caret is, without drawing.
pub fn caret(edit: &Edit, area: Rect) -> Position {
    let caret = edit.text()[..edit.caret()].width();
    let skip = (caret + 1).saturating_sub(usize::from(area.width));
    Position::new(area.x + (caret - skip.min(caret)) as u16, area.y)
}
