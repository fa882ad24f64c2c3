//! A lease that is released when it is dropped.

use tiller_protocol::SessionId;
use tiller_store::{AcquireMode, Lease, Store, StoreError};
use tokio::sync::oneshot;

/// A lease that was not handed to a session yet.
#[derive(Debug, Default)]
pub(crate) struct LeaseGuard(Option<(Lease, Store)>);

impl LeaseGuard {
    fn new(lease: Lease, store: &Store) -> Self {
        Self(Some((lease, store.clone())))
    }

    /// Acquires a free head. A caller that stops waiting does not hold it. Blocks no thread, since the store may take
    /// long to answer.
    pub(crate) async fn acquire(store: &Store, session: SessionId, head: &str) -> Result<Self, StoreError> {
        let (ticket, store) = (store.leases().acquire(session, head, AcquireMode::IfFree), store.clone());
        // The receiver is held below; when it is dropped, so is the lease.
        let (answer, held) = oneshot::channel();
        tokio::spawn(async move {
            let _ = answer.send(ticket.await.map(|lease| Self::new(lease, &store)));
        });
        held.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Whether it holds a lease: for a session that was in the store before.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Hands the lease to the caller.
    pub(crate) fn take(mut self) -> Option<Lease> {
        self.0.take().map(|(lease, _)| lease)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if let Some((lease, store)) = self.0.take() {
            // The answer is not awaited.
            drop(store.leases().release(lease));
        }
    }
}
