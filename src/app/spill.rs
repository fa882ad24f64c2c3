//! Removes full outputs and plans of sessions that were removed for good.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tiller_protocol::SessionId;
use tiller_store::{Store, StoreError};

/// A folder that changed within this time is kept: its session may be about to be stored, or was lost with a damaged
/// database, and the person may look for the rest of it.
const FRESH: Duration = Duration::from_secs(60 * 24 * 3600);

/// The folders with one subfolder for each session.
pub(crate) fn folders(places: &tiller_config::Places) -> [std::path::PathBuf; 2] {
    ["spill", "plans"].map(|name| places.state.join(name))
}

/// Removes the subfolders of sessions that do not exist any more, from a folder of full outputs or plans. Folders that
/// cannot be read or removed are kept. Blocks.
pub(crate) fn sweep(folder: &Path, store: &Store, now: SystemTime) {
    // A store in memory does not have the sessions of earlier processes.
    if !store.health().borrow().ok() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|n| n.parse::<SessionId>().ok()) else { continue };
        let changed = entry.metadata().ok().filter(std::fs::Metadata::is_dir).and_then(|m| m.modified().ok());
        let old = changed.is_some_and(|at| now.duration_since(at).is_ok_and(|age| age > FRESH));
        if old && matches!(store.sessions().get(id), Err(StoreError::NoSession(_))) {
            tracing::info!(session = %id, "removing full outputs of a session that no longer exists");
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(%error, path = %path.display(), "the full outputs could not be removed");
            }
        }
    }
}

/// Removes the subfolders of a session that is not kept.
pub(crate) fn discard(folders: &[std::path::PathBuf], session: SessionId) {
    for folder in folders {
        // It does not exist when there was no long output and no plan.
        let _ = std::fs::remove_dir_all(folder.join(session.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use tiller_protocol::{IdSource, SeqIds, Time};
    use tiller_store::Options;

    use super::*;

    #[test]
    fn only_old_folders_of_sessions_that_are_gone_go() {
        let tmp = tempfile::tempdir().unwrap();
        let memory = Store::not_saving("a test", Options::default()).unwrap();
        let store = Store::open(&tmp.path().join("data/t.db"), Options::default()).unwrap();
        let id = SessionId(SeqIds::default().next(Time(0))).to_string();
        for name in [id.as_str(), "something-else"] {
            std::fs::create_dir(tmp.path().join(name)).unwrap();
            std::fs::write(tmp.path().join(name).join("c1.txt"), "x").unwrap();
        }
        let there = |name: &str| tmp.path().join(name).exists();
        sweep(tmp.path(), &store, SystemTime::now());
        assert!(there(&id), "it is fresh");
        sweep(tmp.path(), &memory, SystemTime::now() + 2 * FRESH);
        assert!(there(&id), "nothing is known");
        sweep(tmp.path(), &store, SystemTime::now() + 2 * FRESH);
        assert!(!there(&id) && there("something-else"));
        sweep(&tmp.path().join("nowhere"), &store, SystemTime::now());
    }
}
