//! Flushes what was written without waiting for the disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, at};
use crate::objects::trust::FlushedPacks;

/// Packs to be flushed. No durable record may refer to a snapshot before its packs are flushed.
#[derive(Debug)]
pub struct PendingFlush {
    /// Paths without their extensions.
    pub(crate) packs: Vec<PathBuf>,
    pub(crate) dir: PathBuf,
    /// Number of the last write that this covers.
    pub(crate) upto: u64,
    pub(crate) settled: Arc<AtomicU64>,
    pub(crate) flushed: Arc<FlushedPacks>,
}

impl PendingFlush {
    /// Flushes them. Blocks.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn settle(self) -> Result<()> {
        if self.settled.load(Ordering::Acquire) >= self.upto {
            return Ok(());
        }
        let mut packs = self.packs.clone();
        loop {
            let mut gone = false;
            for pack in &packs {
                for ending in ["pack", "idx"] {
                    let path = pack.with_extension(ending);
                    match std::fs::File::open(&path).and_then(|f| f.sync_data()) {
                        Err(e) if e.kind() == io::ErrorKind::NotFound => gone = true,
                        Err(e) => return Err(at(path)(e)),
                        Ok(()) => {}
                    }
                }
            }
            std::fs::File::open(&self.dir).and_then(|d| d.sync_all()).map_err(at(&self.dir))?;
            let name = |p: &PathBuf| Some(p.file_name()?.to_str()?.to_owned());
            self.flushed.add(&packs.iter().filter_map(name).collect::<Vec<_>>(), &[]);
            if !gone {
                break;
            }
            // Joined with others in the meantime: flush the packs that now hold the objects.
            packs = self.unflushed()?;
        }
        self.settled.fetch_max(self.upto, Ordering::AcqRel);
        Ok(())
    }

    /// The present packs that are not flushed.
    fn unflushed(&self) -> Result<Vec<PathBuf>> {
        let mut packs = Vec::new();
        for item in std::fs::read_dir(&self.dir).map_err(at(&self.dir))? {
            let path = item.map_err(at(&self.dir))?.path();
            let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
            if path.extension().is_some_and(|e| e == "pack") && !self.flushed.has(name) {
                packs.push(path.with_extension(""));
            }
        }
        Ok(packs)
    }
}
