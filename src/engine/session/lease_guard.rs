//! A lease in transit: dropping it releases it.

use tiller_protocol::SessionId;
use tiller_store::{AcquireMode, Lease, Store, StoreError};
use tokio::sync::oneshot;

/// A lease that nobody has taken over yet.
#[derive(Debug, Default)]
pub(crate) struct LeaseGuard(Option<(Lease, Store)>);

impl LeaseGuard {
    fn new(lease: Lease, store: &Store) -> Self {
        Self(Some((lease, store.clone())))
    }

    /// Takes a head if it is free. A caller that stops waiting does not hold it; and nothing here blocks a thread,
    /// for the store may not answer for long.
    pub(crate) async fn acquire(store: &Store, session: SessionId, head: &str) -> Result<Self, StoreError> {
        let (ticket, store) = (store.leases().acquire(session, head, AcquireMode::IfFree), store.clone());
        // The other end is held below; when that is dropped, so is what is sent.
        let (answer, held) = oneshot::channel();
        tokio::spawn(async move {
            let _ = answer.send(ticket.await.map(|lease| Self::new(lease, &store)));
        });
        held.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Whether there is one: a session that was in the store before.
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// From here on it is the caller's.
    pub(crate) fn take(mut self) -> Option<Lease> {
        self.0.take().map(|(lease, _)| lease)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if let Some((lease, store)) = self.0.take() {
            // Nobody waits for the answer.
            drop(store.leases().release(lease));
        }
    }
}
