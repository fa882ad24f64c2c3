//! Copies objects from packs into a new one. Folders become deltas, and so do snapshots that list many paths: a change
//! of one of thousands of names then costs the size of the change.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use crate::objects::id::{Id, Sort};
use crate::objects::{Objects, compress};
use crate::pack::delta::{self, BySpread, spread};
use crate::pack::write::Writer;
use crate::pack::{Form, Pack, PackLocation};

/// Smaller folders and snapshots are written whole, in bytes.
const SMALLEST: usize = 256;
const SNAPSHOT: u64 = 1024;
/// Maximum length of a chain of deltas, since each link costs time when the folder is read.
const DEEPEST: u8 = 40;
/// Number of the last deltas of a pack that later objects are compared with.
const LATEST: usize = 64;
/// Number of contents that are kept for that.
const TEXTS: usize = 16;

/// Writes a pack from objects of others.
pub(crate) struct Repack<'a> {
    pub(crate) writer: Writer,
    objects: &'a Objects,
    /// Whether deltas may be written.
    deltas: bool,
    /// Written objects, with the length of their chain of deltas.
    written: HashMap<Id, u8>,
    /// The base of each delta.
    bases: HashMap<Id, Id>,
    /// Objects by features that they share with their other versions.
    kin: BySpread<Id>,
    texts: VecDeque<(Id, Arc<[u8]>)>,
}

impl<'a> Repack<'a> {
    pub(crate) fn new(writer: Writer, objects: &'a Objects, deltas: bool) -> Self {
        let (written, bases, kin) = (HashMap::new(), HashMap::new(), BySpread::default());
        Self { writer, objects, deltas, written, bases, kin, texts: VecDeque::new() }
    }

    pub(crate) fn has(&self, id: &Id) -> bool {
        self.written.contains_key(id)
    }

    /// Copies the wanted objects of a pack; objects that were copied already are skipped.
    pub(crate) fn take(&mut self, pack: &Pack, spots: &[PackLocation]) -> io::Result<()> {
        let mut latest: VecDeque<(Id, u32)> = VecDeque::new();
        let mut used: HashSet<Id> = HashSet::new();
        for spot in spots {
            if self.has(&spot.id) {
                continue;
            }
            match pack.form(spot.offset)? {
                Form::Whole(sort) if !self.deltas || !self.may_shrink(sort, pack, spot)? => {
                    self.writer.copy(spot.id, &pack.raw(spot)?)?;
                    self.written.insert(spot.id, 0);
                }
                Form::Named(base) if self.deltas && self.depth(&base).is_some_and(|d| d < DEEPEST) => {
                    self.writer.copy(spot.id, &pack.raw(spot)?)?;
                    self.note_delta(spot.id, base);
                    used.insert(base);
                    latest.push_back((spot.id, spot.offset));
                    if latest.len() > LATEST {
                        latest.pop_front();
                    }
                }
                _ => {
                    let (sort, data) = pack.read(spot.offset, &self.objects.bases)?;
                    if Id::of(sort, &data) != spot.id {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "an object does not match its checksum",
                        ));
                    }
                    if sort == Sort::Content {
                        self.whole(spot.id, sort, &data)?;
                    } else {
                        self.shrink(spot.id, sort, &data)?;
                    }
                }
            }
        }
        // Later objects are most similar to the last ones.
        for (id, offset) in latest.into_iter().filter(|(id, _)| !used.contains(id)) {
            let sort = pack.sort(offset)?;
            if let Some(data) = self.text(&id, sort) {
                self.note_kin(id, sort, &data);
            }
        }
        Ok(())
    }

    /// Whether an object may become a delta. File contents never do: they are read most often, and are seldom similar.
    fn may_shrink(&self, sort: Sort, pack: &Pack, spot: &PackLocation) -> io::Result<bool> {
        Ok(match sort {
            Sort::Folder => true,
            Sort::Snapshot => pack.content_len(spot.offset)? >= SNAPSHOT,
            Sort::Content => false,
        })
    }

    fn depth(&self, id: &Id) -> Option<u8> {
        self.written.get(id).copied()
    }

    fn note_delta(&mut self, id: Id, base: Id) {
        let depth = self.depth(&base).unwrap_or(0).saturating_add(1);
        self.written.insert(id, depth);
        self.bases.insert(id, base);
    }

    fn whole(&mut self, id: Id, sort: Sort, data: &[u8]) -> io::Result<()> {
        self.writer.add(id, sort, data.len(), &compress(sort, data)?)?;
        self.written.insert(id, 0);
        Ok(())
    }

    /// Writes an object as a delta where that is smaller.
    fn shrink(&mut self, id: Id, sort: Sort, data: &[u8]) -> io::Result<()> {
        if !self.deltas || data.len() < SMALLEST {
            return self.whole(id, sort, data);
        }
        let mut known: Vec<Id> =
            marks(sort, data).into_iter().filter_map(|mark| self.kin.get(&mark).copied()).collect();
        known.dedup();
        let small = known.into_iter().find_map(|base| {
            // The chain below it is too long: use the object at its end as the base.
            let base = if self.depth(&base) < Some(DEEPEST) { base } else { self.root(base) };
            let text = self.text(&base, sort)?;
            let delta = delta::encode(&text, data, data.len() / 2)?;
            Some((base, delta))
        });
        match small {
            Some((base, delta)) => {
                let packed = compress(Sort::Content, &delta)?;
                self.writer.add_delta(id, &base, delta.len(), &packed)?;
                self.note_delta(id, base);
            }
            None => self.whole(id, sort, data)?,
        }
        self.keep_text(id, data.into());
        self.note_kin(id, sort, data);
        Ok(())
    }

    fn root(&self, mut id: Id) -> Id {
        for _ in 0..=DEEPEST {
            match self.bases.get(&id) {
                Some(base) => id = *base,
                None => break,
            }
        }
        id
    }

    fn note_kin(&mut self, id: Id, sort: Sort, data: &[u8]) {
        for mark in marks(sort, data) {
            self.kin.insert(mark, id);
        }
    }

    fn keep_text(&mut self, id: Id, data: Arc<[u8]>) {
        self.texts.push_back((id, data));
        if self.texts.len() > TEXTS {
            self.texts.pop_front();
        }
    }

    /// A written object, read from its source. `None` also when it is of another type.
    fn text(&mut self, id: &Id, sort: Sort) -> Option<Arc<[u8]>> {
        if let Some((_, data)) = self.texts.iter().rev().find(|(known, _)| known == id) {
            return Some(Arc::clone(data));
        }
        let data: Arc<[u8]> = self.objects.read(id, sort).ok()?.into();
        self.keep_text(*id, Arc::clone(&data));
        Some(data)
    }
}

/// Two numbers by which versions of an object are found. For a folder the smallest hash of its rows and of its names:
/// when one of thousands of rows changes, it is seldom that one. For a snapshot the same of its lines.
fn marks(sort: Sort, data: &[u8]) -> [u64; 2] {
    match sort {
        Sort::Folder => marks_of_folder(data),
        // Must differ from the numbers of folders, since the base of a folder must be a folder.
        _ => data.split(|b| *b == b'\n').fold([u64::MAX; 2], |[least, most], line| {
            let hash = hash(line) ^ 0x5bd1_e995;
            [least.min(spread(hash)), most.min(spread(hash.rotate_left(32)))]
        }),
    }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0, |hash, part| {
        let number = part.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
        spread(hash ^ number).rotate_left(5)
    })
}

fn marks_of_folder(mut data: &[u8]) -> [u64; 2] {
    let mut least = [u64::MAX; 2];
    while let Some(end) = data.iter().position(|b| *b == 0) {
        let (name, rest) = data.split_at(end);
        let id = rest.get(1..9).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_le_bytes(*b));
        let name = hash(name);
        least[0] = least[0].min(spread(name ^ id));
        // Must differ from the number of a row.
        least[1] = least[1].min(spread(name.rotate_left(32)));
        data = rest.get(33..).unwrap_or_default();
    }
    least
}
