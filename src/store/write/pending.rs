//! Counts of submitted and answered writes. A read waits with them for the writes before it, without a transaction of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// Writes are answered in the order in which they were submitted, so two numbers say which of them wait.
#[derive(Debug)]
pub(crate) struct Pending {
    submitted: AtomicU64,
    answered: watch::Sender<u64>,
}

impl Pending {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { submitted: AtomicU64::new(0), answered: watch::Sender::new(0) })
    }

    pub(crate) fn submitted(&self) {
        self.submitted.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn answered(&self) {
        self.answered.send_modify(|n| *n += 1);
    }

    /// Resolves once each write that was submitted before this call is answered.
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let all = self.submitted.load(Ordering::SeqCst);
        let mut answered = self.answered.subscribe();
        async move {
            // An error means that the store is gone.
            let _ = answered.wait_for(|n| *n >= all).await;
        }
    }
}
