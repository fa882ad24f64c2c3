//! Git's packs: many objects in one file, and an index beside it. Ours hold whole objects, no differences.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::Crc;
use flate2::bufread::ZlibDecoder;
use ring::digest::{Context, SHA256};

use crate::id::{Id, Sort};
use crate::steps::Steps;

/// A pack is closed at this size, so that offsets stay small and collection needs little room.
pub(crate) const MOST: u64 = 1 << 30;
const INDEX_MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const FANOUT: usize = 8;
const HASHES: u64 = 8 + 1024;

/// Where one object is in a pack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) id: Id,
    pub(crate) offset: u32,
    crc: u32,
}

/// Writes one pack under a temporary name.
#[derive(Debug)]
pub(crate) struct Writer {
    steps: Steps,
    dir: PathBuf,
    temp: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    places: Vec<Place>,
}

impl Writer {
    pub(crate) fn new(dir: &Path, steps: &Steps) -> io::Result<Self> {
        let temp = dir.join("tmp_pack");
        steps.at("create pack")?;
        let mut file = BufWriter::with_capacity(1 << 18, create(&temp)?);
        file.write_all(&header(0))?;
        Ok(Self { steps: steps.clone(), dir: dir.to_owned(), temp, file, offset: 12, places: Vec::new() })
    }

    pub(crate) fn len(&self) -> u64 {
        self.offset
    }

    /// Adds an object whose content is compressed already.
    pub(crate) fn add(&mut self, id: Id, sort: Sort, len: usize, packed: &[u8]) -> io::Result<()> {
        let mut head = [0; 12];
        let mut used = 0;
        let mut rest = len >> 4;
        head[0] = (sort as u8) << 4 | (len & 15) as u8;
        while rest > 0 {
            head[used] |= 0x80;
            used += 1;
            head[used] = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        self.raw(id, &head[..=used], packed)
    }

    /// Adds an object as it stands in another pack.
    pub(crate) fn copy(&mut self, id: Id, bytes: &[u8]) -> io::Result<()> {
        self.raw(id, &[], bytes)
    }

    fn raw(&mut self, id: Id, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.steps.at("write object")?;
        let mut crc = Crc::new();
        crc.update(head);
        crc.update(body);
        let offset = u32::try_from(self.offset).map_err(io::Error::other)?;
        self.file.write_all(head)?;
        self.file.write_all(body)?;
        self.offset += (head.len() + body.len()) as u64;
        self.places.push(Place { id, offset, crc: crc.sum() });
        Ok(())
    }

    /// Closes the pack and gives it its name. With `sync` it survives a loss of power.
    pub(crate) fn finish(mut self, sync: bool) -> io::Result<String> {
        self.steps.at("flush pack")?;
        self.file.flush()?;
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let count = u32::try_from(self.places.len()).map_err(io::Error::other)?;
        file.write_all_at(&header(count), 0)?;
        let hash = hash_of(&mut file, self.offset)?;
        self.steps.at("close pack")?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&hash.0)?;
        let sync = sync && self.steps.durable();
        let name = format!("pack-{hash}");
        if sync {
            self.steps.at("sync pack")?;
            file.sync_data()?;
        }
        write_index(&self.dir, &name, &mut self.places, hash, sync, &self.steps)?;
        self.steps.at("name pack")?;
        std::fs::rename(&self.temp, self.dir.join(format!("{name}.pack")))?;
        if sync {
            self.steps.at("sync folder")?;
            File::open(&self.dir)?.sync_all()?;
        }
        Ok(name)
    }

    /// Takes back what was written.
    pub(crate) fn discard(self) {
        if self.steps.at("discard pack").is_ok() {
            let _ = std::fs::remove_file(&self.temp);
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn header(count: u32) -> [u8; 12] {
    let mut head = *b"PACK\0\0\0\x02\0\0\0\0";
    head[8..].copy_from_slice(&count.to_be_bytes());
    head
}

/// The hash of the first `len` bytes.
fn hash_of(file: &mut File, len: u64) -> io::Result<Id> {
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Context::new(&SHA256);
    let mut left = file.take(len);
    let mut buffer = vec![0; 1 << 18];
    loop {
        match left.read(&mut buffer)? {
            0 => return Ok(Id::finish(hash)),
            n => hash.update(&buffer[..n]),
        }
    }
}

fn write_index(
    dir: &Path,
    name: &str,
    places: &mut [Place],
    pack: Id,
    sync: bool,
    steps: &Steps,
) -> io::Result<()> {
    places.sort_by_key(|p| p.id);
    let mut out = Vec::with_capacity(places.len() * 40 + 1100);
    out.extend_from_slice(&INDEX_MAGIC);
    let mut upto = 0_u32;
    for byte in 0..=255 {
        while places.get(upto as usize).is_some_and(|p| p.id.0[0] == byte) {
            upto += 1;
        }
        out.extend_from_slice(&upto.to_be_bytes());
    }
    places.iter().for_each(|p| out.extend_from_slice(&p.id.0));
    places.iter().for_each(|p| out.extend_from_slice(&p.crc.to_be_bytes()));
    places.iter().for_each(|p| out.extend_from_slice(&p.offset.to_be_bytes()));
    out.extend_from_slice(&pack.0);
    let mut hash = Context::new(&SHA256);
    hash.update(&out);
    out.extend_from_slice(&Id::finish(hash).0);
    let temp = dir.join("tmp_idx");
    steps.at("write index")?;
    let mut file = create(&temp)?;
    file.write_all(&out)?;
    if sync {
        steps.at("sync index")?;
        file.sync_data()?;
    }
    steps.at("name index")?;
    std::fs::rename(&temp, dir.join(format!("{name}.idx")))
}

/// A pack that is open for reading. It stays readable when somebody deletes its files.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) name: String,
    file: File,
    index: File,
    fanout: Vec<u32>,
    /// Bytes of the pack's file.
    pub(crate) len: u64,
    torn: AtomicBool,
}

impl Pack {
    /// Opens a pack. An index that is missing or damaged is made anew when `mend` is given (then the
    /// caller holds the lock).
    pub(crate) fn open(dir: &Path, name: &str, mend: Option<&Steps>) -> io::Result<Self> {
        let file = File::open(dir.join(format!("{name}.pack")))?;
        let len = file.metadata()?.len();
        match Self::open_index(dir, name, mend.is_some()) {
            Ok((index, fanout)) => Ok(Self::new(name, file, index, fanout, len)),
            Err(e) => {
                let Some(steps) = mend else { return Err(e) };
                reindex(dir, name, steps)?;
                let (index, fanout) = Self::open_index(dir, name, true)?;
                Ok(Self::new(name, file, index, fanout, len))
            }
        }
    }

    fn new(name: &str, file: File, index: File, fanout: Vec<u32>, len: u64) -> Self {
        Self { name: name.to_owned(), file, index, fanout, len, torn: AtomicBool::new(false) }
    }

    /// It is not what was written: what it still has may be read, and no more.
    pub(crate) fn distrust(&self) {
        self.torn.store(true, Ordering::Release);
    }

    pub(crate) fn torn(&self) -> bool {
        self.torn.load(Ordering::Acquire)
    }

    fn open_index(dir: &Path, name: &str, check: bool) -> io::Result<(File, Vec<u32>)> {
        let mut index = File::open(dir.join(format!("{name}.idx")))?;
        let mut head = vec![0; 8 + 1024];
        index.read_exact(&mut head)?;
        let fanout: Vec<u32> = head[FANOUT..].chunks_exact(4).map(be32).collect();
        let count = u64::from(fanout[255]);
        let len = index.metadata()?.len();
        let good = head.starts_with(&INDEX_MAGIC)
            && fanout.is_sorted()
            && len == HASHES + count * 40 + 64
            // Small ones are written without waiting for the disk: a loss of power may have left zeros.
            && (!check || len > 1 << 20 || {
                let wanted = hash_of(&mut index, len - 32)?;
                let mut there = [0; 32];
                index.read_exact_at(&mut there, len - 32)?;
                there == wanted.0
            });
        if good { Ok((index, fanout)) } else { Err(broken("its index is damaged")) }
    }

    pub(crate) fn count(&self) -> u32 {
        self.fanout[255]
    }

    /// Where an object begins.
    pub(crate) fn find(&self, id: &Id) -> io::Result<Option<u32>> {
        let first = usize::from(id.0[0]);
        let from = if first == 0 { 0 } else { self.fanout[first - 1] };
        let mut hashes = vec![0; (self.fanout[first] - from) as usize * 32];
        self.index.read_exact_at(&mut hashes, HASHES + u64::from(from) * 32)?;
        let (hashes, _) = hashes.as_chunks::<32>();
        let Ok(at) = hashes.binary_search(&id.0) else { return Ok(None) };
        let count = u64::from(self.count());
        let mut offset = [0; 4];
        let place = HASHES + count * 36 + (u64::from(from) + at as u64) * 4;
        self.index.read_exact_at(&mut offset, place)?;
        Ok(Some(be32(&offset)))
    }

    /// All objects in the order of the file, each with its length there.
    pub(crate) fn list(&self) -> io::Result<Vec<(Id, u32, u32)>> {
        let count = self.count() as usize;
        let mut all = vec![0; count * 40];
        self.index.read_exact_at(&mut all, HASHES)?;
        let offsets = all[count * 36..].chunks_exact(4).map(be32);
        let ids = all[..count * 32].chunks_exact(32).filter_map(Id::from_slice);
        let mut list: Vec<(Id, u32, u32)> = ids.zip(offsets).map(|(id, at)| (id, at, 0)).collect();
        list.sort_by_key(|(_, at, _)| *at);
        let mut end = u32::try_from(self.len.saturating_sub(32)).map_err(io::Error::other)?;
        for (_, at, len) in list.iter_mut().rev() {
            *len = end.checked_sub(*at).ok_or_else(|| broken("an object lies outside of it"))?;
            end = *at;
        }
        Ok(list)
    }

    /// The bytes of an object as they stand in the file.
    pub(crate) fn raw(&self, offset: u32, len: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        self.file.read_exact_at(&mut bytes, u64::from(offset))?;
        Ok(bytes)
    }

    /// What an object is and how long its content.
    pub(crate) fn head(&self, offset: u32) -> io::Result<(Sort, usize, u64)> {
        let mut head = [0; 12];
        let got = self.file.read_at(&mut head, u64::from(offset))?;
        let (sort, len, used) = read_head(&head[..got])?;
        Ok((sort, len, u64::from(offset) + used as u64))
    }

    /// An object's content.
    pub(crate) fn read(&self, offset: u32) -> io::Result<(Sort, Vec<u8>)> {
        let (sort, len, start) = self.head(offset)?;
        let from = io::BufReader::with_capacity(1 << 13, At { file: &self.file, at: start });
        let mut data = Vec::with_capacity(len.min(1 << 24));
        ZlibDecoder::new(from).take(len as u64 + 1).read_to_end(&mut data)?;
        if data.len() == len { Ok((sort, data)) } else { Err(broken("an object has another length")) }
    }

    /// Whether the whole file is as it was written.
    pub(crate) fn check(&self) -> io::Result<bool> {
        let mut file = self.file.try_clone()?;
        let mut there = [0; 32];
        let body = self.len.checked_sub(32).ok_or_else(|| broken("it is cut"))?;
        file.read_exact_at(&mut there, body)?;
        Ok(hash_of(&mut file, body)?.0 == there)
    }
}

/// Reads a file from a place on without moving anybody else's position.
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

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn read_head(bytes: &[u8]) -> io::Result<(Sort, usize, usize)> {
    let mut bytes_read = bytes.iter();
    let mut byte = *bytes_read.next().ok_or_else(|| broken("it is cut"))?;
    let sort = Sort::from_bits(byte >> 4 & 7).ok_or_else(|| broken("an object of an unknown kind"))?;
    let (mut len, mut shift, mut used) = (usize::from(byte & 15), 4_u32, 1);
    while byte & 0x80 != 0 {
        byte = *bytes_read.next().ok_or_else(|| broken("it is cut"))?;
        len |= usize::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        (shift, used) = (shift + 7, used + 1);
    }
    Ok((sort, len, used))
}

/// Makes the index of a pack anew, from the pack alone.
fn reindex(dir: &Path, name: &str, steps: &Steps) -> io::Result<()> {
    let data = std::fs::read(dir.join(format!("{name}.pack")))?;
    let body = data.len().checked_sub(32).filter(|n| *n >= 12).ok_or_else(|| broken("it is cut"))?;
    let mut hash = Context::new(&SHA256);
    hash.update(&data[..body]);
    let hash = Id::finish(hash);
    if hash.0 != data[body..] || !data.starts_with(b"PACK") {
        return Err(broken("its content is not what was written"));
    }
    let mut places = Vec::new();
    let mut at = 12;
    while at < body {
        let (sort, len, used) = read_head(&data[at..body])?;
        let mut content = Vec::with_capacity(len.min(1 << 24));
        let mut decoder = ZlibDecoder::new(&data[at + used..body]);
        decoder.read_to_end(&mut content)?;
        let end = at + used + usize::try_from(decoder.total_in()).map_err(io::Error::other)?;
        let mut crc = Crc::new();
        crc.update(&data[at..end]);
        let offset = u32::try_from(at).map_err(io::Error::other)?;
        places.push(Place { id: Id::of(sort, &content), offset, crc: crc.sum() });
        at = end;
    }
    write_index(dir, name, &mut places, hash, true, steps)
}
