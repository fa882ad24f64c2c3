//! Flushing what was written without waiting for the disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, at};
use crate::trust::Flushed;

/// What is to be flushed. Nothing may name a snapshot durably before it was.
#[derive(Debug)]
pub struct Unsettled {
    /// Without their endings.
    pub(crate) packs: Vec<PathBuf>,
    pub(crate) dir: PathBuf,
    /// The writing up to which this goes.
    pub(crate) upto: u64,
    pub(crate) settled: Arc<AtomicU64>,
    pub(crate) flushed: Arc<Flushed>,
}

impl Unsettled {
    /// Waits for the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn settle(self) -> Result<()> {
        if self.settled.load(Ordering::Acquire) >= self.upto {
            return Ok(());
        }
        for pack in &self.packs {
            for ending in ["pack", "idx"] {
                let path = pack.with_extension(ending);
                match std::fs::File::open(&path).and_then(|f| f.sync_data()) {
                    // Joined with others meanwhile, and flushed by that.
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(at(path)(e)),
                    _ => {}
                }
            }
        }
        std::fs::File::open(&self.dir).and_then(|d| d.sync_all()).map_err(at(&self.dir))?;
        let name = |p: &PathBuf| Some(p.file_name()?.to_str()?.to_owned());
        self.flushed.add(&self.packs.iter().filter_map(name).collect::<Vec<_>>(), &[]);
        self.settled.fetch_max(self.upto, Ordering::AcqRel);
        Ok(())
    }
}
