//! Reports changes of the entries of memory, by an agent, an editor or another process, to clients that list them. Nothing is
//! watched before the first list.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tiller_memory::Memory;
use tiller_memory::files::MemoryMark;
use tiller_protocol::EventBody;
use tiller_protocol::event::StateEvent;
use tiller_watch::folder::Folder;

use crate::bus::{Bus, EventScope};
use crate::lock::lock;

/// The folders of memory that are watched. They are watched until this is dropped.
#[derive(Default)]
pub(crate) struct MemoryWatch {
    folders: Mutex<Vec<(PathBuf, Folder)>>,
    /// The entries as they were reported last; `None`: nothing is watched yet.
    reported: Arc<Mutex<Option<MemoryMark>>>,
}

impl MemoryWatch {
    /// Watches the folders that are not watched yet. Blocks.
    pub(crate) fn begin(&self, memory: &Arc<Memory>, bus: &Arc<Bus>, scope: &EventScope) {
        let mut watched = lock(&self.folders);
        lock(&self.reported).get_or_insert_with(|| memory.mark());
        for (folder, names) in memory.folders() {
            if watched.iter().any(|(known, _)| *known == folder) {
                continue;
            }
            let matters =
                move |path: &Path| path.file_name().is_some_and(|name| names.iter().any(|own| own == name));
            let (memory, bus, scope) = (Arc::clone(memory), Arc::clone(bus), scope.clone());
            let reported = Arc::clone(&self.reported);
            let report = move || {
                let mark = memory.mark();
                let mut reported = lock(&reported);
                if reported.as_ref() != Some(&mark) {
                    *reported = Some(mark);
                    bus.publish(&scope, EventBody::State(StateEvent::MemoryChanged {}));
                }
            };
            match Folder::watch_flat(&folder, matters, report) {
                Ok(watch) => watched.push((folder, watch)),
                Err(why) => tracing::warn!(%why, "changes of memory are not shown at once"),
            }
        }
    }
}
