//! The tabs that a browser reports: whose they are, and which of them ended.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::cdp::{Cdp, Event};
use super::orphans::{Orphans, UNKNOWN};
use super::outlet::Outlet;
use super::page::{Gone, Group, Page, PageOptions, PageShared, Progress};

/// Tabs that pages of an agent may open between two calls.
pub(super) const OPENED: usize = 4;
/// Downloads at work that no page has reported and that are remembered.
const STRAYS: usize = 256;

/// All tabs of a browser that belong to an agent.
pub(super) struct Tabs {
    /// By the id of their context. Empty: the browser's own, which gets its id with its first tab.
    owners: Mutex<HashMap<String, Weak<TabOwner>>>,
    /// Ids of the contexts that were made for an agent. A tab of one that is over belongs to no other agent.
    made: Mutex<HashSet<String>>,
    /// Downloads that no page has reported, and since when they are known.
    strays: Mutex<HashMap<String, Instant>>,
    /// Those of no agent that have ended.
    pub(super) orphans: Arc<Orphans>,
    /// By the id of the tab.
    known: Mutex<HashMap<String, Weak<PageShared>>>,
    /// Greatest size of a download in bytes; 0: none is kept.
    download_bytes: u64,
}

/// The reports of the browser on the tabs of one agent.
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

impl Drop for TabOwner {
    /// Downloads that no result has named have no owner now.
    fn drop(&mut self) {
        for id in lock(&self.group.state).downloads.keys() {
            self.group.orphans.add(id, Instant::now());
        }
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

    /// The number of tabs that pages opened and no call has taken over.
    pub(super) fn opened(&self) -> usize {
        lock(&self.new).pages.len()
    }

    /// Takes the first tab that a page opened.
    pub(super) fn take_opened(&self) -> Option<Page> {
        let mut new = lock(&self.new);
        if new.pages.is_empty() { None } else { Some(new.pages.remove(0)) }
    }

    /// Takes how many further tabs were closed.
    pub(super) fn take_refused(&self) -> usize {
        std::mem::take(&mut lock(&self.new).refused)
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
        Self {
            owners: Mutex::default(),
            made: Mutex::default(),
            strays: Mutex::default(),
            orphans: Arc::default(),
            known: Mutex::default(),
            download_bytes,
        }
    }

    /// Takes in who has the tabs of a context.
    pub(super) fn own(&self, outlet: Arc<Outlet>, context: Option<String>) -> Arc<TabOwner> {
        lock(&self.made).extend(context.clone());
        let id = context.clone().unwrap_or_default();
        let group = Arc::new(Group { context, orphans: Arc::clone(&self.orphans), ..Group::default() });
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
        if lock(&self.made).contains(context) {
            return None;
        }
        let unnamed = owners.remove("")?;
        owners.insert(context.to_owned(), Weak::clone(&unnamed));
        unnamed.upgrade()
    }

    /// The owners that there are. The lock is free while they are used and dropped.
    fn present(&self) -> Vec<Arc<TabOwner>> {
        lock(&self.owners).values().filter_map(Weak::upgrade).collect()
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
        let opener_id = info["openerId"].as_str();
        if !owner.has_room() {
            // It runs, since the page that opened it waits for that. Its requests stay where they are.
            let every = json!({"patterns": [{"urlPattern": "*"}]});
            cdp.post(Some(&session), "Fetch.enable", every).await;
            cdp.post(Some(&session), "Runtime.runIfWaitingForDebugger", json!({})).await;
            cdp.post(None, "Target.closeTarget", json!({"targetId": target})).await;
            owner.group.came(opener_id.is_some());
            return;
        }
        let options = PageOptions {
            guard: Arc::clone(&owner.outlet.guard),
            download_bytes: self.download_bytes,
            group: Arc::clone(&owner.group),
        };
        let opener = self.opener(opener_id);
        let guard = &owner.outlet.guard;
        if let Some(url) = &opener {
            guard.loads(&target, url, false);
        }
        if let Some(id) = opener_id {
            guard.opens(id, &target);
        }
        let page = Page::attach(Arc::clone(cdp), session, target.clone(), opener, &options).await;
        {
            let mut known = lock(&self.known);
            known.retain(|_, page| page.strong_count() > 0);
            known.insert(target, Arc::downgrade(&page.shared));
        }
        lock(&owner.new).pages.push(page);
        owner.group.came(opener_id.is_some());
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
        for owner in self.present() {
            owner.outlet.guard.empty(target);
        }
        if let Some(page) = lock(&self.known).remove(target).and_then(|page| page.upgrade()) {
            lock(&page.state).gone = Some(Gone::Closed);
            page.changed.notify_waiters();
        }
    }

    /// Notes how far a download is. Returns what cancels it when it is too large, or of no page.
    fn downloads(&self, params: &Value) -> Vec<Value> {
        let Some(id) = params["guid"].as_str() else { return Vec::new() };
        let bytes = |key: &str| params[key].as_f64().map_or(0, |n| n.max(0.0) as u64);
        let ended = match params["state"].as_str() {
            Some("completed") => Some(true),
            Some("canceled") => Some(false),
            _ => None,
        };
        let now = Progress { received: bytes("receivedBytes"), total: bytes("totalBytes"), ended };
        if ended == Some(true) {
            // Before its owner is looked for, which may report it at this moment.
            self.orphans.add(id, Instant::now());
        }
        let owners = self.present();
        for owner in &owners {
            if let Some(cancel) = owner.group.progress(id, now, self.download_bytes) {
                self.orphans.claim(id);
                lock(&self.strays).remove(id);
                return if cancel { vec![owner.group.cancel(id)] } else { Vec::new() };
            }
        }
        let large = now.received.max(now.total) > self.download_bytes;
        if self.is_stray(id, ended.is_some()) || large && ended.is_none() {
            // Any of them may have it.
            return owners.iter().map(|owner| owner.group.cancel(id)).collect();
        }
        Vec::new()
    }

    /// Returns true for a download that no page has reported for too long.
    fn is_stray(&self, id: &str, ended: bool) -> bool {
        let mut strays = lock(&self.strays);
        if ended {
            strays.remove(id);
            return false;
        }
        if strays.len() >= STRAYS && !strays.contains_key(id) {
            return true;
        }
        strays.entry(id.to_owned()).or_insert_with(Instant::now).elapsed() > UNKNOWN
    }
}

/// Follows which tabs there are. Service workers and tabs that no agent's page opened are never let run.
pub(super) async fn follow(mut events: mpsc::Receiver<Event>, tabs: Arc<Tabs>, cdp: Arc<Cdp>) {
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = tabs.orphans.due() => {
                tabs.orphans.remove(Instant::now());
                continue;
            }
        };
        let Some(event) = event else { break };
        let (method, params) = (event.method.as_str(), &event.params);
        match method {
            "Target.attachedToTarget" => tabs.attached(&cdp, params).await,
            "Target.detachedFromTarget" => {
                tabs.detached(params["targetId"].as_str().unwrap_or_default());
            }
            "Browser.downloadProgress" => {
                for cancel in tabs.downloads(params) {
                    cdp.post(None, "Browser.cancelDownload", cancel).await;
                }
            }
            _ => {}
        }
    }
    // The connection has ended, perhaps by itself.
    tabs.orphans.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::outlet::Guard;
    use crate::browser::page::Stage;
    use crate::testing::Bench;

    #[tokio::test]
    async fn a_download_that_ends_before_its_page_reports_it_is_the_pages_or_no_ones() {
        let bench = Bench::new();
        let cx = &bench.cx;
        let guard = Guard::new(false, cx.state.web.resolver(), cx.workspace.unreachable());
        let outlet = Arc::new(Outlet::start(guard, None).await.unwrap());
        let tabs = Tabs::new(10);
        let [one, other] = ["1", "2"].map(|context| tabs.own(Arc::clone(&outlet), Some(context.to_owned())));
        let ends = |id: &str, state: &str| {
            tabs.downloads(&json!({"guid": id, "receivedBytes": 3, "totalBytes": 3, "state": state}))
        };
        let waits = || tabs.orphans.next().is_some();
        // One that a page reports later.
        assert!(ends("a", "completed").is_empty() && waits());
        assert_eq!(one.group.download("a".into(), "a.txt".into(), 10), Some(false));
        assert!(!waits());
        assert_eq!(lock(&one.group.state).downloads["a"].stage, Stage::Complete);
        // One that is known before it ends, and one without a file.
        other.group.download("b".into(), "b.txt".into(), 10);
        assert!(ends("b", "completed").is_empty() && ends("c", "canceled").is_empty() && !waits());
        // One whose result no call reported before the tabs of its agent were closed.
        drop(one);
        assert!(waits());
        tabs.orphans.claim("a");
        // One that no page reports.
        ends("d", "completed");
        assert!(waits());
    }
}
