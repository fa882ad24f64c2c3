//! Starts a run, and reports its ending.

use std::path::{Path, PathBuf};

use tiller_tool::shell::{Host, Launch, find_program, own_folder};
use tokio::sync::mpsc;

use super::control::{Command, Control, DriverControl};
use super::environment::{environment, withheld};
use super::event::{AgentEvent, Ending, Status};
use super::job::{Job, StartError};
use super::out::Out;
use super::{acp, headless, pty};
use tiller_protocol::Transport;

/// Capacity of the event channel: enough for a burst, small enough to slow down a flood.
const ROOM: usize = 256;

/// Maximum bytes of one argument: the system allows 128 KiB.
pub(crate) const ARGUMENT: usize = 120_000;

/// Starts `job`. Must be called in a runtime; takes a few milliseconds. The last event of the receiver is
/// [`AgentEvent::Ended`], exactly once. Dropping the receiver, or every [`Control`], ends the program.
///
/// # Errors
/// When it cannot be started, with what to do.
pub fn start(mut job: Job, host: &Host) -> Result<(Control, mpsc::Receiver<AgentEvent>), StartError> {
    if !job.cwd.is_dir() {
        let why = "there is no such folder".into();
        return Err(StartError::Folder { folder: job.cwd, why });
    }
    if host.confines() {
        job.adapter = std::sync::Arc::new((*job.adapter).clone().in_sandbox());
    }
    let file = careful_file(&mut job)?;
    let (transport, launch) = choose(&job)?;
    let (control, driver) = Control::new();
    let (tx, rx) = mpsc::channel(ROOM);
    let given: Vec<String> = launch.env.iter().map(|(name, _)| name.clone()).collect();
    let (lookup, adapter) = (job.lookup.clone(), job.adapter.clone());
    // Over ACP the program itself reports its abilities.
    if job.resume.session.is_some() && !resumes(&job, transport) && job.begin_fresh() {
        let _ = tx.try_send(AgentEvent::Anew);
    }
    let out = Out::new(tx.clone(), driver.hard.clone());
    let run = Run { job, launch, host: host.clone(), out, control: driver, missed: Vec::new() };
    let task = match transport {
        Transport::Headless => tokio::spawn(headless::run(run)),
        Transport::Acp => tokio::spawn(acp::run(run)),
        Transport::Pty => {
            let (run, view) = pty::start(run)?;
            control.show(view);
            tokio::spawn(run)
        }
    };
    // Owned by the run: it ends after the driver, and waits only for room in the channel.
    tokio::spawn(async move {
        let _file = file;
        let mut ending = task.await.unwrap_or_else(|e| {
            tracing::error!(error = %e, "the driver of an external agent failed");
            Ending::new(Status::Crashed, "an internal error ended it; see the log")
        });
        if matches!(ending.status, Status::Failed | Status::Crashed | Status::TimedOut)
            && let Some(more) = withheld(&ending.why, &given, &lookup, &adapter)
        {
            ending.why = format!("{}. {more}", ending.why.trim_end_matches('.'));
        }
        let _ = tx.send(AgentEvent::Ended(ending)).await;
    });
    Ok((control, rx))
}

/// Name of the file that makes the program ask.
const CAREFUL: &str = "careful.toml";

/// Writes the adapter's file where the program must ask, into a folder that is removed with the run; after a kill, by a
/// later program.
fn careful_file(job: &mut Job) -> Result<Option<tempfile::TempDir>, StartError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let over_acp = job.adapter.acp.is_some() && matches!(job.transport, None | Some(Transport::Acp));
    let wanted = !job.auto_approve || over_acp;
    let Some(text) = job.adapter.careful_file.clone().filter(|_| wanted) else { return Ok(None) };
    // The sandbox has a /tmp of its own; what lies elsewhere is seen there, too.
    let made = own_folder::make_in("careful", Path::new("/var/tmp")).or_else(|_| own_folder::make("careful"));
    let written = made.and_then(|folder| {
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(folder.path().join(CAREFUL));
        file.and_then(|mut file| file.write_all(text.as_bytes())).map(|()| folder)
    });
    let refused = |e: std::io::Error| StartError::System {
        program: job.adapter.title.clone(),
        why: format!("the settings file that makes it ask could not be written: {e}"),
    };
    let folder = written.map_err(refused)?;
    let path = folder.path().join(CAREFUL);
    job.adapter = std::sync::Arc::new((*job.adapter).clone().with_file(&path.display().to_string()));
    Ok(Some(folder))
}

/// Everything that a driver needs.
pub(crate) struct Run {
    pub job: Job,
    pub launch: Launch,
    pub host: Host,
    pub out: Out,
    pub control: DriverControl,
    /// Messages that were received and not delivered.
    pub missed: Vec<(u64, String)>,
}

impl Run {
    /// Reports messages that were not delivered, and refuses later ones.
    pub(crate) async fn miss_all(&mut self, why: &str) {
        self.control.commands.close();
        while let Some(command) = self.control.commands.try_recv() {
            if let Command::Say { id, text } = command {
                self.missed.push((id, text));
            }
        }
        for (id, _) in std::mem::take(&mut self.missed) {
            let _ = self.out.send(AgentEvent::Missed { id, why: why.into(), tried: false }).await;
        }
    }
}

impl Run {
    /// Adds that it exceeded the machine's limits: as the reason of the ending, or as a note when it continued.
    pub(crate) async fn bounded(&self, mut ending: Ending, excess: Option<String>) -> Ending {
        let Some(excess) = excess else { return ending };
        if matches!(ending.status, Status::Failed | Status::Crashed | Status::TimedOut) {
            ending.why = excess;
        } else {
            let _ = self.out.send(AgentEvent::Note(excess)).await;
        }
        ending
    }
}

impl Ending {
    pub(crate) fn new(status: Status, why: impl Into<String>) -> Self {
        Self { status, text: String::new(), exit: None, why: why.into(), files: Vec::new() }
    }
}

/// The transport, and the command to run for it.
fn choose(job: &Job) -> Result<(Transport, Launch), StartError> {
    let preferred = match job.transport {
        Some(one) => vec![one],
        None => vec![Transport::Acp, Transport::Headless, Transport::Pty],
    };
    let mut first = None;
    for transport in preferred {
        match plan(job, transport) {
            Ok(launch) => return Ok((transport, launch)),
            // That it must not be started is more helpful than that the transport is missing.
            Err(e @ StartError::NoAsking { .. }) if !matches!(first, Some(StartError::NoAsking { .. })) => {
                first = Some(e);
            }
            Err(e) => first = first.or(Some(e)),
        }
    }
    // When the program itself is missing, that is reported.
    let own = &job.adapter.program;
    let env = environment(job, []);
    if find_program(&own.command, &env).is_none() {
        return Err(missing(&own.command, &own.install));
    }
    Err(first.unwrap_or_else(|| missing(&own.command, &own.install)))
}

fn missing(program: &str, hint: &str) -> StartError {
    StartError::Missing { program: program.into(), hint: hint.into() }
}

/// Whether a command line can name a session to continue.
fn resumes(job: &Job, transport: Transport) -> bool {
    let adapter = &job.adapter;
    match transport {
        Transport::Acp => true,
        Transport::Headless => adapter.headless.as_ref().is_some_and(|h| !h.resume.is_empty()),
        Transport::Pty => adapter.pty.as_ref().is_some_and(|p| !p.resume.is_empty()),
    }
}

fn plan(job: &Job, transport: Transport) -> Result<Launch, StartError> {
    let mut job = job.clone();
    if job.resume.session.is_some() && !resumes(&job, transport) {
        job.begin_fresh();
    }
    let job = &job;
    let adapter = &job.adapter;
    let none = || StartError::NoTransport {
        agent: adapter.title.clone(),
        transport,
        why: "its adapter has no such section".into(),
    };
    let own = &adapter.program;
    // With these variables it asks over each transport.
    let asks = |how: bool, missing: &str| match job.auto_approve || how || !adapter.env.careful.is_empty() {
        true => Ok(()),
        false => Err(StartError::NoAsking {
            agent: adapter.title.clone(),
            transport,
            why: format!(
                "the permission mode requires approvals, but its adapter does not define how to make it ask; \
                 add {missing}, or choose full mode"
            ),
        }),
    };
    let (command, install, args, env) = match transport {
        Transport::Headless => {
            let h = adapter.headless.as_ref().ok_or_else(none)?;
            asks(h.careful.is_some(), "`careful` to [headless]")?;
            let args = headless::arguments(h, job, &job.prompt, job.resume.session.as_deref());
            (&own.command, &own.install, args, environment(job, []))
        }
        Transport::Acp => {
            let a = adapter.acp.as_ref().ok_or_else(none)?;
            asks(!a.ask_mode.is_empty(), "`ask_mode` to [acp]")?;
            // Here it asks in every profile: where everything is allowed, deny rules and the danger list answer.
            let args = a.args.iter().chain(&a.careful).cloned().collect();
            let env = environment(job, adapter.env.careful.iter().chain(&a.set));
            (&a.command, a.install.as_ref().unwrap_or(&own.install), args, env)
        }
        Transport::Pty => {
            let p = adapter.pty.as_ref().ok_or_else(none)?;
            asks(p.careful.is_some(), "`careful` to [pty]")?;
            (&own.command, &own.install, pty::arguments(p, job), environment(job, []))
        }
    };
    if args.iter().any(|a| a.len() > ARGUMENT) {
        let why =
            "its command line does not accept messages above 120 KB; put the message into a file".into();
        return Err(StartError::NoTransport { agent: adapter.title.clone(), transport, why });
    }
    let program: PathBuf = find_program(command, &env).ok_or_else(|| missing(command, install))?;
    Ok(Launch { program, args, env, folder: job.cwd.clone() })
}

/// Replaces the placeholders.
pub(crate) fn fill(args: &[String], job: &Job, prompt: &str, session: Option<&str>) -> Vec<String> {
    let fill = |arg: &String| {
        // In one pass: a prompt that contains `{model}` stays unchanged.
        let mut out = String::with_capacity(arg.len());
        let mut rest = arg.as_str();
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let values = [
                ("{prompt}", prompt),
                ("{model}", job.model.as_deref().unwrap_or_default()),
                ("{session}", session.unwrap_or_default()),
            ];
            let known = values.iter().find(|(name, _)| rest.starts_with(name));
            let (len, text) = known.map_or((1, "{"), |(name, value)| (name.len(), value));
            out.push_str(text);
            rest = &rest[len..];
        }
        out + rest
    };
    args.iter().map(fill).collect()
}
