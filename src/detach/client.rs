//! The process at the terminal: the shell's job. It blocks until the host sends a message or a signal arrives, and uses
//! the terminal only when the host passes it, or when the host has died.

use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_current_process_group, kill_process, waitpid};
use rustix::termios::{OptionalActions, Termios, tcsetattr};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use tiller_tui::terminal::observer::{ObserverAction, ObserverKeys};

use super::codec::{self, Lines};
use super::crash_report::CrashReport;
use super::messages::{FromClient, FromHost};

/// Stops the process like Ctrl-Z, and does nothing without a shell that waits. SIGTSTP itself is caught.
const STOP: Signal = Signal::TTIN;

/// Time limit for a stop to begin. It begins at once, unless no shell could continue the process.
const BEGINS: Timespec = Timespec { tv_sec: 0, tv_nsec: 150_000_000 };

const SIGNALS: [i32; 7] = [SIGWINCH, SIGCONT, SIGTSTP, SIGTERM, SIGHUP, SIGINT, SIGCHLD];

/// The exit of the client, for the shell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientExit {
    pub(crate) code: u8,
    /// Text for standard error.
    pub(crate) words: Option<String>,
    /// Whether the text reports a failure.
    pub(crate) failed: bool,
}

/// Caught signals as flags, with a wake pipe.
struct Signals {
    flags: [Arc<AtomicBool>; SIGNALS.len()],
    wake: UnixStream,
}

impl Signals {
    fn start() -> io::Result<Self> {
        let (wake, tell) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let flags: [Arc<AtomicBool>; SIGNALS.len()] = Default::default();
        for (n, flag) in SIGNALS.into_iter().zip(&flags) {
            // The flag is set before the wake-up, so that the woken thread finds it.
            signal_hook::flag::register(n, Arc::clone(flag))?;
            signal_hook::low_level::pipe::register(n, tell.try_clone()?)?;
        }
        Ok(Self { flags, wake })
    }

    /// Whether the signal arrived since the last call.
    fn took(&self, n: i32) -> bool {
        SIGNALS.iter().zip(&self.flags).any(|(h, flag)| *h == n && flag.swap(false, Ordering::SeqCst))
    }

    fn drain(&self) {
        let mut waste = [0u8; 64];
        while (&self.wake).read(&mut waste).is_ok_and(|n| n == waste.len()) {}
    }
}

/// The program in the foreground.
enum Foreground {
    Nothing,
    Program(Child),
    /// Text was printed; Enter returns to the screen.
    Text,
}

/// The client of one host.
pub(super) struct Client {
    line: UnixStream,
    lines: Lines,
    /// The host, if it is a child process.
    child: Option<Pid>,
    inline: bool,
    /// Set for an observer: the keys that it handles itself.
    watching: Option<ObserverKeys>,
    /// The terminal's settings before the start.
    before: Option<Termios>,
    foreground: Foreground,
    hung_up: bool,
    exit: Option<u8>,
    report: CrashReport,
}

impl Client {
    /// `before`: the terminal's settings before they were changed.
    pub(super) fn of(
        line: UnixStream,
        child: Option<Pid>,
        inline: bool,
        before: Option<Termios>,
        report: CrashReport,
    ) -> Self {
        let lines = Lines::default();
        let foreground = Foreground::Nothing;
        Self {
            line,
            lines,
            child,
            inline,
            watching: None,
            before,
            foreground,
            hung_up: false,
            exit: None,
            report,
        }
    }

    /// For a host that another client started. It may draw on the alternate screen or on the shell's: switching back is
    /// harmless. `watching`: it draws nothing itself, but sets and restores the terminal.
    pub(super) fn with(line: UnixStream, lines: Lines, before: Option<Termios>, watching: bool) -> Self {
        let watching = watching.then(ObserverKeys::default);
        Self { lines, watching, ..Self::of(line, None, false, before, CrashReport::default()) }
    }

    /// Serves the host until it detaches this terminal or ends.
    pub(super) fn run(mut self) -> ClientExit {
        if self.watching.is_some()
            && let Some(before) = &self.before
        {
            let mut raw = before.clone();
            raw.make_raw();
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
            // Changes of the terminal's settings require a redraw. A broken connection is detected below.
            let _ = self.say(&FromClient::Resized);
        }
        let ended = match self.serve() {
            Ok(ended) => {
                if self.watching.is_some() {
                    self.wait_for_last_frame();
                    self.restore_terminal();
                }
                ended
            }
            Err(e) => {
                tracing::debug!(error = %e, "the connection to the host was lost");
                self.end_front();
                self.host_gone()
            }
        };
        self.report.tell();
        ended
    }

    /// Waits until the host draws no more: a later frame would stay on the shell's screen.
    fn wait_for_last_frame(&mut self) {
        let _ = self.line.shutdown(std::net::Shutdown::Write);
        let _ = self.line.set_read_timeout(Some(LAST_FRAME));
        let until = std::time::Instant::now() + LAST_FRAME;
        while std::time::Instant::now() < until && matches!(self.lines.take(&self.line), Ok(true)) {}
    }

    fn serve(&mut self) -> io::Result<ClientExit> {
        let signals = Signals::start()?;
        loop {
            while let Some(message) = self.lines.next()? {
                if let Some(ended) = self.handle(message, &signals)? {
                    return Ok(ended);
                }
            }
            self.handle_signals(&signals)?;
            let stdin = io::stdin();
            let mut fds =
                vec![PollFd::new(&self.line, PollFlags::IN), PollFd::new(&signals.wake, PollFlags::IN)];
            if self.watching.is_some() || matches!(self.foreground, Foreground::Text) {
                fds.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
            }
            let rest = self.watching.as_ref().and_then(ObserverKeys::rest);
            let rest = rest.and_then(|r| Timespec::try_from(r).ok());
            match poll(&mut fds, rest.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let [line, wake, typed] = [0, 1, 2].map(|n| fds.get(n).is_some_and(|f| !f.revents().is_empty()));
            drop(fds);
            let silent = !(line || wake || typed);
            if wake {
                signals.drain();
            }
            if (typed || silent) && self.typed(silent)? {
                return Ok(ClientExit { code: 0, words: None, failed: false });
            }
            if line && !self.lines.take(&self.line)? {
                self.end_front();
                return Ok(self.host_gone());
            }
        }
    }

    fn say(&self, message: &FromClient) -> io::Result<()> {
        codec::send(&self.line, message)
    }

    fn handle(&mut self, message: FromHost, signals: &Signals) -> io::Result<Option<ClientExit>> {
        match message {
            FromHost::Run { words } => {
                let mut words = words.into_iter().map(std::ffi::OsString::from_vec);
                let program = words.next().unwrap_or_default();
                match std::process::Command::new(program).args(words).spawn() {
                    Ok(child) => self.foreground = Foreground::Program(child),
                    Err(e) => self.say(&FromClient::Ran { code: None, error: Some(e.to_string()) })?,
                }
            }
            FromHost::Show { text } => {
                let mut out = io::stdout().lock();
                let _ = write!(out, "{text}\n\n-- Press Enter to return to Tiller --");
                let _ = out.flush();
                self.foreground = Foreground::Text;
            }
            FromHost::Stop { all } => {
                let stopped = stop(signals, all);
                self.say(&FromClient::Continued { stopped })?;
            }
            FromHost::Leave { text } => {
                self.end_front();
                // The host may notice the lost terminal first: then it detaches the client without a text.
                let hung_up = self.hung_up || text.is_empty();
                let words = (!hung_up).then_some(text);
                let code = if hung_up { 128 + SIGHUP as u8 } else { 0 };
                return Ok(Some(ClientExit { code, words, failed: false }));
            }
            FromHost::Exit { code } => {
                self.end_front();
                self.exit = Some(code);
            }
            FromHost::Refused { message, hints } => {
                let words = std::iter::once(message).chain(hints).collect::<Vec<_>>().join("\n  ");
                return Ok(Some(ClientExit { code: 2, words: Some(words), failed: true }));
            }
            FromHost::Welcome | FromHost::About { .. } | FromHost::Done { .. } => {}
        }
        Ok(None)
    }

    fn handle_signals(&mut self, signals: &Signals) -> io::Result<()> {
        let front = !matches!(self.foreground, Foreground::Nothing);
        if signals.took(SIGCHLD)
            && let Foreground::Program(child) = &mut self.foreground
            && let Some(status) = child.try_wait()?
        {
            self.foreground = Foreground::Nothing;
            let error = status.code().is_none().then(|| status.to_string());
            self.say(&FromClient::Ran { code: status.code(), error })?;
        }
        if signals.took(SIGTSTP) {
            // The program in the foreground was stopped or is about to be: stop with it.
            if front {
                let _ = kill_process(getpid(), STOP);
            } else {
                self.say(&FromClient::Stop)?;
            }
        }
        if signals.took(SIGCONT) && !front {
            self.say(&FromClient::Continued { stopped: true })?;
        }
        if signals.took(SIGWINCH) {
            self.say(&FromClient::Resized)?;
        }
        for n in [SIGHUP, SIGTERM, SIGINT] {
            // Ctrl-C belongs to an editor in the foreground.
            if signals.took(n) && !(n == SIGINT && front) {
                self.hung_up |= n == SIGHUP;
                self.say(&FromClient::Signal { n })?;
            }
        }
        Ok(())
    }

    /// Reads input below a text, or of an observer; `silent`: there was none for long enough. True: the client is to
    /// leave.
    fn typed(&mut self, silent: bool) -> io::Result<bool> {
        let mut bytes = [0u8; 256];
        let n = if silent { 0 } else { rustix::io::read(io::stdin(), &mut bytes).unwrap_or(0) };
        if let Some(looking) = &mut self.watching {
            let rows = rustix::termios::tcgetwinsize(io::stdin()).map_or(24, |s| s.ws_row);
            let wants = looking.keys(bytes.get(..n).unwrap_or_default(), rows);
            for want in wants {
                match want {
                    ObserverAction::Leave => return Ok(true),
                    ObserverAction::Look(columns, rows) => self.say(&FromClient::Look { columns, rows })?,
                    ObserverAction::Follow => self.say(&FromClient::Follow)?,
                }
            }
            return Ok(n == 0 && !silent);
        }
        if silent {
            return Ok(false);
        }
        if n == 0 || bytes.iter().take(n).any(|b| *b == b'\n') {
            self.foreground = Foreground::Nothing;
            self.say(&FromClient::Ran { code: Some(0), error: None })?;
        }
        Ok(false)
    }

    /// Ends the program in the foreground: the host has returned the terminal.
    fn end_front(&mut self) {
        if let Foreground::Program(mut child) = std::mem::replace(&mut self.foreground, Foreground::Nothing)
            && let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        {
            for signal in [Signal::HUP, Signal::TERM, Signal::KILL] {
                let _ = kill_process(pid, signal);
                for _ in 0..20 {
                    if !matches!(child.try_wait(), Ok(None)) {
                        return;
                    }
                    // Polls, since nothing wakes this thread.
                    std::thread::park_timeout(Duration::from_millis(10));
                }
            }
        }
    }

    /// The host has ended: with an exit code, or without a message; then the terminal is restored here.
    fn host_gone(&mut self) -> ClientExit {
        let status = self.child.and_then(|pid| waitpid(Some(pid), WaitOptions::empty()).ok().flatten());
        let code = status.and_then(|(_, s)| s.exit_status()).and_then(|c| u8::try_from(c).ok());
        if let Some(code) = self.exit.or(code) {
            return ClientExit { code, words: None, failed: false };
        }
        self.restore_terminal();
        let killed = status.and_then(|(_, s)| s.terminating_signal());
        let pid = self.child.map_or(0, Pid::as_raw_pid);
        let how = killed.map_or_else(|| "ended without a message".to_owned(), |n| self.report.words(pid, n));
        let words = format!("Tiller {how}\n  The conversation is saved: `tiller -c` continues it.");
        let code = 128u8.saturating_add(killed.and_then(|n| u8::try_from(n).ok()).unwrap_or(0));
        ClientExit { code: if killed.is_some() { code } else { 1 }, words: Some(words), failed: true }
    }

    /// Restores the terminal after the host died.
    fn restore_terminal(&self) {
        let wait = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
        let room = poll(&mut [PollFd::new(&io::stdout(), PollFlags::OUT)], Some(&wait));
        if room.is_ok_and(|n| n > 0) {
            let mut out = io::stdout().lock();
            let _ =
                out.write_all(tiller_tui::terminal::off(self.inline).as_bytes()).and_then(|()| out.flush());
        }
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Time limit for the host to stop drawing on a detached terminal.
const LAST_FRAME: Duration = Duration::from_secs(1);

/// Stops this process (`all`: its whole process group) until the shell continues it. `false`: the process was not
/// stopped, because no shell waits for it.
fn stop(signals: &Signals, all: bool) -> bool {
    signals.took(SIGCONT);
    signals.drain();
    let sent = if all { kill_current_process_group(STOP) } else { kill_process(getpid(), STOP) };
    if sent.is_err() {
        return false;
    }
    // Time passes while the process is stopped, so the first wait may end before the flag is set.
    for _ in 0..2 {
        if signals.took(SIGCONT) {
            return true;
        }
        let _ = poll(&mut [PollFd::new(&signals.wake, PollFlags::IN)], Some(&BEGINS));
        signals.drain();
    }
    signals.took(SIGCONT)
}
