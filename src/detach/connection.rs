//! Requests of another process to a running workbench: list, attach, watch, detach, stop.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tiller_protocol::{Notice, NoticeKind};

use super::client::{Client, ClientExit};
use super::codec::{self, Lines};
use super::folder::Folder;
use super::host::{descriptors, place};
use super::messages::{About, FromHost, Hello, OF_TERMINAL, Request, VERSION};

/// Time limit for an answer. A host with a client answers at once.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Time limit for each way of ending it, before a harder one is used.
const END: Duration = Duration::from_secs(30);

/// A running workbench, and the name of its socket.
pub(crate) struct RunningWorkbench {
    pub(crate) about: About,
    pub(crate) name: String,
}

/// Work that ended while no terminal was attached.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct WorkEnded {
    pub(crate) session: String,
    pub(crate) title: String,
    pub(crate) time: String,
    pub(crate) status: Option<tiller_protocol::event::TurnStatus>,
}

fn broken(e: &io::Error) -> Notice {
    Notice::new(NoticeKind::User, format!("The workbench does not answer: {e}."))
        .hint("`tiller ps` lists the running workbenches.")
}

fn ask(folder: &Folder, name: &str, request: Request) -> io::Result<UnixStream> {
    let line = folder.connect(name)?;
    line.set_read_timeout(Some(TIMEOUT))?;
    line.set_write_timeout(Some(TIMEOUT))?;
    codec::send(&line, &Hello { version: VERSION, request })?;
    Ok(line)
}

/// The answer to a request; a refusal as a notice.
fn answer(line: &UnixStream) -> Result<FromHost, Notice> {
    match Lines::default().wait::<FromHost>(line) {
        Ok(Some(FromHost::Refused { message, hints })) => {
            Err(hints.into_iter().fold(Notice::new(NoticeKind::User, message), Notice::hint))
        }
        Ok(Some(said)) => Ok(said),
        Ok(None) => Err(broken(&io::ErrorKind::UnexpectedEof.into())),
        Err(e) => Err(broken(&e)),
    }
}

/// The running workbenches, of this project or of all, in the order of their start. A process that accepts connections but
/// does not answer is marked as busy.
pub(crate) fn all(folder: &Folder, project: Option<&Path>) -> Vec<RunningWorkbench> {
    let ask = |name: String| {
        let line = ask(folder, &name, Request::About).ok()?;
        let about = match answer(&line) {
            Ok(FromHost::About { about }) => *about,
            _ => About {
                pid: super::folder::process(&name)?,
                title: "(does not answer)".into(),
                work: "unknown".into(),
                busy: true,
                ..About::default()
            },
        };
        Some(RunningWorkbench { about, name })
    };
    let mut found: Vec<RunningWorkbench> = folder.sockets(project).into_iter().filter_map(ask).collect();
    found.sort_by(|a, b| a.about.since.cmp(&b.about.since));
    found
}

/// Work of this project that ended while no terminal was attached. Each is returned once.
pub(crate) fn ended(folder: &Folder, project: &Path) -> Vec<WorkEnded> {
    let take = |name: String| {
        let bytes = folder.read(&name).ok();
        folder.remove(&name);
        serde_json::from_slice(&bytes?).ok()
    };
    folder.names(Some(project), ".ended").into_iter().filter_map(take).collect()
}

/// How a terminal attaches to a running workbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachMode {
    /// Only where no other terminal is attached.
    Attach,
    /// Another terminal is detached first.
    TakeOver,
    /// Observes without typing.
    Watch,
}

/// Attaches this terminal, until it is detached or the workbench ends.
///
/// # Errors
/// When another client is connected already, or no host answers.
pub(crate) fn attach(
    folder: &Folder,
    name: &str,
    mode: AttachMode,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ClientExit, Notice> {
    let before = rustix::termios::tcgetattr(io::stdin()).ok();
    let brought = OF_TERMINAL.iter().filter_map(|n| Some(((*n).to_owned(), env(n)?))).collect();
    let request = match mode {
        AttachMode::Watch => Request::Watch { place: place(env) },
        _ => Request::Attach { take: mode == AttachMode::TakeOver, place: place(env), env: brought },
    };
    let join = || -> io::Result<UnixStream> {
        let line = folder.connect(name)?;
        line.set_read_timeout(Some(TIMEOUT))?;
        let [input, output] = descriptors()?;
        codec::send_with(&line, &Hello { version: VERSION, request }, [input.as_fd(), output.as_fd()])?;
        Ok(line)
    };
    // The host draws as soon as it has the terminal: the alternate screen must be active by then, or the picture would
    // stay on the shell's.
    let screen = (mode == AttachMode::Watch).then(AlternateScreen::show);
    let line = join().map_err(|e| broken(&e))?;
    let mut lines = Lines::default();
    match lines.wait::<FromHost>(&line) {
        Ok(Some(FromHost::Welcome)) => {}
        Ok(Some(FromHost::Refused { message, hints })) => {
            return Err(hints.into_iter().fold(Notice::new(NoticeKind::User, message), Notice::hint));
        }
        Ok(_) => return Err(broken(&io::ErrorKind::UnexpectedEof.into())),
        Err(e) => return Err(broken(&e)),
    }
    line.set_read_timeout(None).map_err(|e| broken(&e))?;
    // From here on the client restores the terminal.
    screen.into_iter().for_each(AlternateScreen::keep);
    Ok(Client::with(line, lines, before, mode == AttachMode::Watch).run())
}

/// The alternate screen, on which a watched workbench is drawn. Dropping it restores the shell's screen.
struct AlternateScreen(bool);

impl AlternateScreen {
    fn show() -> Self {
        use std::io::Write;
        let mut out = io::stdout().lock();
        // A terminal that cannot be written to shows no picture either.
        let _ = out.write_all(b"\x1b[?1049h\x1b[22;0t").and_then(|()| out.flush());
        Self(true)
    }

    fn keep(mut self) {
        self.0 = false;
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        use std::io::Write;
        if self.0 {
            let mut out = io::stdout().lock();
            let _ = out.write_all(b"\x1b[23;0t\x1b[?1049l").and_then(|()| out.flush());
        }
    }
}

/// Detaches the attached terminal; running work continues. Returns what is still running.
///
/// # Errors
/// When nothing runs there, or no terminal is attached.
pub(crate) fn detach(folder: &Folder, name: &str) -> Result<String, Notice> {
    let line = ask(folder, name, Request::Detach).map_err(|e| broken(&e))?;
    match answer(&line)? {
        FromHost::Done { text } => Ok(text),
        _ => Err(broken(&io::ErrorKind::InvalidData.into())),
    }
}

/// The process at the other end of a connection, as the system identifies it: a pid in a file may belong to another
/// process, if the folder is shared with a container or its writer has ended. `None`: not reachable.
#[cfg(target_os = "linux")]
struct HostProcess(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl HostProcess {
    fn of(line: &UnixStream, _found: &RunningWorkbench) -> Option<Self> {
        let peer = rustix::net::sockopt::socket_peercred(line).ok()?;
        rustix::process::pidfd_open(peer.pid, rustix::process::PidfdFlags::empty()).ok().map(Self)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        // It may have ended meanwhile.
        let _ = rustix::process::pidfd_send_signal(&self.0, signal);
    }
}

/// The process at the other end of a connection, by its own pid.
#[cfg(not(target_os = "linux"))]
struct HostProcess(rustix::process::Pid);

#[cfg(not(target_os = "linux"))]
impl HostProcess {
    fn of(_line: &UnixStream, found: &RunningWorkbench) -> Option<Self> {
        i32::try_from(found.about.pid).ok().and_then(rustix::process::Pid::from_raw).map(Self)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let _ = rustix::process::kill_process(self.0, signal);
    }
}

/// Ends it: by a request, then by SIGTERM, then by SIGKILL. Returns what was interrupted.
///
/// # Errors
/// When it cannot be reached.
pub(crate) fn stop(folder: &Folder, found: &RunningWorkbench) -> Result<String, Notice> {
    let line = ask(folder, &found.name, Request::Stop).map_err(|e| broken(&e))?;
    let mut lines = Lines::default();
    let said = match lines.wait::<FromHost>(&line) {
        Ok(Some(FromHost::Done { text })) => text,
        _ => "its state is unknown".into(),
    };
    let host = HostProcess::of(&line, found);
    let mut over = |wait: Duration| {
        // The connection breaks when the process ends.
        let _ = line.set_read_timeout(Some(wait));
        matches!(lines.take(&line), Ok(false))
    };
    if over(END) {
        return Ok(said);
    }
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        if let Some(host) = &host {
            host.signal(signal);
        }
        if over(END / 2) {
            return Ok(format!("{said}; it did not end by itself and was killed"));
        }
    }
    Err(Notice::new(NoticeKind::User, format!("Process {} could not be ended.", found.about.pid)))
}
