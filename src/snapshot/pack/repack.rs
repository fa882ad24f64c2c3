//! Copying objects from packs into a new one. Folders become deltas there, and snapshots that list many paths: where one
//! of thousands of names changed, that costs what changed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use crate::objects::id::{Id, Sort};
use crate::objects::{Objects, compress};
use crate::pack::delta::{self, BySpread, spread};
use crate::pack::write::Writer;
use crate::pack::{Form, Pack, Spot};

/// A folder of fewer bytes is written whole, and so is a snapshot.
const SMALLEST: usize = 256;
const SNAPSHOT: u64 = 1024;
/// So many deltas may stand on each other: each costs time where the folder is read.
const DEEPEST: u8 = 40;
/// Deltas at the end of a pack that later objects are compared with.
const LATEST: usize = 64;
/// Contents that are kept for that.
const TEXTS: usize = 16;

/// Fills a pack.
pub(crate) struct Repack<'a> {
    pub(crate) writer: Writer,
    objects: &'a Objects,
    /// Whether a delta may be written.
    deltas: bool,
    /// What is written, and how many deltas it stands on.
    written: HashMap<Id, u8>,
    /// What a delta was made against.
    bases: HashMap<Id, Id>,
    /// Objects by what they have in common with another version of themselves.
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

    /// Copies what is wanted of a pack; what was copied already is passed over.
    pub(crate) fn take(&mut self, pack: &Pack, spots: &[Spot]) -> io::Result<()> {
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
        // What comes later is most like what came last.
        for (id, offset) in latest.into_iter().filter(|(id, _)| !used.contains(id)) {
            let sort = pack.sort(offset)?;
            if let Some(data) = self.text(&id, sort) {
                self.note_kin(id, sort, &data);
            }
        }
        Ok(())
    }

    /// Whether an object may become a delta. Contents never do: they are read most, and seldom alike.
    fn may_shrink(&self, sort: Sort, pack: &Pack, spot: &Spot) -> io::Result<bool> {
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
            // Too many deltas below it: what all of them stand on.
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

    /// An object that was written, from where it was copied from. `None`, too, when it is of another sort.
    fn text(&mut self, id: &Id, sort: Sort) -> Option<Arc<[u8]>> {
        if let Some((_, data)) = self.texts.iter().rev().find(|(known, _)| known == id) {
            return Some(Arc::clone(data));
        }
        let data: Arc<[u8]> = self.objects.read(id, sort).ok()?.into();
        self.keep_text(*id, Arc::clone(&data));
        Some(data)
    }
}

/// Two numbers by which versions of an object are found. Of a folder the smallest hash of its rows, and that of its
/// names: one of thousands of rows that changes is seldom the one. Of a snapshot those of its lines.
fn marks(sort: Sort, data: &[u8]) -> [u64; 2] {
    match sort {
        Sort::Folder => marks_of_folder(data),
        // Never the numbers of a folder, whose bases are folders.
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
        // Never the same number as a row.
        least[1] = least[1].min(spread(name.rotate_left(32)));
        data = rest.get(33..).unwrap_or_default();
    }
    least
}
