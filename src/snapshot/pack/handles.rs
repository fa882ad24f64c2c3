//! The file descriptors of a store's packs: a bounded number, however many packs there are.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use tiller_protocol::lock;

/// Maximum number of open files for the packs of one store.
const OPEN: usize = 16;

type Slot = Mutex<Option<Arc<File>>>;

/// The open files, in the order of opening. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handles(Arc<Mutex<VecDeque<Weak<Slot>>>>);

/// A file that is opened on demand, and closed when the limit requires it.
#[derive(Debug)]
pub(crate) struct Handle {
    path: PathBuf,
    slot: Arc<Slot>,
    all: Handles,
}

impl Handles {
    /// A handle for a file that is not opened yet.
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
    /// When it cannot be opened, also because the pack was deleted since it was found: then its objects are in another
    /// pack.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        let mut slot = lock(&self.slot);
        if let Some(file) = &*slot {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(&self.path)?);
        *slot = Some(Arc::clone(&file));
        // Closing another file takes that slot's lock.
        drop(slot);
        self.all.opened(&self.slot);
        Ok(file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
