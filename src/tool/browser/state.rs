//! The browser of a session, and which agent has which tabs of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tiller_protocol::{AgentId, lock};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio_util::task::AbortOnDropHandle;

use super::BrowserSettings;
use super::cdp::{self, Cdp, CdpError};
use super::chromium::{self, Running};
use super::lease::{Lease, Seen};
use super::outlet::{Guard, NO_BYPASS, Outlet, Upstream, taken_out};
use super::page::Page;
use super::tabs::{TabOwner, Tabs, follow};
use crate::ToolCx;

/// Agents that have tabs at the same time. A further agent gets the place of the agent whose tabs were used least recently.
const LEASES: usize = 16;
/// Longest wait for a browser that starts.
const START: Duration = Duration::from_secs(30);

/// The state that the browser tools of a session share.
#[derive(Default)]
pub struct BrowserState {
    browser: AsyncMutex<Option<Arc<Browser>>>,
    leases: Mutex<HashMap<AgentId, Entry>>,
    /// Counts the uses of leases, for the order of their last use.
    uses: std::sync::atomic::AtomicU64,
    closed: AtomicBool,
}

struct Entry {
    lease: Arc<AsyncMutex<Lease>>,
    used: u64,
    /// The tab that the agent sees now.
    seen: Seen,
}

/// A browser that is connected.
pub(super) struct Browser {
    pub(super) cdp: Arc<Cdp>,
    /// `None`: it runs elsewhere.
    running: Mutex<Option<Running>>,
    /// Its default profile is kept, so that it belongs to the main agent.
    pub(super) keeps_profile: bool,
    pub(super) tabs: Arc<Tabs>,
    /// The way out of its default context.
    pub(super) outlet: Arc<Outlet>,
    upstream: Option<Upstream>,
    /// Greatest size of a download in bytes; 0: none is kept.
    pub(super) download_bytes: u64,
    _events: AbortOnDropHandle<()>,
}

impl BrowserState {
    /// The address of the page that the agent sees; `None`: there is none. Does not wait.
    pub(super) fn url(&self, agent: &AgentId) -> Option<String> {
        let seen = Arc::clone(&lock(&self.leases).get(agent)?.seen);
        let page = lock(&seen).upgrade()?;
        let url = lock(&page.state).url.clone();
        Some(url).filter(|u| !u.is_empty())
    }

    /// The tabs of the agent, for one call. Starts the browser when `start` is set and none runs.
    ///
    /// # Errors
    /// Why there is none, in words for the model.
    pub(super) async fn lease(
        &self,
        cx: &ToolCx,
        settings: &BrowserSettings,
        start: bool,
    ) -> Result<OwnedMutexGuard<Lease>, String> {
        let browser = self.browser(cx, settings, start).await?;
        let lease = {
            let mut leases = lock(&self.leases);
            if leases.len() >= LEASES && !leases.contains_key(&cx.agent) {
                let oldest = leases.iter().min_by_key(|(_, e)| e.used).map(|(agent, _)| agent.clone());
                if let Some(entry) = oldest.and_then(|agent| leases.remove(&agent)) {
                    // Its tabs are closed once its own call, if one runs, is over.
                    tokio::spawn(async move { entry.lease.lock().await.close_all().await });
                }
            }
            let used = self.uses.fetch_add(1, Ordering::Relaxed);
            let entry = leases.entry(cx.agent.clone()).or_insert_with(|| {
                let seen = Seen::default();
                let lease = Lease::new(cx.agent.is_main(), Arc::clone(&seen));
                Entry { lease: Arc::new(AsyncMutex::new(lease)), used, seen }
            });
            entry.used = used;
            Arc::clone(&entry.lease)
        };
        let mut lease = lease.lock_owned().await;
        lease.use_browser(&browser);
        Ok(lease)
    }

    async fn browser(
        &self,
        cx: &ToolCx,
        settings: &BrowserSettings,
        start: bool,
    ) -> Result<Arc<Browser>, String> {
        let mut held = self.browser.lock().await;
        if let Some(browser) = held.as_ref().filter(|b| !b.cdp.closed()) {
            return Ok(Arc::clone(browser));
        }
        if let Some(ended) = held.take() {
            // Removes what is left of it.
            ended.end().await;
            if !start {
                return Err("the browser has ended. Open a page again with browser_navigate".into());
            }
        }
        if !start {
            return Err("no page is open. Open one with browser_navigate".into());
        }
        if self.closed.load(Ordering::Acquire) {
            return Err("the session ends".into());
        }
        let made = Arc::new(Browser::start(cx, settings).await?);
        *held = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Closes the tabs of an agent, and the browser with the last of them.
    pub(super) async fn release(&self, agent: &AgentId) {
        let last = {
            let mut leases = lock(&self.leases);
            leases.remove(agent);
            leases.is_empty()
        };
        if last {
            self.close().await;
        }
    }

    /// Ends the browser with all of its processes. No other one is started.
    pub async fn end(&self) {
        self.closed.store(true, Ordering::Release);
        self.close().await;
    }

    /// Kills the browser, as a crash would.
    #[cfg(test)]
    pub(super) async fn kill_for_test(&self) {
        let browser = self.browser.lock().await;
        if let Some(browser) = browser.as_ref() {
            if let Some(running) = lock(&browser.running).as_ref() {
                running.kill();
            }
            browser.cdp.ended().await;
        }
    }

    /// How a dialog of the page that the agent sees would be answered now.
    #[cfg(test)]
    pub(super) fn dialog_for_test(&self, agent: &AgentId) -> Option<super::page::DialogAnswer> {
        let page = lock(&lock(&self.leases)[agent].seen).upgrade().unwrap();
        lock(&page.state).dialog.clone()
    }

    /// Crashes the page that the agent sees, and waits until that was reported.
    #[cfg(test)]
    pub(super) async fn crash_for_test(&self, agent: &AgentId) {
        let lease = Arc::clone(&lock(&self.leases)[agent].lease);
        lease.lock().await.crash_for_test().await;
    }

    /// The process group of the browser.
    #[cfg(test)]
    pub(super) async fn group_for_test(&self) -> Option<rustix::process::Pid> {
        let browser = self.browser.lock().await;
        let running = lock(&browser.as_ref()?.running);
        running.as_ref()?.group()
    }

    async fn close(&self) {
        let browser = self.browser.lock().await.take();
        if let Some(browser) = browser {
            browser.end().await;
        }
    }
}

impl Browser {
    async fn start(cx: &ToolCx, settings: &BrowserSettings) -> Result<Self, String> {
        let (arguments, upstream) = taken_out(&settings.arguments)?;
        let outlet = Arc::new(outlet(cx, upstream.clone()).await?);
        let (cdp, running) = match (&settings.remote, &settings.program) {
            (Some(address), _) => {
                let socket = cdp::endpoint(address).await;
                let connected = match socket {
                    Ok(socket) => cdp::connect(&socket).await,
                    Err(why) => Err(why),
                };
                let (transmit, receive) = connected.map_err(|why| {
                    format!("the browser at browser.url is not reached: {why}. Tell the user; the setting is theirs")
                })?;
                (Arc::new(Cdp::new(transmit, receive)), None)
            }
            (None, Some(program)) => {
                let launch = chromium::Launch {
                    program,
                    profile: settings.profile.as_deref(),
                    headless: settings.headless,
                    proxy: &outlet.address(),
                    arguments: &arguments,
                    env: &cx.child_env,
                };
                let running = chromium::start(&launch)?;
                (Arc::clone(&running.cdp), Some(running))
            }
            (None, None) => return Err("there is no browser: install Chromium, or set browser.url".into()),
        };
        let local = running.is_some();
        let download_bytes = if local { settings.download_bytes } else { 0 };
        let tabs = Arc::new(Tabs::new(download_bytes));
        let events = cdp.events(None);
        let task = tokio::spawn(follow(events, Arc::clone(&tabs), Arc::clone(&cdp)));
        let browser = Self {
            cdp,
            running: Mutex::new(running),
            keeps_profile: local && settings.profile.is_some(),
            tabs,
            outlet,
            upstream,
            download_bytes,
            _events: AbortOnDropHandle::new(task),
        };
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        let attached = browser.cdp.call(None, "Target.setAutoAttach", attached_pages(attach));
        let failed = match tokio::time::timeout(START, attached).await {
            Ok(Ok(_)) => return Ok(browser),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not answer within {} s", START.as_secs()),
        };
        let said = lock(&browser.running).as_ref().map(Running::errors).filter(|e| !e.is_empty());
        browser.end().await;
        let said = said.map(|e| format!(" It said: {}", crate::text::visible(&e))).unwrap_or_default();
        Err(format!("the browser did not start: {failed}.{said}"))
    }

    /// Makes a context: cookies of its own and, for a browser of this machine, a way out of its own by the rules of `cx`'s agent.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) async fn context(&self, cx: &ToolCx) -> Result<(Option<String>, Arc<Outlet>), String> {
        let outlet = Arc::new(outlet(cx, self.upstream.clone()).await?);
        let mut ask = json!({"disposeOnDetach": true});
        // A browser elsewhere does not reach this machine's loopback.
        if lock(&self.running).is_some() {
            ask["proxyServer"] = outlet.address().into();
            ask["proxyBypassList"] = NO_BYPASS.into();
        }
        let made = self.cdp.call(None, "Target.createBrowserContext", ask).await;
        let made = made.map_err(|e| e.to_string())?;
        Ok((made["browserContextId"].as_str().map(str::to_owned), outlet))
    }

    /// Opens a tab of this owner.
    pub(super) async fn open(&self, owner: &TabOwner) -> Result<Page, CdpError> {
        let mut ask = json!({"url": "about:blank"});
        if let Some(context) = &owner.group.context {
            ask["browserContextId"] = context.as_str().into();
        }
        let _expects = owner.expect();
        let reply = self.cdp.call(None, "Target.createTarget", ask).await?;
        let target = reply["targetId"].as_str().unwrap_or_default();
        let page = tokio::select! {
            page = tokio::time::timeout(START, owner.taken(target)) => page.map_err(|_| CdpError::Late)?,
            () = self.cdp.ended() => return Err(CdpError::Closed),
        };
        // Once this is answered, it is set up.
        page.call("Page.enable", json!({})).await?;
        Ok(page)
    }

    /// Sets where downloads of a context go.
    pub(super) async fn downloads(&self, context: Option<&str>, folder: &Path) -> Result<(), CdpError> {
        let mut ask = if self.download_bytes == 0 {
            json!({"behavior": "deny"})
        } else {
            // Under names that the browser makes: a page chooses no file name on this machine.
            self.tabs.orphans.folder(folder);
            json!({"behavior": "allowAndName", "downloadPath": folder, "eventsEnabled": true})
        };
        if let Some(context) = context {
            ask["browserContextId"] = context.into();
        }
        self.cdp.call(None, "Browser.setDownloadBehavior", ask).await.map(|_| ())
    }

    async fn end(&self) {
        let running = lock(&self.running).take();
        if let Some(running) = running {
            running.end().await;
        }
        self.tabs.orphans.end();
    }
}

/// A way out by the rules of `cx`'s agent.
async fn outlet(cx: &ToolCx, upstream: Option<Upstream>) -> Result<Outlet, String> {
    let guard = Guard::new(cx.limits.fetch_private, cx.state.web.resolver(), cx.workspace.unreachable());
    let outlet = Outlet::start(guard, upstream).await;
    outlet.map_err(|e| format!("there is no port for the browser's way out: {e}"))
}

/// Only pages: a service worker stays as it is, since its requests would not be looked at.
fn attached_pages(mut ask: serde_json::Value) -> serde_json::Value {
    ask["filter"] = json!([{"type": "page", "exclude": false}, {"type": "service_worker", "exclude": false}, {"exclude": true}]);
    ask
}
