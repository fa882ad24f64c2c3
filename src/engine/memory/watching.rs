//! Reports changes of the entries of memory, by an agent, an editor or another process, to clients that list them. Each list that
//! is asked for is followed by one report at most; a client that still shows the list asks for it again. So nothing is read
//! before a list is asked for, nor after it was closed and a change was reported.

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
    /// The entries as they were when the first list since the last report was asked for; `None`: no client waits for a report.
    reported: Arc<Mutex<Option<MemoryMark>>>,
}

impl MemoryWatch {
    /// Reports the next change. Watches the folders that are not watched yet. Blocks.
    pub(crate) fn begin(&self, memory: &Arc<Memory>, bus: &Arc<Bus>, scope: &EventScope) {
        let mut watched = lock(&self.folders);
        // Of several clients the first counts: each change since its list is reported.
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
                let mut known = lock(&reported);
                if known.as_ref().is_some_and(|known| *known != memory.mark()) {
                    *known = None;
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
