//! Reads git's packs: many objects in one file, with an index beside it. Objects are stored whole, or as deltas against
//! another object of the same pack.

pub(crate) mod bases;
pub(crate) mod delta;
pub(crate) mod handles;
pub(crate) mod join;
pub(crate) mod mend;
pub(crate) mod repack;
pub(crate) mod write;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use flate2::Crc;
use flate2::bufread::ZlibDecoder;

use crate::objects::id::{Id, Sort};
use crate::pack::bases::Bases;
use crate::pack::handles::{Handle, Handles};
use crate::pack::write::{DELTA, hash_of};
use crate::steps::Steps;

pub(crate) const INDEX_MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const FANOUT: usize = 8;
const HASHES: usize = 8 + 1024;
/// An index of at most this size is kept in memory, in bytes; a larger one is read on demand.
const SMALL: u64 = 32 << 10;
/// Number of ids that are read from an index at once: the time to find one does not grow with the pack.
const WINDOW: usize = 128;
/// Maximum length of a chain of deltas. Tiller's own are far shorter; git's have at most 4,095.
const DEEPEST: usize = 5000;

/// The place of an object in a pack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackLocation {
    pub(crate) id: Id,
    pub(crate) offset: u32,
    /// Bytes that it takes there.
    pub(crate) len: u32,
    pub(crate) crc: u32,
}

/// How an object is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole(Sort),
    /// A delta against the object with this id.
    Named(Id),
    /// A delta against the object at this offset.
    At(u32),
}

/// A pack. Its files are opened on demand.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) name: String,
    data: Handle,
    index: Handle,
    /// The beginning of the index, or all of a small one.
    head: Vec<u8>,
    /// Size of the pack's file, in bytes.
    pub(crate) len: u64,
    /// Time of modification of its file.
    pub(crate) written: SystemTime,
    torn: AtomicBool,
}

impl Pack {
    /// Opens a pack. With `mend`, a missing or damaged index is rebuilt (the caller holds the lock).
    pub(crate) fn open(dir: &Path, name: &str, mend: Option<&Steps>, handles: &Handles) -> io::Result<Self> {
        let path = |ending: &str| dir.join(format!("{name}.{ending}"));
        let meta = std::fs::metadata(path("pack"))?;
        let head = match open_index(&path("idx"), mend.is_some()) {
            Ok(head) => head,
            Err(e) => {
                let Some(steps) = mend else { return Err(e) };
                crate::pack::mend::reindex(dir, name, steps)?;
                open_index(&path("idx"), true)?
            }
        };
        Ok(Self {
            name: name.to_owned(),
            data: handles.handle(path("pack")),
            index: handles.handle(path("idx")),
            head,
            len: meta.len(),
            written: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            torn: AtomicBool::new(false),
        })
    }

    /// Marks the pack as torn: its objects may be read, but do not count as stored.
    pub(crate) fn distrust(&self) {
        self.torn.store(true, Ordering::Release);
    }

    pub(crate) fn torn(&self) -> bool {
        self.torn.load(Ordering::Acquire)
    }

    /// Number of objects whose id begins with at most this byte.
    fn upto(&self, byte: usize) -> u32 {
        be32(&self.head[FANOUT + 4 * byte..][..4])
    }

    pub(crate) fn count(&self) -> u32 {
        self.upto(255)
    }

    /// Reads bytes of the index.
    fn look_up(&self, at: usize, out: &mut [u8]) -> io::Result<()> {
        if let Some(there) = self.head.get(at..at + out.len()) {
            out.copy_from_slice(there);
            return Ok(());
        }
        self.index.file()?.read_exact_at(out, at as u64)
    }

    /// The offset of an object.
    pub(crate) fn find(&self, id: &Id) -> io::Result<Option<u32>> {
        let first = usize::from(id.0[0]);
        let from = if first == 0 { 0 } else { self.upto(first - 1) } as usize;
        let (mut low, mut high) = (from, self.upto(first) as usize);
        // Ids are hashes, so the position can be estimated from their bytes after the first.
        let part = u64::from(be32(&id.0[1..5]));
        let mut guess = low + (((high - low) as u64 * part) >> 32) as usize;
        let mut hashes = [0; WINDOW * 32];
        while low < high {
            let start = guess.saturating_sub(WINDOW / 2).clamp(low, high.saturating_sub(WINDOW).max(low));
            let end = (start + WINDOW).min(high);
            let hashes = &mut hashes[..(end - start) * 32];
            self.look_up(HASHES + start * 32, hashes)?;
            match hashes.as_chunks::<32>().0.binary_search(&id.0) {
                Ok(at) => {
                    let mut offset = [0; 4];
                    self.look_up(HASHES + self.count() as usize * 36 + (start + at) * 4, &mut offset)?;
                    return Ok(Some(be32(&offset)));
                }
                Err(0) => high = start,
                Err(at) if at == end - start => low = end,
                Err(_) => return Ok(None),
            }
            guess = low.midpoint(high);
        }
        Ok(None)
    }

    /// All objects in the order of the file.
    pub(crate) fn list(&self) -> io::Result<Vec<PackLocation>> {
        let count = self.count() as usize;
        let mut all = vec![0; count * 40];
        self.look_up(HASHES, &mut all)?;
        let (ids, rest) = all.split_at(count * 32);
        let (crcs, offsets) = rest.split_at(count * 4);
        let numbers = crcs.chunks_exact(4).zip(offsets.chunks_exact(4));
        let spot = |(id, (crc, at)): (&[u8], (&[u8], &[u8]))| {
            Some(PackLocation { id: Id::from_slice(id)?, offset: be32(at), len: 0, crc: be32(crc) })
        };
        let mut list: Vec<PackLocation> = ids.chunks_exact(32).zip(numbers).filter_map(spot).collect();
        list.sort_by_key(|s| s.offset);
        let mut end = u32::try_from(self.len.saturating_sub(32)).map_err(io::Error::other)?;
        for s in list.iter_mut().rev() {
            s.len = end.checked_sub(s.offset).ok_or_else(|| broken("an object lies outside the pack"))?;
            end = s.offset;
        }
        Ok(list)
    }

    /// The stored bytes of an object; an error when their checksum differs.
    pub(crate) fn raw(&self, spot: &PackLocation) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; spot.len as usize];
        self.data.file()?.read_exact_at(&mut bytes, u64::from(spot.offset))?;
        let mut crc = Crc::new();
        crc.update(&bytes);
        if crc.sum() == spot.crc { Ok(bytes) } else { Err(broken("an object does not match its checksum")) }
    }

    /// How an object is stored, its recorded length, and the offset of its data.
    fn head(&self, file: &File, offset: u32) -> io::Result<(Form, usize, u64)> {
        let mut head = [0; 48];
        let got = file.read_at(&mut head, u64::from(offset))?;
        let (form, len, used) = read_head(&head[..got], offset)?;
        Ok((form, len, u64::from(offset) + used as u64))
    }

    /// How an object is stored.
    pub(crate) fn form(&self, offset: u32) -> io::Result<Form> {
        Ok(self.head(&*self.data.file()?, offset)?.0)
    }

    /// The offset of a delta's base; `None`: the object is stored whole.
    fn base(&self, form: Form) -> io::Result<Option<u32>> {
        match form {
            Form::Whole(_) => Ok(None),
            Form::At(offset) => Ok(Some(offset)),
            Form::Named(id) => {
                self.find(&id)?.map(Some).ok_or_else(|| broken("an object's base is in another pack"))
            }
        }
    }

    /// The type of an object.
    pub(crate) fn sort(&self, mut offset: u32) -> io::Result<Sort> {
        let file = self.data.file()?;
        for _ in 0..DEEPEST {
            let form = self.head(&file, offset)?.0;
            match (form, self.base(form)?) {
                (Form::Whole(sort), _) => return Ok(sort),
                (_, Some(base)) => offset = base,
                (_, None) => break,
            }
        }
        Err(broken("its deltas refer to each other in a cycle"))
    }

    /// Length of an object's content.
    pub(crate) fn content_len(&self, offset: u32) -> io::Result<u64> {
        let file = self.data.file()?;
        let (form, len, start) = self.head(&file, offset)?;
        if matches!(form, Form::Whole(_)) {
            return Ok(len as u64);
        }
        let mut first = [0; 20];
        let from = io::BufReader::with_capacity(1 << 7, At { file: &file, at: start });
        let mut decoder = ZlibDecoder::new(from);
        let mut got = 0;
        while got < first.len() {
            match decoder.read(&mut first[got..])? {
                0 => break,
                n => got += n,
            }
        }
        let len = delta::target_len(&first[..got]).ok_or_else(|| broken("a delta is malformed"))?;
        Ok(len as u64)
    }

    /// An object's content.
    pub(crate) fn read(&self, offset: u32, bases: &Bases) -> io::Result<(Sort, Vec<u8>)> {
        let file = self.data.file()?;
        let one = |at: u32| {
            let (form, len, start) = self.head(&file, at)?;
            let from = io::BufReader::with_capacity(1 << 13, At { file: &file, at: start });
            Ok((form, inflate(from, len)?))
        };
        resolve(offset, &one, &|form| self.base(form), (&self.name, bases))
    }

    /// Whether the checksum of the whole file is correct.
    pub(crate) fn check(&self) -> io::Result<bool> {
        let mut file = File::open(self.data.path())?;
        let mut there = [0; 32];
        let body = self.len.checked_sub(32).ok_or_else(|| broken("it is truncated"))?;
        file.read_exact_at(&mut there, body)?;
        Ok(hash_of(&mut file, body)?.0 == there)
    }
}

/// Decompresses an object, which must have `len` bytes.
pub(crate) fn inflate(from: impl io::BufRead, len: usize) -> io::Result<Vec<u8>> {
    let mut data = Vec::with_capacity(len.min(1 << 24));
    // Malformed data counts as damage, not as a mistake of the caller.
    let read = ZlibDecoder::new(from).take(len as u64 + 1).read_to_end(&mut data);
    read.map_err(
        |e| if e.kind() == io::ErrorKind::InvalidInput { broken("an object is damaged") } else { e },
    )?;
    if data.len() == len { Ok(data) } else { Err(broken("an object has the wrong length")) }
}

/// Reconstructs an object. `one` reads the object at an offset, `base` finds the base of a delta.
pub(crate) fn resolve(
    offset: u32,
    one: &dyn Fn(u32) -> io::Result<(Form, Vec<u8>)>,
    base: &dyn Fn(Form) -> io::Result<Option<u32>>,
    (name, bases): (&str, &Bases),
) -> io::Result<(Sort, Vec<u8>)> {
    let mut deltas = Vec::new();
    let mut at = offset;
    let (sort, mut data) = loop {
        if let Some((sort, data)) = bases.get(name, at) {
            break (sort, data.to_vec());
        }
        let (form, data) = one(at)?;
        match (form, base(form)?) {
            (Form::Whole(sort), _) => {
                if !deltas.is_empty() {
                    bases.put(name, at, sort, &data);
                }
                break (sort, data);
            }
            (_, Some(base)) if deltas.len() < DEEPEST => {
                deltas.push((at, data));
                at = base;
            }
            _ => return Err(broken("its deltas refer to each other in a cycle")),
        }
    };
    while let Some((at, delta)) = deltas.pop() {
        data = delta::apply(&data, &delta).ok_or_else(|| broken("a delta is malformed"))?;
        bases.put(name, at, sort, &data);
    }
    Ok((sort, data))
}

/// Reads the beginning of an index, or all of a small one.
fn open_index(path: &Path, check: bool) -> io::Result<Vec<u8>> {
    let mut index = File::open(path)?;
    let len = index.metadata()?.len();
    let mut head = vec![0; if len <= SMALL { len as usize } else { HASHES }];
    index.read_exact(&mut head)?;
    if head.len() < HASHES {
        return Err(broken("its index is truncated"));
    }
    let fanout: Vec<u32> = head[FANOUT..HASHES].chunks_exact(4).map(be32).collect();
    let good = head.starts_with(&INDEX_MAGIC)
        && fanout.is_sorted()
        && len == HASHES as u64 + u64::from(fanout[255]) * 40 + 64
        // Small ones are not flushed: after a loss of power they may contain zeros.
        && (!check || len > 1 << 20 || {
            let wanted = hash_of(&mut index, len - 32)?;
            let mut there = [0; 32];
            index.read_exact_at(&mut there, len - 32)?;
            there == wanted.0
        });
    if good { Ok(head) } else { Err(broken("its index is damaged")) }
}

/// Reads a file from an offset without moving its shared position.
struct At<'a> {
    file: &'a File,
    at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

pub(crate) fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Parses the header of the object at `offset`: how it is stored, its recorded length, and the size of the header.
pub(crate) fn read_head(bytes: &[u8], offset: u32) -> io::Result<(Form, usize, usize)> {
    let cut = || broken("it is truncated");
    let mut rest = bytes.iter();
    let mut byte = *rest.next().ok_or_else(cut)?;
    let kind = byte >> 4 & 7;
    let (mut len, mut shift) = (usize::from(byte & 15), 4_u32);
    while byte & 0x80 != 0 {
        byte = *rest.next().ok_or_else(cut)?;
        len |= usize::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
    }
    let form = match kind {
        DELTA => {
            let name = rest.as_slice().get(..32).and_then(Id::from_slice).ok_or_else(cut)?;
            rest = rest.as_slice()[32..].iter();
            Form::Named(name)
        }
        // Tiller never writes this form; a git that repacks the store does.
        6 => {
            let mut byte = *rest.next().ok_or_else(cut)?;
            let mut back = u32::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = *rest.next().ok_or_else(cut)?;
                back = (back + 1).checked_mul(128).ok_or_else(cut)? | u32::from(byte & 0x7f);
            }
            Form::At(offset.checked_sub(back).filter(|_| back > 0).ok_or_else(cut)?)
        }
        kind => Form::Whole(Sort::from_bits(kind).ok_or_else(|| broken("an object of an unknown kind"))?),
    };
    Ok((form, len, bytes.len() - rest.as_slice().len()))
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
