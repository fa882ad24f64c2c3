//! Markdown to lines. A [`Doc`] grows with its source: everything before the last block is settled and not processed
//! again, so a delta costs the length of the last block, not of the reply.
//!
//! Blocks are settled one by one: the top-level blocks of CommonMark, with each item of a top-level list as a block of
//! its own. A block is settled once a complete line has begun the next one. References (`[text][ref]`) are not resolved
//! across blocks: their definitions are shown as text. A block longer than [`LONG`] is cut, so that one endless
//! paragraph costs no more than other replies. In the incomplete last line, open marks count as closed.

mod fence;
mod open;
mod render;
mod table;
mod units;
mod visible;

pub use visible::Visible;

use crate::sheet::{CodeSpan, Sheet, Stack};
use fence::Fence;
use units::Unit;

/// Bytes after which a block is cut.
const LONG: usize = 64 << 10;

/// How a document is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opts {
    pub columns: usize,
    /// Bars and rules in ASCII.
    pub ascii: bool,
    /// Tables as "header: value", whatever the width (plain mode).
    pub tables_as_text: bool,
}

/// A Markdown text that may still grow.
#[derive(Clone, Debug)]
pub struct Doc {
    opts: Opts,
    stack: Stack,
    /// Number of settled sheets in the stack.
    settled: usize,
    /// Start of the unsettled source.
    stable: usize,
    /// Length of the source at the last update.
    seen: usize,
    /// End of the complete lines at the last update.
    complete: usize,
    /// An unclosed fence at `stable`, whose sheet is the last of the stack.
    fence: Option<Fence>,
    /// The number of the last settled list item, for lists whose source says `1.` for every item.
    ordinal: Option<units::Ordinal>,
}

impl Doc {
    /// Empty.
    pub fn new(opts: Opts) -> Self {
        Self {
            opts,
            stack: Stack::default(),
            settled: 0,
            stable: 0,
            seen: 0,
            complete: 0,
            fence: None,
            ordinal: None,
        }
    }

    /// Lays out a complete text.
    pub fn parse(source: &str, opts: Opts) -> Self {
        let mut doc = Self::new(opts);
        doc.update(source, true);
        doc
    }

    /// How it is laid out.
    pub fn opts(&self) -> Opts {
        self.opts
    }

    /// The laid-out text.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Number of rows that no longer change, whatever follows (except for the colours of code).
    pub fn settled_rows(&self) -> usize {
        self.stack.rows_of_first(self.settled)
    }

    /// The laid-out text, to colour its code.
    pub fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// Updates to `source`, which must begin with the source of the last update. `done`: nothing follows.
    pub fn update(&mut self, source: &str, done: bool) {
        if source.len() == self.seen && !done {
            return;
        }
        let complete = source.rfind('\n').map_or(0, |at| at + 1);
        if complete > self.complete || source.len() - self.stable > LONG {
            self.complete = complete;
            self.settle(source);
        }
        self.seen = source.len();
        match &mut self.fence {
            Some(fence) => {
                if let Some(mut sheet) = self.stack.pop() {
                    fence.tail(source, &mut sheet, self.opts);
                    if done {
                        fence.finish(&mut sheet);
                    }
                    self.stack.push(sheet);
                }
            }
            None => self.tail(source, done),
        }
    }

    /// Settles the blocks that are complete.
    fn settle(&mut self, source: &str) {
        loop {
            if let Some(fence) = &mut self.fence {
                let Some(mut sheet) = self.stack.pop() else { return };
                let closed = fence.lines(source, self.complete, &mut sheet, self.opts);
                if let Some(end) = closed {
                    fence.finish(&mut sheet);
                    self.stack.push(sheet);
                    self.fence = None;
                    self.stable = end;
                    self.settled = self.stack.sheets();
                } else {
                    self.stack.push(sheet);
                    return;
                }
            }
            if self.cut_long(source) {
                continue;
            }
            if self.complete <= self.stable {
                return;
            }
            let part = &source[self.stable..self.complete];
            let units = units::split(part);
            let Some(last) = units.len().checked_sub(1) else { return };
            // An oversized block in the middle is cut as if it stood at the end.
            let stop = (0..last).find(|n| units[n + 1].start - units[*n].start > LONG).unwrap_or(last);
            self.stack.truncate(self.settled);
            for unit in &units[..stop] {
                self.ordinal = self.lay(source, part, unit, self.ordinal);
            }
            self.settled = self.stack.sheets();
            self.stable += units[stop].start;
            if stop < last && Fence::open(source, self.stable, self.complete).is_none() {
                continue;
            }
            // A fence at the end is read line by line from now on.
            let Some(fence) = Fence::open(source, self.stable, self.complete) else { return };
            let mut sheet = Sheet::default();
            if self.settled > 0 {
                sheet.push(crate::Line::default(), self.opts.columns);
            }
            self.stack.push(sheet);
            self.ordinal = None;
            self.fence = Some(fence);
        }
    }

    /// Settles the first part of an oversized block. Decided by the first bytes of the block only, so that the result
    /// does not depend on how they arrived.
    fn cut_long(&mut self, source: &str) -> bool {
        let part = &source[self.stable..];
        if part.len() <= LONG || Fence::open(source, self.stable, source.len()).is_some() {
            return false;
        }
        let head = &part[..part.floor_char_boundary(LONG)];
        let lines = head.rfind('\n').map_or(head.len(), |n| n + 1);
        if units::split(&head[..lines]).len() > 1 {
            return false;
        }
        let cut = match head.rfind(['\n', ' ']) {
            Some(n) if n > LONG / 2 => n + 1,
            _ => head.len(),
        };
        self.stack.truncate(self.settled);
        for unit in units::split(&part[..cut]) {
            self.ordinal = self.lay(source, &part[..cut], &unit, self.ordinal);
        }
        self.settled = self.stack.sheets();
        self.stable += cut;
        true
    }

    /// Lays out the unsettled part.
    fn tail(&mut self, source: &str, done: bool) {
        self.stack.truncate(self.settled);
        let part = &source[self.stable..];
        let part = if done { part.into() } else { open::close(part) };
        let mut ordinal = self.ordinal;
        for unit in units::split(&part) {
            ordinal = self.lay(source, &part, &unit, ordinal);
        }
        // Growing code within an item or a quote stays plain: otherwise each of its states would be highlighted.
        if !done
            && open::in_code(&part)
            && let Some(mut sheet) = self.stack.pop()
        {
            sheet.codes.pop();
            self.stack.push(sheet);
        }
    }

    /// Lays out one block of `part`, which is `source` from `self.stable` on.
    fn lay(
        &mut self,
        source: &str,
        part: &str,
        unit: &Unit<'_>,
        before: Option<units::Ordinal>,
    ) -> Option<units::Ordinal> {
        let ordinal = unit.ordinal(part, before);
        let close = unit.item && units::tight(source, self.stable + unit.start);
        let gap = self.stack.sheets() > 0 && !close;
        let (lines, codes) = render::unit(part, unit, ordinal, gap, self.opts);
        let mut sheet = Sheet::new(lines, self.opts.columns);
        sheet.codes = codes;
        self.stack.push(sheet);
        ordinal
    }
}

/// The result of [`render`]: lines, and which of them are code.
type Lines = (Vec<crate::Line>, Vec<CodeSpan>);

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
