//! One tab of an agent: what its browser reported of it, its elements, and acting on them.

mod act;
mod element;
mod events;
mod keys;
mod settle;
mod state;

pub(crate) use act::{Aim, Button, Drop, Scroll, Typed};
pub(crate) use element::Ref;
pub(crate) use state::{DialogAnswer, OpenedTab, PageState};

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

/// What the event task of a page and the calls on the page share.
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

/// What a tab is opened with.
#[derive(Clone)]
pub(crate) struct PageOptions {
    /// Which requests of pages are refused.
    pub(crate) guard: Arc<Guard>,
    /// Greatest size of a download in bytes; 0: none is kept.
    pub(crate) download_bytes: u64,
}

impl Page {
    /// Takes over a tab that the browser attached to, and lets it run.
    ///
    /// # Errors
    /// When the browser is gone.
    pub(crate) async fn attach(
        cdp: Arc<Cdp>,
        session: String,
        target: String,
        options: &PageOptions,
    ) -> Result<Self, CdpError> {
        let shared = Arc::new(PageShared { state: Mutex::default(), changed: tokio::sync::Notify::new() });
        let task = events::PageTask {
            cdp: Arc::clone(&cdp),
            session: session.clone(),
            target: target.clone(),
            shared: Arc::clone(&shared),
            options: options.clone(),
        };
        let events = cdp.events(Some(&session));
        let task = AbortOnDropHandle::new(tokio::spawn(task.run(events)));
        let page = Self {
            cdp,
            session,
            target,
            shared,
            guard: Arc::clone(&options.guard),
            refs: Refs::default(),
            last: None,
            _events: task,
        };
        page.call("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]})).await?;
        for method in ["Page.enable", "Network.enable", "Inspector.enable", "DOM.enable"] {
            page.call(method, json!({})).await?;
        }
        let children = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        page.call("Target.setAutoAttach", children).await?;
        page.call("Runtime.runIfWaitingForDebugger", json!({})).await?;
        Ok(page)
    }

    /// Calls a method of this tab.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CdpError> {
        let reply = self.call_raw(method, params).await?;
        Ok(serde_json::from_str(reply.get()).unwrap_or_default())
    }

    /// As [`Self::call`], with the reply as the browser wrote it.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub(crate) async fn call_raw(&self, method: &str, params: Value) -> Result<Box<RawValue>, CdpError> {
        tokio::select! {
            biased;
            reply = self.cdp.call_raw(Some(&self.session), method, params) => reply,
            () = self.crashed() => Err(CdpError::Refused("the page has crashed".into())),
        }
    }

    /// Waits until the page's process has crashed.
    async fn crashed(&self) {
        loop {
            let changed = self.shared.changed.notified();
            if lock(&self.shared.state).crashed {
                return;
            }
            changed.await;
        }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        lock(&self.shared.state).url.clone()
    }

    /// What happened since the last call, each in one line.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let mut notes = std::mem::take(&mut lock(&self.shared.state).notes);
        notes.extend(self.guard.take_notes());
        notes
    }

    /// Sets how dialogs that the page opens during the next action are answered.
    pub(crate) fn answer_dialogs(&self, answer: Option<DialogAnswer>) {
        lock(&self.shared.state).dialog = answer;
    }

    /// Loads an address and waits until it is there.
    ///
    /// # Errors
    /// Why it did not load, in words.
    pub(crate) async fn navigate(&self, url: &str) -> Result<(), String> {
        let parsed = reqwest::Url::parse(url).map_err(|e| e.to_string())?;
        if parsed.scheme() == "https" && names_loopback(&parsed) && self.guard.abroad() {
            self.leave().await?;
        }
        self.guard.open(url);
        // What failed before this says nothing of it.
        self.guard.why(&parsed);
        lock(&self.shared.state).begin(url);
        let reply = self.call("Page.navigate", json!({"url": url})).await.map_err(|e| e.to_string())?;
        if reply["isDownload"].as_bool() == Some(true) {
            return Ok(());
        }
        match reply["errorText"].as_str().filter(|e| !e.is_empty()) {
            Some("net::ERR_ABORTED") => {}
            Some(error) => {
                let refused = lock(&self.shared.state).refused.take();
                let why = refused.or_else(|| self.guard.why(&parsed)).unwrap_or_else(|| explain(error));
                return Err(why);
            }
            None => {}
        }
        self.loaded().await;
        Ok(())
    }

    /// Leaves the page, so that none of another machine is there when one of this machine is opened over TLS.
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
