//! The mode without a screen: one process for each turn, whose output is read line by line.
//!
//! A message that arrives during a turn is the next turn, in the program's own session, where it can resume one.

mod claude;
mod codex;
mod gemini;
mod opencode;
mod text;

use std::time::Duration;

use tiller_protocol::Usage;
use tiller_tool::shell::Exit;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until, timeout};

use super::adapter::{Format, Headless, PromptBy};
use super::control::Command;
use super::event::{AgentEvent, Ending, Status};
use super::job::Job;
use super::pipes::{self, Line, PipedProgram};
use super::run::{Run, fill};
use tiller_protocol::Transport;
use tiller_protocol::{Activity, ActivitySource};

/// Time limit from its last record to its exit.
const LINGER: Duration = Duration::from_secs(10);

/// Parses the output of one program.
pub(crate) trait Records: Send {
    /// Parses one line. Its events go to `out`; unknown records are ignored.
    fn line(&mut self, line: &str, out: &mut Vec<AgentEvent>);
    /// Whether it reported the end of the turn.
    fn over(&self) -> bool;
    /// The report of the turn, when the program has exited with this code (`None`: Tiller ended it).
    fn report(&mut self, exit: Option<i32>) -> TurnReport;
}

/// The turn according to the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnReport {
    /// Number of parsed records.
    pub records: u64,
    /// The reported end of the turn: success, or the reason of the failure.
    pub over: Option<Result<(), String>>,
    /// The answer.
    pub text: String,
    /// Its session.
    pub session: Option<String>,
}

pub(crate) fn arguments(h: &Headless, job: &Job, prompt: &str, session: Option<&str>) -> Vec<String> {
    let none = &Vec::new();
    let resume = if session.is_some() { &h.resume } else { none };
    let model = if job.model.is_some() { &h.model } else { none };
    let how = if job.auto_approve { &h.auto } else { h.careful.as_ref().unwrap_or(none) };
    let parts = [&h.args, resume, &h.options, model, how];
    let mut args = fill(&parts.into_iter().flatten().cloned().collect::<Vec<_>>(), job, prompt, session);
    args.extend(job.denied_arguments());
    args.extend(fill(&h.last, job, prompt, session));
    args
}

/// `counted` are the recorded tokens of the session, since some programs report its running total.
fn reader(h: &Headless, counted: Usage) -> Box<dyn Records> {
    match h.format {
        Format::Claude => Box::<claude::Claude>::default(),
        Format::Codex => Box::new(codex::Codex::going_on(counted)),
        Format::Gemini => Box::<gemini::Gemini>::default(),
        Format::Opencode => Box::<opencode::Opencode>::default(),
        Format::Text => Box::new(text::Text::new(h)),
    }
}

/// A reader by the name of its format; `None`: the name is unknown.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn reader_for_tests(format: &str) -> Option<Box<dyn Records>> {
    // Their patterns take long to compile.
    static ADAPTERS: std::sync::LazyLock<super::adapter::Adapters> =
        std::sync::LazyLock::new(|| super::adapter::Adapters::new(&[]));
    let program = if format == "text" { "aider" } else { format };
    let headless = ADAPTERS.get(program).and_then(|a| a.headless.clone())?;
    Some(reader(&headless, Usage::default()))
}

/// The result of a turn.
struct Turn {
    ending: Ending,
    session: Option<String>,
}

/// Runs turn after turn, until no message waits.
pub(crate) async fn run(mut run: Run) -> Ending {
    let Some(h) = run.job.adapter.headless.clone() else {
        return Ending::new(Status::Failed, "its adapter has no headless section");
    };
    let wall = Instant::now() + run.job.limits.wall;
    let mut prompt = run.job.prompt.clone();
    let mut session = run.job.resume.session.clone();
    loop {
        let turn = turn(&mut run, &h, &prompt, wall).await;
        session = turn.session.or(session);
        let can = session.is_some() && !h.resume.is_empty();
        if turn.ending.status != Status::Done || !can || run.out_of_reach() {
            run.miss_all(if can {
                "it ended first"
            } else {
                "this program does not accept a second message"
            })
            .await;
            return turn.ending;
        }
        if run.missed.is_empty() && run.job.stay {
            let text = turn.ending.text.clone();
            if run.out.send(AgentEvent::TurnDone { text }).await.is_err()
                || run.out.state(Activity::Idle, ActivitySource::Report).await.is_err()
                || !run.wait(wall).await
            {
                run.miss_all("it ended first").await;
                return turn.ending;
            }
        }
        run.collect();
        if run.missed.is_empty() {
            run.miss_all("it ended first").await;
            return turn.ending;
        }
        let next = std::mem::take(&mut run.missed);
        prompt = next.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n\n");
        run.launch.args = arguments(&h, &run.job, &prompt, session.as_deref());
        if run.launch.args.iter().any(|a| a.len() > super::run::ARGUMENT) {
            run.missed = next;
            run.miss_all("it is too long for this program's command line").await;
            return turn.ending;
        }
        for (id, _) in next {
            let _ = run.out.send(AgentEvent::Delivered { id }).await;
        }
        let _ = run.out.send(AgentEvent::Break).await;
    }
}

impl Run {
    fn out_of_reach(&self) -> bool {
        self.control.soft.is_cancelled() || self.control.hard.is_cancelled()
    }

    /// Takes waiting messages.
    fn collect(&mut self) {
        while let Some(command) = self.control.commands.try_recv() {
            self.note(command);
        }
    }

    fn note(&mut self, command: Command) {
        match command {
            Command::Say { id, text } => self.missed.push((id, text)),
            Command::Unsay(id) => self.missed.retain(|(waits, _)| *waits != id),
            _ => {}
        }
    }

    /// Waits for a message. False: the run is to end.
    async fn wait(&mut self, wall: Instant) -> bool {
        loop {
            tokio::select! {
                biased;
                () = self.control.soft.cancelled() => return false,
                () = self.control.hard.cancelled() => return false,
                () = self.out.closed() => return false,
                () = sleep_until(wall) => return false,
                command = self.control.commands.recv() => match command {
                    Some(command) => self.note(command),
                    None => return false,
                }
            }
            if !self.missed.is_empty() {
                return true;
            }
        }
    }
}

/// Note about a line that was dropped.
const TOO_LONG: &str = "a line of its output was too long and was dropped";
/// Maximum number of events that are sent together.
const TOGETHER: usize = 64;

/// Why reading stopped.
enum ReadEnd {
    /// The end of its output.
    End,
    /// Its last record, with its output still open.
    Over,
    Cancelled,
    Wall,
    Idle,
    TooMuch,
}

async fn turn(run: &mut Run, h: &Headless, prompt: &str, wall: Instant) -> Turn {
    let limits = run.job.limits;
    let started = pipes::start(&run.host, run.launch.clone(), limits);
    let PipedProgram { mut hosted, mut stdin, mut lines, errors } = match started {
        Ok(piped) => piped,
        Err(e) => {
            let why = format!("{} could not be started: {e}", run.launch.program.display());
            return Turn { ending: Ending::new(Status::Failed, why), session: None };
        }
    };
    let mut records = reader(h, run.job.resume.usage);
    let given = if h.prompt == PromptBy::Stdin { prompt.to_owned() } else { String::new() };
    // Ends when the text is written or the program is gone. Many programs begin only when the pipe is closed.
    let writer = tokio::spawn(async move {
        let _ = stdin.write_all(given.as_bytes()).await;
    });
    let begun = run.out.send(AgentEvent::Started { pid: hosted.pid, transport: Transport::Headless }).await;
    let stop = if begun.is_err() || run.out.state(Activity::Working, ActivitySource::Report).await.is_err() {
        ReadEnd::Cancelled
    } else {
        read(run, &mut lines, &mut *records, wall).await
    };
    let exit = match stop {
        ReadEnd::End | ReadEnd::Over => tokio::select! {
            biased;
            () = run.control.hard.cancelled() => None,
            () = run.control.soft.cancelled() => None,
            exit = timeout(LINGER, hosted.ended()) => exit.ok(),
        },
        _ => hosted.exited(),
    };
    let excess = hosted.excess();
    hosted.end(limits.grace, &run.control.hard).await;
    writer.abort();
    let report = records.report(exit.map(|e| e.code));
    let session = report.session.clone();
    let errors = errors.text().await;
    let mut ending = judge(stop, exit, report, &errors, run);
    ending.exit = exit.map(|e| e.code);
    Turn { ending: run.bounded(ending, excess).await, session }
}

async fn read(run: &mut Run, lines: &mut pipes::Lines, records: &mut dyn Records, wall: Instant) -> ReadEnd {
    let mut out = Vec::new();
    let mut idle = Instant::now() + run.job.limits.idle;
    let mut over: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            () = run.control.hard.cancelled() => return ReadEnd::Cancelled,
            () = run.control.soft.cancelled() => return ReadEnd::Cancelled,
            () = run.out.closed() => return ReadEnd::Cancelled,
            () = sleep_until(wall) => return ReadEnd::Wall,
            () = sleep_until(over.unwrap_or(idle)) => {
                return if over.is_some() { ReadEnd::Over } else { ReadEnd::Idle };
            }
            Some(command) = run.control.commands.recv() => run.note(command),
            line = lines.next() => {
                idle = Instant::now() + run.job.limits.idle;
                match line {
                    Line::Text(line) => records.line(&line, &mut out),
                    Line::TooLong => out.push(AgentEvent::Note(TOO_LONG.into())),
                    Line::TooMuch => return ReadEnd::TooMuch,
                    Line::End => return ReadEnd::End,
                }
                // Records that arrived together are passed on together, so that many short lines cause few messages.
                while out.len() < TOGETHER {
                    match lines.ready() {
                        Some(Line::Text(line)) => records.line(&line, &mut out),
                        Some(_) => out.push(AgentEvent::Note(TOO_LONG.into())),
                        None => break,
                    }
                    join_last(&mut out);
                }
                for said in out.drain(..) {
                    if let AgentEvent::Usage { usage, .. } = &said {
                        run.job.resume.usage.add(usage);
                    }
                    if run.out.send(said).await.is_err() {
                        return ReadEnd::Cancelled;
                    }
                }
                // Some programs continue after what looked like the end.
                over = records.over().then(|| over.unwrap_or_else(|| Instant::now() + LINGER));
            }
        }
    }
}

/// Joins consecutive pieces of text.
fn join_last(out: &mut Vec<AgentEvent>) {
    if let [.., AgentEvent::Text(_), AgentEvent::Text(_)] = out.as_slice()
        && let Some(AgentEvent::Text(last)) = out.pop()
        && let Some(AgentEvent::Text(before)) = out.last_mut()
    {
        before.push_str(&last);
    }
}

/// The ending from everything that is known. A reported success counts only if the exit agrees.
fn judge(stop: ReadEnd, exit: Option<Exit>, report: TurnReport, errors: &str, run: &Run) -> Ending {
    let adapter = &run.job.adapter;
    let said = |why: &str| {
        let all = format!("{why}\n{errors}");
        let login = adapter.auth.missing.iter().any(|p| p.found(&all));
        let fix = if login { format!("; it is not logged in: {}", adapter.auth.fix) } else { String::new() };
        format!("{}{fix}", why.trim())
    };
    let with_errors = |why: &str| {
        let last: Vec<&str> = errors.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        if last.is_empty() { said(why) } else { said(&format!("{why}: {}", last.join("\n"))) }
    };
    let (status, why) = match (stop, report.over, exit.map(|e| e.code)) {
        (ReadEnd::Cancelled, ..) => (Status::Cancelled, "stopped".to_owned()),
        (ReadEnd::Wall, ..) => {
            (Status::TimedOut, format!("it ran for longer than {} s", run.job.limits.wall.as_secs()))
        }
        (ReadEnd::Idle, ..) => {
            (Status::TimedOut, format!("it was silent for {} s", run.job.limits.idle.as_secs()))
        }
        (ReadEnd::TooMuch, ..) => {
            (Status::Failed, format!("it wrote more than {} MB", run.job.limits.output >> 20))
        }
        (_, _, None) if run.control.soft.is_cancelled() => (Status::Cancelled, "stopped".into()),
        (_, Some(Err(why)), _) => (Status::Failed, said(&why)),
        // It did its work and did not exit: its processes were ended.
        (_, Some(Ok(())), None | Some(0)) => (Status::Done, String::new()),
        (_, _, Some(code)) if code > 128 => {
            (Status::Crashed, with_errors(&format!("it was ended by signal {}", code - 128)))
        }
        (_, Some(Ok(())), Some(code)) => {
            (Status::Failed, with_errors(&format!("it reported success but ended with exit code {code}")))
        }
        (_, None, Some(0)) if report.records == 0 => {
            (Status::Failed, with_errors("it ended without readable output"))
        }
        (_, None, Some(0)) => (Status::Failed, with_errors("it ended without reporting a result")),
        (_, None, Some(code)) => (Status::Failed, with_errors(&format!("it ended with exit code {code}"))),
        (_, None, None) => (Status::Crashed, with_errors("it closed its output but did not end")),
    };
    Ending { status, text: report.text, exit: None, why, files: Vec::new() }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
