//! Which parts of the path are loaded. The end always is. What the person reads far above the end is loaded besides, and
//! one row stands for the entries in between. What is far from both is forgotten.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;
use std::ops::Range;

use tiller_protocol::command::PathPlace;
use tiller_protocol::{Entry, EntryId, Origin, Time};

use super::build::Builder;
use super::{Body, Cell, Conversation, FirstEntry, KEEP, SLACK, ToolState};

/// Cells at an edge in which the other half of a call is looked for.
const NEAR: usize = 1024;

/// The entries that are not loaded between the part that is read and the end.
pub(super) struct Gap {
    /// Its cell.
    key: u64,
    /// Entries of the path before the part above it.
    above: u64,
    /// The first entry of that part.
    first: FirstEntry,
    /// Turn of its first cell.
    first_turn: i64,
    /// The first entry that is not loaded.
    next: EntryId,
}

/// Where a part stands on the path.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub(super) earlier: u64,
    pub(super) later: u64,
    pub(super) next: Option<EntryId>,
}

/// Begins a turn with its entry.
fn is_prompt(cell: &Cell) -> bool {
    matches!(cell.body, Body::User { origin: Origin::Prompt | Origin::Task | Origin::Shell, .. })
}

/// Results that stand in `below` take over what is known of their calls at the end of `above`: each stays one row, the
/// lower one.
fn join_below<'c>(above: &mut VecDeque<Cell>, below: impl Iterator<Item = &'c mut Cell>) {
    for cell in below.take(NEAR) {
        let Body::Tool(orphan) = &mut cell.body else { continue };
        if !orphan.arguments.is_null() {
            continue;
        }
        let is_call =
            |c: &Cell| matches!(&c.body, Body::Tool(t) if t.call_id == orphan.call_id && t.result.is_none());
        let near = above.len().saturating_sub(NEAR);
        let Some(at) = (near..above.len()).rev().find(|n| above.get(*n).is_some_and(is_call)) else {
            continue;
        };
        if let Some(Cell { key, entry, entries, rev, body: Body::Tool(call), .. }) = above.remove(at) {
            orphan.arguments = call.arguments.clone();
            call.inner.iter().for_each(|inner| orphan.made_before(inner));
            cell.entry = entry;
            cell.entries += entries;
            cell.rev = cell.rev.max(rev) + 1;
            // What was on the screen may be the position of the window.
            if key != 0 {
                cell.key = key;
            }
        }
    }
}

/// Results in `built` whose calls stand in `above`, where each stays one row, the upper one.
fn join_above(built: &mut Vec<Cell>, above: &mut VecDeque<Cell>) {
    built.retain(|c| {
        let Body::Tool(orphan) = &c.body else { return true };
        if !orphan.arguments.is_null() {
            return true;
        }
        let near = above.iter_mut().rev().take(NEAR);
        for cell in near {
            let Body::Tool(call) = &mut cell.body else { continue };
            if call.call_id != orphan.call_id {
                continue;
            }
            if call.result.is_none() {
                for inner in orphan.inner.iter().flat_map(|all| all.calls.iter().map(|call| (call, all.most)))
                {
                    call.made(inner.0, inner.1);
                }
                if orphan.result.is_some() {
                    call.take_result((**orphan).clone());
                }
                cell.entries += c.entries;
                cell.rev += 1;
            }
            return false;
        }
        true
    });
}

/// Calls without a result here are not to be seen as running.
fn lose<'c>(cells: impl IntoIterator<Item = &'c mut Cell>) {
    for cell in cells {
        if let Body::Tool(t) = &mut cell.body
            && t.state == ToolState::Waiting
        {
            t.state = ToolState::Lost;
        }
    }
}

impl Conversation {
    /// How many entries of the path lie before the first cell.
    pub fn above(&self) -> u64 {
        self.gap.as_ref().map_or(self.earlier, |gap| gap.above)
    }

    /// The cell that stands for entries which are not loaded, between the part that is read and the end.
    pub fn gap(&self) -> Option<usize> {
        self.gap.as_ref().and_then(|gap| self.find(gap.key))
    }

    /// The first cell of the loaded end.
    pub fn end_start(&self) -> usize {
        self.gap().map_or(0, |at| at + 1)
    }

    /// The cells of the loaded end, oldest first.
    pub fn end(&self) -> Iter<'_, Cell> {
        self.cells.range(self.end_start()..)
    }

    /// The cells that can be reached from cell `index` without passing what is not loaded; above it, its row included.
    pub fn run_of(&self, index: usize) -> Range<usize> {
        match self.gap() {
            Some(gap) if index <= gap => 0..gap + 1,
            Some(gap) => gap + 1..self.cells.len(),
            None => 0..self.cells.len(),
        }
    }

    /// The first entry of the part that is read far above the end.
    pub fn part_first(&self) -> Option<EntryId> {
        self.gap.as_ref().and_then(|gap| gap.first.id)
    }

    /// The entry with which that part goes on.
    pub fn part_next(&self) -> Option<EntryId> {
        self.gap.as_ref().map(|gap| gap.next)
    }

    /// Where an entry stands: its first cell, or the call that it is the result of.
    pub fn find_entry(&self, id: EntryId) -> Option<usize> {
        self.cells.iter().position(|c| match &c.body {
            Body::Tool(t) => c.entry == Some(id) || t.result.as_ref().is_some_and(|r| r.id == id),
            _ => c.entry == Some(id),
        })
    }

    /// The cells that these entries make, for looking through them only.
    pub fn cells_of(&self, entries: &[Entry]) -> Vec<Cell> {
        self.built(0, entries).cells
    }

    fn built(&self, turn: i64, entries: &[Entry]) -> Builder {
        let mut built = Builder::new(turn, &self.model, false, &self.tools);
        entries.iter().for_each(|node| built.entry(node));
        built
    }

    /// Older entries, for the top of the end.
    pub(super) fn page(&mut self, entries: &[Entry], earlier: u64) {
        let first = self.page_before();
        if entries.is_empty() || first.is_none() || entries.iter().any(|e| Some(e.id) == first) {
            return;
        }
        if self.first.parent.is_some() && entries.last().map(|e| e.id) != self.first.parent {
            return; // a page of another time
        }
        let read = self.reading.hold.get().and_then(|key| self.find(key));
        if read.zip(self.gap()).is_some_and(|(read, gap)| read <= gap) {
            return; // the part above is read by now
        }
        self.grow_end(entries, earlier);
    }

    /// Adds entries at the top of the end. The part above goes.
    fn grow_end(&mut self, entries: &[Entry], earlier: u64) {
        self.drop_part();
        self.put_above(entries);
        self.earlier = earlier;
        self.first = FirstEntry::of(entries);
    }

    /// A part of the path above `before`, which must still be the first entry of the end.
    pub(super) fn part(&mut self, before: EntryId, at: PathPlace, entries: &[Entry], counts: Counts) {
        if entries.is_empty() || self.page_before() != Some(before) {
            return;
        }
        match at {
            PathPlace::Search { .. } => {}
            PathPlace::Start {} | PathPlace::Around { .. } => match counts.next {
                Some(next) => self.open_part(entries, counts, next),
                None => self.grow_end(entries, counts.earlier),
            },
            PathPlace::Before { entry } if entry == before => self.page(entries, counts.earlier),
            PathPlace::From { entry } if self.part_next() == Some(entry) => self.extend(entries, counts),
            PathPlace::Before { entry } if self.part_first() == Some(entry) => {
                self.put_above(entries);
                if let Some(gap) = &mut self.gap {
                    gap.above = counts.earlier;
                    gap.first = FirstEntry::of(entries);
                }
            }
            PathPlace::From { .. } | PathPlace::Before { .. } => {}
        }
    }

    /// Adds the cells of entries that come directly above the first cell.
    fn put_above(&mut self, entries: &[Entry]) {
        let mut built = self.built(0, entries);
        let prompt = self.cells.front().is_some_and(is_prompt);
        if prompt {
            built.turn_finished();
        }
        let mut cells = VecDeque::from(built.cells);
        join_below(&mut cells, self.cells.iter_mut());
        lose(&mut cells);
        // A prompt begins its turn: the last one of these entries ends before it.
        let shift = self.top_turn() - i64::from(prompt) - built.turn;
        let mut top = self.top_turn();
        for mut cell in cells.into_iter().rev() {
            cell.turn += shift;
            cell.key = self.fresh_key();
            top = top.min(cell.turn);
            self.cells.push_front(cell);
        }
        match &mut self.gap {
            Some(gap) => gap.first_turn = top,
            None => self.first_turn = top,
        }
    }

    /// Turn of the first cell.
    fn top_turn(&self) -> i64 {
        self.gap.as_ref().map_or(self.first_turn, |gap| gap.first_turn)
    }

    /// Loads a part that is far above the end, in the place of another one.
    fn open_part(&mut self, entries: &[Entry], counts: Counts, next: EntryId) {
        self.drop_part();
        let mut built = self.built(0, entries);
        lose(&mut built.cells);
        // Each entry in between may begin a turn.
        let later = i64::try_from(counts.later).unwrap_or(i64::MAX / 4);
        let shift = self.first_turn - 1 - later - built.turn;
        let (key, time) = (self.fresh_key(), entries.last().map_or(Time(0), |e| e.time));
        self.cells.push_front(not_loaded(key, counts.later, built.turn + shift, time));
        let first_turn = built.cells.first().map_or(0, |c| c.turn) + shift;
        for mut cell in built.cells.into_iter().rev() {
            cell.turn += shift;
            cell.key = self.fresh_key();
            self.cells.push_front(cell);
        }
        let first = FirstEntry::of(entries);
        self.gap = Some(Gap { key, above: counts.earlier, first, first_turn, next });
    }

    /// Adds entries to the part above the gap. With the last of them the gap closes.
    fn extend(&mut self, entries: &[Entry], counts: Counts) {
        let Some(at) = self.gap() else { return };
        if counts.next.is_none()
            && self.first.parent.is_some()
            && entries.last().map(|e| e.id) != self.first.parent
        {
            return self.drop_part(); // it leads elsewhere
        }
        let turn = at.checked_sub(1).and_then(|n| self.cells.get(n)).map_or(0, |c| c.turn);
        let mut built = self.built(turn, entries);
        let mut below = self.cells.split_off(at);
        join_above(&mut built.cells, &mut self.cells);
        for mut cell in built.cells {
            cell.key = self.fresh_key();
            self.cells.push_back(cell);
        }
        if counts.next.is_none() {
            join_below(&mut self.cells, below.iter_mut().skip(1));
        }
        lose(self.cells.iter_mut().skip(at.saturating_sub(1)));
        match (counts.next, &mut self.gap) {
            (Some(next), Some(gap)) => {
                gap.next = next;
                set_not_loaded(below.front_mut(), counts.later, built.turn);
            }
            _ => {
                below.pop_front();
                // The end may go on with the turn.
                let began = below.iter().position(is_prompt).unwrap_or(below.len());
                let same = below.front().map(|c| c.turn);
                for cell in below.iter_mut().take(began).take_while(|c| Some(c.turn) == same) {
                    cell.turn = built.turn;
                }
                if let Some(gap) = self.gap.take() {
                    (self.earlier, self.first, self.first_turn) = (gap.above, gap.first, gap.first_turn);
                }
                self.epoch += 1;
            }
        }
        self.cells.append(&mut below);
    }

    /// Forgets the part above the gap.
    fn drop_part(&mut self) {
        if let Some(at) = self.gap() {
            self.cells.drain(..=at);
            self.epoch += 1;
        }
        self.gap = None;
    }

    /// Removes cells that are far from what is visible, when there are too many. Cuts between entries.
    pub(super) fn trim(&mut self) {
        if self.cells.len() <= KEEP + SLACK || self.reading.keep.get() {
            return;
        }
        let hold = self.reading.hold.get().and_then(|key| self.find(key));
        match (hold, self.gap()) {
            (Some(hold), Some(gap)) if hold <= gap => self.trim_part(hold, gap),
            _ => {
                self.drop_part();
                let hold = self.reading.hold.get().and_then(|key| self.find(key));
                let over = self.cells.len().saturating_sub(KEEP);
                self.cut_top(hold.map_or(over, |hold| over.min(hold.saturating_sub(KEEP / 4))));
                let hold = self.reading.hold.get().and_then(|key| self.find(key));
                if let Some(hold) = hold.filter(|_| self.cells.len() > KEEP + SLACK) {
                    self.cut_middle(hold + KEEP / 2, self.cells.len() - KEEP / 4);
                }
            }
        }
    }

    /// Cuts what is far from cell `hold` of the part above the gap, and the top of the end.
    fn trim_part(&mut self, hold: usize, gap: usize) {
        let end = self.cells.len() - gap - 1;
        if end > KEEP / 4 + SLACK {
            self.cut_gap(gap, self.cells.len() - KEEP / 4);
        }
        if gap > hold + KEEP / 2 + SLACK {
            self.cut_gap(hold + KEEP / 2, gap + 1);
        }
        if hold > KEEP / 4 + SLACK {
            self.cut_top(hold - KEEP / 4);
        }
    }

    /// Removes cells before `cut`.
    fn cut_top(&mut self, mut cut: usize) {
        while cut > 0 && !self.begins_entry(cut) {
            cut -= 1;
        }
        if cut < SLACK / 2 {
            return;
        }
        let gone: u64 = self.cells.drain(..cut).map(|c| u64::from(c.entries)).sum();
        // A page is known by what follows it, not by its end, from now on.
        let first = FirstEntry { id: self.cells.iter().find_map(|c| c.entry), parent: None };
        let turn = self.cells.front().map_or(self.turn, |c| c.turn);
        match &mut self.gap {
            Some(gap) => {
                gap.above += gone;
                (gap.first, gap.first_turn) = (first, turn);
            }
            None => {
                self.earlier += gone;
                (self.first, self.first_turn) = (first, turn);
            }
        }
        self.epoch += 1;
    }

    /// Removes cells from `from` to `to`: what is above is a part from now on.
    fn cut_middle(&mut self, from: usize, to: usize) {
        let Some((from, to)) = self.whole_entries(from, to).filter(|(from, to)| to - from > SLACK / 2) else {
            return;
        };
        let (Some(next), Some(id)) = (self.cells[from].entry, self.cells[to].entry) else { return };
        let count = |cells: Range<usize>| self.cells.range(cells).map(|c| u64::from(c.entries)).sum::<u64>();
        let (above, between) = (count(0..from), count(from..to));
        let (turn, first_turn) = (self.cells[to].turn, self.first_turn);
        let key = self.fresh_key();
        let last = from.checked_sub(1).and_then(|n| self.cells.get(n)).map_or(first_turn, |c| c.turn);
        let cell = not_loaded(key, between, last, self.cells[from].time);
        let mut end = self.cells.split_off(to);
        self.cells.truncate(from);
        self.cells.push_back(cell);
        self.cells.append(&mut end);
        let first = std::mem::replace(&mut self.first, FirstEntry { id: Some(id), parent: None });
        self.gap = Some(Gap { key, above: self.earlier, first, first_turn, next });
        self.earlier += above + between;
        self.first_turn = turn;
        self.epoch += 1;
    }

    /// Widens the gap: removes cells from `from` to `to` around it, but not its own.
    fn cut_gap(&mut self, from: usize, to: usize) {
        let Some(gap) = self.gap() else { return };
        let above = from..gap;
        let (from, to) = match above.is_empty() {
            false => {
                let Some((from, _)) = self.whole_entries(from, gap) else { return };
                (from, gap + 1)
            }
            true => {
                let Some((_, to)) = self.whole_entries(gap + 1, to) else { return };
                (gap, to)
            }
        };
        let next = self.cells[from].entry;
        let gone: u64 = self.cells.range(from..to).map(|c| u64::from(c.entries)).sum();
        let mut end = self.cells.split_off(to);
        let mut cut = self.cells.split_off(from);
        let mut cell = match above.is_empty() {
            true => cut.pop_front(),
            false => cut.pop_back(),
        };
        if let Some(Cell { body: Body::NotLoaded { entries }, rev, .. }) = &mut cell {
            *entries += gone;
            *rev += 1;
        }
        if above.is_empty() {
            self.earlier += gone;
            self.first = FirstEntry { id: end.iter().find_map(|c| c.entry), parent: None };
            self.first_turn = end.front().map_or(self.turn, |c| c.turn);
        } else if let (Some(gap), Some(next)) = (&mut self.gap, next) {
            gap.next = next;
        }
        self.cells.extend(cell);
        self.cells.append(&mut end);
        self.epoch += 1;
    }

    /// The same or fewer cells, from the first of an entry to the first of another; `None`: there are none.
    fn whole_entries(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let from = (from..to).find(|n| self.begins_entry(*n))?;
        let last = if to >= self.cells.len() || self.gap() == Some(to) { Some(to) } else { None };
        let to = last.or_else(|| (from..=to).rev().find(|n| self.begins_entry(*n)))?;
        (to > from).then_some((from, to))
    }

    /// Cell `n` is the first of its entry.
    fn begins_entry(&self, n: usize) -> bool {
        let Some(entry) = self.cells.get(n).and_then(|c| c.entry) else { return false };
        n == 0 || self.cells.get(n - 1).is_none_or(|c| c.entry != Some(entry))
    }
}

fn not_loaded(key: u64, entries: u64, turn: i64, time: Time) -> Cell {
    let body = Body::NotLoaded { entries };
    Cell { key, entry: None, entries: 0, turn, time, rev: 0, open: false, body }
}

fn set_not_loaded(cell: Option<&mut Cell>, count: u64, above: i64) {
    if let Some(Cell { body: Body::NotLoaded { entries }, rev, turn, .. }) = cell {
        (*entries, *turn) = (count, above);
        *rev += 1;
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
