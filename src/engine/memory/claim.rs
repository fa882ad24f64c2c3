//! Which part of a session the model was asked about, as the store keeps it. While one process asks, no other one does; when it
//! ends before the answer, also by a kill, the session has its chance to save again.

use tiller_protocol::{EntryId, SessionId, Time};
use tiller_store::{Process, Store, Ticket};

/// A claim ends after this time, in milliseconds: whether a process of another PID namespace still runs is not known.
const LONGEST: u64 = 24 * 3_600 * 1_000;

/// Where the store keeps the last entry of a session that a chance has seen.
pub(super) fn key(session: SessionId) -> String {
    format!("memory saved {session}")
}

/// The last entry that a chance has seen, from the value of [`key`]. `now`: the clock's time.
pub(super) fn seen(value: &str, now: Time) -> Option<&str> {
    let mut lines = value.split('\n');
    let (last, before) = (lines.next()?, lines.next());
    let seen = match before {
        Some(before) if !is_claimed(value, now) => before,
        _ => last,
    };
    (!seen.is_empty()).then_some(seen)
}

/// Whether a process asks the model now, from the value of [`key`].
fn is_claimed(value: &str, now: Time) -> bool {
    let lines: Vec<&str> = value.split('\n').collect();
    let [_, _, pid, start, boot, space, since] = lines[..] else { return false };
    let (Ok(pid), Ok(since)) = (pid.parse::<u32>(), since.parse::<i64>()) else { return false };
    let process = Process { pid, start: start.into(), boot: boot.into(), space: space.into() };
    now.millis().abs_diff(since) < LONGEST && process.alive()
}

/// The value of [`key`] while a process asks the model about what is up to `last`. `before`: the last entry of an earlier chance.
/// `now`: the time of the claim.
fn asking(process: Process, last: &str, before: &str, now: Time) -> String {
    let Process { pid, start, boot, space } = process;
    format!("{last}\n{before}\n{pid}\n{start}\n{boot}\n{space}\n{}", now.millis())
}

/// The right of this process to ask about a session. Dropped before [`Self::used`], it gives the chance back.
pub(super) struct Claim {
    store: Store,
    key: String,
    /// The value of the key while the claim lasts.
    own: String,
    /// The value of the key at its end.
    after: String,
    last: String,
    ended: bool,
}

impl Claim {
    /// Claims the chance of what is up to `last`. `stored`: the value of [`key`] that the choice was made by. `now`: the clock's
    /// time. `None`: it is claimed already, or another process has claimed it meanwhile.
    pub(super) async fn take(
        store: &Store,
        session: SessionId,
        last: EntryId,
        stored: Option<String>,
        now: Time,
    ) -> Option<Self> {
        if stored.as_deref().is_some_and(|value| is_claimed(value, now)) {
            return None;
        }
        let (key, last) = (key(session), last.to_string());
        let after = stored.as_deref().and_then(|value| seen(value, now)).unwrap_or_default().to_owned();
        let own = asking(Process::current(), &last, &after, now);
        match store.replace_meta(&key, stored, own.clone()).await {
            Ok(false) => None,
            // A chance that cannot be stored is given again.
            Ok(true) | Err(_) => Some(Self { store: store.clone(), key, own, after, last, ended: false }),
        }
    }

    /// The model has answered, and what is kept of it is stored. Returns when that is on disk.
    pub(super) async fn used(mut self) {
        self.after = std::mem::take(&mut self.last);
        self.finish().await;
    }

    /// Gives the chance back. Returns when that is on disk.
    pub(super) async fn give_back(self) {
        self.finish().await;
    }

    async fn finish(mut self) {
        self.ended = true;
        if let Err(error) = self.end().await {
            tracing::warn!(%error, "a claim of a chance to save could not be ended");
        }
    }

    /// Ends this claim in the store, and no other one that took its place.
    fn end(&self) -> Ticket<bool> {
        self.store.replace_meta(&self.key, Some(self.own.clone()), self.after.clone())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.ended {
            // Not awaited: until it is on disk, the claim counts as a chance that was given.
            drop(self.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use tiller_store::Options;

    use super::*;

    const NOW: Time = Time(1_000_000_000_000);

    /// Milliseconds after [`NOW`].
    fn later(ms: u64) -> Time {
        Time(NOW.millis() + i64::try_from(ms).unwrap())
    }

    /// A process of another PID namespace, which cannot be checked from here.
    fn elsewhere() -> Process {
        Process { space: "elsewhere".into(), ..Process::current() }
    }

    #[test]
    fn what_a_process_asked_about_that_was_killed_counts_as_not_asked() {
        let own = asking(Process::current(), "b", "a", NOW);
        assert_eq!(seen(&own, NOW), Some("b"), "this process lives");
        let killed = || Process { start: "0".into(), ..Process::current() };
        let ended = |before: &str| asking(killed(), "b", before, NOW);
        assert_eq!((seen(&ended("a"), NOW), seen(&ended(""), NOW)), (Some("a"), None));
        assert_eq!((seen("b", NOW), seen("", NOW)), (Some("b"), None), "it was answered, or never asked");
    }

    #[test]
    fn the_claim_of_a_process_that_cannot_be_checked_ends_after_a_day() {
        let value = asking(elsewhere(), "b", "a", NOW);
        assert_eq!(seen(&value, later(LONGEST - 1)), Some("b"));
        assert_eq!(seen(&value, later(LONGEST)), Some("a"));
    }

    #[tokio::test]
    async fn a_claim_is_refused_while_another_one_lasts_and_its_end_leaves_a_later_one_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("t.db"), Options::default()).unwrap();
        let ids = tiller_protocol::RandomIds;
        let session = SessionId::fresh(&ids, NOW);
        let (first, second) = (EntryId::fresh(&ids, NOW), EntryId::fresh(&ids, NOW));
        let stored = || store.meta(&key(session)).unwrap();
        let take = |last: EntryId, now: Time| Claim::take(&store, session, last, stored(), now);

        let other = asking(elsewhere(), &first.to_string(), "", NOW);
        store.set_meta(&key(session), Some(other.clone())).await.unwrap();
        assert!(take(second, later(1)).await.is_none());
        assert_eq!(stored(), Some(other));

        let old = take(first, later(LONGEST)).await.unwrap();
        assert!(take(second, later(LONGEST)).await.is_none());
        let new = take(second, later(2 * LONGEST)).await.unwrap();
        let held = stored();
        old.used().await;
        assert_eq!(stored(), held, "the claim that took its place stays");
        new.give_back().await;
        assert_eq!(stored().as_deref().and_then(|v| seen(v, NOW).map(str::to_owned)), None);
        take(second, NOW).await.unwrap().used().await;
        assert_eq!(stored(), Some(second.to_string()));
        store.close();
    }
}
