//! One connection to a browser: calls and their replies, events and their receivers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tiller_protocol::lock;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use super::{Receive, Transmit};

/// Longest time of one call.
const CALL: Duration = Duration::from_secs(30);
/// Messages that wait to be sent.
const OUTBOX: usize = 256;
/// Events that wait for their page.
const EVENTS: usize = 1024;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CdpError {
    /// The browser has ended or closed the connection.
    #[error("the browser has ended")]
    Closed,
    /// The browser refused the call.
    #[error("the browser refused: {0}")]
    Refused(String),
    /// The reply is of no known form, nested too deeply, or too large.
    #[error("the browser gave a reply that cannot be read")]
    Unreadable,
    /// No reply in time.
    #[error("the browser did not reply within {} s", CALL.as_secs())]
    Late,
}

/// A report of a browser that nothing asked for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Value,
    #[serde(default, rename = "sessionId")]
    pub(crate) session: Option<String>,
}

#[derive(Deserialize)]
struct Incoming {
    id: Option<u64>,
    /// Not read yet: replies of many megabytes are read once, as what they are wanted for.
    result: Option<Box<RawValue>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    message: String,
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Result<Box<RawValue>, CdpError>>>>;
/// By session; `None`: events of the browser itself.
type Sinks = Mutex<HashMap<Option<String>, mpsc::Sender<Event>>>;

/// A connection. Dropping it closes it, and every call that waits fails.
pub(crate) struct Cdp {
    next: AtomicU64,
    /// The writer task holds the other end; it closes when the browser is gone.
    outbox: mpsc::Sender<Value>,
    waiting: Arc<Waiting>,
    sinks: Arc<Sinks>,
    /// True once the browser is gone. The reader task holds the other end.
    closed: watch::Receiver<bool>,
    _reader: AbortOnDropHandle<()>,
    _writer: AbortOnDropHandle<()>,
}

impl Cdp {
    /// Starts the tasks of a connection.
    pub(crate) fn new(mut transmit: Box<dyn Transmit>, receive: Box<dyn Receive>) -> Self {
        let (outbox, mut messages) = mpsc::channel::<Value>(OUTBOX);
        let (over, closed) = watch::channel(false);
        let (waiting, sinks) = (Arc::new(Waiting::default()), Arc::new(Sinks::default()));
        let writer = tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                if transmit.send(message).await.is_err() {
                    break;
                }
            }
        });
        let reader = tokio::spawn(read(receive, Arc::clone(&waiting), Arc::clone(&sinks), over));
        Self {
            next: AtomicU64::new(1),
            outbox,
            waiting,
            sinks,
            closed,
            _reader: AbortOnDropHandle::new(reader),
            _writer: AbortOnDropHandle::new(writer),
        }
    }

    /// Events of a session from now on. They end with the session.
    pub(crate) fn events(&self, session: Option<&str>) -> mpsc::Receiver<Event> {
        let (sink, events) = mpsc::channel(EVENTS);
        let mut sinks = lock(&self.sinks);
        // Of those that are gone nothing else may come.
        sinks.retain(|_, sink| !sink.is_closed());
        sinks.insert(session.map(str::to_owned), sink);
        events
    }

    /// Ends the events of a session that is over.
    pub(crate) fn end(&self, session: &str) {
        lock(&self.sinks).remove(&Some(session.to_owned()));
    }

    /// Calls a method and waits for its reply.
    ///
    /// # Errors
    /// [`CdpError`].
    pub(crate) async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, CdpError> {
        let reply = self.call_raw(session, method, params).await?;
        serde_json::from_str(reply.get()).map_err(|_| CdpError::Unreadable)
    }

    /// As [`Self::call`], with the reply as the browser wrote it.
    ///
    /// # Errors
    /// [`CdpError`].
    pub(crate) async fn call_raw(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Box<RawValue>, CdpError> {
        let (reply, replied) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.waiting).insert(id, reply);
        let forget = Forget { id, waiting: &self.waiting };
        // The reader may have ended before this call was entered.
        if *self.closed.borrow() || self.outbox.send(message(id, session, method, &params)).await.is_err() {
            return Err(CdpError::Closed);
        }
        let replied = tokio::time::timeout(CALL, replied).await;
        drop(forget);
        match replied {
            Err(_) => Err(CdpError::Late),
            Ok(Err(_)) => Err(CdpError::Closed),
            Ok(Ok(result)) => result,
        }
    }

    /// Calls a method whose reply does not matter. Never waits for the browser to reply.
    pub(crate) async fn post(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // A browser that is gone needs no message.
        let _ = self.outbox.send(message(id, session, method, &params)).await;
    }

    /// As [`Self::post`], where nothing can be waited for. The message stands behind those that were sent before it, and before
    /// those of the next call, unless [`OUTBOX`] of them wait.
    pub(crate) fn post_now(&self, session: Option<&str>, method: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let sent = self.outbox.try_send(message(id, session, method, &params));
        // A browser that is gone needs no message, and a runtime that is gone has no browser.
        if let Err(mpsc::error::TrySendError::Full(message)) = sent
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let outbox = self.outbox.clone();
            runtime.spawn(async move { outbox.send(message).await });
        }
    }

    /// True once the browser is gone.
    pub(crate) fn closed(&self) -> bool {
        *self.closed.borrow() || self.outbox.is_closed()
    }

    /// Waits until the browser is gone.
    pub(crate) async fn ended(&self) {
        let mut closed = self.closed.clone();
        // An error means that the reader has ended, too.
        let _ = closed.wait_for(|over| *over).await;
    }
}

/// Removes a call that is no longer waited for.
struct Forget<'a> {
    id: u64,
    waiting: &'a Waiting,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.id);
    }
}

fn message(id: u64, session: Option<&str>, method: &str, params: &Value) -> Value {
    let mut message = json!({"id": id, "method": method, "params": params});
    if let Some(session) = session {
        message["sessionId"] = session.into();
    }
    message
}

async fn read(
    mut receive: Box<dyn Receive>,
    waiting: Arc<Waiting>,
    sinks: Arc<Sinks>,
    over: watch::Sender<bool>,
) {
    loop {
        let message = match receive.receive().await {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the connection to the browser failed");
                break;
            }
        };
        deliver(&message, &waiting, &sinks).await;
    }
    over.send_replace(true);
    lock(&waiting).clear();
    lock(&sinks).clear();
}

/// Hands a message to the call or the page that it is for. What is neither is ignored.
async fn deliver(message: &[u8], waiting: &Waiting, sinks: &Sinks) {
    let Ok(incoming) = serde_json::from_slice::<Incoming>(message) else {
        tracing::debug!(bytes = message.len(), "a message of the browser cannot be read");
        if let Some(call) = id_of(message).and_then(|id| lock(waiting).remove(&id)) {
            let _ = call.send(Err(CdpError::Unreadable));
        }
        return;
    };
    if let Some(id) = incoming.id {
        let reply = match incoming.error {
            Some(failure) => Err(CdpError::Refused(failure.message)),
            None => Ok(incoming.result.unwrap_or_default()),
        };
        if let Some(call) = lock(waiting).remove(&id) {
            // The caller may have stopped waiting.
            let _ = call.send(reply);
        }
        return;
    }
    let Ok(event) = serde_json::from_slice::<Event>(message) else { return };
    let sink = lock(sinks).get(&event.session).cloned();
    let gone = (event.method == "Target.detachedFromTarget").then(|| event.params["sessionId"].clone());
    if let Some(sink) = sink {
        let session = event.session.clone();
        // Waits for the page's task, which never waits for a reply of the browser.
        if sink.send(event).await.is_err() {
            lock(sinks).remove(&session);
        }
    }
    // Behind it the session has no events: what waits for them ends.
    if let Some(gone) = gone.as_ref().and_then(Value::as_str) {
        lock(sinks).remove(&Some(gone.to_owned()));
    }
}

/// The id with which a message begins that cannot be read.
fn id_of(message: &[u8]) -> Option<u64> {
    let rest = message.strip_prefix(b"{\"id\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io;

    use async_trait::async_trait;

    use super::*;

    struct Ear(mpsc::UnboundedSender<Value>);
    struct Mouth(mpsc::UnboundedReceiver<String>);

    #[async_trait]
    impl Transmit for Ear {
        async fn send(&mut self, message: Value) -> io::Result<()> {
            self.0.send(message).map_err(io::Error::other)
        }
    }

    #[async_trait]
    impl Receive for Mouth {
        async fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
            Ok(self.0.recv().await.map(String::into_bytes))
        }
    }

    fn connection() -> (Cdp, mpsc::UnboundedSender<String>, mpsc::UnboundedReceiver<Value>) {
        let (say, said) = mpsc::unbounded_channel();
        let (hear, heard) = mpsc::unbounded_channel();
        (Cdp::new(Box::new(Ear(hear)), Box::new(Mouth(said))), say, heard)
    }

    #[tokio::test]
    async fn a_reply_that_cannot_be_read_fails_its_call_at_once_and_no_other() {
        for rest in ["", ",\"result\":nothing}", ",\"result\":{\"a\":", ",\"error\":7}"] {
            let (cdp, say, mut heard) = connection();
            let reply = async {
                let id = heard.recv().await.unwrap()["id"].clone();
                for message in ["no JSON".into(), "{\"id\":".into(), format!("{{\"id\":{id}{rest}")] {
                    say.send(message).unwrap();
                }
            };
            let (replied, ()) = tokio::join!(cdp.call(None, "A.b", json!({})), reply);
            assert_eq!(replied, Err(CdpError::Unreadable), "{rest}");
            let reply = async {
                let id = heard.recv().await.unwrap()["id"].clone();
                say.send(json!({"id": id, "result": {"a": 1}}).to_string()).unwrap();
            };
            let (replied, ()) = tokio::join!(cdp.call(None, "A.c", json!({})), reply);
            assert_eq!(replied, Ok(json!({"a": 1})), "{rest}");
        }
    }

    #[tokio::test]
    async fn the_events_of_a_session_end_with_it_and_leave_nothing() {
        let (cdp, say, _heard) = connection();
        let mut root = cdp.events(None);
        for n in 0..500 {
            let session = format!("s{n}");
            let mut events = cdp.events(Some(&session));
            for (method, of) in [("Page.x", &session), ("Target.detachedFromTarget", &String::new())] {
                let mut event = json!({"method": method, "params": {"sessionId": session}});
                if !of.is_empty() {
                    event["sessionId"] = of.as_str().into();
                }
                say.send(event.to_string()).unwrap();
            }
            assert_eq!(events.recv().await.unwrap().method, "Page.x");
            assert!(events.recv().await.is_none());
            assert_eq!(root.recv().await.unwrap().params["sessionId"], session.as_str());
            // One that nothing receives any more.
            drop(cdp.events(Some("left")));
        }
        let _ = cdp.events(Some("new"));
        assert!(lock(&cdp.sinks).len() <= 3, "those of {} sessions stay", lock(&cdp.sinks).len());
    }
}
