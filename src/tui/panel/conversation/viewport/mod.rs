//! The window onto the conversation: which rows are visible, and how cells are laid out for it.
//!
//! Nothing here walks the whole conversation: a frame lays out what is visible, moving lays out what
//! is passed. The position is a cell and a row in it, so what grows above or below moves nothing.

mod content;
mod follow;
mod layouts;
mod pinned;
mod positions;
mod shared;
pub use content::WindowContent;
pub use pinned::Pinned;
pub use positions::TextPosition;

use std::collections::{HashMap, HashSet};

use jiff::tz::TimeZone;
use tiller_protocol::Time;

use crate::cell::{self, CellCx, CellLayout};
use crate::model::conversation::{Body, Cell, Conversation, ToolState};
use crate::text::highlight::Highlighter;
use follow::TopRow;
use layouts::{CachedLayout, Layouts};

/// The scroll position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrollPosition {
    /// The end is at the bottom, and stays there.
    End,
    /// This row of this cell is the top row. Counted without the blank row on top, which comes and goes
    /// with what stands above.
    At { key: u64, row: isize },
}

/// Rows of a cell that are on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisibleCell {
    pub index: usize,
    pub key: u64,
    /// Its first visible row, the gap counted.
    pub from: usize,
    pub rows: usize,
    /// Rows below the window's top.
    pub y: usize,
}

/// The settings that layouts depend on besides cells; taken over at each measuring.
#[derive(Clone, Debug)]
pub struct LayoutSettings {
    pub columns: usize,
    pub rows: usize,
    pub measure: usize,
    /// A turn runs, and panels stand beside the text, so that scrolling by whole lines would move them too.
    pub leaps: bool,
    pub ascii: bool,
    /// A panel on the screen shows the todo list.
    pub todo_shown: bool,
    pub now: Time,
    pub unfold_key: String,
    pub viewer_key: String,
    pub review_key: String,
    /// Folders that paths in rows are named without.
    pub folders: Vec<String>,
}

impl Default for LayoutSettings {
    fn default() -> Self {
        Self {
            columns: 80,
            rows: 20,
            measure: 100,
            leaps: false,
            ascii: false,
            todo_shown: false,
            now: Time(0),
            unfold_key: String::new(),
            viewer_key: String::new(),
            review_key: String::new(),
            folders: Vec::new(),
        }
    }
}

impl LayoutSettings {
    /// Columns of running text and of rows that are aligned at both ends.
    pub fn prose(&self) -> usize {
        self.columns.min(self.measure.max(1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LayoutKey {
    rev: u32,
    columns: usize,
    measure: usize,
    ascii: bool,
    unfolded: bool,
    gap: bool,
    hidden: bool,
    /// Of the calls that share its row.
    sharing: u64,
    last_turn: bool,
    /// Of what runs, for its time.
    second: i64,
}

/// Milliseconds between two running times.
const SECOND: i64 = 1000;

/// True when the cell shows a running time or a spinner.
fn runs(cell: &Cell) -> bool {
    match &cell.body {
        Body::Tool(t) => t.asked.is_none() && matches!(t.state, ToolState::Begun | ToolState::Running),
        Body::Thinking { .. } => cell.open,
        Body::Shell { run, .. } => run.as_ref().is_some_and(|r| !r.waits),
        _ => false,
    }
}

/// The window onto the conversation, with its scroll position and cached layouts.
pub struct Viewport {
    pub env: LayoutSettings,
    pub scroll: ScrollPosition,
    pub visible: Vec<VisibleCell>,
    zone: TimeZone,
    layouts: Layouts,
    /// Folds that differ from the rule.
    folds: HashMap<u64, bool>,
    turns: HashSet<i64>,
    /// Show everything (the viewer).
    pub all: bool,
    highlighter: Highlighter,
    /// Newest cell that was on the screen.
    newest: u64,
    /// The top row while the end is followed.
    held: Option<TopRow>,
    /// The message on the top rows, above the cells.
    pub pinned: Option<Pinned>,
    /// How often a layout was looked up.
    #[cfg(test)]
    pub(super) look_ups: usize,
}

impl Viewport {
    /// `zone`: for the times of messages.
    pub fn new(zone: TimeZone) -> Self {
        Self {
            env: LayoutSettings::default(),
            scroll: ScrollPosition::End,
            visible: Vec::new(),
            zone,
            layouts: Layouts::default(),
            folds: HashMap::new(),
            turns: HashSet::new(),
            all: false,
            highlighter: Highlighter::default(),
            newest: 0,
            held: None,
            pinned: None,
            #[cfg(test)]
            look_ups: 0,
        }
    }

    /// The colours of code that is shown are not there yet.
    #[cfg(test)]
    pub(crate) fn waits_for_colours(&self) -> bool {
        self.highlighter.busy()
    }

    /// When something changes without an event, besides the spinner: highlighting, running times.
    pub fn moving(&self, conv: &Conversation) -> Option<std::time::Duration> {
        if self.highlighter.busy() {
            return Some(std::time::Duration::from_millis(30));
        }
        let runs = |s: &VisibleCell| conv.cells().get(s.index).is_some_and(runs);
        let second = SECOND - self.env.now.millis().rem_euclid(SECOND);
        let second = std::time::Duration::from_millis(second.unsigned_abs());
        self.visible.iter().any(runs).then_some(second)
    }

    /// Column and row of each spinner in the window. The rows must be measured.
    pub fn spinners(&self) -> Vec<(u16, u16)> {
        let place = |s: &VisibleCell| {
            let laid = self.kept(s.key).filter(|l| l.spins() && s.from <= l.gap)?;
            let below = (laid.gap - s.from < s.rows).then_some(s.y + laid.gap - s.from)?;
            Some((laid.indent.saturating_sub(2) as u16, below as u16))
        };
        self.visible.iter().filter_map(place).collect()
    }

    /// Cells that came since the end was last on the screen.
    pub fn unseen(&self, conv: &Conversation) -> usize {
        if self.scroll == ScrollPosition::End {
            return 0;
        }
        conv.cells().iter().rev().take_while(|c| c.key != self.newest).take(1000).count()
    }

    pub fn unfolded(&self, cell: &Cell) -> bool {
        self.all || self.folds.get(&cell.key).copied().unwrap_or_else(|| self.turns.contains(&cell.turn))
    }

    /// Folds or unfolds one cell, with those that share its row.
    pub fn toggle(&mut self, conv: &Conversation, cell: &Cell) {
        let now = self.unfolded(cell);
        let sharing = conv.find(cell.key).map(|n| self.sharing(conv, n)).unwrap_or_default();
        for c in sharing.into_iter().chain([cell]) {
            self.folds.insert(c.key, !now);
        }
    }

    pub fn unfold(&mut self, cell: &Cell) {
        if cell::folds(cell) {
            self.folds.insert(cell.key, true);
        }
    }

    /// Unfolds a whole turn, or folds it again.
    pub fn toggle_turn(&mut self, conv: &Conversation, turn: i64) {
        if !self.turns.remove(&turn) {
            self.turns.insert(turn);
        }
        for c in conv.cells().iter().filter(|c| c.turn == turn) {
            self.folds.remove(&c.key);
        }
    }

    /// The layout of cell `index`, made if need be.
    pub fn laid(&mut self, conv: &Conversation, index: usize) -> Option<&CellLayout> {
        #[cfg(test)]
        {
            self.look_ups += 1;
        }
        let cells = conv.cells();
        let cell = cells.get(index)?;
        let hidden = self.hidden(conv, index);
        let sharing = if hidden { Vec::new() } else { self.sharing(conv, index) };
        let before = self.above(conv, index, sharing.len());
        let running = runs(cell) || sharing.iter().any(|c| runs(c));
        let stamp = LayoutKey {
            rev: cell.rev,
            columns: self.env.columns,
            measure: self.env.measure,
            ascii: self.env.ascii,
            unfolded: self.unfolded(cell),
            gap: !hidden && cell::gap(before, cell),
            hidden,
            sharing: shared::revision(&sharing),
            last_turn: matches!(cell.body, Body::Finished(_)) && cell.turn == conv.turn(),
            second: if running { self.env.now.millis().div_euclid(SECOND) } else { 0 },
        };
        let old = self.layouts.take(cell.key);
        let kept = match old {
            Some(k) if k.stamp == stamp => k,
            old => {
                let cx = CellCx {
                    columns: stamp.columns,
                    measure: stamp.measure,
                    ascii: stamp.ascii,
                    unfolded: stamp.unfolded,
                    gap: stamp.gap,
                    last_turn: stamp.last_turn,
                    now: self.env.now,
                    zone: &self.zone,
                    keys: [&self.env.unfold_key, &self.env.viewer_key, &self.env.review_key],
                    folders: &self.env.folders,
                };
                let laid = match hidden {
                    true => CellLayout::nothing(&cx),
                    false => cell::lay(cell, &sharing, &cx, old.map(|k| k.laid)),
                };
                CachedLayout::new(stamp, laid)
            }
        };
        Some(self.layouts.put(cell.key, kept))
    }

    /// The layout of a cell that was measured in this frame.
    pub fn kept(&self, key: u64) -> Option<&CellLayout> {
        self.layouts.get(key).map(|k| &k.laid)
    }

    fn height(&mut self, conv: &Conversation, index: usize) -> usize {
        self.laid(conv, index).map_or(0, CellLayout::height)
    }

    /// Lays out what is visible. Fills caches only.
    pub fn measure(&mut self, conv: &Conversation) {
        self.layouts.begin_frame();
        self.highlighter.poll();
        match self.pin(conv) {
            Some(top) => self.fill(conv, top),
            None => self.visible.clear(),
        }
        for n in 0..self.visible.len() {
            let key = self.visible[n].key;
            if let Some(k) = self.layouts.get_mut(key)
                && k.plain
            {
                k.plain = k.laid.stack_mut().colour(&mut self.highlighter);
            }
        }
        if self.scroll == ScrollPosition::End {
            self.newest = conv.cells().back().map_or(0, |c| c.key);
            conv.reading.hold.set(None);
        } else {
            conv.reading.hold.set(self.visible.first().map(|s| s.key));
        }
        self.forget(conv);
    }

    /// Takes up the rows of the window, from this cell and row on.
    fn fill(&mut self, conv: &Conversation, (mut index, mut from): (usize, usize)) {
        let rows = self.window();
        self.visible.clear();
        let mut y = 0;
        while y < rows && index < conv.cells().len() {
            let height = self.height(conv, index);
            let take = height.saturating_sub(from).min(rows - y);
            if take > 0 {
                let y = y + self.env.rows - rows;
                self.visible.push(VisibleCell { index, key: conv.cells()[index].key, from, rows: take, y });
            }
            y += take;
            from = 0;
            index += 1;
        }
    }

    /// Frees what is not needed any more: layouts, folds of cells that are gone, the tables for colours.
    fn forget(&mut self, conv: &Conversation) {
        if self.layouts.forget(conv) {
            let there: HashSet<u64> = conv.cells().iter().map(|c| c.key).collect();
            self.folds.retain(|key, _| there.contains(key));
        }
        // More code comes up while a turn runs, or while older text is read.
        if self.scroll == ScrollPosition::End && !conv.running() {
            self.highlighter.release();
        }
    }

    /// The top row: cell and row. Where the end is followed, a pinned message may cover it.
    fn top(&mut self, conv: &Conversation) -> Option<(usize, usize)> {
        let len = conv.cells().len();
        if len == 0 {
            return None;
        }
        Some(match self.scroll {
            ScrollPosition::End => self.following(conv),
            ScrollPosition::At { key, row } => match conv.find(key) {
                Some(index) => {
                    let (gap, height) = self.laid(conv, index).map_or((0, 0), |l| (l.gap, l.height()));
                    let row = row.saturating_add_unsigned(gap).max(0).unsigned_abs();
                    (index, row.min(height.saturating_sub(1)))
                }
                None => {
                    // It is gone (a discarded try, a trimmed page): stay near.
                    self.scroll = ScrollPosition::End;
                    self.up(conv, len, 0, self.env.rows)
                }
            },
        })
    }

    /// The place `rows` rows above row `row` of cell `index` (which may be one past the end).
    fn up(&mut self, conv: &Conversation, mut index: usize, row: usize, rows: usize) -> (usize, usize) {
        if row >= rows {
            return (index, row - rows);
        }
        let mut left = rows - row;
        while index > 0 {
            index -= 1;
            let height = self.height(conv, index);
            if height >= left {
                return (index, height - left);
            }
            left -= height;
        }
        (0, 0)
    }

    /// The place `rows` rows below row `row` of cell `index`; past the end it is the end.
    fn down(&mut self, conv: &Conversation, mut index: usize, mut row: usize, rows: usize) -> (usize, usize) {
        let mut left = rows;
        while index < conv.cells().len() {
            let height = self.height(conv, index);
            if row + left < height {
                return (index, row + left);
            }
            left -= height - row.min(height);
            row = 0;
            index += 1;
        }
        (index, row)
    }

    /// Rows from there to the end, counted up to `enough`.
    fn below(&mut self, conv: &Conversation, mut index: usize, from: usize, enough: usize) -> usize {
        let mut rows = 0;
        let mut from = from;
        while rows < enough && index < conv.cells().len() {
            rows += self.height(conv, index).saturating_sub(from);
            from = 0;
            index += 1;
        }
        rows
    }

    /// Moves by rows; up is negative.
    pub fn scroll_by(&mut self, conv: &Conversation, by: isize) {
        if self.scroll == ScrollPosition::End {
            if by > 0 {
                return;
            }
            // Rows that are still free below do not count.
            self.held = None;
        }
        let Some((mut index, mut row)) = self.top(conv) else { return };
        if let Some(p) = self.pinned.filter(|_| self.scroll == ScrollPosition::End) {
            (index, row) = self.down(conv, index, row, p.height);
        }
        let run = conv.run_of(index);
        if by < 0 {
            (index, row) = self.up(conv, index, row, by.unsigned_abs()).max((run.start, 0));
        } else {
            let from = (index, row);
            (index, row) = self.down(conv, index, row, by.unsigned_abs());
            // Not past what is not loaded.
            if run.end < conv.cells().len() && index + self.window() >= run.end {
                let above = run.end.saturating_sub(2);
                let last = (above, self.height(conv, above).saturating_sub(1));
                let most = self.up(conv, run.end, 0, self.window()).min(last).max(from);
                (index, row) = (index, row).min(most);
            }
        }
        self.place(conv, index, row);
    }

    /// Puts row `row` of cell `index` at the top, or the end at the bottom.
    fn place(&mut self, conv: &Conversation, index: usize, row: usize) {
        let gap = self.laid(conv, index).map_or(0, |l| l.gap);
        self.scroll = match conv.cells().get(index) {
            Some(cell) if self.below(conv, index, row, self.window() + 1) > self.window() => {
                ScrollPosition::At { key: cell.key, row: row as isize - gap as isize }
            }
            _ => ScrollPosition::End,
        };
    }

    /// Puts a row of a cell a third below the top, unless it is visible already.
    pub fn show(&mut self, conv: &Conversation, index: usize, row: usize) {
        if self.visible.iter().any(|s| s.index == index && (s.from..s.from + s.rows).contains(&row)) {
            return;
        }
        let (index, row) = self.up(conv, index, row, self.env.rows / 3);
        self.place(conv, index, row);
    }

    /// Makes a whole cell visible if it fits, moving as little as possible.
    pub fn reveal(&mut self, conv: &Conversation, index: usize) {
        let height = self.height(conv, index);
        let seen = self.visible.iter().find(|s| s.index == index);
        if seen.is_some_and(|s| s.rows == height || s.rows == self.window()) {
            return;
        }
        let above = match (seen, self.visible.first()) {
            (Some(s), _) => s.from > 0,
            (None, Some(first)) => index < first.index,
            _ => true,
        };
        if above || height >= self.window() {
            self.place(conv, index, 0);
        } else {
            let (index, row) = self.up(conv, index + 1, 0, self.window());
            self.place(conv, index, row);
        }
    }

    /// Puts a cell at the top.
    pub fn to_top(&mut self, conv: &Conversation, index: usize) {
        self.place(conv, index, 0);
    }
}

#[cfg(test)]
mod tests;
