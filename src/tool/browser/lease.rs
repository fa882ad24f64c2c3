//! The tabs of one agent.

use std::sync::Arc;

use serde_json::json;
use tiller_protocol::lock;

use super::outlet::Outlet;
use super::page::Page;
use super::recording::Recording;
use super::state::Browser;
use crate::ToolCx;

/// Tabs of an agent at the same time.
const TABS: usize = 8;

/// What an agent has of the browser.
#[derive(Default)]
pub(super) struct Lease {
    main: bool,
    browser: Option<Arc<Browser>>,
    /// Whose cookies its tabs have; `None`: the browser's own.
    context: Option<String>,
    /// Its way out; `None`: the browser's own.
    outlet: Option<Arc<Outlet>>,
    /// The agent sees the last of them.
    tabs: Vec<Page>,
    pub(super) recording: Recording,
    /// Address and title that the last report named: they are not repeated.
    pub(super) named: (String, String),
    /// The tabs were closed by something else than the agent.
    lost: bool,
}

impl Lease {
    pub(super) fn new(main: bool) -> Self {
        Self { main, ..Self::default() }
    }

    /// Forgets the tabs of a browser that has ended.
    pub(super) fn use_browser(&mut self, browser: &Arc<Browser>) {
        if self.browser.as_ref().is_some_and(|b| Arc::ptr_eq(b, browser)) {
            return;
        }
        self.lost = !self.tabs.is_empty();
        self.tabs.clear();
        self.named = Default::default();
        self.context = None;
        self.outlet = None;
        self.browser = Some(Arc::clone(browser));
    }

    /// The tab that the agent sees.
    ///
    /// # Errors
    /// That there is none, in words for the model.
    pub(super) fn page(&mut self) -> Result<&mut Page, String> {
        while self.tabs.last().is_some_and(|page| lock(&page.shared.state).crashed) {
            self.tabs.pop();
            self.lost = true;
        }
        let lost = std::mem::take(&mut self.lost);
        self.tabs.last_mut().ok_or_else(|| {
            let why = if lost { "the page is gone: it or the browser ended" } else { "no page is open" };
            format!("{why}. Open one with browser_navigate")
        })
    }

    /// The tab that the agent sees; a new one when there is none.
    ///
    /// # Errors
    /// Why none can be opened, in words.
    pub(super) async fn page_or_new(&mut self, cx: &ToolCx) -> Result<&mut Page, String> {
        if self.page().is_err() {
            let page = self.open(cx).await?;
            self.tabs.push(page);
        }
        self.page()
    }

    async fn open(&mut self, cx: &ToolCx) -> Result<Page, String> {
        let browser = self.browser.clone().ok_or("there is no browser")?;
        let own = !(self.main && browser.keeps_profile);
        let outlet = match (&self.outlet, own) {
            (Some(outlet), true) => Arc::clone(outlet),
            (None, true) => {
                let (context, outlet) = browser.context(cx).await?;
                self.context = context;
                Arc::clone(self.outlet.insert(outlet))
            }
            (_, false) => Arc::clone(&browser.outlet),
        };
        let downloads = browser.downloads(self.context.as_deref(), &downloads(cx)).await;
        if let Err(error) = downloads {
            tracing::warn!(%error, "the browser takes no folder for downloads");
        }
        browser.open(self.context.as_deref(), &outlet).await.map_err(|e| e.to_string())
    }

    /// Takes over the tabs that the current page opened; `true`: the agent sees another one now.
    pub(super) async fn follow_opened(&mut self) -> bool {
        let Some(page) = self.tabs.last() else { return false };
        let opened = std::mem::take(&mut lock(&page.shared.state).opened);
        let Some(browser) = self.browser.clone() else { return false };
        let mut other = false;
        for tab in opened {
            let outlet = self.outlet.as_ref().unwrap_or(&browser.outlet);
            let Ok(page) = browser.take_over(tab, outlet).await else { continue };
            page.loaded().await;
            if self.tabs.len() >= TABS {
                // The oldest is the furthest from what the agent does.
                self.tabs.remove(0).close().await;
            }
            self.tabs.push(page);
            other = true;
        }
        other
    }

    /// Closes the tab that the agent sees; `false`: it was the last one.
    pub(super) async fn close_tab(&mut self) -> bool {
        if let Some(page) = self.tabs.pop() {
            page.close().await;
        }
        !self.tabs.is_empty()
    }

    /// Closes all tabs.
    pub(super) async fn close_all(&mut self) {
        for page in self.tabs.drain(..) {
            page.close().await;
        }
        self.outlet = None;
        if let (Some(browser), Some(context)) = (&self.browser, self.context.take()) {
            browser
                .cdp
                .post(None, "Target.disposeBrowserContext", json!({"browserContextId": context}))
                .await;
        }
    }
}

/// Where downloads of the session go.
pub(super) fn downloads(cx: &ToolCx) -> std::path::PathBuf {
    cx.folders.spill.join("downloads")
}
