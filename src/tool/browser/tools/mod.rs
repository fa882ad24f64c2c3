//! The eleven tools, one file each.

mod back;
mod click;
mod close;
mod dialog;
mod get_images;
mod navigate;
mod press;
mod scroll;
mod snapshot;
mod type_text;
mod upload;
mod vision;

use std::future::Future;

use reqwest::Url;
use serde_json::Value;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolVerb, Touch};
use tokio::sync::OwnedMutexGuard;

use super::BrowserSettings;
use super::lease::Lease;
use crate::{Tool, ToolCx, ToolError};

/// The tools over one browser configuration. They live as long as the process; the composition root makes them once.
pub fn tools(settings: BrowserSettings) -> [&'static dyn Tool; 11] {
    let settings: &'static BrowserSettings = Box::leak(Box::new(settings));
    [
        Box::leak(Box::new(navigate::Navigate(settings))),
        Box::leak(Box::new(snapshot::Snapshot(settings))),
        Box::leak(Box::new(click::Click(settings))),
        Box::leak(Box::new(type_text::Type(settings))),
        Box::leak(Box::new(scroll::ScrollPage(settings))),
        Box::leak(Box::new(back::Back(settings))),
        Box::leak(Box::new(press::Press(settings))),
        Box::leak(Box::new(close::Close(settings))),
        Box::leak(Box::new(get_images::GetImages(settings))),
        Box::leak(Box::new(vision::Vision(settings))),
        Box::leak(Box::new(upload::Upload(settings))),
    ]
}

/// The facts that all tools of the browser have in common.
const fn info(
    name: &'static str,
    aliases: &'static [&'static str],
    target: fn(&Value) -> String,
) -> ToolInfo {
    ToolInfo {
        name,
        set: ToolSet::Browser,
        grant: ToolGrant::All,
        starts_agents: false,
        // In order: each call sees the page as the one before left it.
        touch: Touch::Network,
        rule: RuleArgument::Address,
        aliases,
        verb: ToolVerb::Browse,
        target,
    }
}

/// The access that acting on the current page needs: that of a request to its host.
fn on_page(cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
    let Some(address) = cx.state.browser.url(&cx.agent) else {
        return Err(ToolError::Tell("no page is open. Open one with browser_navigate".into()));
    };
    let url = Url::parse(&address).map_err(|e| ToolError::Tell(e.to_string()))?;
    Ok(vec![access(&url)])
}

fn access(url: &Url) -> Access {
    let local = super::outlet::names_loopback(url);
    Access::Net { url: url.to_string(), host: url.host_str().unwrap_or_default().to_owned(), local }
}

/// The tabs of the agent, once no other call has them.
async fn lease(
    cx: &ToolCx,
    settings: &BrowserSettings,
    start: bool,
) -> Result<OwnedMutexGuard<Lease>, ToolError> {
    let mut lease =
        stoppable(cx, cx.state.browser.lease(cx, settings, start)).await?.map_err(ToolError::Tell)?;
    stoppable(cx, lease.ready()).await?;
    Ok(lease)
}

/// The outcome of an action. One that closed its own tab has done what it does: the report tells of the tab.
fn acted(done: Result<(), String>, lease: &mut Lease) -> Result<(), ToolError> {
    lease.acts = true;
    if lease.is_gone() { Ok(()) } else { done.map_err(ToolError::Tell) }
}

/// Waits for what the browser does, unless the call is stopped.
async fn stoppable<T>(cx: &ToolCx, work: impl Future<Output = T>) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::Interrupted(String::new())),
        done = work => Ok(done),
    }
}
