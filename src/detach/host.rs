//! The host: the attached terminal, the socket for other processes, and the replies to their requests.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tiller_protocol::{Clock, Notice};
use tiller_tui::UiSender;
use tiller_tui::terminal::terminal_owner::{Attachment, DetachReport, OwnerMsg, TerminalOwner, WorkSummary};

use super::codec::{self, Lines};
use super::folder::{Folder, key, ours};
use super::messages::{About, AttachedTerminal, FromHost, Hello, OF_TERMINAL, Request, VERSION};
use super::terminal_owner::{ClientConnection, ForegroundExit};

/// How long a client may take to send its request, and the screen to answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Clients that are served at the same time. Others are turned away.
const CLIENTS: usize = 16;

/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// The signal that ends it, as from `kill`.
const TERM: i32 = 15;

/// Reads an environment variable.
type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Maximum length of a variable that a terminal sends, in bytes.
const LONGEST: usize = 4096;

/// Receives the names of the variables that a terminal sends, and their values.
type EnvironmentListener = Box<dyn Fn(&[&str], &BTreeMap<String, String>) + Send + Sync>;

/// The state of the host.
pub(crate) struct DetachHost {
    project: PathBuf,
    since: String,
    clock: Arc<dyn Clock>,
    /// The environment at the start.
    env: Env,
    /// The variables of the attached terminal, which override `env`; `None`: the first terminal is attached.
    terminal_env: Mutex<Option<BTreeMap<String, String>>>,
    on_attach: OnceLock<EnvironmentListener>,
    state: Mutex<HostState>,
    folder: OnceLock<Result<Arc<Folder>, String>>,
    next: AtomicU64,
    /// Held once by each client that is served.
    serving: Arc<()>,
    /// Held while a terminal is attached: two that come at the same time do not take each other's place unasked.
    attaching: Mutex<()>,
}

#[derive(Default)]
struct HostState {
    /// The client of the attached terminal.
    attached: Option<Arc<ClientConnection>>,
    /// When the last terminal was detached; RFC 3339.
    left: Option<String>,
    /// Clients that requested the end; their connections close with it.
    waiting: Vec<UnixStream>,
}

/// The place of this terminal, shown to other clients while it is attached.
pub(super) fn place(env: &dyn Fn(&str) -> Option<String>) -> String {
    let tty = rustix::termios::ttyname(io::stdin(), Vec::new()).ok().and_then(|t| t.into_string().ok());
    let tty = tty.unwrap_or_else(|| "a terminal".into());
    match env("SSH_CONNECTION").as_deref().and_then(|c| c.split(' ').next()).filter(|h| !h.is_empty()) {
        Some(host) => format!("{tty} from {host}"),
        None => tty,
    }
}

impl DetachHost {
    /// With the client of the terminal in which it was started.
    pub(crate) fn new(line: UnixStream, project: PathBuf, env: Env, clock: Arc<dyn Clock>) -> Arc<Self> {
        let since = clock.now().to_rfc3339();
        let terminal = AttachedTerminal { place: place(&*env), since: since.clone() };
        let state =
            HostState { attached: Some(ClientConnection::new(0, line, terminal)), ..HostState::default() };
        Arc::new(Self {
            project,
            since,
            clock,
            env,
            terminal_env: Mutex::default(),
            on_attach: OnceLock::new(),
            state: Mutex::new(state),
            folder: OnceLock::new(),
            next: AtomicU64::new(1),
            serving: Arc::default(),
            attaching: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A variable: of the attached terminal, else as at the start.
    pub(crate) fn var(&self, name: &str) -> Option<String> {
        let terminal = self.terminal_env.lock().unwrap_or_else(PoisonError::into_inner);
        match terminal.as_ref().filter(|_| OF_TERMINAL.contains(&name)) {
            Some(brought) => brought.get(name).cloned(),
            None => (self.env)(name),
        }
    }

    /// Sets the listener for the environment of each terminal that attaches, for children that are started afterwards.
    pub(crate) fn on_attach(&self, tell: EnvironmentListener) {
        let _ = self.on_attach.set(tell);
    }

    /// The first client, for the screen.
    pub(crate) fn first(&self) -> Option<Arc<dyn TerminalOwner>> {
        self.state().attached.clone().map(|c| c as Arc<dyn TerminalOwner>)
    }

    /// Runs a program in the foreground of the attached terminal; returns its exit code.
    ///
    /// # Errors
    /// As part of a sentence.
    pub(crate) fn run(&self, words: Vec<Vec<u8>>) -> Result<i32, String> {
        let Some(client) = self.state().attached.clone() else {
            return Err("no terminal is attached".into());
        };
        match client.run(words) {
            ForegroundExit { code: Some(code), .. } => Ok(code),
            ForegroundExit { error, .. } => Err(error.unwrap_or_default()),
        }
    }

    /// Whether a detached workbench could be attached again; the error says why not.
    pub(crate) fn may_leave(&self) -> Result<(), String> {
        match self.folder.get() {
            Some(Ok(_)) => Ok(()),
            Some(Err(why)) => Err(why.clone()),
            None => Err("Tiller is still starting. Try again in a moment.".into()),
        }
    }

    fn file(&self, ending: &str) -> String {
        format!("{}-{:010}{ending}", key(&self.project), std::process::id())
    }

    /// Reads the client's messages and opens the socket, on a separate thread that ends with the process.
    pub(crate) fn open(self: &Arc<Self>, state: PathBuf, to: UiSender) -> io::Result<()> {
        if let Some(client) = self.state().attached.clone() {
            client.listen(Lines::default(), to.clone())?;
        }
        let me = Arc::clone(self);
        std::thread::Builder::new().name("tiller-socket".into()).stack_size(256 << 10).spawn(move || {
            let opened = Folder::open(&state).and_then(|folder| {
                let listener = folder.listen(&me.file(".sock")).map_err(|e| {
                    let text =
                        format!("No socket could be created in {}: {e}.", state.join("hosts").display());
                    Notice::new(tiller_protocol::NoticeKind::User, text)
                })?;
                Ok((Arc::new(folder), listener))
            });
            match opened {
                Ok((folder, listener)) => {
                    let _ = me.folder.set(Ok(folder));
                    me.receive(&listener, &to);
                }
                Err(notice) => {
                    let _ = me.folder.set(Err(notice.message.clone()));
                    to.notice(notice.hint("The workbench ends with its terminal."));
                }
            }
        })?;
        Ok(())
    }

    fn receive(self: &Arc<Self>, listener: &UnixListener, to: &UiSender) {
        for client in listener.incoming() {
            let Ok(client) = client else {
                // Out of descriptors, for instance: it is not tried again at once.
                std::thread::park_timeout(PAUSE);
                continue;
            };
            if !ours(&client) || Arc::strong_count(&self.serving) > CLIENTS {
                continue;
            }
            let (me, to, served) = (Arc::clone(self), to.clone(), Arc::clone(&self.serving));
            let serve = move || {
                if let Err(e) = me.serve(client, &to) {
                    tracing::debug!(error = %e, "a client could not be served");
                }
                drop(served);
            };
            let thread = std::thread::Builder::new().name("tiller-client".into()).stack_size(256 << 10);
            if let Err(e) = thread.spawn(serve) {
                tracing::debug!(error = %e, "a client could not be served");
            }
        }
    }

    fn serve(self: &Arc<Self>, line: UnixStream, to: &UiSender) -> io::Result<()> {
        line.set_write_timeout(Some(TIMEOUT))?;
        let mut lines = Lines::default();
        let Some(hello) = lines.first::<Hello>(&line, TIMEOUT)? else { return Ok(()) };
        line.set_read_timeout(Some(TIMEOUT))?;
        if hello.version != VERSION {
            let hint = "`tiller stop` of that version ends it, then `tiller -c` continues it.".to_owned();
            let message = "This workbench was started by another version of Tiller.".to_owned();
            return codec::send(&line, &FromHost::Refused { message, hints: vec![hint] });
        }
        match hello.request {
            Request::About => {
                let about = Box::new(self.about(to));
                codec::send(&line, &FromHost::About { about })
            }
            Request::Watch { place } => self.watch(line, lines, to, place),
            Request::Attach { take, place, env } => self.attach(line, lines, to, take, place, env),
            Request::Detach => {
                let (tell, hear) = sync_channel(1);
                to.owner(OwnerMsg::Leave(Box::new(move |done| drop(tell.send(done)))));
                let answer = match hear.recv_timeout(TIMEOUT) {
                    Ok(Ok(facts)) => FromHost::Done { text: format!("{} still running", facts.words()) },
                    Ok(Err(message)) => FromHost::Refused { message, hints: Vec::new() },
                    Err(_) => busy(),
                };
                codec::send(&line, &answer)
            }
            Request::Stop => {
                let about = self.about(to);
                codec::send(&line, &FromHost::Done { text: about.work })?;
                let mut state = self.state();
                if let Some(client) = &state.attached {
                    client.abandon("it was asked to end");
                }
                state.waiting.push(line);
                drop(state);
                to.terminate(TERM);
                Ok(())
            }
        }
    }

    fn about(&self, to: &UiSender) -> About {
        let (tell, hear) = sync_channel(1);
        to.owner(OwnerMsg::WorkSummary(Box::new(move |facts| drop(tell.send(facts)))));
        let facts = hear.recv_timeout(TIMEOUT).ok();
        let state = self.state();
        let busy = facts.is_none();
        let f = facts.unwrap_or_default();
        About {
            pid: std::process::id(),
            project: tiller_protocol::names::written(&self.project),
            work: if busy { "no answer".into() } else { f.words() },
            session: f.session,
            title: f.title,
            turn: f.turn,
            agents: f.agents,
            waiting: f.waiting,
            processes: f.processes,
            goal: f.goal,
            lines: f.lines,
            since: self.since.clone(),
            screen: state.attached.as_ref().map(|s| s.terminal.clone()),
            left: state.left.clone(),
            busy,
        }
    }

    fn attach(
        self: &Arc<Self>,
        line: UnixStream,
        mut lines: Lines,
        to: &UiSender,
        take: bool,
        place: String,
        mut env: BTreeMap<String, String>,
    ) -> io::Result<()> {
        let mut fds = std::mem::take(&mut lines.fds).into_iter();
        let (Some(input), Some(output)) = (fds.next(), fds.next()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let _one = self.attaching.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = self.state().attached.as_ref().filter(|_| !take) {
            let AttachedTerminal { place, since } = &other.terminal;
            let message = format!("A terminal is already attached: {place}, since {}.", clock_of(since));
            let hints = vec![
                "`tiller attach --take` takes over; the other terminal is detached.".to_owned(),
                "`tiller attach --watch` watches it.".to_owned(),
            ];
            return codec::send(&line, &FromHost::Refused { message, hints });
        }
        line.set_read_timeout(None)?;
        codec::send(&line, &FromHost::Welcome)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let since = self.clock.now().to_rfc3339();
        let conn = ClientConnection::new(id, line, AttachedTerminal { place: place.clone(), since });
        let before = {
            let mut state = self.state();
            let was = state.left.take();
            (state.attached.replace(Arc::clone(&conn)), was)
        };
        if let Some(before) = &before.0 {
            before.abandon("another terminal took over");
        }
        env.retain(|name, value| {
            let fits = value.len() <= LONGEST && !value.contains(char::is_control);
            OF_TERMINAL.contains(&name.as_str()) && fits
        });
        if let Some(tell) = self.on_attach.get() {
            tell(OF_TERMINAL, &env);
        }
        *self.terminal_env.lock().unwrap_or_else(PoisonError::into_inner) = Some(env);
        let arrival = Attachment {
            owner: Arc::clone(&conn) as Arc<dyn TerminalOwner>,
            input,
            output,
            words: format!("{place} took over this workbench"),
            said: before
                .1
                .map(|left| format!("detached at {}; `tiller --new` starts a new session", clock_of(&left))),
        };
        to.owner(OwnerMsg::Arrive(arrival));
        conn.listen(lines, to.clone())
    }

    fn watch(&self, line: UnixStream, mut lines: Lines, to: &UiSender, place: String) -> io::Result<()> {
        let Some(terminal) = lines.fds.pop() else { return Err(io::ErrorKind::InvalidInput.into()) };
        lines.fds.clear();
        if self.state().attached.is_none() {
            let message = "No terminal is attached, so there is nothing to watch.".to_owned();
            let hints = vec!["`tiller attach` attaches this terminal.".to_owned()];
            return codec::send(&line, &FromHost::Refused { message, hints });
        }
        line.set_read_timeout(None)?;
        codec::send(&line, &FromHost::Welcome)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let conn =
            ClientConnection::new(id, line, AttachedTerminal { place, since: self.clock.now().to_rfc3339() });
        to.owner(OwnerMsg::Watch(Arc::clone(&conn) as Arc<dyn TerminalOwner>, terminal));
        conn.listen(lines, to.clone())
    }

    /// The terminal was detached, or the work ended while none was attached.
    pub(crate) fn left(&self, left: DetachReport<'_>) {
        match left {
            DetachReport::By(id) => {
                let mut state = self.state();
                if state.attached.as_ref().is_some_and(|s| s.id() == id) {
                    state.attached = None;
                    state.left = Some(self.clock.now().to_rfc3339());
                }
            }
            DetachReport::Ended(facts) => self.remember(facts),
        }
    }

    /// Stores it for the next start in this project.
    fn remember(&self, facts: &WorkSummary) {
        let Some(Ok(folder)) = self.folder.get() else { return };
        let note = serde_json::json!({
            "session": facts.session,
            "title": facts.title,
            "time": self.clock.now().to_rfc3339(),
            "status": facts.ended,
        });
        if let Err(e) = folder.write(&self.file(".ended"), note.to_string().as_bytes()) {
            tracing::debug!(error = %e, "the end of the work could not be recorded for the next start");
        }
    }

    /// Ends the host: removes the socket, and sends the exit code to the client.
    pub(crate) fn close(&self, code: u8) {
        if let Some(Ok(folder)) = self.folder.get() {
            folder.remove(&self.file(".sock"));
        }
        if let Some(client) = self.state().attached.take() {
            let _ = client.say(&FromHost::Exit { code });
        }
    }
}

fn busy() -> FromHost {
    let message = "The workbench does not answer; an editor may be open in it.".to_owned();
    FromHost::Refused { message, hints: vec!["Try again when it is closed.".into()] }
}

/// Hours and minutes of an RFC 3339 time, in local time if that is known.
fn clock_of(time: &str) -> String {
    let parsed = time.parse::<jiff::Timestamp>().map(|t| t.to_zoned(jiff::tz::TimeZone::system()));
    parsed.map_or_else(|_| time.to_owned(), |t| t.strftime("%H:%M").to_string())
}

/// The two descriptors of this terminal.
pub(super) fn descriptors() -> io::Result<[OwnedFd; 2]> {
    Ok([io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?])
}
