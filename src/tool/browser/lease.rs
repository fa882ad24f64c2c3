//! The tabs of one agent.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::json;
use tiller_protocol::lock;
use tokio::time::{Instant, timeout, timeout_at};

use super::page::{Gone, Page, PageShared, quoted};
use super::recording::Recording;
use super::state::Browser;
use super::tabs::{OPENED, TabOwner};
use crate::ToolCx;

/// Tabs of an agent at the same time.
const TABS: usize = 8;
/// Rounds in which one action may open tabs that open tabs.
const ROUNDS: usize = 3;
/// Longest wait for windows that a page asked for.
const WINDOWS: Duration = Duration::from_secs(6);
/// Longest wait for the next of them: one that the browser opens, and one that it mostly does not.
const NEXT_WINDOW: [Duration; 2] = [Duration::from_secs(3), Duration::from_millis(200)];
/// Longest wait for the page of a tab that opened between two calls.
const LATE: Duration = Duration::from_secs(2);
/// Characters of an address in a list of tabs.
const ADDRESS: usize = 200;

/// The tab that an agent sees; empty: there is none.
pub(super) type Seen = Arc<Mutex<Weak<PageShared>>>;

/// A tab and the number by which the agent knows it.
struct Tab {
    number: u32,
    page: Page,
}

/// The part of the browser that an agent has.
#[derive(Default)]
pub(super) struct Lease {
    main: bool,
    seen: Seen,
    browser: Option<Arc<Browser>>,
    /// The browser's reports on its tabs; `None`: none was opened yet.
    pub(super) owner: Option<Arc<TabOwner>>,
    /// The agent sees the last of them.
    tabs: Vec<Tab>,
    /// The next one, whose page is waited for. A call that is stopped leaves it to the one after.
    coming: Option<Page>,
    /// Number of the newest one.
    newest: u32,
    /// Number of the one that the browser shows before the others.
    front: u32,
    pub(super) recording: Recording,
    /// Address and title that the last report named: they are not repeated.
    pub(super) named: (String, String),
    /// Notes on its tabs for the next report, each in one line.
    pub(super) notes: Vec<String>,
    /// Tabs came or went since they were listed.
    changed: bool,
    /// The browser has ended with its tabs.
    lost: bool,
    /// The call acts on the page: the agent goes on in a tab that this opens.
    pub(super) acts: bool,
    /// Private copies of files that were given to pages.
    pub(super) given: Arc<Mutex<super::upload::Given>>,
}

impl Lease {
    /// `seen`: the part that others know of it without waiting.
    pub(super) fn new(main: bool, seen: Seen) -> Self {
        Self { main, seen, ..Self::default() }
    }

    /// Forgets the tabs of a browser that has ended.
    pub(super) fn use_browser(&mut self, browser: &Arc<Browser>) {
        if self.browser.as_ref().is_some_and(|b| Arc::ptr_eq(b, browser)) {
            return;
        }
        self.lost = !self.tabs.is_empty();
        self.tabs.clear();
        self.coming = None;
        self.named = Default::default();
        self.owner = None;
        self.browser = Some(Arc::clone(browser));
        self.see();
    }

    /// Makes ready for a call: tabs that opened since the last one stand beside the one that the agent sees.
    pub(super) async fn ready(&mut self) {
        self.acts = false;
        self.take_opened(false).await;
        self.show_seen().await;
    }

    /// Lets others know which tab the agent sees.
    fn see(&mut self) {
        let page = self.tabs.last().map_or_else(Weak::new, |tab| Arc::downgrade(&tab.page.shared));
        *lock(&self.seen) = page;
    }

    async fn show_seen(&mut self) {
        if let Some(tab) = self.tabs.last().filter(|tab| tab.number != self.front) {
            self.front = tab.number;
            tab.page.bring_to_front().await;
        }
    }

    /// The tab that the agent sees.
    ///
    /// # Errors
    /// That it is gone, or that there is none, in words for the model. After that the agent sees another one: what it wanted to
    /// do was meant for the one that is gone.
    pub(super) fn page(&mut self) -> Result<&mut Page, String> {
        let lost = std::mem::take(&mut self.lost);
        if let Some(why) = self.drop_gone() {
            return Err(match self.tabs.last() {
                Some(_) => format!("{why}. Look at that with browser_snapshot"),
                None => format!("{why}. Open one with browser_navigate"),
            });
        }
        self.tabs.last_mut().map(|tab| &mut tab.page).ok_or_else(|| {
            let why = if lost { "the page is gone: the browser ended" } else { "no page is open" };
            format!("{why}. Open one with browser_navigate")
        })
    }

    /// True if the tab that the agent saw is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.tabs.last().is_some_and(|tab| tab.page.gone().is_some())
    }

    /// Drops the tabs that are gone. Returns what happened to the one that the agent saw.
    fn drop_gone(&mut self) -> Option<String> {
        let seen = self.tabs.last().map(|tab| tab.number);
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        for tab in self.tabs.drain(..) {
            match tab.page.gone() {
                Some(how) => gone.push((tab, how)),
                None => left.push(tab),
            }
        }
        self.tabs = left;
        let mut why = None;
        for (tab, how) in gone {
            self.changed = true;
            self.notes.append(&mut tab.page.take_notes());
            let how = match how {
                Gone::Closed => "was closed by its page",
                Gone::Crashed => "crashed",
            };
            // Of errors this is the text, and no words of pages belong there.
            let said = format!("tab {} {how}", tab.number);
            match seen == Some(tab.number) {
                true => why = Some(said),
                false => self.notes.push(said),
            }
        }
        if let (Some(why), Some(tab)) = (&mut why, self.tabs.last()) {
            why.push_str(&format!(", and you see tab {} now", tab.number));
        }
        if why.is_some() {
            self.see();
        }
        why
    }

    /// The tab that the agent sees; a new one when there is none.
    ///
    /// # Errors
    /// Why none can be opened, in words.
    pub(super) async fn page_or_new(&mut self, cx: &ToolCx) -> Result<&mut Page, String> {
        let gone = self.drop_gone();
        self.notes.extend(gone);
        if self.tabs.is_empty() {
            let page = self.open(cx).await?;
            self.add(page, true);
        }
        self.page()
    }

    /// Greatest size of a download in bytes.
    pub(super) fn download_bytes(&self) -> u64 {
        self.browser.as_ref().map_or(0, |browser| browser.download_bytes)
    }

    /// Adds a tab. `seen`: the agent sees it now. Returns its number.
    fn add(&mut self, page: Page, seen: bool) -> u32 {
        self.newest += 1;
        self.changed = true;
        let at = if seen { self.tabs.len() } else { self.tabs.len().saturating_sub(1) };
        self.tabs.insert(at, Tab { number: self.newest, page });
        // The browser shows a new one before the others.
        self.front = 0;
        self.see();
        self.newest
    }

    async fn open(&mut self, cx: &ToolCx) -> Result<Page, String> {
        let browser = self.browser.clone().ok_or("there is no browser")?;
        let owner = match &self.owner {
            Some(owner) => Arc::clone(owner),
            None => {
                let (context, outlet) = if self.main && browser.keeps_profile {
                    (None, Arc::clone(&browser.outlet))
                } else {
                    browser.context(cx).await?
                };
                Arc::clone(self.owner.insert(browser.tabs.own(outlet, context)))
            }
        };
        let folder = super::download::arrives(cx);
        if let Err(error) = browser.downloads(owner.group.context.as_deref(), &folder).await {
            tracing::warn!(%error, "the browser takes no folder for downloads");
        }
        browser.open(&owner).await.map_err(|e| e.to_string())
    }

    /// Waits until the pages have dealt with what was done. A tab that an action opened is seen now, and one that is gone is left.
    ///
    /// # Errors
    /// That no tab is left, in words for the model.
    pub(super) async fn settle(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS {
            self.leave_gone()?;
            if let Some(tab) = self.tabs.last() {
                tab.page.settle().await;
            }
            self.windows_come().await;
            if !self.take_opened(self.acts).await && !self.is_gone() {
                break;
            }
        }
        self.leave_gone()?;
        self.show_seen().await;
        let held_back = self.owner.as_ref().and_then(|owner| owner.group.take_held_back());
        self.notes.extend(held_back);
        Ok(())
    }

    fn leave_gone(&mut self) -> Result<(), String> {
        if let Some(why) = self.drop_gone() {
            if self.tabs.is_empty() {
                return Err(format!("{why}. Open one with browser_navigate"));
            }
            self.notes.push(why);
        }
        Ok(())
    }

    /// Waits for the windows that pages asked for, as far as the browser opens them.
    async fn windows_come(&self) {
        let Some(owner) = &self.owner else { return };
        let deadline = Instant::now() + WINDOWS;
        while owner.group.awaits_any() {
            let changed = owner.group.changed.notified();
            let next = NEXT_WINDOW[usize::from(!owner.group.awaits_window())];
            if owner.group.awaits_any()
                && timeout_at((Instant::now() + next).min(deadline), changed).await.is_err()
            {
                return;
            }
        }
    }

    /// Takes over the tabs that pages opened. `seen`: the agent sees the newest of them. `false`: there was none to see.
    async fn take_opened(&mut self, seen: bool) -> bool {
        let Some(owner) = self.owner.clone() else { return false };
        let (mut refused, mut took) = (0, false);
        // Those that come meanwhile wait for the next round.
        for _ in 0..owner.opened() + usize::from(self.coming.is_some()) {
            if self.coming.is_none() {
                self.coming = owner.take_opened();
            }
            let Some(page) = &self.coming else { break };
            if seen {
                page.loaded().await;
                let _ = timeout(LATE, page.locate()).await;
            } else {
                let come = async {
                    page.loaded().await;
                    page.locate().await;
                };
                let _ = timeout(LATE, come).await;
            }
            let Some(page) = self.coming.take() else { break };
            if let Some(how) = page.gone() {
                self.notes.append(&mut page.take_notes());
                if how == Gone::Crashed {
                    self.notes.push("a tab that the page opened crashed".into());
                }
            } else if let Some((url, why)) = page.held() {
                self.notes.append(&mut page.take_notes());
                self.notes.push(format!(
                    "the page wanted a tab for {}, which was not opened: {why}. browser_navigate opens an address that the \
                     user or a rule allows",
                    short(&url)
                ));
                page.close().await;
            } else if self.tabs.len() >= TABS {
                page.close().await;
                refused += 1;
            } else {
                let number = self.add(page, seen);
                self.notes.push(if seen {
                    format!("the page opened tab {number}, which is the one that you see now")
                } else {
                    format!("a page opened tab {number}; browser_snapshot with tab: {number} shows it")
                });
                took = true;
            }
        }
        refused += owner.take_refused();
        if refused > 0 {
            self.notes.push(format!(
                "more tabs that pages opened were closed ({refused}): at most {TABS} are open, and at most {OPENED} come at once"
            ));
        }
        took && seen
    }

    /// Lets the agent see another tab.
    ///
    /// # Errors
    /// Which tabs there are.
    pub(super) async fn switch(&mut self, number: u32) -> Result<(), String> {
        let Some(at) = self.tabs.iter().position(|tab| tab.number == number) else {
            let mut numbers: Vec<u32> = self.tabs.iter().map(|tab| tab.number).collect();
            numbers.sort_unstable();
            let list = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            return Err(match list.is_empty() {
                true => format!("there is no tab {number}. Open a page with browser_navigate"),
                false => format!("there is no tab {number}; there are: {list}"),
            });
        };
        let tab = self.tabs.remove(at);
        self.tabs.push(tab);
        self.changed = true;
        self.see();
        self.show_seen().await;
        Ok(())
    }

    /// The list of the tabs, when there are several and they changed, or `always`.
    pub(super) async fn listed(&mut self, always: bool) -> Option<String> {
        let changed = std::mem::take(&mut self.changed);
        if self.tabs.len() < 2 || !(changed || always) {
            return None;
        }
        Some(format!("tabs: {}", self.list().await))
    }

    async fn list(&self) -> String {
        let mut tabs: Vec<&Tab> = self.tabs.iter().collect();
        tabs.sort_by_key(|tab| tab.number);
        let seen = self.tabs.last().map(|tab| tab.number);
        let mut list = Vec::new();
        for tab in tabs {
            let ask = json!({"targetId": tab.page.target});
            let info = tab.page.cdp.call(None, "Target.getTargetInfo", ask).await.unwrap_or_default();
            let title = quoted(info["targetInfo"]["title"].as_str().unwrap_or_default());
            let here = if seen == Some(tab.number) { " (seen)" } else { "" };
            list.push(format!("{} {title} {}{here}", tab.number, short(&tab.page.url())));
        }
        list.join("; ")
    }

    /// Takes the notes since the last report, each in one line.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        let seen = self.tabs.last().map(|tab| tab.number);
        for tab in &self.tabs {
            let of =
                if seen == Some(tab.number) { String::new() } else { format!("in tab {}: ", tab.number) };
            notes.extend(tab.page.take_notes().into_iter().map(|note| format!("{of}{note}")));
        }
        notes
    }

    /// Closes the tab that the agent sees; `false`: it was the last one.
    pub(super) async fn close_tab(&mut self) -> bool {
        if let Some(tab) = self.tabs.pop() {
            tab.page.close().await;
        }
        self.changed = true;
        self.see();
        self.show_seen().await;
        !self.tabs.is_empty()
    }

    /// Cancels the downloads that run. Those of a browser's own context would go on without a tab.
    pub(super) async fn stop_downloads(&self) {
        let (Some(browser), Some(owner)) = (&self.browser, &self.owner) else { return };
        for id in owner.group.running() {
            browser.cdp.post(None, "Browser.cancelDownload", owner.group.cancel(&id)).await;
        }
    }

    /// Closes all tabs.
    pub(super) async fn close_all(&mut self) {
        for tab in self.tabs.drain(..) {
            tab.page.close().await;
        }
        self.see();
        self.stop_downloads().await;
        if let Some(page) = self.coming.take() {
            page.close().await;
        }
        let Some(owner) = self.owner.take() else { return };
        for _ in 0..owner.opened() {
            let Some(page) = owner.take_opened() else { break };
            page.close().await;
        }
        if let (Some(browser), Some(context)) = (&self.browser, &owner.group.context) {
            let dispose = json!({"browserContextId": context});
            browser.cdp.post(None, "Target.disposeBrowserContext", dispose).await;
        }
    }

    #[cfg(test)]
    pub(super) async fn crash_for_test(&mut self) {
        let page = self.page().unwrap();
        page.cdp.post(Some(&page.session), "Page.crash", json!({})).await;
        while page.gone().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// An address within a note.
fn short(url: &str) -> String {
    let plain: String = url.chars().filter(|c| !c.is_whitespace() && !c.is_control()).take(ADDRESS).collect();
    if plain.is_empty() { "about:blank".into() } else { plain }
}
