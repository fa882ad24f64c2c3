//! A start that waits for the disk: shows why, because the engine does not run yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use tiller_protocol::EventBody;
use tiller_protocol::event::StateEvent;
use tiller_store::Store;
use tiller_tui::UiSender;

/// A start takes less time when the disk accepts writes.
const TIMEOUT: Duration = Duration::from_millis(400);

/// Reports a store that does not accept writes, until it is dropped.
pub(crate) struct SlowStartMonitor {
    over: Arc<AtomicBool>,
    thread: Option<Thread>,
}

impl SlowStartMonitor {
    pub(crate) fn of(store: &Store, sender: &UiSender) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (health, sender, ended) = (store.health(), sender.clone(), Arc::clone(&over));
        let look = move || {
            let mut well = true;
            loop {
                thread::park_timeout(TIMEOUT);
                if ended.load(Ordering::Acquire) {
                    return;
                }
                let now = health.borrow().clone();
                if now.ok() != well {
                    well = now.ok();
                    let body = EventBody::State(StateEvent::Saving { ok: well, why: now.why() });
                    crate::commands::workbench::session_link::tell(&sender, body);
                }
            }
        };
        // Without the thread only the notice is missing.
        let thread = thread::Builder::new().name("start".into()).spawn(look).ok();
        Self { over, thread: thread.map(|l| l.thread().clone()) }
    }
}

impl Drop for SlowStartMonitor {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}
