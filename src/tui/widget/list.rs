//! Which row of a list is chosen and which rows are visible. The same keys mean the same in every list.

use crate::keymap::action::ActionSpec;

/// Keys that every list has.
pub const ACTIONS: &[ActionSpec] = &[
    ActionSpec::key_only("list.down", "down", "Next row"),
    ActionSpec::key_only("list.up", "up", "Previous row"),
    ActionSpec::key_only("list.page_down", "page down", "One page down"),
    ActionSpec::key_only("list.page_up", "page up", "One page up"),
    ActionSpec::key_only("list.first", "first", "First row"),
    ActionSpec::key_only("list.last", "last", "Last row"),
    ActionSpec::key_only("list.open", "open", "Open or run the selected row"),
    ActionSpec::key_only("list.mark", "mark", "Mark or unmark the row"),
    ActionSpec::key_only("list.copy", "copy", "Copy the row's source"),
    ActionSpec::key_only("list.search", "search", "Search or filter"),
    ActionSpec::key_only("list.next", "next match", "Next match"),
    ActionSpec::key_only("list.previous", "previous match", "Previous match"),
    ActionSpec::key_only("list.back", "back", "Return to the composer, or close"),
];

/// Chosen row and first visible row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListState {
    pub chosen: usize,
    pub top: usize,
}

impl ListState {
    /// Does one of the moving `list.*` actions on `len` rows of which `page` are visible; `false` when
    /// it is none of them.
    pub fn act(&mut self, id: &str, len: usize, page: usize) -> bool {
        let last = len.saturating_sub(1);
        let page = page.max(1);
        self.chosen = match id {
            "list.down" => self.chosen.saturating_add(1),
            "list.up" => self.chosen.saturating_sub(1),
            "list.page_down" => self.chosen.saturating_add(page),
            "list.page_up" => self.chosen.saturating_sub(page),
            "list.first" => 0,
            "list.last" => last,
            _ => return false,
        }
        .min(last);
        self.show(len, page);
        true
    }

    /// Makes the chosen row visible and the window full. Call it in `measure`.
    pub fn show(&mut self, len: usize, page: usize) {
        let page = page.max(1);
        self.chosen = self.chosen.min(len.saturating_sub(1));
        self.top = self.top.min(len.saturating_sub(page)).min(self.chosen);
        if self.chosen >= self.top + page {
            self.top = self.chosen + 1 - page;
        }
    }

    /// The visible rows.
    pub fn window(&self, len: usize, page: usize) -> std::ops::Range<usize> {
        self.top.min(len)..(self.top + page).min(len)
    }

    /// Moves the window by the wheel without changing the chosen row more than needed.
    pub fn wheel(&mut self, down: bool, len: usize, page: usize) {
        let page = page.max(1);
        self.top =
            if down { (self.top + 3).min(len.saturating_sub(page)) } else { self.top.saturating_sub(3) };
        self.chosen =
            self.chosen.clamp(self.top, (self.top + page - 1).min(len.saturating_sub(1)).max(self.top));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_chosen_row_is_always_there_and_visible(
            acts in prop::collection::vec(0..8usize, 1..50), len in 0..40usize, page in 0..12usize
        ) {
            let ids = ["list.down", "list.up", "list.page_down", "list.page_up", "list.first", "list.last"];
            let mut s = ListState::default();
            for a in acts {
                match ids.get(a) {
                    Some(id) => prop_assert!(s.act(id, len, page)),
                    None => s.wheel(a == 6, len, page),
                }
                prop_assert!(len == 0 || s.chosen < len);
                prop_assert!(len == 0 || s.window(len, page.max(1)).contains(&s.chosen));
            }
        }
    }
}
