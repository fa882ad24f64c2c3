//! Asks the browser for what a snapshot is made of.

use std::collections::HashMap;

use serde_json::{Value, json};
use tiller_protocol::lock;

use super::ax::AxTree;
use super::dom::{DomNodes, STYLES};
use super::lines::Style;
use super::tree::{ElementId, Frame, Source};
use super::{PageText, lines};
use crate::browser::cdp::CdpError;
use crate::browser::page::Page;
use crate::text::{one_line, visible};

/// Frames of a page that are looked into.
const FRAMES: usize = 20;

/// A snapshot of a tab with all of its frames.
///
/// # Errors
/// When the browser or the page is gone.
pub(crate) async fn collect(page: &mut Page) -> Result<PageText, CdpError> {
    let (url, document, remote) = {
        let state = lock(&page.shared.state);
        (state.url.clone(), state.documents, state.frames.clone())
    };
    // The browser collects the second while the first is read.
    let (frames, first) = tokio::join!(local_frames(page, None, &page.target), elements(page, None));
    let mut frames = frames?;
    let mut dom = HashMap::from([(None, first)]);
    for (frame, session) in remote.into_iter().take(FRAMES) {
        // A frame may go away while it is looked at.
        let Ok(owner) = owner(page, None, &frame).await else { continue };
        if let Ok(mut inner) = local_frames(page, Some(session), &frame).await {
            if let Some(first) = inner.first_mut() {
                first.owner = Some(owner);
            }
            frames.append(&mut inner);
        }
    }
    frames.truncate(FRAMES);
    for frame in &frames {
        if !dom.contains_key(&frame.session) {
            dom.insert(frame.session.clone(), elements(page, frame.session.as_deref()).await);
        }
    }
    if page.last.as_ref().is_some_and(|last| last.document != document) {
        page.refs.forget();
    }
    page.refs.make_room();
    let nodes = Source { frames: &frames, dom: &dom }.nodes(&mut page.refs);
    let root = frames.first().and_then(|f| f.tree.root());
    let title = root.map(|r| visible(r.name()).into_owned()).unwrap_or_default();
    Ok(PageText {
        url: visible(&url).into_owned(),
        title: one_line(&title),
        document,
        lines: lines::lines(&nodes, Style::Alone),
        shown: lines::lines(&nodes, Style::Shown),
    })
}

async fn call(page: &Page, session: Option<&str>, method: &str, params: Value) -> Result<Value, CdpError> {
    match session {
        None => page.call(method, params).await,
        Some(session) => page.cdp.call(Some(session), method, params).await,
    }
}

/// The elements of a session's documents; without them only controls have references.
async fn elements(page: &Page, session: Option<&str>) -> DomNodes {
    let ask = json!({"computedStyles": STYLES});
    let reply = call(page, session, "DOMSnapshot.captureSnapshot", ask).await;
    reply.map(|reply| DomNodes::read(&reply)).unwrap_or_default()
}

/// The frames of one process: the first one, and those in it.
async fn local_frames(page: &Page, session: Option<String>, first: &str) -> Result<Vec<Frame>, CdpError> {
    let mut ids = Vec::new();
    match call(page, session.as_deref(), "Page.getFrameTree", json!({})).await {
        Ok(reply) => list(&reply["frameTree"], &mut ids),
        // Frames within each other, deeper than JSON is read: without them.
        Err(CdpError::Unreadable) => ids.push(first.to_owned()),
        Err(error) => return Err(error),
    }
    let mut frames = Vec::new();
    for id in ids.into_iter().take(FRAMES) {
        let ask = json!({"frameId": id});
        let is_first = id == first;
        let method = "Accessibility.getFullAXTree";
        let reply = match session.as_deref() {
            None => page.call_raw(method, ask).await,
            Some(session) => page.cdp.call_raw(Some(session), method, ask).await,
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(CdpError::Refused(_)) if !is_first => continue,
            Err(error) => return Err(error),
        };
        let owner = if is_first {
            None
        } else {
            match owner(page, session.clone(), &id).await {
                Ok(owner) => Some(owner),
                Err(_) => continue,
            }
        };
        frames.push(Frame { session: session.clone(), tree: AxTree::read(&reply)?, owner });
    }
    Ok(frames)
}

fn list(tree: &Value, ids: &mut Vec<String>) {
    if let Some(id) = tree["frame"]["id"].as_str() {
        ids.push(id.to_owned());
    }
    for child in tree["childFrames"].as_array().into_iter().flatten() {
        list(child, ids);
    }
}

async fn owner(page: &Page, session: Option<String>, frame: &str) -> Result<ElementId, CdpError> {
    let reply = call(page, session.as_deref(), "DOM.getFrameOwner", json!({"frameId": frame})).await?;
    let backend = reply["backendNodeId"].as_i64();
    backend
        .map(|backend| ElementId { session, backend })
        .ok_or(CdpError::Refused("the frame has no element".into()))
}
