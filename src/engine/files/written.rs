//! Waits until the engine's writes to the store are on disk.

use tokio::sync::watch;

use crate::core::Core;

/// Resolves when all writes so far are on disk: states of the files, and the log.
pub(crate) fn written(core: &Core) -> impl Future<Output = ()> + Send + use<> {
    let (keeping, saves) = (core.files.keeping.clone(), core.saves.barrier());
    async move {
        keeping.wait().await;
        saves.await;
    }
}

/// The end of a write of states, and of all before it. All clones wait for the same write, so a wait that was given up
/// ends no other wait.
#[derive(Clone, Debug)]
pub(crate) struct Recorded(watch::Receiver<()>);

/// The place of a write among the writes of states. Those that are begun later wait until this is dropped.
pub(crate) struct WriteOrder {
    _writing: watch::Sender<()>,
    before: Option<Recorded>,
}

impl WriteOrder {
    /// Waits for the end of all writes that were begun before this one.
    pub(crate) async fn wait(&mut self) {
        if let Some(before) = self.before.take() {
            before.wait().await;
        }
    }
}

impl Recorded {
    /// Begins a write behind the last one, whose place it takes.
    pub(crate) fn next(last: &mut Option<Self>) -> WriteOrder {
        let (writing, recorded) = watch::channel(());
        WriteOrder { _writing: writing, before: last.replace(Self(recorded)) }
    }

    /// Waits for the end of the write, whether the row was stored or could not be.
    pub(crate) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of an agent and the next row wait for the same write: neither ends with the other's patience.
    #[tokio::test]
    async fn a_wait_that_is_given_up_does_not_end_the_others() {
        let mut last = None;
        let writing = Recorded::next(&mut last);
        let recorded = last.unwrap();
        let (first, second) = (tokio::spawn(recorded.clone().wait()), tokio::spawn(recorded.clone().wait()));
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "the row is not stored yet");
        drop(writing);
        second.await.unwrap();
        recorded.wait().await;
    }
}
