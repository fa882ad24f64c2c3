//! One run of a script: its calls are carried out and answered until it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tiller_protocol::tool::InnerCall;
use tiller_protocol::{ToolOutcome, ToolSet, ToolSpec, ToolVerb, Touch};
use tokio::sync::{RwLock, mpsc};
use tokio_util::sync::CancellationToken;

use super::approval::Verdict;
use super::child::{Child, SCRIPT};
use super::inner::{CallForScript, InnerReply};
use super::rpc::{Broken, Message, Reply, Run};
use super::stub;
use crate::files::draft::draft;
use crate::files::masks::OutputMask;
use crate::foreign::Connections;
use crate::shell::output::progress::Live;
use crate::{Tool, ToolCx, ToolError, foreign};

/// Calls of one run at the same time.
const PARALLEL: usize = 8;
/// Maximum bytes of the words about where text is from.
const FROM: usize = 300;
/// Time for the rest of the output after the end of a script.
const REST: Duration = Duration::from_secs(2);

/// Why a run is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// The script came to its end. `false`: by an error.
    Done(bool),
    /// The process ended without a word.
    Gone(i32),
    TimedOut,
    Stopped,
    /// It broke the rules of the connection.
    Broken(String),
    /// The second run made a call that was not shown.
    NotShown(String),
}

/// A run that is over.
#[derive(Debug)]
pub(super) struct Ran {
    pub end: RunEnd,
    pub made: u32,
    pub calls: Vec<InnerCall>,
    /// Where text of strangers came from that it read, each once.
    pub foreign: Vec<String>,
    pub took: Duration,
}

/// The tools of the session that scripts may call.
pub(super) struct Exposed {
    pub specs: Vec<ToolSpec>,
    tools: Vec<&'static dyn Tool>,
}

impl Exposed {
    pub(super) fn of(cx: &ToolCx) -> Self {
        let all = cx.ports.scripts().map(|scripts| scripts.tools()).unwrap_or_default();
        let tools: Vec<_> = stub::EXPOSED
            .iter()
            .filter_map(|(name, _)| all.iter().copied().find(|tool| tool.name() == *name))
            .collect();
        Self { specs: tools.iter().map(|tool| tool.spec()).collect(), tools }
    }

    /// Other names of the tools, in small letters and digits alone, each for one tool.
    pub(super) fn aliases(&self) -> Vec<(String, &'static str)> {
        let key = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        let mut all: Vec<(String, &'static str)> = Vec::new();
        for tool in self.tools.iter().filter(|tool| tool.name() != "mcp_call") {
            let info = tool.info();
            // A name that stands for several tools is left out.
            let only = |name: &&str| crate::aliases::ours(name).is_some_and(|ours| ours.len() == 1);
            let theirs = crate::aliases::theirs(info.name).filter(only);
            for name in [info.name].into_iter().chain(info.aliases.iter().copied()).chain(theirs) {
                all.push((key(name), info.name));
            }
        }
        // A name that two tools have means none of them, unless it is the name of one.
        let clash = |alias: &str, name: &str| {
            key(name) != alias && all.iter().any(|(other, of)| other == alias && *of != name)
        };
        let mut kept: Vec<_> = all.iter().filter(|(alias, name)| !clash(alias, name)).cloned().collect();
        kept.sort();
        kept.dedup();
        kept
    }

    /// True if this tool brings text of strangers.
    fn fetches(&self, tool: &str) -> bool {
        self.tools.iter().any(|t| t.name() == tool && t.touch() == Touch::Network)
    }

    /// Whether calls of this tool may run side by side.
    fn side_by_side(&self, tool: &str) -> bool {
        let info = self.tools.iter().find(|t| t.name() == tool).map(|t| t.info());
        info.is_some_and(|info| {
            info.touch == Touch::Read || info.touch == Touch::Network && info.set == ToolSet::Web
        })
    }
}

/// What a call of the script came to.
struct Answer {
    /// The tool; empty when none was called.
    tool: String,
    reply: Reply,
    row: Option<InnerCall>,
    /// It was not shown to the user.
    not_shown: Option<String>,
}

/// One run, while it lasts.
struct Running<'a> {
    cx: &'a ToolCx,
    exposed: &'a Exposed,
    /// Held for reading by calls that may run side by side, for writing by the others.
    gate: Arc<RwLock<()>>,
    made: u32,
    calls: Vec<InnerCall>,
    foreign: Vec<String>,
    /// Calls that are not answered.
    open: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// Ends them with the run.
    stop: CancellationToken,
}

/// Runs `code` in `child` to its end.
pub(super) async fn run(code: &str, keep: bool, child: &mut Child, exposed: &Exposed, cx: &ToolCx) -> Ran {
    let began = Instant::now();
    let connections = Connections::now(cx);
    let mark = format!("\u{1}{}\u{1}", cx.state.shells.fresh_marker());
    child.mask = child.mask.take().or_else(|| OutputMask::of(code, cx));
    child.watch.attend(&cx.witness);
    let live = Arc::new(Live::masked(child.mask.clone(), cx));
    cx.run.script.begin();
    child.out.begin(&mark, &live);
    child.err.begin(&mark, &live);
    let order = Run { run: code, name: SCRIPT, mark: &mark, keep };
    let sent = child.to.send(serde_json::to_string(&order).unwrap_or_default()).await;
    let mut running = Running {
        cx,
        exposed,
        gate: Arc::default(),
        made: 0,
        calls: Vec::new(),
        foreign: std::mem::take(&mut child.foreign),
        open: FuturesUnordered::new(),
        stop: cx.cancel.child_token(),
    };
    let end = match sent {
        Ok(()) => tokio::select! {
            end = running.until_end(child) => end,
            // It does not end.
            () = live.send_when_due() => RunEnd::Stopped,
        },
        Err(_) => RunEnd::Gone(-1),
    };
    if matches!(end, RunEnd::Done(_) | RunEnd::Gone(_)) {
        child.out.wait(REST).await;
        child.err.wait(REST).await;
    }
    child.out.hush();
    child.err.hush();
    match end {
        RunEnd::Done(_) | RunEnd::Gone(_) => running.end_calls().await,
        // Together: the script must not run on while a command of it takes its time.
        _ => drop(tokio::join!(running.end_calls(), child.stop(cx))),
    }
    let Running { made, mut calls, mut foreign, .. } = running;
    connections.source("", cx).into_iter().for_each(|from| note(&mut foreign, from));
    // Its variables may hold such text in the next run.
    child.foreign.clone_from(&foreign);
    calls.sort_by_key(|call| call.number);
    Ran { end, made, calls, foreign, took: began.elapsed() }
}

impl Running<'_> {
    async fn until_end(&mut self, child: &mut Child) -> RunEnd {
        let limit = self.cx.limits.code.time;
        let began = Instant::now();
        let mut listens = true;
        let to = child.to.clone();
        loop {
            // Waiting for the user's answer is not time of the script.
            let until = began + limit + child.watch.paused();
            tokio::select! {
                biased;
                () = self.cx.cancel.cancelled() => return RunEnd::Stopped,
                Some(mut answer) = self.open.next(), if !self.open.is_empty() => {
                    if let Some(row) = answer.row {
                        self.calls.push(row);
                    }
                    if let Some(call) = answer.not_shown {
                        return RunEnd::NotShown(call);
                    }
                    self.take_frame(&answer.tool, &mut answer.reply);
                    let line = serde_json::to_string(&answer.reply).unwrap_or_default();
                    if let Some(stuck) = send(&to, line, self.cx, until).await {
                        return stuck;
                    }
                }
                message = child.from.recv(), if listens && self.open.len() < PARALLEL => match message {
                    Some(Ok(Message::Done { done })) => return RunEnd::Done(done),
                    Some(Ok(Message::Call { id, tool, args })) => {
                        let call = self.call(id, tool, args);
                        self.open.push(call);
                    }
                    Some(Err(Broken::TooLong)) => {
                        return RunEnd::Broken("it sent a message that is too long for a call".into());
                    }
                    Some(Err(Broken::NotJson)) => {
                        return RunEnd::Broken("it wrote something else than calls to its connection".into());
                    }
                    // The process may come to its end without it.
                    Some(Err(Broken::Closed)) | None => listens = false,
                },
                exit = child.leader.ended(), if !listens || child.from.is_empty() => {
                    return last_word(child, exit.code).await;
                }
                () = tokio::time::sleep_until(until.into()) => {
                    if began + limit + child.watch.paused() <= Instant::now() {
                        return RunEnd::TimedOut;
                    }
                }
            }
        }
    }

    /// A script parses data: it gets text of strangers without the frame, which is around all that the script prints instead.
    fn take_frame(&mut self, tool: &str, reply: &mut Reply) {
        let framed = foreign::unframed(&reply.text).filter(|(_, from)| {
            // A command can print a frame of its own making, whose words would stand outside of the data.
            from.len() <= FROM && (tool != "terminal" || from.starts_with(foreign::NETWORK))
        });
        match framed {
            Some((text, from)) => {
                note(&mut self.foreign, from.to_owned());
                reply.text = text;
            }
            None if self.exposed.fetches(tool) && foreign::has_frame(&reply.text) => {
                note(&mut self.foreign, "a page or a server".into())
            }
            None => {}
        }
    }

    /// Stops the calls that still run, and waits for their ends, so that their rows are complete and no command runs on.
    async fn end_calls(&mut self) {
        self.stop.cancel();
        while let Some(answer) = self.open.next().await {
            self.calls.extend(answer.row);
        }
    }

    /// The future that carries a call out.
    fn call(&mut self, id: u64, tool: String, args: Value) -> BoxFuture<'static, Answer> {
        let most = self.cx.limits.code.calls;
        let refused = |text: String| -> BoxFuture<'static, Answer> {
            let reply = Reply { id, ok: false, text, exit: None };
            Box::pin(std::future::ready(Answer { tool: String::new(), reply, row: None, not_shown: None }))
        };
        if let Err(ToolError::Tell(text)) = stub::check(&self.exposed.specs, &tool, &args) {
            return refused(text);
        }
        if self.made >= most {
            return refused(format!("the script has made its {most} calls; it can make no more"));
        }
        self.made += 1;
        let number = self.made;
        let (mut cx, gate) = (self.cx.clone(), Arc::clone(&self.gate));
        cx.cancel = self.stop.clone();
        let side_by_side = self.exposed.side_by_side(&tool);
        Box::pin(async move {
            let _turn = match side_by_side {
                true => (Some(gate.read().await), None),
                false => (None, Some(gate.write().await)),
            };
            if cx.cancel.is_cancelled() {
                let reply = Reply { id, ok: false, text: "the script is over".into(), exit: None };
                return Answer { tool: String::new(), reply, row: None, not_shown: None };
            }
            carry_out(id, CallForScript { number, most, tool, args, consent: super::CallConsent::Rules }, &cx)
                .await
        })
    }
}

/// What the process said before its end, which may still be on its way. Something that it started may hold the connection.
async fn last_word(child: &mut Child, code: i32) -> RunEnd {
    let word = async {
        loop {
            match child.from.recv().await {
                Some(Ok(Message::Done { done })) => return RunEnd::Done(done),
                Some(Ok(Message::Call { .. })) => {}
                _ => return RunEnd::Gone(code),
            }
        }
    };
    tokio::time::timeout(REST, word).await.unwrap_or(RunEnd::Gone(code))
}

/// Sends a line to the script. `Some`: the run is over, since the script does not read.
async fn send(to: &mpsc::Sender<String>, line: String, cx: &ToolCx, until: Instant) -> Option<RunEnd> {
    tokio::select! {
        // An error: the process is ending.
        _ = to.send(line) => None,
        () = cx.cancel.cancelled() => Some(RunEnd::Stopped),
        () = tokio::time::sleep_until(until.into()) => Some(RunEnd::TimedOut),
    }
}

/// One call, as the approval of the whole script says.
async fn carry_out(id: u64, mut call: CallForScript, cx: &ToolCx) -> Answer {
    let approval = Arc::clone(&cx.run.script);
    let number = call.number;
    let reply = |ok: bool, text: String, exit: Option<i32>| Reply { id, ok, text, exit };
    let name = call.tool.clone();
    let answer =
        |reply: Reply, row: Option<InnerCall>| Answer { tool: name.clone(), reply, row, not_shown: None };
    match approval.judge(&call.tool, &call.args) {
        Verdict::Repeat(result) => {
            let row = InnerCall { number, ..result.row.clone() };
            let ok = succeeded(&row, result.exit);
            return answer(reply(ok, result.text, result.exit), Some(row));
        }
        Verdict::Make(consent) => call.consent = consent,
    }
    let (tool, args) = (call.tool.clone(), call.args.clone());
    let made = match cx.ports.scripts() {
        Some(scripts) => scripts.call(cx, call).await,
        None => Err("no tools can be called here".into()),
    };
    match made {
        Err(why) => answer(reply(false, why, None), None),
        Ok(InnerReply::Ran(result)) => {
            approval.ran(&tool, &args, &result);
            let ok = succeeded(&result.row, result.exit);
            answer(reply(ok, result.text, result.exit), Some(result.row))
        }
        Ok(InnerReply::Waits(waits)) => {
            let row = waits.row.clone();
            let what = format!("{} {}", row.verb, row.target);
            if approval.record(&tool, &args, waits) {
                let exit = (row.verb == ToolVerb::Shell).then_some(0);
                lay_over(&tool, &args, cx).await;
                return answer(reply(true, String::new(), exit), Some(row));
            }
            let text = "this call was not among those that the user was shown".to_owned();
            Answer {
                not_shown: Some(what.trim_end().to_owned()),
                ..answer(reply(false, text, None), Some(row))
            }
        }
    }
}

/// Lays what a recorded call would write over the files that later calls read. Where that is not possible they read what is
/// there: the run after the answer makes other calls then, and those are asked about.
async fn lay_over(tool: &str, args: &Value, cx: &ToolCx) {
    let laid = match cx.run.script.drafts_to_write() {
        Ok(drafts) => draft(tool, args, drafts, cx).await,
        Err(e) => Err(ToolError::Tell(e.to_string())),
    };
    if let Err(error) = laid {
        tracing::warn!(%error, tool, "what a call of a script would write is not known");
    }
}

fn note(foreign: &mut Vec<String>, from: String) {
    if !foreign.contains(&from) {
        foreign.push(from);
    }
}

/// Whether the script gets a result. A command that failed is one: its exit code says it.
fn succeeded(row: &InnerCall, exit: Option<i32>) -> bool {
    row.outcome == Some(ToolOutcome::Ok) || row.outcome == Some(ToolOutcome::Error) && exit.is_some()
}
