//! Giving files to a page.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde_json::json;
use tiller_protocol::lock;
use tokio::time::{Instant, timeout_at};

use super::element::gone;
use super::{Aim, Button, Page};
use crate::browser::snapshot::RefElement;
use crate::text::visible;

/// Longest wait for a click to ask for a file.
const ASKS: Duration = Duration::from_secs(5);

/// The file field that an element is, labels, or holds alone.
const FIELD: &str = "function () { const is = e => e && e.tagName === 'INPUT' && e.type === 'file' ? e : null; \
    const label = this.closest && this.closest('label'); \
    const inner = this.querySelectorAll ? this.querySelectorAll('input[type=file]') : []; \
    return is(this) || is(this.control) || is(label && label.control) || (inner.length === 1 ? inner[0] : null) }";
/// The number of files that a field takes, and the host of the page that the field's own document belongs to; an error when it
/// takes none. The page can replace none of `top`, `location` and `hostname`, and a document of another origin reads none of them.
const TAKES: &str = "function () { if (this.disabled) throw new Error('the field is disabled'); \
    if (this.webkitdirectory) throw new Error('the field takes folders only'); \
    let host = null; try { host = top.location.hostname } catch (_) {} \
    return [this.multiple, host] }";

impl Page {
    /// Gives files to the file field that an element is, labels or holds, or else to what a click on the element asks for, as
    /// long as the page is the one that it was, and of `host`.
    ///
    /// # Errors
    /// Why it could not, in words.
    pub(crate) async fn give_files(
        &self,
        element: &RefElement,
        files: &[PathBuf],
        host: &str,
    ) -> Result<(), String> {
        let before = lock(&self.shared.state).documents;
        let session = element.id.session.as_deref().unwrap_or(&self.session);
        let object = self.resolve(element, element.id.backend).await?;
        let find = json!({"objectId": object, "functionDeclaration": FIELD});
        let found = self.call_in(session, "Runtime.callFunctionOn", find).await.map_err(gone)?;
        let (session, field) = match found["result"]["objectId"].as_str() {
            Some(field) => (session.to_owned(), field.to_owned()),
            None => self.asked(element).await?,
        };
        let takes = json!({"objectId": field, "functionDeclaration": TAKES, "returnByValue": true});
        let takes = self.call_in(&session, "Runtime.callFunctionOn", takes).await.map_err(gone)?;
        if let Some(why) = takes["exceptionDetails"]["exception"]["description"].as_str() {
            return Err(visible(why.lines().next().unwrap_or_default()).into_owned());
        }
        let (several, field_host) = (&takes["result"]["value"][0], &takes["result"]["value"][1]);
        if files.len() > 1 && several.as_bool() != Some(true) {
            return Err("the field takes one file".into());
        }
        let (documents, now) = {
            let state = lock(&self.shared.state);
            (state.documents, host_of(&state.url))
        };
        if documents != before || now.as_deref() != Some(host) {
            return Err("the page went elsewhere meanwhile. Look at it with browser_snapshot".into());
        }
        match field_host.as_str() {
            Some(found) if !host.is_empty() && found == host => {}
            Some(_) => {
                return Err("the page went elsewhere meanwhile. Look at it with browser_snapshot".into());
            }
            // The user was asked about the host of the page.
            None => {
                return Err("the field is in a frame of another origin than the page. Open that frame's address with \
                     browser_navigate"
                    .into());
            }
        }
        let give = json!({"files": files, "objectId": field});
        self.call_in(&session, "DOM.setFileInputFiles", give).await.map(|_| ()).map_err(gone)
    }

    /// Clicks an element, and waits until the page asks for files: the session and the object of the field.
    async fn asked(&self, element: &RefElement) -> Result<(String, String), String> {
        lock(&self.shared.state).chooser = None;
        self.click(Aim::Element(element.clone(), None), Button::Left, 1).await?;
        let deadline = Instant::now() + ASKS;
        let chooser = loop {
            let changed = self.shared.changed.notified();
            if let Some(chooser) = lock(&self.shared.state).chooser.take() {
                break chooser;
            }
            if self.gone().is_some() || timeout_at(deadline, changed).await.is_err() {
                return Err("it is no file field, and a click on it asks for no file".into());
            }
        };
        let node = json!({"backendNodeId": chooser.node});
        let node = self.call_in(&chooser.session, "DOM.resolveNode", node).await.map_err(gone)?;
        let field = node["object"]["objectId"].as_str().ok_or("the field is gone")?;
        Ok((chooser.session, field.to_owned()))
    }
}

/// The host of an address; `None`: it has none.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    url.host_str().filter(|host| !host.is_empty()).map(str::to_owned)
}
