//! Reads rows straight from pages of a damaged database, without SQLite's trees.
//!
//! The format is SQLite's own (sqlite.org/fileformat2.html): table leaf pages (type 13), records, overflow chains, and
//! the frames of a write-ahead log. No byte is trusted: lengths are checked, chains are bounded, and nothing panics.

use std::collections::HashMap;

/// A value of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Real,
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

/// A row: its rowid and its columns (the column that is the rowid reads as null).
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

fn be(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(len)?)?;
    Some(part.iter().fold(0, |n, b| (n << 8) | u64::from(*b)))
}

impl<'a> Pages<'a> {
    /// `log` is empty when there is none.
    pub(crate) fn new(file: &'a [u8], log: &'a [u8]) -> Self {
        let plausible = |n: u64| {
            let n = usize::try_from(if n == 1 { 65_536 } else { n }).ok()?;
            (n.is_power_of_two() && (512..=65_536).contains(&n)).then_some(n)
        };
        let size = be(file, 16, 2)
            .and_then(plausible)
            .or_else(|| be(log, 8, 4).and_then(plausible))
            // SQLite's default page size, which Tiller uses.
            .unwrap_or(4096);
        let mut pages = Self { file, size, latest: HashMap::new(), frames: Vec::new() };
        let mut at = LOG_HEADER;
        // Checksums of frames are not verified, since rows have their own.
        while let (Some(number), Some(page)) =
            (be(log, at, 4), log.get(at + FRAME_HEADER..at + FRAME_HEADER + size))
        {
            if let Ok(number) = u32::try_from(number) {
                pages.latest.insert(number, page);
                pages.frames.push((number, page));
            }
            at += FRAME_HEADER + size;
        }
        pages
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
            self.leaf(*number, page, found);
        }
        let count = self.file.len() / self.size;
        for number in 1..=u32::try_from(count).unwrap_or(u32::MAX) {
            if let Some(page) = self.in_file(number) {
                self.leaf(number, page, found);
            }
        }
    }

    fn leaf(&self, number: u32, page: &[u8], found: &mut dyn FnMut(RowOf)) {
        let header = if number == 1 { 100 } else { 0 };
        if page.get(header) != Some(&13) {
            return;
        }
        let cells = be(page, header + 3, 2).unwrap_or(0);
        for n in 0..usize::try_from(cells).unwrap_or(0) {
            let Some(at) = be(page, header + 8 + 2 * n, 2) else { return };
            if let Some(row) = usize::try_from(at).ok().and_then(|at| self.cell(page, at)) {
                found(row);
            }
        }
    }

    fn cell(&self, page: &[u8], at: usize) -> Option<RowOf> {
        let (length, used) = varint(page, at)?;
        let (rowid, used2) = varint(page, at + used)?;
        let start = at + used + used2;
        let length =
            usize::try_from(length).ok().filter(|l| *l <= self.file.len() + self.frames.len() * self.size)?;
        // How many bytes are on the page itself: section 1.6 of the format.
        let usable = self.size;
        let most = usable - 35;
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
            7 => Value::Real,
            _ if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
            _ => Value::Text(String::from_utf8(bytes.to_vec()).ok()?),
        });
    }
    Some(values)
}
