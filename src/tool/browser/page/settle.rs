//! Waiting until a page is there, or has dealt with an action.

use std::time::Duration;

use serde_json::json;
use tiller_protocol::lock;
use tokio::time::Instant;

use super::{LOAD, Page};

/// Time in which a page begins to react to an action.
const REACT: Duration = Duration::from_millis(60);
/// Longest wait for requests that an action caused, when the page does not load anew.
const REQUESTS: Duration = Duration::from_secs(2);
/// Time without requests after which a page counts as quiet.
const QUIET: Duration = Duration::from_millis(120);
/// Longest wait for what the page loads when the mouse comes over an element.
const HOVER: Duration = Duration::from_millis(500);
/// Longest wait for a page to take a call.
const ANSWER: Duration = Duration::from_secs(2);
/// Longest wait for two frames to be drawn.
const FRAMES: Duration = Duration::from_secs(1);

impl Page {
    /// Waits until the document has loaded, for at most [`LOAD`].
    pub(crate) async fn loaded(&self) {
        let deadline = Instant::now() + LOAD;
        loop {
            let changed = self.shared.changed.notified();
            {
                let state = lock(&self.shared.state);
                if !state.loading && !state.leaving || state.gone.is_some() {
                    break;
                }
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                let answers = self.answers().await;
                let mut state = lock(&self.shared.state);
                state.loading = false;
                state.leaving = false;
                state.note(match answers {
                    true => format!("the page was still loading after {} s", LOAD.as_secs()),
                    false => format!("no answer came within {} s, and loading was stopped", LOAD.as_secs()),
                });
                break;
            }
        }
        self.quiet().await;
    }

    /// Returns true if the page takes calls. While it waits for the answer to a request for another document it takes none, so
    /// that is stopped.
    async fn answers(&self) -> bool {
        let ask = self.call("Runtime.evaluate", json!({"expression": "0"}));
        let answers = tokio::time::timeout(ANSWER, ask).await.is_ok();
        if !answers {
            self.stop_loading().await;
        }
        answers
    }

    /// Stops loading: the page stays what it is.
    pub(super) async fn stop_loading(&self) {
        self.cdp.post(Some(&self.session), "Page.stopLoading", json!({})).await;
    }

    /// Waits until the page has dealt with an action: a new document has loaded, or the requests that it made are
    /// answered and two frames are drawn.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(REACT).await;
        if !self.is_navigating() {
            self.quiet().await;
        }
        // A slow browser may have reported the navigation only in the meantime.
        if self.is_navigating() {
            self.loaded().await;
        }
    }

    /// True if the page loads, or was asked to go elsewhere.
    fn is_navigating(&self) -> bool {
        let state = lock(&self.shared.state);
        state.loading || state.leaving
    }

    /// Waits until the page has drawn what the mouse over an element changes: a menu opens, a picture is exchanged, and
    /// until that is there a click would go elsewhere.
    pub(crate) async fn hovered(&self) {
        let deadline = Instant::now() + HOVER;
        self.frames(HOVER).await;
        loop {
            let changed = self.shared.changed.notified();
            let waits = {
                let state = lock(&self.shared.state);
                !state.open.is_empty() && state.gone.is_none()
            };
            if !waits || tokio::time::timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }

    async fn quiet(&self) {
        let deadline = Instant::now() + REQUESTS;
        loop {
            let changed = self.shared.changed.notified();
            let (open, gone) = {
                let state = lock(&self.shared.state);
                (!state.open.is_empty(), state.gone.is_some())
            };
            if gone || Instant::now() >= deadline {
                return;
            }
            let wait = if open { deadline } else { (Instant::now() + QUIET).min(deadline) };
            if tokio::time::timeout_at(wait, changed).await.is_err() && !open {
                break;
            }
        }
        self.frames(FRAMES).await;
    }

    /// Waits until two frames are drawn. A page whose scripts do not end is not waited for longer than `most`.
    async fn frames(&self, most: Duration) {
        let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))";
        let wait = json!({"expression": frames, "awaitPromise": true});
        let _ = tokio::time::timeout(most, self.call("Runtime.evaluate", wait)).await;
    }
}
