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

/// One line of a list whose rows stand in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListLine {
    /// Between two groups.
    Blank,
    /// The name of the group that begins with this row.
    Heading(usize),
    /// A row.
    Row(usize),
}

/// A list of rows in groups: the chosen row, and the lines that are visible. Rows of one group follow each other; its name
/// stands above them, a blank line before it.
#[derive(Clone, Debug, Default)]
pub struct GroupedList {
    /// Number of the chosen row.
    pub chosen: usize,
    /// First visible line.
    top: usize,
    lines: Vec<ListLine>,
    /// The line of each row.
    places: Vec<usize>,
}

impl GroupedList {
    /// Takes the group of each row; an empty name: no heading. The chosen row keeps its number.
    pub fn set<'a>(&mut self, groups: impl IntoIterator<Item = &'a str>) {
        self.lines.clear();
        self.places.clear();
        let mut last = "";
        for (row, group) in groups.into_iter().enumerate() {
            if group != last {
                if row > 0 {
                    self.lines.push(ListLine::Blank);
                }
                if !group.is_empty() {
                    self.lines.push(ListLine::Heading(row));
                }
                last = group;
            }
            self.places.push(self.lines.len());
            self.lines.push(ListLine::Row(row));
        }
        self.chosen = self.chosen.min(self.places.len().saturating_sub(1));
    }

    /// How many lines there are.
    pub fn height(&self) -> usize {
        self.lines.len()
    }

    /// Goes to the first row and the top.
    pub fn reset(&mut self) {
        (self.chosen, self.top) = (0, 0);
    }

    /// Does one of the moving `list.*` actions where `page` lines are visible; `false` when it is none of them.
    pub fn act(&mut self, id: &str, page: usize) -> bool {
        let mut rows = ListState { chosen: self.chosen, top: 0 };
        let moved = rows.act(id, self.places.len(), page.saturating_sub(1).max(1));
        self.chosen = rows.chosen;
        self.show(page);
        moved
    }

    /// Makes the chosen row visible, with the name of its group when it is the first, and the window full. Call it in
    /// `measure`.
    pub fn show(&mut self, page: usize) {
        let page = page.max(1);
        self.top = self.top.min(self.lines.len().saturating_sub(page));
        let Some(at) = self.places.get(self.chosen).copied() else { return };
        let heading = at.checked_sub(1).filter(|n| matches!(self.lines[*n], ListLine::Heading(_)));
        // The heading is shown too, unless there is room for one line only.
        let first = heading.filter(|_| page > 1).unwrap_or(at);
        self.top = self.top.min(first);
        if at >= self.top + page {
            self.top = at + 1 - page;
        }
    }

    /// The visible lines.
    pub fn window(&self, page: usize) -> &[ListLine] {
        let from = self.top.min(self.lines.len());
        &self.lines[from..(self.top + page).min(self.lines.len())]
    }

    /// The row on the visible line `line`.
    pub fn row_at(&self, line: usize) -> Option<usize> {
        match self.lines.get(self.top + line)? {
            ListLine::Row(row) => Some(*row),
            _ => None,
        }
    }

    /// Moves the window by the wheel, and the chosen row no more than needed.
    pub fn wheel(&mut self, down: bool, page: usize) {
        let page = page.max(1);
        let last = self.lines.len().saturating_sub(page);
        self.top = if down { (self.top + 3).min(last) } else { self.top.saturating_sub(3) };
        let visible = self.top..self.top + page;
        let first = self.places.partition_point(|at| *at < visible.start);
        let behind = self.places.partition_point(|at| *at < visible.end);
        if first < behind {
            self.chosen = self.chosen.clamp(first, behind - 1);
        }
    }

    /// The part of the scroll bar that stands for the visible lines, as rows of a window of `page` rows; `None`: all
    /// lines are visible.
    pub fn thumb(&self, page: usize) -> Option<std::ops::Range<usize>> {
        let all = self.lines.len();
        if page == 0 || all <= page {
            return None;
        }
        let long = (page * page / all).clamp(1, page);
        let from = (self.top * (page - long)).div_ceil(all - page).min(page - long);
        Some(from..from + long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grouped(names: &[&str]) -> GroupedList {
        let mut list = GroupedList::default();
        list.set(names.iter().copied());
        list
    }

    #[test]
    fn a_group_has_its_name_above_it_and_a_blank_line_before() {
        use ListLine::{Blank, Heading, Row};
        let list = grouped(&["Go", "Go", "View", ""]);
        assert_eq!(list.window(9), [Heading(0), Row(0), Row(1), Blank, Heading(2), Row(2), Blank, Row(3)]);
        assert_eq!(grouped(&["", ""]).window(9), [Row(0), Row(1)]);
    }

    #[test]
    fn the_heading_of_the_first_row_of_a_group_is_visible() {
        let mut list = grouped(&["a", "a", "b", "b", "b"]);
        list.act("list.last", 3);
        assert_eq!(list.window(3), [ListLine::Row(2), ListLine::Row(3), ListLine::Row(4)]);
        list.act("list.up", 3);
        list.act("list.up", 3);
        assert_eq!(list.window(3)[0], ListLine::Heading(2));
        assert_eq!(list.thumb(3), Some(2..3));
        assert_eq!(list.thumb(20), None);
    }

    proptest! {
        #[test]
        fn the_chosen_row_of_a_group_is_always_visible(
            acts in prop::collection::vec(0..8usize, 1..50),
            groups in prop::collection::vec(0..3usize, 0..30),
            page in 1..12usize,
        ) {
            let ids = ["list.down", "list.up", "list.page_down", "list.page_up", "list.first", "list.last"];
            let names: Vec<&str> = groups.iter().map(|g| ["", "a", "b"][*g]).collect();
            let mut list = grouped(&names);
            for a in acts {
                match ids.get(a) {
                    Some(id) => prop_assert!(list.act(id, page)),
                    None => { list.wheel(a == 6, page); list.show(page); }
                }
                let visible = list.window(page).contains(&ListLine::Row(list.chosen));
                prop_assert!(names.is_empty() || visible);
                let in_bar = |t: std::ops::Range<usize>| t.start < t.end && t.end <= page;
                prop_assert!(list.thumb(page).is_none_or(in_bar));
            }
        }
    }

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
