//! A client of the protocol, like an editor: it starts `tiller acp` and communicates over its standard input and
//! output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use serde_json::{Value, json};

use crate::common::{Place, TIMEOUT, poll};

/// A running `tiller acp`. Dropping it kills it.
pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    ids: u64,
    /// Every received message, in order.
    pub(crate) seen: Vec<Value>,
}

impl Client {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        let mut all = vec!["acp"];
        all.extend(args);
        let mut child = place
            .tiller(&all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (tx, output) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines {
                let Ok(line) = line else { break };
                let value: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                assert_eq!(value["jsonrpc"], "2.0", "{value}");
                if tx.send(value).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, output, ids: 0, seen: Vec::new() }
    }

    /// With the handshake done.
    pub(crate) fn ready(place: &Place, args: &[&str]) -> Self {
        let mut client = Self::start(place, args);
        let hello = client.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(hello["protocolVersion"], 1);
        client
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.raw(format!("{message}\n").as_bytes());
    }

    /// Sends a request; returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.ids += 1;
        self.send(json!({"id": self.ids, "method": method, "params": params}));
        self.ids
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"method": method, "params": params}));
    }

    /// Sends a request and waits for its answer, which may be an error.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// As [`Self::call`]; fails the test on an error.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Waits for the answer to request `id`.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.until(|m| m["id"] == id && m.get("method").is_none())
    }

    /// Waits for a message. Earlier messages count as well, each once.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(message) => {
                    self.seen.push(message.clone());
                    if fits(&message) {
                        return message;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("nothing fits: {:#?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended: {:#?}", self.seen),
            }
        }
    }

    /// A session in the place's folder.
    pub(crate) fn session(&mut self, place: &Place) -> String {
        let made = self.ask("session/new", json!({"cwd": place.work, "mcpServers": []}));
        made["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt; returns the request's id.
    pub(crate) fn say(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", prompt(session, text))
    }

    /// Sends a prompt and waits for the end of the turn; returns the stop reason.
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> String {
        let result = self.ask("session/prompt", prompt(session, text));
        result["stopReason"].as_str().unwrap().to_owned()
    }

    /// Waits for a question, and answers it by the kind of option.
    pub(crate) fn decide(&mut self, kind: &str) -> Value {
        let asked = self.until(|m| m["method"] == "session/request_permission");
        let options = asked["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|o| o["kind"] == kind).unwrap_or_else(|| panic!("{asked}"));
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
        self.send(json!({"id": asked["id"], "result": outcome}));
        asked
    }

    /// The updates of a session so far.
    pub(crate) fn updates(&self, session: &str) -> Vec<Value> {
        self.seen
            .iter()
            .filter(|m| m["method"] == "session/update" && m["params"]["sessionId"] == session)
            .map(|m| m["params"]["update"].clone())
            .collect()
    }

    /// All text of one kind of chunk.
    pub(crate) fn text(&self, session: &str, kind: &str) -> String {
        let updates = self.updates(session);
        let of = updates.iter().filter(|u| u["sessionUpdate"] == kind);
        of.filter_map(|u| u["content"]["text"].as_str()).collect()
    }

    /// Closes its input and waits for its end.
    pub(crate) fn close(mut self) -> ExitStatus {
        drop(self.input.take());
        let ended = poll(TIMEOUT, || self.child.try_wait().unwrap());
        ended.unwrap_or_else(|| panic!("it did not end: {:#?}", self.seen))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}
