//! The tabs that a browser reports: whose they are, and which of them ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::sync::mpsc;

use super::cdp::{Cdp, Event};
use super::outlet::Outlet;
use super::page::{Gone, Group, Page, PageOptions, PageShared};

/// Tabs that pages of an agent may open between two calls.
pub(super) const OPENED: usize = 4;

/// All tabs of a browser that belong to an agent.
pub(super) struct Tabs {
    /// By the id of their context. Empty: the browser's own, which gets its id with its first tab.
    owners: Mutex<HashMap<String, Weak<TabOwner>>>,
    /// By the id of the tab.
    known: Mutex<HashMap<String, Weak<PageShared>>>,
    /// Greatest size of a download in bytes; 0: none is kept.
    download_bytes: u64,
}

/// What the browser reports of the tabs of one agent.
pub(super) struct TabOwner {
    pub(super) outlet: Arc<Outlet>,
    pub(super) group: Arc<Group>,
    /// Tabs that no call has taken over yet.
    new: Mutex<NewTabs>,
    /// Calls that open a tab at this moment.
    expected: AtomicUsize,
}

/// Tabs that no call has taken over yet.
#[derive(Default)]
struct NewTabs {
    pages: Vec<Page>,
    /// Tabs that were closed, since there were too many.
    refused: usize,
}

/// A tab that pages of an agent opened is expected as long as this lives.
pub(super) struct Expects<'a>(&'a AtomicUsize);

impl Drop for Expects<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl TabOwner {
    /// Notes that a call opens a tab.
    pub(super) fn expect(&self) -> Expects<'_> {
        self.expected.fetch_add(1, Ordering::AcqRel);
        Expects(&self.expected)
    }

    /// Waits for a tab, and takes it.
    pub(super) async fn taken(&self, target: &str) -> Page {
        loop {
            let changed = self.group.changed.notified();
            {
                let mut new = lock(&self.new);
                if let Some(at) = new.pages.iter().position(|page| page.target == target) {
                    return new.pages.remove(at);
                }
            }
            changed.await;
        }
    }

    /// Takes the tabs that pages opened, and how many further ones were closed.
    pub(super) fn take_opened(&self) -> (Vec<Page>, usize) {
        let new = std::mem::take(&mut *lock(&self.new));
        (new.pages, new.refused)
    }

    /// True if there is room for a further tab. Counts it among the refused ones otherwise.
    fn has_room(&self) -> bool {
        let most = OPENED + self.expected.load(Ordering::Acquire);
        let mut new = lock(&self.new);
        let room = new.pages.len() < most;
        if !room {
            new.refused += 1;
        }
        room
    }
}

impl Tabs {
    pub(super) fn new(download_bytes: u64) -> Self {
        Self { owners: Mutex::default(), known: Mutex::default(), download_bytes }
    }

    /// Takes in who has the tabs of a context.
    pub(super) fn own(&self, outlet: Arc<Outlet>, context: Option<String>) -> Arc<TabOwner> {
        let id = context.clone().unwrap_or_default();
        let group = Arc::new(Group { context, ..Group::default() });
        let owner =
            Arc::new(TabOwner { outlet, group, new: Mutex::default(), expected: AtomicUsize::new(0) });
        let mut owners = lock(&self.owners);
        owners.retain(|_, owner| owner.strong_count() > 0);
        owners.insert(id, Arc::downgrade(&owner));
        owner
    }

    fn owner(&self, context: &str) -> Option<Arc<TabOwner>> {
        let mut owners = lock(&self.owners);
        if let Some(owner) = owners.get(context).and_then(Weak::upgrade) {
            return Some(owner);
        }
        let unnamed = owners.remove("")?;
        owners.insert(context.to_owned(), Weak::clone(&unnamed));
        unnamed.upgrade()
    }

    /// Takes in a tab that the browser attached to.
    async fn attached(&self, cdp: &Arc<Cdp>, params: &Value) {
        let info = &params["targetInfo"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (session, target) = (text(&params["sessionId"]), text(&info["targetId"]));
        if info["type"].as_str() != Some("page") {
            return;
        }
        let Some(owner) = self.owner(info["browserContextId"].as_str().unwrap_or_default()) else { return };
        if !owner.has_room() {
            // It runs, since the page that opened it waits for that. Its requests stay where they are.
            let every = json!({"patterns": [{"urlPattern": "*"}]});
            cdp.post(Some(&session), "Fetch.enable", every).await;
            cdp.post(Some(&session), "Runtime.runIfWaitingForDebugger", json!({})).await;
            cdp.post(None, "Target.closeTarget", json!({"targetId": target})).await;
            owner.group.came();
            return;
        }
        let options = PageOptions {
            guard: Arc::clone(&owner.outlet.guard),
            download_bytes: self.download_bytes,
            group: Arc::clone(&owner.group),
        };
        let opener = self.opener(info["openerId"].as_str());
        let page = Page::attach(Arc::clone(cdp), session, target.clone(), opener, &options).await;
        {
            let mut known = lock(&self.known);
            known.retain(|_, page| page.strong_count() > 0);
            known.insert(target, Arc::downgrade(&page.shared));
        }
        lock(&owner.new).pages.push(page);
        owner.group.came();
    }

    /// The address of the page that opened a tab.
    fn opener(&self, id: Option<&str>) -> Option<String> {
        let page = lock(&self.known).get(id?).and_then(Weak::upgrade)?;
        let state = lock(&page.state);
        let own = if state.is_blank() { state.opener.clone() } else { None };
        Some(own.unwrap_or_else(|| state.url.clone()))
    }

    /// Notes that a tab was closed.
    fn detached(&self, target: &str) {
        if let Some(page) = lock(&self.known).remove(target).and_then(|page| page.upgrade()) {
            lock(&page.state).gone = Some(Gone::Closed);
            page.changed.notify_waiters();
        }
    }

    /// Notes how far a download is. Returns what cancels it when it is too large.
    fn downloads(&self, params: &Value) -> Option<Value> {
        let id = params["guid"].as_str()?;
        let bytes = |key: &str| params[key].as_f64().map_or(0, |n| n.max(0.0) as u64);
        let ended = match params["state"].as_str() {
            Some("completed") => Some(true),
            Some("canceled") => Some(false),
            _ => None,
        };
        let owners: Vec<_> = lock(&self.owners).values().filter_map(Weak::upgrade).collect();
        owners.iter().find_map(|owner| {
            let (received, total) = (bytes("receivedBytes"), bytes("totalBytes"));
            let cancel = owner.group.progress(id, received, total, ended, self.download_bytes)?;
            Some(cancel.then(|| owner.group.cancel(id)))
        })?
    }
}

/// Follows which tabs there are. Service workers and tabs that no agent's page opened are never let run.
pub(super) async fn follow(mut events: mpsc::Receiver<Event>, tabs: Arc<Tabs>, cdp: Arc<Cdp>) {
    while let Some(event) = events.recv().await {
        let (method, params) = (event.method.as_str(), &event.params);
        match method {
            "Target.attachedToTarget" => tabs.attached(&cdp, params).await,
            "Target.detachedFromTarget" => {
                tabs.detached(params["targetId"].as_str().unwrap_or_default());
            }
            "Browser.downloadProgress" => {
                if let Some(cancel) = tabs.downloads(params) {
                    cdp.post(None, "Browser.cancelDownload", cancel).await;
                }
            }
            _ => {}
        }
    }
}
