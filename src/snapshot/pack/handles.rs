//! The descriptors that a store's packs hold open: few, however many packs there are.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use tiller_protocol::lock;

/// Files that the packs of one store hold open together.
const OPEN: usize = 16;

type Slot = Mutex<Option<Arc<File>>>;

/// What is open, in the order of opening. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handles(Arc<Mutex<VecDeque<Weak<Slot>>>>);

/// A file that is opened when it is read, and closed when others need the descriptor more.
#[derive(Debug)]
pub(crate) struct Handle {
    path: PathBuf,
    slot: Arc<Slot>,
    all: Handles,
}

impl Handles {
    /// A file that is not opened yet.
    pub(crate) fn handle(&self, path: PathBuf) -> Handle {
        Handle { path, slot: Arc::default(), all: self.clone() }
    }

    fn opened(&self, slot: &Arc<Slot>) {
        let mut open = lock(&self.0);
        open.retain(|slot| slot.strong_count() > 0);
        open.push_back(Arc::downgrade(slot));
        while open.len() > OPEN {
            if let Some(oldest) = open.pop_front().and_then(|slot| slot.upgrade()) {
                drop(lock(&oldest).take());
            }
        }
    }
}

impl Handle {
    /// The file, open for reading.
    ///
    /// # Errors
    /// Also when it was deleted since it was found: then its objects are in another pack.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        let mut slot = lock(&self.slot);
        if let Some(file) = &*slot {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(&self.path)?);
        *slot = Some(Arc::clone(&file));
        // Closing another one takes that one's lock.
        drop(slot);
        self.all.opened(&self.slot);
        Ok(file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
