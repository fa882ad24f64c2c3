//! Import of a published table: the embeddings of a static model as safetensors, with its tokenizer (tokenizer.json).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CONTINUES, DIMENSIONS, ROWS, Reader, Table, TableError, written};

/// What begins a word: in SentencePiece, and in BPE of bytes.
const SPACE: char = '\u{2581}';
const BYTE_SPACE: char = '\u{120}';
/// Bytes of the two files, and of the description at the start of safetensors.
const TENSORS: u64 = 1 << 30;
const TOKENIZER: u64 = 64 << 20;
const HEADER: u64 = 16 << 20;

/// Reads `model.safetensors` and `tokenizer.json` of a folder (or the named file, with the tokenizer beside it), and writes
/// the table to `to`.
///
/// # Errors
/// When a file is missing, damaged, too large, or of another kind, or the table cannot be written.
pub fn import(from: &Path, to: &Path) -> Result<Table, TableError> {
    let (tensors, tokenizer) = match from.is_dir() {
        true => (from.join("model.safetensors"), from.join("tokenizer.json")),
        false => (from.to_owned(), from.with_file_name("tokenizer.json")),
    };
    let tensors_bytes = bounded(&tensors, TENSORS)?;
    let tokenizer_bytes = bounded(&tokenizer, TOKENIZER)?;
    let bytes = convert(&tensors_bytes, &tokenizer_bytes)?;
    let table = Table::read(&bytes)?;
    store(to, &bytes).map_err(|e| TableError(format!("{}: {e}", to.display())))?;
    Ok(table)
}

fn bounded(path: &PathBuf, most: u64) -> Result<Vec<u8>, TableError> {
    let wrong = |why: String| TableError(format!("{}: {why}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?;
    if !meta.is_file() || meta.len() > most {
        return Err(wrong(format!("not a file of at most {} MB", most >> 20)));
    }
    std::fs::read(path).map_err(|e| wrong(e.to_string()))
}

/// The name of a table that is not complete begins and ends with these.
const PART: (&str, &str) = (".embeddings-", ".new");

fn store(to: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let folder = to.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(folder)?;
    remove_leftovers(folder);
    let mut file = tempfile::Builder::new().prefix(PART.0).suffix(PART.1).tempfile_in(folder)?;
    // Shows other imports that it is in use. Another import may remove the file between its creation and its lock, or at
    // any time where there are no locks: then this import fails, and can be repeated.
    drop(file.as_file().try_lock());
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(to).map_err(|e| e.error)?;
    Ok(())
}

/// Removes what imports that were killed left in the folder. The lock of a file ends with its process.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let part = name.to_str().is_some_and(|name| name.starts_with(PART.0) && name.ends_with(PART.1));
        if !part || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let free = std::fs::File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if free {
            // One that cannot be removed is tried again with the next import.
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// The table's bytes.
pub(crate) fn convert(tensors: &[u8], tokenizer: &[u8]) -> Result<Vec<u8>, TableError> {
    let matrix = Matrix::read(tensors)?;
    let pieces = pieces(tokenizer)?;
    let dimensions = matrix.columns.min(DIMENSIONS);
    let mut rows: Vec<(String, Vec<f32>)> = Vec::with_capacity(pieces.len());
    for (piece, id) in pieces {
        let Some(row) = matrix.row(id)? else {
            return Err(TableError("the tokenizer has pieces that the table has no vector for".into()));
        };
        rows.push((piece, row));
    }
    if rows.is_empty() {
        return Err(TableError("the tokenizer has no pieces".into()));
    }
    Ok(written(dimensions, rows.iter().map(|(piece, row)| (piece.as_str(), row.as_slice()))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F32,
    F16,
    Bf16,
}

struct Matrix<'a> {
    rows: usize,
    columns: usize,
    kind: Kind,
    data: &'a [u8],
}

impl<'a> Matrix<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, TableError> {
        let damaged = || TableError("a damaged safetensors file".into());
        let mut reader = Reader(bytes);
        let length = reader.take(8).and_then(|b| <[u8; 8]>::try_from(b).ok()).map(u64::from_le_bytes);
        let length = length.filter(|n| *n <= HEADER).ok_or_else(damaged)?;
        let header = reader.take(usize::try_from(length).map_err(|_| damaged())?).ok_or_else(damaged)?;
        let header: Value = serde_json::from_slice(header).map_err(|_| damaged())?;
        let tensors = header.as_object().ok_or_else(damaged)?;
        let shape = |tensor: &Value| -> Option<Vec<usize>> {
            let shape = tensor["shape"].as_array()?;
            shape.iter().map(|n| n.as_u64().and_then(|n| usize::try_from(n).ok())).collect()
        };
        let flat = |tensor: &&Value| shape(tensor).is_some_and(|s| s.len() == 2);
        let named = ["embeddings", "embedding.weight"].iter().find_map(|n| tensors.get(*n)).filter(flat);
        let only = || {
            let mut all = tensors.iter().filter(|(n, _)| *n != "__metadata__").map(|(_, t)| t).filter(flat);
            let first = all.next();
            if all.next().is_none() { first } else { None }
        };
        let tensor = named.or_else(only);
        let tensor = tensor.ok_or_else(|| TableError("it has no table of embeddings".into()))?;
        let kind = match tensor["dtype"].as_str() {
            Some("F32") => Kind::F32,
            Some("F16") => Kind::F16,
            Some("BF16") => Kind::Bf16,
            other => {
                let other: String =
                    other.unwrap_or("?").chars().filter(|c| c.is_alphanumeric()).take(16).collect();
                return Err(TableError(format!("its numbers are {other}; F32, F16 or BF16 can be read")));
            }
        };
        let shape = shape(tensor).ok_or_else(damaged)?;
        let (rows, columns) = (shape[0], shape[1]);
        if !(1..=ROWS).contains(&rows) || !(1..=8192).contains(&columns) {
            return Err(TableError(format!("{rows} x {columns} numbers are too many, or none")));
        }
        let at = |n: usize| tensor["data_offsets"][n].as_u64().and_then(|n| usize::try_from(n).ok());
        let (from, to) = at(0).zip(at(1)).ok_or_else(damaged)?;
        let width = if kind == Kind::F32 { 4 } else { 2 };
        let size = rows.checked_mul(columns).and_then(|n| n.checked_mul(width));
        let data = reader.0.get(from..to).filter(|d| Some(d.len()) == size).ok_or_else(damaged)?;
        Ok(Self { rows, columns, kind, data })
    }

    /// `None`: there is no such row.
    fn row(&self, row: usize) -> Result<Option<Vec<f32>>, TableError> {
        if row >= self.rows {
            return Ok(None);
        }
        let width = if self.kind == Kind::F32 { 4 } else { 2 };
        let bytes = &self.data[row * self.columns * width..(row + 1) * self.columns * width];
        let number = |b: &[u8]| match self.kind {
            Kind::F32 => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            Kind::F16 => half(u16::from_le_bytes([b[0], b[1]])),
            Kind::Bf16 => f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16),
        };
        let numbers: Vec<f32> = bytes.chunks_exact(width).take(DIMENSIONS).map(number).collect();
        match numbers.iter().all(|x| x.is_finite()) {
            true => Ok(Some(numbers)),
            false => Err(TableError("it has values that are no numbers".into())),
        }
    }
}

/// A number of 16 bits: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * (-24f32).exp2(),
        0x1f => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * f32::from(i16::try_from(exponent - 15).unwrap_or(0)).exp2(),
    }
}

/// The pieces with their rows, in the form of WordPiece: `##` begins what continues a word.
fn pieces(tokenizer: &[u8]) -> Result<Vec<(String, usize)>, TableError> {
    let wrong = |why: &str| TableError(format!("tokenizer.json {why}"));
    let json: Value = serde_json::from_slice(tokenizer).map_err(|_| wrong("is not JSON"))?;
    let model = &json["model"];
    let kind = model["type"].as_str().unwrap_or_default();
    let listed: Vec<(String, usize)> = match &model["vocab"] {
        Value::Object(vocab) => {
            let row = |id: &Value| id.as_u64().and_then(|n| usize::try_from(n).ok());
            vocab.iter().filter_map(|(piece, id)| Some((piece.clone(), row(id)?))).collect()
        }
        Value::Array(vocab) => vocab
            .iter()
            .enumerate()
            .filter_map(|(n, piece)| Some((piece[0].as_str()?.to_owned(), n)))
            .collect(),
        _ => return Err(wrong("has no vocabulary")),
    };
    if listed.len() > ROWS {
        return Err(wrong("has too many pieces"));
    }
    // Others mark the beginning of a word instead of its continuation; BPE does it with either sign.
    let marked = |mark: char| listed.iter().filter(|(piece, _)| piece.starts_with(mark)).count();
    let begins = match kind {
        "WordPiece" => None,
        "Unigram" => Some(SPACE),
        "BPE" if marked(SPACE) > marked(BYTE_SPACE) => Some(SPACE),
        "BPE" => Some(BYTE_SPACE),
        _ => return Err(wrong("has a model that is not WordPiece, Unigram or BPE")),
    };
    if begins.is_some_and(|mark| marked(mark) == 0) {
        return Err(wrong("does not mark where a word begins"));
    }
    let special = |p: &str| p.starts_with('[') && p.ends_with(']') || p.starts_with('<') && p.ends_with('>');
    let piece = |(piece, row): (String, usize)| {
        if special(&piece) {
            return None;
        }
        let piece = match begins {
            None => piece,
            Some(mark) => match piece.strip_prefix(mark) {
                Some(word) => word.to_owned(),
                None => format!("{CONTINUES}{piece}"),
            },
        };
        (!piece.is_empty() && piece != CONTINUES).then_some((piece, row))
    };
    Ok(lowered(listed.into_iter().filter_map(piece).collect()))
}

/// The pieces in lower case, as they are looked up. Of several forms of a piece the one in lower case counts, else the first.
fn lowered(mut pieces: Vec<(String, usize)>) -> Vec<(String, usize)> {
    let upper = |(piece, _): &(String, usize)| piece.chars().any(char::is_uppercase);
    pieces.sort_by_key(|piece| (upper(piece), piece.1));
    let mut known = HashSet::new();
    let lower = pieces.into_iter().map(|(piece, row)| (piece.to_lowercase(), row));
    lower.filter(|(piece, _)| known.insert(piece.clone())).collect()
}
