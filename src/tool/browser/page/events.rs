//! The task of a tab: follows its events, answers its dialogs, decides about its requests. It never waits for a reply of
//! the browser, since the connection's reader waits for it.

use std::sync::Arc;

use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::sync::mpsc;

use super::state::{Chooser, DialogAnswer, Gone, PageState, quoted};
use super::{PageOptions, PageShared};
use crate::browser::cdp::{Cdp, Event};

pub(super) struct PageTask {
    pub(super) cdp: Arc<Cdp>,
    pub(super) session: String,
    pub(super) target: String,
    pub(super) shared: Arc<PageShared>,
    pub(super) options: PageOptions,
}

/// Requests whose host is being looked up at the same time, for one tab.
const LOOKUPS: usize = 64;

impl PageTask {
    /// Runs until the tab or the browser is gone.
    pub(super) async fn run(self, mut events: mpsc::Receiver<Event>) {
        let (child_tx, mut child_events) = mpsc::channel::<Event>(LOOKUPS);
        let lookups = Arc::new(tokio::sync::Semaphore::new(LOOKUPS));
        let mut children = tokio::task::JoinSet::new();
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                Some(event) = child_events.recv() => Some(event),
            };
            let Some(event) = event else { break };
            let session = event.session.clone().unwrap_or_else(|| self.session.clone());
            let main = session == self.session;
            match event.method.as_str() {
                "Fetch.requestPaused" => {
                    // Closed never.
                    let Ok(permit) = Arc::clone(&lookups).acquire_owned().await else { break };
                    let (cdp, guard) = (Arc::clone(&self.cdp), Arc::clone(&self.options.guard));
                    let (shared, target) = (Arc::clone(&self.shared), self.target.clone());
                    children.spawn(async move {
                        judge(&cdp, &guard, &shared, &session, &target, &event.params).await;
                        drop(permit);
                    });
                }
                "Target.attachedToTarget" => {
                    let Some(child) = event.params["sessionId"].as_str().map(str::to_owned) else { continue };
                    let info = &event.params["targetInfo"];
                    if info["type"].as_str() == Some("iframe")
                        && let Some(frame) = info["targetId"].as_str()
                    {
                        lock(&self.shared.state).frames.insert(frame.to_owned(), child.clone());
                    }
                    let mut events = self.cdp.events(Some(&child));
                    let forward = child_tx.clone();
                    children.spawn(async move {
                        while let Some(event) = events.recv().await {
                            if forward.send(event).await.is_err() {
                                break;
                            }
                        }
                    });
                    prepare(&self.cdp, &child).await;
                }
                "Target.detachedFromTarget" => {
                    let Some(gone) = event.params["sessionId"].as_str() else { continue };
                    lock(&self.shared.state).frames.retain(|_, s| s.as_str() != gone);
                    // It may have ended before its events were followed.
                    self.cdp.end(gone);
                }
                "Page.javascriptDialogOpening" => self.dialog(&session, &event.params).await,
                "Page.fileChooserOpened" => {
                    let node = event.params["backendNodeId"].as_i64();
                    lock(&self.shared.state).chooser = node.map(|node| Chooser { session, node });
                }
                "Input.dragIntercepted" => {
                    lock(&self.shared.state).dragged = Some(event.params["data"].clone());
                }
                // Frames of other processes report these in sessions of their own.
                "Page.windowOpen" => {
                    let gesture = event.params["userGesture"].as_bool() == Some(true);
                    self.options.group.ask(event.params["url"].as_str().unwrap_or_default(), gesture);
                }
                "Page.downloadWillBegin" => self.download(main, &event.params).await,
                method if main => self.follow(method, &event.params),
                _ => {}
            }
            self.shared.changed.notify_waiters();
            while children.try_join_next().is_some() {}
        }
        self.options.guard.empty(&self.target);
    }

    /// Answers a dialog and notes what it said.
    async fn dialog(&self, session: &str, params: &Value) {
        let kind = params["type"].as_str().unwrap_or("alert");
        let message = quoted(params["message"].as_str().unwrap_or_default());
        let answer = lock(&self.shared.state).dialog.clone();
        let by_default = DialogAnswer { accept: matches!(kind, "alert" | "beforeunload"), text: None };
        let answer = answer.unwrap_or(by_default);
        let typed = answer.text.as_ref().filter(|_| kind == "prompt" && answer.accept);
        let mut reply = json!({"accept": answer.accept});
        if let Some(text) = typed {
            reply["promptText"] = text.clone().into();
        }
        self.cdp.post(Some(session), "Page.handleJavaScriptDialog", reply).await;
        let mut state = lock(&self.shared.state);
        if kind == "beforeunload" {
            state.note(if answer.accept {
                "the page warned that it loses what was not saved (beforeunload); it was left".into()
            } else {
                "the page warned that it loses what was not saved (beforeunload); it was not left".into()
            });
            if !answer.accept {
                (state.loading, state.leaving) = (false, false);
            }
            return;
        }
        let done = match (kind, answer.accept) {
            ("alert", _) => "closed".to_owned(),
            (_, true) => typed.map_or("accepted".to_owned(), |t| format!("accepted with {}", quoted(t))),
            ("prompt", false) => "dismissed; to answer it, pass dialog_text".to_owned(),
            (_, false) => "dismissed; to accept it, pass dialog: \"accept\"".to_owned(),
        };
        state.note(format!("the page opened a dialog ({kind}): {message}; it was {done}"));
    }

    /// Events that only change the state.
    fn follow(&self, method: &str, params: &Value) {
        let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        let main = params["frameId"].as_str() == Some(&self.target);
        {
            let mut state = lock(&self.shared.state);
            match method {
                "Page.frameNavigated" => {
                    let frame = &params["frame"];
                    if frame["parentId"].is_null() {
                        let url = frame["url"].as_str().unwrap_or_default();
                        self.options.guard.shows(&self.target, url);
                    }
                    navigated(&mut state, frame);
                }
                "Page.navigatedWithinDocument" if main => state.url = text("url"),
                "Page.frameStartedLoading" | "Page.frameStartedNavigating" if main => state.loading = true,
                "Page.frameStoppedLoading" if main => {
                    state.loading = false;
                    state.leaving = false;
                }
                "Page.frameRequestedNavigation" if main => state.leaving = true,
                "Network.requestWillBeSent" => {
                    state.open.insert(text("requestId"));
                }
                "Network.loadingFinished" | "Network.loadingFailed" => {
                    state.open.remove(params["requestId"].as_str().unwrap_or_default());
                }
                "Network.responseReceived" if main && params["type"].as_str() == Some("Document") => {
                    let status = params["response"]["status"].as_u64();
                    state.status = status.and_then(|s| u16::try_from(s).ok());
                }
                "Inspector.targetCrashed" => {
                    state.gone.get_or_insert(Gone::Crashed);
                    state.loading = false;
                }
                _ => {}
            }
        }
    }

    /// Takes in a download that begins. `main`: in the tab's own process.
    async fn download(&self, main: bool, params: &Value) {
        let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        let (id, name) = (text("guid"), text("suggestedFilename"));
        let (group, most) = (&self.options.group, self.options.download_bytes);
        let begun = if most > 0 { group.download(id.clone(), name.clone(), most) } else { None };
        {
            let mut state = lock(&self.shared.state);
            if main {
                state.loading = false;
            }
            if begun.is_none() {
                let why = if most > 0 { ", since there are too many" } else { "" };
                state.note(format!("a download of {} was refused{why}", quoted(&name)));
            }
        }
        if begun != Some(false) {
            self.cdp.post(None, "Browser.cancelDownload", group.cancel(&id)).await;
        }
    }
}

/// Sets up a session of a tab or of a part of it, and lets it run.
pub(super) async fn prepare(cdp: &Cdp, session: &str) {
    let children = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
    for (method, params) in [
        ("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]})),
        ("Page.enable", json!({})),
        ("Network.enable", json!({})),
        ("Inspector.enable", json!({})),
        ("DOM.enable", json!({})),
        // No dialog of the system: it would wait for a person.
        ("Page.setInterceptFileChooserDialog", json!({"enabled": true})),
        ("Target.setAutoAttach", children),
        ("Runtime.runIfWaitingForDebugger", json!({})),
    ] {
        cdp.post(Some(session), method, params).await;
    }
}

fn navigated(state: &mut PageState, frame: &Value) {
    if !frame["parentId"].is_null() {
        return;
    }
    let fragment = frame["urlFragment"].as_str().unwrap_or_default();
    state.url = format!("{}{fragment}", frame["url"].as_str().unwrap_or_default());
    state.documents += 1;
    state.leaving = false;
    if !state.is_blank() {
        state.opener = None;
    }
    state.open.clear();
}

/// Lets a request go on or fails it.
async fn judge(
    cdp: &Cdp,
    guard: &crate::browser::outlet::Guard,
    shared: &PageShared,
    session: &str,
    target: &str,
    params: &Value,
) {
    let url = params["request"]["url"].as_str().unwrap_or_default();
    let document =
        params["resourceType"].as_str() == Some("Document") && params["frameId"].as_str() == Some(target);
    let (page, asked, opener) = {
        let state = lock(&shared.state);
        // A blank page belongs to the one that opened it.
        let opener = state.opener.clone().filter(|_| state.is_blank());
        (state.url.clone(), state.asked.clone().filter(|_| document), opener)
    };
    let from: Vec<&str> =
        std::iter::once(page.as_str()).chain(asked.as_deref()).chain(opener.as_deref()).collect();
    let request = json!({"requestId": params["requestId"]});
    match guard.refusal(url, &from).await {
        None => {
            if params["resourceType"].as_str() == Some("Document") {
                guard.loads(target, url, document);
            }
            cdp.post(Some(session), "Fetch.continueRequest", request).await;
        }
        Some(why) => {
            let mut refused = request;
            refused["errorReason"] = "BlockedByClient".into();
            {
                let mut state = lock(&shared.state);
                if document {
                    state.refused = Some((url.to_owned(), why.clone()));
                }
                // Of a new tab the lease says this as a whole.
                if !document || opener.is_none() {
                    state.note(format!("a request was refused: {why}"));
                }
            }
            cdp.post(Some(session), "Fetch.failRequest", refused).await;
        }
    }
}
