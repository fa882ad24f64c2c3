//! A local table of vectors for pieces of words. A text's vector is the mean of those of its pieces, each weighted by how
//! rare its word is.
//!
//! The file: `TILLEMB1`, dimensions and rows as 32-bit numbers (little endian), then for each row the length of its piece
//! (16 bits), the piece, a factor (32-bit float) and one signed byte for each dimension.

mod import;

use std::collections::HashMap;
use std::path::Path;

use tiller_store::search::stem::words;
use tiller_store::search::words::is_stop;

use crate::embedder::{Rarity, packed};

pub use import::import;

const MAGIC: &[u8] = b"TILLEMB1";
/// Bytes of a table's file.
const BYTES: u64 = 256 << 20;
/// Rows, dimensions, and bytes of a piece.
pub(crate) const ROWS: usize = 500_000;
pub(crate) const DIMENSIONS: usize = 256;
const PIECE: usize = 128;
/// Words of a text that count.
const WORDS: usize = 2_000;
/// Begins a piece that continues a word.
const CONTINUES: &str = "##";

/// Why a table cannot be used, as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError(pub String);

/// Vectors of pieces of words.
pub struct Table {
    dimensions: usize,
    pieces: HashMap<Box<str>, u32>,
    factors: Vec<f32>,
    numbers: Vec<i8>,
    identity: String,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({} rows of {})", self.factors.len(), self.dimensions)
    }
}

impl Table {
    /// Reads a table; `None`: there is no such file.
    ///
    /// # Errors
    /// When it is no table, damaged, or too large.
    pub fn open(path: &Path) -> Result<Option<Self>, TableError> {
        let wrong = |why: String| TableError(format!("{}: {why}", path.display()));
        match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(wrong(e.to_string())),
            Ok(meta) if meta.len() > BYTES => return Err(wrong("too large for a table of vectors".into())),
            Ok(_) => {}
        }
        let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
        Self::read(&bytes).map(Some).map_err(|e| wrong(e.0))
    }

    /// Reads a table from its bytes.
    ///
    /// # Errors
    /// When they are no table, or damaged.
    pub fn read(bytes: &[u8]) -> Result<Self, TableError> {
        let damaged = || TableError("a damaged table of vectors; import it again".into());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| TableError("not a table of vectors".into()))?;
        let mut reader = Reader(rest);
        let dimensions = reader.number().ok_or_else(damaged)?;
        let rows = reader.number().ok_or_else(damaged)?;
        // Each row has at least a length, a factor and its numbers.
        let least = rows.checked_mul(dimensions + 6).ok_or_else(damaged)?;
        if !(1..=DIMENSIONS).contains(&dimensions) || rows > ROWS || least > reader.0.len() {
            return Err(damaged());
        }
        let mut table = Self {
            dimensions,
            pieces: HashMap::with_capacity(rows),
            factors: Vec::with_capacity(rows),
            numbers: Vec::with_capacity(rows * dimensions),
            identity: blake3::hash(bytes).to_hex()[..16].to_owned(),
        };
        for row in 0..rows {
            let length = reader.take(2).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])));
            let length = length.filter(|n| (1..=PIECE).contains(n)).ok_or_else(damaged)?;
            let piece = reader.take(length).and_then(|b| std::str::from_utf8(b).ok()).ok_or_else(damaged)?;
            let factor = reader.take(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            let factor = factor.filter(|f| f.is_finite() && *f >= 0.0).ok_or_else(damaged)?;
            let numbers = reader.take(dimensions).ok_or_else(damaged)?;
            table.numbers.extend(numbers.iter().map(|b| i8::from_le_bytes([*b])));
            table.factors.push(factor);
            table.pieces.insert(piece.into(), u32::try_from(row).map_err(|_| damaged())?);
        }
        if reader.0.is_empty() { Ok(table) } else { Err(damaged()) }
    }

    /// What its vectors can be compared with.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Number of rows, and of dimensions.
    pub fn size(&self) -> (usize, usize) {
        (self.factors.len(), self.dimensions)
    }

    /// The vector of a text as it is stored; empty: the table has none of its words.
    pub(crate) fn packed(&self, text: &str, rarity: Rarity<'_>) -> Vec<u8> {
        self.pool(text, rarity).map_or_else(Vec::new, |v| packed(&v))
    }

    /// The vector of a text; `None`: the table knows none of its words.
    pub(crate) fn pool(&self, text: &str, rarity: Rarity<'_>) -> Option<Vec<f32>> {
        let mut sum = vec![0.0f32; self.dimensions];
        let mut any = false;
        for (from, to) in words(text).take(WORDS) {
            let word = text[from..to].to_lowercase();
            if is_stop(&word) || word.len() > PIECE {
                continue;
            }
            let rows = self.rows(&word);
            if rows.is_empty() {
                continue;
            }
            #[allow(clippy::cast_precision_loss, reason = "some pieces")]
            let weight = rarity(&word) / rows.len() as f32;
            for row in rows {
                let factor = self.factors[row] * weight;
                let numbers = &self.numbers[row * self.dimensions..(row + 1) * self.dimensions];
                for (sum, n) in sum.iter_mut().zip(numbers) {
                    *sum += factor * f32::from(*n);
                }
                any = true;
            }
        }
        any.then_some(sum)
    }

    /// The word's row, or those of its longest pieces; none when a part of it has no piece.
    fn rows(&self, word: &str) -> Vec<usize> {
        let mut rows = Vec::new();
        let mut rest = word;
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).collect::<Vec<_>>();
            let found = ends.into_iter().rev().find_map(|end| {
                let piece = &rest[..end];
                let row = match rows.is_empty() {
                    true => self.pieces.get(piece),
                    false => self.pieces.get(format!("{CONTINUES}{piece}").as_str()),
                };
                row.map(|row| (end, *row as usize))
            });
            let Some((end, row)) = found else { return Vec::new() };
            rows.push(row);
            rest = &rest[end..];
        }
        rows
    }
}

/// Bytes that are taken from the front.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let b = self.take(4)?;
        usize::try_from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])).ok()
    }
}

/// A table's bytes.
pub(crate) fn written<'a>(dimensions: usize, rows: impl Iterator<Item = (&'a str, &'a [f32])>) -> Vec<u8> {
    let mut body = Vec::new();
    let mut count = 0u32;
    for (piece, vector) in rows {
        let Some(length) = u16::try_from(piece.len()).ok().filter(|n| (1..=PIECE).contains(&usize::from(*n)))
        else {
            continue;
        };
        let vector = &vector[..dimensions.min(vector.len())];
        let greatest = vector.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let factor = greatest / 127.0;
        body.extend(length.to_le_bytes());
        body.extend(piece.as_bytes());
        body.extend(factor.to_le_bytes());
        for x in vector {
            let scaled = if factor > 0.0 { (x / factor).round().clamp(-127.0, 127.0) } else { 0.0 };
            #[allow(clippy::cast_possible_truncation, reason = "it is within -127 and 127")]
            body.push((scaled as i8).to_le_bytes()[0]);
        }
        count += 1;
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(u32::try_from(dimensions).unwrap_or(0).to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(body);
    bytes
}
