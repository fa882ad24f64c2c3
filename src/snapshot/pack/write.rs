//! Writes git's packs: a file of many objects under a temporary name, its index, and the final names that publish both.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::Crc;
use ring::digest::{Context, SHA256};

use crate::objects::id::{Id, Sort};
use crate::pack::INDEX_MAGIC;
use crate::steps::Steps;

/// A pack is closed at this size in bytes, so that offsets stay small and collection needs little space.
pub(crate) const MOST: u64 = 1 << 30;
/// Git's type number of a delta against an object that is named by its id.
pub(crate) const DELTA: u8 = 7;

/// Place of one object in a pack, for its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackEntry {
    pub(crate) id: Id,
    pub(crate) offset: u32,
    pub(crate) crc: u32,
}

/// Writes one pack under a temporary name.
#[derive(Debug)]
pub(crate) struct Writer {
    steps: Steps,
    dir: PathBuf,
    temp: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    places: Vec<PackEntry>,
}

/// A complete pack that is not visible to readers yet.
#[derive(Debug)]
pub(crate) struct CompletePack {
    steps: Steps,
    dir: PathBuf,
    temp: PathBuf,
    sync: bool,
    pub(crate) name: String,
}

impl Writer {
    /// `temp`: its name until it is complete, unique among the writers that may run at the same time.
    pub(crate) fn new(dir: &Path, temp: &str, steps: &Steps) -> io::Result<Self> {
        let temp = dir.join(temp);
        steps.at("create pack")?;
        let mut file = BufWriter::with_capacity(1 << 18, create(&temp)?);
        file.write_all(&header(0))?;
        Ok(Self { steps: steps.clone(), dir: dir.to_owned(), temp, file, offset: 12, places: Vec::new() })
    }

    pub(crate) fn len(&self) -> u64 {
        self.offset
    }

    /// Adds an object whose content is already compressed.
    pub(crate) fn add(&mut self, id: Id, sort: Sort, len: usize, packed: &[u8]) -> io::Result<()> {
        self.raw(id, &head(sort as u8, len), packed)
    }

    /// Adds an object as a delta against `base`, which is in this pack. `len`: the length of the delta.
    pub(crate) fn add_delta(&mut self, id: Id, base: &Id, len: usize, packed: &[u8]) -> io::Result<()> {
        let mut start = head(DELTA, len);
        start.extend_from_slice(&base.0);
        self.raw(id, &start, packed)
    }

    /// Copies an object's stored bytes from another pack.
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
        self.places.push(PackEntry { id, offset, crc: crc.sum() });
        Ok(())
    }

    /// Completes the pack. With `sync` it survives a loss of power once it is published.
    pub(crate) fn close(self, sync: bool) -> io::Result<CompletePack> {
        let (steps, temp) = (self.steps.clone(), self.temp.clone());
        self.complete(sync).inspect_err(|_| remove(&steps, &temp))
    }

    fn complete(mut self, sync: bool) -> io::Result<CompletePack> {
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
        write_index(&index_of(&self.temp), &mut self.places, hash, sync, &self.steps)?;
        Ok(CompletePack { steps: self.steps, dir: self.dir, temp: self.temp, sync, name })
    }

    /// Closes and publishes the pack. With `sync` it survives a loss of power.
    pub(crate) fn finish(self, sync: bool) -> io::Result<String> {
        self.close(sync)?.publish()
    }

    /// Deletes what was written.
    pub(crate) fn discard(self) {
        remove(&self.steps, &self.temp);
    }
}

impl CompletePack {
    /// Publishes the pack under its final name. The caller holds the lock.
    pub(crate) fn publish(self) -> io::Result<String> {
        let path = |ending: &str| self.dir.join(format!("{}.{ending}", self.name));
        self.steps.at("name index")?;
        std::fs::rename(index_of(&self.temp), path("idx"))?;
        self.steps.at("name pack")?;
        std::fs::rename(&self.temp, path("pack"))?;
        if self.sync {
            self.steps.at("sync folder")?;
            File::open(&self.dir)?.sync_all()?;
        }
        Ok(self.name)
    }

    /// Deletes what was written.
    pub(crate) fn discard(self) {
        remove(&self.steps, &self.temp);
    }
}

fn index_of(temp: &Path) -> PathBuf {
    let mut name = temp.as_os_str().to_owned();
    name.push("_idx");
    name.into()
}

fn remove(steps: &Steps, temp: &Path) {
    if steps.at("discard pack").is_ok() {
        let _ = std::fs::remove_file(temp);
        let _ = std::fs::remove_file(index_of(temp));
    }
}

/// The header of an object: its type and a length.
fn head(kind: u8, len: usize) -> Vec<u8> {
    let mut out = vec![kind << 4 | (len & 15) as u8];
    let mut rest = len >> 4;
    while rest > 0 {
        if let Some(last) = out.last_mut() {
            *last |= 0x80;
        }
        out.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    out
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
pub(crate) fn hash_of(file: &mut File, len: u64) -> io::Result<Id> {
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

/// Writes the index of the pack whose content has this hash.
pub(crate) fn write_index(
    path: &Path,
    places: &mut [PackEntry],
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
    steps.at("write index")?;
    let mut file = create(path)?;
    file.write_all(&out)?;
    if sync {
        steps.at("sync index")?;
        file.sync_data()?;
    }
    Ok(())
}
