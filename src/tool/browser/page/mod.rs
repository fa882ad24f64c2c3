//! One tab of an agent: what its browser reported of it, its elements, and acting on them.

mod act;
mod drag;
mod element;
mod events;
mod files;
mod group;
mod held;
mod keys;
mod settle;
mod state;

pub(crate) use act::{Aim, Button, Drop, Scroll, Typed};
pub(crate) use element::Ref;
pub(crate) use files::host_of;
pub(crate) use group::{Download, Group, Progress, Stage};
pub(crate) use state::{DialogAnswer, Gone, PageState, quoted};

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio_util::task::AbortOnDropHandle;

use super::cdp::{Cdp, CdpError};
use super::outlet::{Guard, names_loopback};
use super::snapshot::{PageText, Refs};

/// Longest wait for a page to load. What is there by then counts.
const LOAD: Duration = Duration::from_secs(12);
/// The address of a page without content.
const EMPTY: &str = "about:blank";
/// The address of the page that stands for one that could not be loaded.
const REFUSED: &str = "chrome-error://chromewebdata/";

/// The part that the event task of a page and the calls on the page share.
pub(crate) struct PageShared {
    pub(crate) state: Mutex<PageState>,
    /// Notified after each change of the state.
    pub(crate) changed: tokio::sync::Notify,
}

/// A tab. Dropping it stops its task; the tab itself is closed with [`Page::close`].
pub(crate) struct Page {
    pub(crate) cdp: Arc<Cdp>,
    /// Session of the DevTools protocol.
    pub(crate) session: String,
    /// Id of the tab, which is also the id of its main frame.
    pub(crate) target: String,
    pub(crate) shared: Arc<PageShared>,
    guard: Arc<Guard>,
    pub(crate) refs: Refs,
    /// The last snapshot that the agent got of it.
    pub(crate) last: Option<PageText>,
    _events: AbortOnDropHandle<()>,
}

/// The answers of one call to dialogs of a page. They end with it.
pub(crate) struct Answers(Arc<PageShared>);

impl std::ops::Drop for Answers {
    fn drop(&mut self) {
        lock(&self.0.state).dialog = None;
    }
}

/// The settings of a new tab.
#[derive(Clone)]
pub(crate) struct PageOptions {
    /// Which requests of pages are refused.
    pub(crate) guard: Arc<Guard>,
    /// Greatest size of a download in bytes; 0: none is kept.
    pub(crate) download_bytes: u64,
    /// Events in all tabs of the agent.
    pub(crate) group: Arc<Group>,
}

impl Page {
    /// Takes over a tab that the browser attached to, and lets it run. It waits for no reply: until the tab runs, the page that
    /// opened it may stand still. `opener`: the address of that page.
    pub(crate) async fn attach(
        cdp: Arc<Cdp>,
        session: String,
        target: String,
        opener: Option<String>,
        options: &PageOptions,
    ) -> Self {
        let state = PageState { opener, ..PageState::default() };
        let shared = Arc::new(PageShared { state: Mutex::new(state), changed: tokio::sync::Notify::new() });
        let task = events::PageTask {
            cdp: Arc::clone(&cdp),
            session: session.clone(),
            target: target.clone(),
            shared: Arc::clone(&shared),
            options: options.clone(),
        };
        let events = cdp.events(Some(&session));
        let task = AbortOnDropHandle::new(tokio::spawn(task.run(events)));
        events::prepare(&cdp, &session).await;
        let guard = Arc::clone(&options.guard);
        let refs = Refs::new(Arc::clone(&options.group.refs));
        Self { cdp, session, target, shared, guard, refs, last: None, _events: task }
    }

    /// Calls a method of this tab.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CdpError> {
        self.call_in(&self.session, method, params).await
    }

    /// Calls a method of a session of this tab: its own, or that of a frame of another process.
    pub(crate) async fn call_in(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, CdpError> {
        let reply = self.raw(session, method, params).await?;
        serde_json::from_str(reply.get()).map_err(|_| CdpError::Unreadable)
    }

    /// As [`Self::call`], with the reply as the browser wrote it.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(crate) async fn call_raw(&self, method: &str, params: Value) -> Result<Box<RawValue>, CdpError> {
        self.raw(&self.session, method, params).await
    }

    async fn raw(&self, session: &str, method: &str, params: Value) -> Result<Box<RawValue>, CdpError> {
        tokio::select! {
            biased;
            reply = self.cdp.call_raw(Some(session), method, params) => reply,
            gone = self.ended() => Err(CdpError::Refused(match gone {
                Gone::Closed => "the tab was closed".into(),
                Gone::Crashed => "the page has crashed".into(),
            })),
        }
    }

    /// Waits until the tab is gone.
    async fn ended(&self) -> Gone {
        loop {
            let changed = self.shared.changed.notified();
            if let Some(gone) = self.gone() {
                return gone;
            }
            changed.await;
        }
    }

    /// Why it is gone; `None`: it is there.
    pub(crate) fn gone(&self) -> Option<Gone> {
        lock(&self.shared.state).gone
    }

    /// The address of its document whose request was refused, and why, when it shows nothing else.
    pub(crate) fn held(&self) -> Option<(String, String)> {
        let state = lock(&self.shared.state);
        state.refused.clone().filter(|_| state.is_blank() || state.is_at(REFUSED))
    }

    /// Learns where a tab is that went there before it was attached to.
    pub(crate) async fn locate(&self) {
        if !self.url().is_empty() {
            return;
        }
        let Ok(tree) = self.call("Page.getFrameTree", json!({})).await else { return };
        let frame = &tree["frameTree"]["frame"];
        let url = frame["url"].as_str().unwrap_or_default();
        // Frames of it, or of the page that opened it, may be elsewhere.
        self.guard.loads(&self.target, url, false);
        let mut state = lock(&self.shared.state);
        if state.url.is_empty() {
            state.url = format!("{url}{}", frame["urlFragment"].as_str().unwrap_or_default());
        }
    }

    /// Brings it before the other tabs of its window: only there it is drawn.
    pub(crate) async fn bring_to_front(&self) {
        self.cdp.post(Some(&self.session), "Page.bringToFront", json!({})).await;
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        lock(&self.shared.state).url.clone()
    }

    /// Takes the notes since the last call, each in one line.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let (mut notes, chooser) = {
            let mut state = lock(&self.shared.state);
            (std::mem::take(&mut state.notes), state.chooser.take())
        };
        if chooser.is_some() {
            notes.push("the page asks for a file: browser_upload with the same ref gives it one".into());
        }
        notes.extend(self.guard.take_notes());
        notes
    }

    /// Sets how dialogs of the page are answered, as long as the returned value lives.
    #[must_use]
    pub(crate) fn answer_dialogs(&self, answer: Option<DialogAnswer>) -> Answers {
        lock(&self.shared.state).dialog = answer;
        Answers(Arc::clone(&self.shared))
    }

    /// Loads an address and waits until it is there.
    ///
    /// # Errors
    /// Why it did not load, in words.
    pub(crate) async fn navigate(&self, url: &str) -> Result<(), String> {
        let parsed = reqwest::Url::parse(url).map_err(|e| e.to_string())?;
        if parsed.scheme() == "https" && names_loopback(&parsed) && self.guard.shows_others(&parsed) {
            self.leave().await?;
        }
        self.guard.open(url);
        // A failure before this says nothing of it.
        self.guard.why(&parsed);
        lock(&self.shared.state).begin(url);
        let reply = match self.call("Page.navigate", json!({"url": url})).await {
            Ok(reply) => reply,
            Err(CdpError::Late) => {
                self.stop_loading().await;
                return Err("the server did not answer in time".into());
            }
            Err(error) => return Err(error.to_string()),
        };
        if reply["isDownload"].as_bool() == Some(true) {
            return Ok(());
        }
        match reply["errorText"].as_str().filter(|e| !e.is_empty()) {
            Some("net::ERR_ABORTED") => {}
            Some(error) => {
                let refused = lock(&self.shared.state).refused.take();
                let why = refused
                    .map(|(_, why)| why)
                    .or_else(|| self.guard.why(&parsed))
                    .unwrap_or_else(|| explain(error));
                return Err(why);
            }
            None => {}
        }
        self.loaded().await;
        Ok(())
    }

    /// Leaves the page, so that none of another host is there when one of this machine is opened over TLS.
    async fn leave(&self) -> Result<(), String> {
        lock(&self.shared.state).begin(EMPTY);
        self.call("Page.navigate", json!({"url": EMPTY})).await.map_err(|e| e.to_string())?;
        self.loaded().await;
        let is_there = lock(&self.shared.state).is_at(EMPTY);
        if is_there {
            self.guard.empty(&self.target);
        }
        Ok(())
    }

    /// Goes back in the history of the tab. `false`: there is no earlier page.
    pub(crate) async fn back(&self) -> Result<bool, CdpError> {
        let history = self.call("Page.getNavigationHistory", json!({})).await?;
        let at = history["currentIndex"].as_u64().unwrap_or(0);
        let earlier = at.checked_sub(1).and_then(|at| history["entries"].get(usize::try_from(at).ok()?));
        let Some(entry) = earlier.filter(|e| e["url"].as_str() != Some(EMPTY)) else {
            return Ok(false);
        };
        let url = entry["url"].as_str().unwrap_or_default();
        lock(&self.shared.state).begin(url);
        self.call("Page.navigateToHistoryEntry", json!({"entryId": entry["id"]})).await?;
        self.loaded().await;
        Ok(true)
    }

    /// Closes the tab.
    pub(crate) async fn close(self) {
        let close = self.cdp.call(None, "Target.closeTarget", json!({"targetId": self.target}));
        // A browser that is gone has no tabs.
        let _ = tokio::time::timeout(Duration::from_secs(3), close).await;
    }
}

/// Words for an error of Chromium's network.
fn explain(error: &str) -> String {
    let words = match error {
        "net::ERR_NAME_NOT_RESOLVED" => "the host was not found",
        "net::ERR_CONNECTION_REFUSED" => "nothing listens there",
        "net::ERR_CONNECTION_TIMED_OUT" | "net::ERR_TIMED_OUT" => "the server did not answer in time",
        "net::ERR_TOO_MANY_REDIRECTS" => "too many redirects",
        "net::ERR_INTERNET_DISCONNECTED" => "there is no network",
        "net::ERR_EMPTY_RESPONSE" | "net::ERR_CONNECTION_CLOSED" | "net::ERR_CONNECTION_RESET" => {
            "the server closed the connection"
        }
        e if e.starts_with("net::ERR_CERT") || e.starts_with("net::ERR_SSL") => {
            "its certificate is not valid"
        }
        _ => return format!("it did not load: {error}"),
    };
    format!("{words} ({error})")
}
