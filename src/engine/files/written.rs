//! Waits until the engine's writes to the store are on disk.

use crate::core::Core;

/// Resolves when all writes so far are on disk: states of the files, and the log.
pub(crate) fn written(core: &Core) -> impl Future<Output = ()> + Send + use<> {
    let (keeping, saves) = (core.files.keeping.clone(), core.saves.barrier());
    async move {
        keeping.wait().await;
        saves.await;
    }
}
