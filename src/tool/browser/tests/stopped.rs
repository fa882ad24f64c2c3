//! Calls that are stopped at each of their messages to the browser leave nothing pressed, carried or taken over. The browser is
//! one of the test, which does not answer from one message on.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::sync::{Notify, mpsc};

use crate::browser::cdp::{Cdp, Receive, Transmit};
use crate::browser::outlet::Guard;
use crate::browser::page::{Aim, Button, Drop, Group, Page, PageOptions};
use crate::testing::Bench;

/// Session of the tab.
const SESSION: &str = "session";

/// The browser of the test.
#[derive(Default)]
struct Browser {
    /// The messages since the action began.
    got: Mutex<Vec<Value>>,
    /// Number of the first message of the action that is not answered; `None`: the action has not begun.
    silent_at: Mutex<Option<usize>>,
    /// Notified when it came.
    stopped: Notify,
    /// Notified after each message.
    changed: Notify,
    /// The page drags its elements with data.
    drags: bool,
}

struct Ear(Arc<Browser>, mpsc::UnboundedSender<Vec<u8>>);
struct Mouth(mpsc::UnboundedReceiver<Vec<u8>>);

#[async_trait]
impl Transmit for Ear {
    async fn send(&mut self, message: Value) -> io::Result<()> {
        let browser = &self.0;
        let answers = match *lock(&browser.silent_at) {
            None => true,
            Some(silent_at) => {
                let mut got = lock(&browser.got);
                got.push(message.clone());
                if got.len() == silent_at + 1 {
                    browser.stopped.notify_one();
                }
                got.len() <= silent_at
            }
        };
        browser.changed.notify_waiters();
        let say = |text: Value| self.1.send(text.to_string().into_bytes());
        let moved = message["params"]["type"] == "mouseMoved" && message["params"]["button"] == "left";
        if answers && moved && browser.drags {
            let params = json!({"data": {"items": [{"mimeType": "text/plain", "data": "x"}]}});
            let _ = say(json!({"method": "Input.dragIntercepted", "params": params, "sessionId": SESSION}));
        }
        if answers {
            let _ = say(json!({"id": message["id"], "result": {}, "sessionId": SESSION}));
        }
        Ok(())
    }
}

#[async_trait]
impl Receive for Mouth {
    async fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.recv().await)
    }
}

/// Names of what is pressed, carried or taken over after these messages.
fn left(messages: &[Value]) -> BTreeSet<String> {
    let mut left = BTreeSet::new();
    for message in messages {
        let params = &message["params"];
        let (name, begins) = match (message["method"].as_str().unwrap(), params["type"].as_str()) {
            ("Input.setInterceptDrags", _) => ("drags".to_owned(), params["enabled"] == true),
            (_, Some("mousePressed")) => (format!("mouse {}", params["button"]), true),
            (_, Some("mouseReleased")) => (format!("mouse {}", params["button"]), false),
            (_, Some("keyDown" | "rawKeyDown")) => (format!("key {}", params["key"]), true),
            (_, Some("keyUp")) => (format!("key {}", params["key"]), false),
            (_, Some("dragEnter")) => ("carried".to_owned(), true),
            (_, Some("drop" | "dragCancel")) => ("carried".to_owned(), false),
            _ => continue,
        };
        if begins {
            left.insert(name);
        } else {
            left.remove(&name);
        }
    }
    left
}

async fn act(page: &Page, action: &str) -> Result<(), String> {
    let at = || Aim::At(5.0, 5.0);
    match action {
        "drag" | "drag with data" => page.drag(at(), Drop::By(50.0, 0.0)).await,
        "click" => page.click(at(), Button::Left, 1).await,
        "double click" => page.click(at(), Button::Right, 2).await,
        key => page.press(key).await,
    }
}

/// The messages of an action that is stopped at its message `silent_at`. `None`: it has fewer.
async fn stopped(bench: &Bench, action: &str, silent_at: usize) -> Option<Vec<Value>> {
    let browser = Arc::new(Browser { drags: action == "drag with data", ..Browser::default() });
    let (say, heard) = mpsc::unbounded_channel();
    let cdp = Arc::new(Cdp::new(Box::new(Ear(Arc::clone(&browser), say)), Box::new(Mouth(heard))));
    let cx = &bench.cx;
    let options = PageOptions {
        guard: Arc::new(Guard::new(false, cx.state.web.resolver(), cx.workspace.unreachable())),
        download_bytes: 0,
        group: Arc::new(Group::default()),
    };
    let page = Page::attach(Arc::clone(&cdp), SESSION.into(), "tab".into(), None, &options).await;
    // Once this is answered, nothing of the preparation is under way.
    page.call("Page.enable", json!({})).await.unwrap();
    *lock(&browser.silent_at) = Some(silent_at);
    let ended = tokio::select! {
        biased;
        done = act(&page, action) => { done.unwrap(); true }
        () = browser.stopped.notified() => false,
    };
    // Behind what the end of the action sent.
    cdp.post(Some(SESSION), "Test.last", json!({})).await;
    loop {
        let changed = browser.changed.notified();
        let got = lock(&browser.got).clone();
        if got.last().is_some_and(|last| last["method"] == "Test.last") {
            return (!ended).then_some(got);
        }
        changed.await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_stopped_ends_what_it_began() {
    let bench = Bench::new();
    for (action, least) in [
        ("drag", 12),
        ("drag with data", 14),
        ("click", 4),
        ("double click", 6),
        ("Control+Shift+a", 2),
        ("Enter", 2),
    ] {
        let mut began = BTreeSet::new();
        for silent_at in 0.. {
            let Some(messages) = stopped(&bench, action, silent_at).await else {
                assert!(silent_at >= least, "{action} has {silent_at} messages only");
                break;
            };
            began.extend(left(&messages[..=silent_at]));
            assert_eq!(left(&messages), BTreeSet::new(), "{action}, stopped at {silent_at}: {messages:#?}");
        }
        assert!(!began.is_empty(), "{action} begins nothing");
    }
}
