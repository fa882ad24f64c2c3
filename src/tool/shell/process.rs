//! The `process` tool: what runs beside the conversation.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;
use tiller_protocol::ToolVerb;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tiller_protocol::{Access, RuleArgument, ToolGrant, ToolInfo, ToolSet, ToolSpec, Touch};

use super::hints;
use crate::foreign::printed;
use crate::guard::no_masks;
use crate::output::{cut_middle, human};
use crate::shell::jobs::{Job, Kind};
use crate::shell::processes::end;
use crate::{Tool, ToolCx, ToolError, ToolOutput, schema, text};
use tiller_protocol::lock;
use tokio_util::sync::CancellationToken;

/// Lines of one page of `log`.
const PAGE: usize = 200;
/// Longest `wait`.
const LONGEST_WAIT: f64 = 300.0;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Poll,
    Log,
    Write,
    Kill,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    action: Action,
    id: Option<String>,
    text: Option<String>,
    enter: Option<bool>,
    close: Option<bool>,
    wait: Option<f64>,
    line: Option<usize>,
}

/// Looks after background processes.
pub struct Process;

const INFO: ToolInfo = ToolInfo {
    name: "process",
    set: ToolSet::Run,
    grant: ToolGrant::All,
    starts_agents: false,
    touch: Touch::Execute,
    rule: RuleArgument::Text,
    aliases: &["killshell", "bashoutput"],
    verb: ToolVerb::Process,
    target,
};

/// What its row shows.
fn target(args: &Value) -> String {
    let word = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", word("action"), word("id")).trim_end().to_owned()
}

#[async_trait]
impl Tool for Process {
    fn info(&self) -> ToolInfo {
        INFO
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "process".into(),
            description: include_str!("process.md").trim().into(),
            schema: schema::of::<Input>(),
        }
    }

    fn access(&self, args: &Value, cx: &ToolCx) -> Result<Vec<Access>, ToolError> {
        let input: Input = schema::read(args)?;
        if input.action != Action::List {
            find(&input, cx)?;
        }
        Ok(match input.action {
            // Looking needs no permission: the person allowed the process itself.
            Action::List | Action::Poll | Action::Log => vec![Access::Free],
            Action::Write => {
                needs_text(&input)?;
                no_masks(input.text.as_deref().unwrap_or_default())?;
                let job = find(&input, cx)?;
                let before = lock(&job.typed).judge(&cx.call_id);
                let folder = job.folder().unwrap_or_else(|| cx.workspace.root.clone()).display().to_string();
                let (process, command) = (job.id.clone(), job.command.clone());
                vec![Access::Input { process, command, before, text: whole(&input), folder }]
            }
            Action::Kill => vec![Access::Process { what: format!("kill {}", input.id.unwrap_or_default()) }],
        })
    }

    async fn run(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let input: Input = schema::read(&args)?;
        cx.state.shells.sweep();
        if input.action == Action::List {
            return Ok(ToolOutput::text(list(cx)));
        }
        let job = find(&input, cx)?;
        if job.exit.borrow().is_some() {
            job.settle().await;
        }
        let text = match input.action {
            Action::List => String::new(),
            Action::Poll => poll(&job, input.wait.unwrap_or(0.0), cx).await,
            Action::Log => log(&job, input.line, cx).await?,
            Action::Write => write(&job, &input, cx)?,
            Action::Kill => kill(&job, cx).await,
        };
        Ok(ToolOutput::text(text))
    }
}

fn find(input: &Input, cx: &ToolCx) -> Result<Arc<Job>, ToolError> {
    let jobs = cx.state.shells.jobs();
    let id = input.id.as_deref().unwrap_or_default();
    jobs.iter().find(|j| j.id == id).cloned().ok_or_else(|| {
        let ids: Vec<&str> = jobs.iter().map(|j| j.id.as_str()).collect();
        let there = if ids.is_empty() { "none".into() } else { ids.join(", ") };
        ToolError::Tell(match id {
            "" => format!("pass the id of a process; running: {there}"),
            id => format!("unknown process '{id}'; running: {there}"),
        })
    })
}

fn list(cx: &ToolCx) -> String {
    let jobs = cx.state.shells.jobs();
    if jobs.is_empty() {
        return "no processes".into();
    }
    let row = |j: &Arc<Job>| {
        let row = j.row();
        let news = if lock(&j.output.log).unread() { ", new output" } else { "" };
        let by = if j.agent == cx.agent { String::new() } else { format!(", of {}", j.agent) };
        format!("{}: {}{news}{by}: {}", row.id, row.state_words(), row.command)
    };
    jobs.iter().map(row).collect::<Vec<_>>().join("\n")
}

async fn poll(job: &Job, wait: f64, cx: &ToolCx) -> String {
    let wait = Duration::try_from_secs_f64(wait.clamp(0.0, LONGEST_WAIT)).unwrap_or_default();
    let news = async {
        let mut exit = job.exit.clone();
        loop {
            let notified = job.output.news.notified();
            if lock(&job.output.log).unread() || exit.borrow().is_some() {
                return;
            }
            tokio::select! {
                () = notified => {}
                _ = exit.wait_for(Option::is_some) => {}
                () = cx.cancel.cancelled() => return,
            }
        }
    };
    let _ = tokio::time::timeout(wait, news).await;
    if job.exit.borrow().is_some() {
        // It may have ended while this waited.
        job.settle().await;
        job.family.roots.iter().for_each(|root| cx.state.shells.forget(*root));
    }
    let (bytes, lost) = lock(&job.output.log).poll();
    let mut out = format!("{}: {}\n", job.id, job.row().state_words());
    if let Some(screen) = job.screen() {
        let shown = lock(&screen).visible();
        let waits = hints::someone_waits(&job.family.living());
        out.push_str(if bytes.is_empty() { "(screen unchanged)\n" } else { "(screen)\n" });
        let shown = bounded(text::clean(shown.as_bytes()), job, cx);
        out.push_str(&printed(shown, job.source(cx).as_deref()));
        if waits && job.exit.borrow().is_none() {
            out.push_str("\n[it waits for input]");
        }
    } else if bytes.is_empty() {
        out.push_str("(no new output)");
    } else {
        if lost > 0 {
            out.push_str(&format!("[{} before this are in the log only]\n", human(lost)));
        }
        let clean = text::clean(&bytes);
        let prompt = job.exit.borrow().is_none() && hints::prompt(&clean);
        out.push_str(&printed(bounded(clean, job, cx), job.source(cx).as_deref()));
        if prompt {
            out.push_str("\n[it seems to wait for input]");
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn bounded(text: String, job: &Job, cx: &ToolCx) -> String {
    let pointer = format!("use action log with id {} for the full output", job.id);
    cut_middle(&text, cx.limits.output_bytes, &pointer).unwrap_or(text)
}

async fn log(job: &Job, line: Option<usize>, cx: &ToolCx) -> Result<String, ToolError> {
    let log = match job.screen() {
        // What a terminal showed, not the bytes that drew it.
        Some(screen) => Err(lock(&screen).text().into_bytes()),
        None => lock(&job.output.log).source(),
    };
    let limit = cx.limits.output_bytes;
    let (id, source) = (job.id.clone(), job.source(cx));
    // Up to `spill_bytes` are read: off the async threads.
    crate::guard::blocking("process", move || {
        let bytes = match log {
            Err(bytes) => bytes,
            Ok(path) => {
                let mut bytes = Vec::new();
                std::fs::File::open(&path)
                    .and_then(|mut f| f.read_to_end(&mut bytes))
                    .map_err(|e| ToolError::Tell(format!("the log cannot be read: {e}")))?;
                bytes
            }
        };
        let clean = text::clean(text::decoded(&bytes).as_bytes());
        let lines: Vec<&str> = clean.lines().collect();
        let last = lines.len().saturating_sub(PAGE);
        let from = line.map_or(last, |l| l.saturating_sub(1)).min(lines.len());
        let to = (from + PAGE).min(lines.len());
        let head = format!("{id}: lines {}-{to} of {}\n", from + 1, lines.len());
        let page = lines[from..to].join("\n");
        let page = cut_middle(&page, limit, "narrow it with line").unwrap_or(page);
        Ok(head + &printed(page, source.as_deref()))
    })
    .await
}

/// Refuses a `write` without `text`, unless it closes the input: the text may stand in a field that is not read.
fn needs_text(input: &Input) -> Result<(), ToolError> {
    if input.text.is_some() || input.close == Some(true) {
        return Ok(());
    }
    Err(ToolError::Tell(
        "write needs text, the input for the process; an empty text sends only a newline".into(),
    ))
}

/// The text that is written to the process, with its line end.
fn whole(input: &Input) -> String {
    let mut text = input.text.clone().unwrap_or_default();
    if input.enter.unwrap_or(true) {
        text.push('\n');
    }
    text
}

fn write(job: &Job, input: &Input, cx: &ToolCx) -> Result<String, ToolError> {
    let tell = |text: &str| Err(ToolError::Tell(format!("{}: {text}", job.id)));
    needs_text(input)?;
    if job.exit.borrow().is_some() {
        return tell("it has ended");
    }
    // Held to the end: what is written is what was judged, after what it was judged with.
    let mut typed = lock(&job.typed);
    if !typed.is_as_judged(&cx.call_id) {
        return tell("other input was written to it in the meantime; read its output and write again");
    }
    let done = send(job, input)?;
    typed.wrote(&whole(input));
    Ok(done)
}

fn send(job: &Job, input: &Input) -> Result<String, ToolError> {
    let tell = |text: &str| Err(ToolError::Tell(format!("{}: {text}", job.id)));
    let mut bytes = input.text.clone().unwrap_or_default().into_bytes();
    let enter = input.enter.unwrap_or(true);
    match &mut *lock(&job.kind) {
        Kind::Leftover => tell("its input is empty; start it with background: true to write to it"),
        Kind::Pty { keys, .. } => {
            if enter {
                bytes.push(b'\r');
            }
            if input.close == Some(true) {
                bytes.push(4);
            }
            match keys.try_send(bytes) {
                Ok(()) => Ok(format!("{}: sent", job.id)),
                Err(_) => tell("it does not read its input"),
            }
        }
        Kind::Piped { input: pipe } => {
            if enter {
                bytes.push(b'\n');
            }
            let Some(open) = pipe else { return tell("its input was closed") };
            let mut done = 0;
            while done < bytes.len() {
                match open.write(&bytes[done..]) {
                    Ok(n) => done += n,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                        return tell(&format!(
                            "it stopped reading; {done} of {} bytes were written",
                            bytes.len()
                        ));
                    }
                    Err(e) => return tell(&format!("its input is closed: {e}")),
                }
            }
            if input.close == Some(true) {
                *pipe = None;
            }
            Ok(format!("{}: written", job.id))
        }
    }
}

async fn kill(job: &Job, cx: &ToolCx) -> String {
    let ended = job.exit.borrow().is_some();
    if let Some(there) = &job.there {
        return kill_there(job, there, ended).await;
    }
    let left = end::end(&job.family, cx.limits.grace, Some(&cx.hard)).await;
    let mut exit = job.exit.clone();
    let _ = tokio::time::timeout(Duration::from_secs(1), exit.wait_for(Option::is_some)).await;
    job.family.roots.iter().for_each(|root| cx.state.shells.forget(*root));
    match (ended, left) {
        (true, 0) => format!("{}: it had already ended", job.id),
        (false, 0) => format!("{}: killed", job.id),
        (_, n) => format!("{}: {n} processes could not be ended", job.id),
    }
}

/// How long a process elsewhere may take to end after it was asked to.
const END_THERE: Duration = Duration::from_secs(8);

async fn kill_there(job: &Job, end: &CancellationToken, ended: bool) -> String {
    end.cancel();
    let mut exit = job.exit.clone();
    match tokio::time::timeout(END_THERE, exit.wait_for(Option::is_some)).await {
        _ if ended => format!("{}: it had already ended", job.id),
        Ok(_) => format!("{}: killed", job.id),
        Err(_) => format!("{}: its terminal did not answer; it may still run there", job.id),
    }
}
