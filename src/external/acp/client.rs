//! The connection to an agent: requests to it, its updates, and its requests.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tiller_rpc::{Encoder, Error, INVALID_PARAMS, METHOD_NOT_FOUND, Message};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::adapter::Acp;
use super::super::choice::choose;
use super::super::control::Command;
use super::super::event::{AgentEvent, Answer, Choice, ChoiceKind, Question};
use super::super::pipes::{Line, Lines};
use super::super::run::Run;
use super::mode::Mode;
use super::updates::Updates;
use super::{files, session};
use tiller_protocol::{Activity, ActivitySource};

/// How messages to the agent are written.
const LINES: Encoder = Encoder::VersionLast;

/// Time limit for the first answer: a cold start on a busy machine takes seconds.
const FIRST: Duration = Duration::from_secs(90);

/// Maximum number of unanswered requests of the agent.
pub(super) const PENDING: usize = 64;

/// Error code of a refusal because too many requests wait.
const BUSY: i64 = -32000;

/// Why a request got no result.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The agent answered with an error.
    Error(Error),
    /// The program's output ended.
    Ended,
    Cancelled,
    Wall,
    Idle,
    TooMuch,
}

/// A finished answer to the agent: the request's id, and the answer.
pub(super) type ReadyAnswer = (Value, files::FileAnswer);

pub(super) struct Client {
    pub(super) run: Run,
    pub(super) acp: Acp,
    pub(super) lines: Lines,
    /// To the writing task, which holds the receiver until the pipe breaks. Bounded: `send` waits for an agent that
    /// does not read, up to a time limit.
    pub(super) to: mpsc::Sender<String>,
    pub(super) next: u64,
    pub(super) updates: Updates,
    pub(super) session: String,
    /// Ignores updates: the history that is sent while a session is loaded is already known.
    pub(super) muted: bool,
    pub(super) pending: FuturesUnordered<BoxFuture<'static, ReadyAnswer>>,
    pub(super) wall: Instant,
    /// Whether a turn runs.
    pub(super) busy: bool,
    /// The mode of the session.
    pub(super) mode: Mode,
}

impl Client {
    /// Runs the whole conversation. Returns the stop reason of the last turn.
    pub(super) async fn talk(&mut self) -> Result<String, RequestFailure> {
        session::open(self).await?;
        let mut prompt = self.run.job.prompt.clone();
        loop {
            self.busy = true;
            self.tell(Activity::Working).await?;
            let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": prompt}]});
            let result = self.request("session/prompt", params).await;
            self.busy = false;
            let result = result?;
            session::usage(&result, &self.run.out).await.map_err(|_| RequestFailure::Cancelled)?;
            let stop = result["stopReason"].as_str().unwrap_or("end_turn").to_owned();
            if self.run.control.soft.is_cancelled() {
                return Err(RequestFailure::Cancelled);
            }
            if stop != "end_turn" {
                return Ok(stop);
            }
            while let Some(command) = self.run.control.commands.try_recv() {
                self.note(command);
            }
            if self.run.missed.is_empty() {
                if !self.run.job.stay {
                    return Ok(stop);
                }
                self.send_event(AgentEvent::TurnDone { text: self.updates.text.clone() }).await?;
                self.tell(Activity::Idle).await?;
                match self.pump(None).await {
                    Ok(_) => {}
                    // No turn was running: the regular end of a conversation.
                    Err(RequestFailure::Cancelled) => return Ok(stop),
                    Err(e) => return Err(e),
                }
            }
            let next = std::mem::take(&mut self.run.missed);
            prompt = next.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n\n");
            for (id, _) in next {
                self.send_event(AgentEvent::Delivered { id }).await?;
            }
            self.send_event(AgentEvent::Break).await?;
            self.updates.text.clear();
        }
    }

    pub(super) async fn send_event(&mut self, said: AgentEvent) -> Result<(), RequestFailure> {
        self.run.out.send(said).await.map_err(|_| RequestFailure::Cancelled)
    }

    async fn tell(&mut self, what: Activity) -> Result<(), RequestFailure> {
        self.run.out.state(what, ActivitySource::Report).await.map_err(|_| RequestFailure::Cancelled)
    }

    fn note(&mut self, command: Command) {
        match command {
            Command::Say { id, text } => self.run.missed.push((id, text)),
            Command::Unsay(id) => self.run.missed.retain(|(waits, _)| *waits != id),
            _ => {}
        }
    }

    /// Passes a line to the writer.
    async fn send(&mut self, line: String) -> Result<(), RequestFailure> {
        tokio::select! {
            biased;
            () = self.run.control.hard.cancelled() => Err(RequestFailure::Cancelled),
            () = sleep_until(self.wall) => Err(RequestFailure::Wall),
            sent = timeout(self.run.job.limits.idle, self.to.send(line)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(RequestFailure::Ended),
                Err(_) => Err(RequestFailure::Idle),
            }
        }
    }

    /// Sends a request and waits for the answer, serving the agent's requests meanwhile.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Result<Value, RequestFailure> {
        self.next += 1;
        let id = self.next;
        self.send(LINES.request(&id.into(), method, &params)).await?;
        self.pump(Some(id)).await
    }

    /// Serves the agent until the answer to `wanted` arrives, or (`None`) a message of the person.
    async fn pump(&mut self, wanted: Option<u64>) -> Result<Value, RequestFailure> {
        let limits = self.run.job.limits;
        let span = if self.session.is_empty() { FIRST.min(limits.idle) } else { limits.idle };
        let mut idle = Instant::now() + span;
        let mut give_up: Option<Instant> = None;
        loop {
            // An agent that waits for a person or for a message is not idle.
            let waits = wanted.is_none() || !self.pending.is_empty();
            let until = give_up.unwrap_or(if waits { self.wall } else { idle });
            tokio::select! {
                biased;
                () = self.run.control.hard.cancelled() => return Err(RequestFailure::Cancelled),
                () = self.run.out.closed() => return Err(RequestFailure::Cancelled),
                () = self.run.control.soft.cancelled(), if give_up.is_none() => {
                    if !self.busy {
                        return Err(RequestFailure::Cancelled);
                    }
                    // Its turn is cancelled regularly: its requests are answered, and it has the grace period.
                    give_up = Some(Instant::now() + limits.grace);
                    self.send(LINES.notification("session/cancel", &json!({"sessionId": self.session}))).await?;
                }
                () = sleep_until(self.wall) => return Err(RequestFailure::Wall),
                () = sleep_until(until) => {
                    return Err(if give_up.is_some() { RequestFailure::Cancelled } else { RequestFailure::Idle });
                }
                Some((id, answer)) = self.pending.next() => {
                    idle = Instant::now() + span;
                    self.send(LINES.answer(&id, answer)).await?;
                    if self.pending.is_empty() && self.busy {
                        self.tell(Activity::Working).await?;
                    }
                }
                Some(command) = self.run.control.commands.recv() => {
                    self.note(command);
                    if wanted.is_none() && !self.run.missed.is_empty() {
                        return Ok(Value::Null);
                    }
                }
                line = self.lines.next() => {
                    idle = Instant::now() + span;
                    match line {
                        Line::Text(line) => {
                            if let Some(answer) = self.incoming(&line, wanted).await? {
                                return answer.map_err(RequestFailure::Error);
                            }
                        }
                        Line::TooLong => {
                            self.send_event(AgentEvent::Note("one of its messages was too long and was dropped".into())).await?;
                        }
                        Line::TooMuch => return Err(RequestFailure::TooMuch),
                        Line::End => return Err(RequestFailure::Ended),
                    }
                }
            }
        }
    }

    /// Processes one line. `Some`: the awaited answer.
    async fn incoming(
        &mut self,
        line: &str,
        wanted: Option<u64>,
    ) -> Result<Option<Result<Value, Error>>, RequestFailure> {
        match Message::read_lenient(line) {
            Some(Message::Response { id, result }) => match id.as_u64() {
                Some(id) if Some(id) == wanted => return Ok(Some(result)),
                Some(id) if self.mode.is_asked(id) => {
                    self.mode.answered(result).map_err(RequestFailure::Error)?
                }
                // No request waits for it any more.
                _ => {}
            },
            Some(Message::Request { id, method, params }) => self.serve(id, &method, params).await?,
            Some(Message::Notification { method, params }) if method == "session/update" => {
                let mine = params["sessionId"].as_str().is_none_or(|s| s == self.session);
                if mine && let Some((method, params)) = self.mode.left(&self.session, &params["update"]) {
                    self.next += 1;
                    self.mode.asks(self.next);
                    self.send(LINES.request(&self.next.into(), method, &params)).await?;
                }
                if !self.muted && mine {
                    let mut out = Vec::new();
                    self.updates.take(&params["update"], &mut out);
                    for said in out {
                        self.send_event(said).await?;
                    }
                }
            }
            // Unknown notifications (above all those with a leading underscore), and lines that are not messages.
            _ => {}
        }
        Ok(None)
    }

    /// Answers a request of the agent.
    async fn serve(&mut self, id: Value, method: &str, params: Value) -> Result<(), RequestFailure> {
        let files = self.run.job.files.clone();
        let cwd = self.run.job.cwd.clone();
        if params["sessionId"].as_str().is_some_and(|s| !self.session.is_empty() && s != self.session) {
            // One process has one session: a request for another one must not get its rights.
            return self.send(LINES.answer(&id, Err(Error::new(INVALID_PARAMS, "unknown session")))).await;
        }
        if self.pending.len() >= PENDING {
            let busy = Error::new(BUSY, format!("{PENDING} requests are already waiting for answers"));
            return self.send(LINES.answer(&id, Err(busy))).await;
        }
        match (method, files) {
            ("session/request_permission", _) => self.permission(id, &params).await,
            ("fs/read_text_file", Some(files)) => {
                let missing = self.acp.missing_file;
                self.pending
                    .push(Box::pin(async move { (id, files::read(files, cwd, params, missing).await) }));
                Ok(())
            }
            ("fs/write_text_file", Some(files)) => {
                self.pending.push(Box::pin(async move { (id, files::write(files, cwd, params).await) }));
                Ok(())
            }
            _ => {
                let none = Error::new(METHOD_NOT_FOUND, format!("{method} is not supported here"));
                self.send(LINES.answer(&id, Err(none))).await
            }
        }
    }

    async fn permission(&mut self, id: Value, params: &Value) -> Result<(), RequestFailure> {
        let options: Vec<Choice> = params["options"].as_array().into_iter().flatten().map(option).collect();
        let mut out = Vec::new();
        let call = self.updates.call(&params["toolCall"], &mut out);
        let (tool, diffs) = call.map(|c| (c.tool.clone(), c.diffs.clone())).unwrap_or_default();
        for said in out {
            self.send_event(said).await?;
        }
        let title = params["toolCall"]["title"].as_str().unwrap_or_default();
        let shown = if tool.target.is_empty() { title.to_owned() } else { tool.target.clone() };
        let call = Some(tool.id.clone()).filter(|id| !id.is_empty());
        let what = Question::Permission {
            tool: Box::new(tool),
            shown,
            diffs,
            options: options.clone(),
            by_screen: false,
        };
        let answer = self.run.out.ask(call, what).await.map_err(|_| RequestFailure::Cancelled)?;
        self.tell(Activity::Blocked).await?;
        let soft = self.run.control.soft.clone();
        self.pending.push(Box::pin(async move {
            let chosen = tokio::select! {
                biased;
                () = soft.cancelled() => None,
                // No answer will come: the request is refused.
                answer = answer => {
                    let answer = answer.unwrap_or(Answer::Kind(ChoiceKind::RejectOnce));
                    choose(&options, &answer).cloned()
                }
            };
            (id, Ok(selected(chosen.as_ref())))
        }));
        Ok(())
    }
}

fn selected(option: Option<&Choice>) -> Value {
    match option {
        Some(o) => json!({"outcome": {"outcome": "selected", "optionId": o.id}}),
        None => json!({"outcome": {"outcome": "cancelled"}}),
    }
}

fn option(v: &Value) -> Choice {
    let text = |key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let kind = match v["kind"].as_str() {
        Some("allow_once") => ChoiceKind::AllowOnce,
        Some("allow_always") => ChoiceKind::AllowAlways,
        Some("reject_once") => ChoiceKind::RejectOnce,
        Some("reject_always") => ChoiceKind::RejectAlways,
        _ => ChoiceKind::Other,
    };
    Choice { id: text("optionId"), name: text("name"), kind }
}
