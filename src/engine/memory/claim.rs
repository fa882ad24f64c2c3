//! Which part of a session the model was asked about, as the store keeps it. While one process asks, no other one does; when it
//! ends before the answer, also by a kill, the session has its chance to save again.

use tiller_protocol::{EntryId, SessionId};
use tiller_store::{Process, Store};

/// Where the store keeps the last entry of a session that a chance has seen.
pub(super) fn key(session: SessionId) -> String {
    format!("memory saved {session}")
}

/// The last entry that a chance has seen, from the value of [`key`].
pub(super) fn seen(value: &str) -> Option<&str> {
    let lines: Vec<&str> = value.split('\n').collect();
    match lines[..] {
        [last, before, pid, start, boot, space] => {
            let pid = pid.parse().unwrap_or_default();
            let process = Process { pid, start: start.into(), boot: boot.into(), space: space.into() };
            let seen = if process.alive() { last } else { before };
            (!seen.is_empty()).then_some(seen)
        }
        [last, ..] => Some(last),
        [] => None,
    }
}

/// The value of [`key`] while this process asks the model about what is up to `last`. `before`: the last entry of an earlier chance.
fn asking(last: &str, before: Option<&str>) -> String {
    let Process { pid, start, boot, space } = Process::current();
    format!("{last}\n{}\n{pid}\n{start}\n{boot}\n{space}", before.unwrap_or_default())
}

/// The right of this process to ask about a session. Dropped before [`Self::used`], it gives the chance back.
pub(super) struct Claim {
    store: Store,
    key: String,
    before: Option<String>,
    last: String,
    used: bool,
}

impl Claim {
    /// Claims the chance of what is up to `last`. `stored`: the value of [`key`] that the choice was made by. `None`: another process
    /// has claimed it meanwhile.
    pub(super) async fn take(
        store: &Store,
        session: SessionId,
        last: EntryId,
        stored: Option<String>,
    ) -> Option<Self> {
        let (key, last) = (key(session), last.to_string());
        let before = stored.as_deref().and_then(seen).map(str::to_owned);
        let value = asking(&last, before.as_deref());
        match store.replace_meta(&key, stored, value).await {
            Ok(false) => None,
            // A chance that cannot be stored is given again.
            Ok(true) | Err(_) => Some(Self { store: store.clone(), key, before, last, used: false }),
        }
    }

    /// The model has answered, and what is kept of it is stored.
    pub(super) fn used(mut self) {
        self.used = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let value = if self.used { Some(std::mem::take(&mut self.last)) } else { self.before.take() };
        // Not awaited: while this process lives, the claim counts as a chance that was given.
        drop(self.store.set_meta(&self.key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_asked_about_that_was_killed_counts_as_not_asked() {
        let own = asking("b", Some("a"));
        assert_eq!(seen(&own), Some("b"), "this process lives");
        let Process { pid, boot, space, .. } = Process::current();
        let ended = |before: &str| format!("b\n{before}\n{pid}\n0\n{boot}\n{space}");
        assert_eq!((seen(&ended("a")), seen(&ended(""))), (Some("a"), None));
        assert_eq!(seen("b"), Some("b"), "it was answered");
    }
}
