//! All objects of a store: its packs, searched from the newest to the oldest.

pub(crate) mod collect;
pub(crate) mod flush;
pub(crate) mod id;
pub(crate) mod object;
pub(crate) mod place;
pub(crate) mod settle;
pub(crate) mod trust;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tiller_protocol::lock;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::error::{Result, SnapshotError, at};
use crate::objects::id::{Id, Sort};
use crate::objects::object::FolderEntry;
use crate::objects::trust::FlushedPacks;
use crate::pack::Pack;
use crate::pack::bases::Bases;
use crate::pack::handles::Handles;
use crate::pack::write::{self, Writer};
use crate::steps::Steps;

/// The packs of a store. Reading needs no lock: an object that is missed because its pack was replaced is searched once
/// more in the present packs.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) dir: PathBuf,
    pub(crate) steps: Steps,
    packs: Mutex<Vec<Arc<Pack>>>,
    handles: Handles,
    pub(crate) bases: Bases,
    pub(crate) flushed: Arc<FlushedPacks>,
}

/// Maximum number of searches while other processes replace packs.
const TRIES: usize = 20;

impl Objects {
    /// `store`: the folder of the whole store; `dir`: the folder of its packs.
    pub(crate) fn new(store: &Path, dir: PathBuf, steps: Steps) -> Self {
        let flushed = Arc::new(FlushedPacks::read(store, &dir, &steps));
        Self::with(dir, steps, flushed)
    }

    /// The same packs, with separate file descriptors.
    pub(crate) fn with(dir: PathBuf, steps: Steps, flushed: Arc<FlushedPacks>) -> Self {
        let packs = Mutex::default();
        Self { dir, steps, packs, handles: Handles::default(), bases: Bases::default(), flushed }
    }

    /// Checks the packs that may not have been flushed before a loss of power, and flushes the intact ones. The caller
    /// holds the lock. Returns the number of torn packs: if there are any, cached data must not be used.
    pub(crate) fn distrust(&self) -> Result<usize> {
        let mut known = lock(&self.packs);
        let (mut torn, mut whole) = (Vec::new(), Vec::new());
        for (n, pack) in known.iter().enumerate().filter(|(_, p)| !self.flushed.has(&p.name)) {
            if !pack.check().unwrap_or(false) {
                torn.push(n);
                continue;
            }
            if self.steps.durable() {
                for ending in ["pack", "idx"] {
                    let path = self.dir.join(format!("{}.{ending}", pack.name));
                    std::fs::File::open(&path).and_then(|f| f.sync_data()).map_err(at(path))?;
                }
            }
            whole.push(pack.name.clone());
        }
        if self.steps.durable() && !whole.is_empty() {
            std::fs::File::open(&self.dir).and_then(|d| d.sync_all()).map_err(at(&self.dir))?;
        }
        let there: Vec<String> = known.iter().map(|p| p.name.clone()).collect();
        self.flushed.add(&whole, &there);
        // Torn packs are searched last.
        for (moved, n) in torn.iter().enumerate() {
            let pack = known.remove(*n);
            pack.distrust();
            known.insert(moved, pack);
        }
        Ok(torn.len())
    }

    /// The packs that are known at present.
    pub(crate) fn packs(&self) -> Vec<Arc<Pack>> {
        lock(&self.packs).clone()
    }

    /// Reads the list of packs; returns whether it changed. `mend`: damaged indexes are rebuilt (the caller holds the
    /// lock).
    pub(crate) fn refresh(&self, mend: bool) -> Result<bool> {
        let mut known = lock(&self.packs);
        let mut names = HashSet::new();
        for item in std::fs::read_dir(&self.dir).map_err(at(&self.dir))? {
            let item = item.map_err(at(&self.dir))?;
            if let Some(name) = item.file_name().to_str().and_then(|n| n.strip_suffix(".pack")) {
                names.insert(name.to_owned());
            }
        }
        let before = known.len();
        known.retain(|p| names.contains(&p.name));
        let mut changed = known.len() != before;
        for pack in known.iter() {
            names.remove(&pack.name);
        }
        for name in names {
            match Pack::open(&self.dir, &name, mend.then_some(&self.steps), &self.handles) {
                Ok(pack) => {
                    known.push(Arc::new(pack));
                    changed = true;
                }
                // Replaced in the meantime; its objects are in another pack.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                // A damaged pack does not hide the others; `verify` reports it.
                Err(e) if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {}
                Err(e) => return Err(at(self.dir.join(name))(e)),
            }
        }
        Ok(changed)
    }

    pub(crate) fn add(&self, name: &str) -> Result<()> {
        let pack = Pack::open(&self.dir, name, None, &self.handles).map_err(at(self.dir.join(name)))?;
        let mut known = lock(&self.packs);
        known.retain(|p| p.name != name);
        known.push(Arc::new(pack));
        Ok(())
    }

    /// The pack of an object, and its offset there. When the pack is gone, the caller searches again.
    fn find(&self, id: &Id) -> io::Result<Option<(Arc<Pack>, u32)>> {
        for pack in self.packs().into_iter().rev() {
            if let Some(offset) = pack.find(id)? {
                return Ok(Some((pack, offset)));
            }
        }
        Ok(None)
    }

    /// Calls `what` with the present packs; again when a pack is gone (replaced by another process or in the
    /// background), and when `what` found nothing and the list of packs has changed.
    fn retry<T>(&self, mut what: impl FnMut() -> io::Result<Option<T>>) -> Result<Option<T>> {
        for _ in 0..TRIES {
            match what() {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {
                    if !self.refresh(false)? {
                        return Ok(None);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => _ = self.refresh(false)?,
                Err(e) => return Err(at(&self.dir)(e)),
            }
        }
        Ok(None)
    }

    /// Whether an object is in a known, intact pack.
    pub(crate) fn has(&self, id: &Id) -> Result<bool> {
        loop {
            // Torn packs come last.
            match self.find(id) {
                Ok(found) => return Ok(found.is_some_and(|(pack, _)| !pack.torn())),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    if !self.refresh(false)? {
                        return Err(at(&self.dir)(e));
                    }
                }
                Err(e) => return Err(at(&self.dir)(e)),
            }
        }
    }

    /// Length of an object's content.
    pub(crate) fn len(&self, id: &Id) -> Result<u64> {
        let len = self.retry(|| match self.find(id)? {
            Some((pack, offset)) => pack.content_len(offset).map(Some),
            None => Ok(None),
        });
        len?.ok_or(SnapshotError::Missing(*id))
    }

    /// An object's content, verified by its id.
    pub(crate) fn read(&self, id: &Id, sort: Sort) -> Result<Vec<u8>> {
        if sort == Sort::Folder && *id == object::empty_folder() {
            return Ok(Vec::new());
        }
        let found = self.retry(|| {
            let Some((pack, offset)) = self.find(id)? else { return Ok(None) };
            match pack.read(offset, &self.bases) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Err(e),
                read => Ok(Some((pack, read))),
            }
        })?;
        let (pack, read) = found.ok_or(SnapshotError::Missing(*id))?;
        let path = self.dir.join(format!("{}.pack", pack.name));
        let damaged = |detail: String| SnapshotError::Damaged { path: path.clone(), detail };
        let (found, data) = read.map_err(|e| damaged(e.to_string()))?;
        if found == sort && Id::of(sort, &data) == *id {
            Ok(data)
        } else {
            Err(damaged(format!("{} does not match its checksum", id.short())))
        }
    }

    /// The entries of a folder.
    pub(crate) fn folder(&self, id: &Id) -> Result<Vec<FolderEntry>> {
        let data = self.read(id, Sort::Folder)?;
        object::read_folder(&data).ok_or_else(|| SnapshotError::Damaged {
            path: self.dir.clone(),
            detail: format!("the stored folder {} is malformed", id.short()),
        })
    }
}

/// Compresses an object. Folders consist mostly of hashes, which do not compress.
pub(crate) fn compress(sort: Sort, data: &[u8]) -> io::Result<Vec<u8>> {
    let level = if sort == Sort::Folder { Compression::none() } else { Compression::fast() };
    let mut out = ZlibEncoder::new(Vec::with_capacity(data.len() / 2 + 64), level);
    out.write_all(data)?;
    out.finish()
}

/// Objects that are written together. No reader sees them before [`Batch::finish`].
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    objects: &'a Objects,
    writer: Option<Writer>,
    fresh: HashSet<Id>,
    done: Vec<String>,
    sync: bool,
}

impl<'a> Batch<'a> {
    /// With `sync` the batch survives a loss of power once it is finished.
    pub(crate) fn new(objects: &'a Objects, sync: bool) -> Self {
        Self { objects, writer: None, fresh: HashSet::new(), done: Vec::new(), sync }
    }

    /// Whether an object is already stored.
    pub(crate) fn has(&self, id: &Id) -> Result<bool> {
        Ok(self.fresh.contains(id) || self.objects.has(id)?)
    }

    /// Adds an object unless it is stored already.
    pub(crate) fn put(&mut self, sort: Sort, data: &[u8]) -> Result<Id> {
        let id = Id::of(sort, data);
        if !self.has(&id)? {
            let packed = compress(sort, data).map_err(at(&self.objects.dir))?;
            self.put_packed(id, sort, data.len(), &packed)?;
        }
        Ok(id)
    }

    /// Adds an object that is known to be missing.
    pub(crate) fn put_packed(&mut self, id: Id, sort: Sort, len: usize, packed: &[u8]) -> Result<()> {
        let dir = &self.objects.dir;
        if self.writer.as_ref().is_some_and(|w| w.len() + packed.len() as u64 > write::MOST) {
            self.close()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty => empty.insert(Writer::new(dir, "tmp_pack", &self.objects.steps).map_err(at(dir))?),
        };
        writer.add(id, sort, len, packed).map_err(at(dir))?;
        self.fresh.insert(id);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            let dir: &Path = &self.objects.dir;
            let name = writer.finish(self.sync).map_err(at(dir))?;
            self.objects.add(&name)?;
            if self.sync {
                self.objects.flushed.add(std::slice::from_ref(&name), &[]);
            }
            self.done.push(name);
        }
        Ok(())
    }

    /// Closes the packs; returns their names.
    pub(crate) fn finish(mut self) -> Result<Vec<String>> {
        self.close()?;
        Ok(std::mem::take(&mut self.done))
    }

    /// Deletes what was written and not closed.
    pub(crate) fn discard(mut self) {
        if let Some(writer) = self.writer.take() {
            writer.discard();
        }
    }
}
