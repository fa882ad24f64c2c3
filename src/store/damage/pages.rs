//! Reads rows straight from pages of a damaged database, without SQLite's trees.
//!
//! The format is SQLite's own (sqlite.org/fileformat2.html): table leaf pages (type 13), records, overflow chains, and
//! the frames of a write-ahead log. No byte is trusted: lengths are checked, chains are bounded, and nothing panics.

use std::collections::{HashMap, HashSet};

use crate::damage::header::MAGIC;

/// A value of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl Value {
    pub(crate) fn int(&self) -> Option<i64> {
        if let Self::Int(n) = self { Some(*n) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(s) = self { Some(s) } else { None }
    }

    pub(crate) fn blob(&self) -> Option<&[u8]> {
        if let Self::Blob(b) = self { Some(b) } else { None }
    }
}

/// The kind of a tree, which its pages state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rows have a number; only leaves hold them.
    Table,
    /// An index, or a table without row numbers: all pages hold rows.
    Index,
}

impl Kind {
    /// The type of the pages that lead to others.
    const fn interior(self) -> u8 {
        match self {
            Self::Table => 5,
            Self::Index => 2,
        }
    }
}

/// A row: its rowid (0 in an index) and its columns (the column that is the rowid reads as null).
pub(crate) type RowOf = (i64, Vec<Value>);

/// A database file and its log, as bytes.
pub(crate) struct Pages<'a> {
    file: &'a [u8],
    size: usize,
    /// For each page the last of its frames in the log, and all frames.
    latest: HashMap<u32, &'a [u8]>,
    frames: Vec<(u32, &'a [u8])>,
}

const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

pub(crate) fn be(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(len)?)?;
    Some(part.iter().fold(0, |n, b| (n << 8) | u64::from(*b)))
}

impl<'a> Pages<'a> {
    /// All that is there, for rows that have a checksum: frames of the log count whatever their state. `log` is empty when
    /// there is none.
    pub(crate) fn new(file: &'a [u8], log: &'a [u8]) -> Self {
        let mut pages = Self { file, size: page_size(file, log), latest: HashMap::new(), frames: Vec::new() };
        for (number, _, page) in frames(log, pages.size) {
            pages.latest.insert(number, page);
            pages.frames.push((number, page));
        }
        pages
    }

    /// The pages as the last commit left them: frames of an earlier log, and those that no commit follows, do not count.
    pub(crate) fn committed(file: &'a [u8], log: &'a [u8]) -> Self {
        let mut pages = Self { file, size: page_size(file, log), latest: HashMap::new(), frames: Vec::new() };
        let mut open = Vec::new();
        for (number, head, page) in frames(log, pages.size) {
            if log.get(16..24) != head.get(8..16) {
                continue;
            }
            open.push((number, page));
            if be(head, 4, 4) != Some(0) {
                pages.latest.extend(open.drain(..));
            }
        }
        pages
    }

    /// Number of pages in the file.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.file.len() / self.size).unwrap_or(u32::MAX)
    }

    /// The pages that are not in use: they may have rows that were deleted. `None`: the header, or a page of its list of them, is
    /// damaged, and any page may be unused.
    pub(crate) fn free(&self) -> Option<HashSet<u32>> {
        let number = |page: &[u8], at| be(page, at, 4).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let header = self.page(1).filter(|page| page.starts_with(MAGIC))?;
        let (pages, said) = (number(header, 28), number(header, 36));
        let mut free = HashSet::new();
        let mut trunk = number(header, 32);
        while let Some(page) = self.page(trunk).filter(|_| free.insert(trunk)) {
            let leaves = number(page, 4).min(u32::try_from(self.size / 4).unwrap_or(0));
            free.extend((0..leaves).map(|n| number(page, 8 + 4 * n as usize)));
            trunk = number(page, 0);
        }
        let sound = u32::try_from(free.len()).is_ok_and(|found| found == said)
            && free.iter().all(|page| (2..=pages).contains(page));
        // What is behind the last page is of a time when the database was larger.
        free.extend(pages.saturating_add(1)..=self.count());
        sound.then_some(free)
    }

    /// Calls `found` for every row of the tree at `root`. False: a part of it cannot be read. Pages that were seen before belong to
    /// another tree.
    pub(crate) fn walk(
        &self,
        root: u32,
        kind: Kind,
        seen: &mut HashSet<u32>,
        found: &mut dyn FnMut(RowOf),
    ) -> bool {
        let mut whole = true;
        let mut below = vec![root];
        while let Some(number) = below.pop() {
            let page = self.page(number).filter(|page| kind_of(number, page) == Some(kind));
            match page {
                Some(page) if seen.insert(number) => {
                    whole &= self.cells(number, page, kind, found, &mut |child| below.push(child));
                }
                _ => whole = false,
            }
        }
        whole
    }

    /// The rows of one page, if all of it can be read.
    pub(crate) fn rows_of(&self, number: u32, kind: Kind) -> Option<Vec<RowOf>> {
        let page = self.page(number).filter(|page| kind_of(number, page) == Some(kind))?;
        let mut rows = Vec::new();
        self.cells(number, page, kind, &mut |row| rows.push(row), &mut |_| {}).then_some(rows)
    }

    fn in_file(&self, number: u32) -> Option<&'a [u8]> {
        let start = usize::try_from(number).ok()?.checked_sub(1)?.checked_mul(self.size)?;
        self.file.get(start..start.checked_add(self.size)?)
    }

    fn page(&self, number: u32) -> Option<&'a [u8]> {
        self.latest.get(&number).copied().or_else(|| self.in_file(number))
    }

    /// Calls `found` for every row of every table leaf page: of the log's frames (newest first), then of the file. The
    /// same row may be found several times.
    pub(crate) fn rows(&self, found: &mut dyn FnMut(RowOf)) {
        for (number, page) in self.frames.iter().rev() {
            self.cells(*number, page, Kind::Table, found, &mut |_| {});
        }
        for number in 1..=self.count() {
            if let Some(page) = self.in_file(number) {
                self.cells(number, page, Kind::Table, found, &mut |_| {});
            }
        }
    }

    /// Calls `found` for each row of a page, and `child` for each page below it. False: a part of it cannot be read.
    fn cells(
        &self,
        number: u32,
        page: &[u8],
        kind: Kind,
        found: &mut dyn FnMut(RowOf),
        child: &mut dyn FnMut(u32),
    ) -> bool {
        if kind_of(number, page) != Some(kind) {
            return false;
        }
        let header = header_of(number);
        let interior = page.get(header) == Some(&kind.interior());
        let mut pointer = |at: usize| match be(page, at, 4).and_then(|n| u32::try_from(n).ok()) {
            Some(below) => {
                child(below);
                true
            }
            None => false,
        };
        let first = header + if interior { 12 } else { 8 };
        let mut whole = !interior || pointer(header + 8);
        let cells = be(page, header + 3, 2).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        for n in 0..cells {
            let Some(at) = be(page, first + 2 * n, 2).and_then(|at| usize::try_from(at).ok()) else {
                return false;
            };
            let at = if interior {
                whole &= pointer(at);
                at + 4
            } else {
                at
            };
            if interior && kind == Kind::Table {
                continue;
            }
            match self.cell(page, at, kind) {
                Some(row) => found(row),
                None => whole = false,
            }
        }
        whole
    }

    fn cell(&self, page: &[u8], at: usize, kind: Kind) -> Option<RowOf> {
        let (length, used) = varint(page, at)?;
        let (rowid, used2) = if kind == Kind::Table { varint(page, at + used)? } else { (0, 0) };
        let start = at + used + used2;
        let bytes = self.file.len() + self.frames.len().max(self.latest.len()) * self.size;
        let length = usize::try_from(length).ok().filter(|l| *l <= bytes)?;
        // How many bytes are on the page itself: section 1.6 of the format.
        let usable = self.size;
        let most = if kind == Kind::Table { usable - 35 } else { (usable - 12) * 64 / 255 - 23 };
        let local = if length <= most {
            length
        } else {
            let least = (usable - 12) * 32 / 255 - 23;
            let even = least + (length - least) % (usable - 4);
            if even <= most { even } else { least }
        };
        let mut payload = page.get(start..start.checked_add(local)?)?.to_vec();
        if length > local {
            let mut next = u32::try_from(be(page, start + local, 4)?).ok()?;
            while payload.len() < length {
                // Each page adds bytes, so the chain ends even if it is circular.
                let part = self.page(next)?;
                let take = (length - payload.len()).min(usable - 4);
                payload.extend_from_slice(part.get(4..4 + take)?);
                next = u32::try_from(be(part, 0, 4)?).ok()?;
            }
        }
        Some((rowid, record(&payload)?))
    }
}

/// Where the header of a page's tree begins: the first page has that of the file before it.
const fn header_of(number: u32) -> usize {
    if number == 1 { 100 } else { 0 }
}

/// The kind of the tree that a page says to be of.
pub(crate) fn kind_of(number: u32, page: &[u8]) -> Option<Kind> {
    match page.get(header_of(number))? {
        5 | 13 => Some(Kind::Table),
        2 | 10 => Some(Kind::Index),
        _ => None,
    }
}

/// The frames of a log: number of the page, head of the frame, page. Their checksums are not verified.
fn frames(log: &[u8], size: usize) -> impl Iterator<Item = (u32, &[u8], &[u8])> {
    let starts = (LOG_HEADER..).step_by(FRAME_HEADER + size);
    starts.map_while(move |at| {
        let (head, page) = log.get(at..at + FRAME_HEADER + size)?.split_at(FRAME_HEADER);
        Some((u32::try_from(be(head, 0, 4)?).ok()?, head, page))
    })
}

/// The size of pages: that of the log, or of the file's header, where the pages look like pages with it; else SQLite's default,
/// which Tiller uses.
pub(crate) fn page_size(file: &[u8], log: &[u8]) -> usize {
    const DEFAULT: usize = 4096;
    let plausible = |n: u64| {
        let n = usize::try_from(if n == 1 { 65_536 } else { n }).ok()?;
        (n.is_power_of_two() && (512..=65_536).contains(&n)).then_some(n)
    };
    // As many pages of trees as can be read with a size, in the bytes of one of the largest.
    let fits = |size: usize| {
        let page = |at: usize| file.get(at..at + size).filter(|page| kind_of(2, page).is_some());
        let sound =
            |page: &[u8]| be(page, 5, 2).is_some_and(|start| usize::try_from(start).is_ok_and(|s| s <= size));
        (size..file.len()).step_by(size).filter(|at| page(*at).is_some_and(sound)).count() * size
    };
    let named = [be(log, 8, 4), be(file, 16, 2)].into_iter().flatten().filter_map(plausible);
    let named = named.filter(|size| *size != DEFAULT);
    named.filter(|size| fits(*size) > fits(DEFAULT)).max_by_key(|size| fits(*size)).unwrap_or(DEFAULT)
}

/// A variable-length integer and its size in bytes.
fn varint(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let mut value: u64 = 0;
    for n in 0..9 {
        let byte = *bytes.get(at.checked_add(n)?)?;
        if n == 8 {
            return Some((((value << 8) | u64::from(byte)).cast_signed(), 9));
        }
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value.cast_signed(), n + 1));
        }
    }
    None
}

fn record(payload: &[u8]) -> Option<Vec<Value>> {
    let (header, mut at) = varint(payload, 0)?;
    let header = usize::try_from(header).ok()?;
    let mut body = header;
    let mut values = Vec::new();
    while at < header {
        let (kind, used) = varint(payload, at)?;
        at += used;
        let kind = usize::try_from(kind).ok()?;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (kind - 12) / 2,
        };
        let bytes = payload.get(body..body.checked_add(length)?)?;
        body += length;
        values.push(match kind {
            0 => Value::Null,
            8 => Value::Int(0),
            9 => Value::Int(1),
            1..=6 => {
                let raw = be(bytes, 0, length)?.cast_signed();
                let unused = 64 - 8 * u32::try_from(length).ok()?;
                Value::Int(raw << unused >> unused)
            }
            7 => Value::Real(f64::from_bits(be(bytes, 0, 8)?)),
            _ if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
            _ => Value::Text(String::from_utf8(bytes.to_vec()).ok()?),
        });
    }
    Some(values)
}
