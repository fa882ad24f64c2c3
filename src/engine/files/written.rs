//! Waiting until what the engine writes to the store is on disk.

use crate::core::Core;

/// Resolves when everything that led up to now is on disk: states of the files, and the log.
pub(crate) fn written(core: &Core) -> impl Future<Output = ()> + Send + use<> {
    let (keeping, saves) = (core.files.keeping.clone(), core.saves.barrier());
    async move {
        keeping.wait().await;
        saves.await;
    }
}
