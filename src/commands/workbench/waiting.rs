//! A start that waits for the disk: what is wrong is shown meanwhile, for the engine cannot tell it yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use tiller_protocol::EventBody;
use tiller_protocol::event::StateEvent;
use tiller_store::Store;
use tiller_tui::UiSender;

/// A start is over long before that where the disk takes what it is given.
const PATIENCE: Duration = Duration::from_millis(400);

/// Looks at the store until it is dropped.
pub(crate) struct Waiting {
    over: Arc<AtomicBool>,
    looker: Option<Thread>,
}

impl Waiting {
    pub(crate) fn of(store: &Store, sender: &UiSender) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (health, sender, ended) = (store.health(), sender.clone(), Arc::clone(&over));
        let look = move || {
            let mut well = true;
            loop {
                thread::park_timeout(PATIENCE);
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
        // Without it the start only says less.
        let looker = thread::Builder::new().name("start".into()).spawn(look).ok();
        Self { over, looker: looker.map(|l| l.thread().clone()) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(looker) = &self.looker {
            looker.unpark();
        }
    }
}
