//! Rules of answers that are being written to the user's file. The end of the engine waits for them: another process may hold the
//! file for a moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tiller_protocol::{Notice, NoticeKind};
use tokio::sync::Notify;

use crate::lock::lock;

/// The writes that have not ended, and those that failed and were not reported.
#[derive(Debug, Default)]
pub(crate) struct RuleWrites {
    state: Mutex<WriteState>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct WriteState {
    open: Vec<String>,
    /// Patterns, and why they were not written.
    failed: Vec<(String, String)>,
}

/// A write. It has ended when this is dropped.
pub(crate) struct RuleWrite {
    writes: Arc<RuleWrites>,
    patterns: String,
    failed: Option<String>,
}

impl RuleWrites {
    /// A write of these patterns begins.
    pub(crate) fn begin(self: &Arc<Self>, patterns: &str) -> RuleWrite {
        lock(&self.state).open.push(patterns.to_owned());
        RuleWrite { writes: Arc::clone(self), patterns: patterns.to_owned(), failed: None }
    }

    /// A notice has shown that the write of these patterns failed.
    pub(crate) fn reported(&self, patterns: &str) {
        lock(&self.state).failed.retain(|(failed, _)| failed != patterns);
    }

    /// Waits until all writes have ended, for `limit` at most.
    pub(crate) async fn wait(&self, limit: Duration) {
        let all = async {
            loop {
                let mut ended = std::pin::pin!(self.ended.notified());
                // Before the look: an end in between is not missed.
                ended.as_mut().enable();
                if lock(&self.state).open.is_empty() {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::error!("rules were not written in time");
        }
    }

    /// A notice for each rule that is not in the file, unless its failure was reported.
    pub(crate) fn unsaved(&self) -> Vec<Notice> {
        let state = lock(&self.state);
        let held = "another process holds the file of rules";
        let open = state.open.iter().map(|patterns| (patterns.as_str(), held));
        let failed = state.failed.iter().map(|(patterns, why)| (patterns.as_str(), why.as_str()));
        let notice = |(patterns, why): (&str, &str)| {
            Notice::new(NoticeKind::Config, format!("the rule {patterns} could not be saved: {why}"))
                .hint("the call was approved once; answer with always again the next time")
        };
        open.chain(failed).map(notice).collect()
    }
}

impl RuleWrite {
    /// Writes the patterns by this.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn run(mut self, write: impl FnOnce(&str) -> Result<(), String>) -> Result<(), String> {
        let written = write(&self.patterns);
        self.failed = written.as_ref().err().cloned();
        written
    }
}

impl Drop for RuleWrite {
    fn drop(&mut self) {
        let mut state = lock(&self.writes.state);
        if let Some(at) = state.open.iter().position(|open| *open == self.patterns) {
            state.open.remove(at);
        }
        state.failed.extend(self.failed.take().map(|why| (self.patterns.clone(), why)));
        drop(state);
        self.writes.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tiller_permit::{Policy, Roots};

    use crate::questions::permission::Permit;

    use super::*;

    /// Longer than any test.
    const LONG: Duration = Duration::from_secs(600);

    /// A permit whose writes wait for what is sent here, and have its result.
    fn held() -> (Permit, std::sync::mpsc::Sender<Result<(), String>>) {
        let (free, held) = channel();
        let held = Mutex::new(held);
        let write = move |_: &str| lock(&held).recv().unwrap_or_else(|_| Err("the test ended".into()));
        let folder = std::path::Path::new("/work/p");
        let policy =
            Policy::new(Roots::new(folder, None, Vec::new()), tiller_tool::Registry::built_in().catalog());
        (Permit::new(policy, Arc::new(write)), free)
    }

    /// Begins a write of an answer and gives the call up.
    async fn abandoned(permit: &Permit) {
        let own = permit.clone();
        let call = tokio::spawn(async move { own.allow_always("terminal(ls *)").await });
        while permit.writes().unsaved().is_empty() {
            tokio::task::yield_now().await;
        }
        call.abort();
        assert!(call.await.is_err());
    }

    #[tokio::test]
    async fn the_end_waits_for_a_rule_whose_call_was_given_up() {
        let (permit, free) = held();
        permit.writes().wait(LONG).await;
        abandoned(&permit).await;
        // Held for too long: it is said.
        permit.writes().wait(Duration::ZERO).await;
        let said = permit.writes().unsaved();
        assert!(said.len() == 1 && said[0].message.contains("terminal(ls *)"), "{said:?}");
        free.send(Ok(())).unwrap();
        permit.writes().wait(LONG).await;
        assert_eq!(permit.writes().unsaved(), []);
    }

    #[tokio::test]
    async fn a_failure_is_said_once() {
        let (permit, free) = held();
        abandoned(&permit).await;
        free.send(Err("the disk is full".into())).unwrap();
        permit.writes().wait(LONG).await;
        let said = permit.writes().unsaved();
        assert!(said.len() == 1 && said[0].message.ends_with("the disk is full"), "{said:?}");
        // The call that waits for its rule reports it itself.
        let (permit, free) = held();
        free.send(Err("the disk is full".into())).unwrap();
        assert!(permit.allow_always("terminal(ls *)").await.is_err());
        assert_eq!(permit.writes().unsaved(), []);
    }
}
