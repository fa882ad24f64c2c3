//! The process that runs scripts: its start in the sandbox, its output, its end.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tiller_protocol::lock;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Notify, mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::rpc;
use crate::ToolCx;
use crate::files::masks::OutputMask;
use crate::shell::ShellError;
use crate::shell::confined::deletion;
use crate::shell::confined::watch::CommandWatch;
use crate::shell::output::progress::Live;
use crate::shell::own_folder;
use crate::shell::processes::bounds::{self, Guard};
use crate::shell::processes::end;
use crate::shell::processes::environment;
use crate::shell::processes::launch::{self, Leader};
use crate::shell::processes::proc_fs::Family;
use crate::state::ToolState;

/// Name of the file in tracebacks.
pub(super) const SCRIPT: &str = "script.py";

/// What a process is started with.
pub(super) struct Program<'a> {
    pub python: &'a Path,
    /// `tiller_tools.py`.
    pub stub: &'a str,
    /// It keeps variables between scripts.
    pub keep: bool,
}

/// A running process. Dropping it kills it, and all that it started.
pub(super) struct Child {
    pub to: mpsc::Sender<String>,
    pub from: mpsc::Receiver<rpc::Heard>,
    pub out: Stream,
    pub err: Stream,
    pub leader: Leader,
    /// What it is refused, and how long it has waited for answers.
    pub watch: CommandWatch,
    /// Where text of strangers came from that its scripts have read.
    pub foreign: Vec<String>,
    /// For output of scripts that read a file of variables. Their variables may hold its text in later runs.
    pub mask: Option<OutputMask>,
    family: Family,
    guard: Guard,
    /// Holds the sessions, and so may hold this process.
    state: Weak<ToolState>,
    over: bool,
    _tasks: [AbortOnDropHandle<()>; 2],
    /// Its files and temporary files, removed with it.
    _folder: tempfile::TempDir,
}

impl Child {
    /// Starts it.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) async fn start(program: Program<'_>, cx: &ToolCx) -> Result<Self, ShellError> {
        let system = ShellError::system;
        let pool = &cx.state.shells;
        pool.check_open()?;
        let folder = own_folder::make("code");
        let folder = folder.map_err(system("a folder for the script"))?;
        for (name, text) in [("driver.py", include_str!("driver.py")), ("tiller_tools.py", program.stub)] {
            std::fs::write(folder.path().join(name), text).map_err(system("a file for the script"))?;
        }
        let mut env = environment::environment(&cx.child_env);
        let marker = pool.fresh_marker();
        env.retain(|(name, _)| name != "TILLER_CHILD" && !name.starts_with("PYTHON"));
        env.push(("TILLER_CHILD".into(), marker.clone()));
        env.push(("PYTHONIOENCODING".into(), "utf-8:replace".into()));
        let mut args = vec!["-B".to_owned(), folder.path().join("driver.py").display().to_string()];
        args.extend(program.keep.then(|| "keep".to_owned()));
        let launch = launch::Launch {
            program: program.python.to_owned(),
            args,
            env,
            folder: cx.workspace.root.clone(),
        };
        let watch = CommandWatch::default().guarded(deletion::guard(cx));
        let launch = match cx.local_confiner() {
            Some(confiner) => confiner.confine_watched(launch, &cx.workspace.root, folder.path(), &watch),
            None => pool.sandbox().wrap(launch),
        };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(system("a socket"))?;
        ours.set_nonblocking(true).map_err(system("a socket"))?;
        let link = tokio::net::UnixStream::from_std(ours).map_err(system("a socket"))?;
        let (out, stdout) = std::io::pipe().map_err(system("a pipe"))?;
        let (err, stderr) = std::io::pipe().map_err(system("a pipe"))?;
        let pipe = |end| Receiver::from_owned_fd(OwnedFd::from(end)).map_err(system("a pipe"));
        let (out, err) = (pipe(out)?, pipe(err)?);
        pool.prepare(&environment::outside(&cx.child_env, &cx.workspace.root));
        let leader = launch::start(&launch, OwnedFd::from(theirs).into(), stdout.into(), stderr.into())
            .map_err(system("python could not be started"))?;
        let root = (leader.pid, leader.start);
        pool.adopt(root);
        let family = Family { roots: vec![root], marker, ..Family::default() };
        bounds::apply(root.0, cx.limits.bounds);
        let guard = Guard::start(family.clone(), cx.limits.bounds, Some(leader.exit.clone()), &watch.forks);
        let (read, write) = link.into_split();
        let (messages, from) = rpc::messages();
        let (to, writing) = rpc::writer(write);
        let tasks = [
            AbortOnDropHandle::new(tokio::spawn(rpc::read(read, messages))),
            AbortOnDropHandle::new(tokio::spawn(writing)),
        ];
        let child = Self {
            to,
            from,
            out: Stream::start(out, cx.limits.code.output_bytes),
            err: Stream::start(err, cx.limits.code.error_bytes),
            leader,
            watch,
            foreign: Vec::new(),
            mask: None,
            family,
            guard,
            state: Arc::downgrade(&cx.state),
            over: false,
            _tasks: tasks,
            _folder: folder,
        };
        // A shutdown between the check and here has not seen it; dropping it kills it.
        pool.check_open()?;
        Ok(child)
    }

    /// What was done because it took too much of the machine.
    pub(super) fn excess(&self) -> Option<String> {
        self.guard.said()
    }

    /// Ends the processes of the script: TERM, the grace of the call, KILL. Returns how many could not be ended.
    pub(super) async fn stop(&self, cx: &ToolCx) -> usize {
        end::end(&self.family, cx.limits.grace, Some(&cx.hard)).await
    }

    /// Ends it and all that it started. Returns how many could not be ended.
    pub(super) async fn end(mut self, cx: &ToolCx) -> usize {
        let left = self.stop(cx).await;
        self.over = true;
        left
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.over {
            end::kill_now(&self.family);
        }
        if let Some(state) = self.state.upgrade() {
            state.shells.forget((self.leader.pid, self.leader.start));
            state.shells.sweep();
        }
    }
}

/// One of its output streams: the beginning and the end are kept.
pub(super) struct Stream {
    kept: Arc<Mutex<Kept>>,
    ended: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

/// What is kept of a stream.
#[derive(Debug, Default)]
struct Kept {
    limit: usize,
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    /// Bytes that are neither in `head` nor in `tail`.
    dropped: u64,
    /// Ends the output of the present run.
    mark: Vec<u8>,
    /// The last bytes, which are the beginning of the mark, or look like it.
    carry: Vec<u8>,
    ended: bool,
    /// Shows it while the run lasts.
    live: Option<Arc<Live>>,
}

/// Where the mark, or a beginning of it, ends `bytes`.
fn mark_at_end(bytes: &[u8], mark: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(mark.len().saturating_sub(1));
    (from..bytes.len()).find(|at| mark.starts_with(&bytes[*at..])).unwrap_or(bytes.len())
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        if self.ended {
            return;
        }
        self.carry.extend_from_slice(bytes);
        let found = (!self.mark.is_empty()).then(|| memchr::memmem::find(&self.carry, &self.mark)).flatten();
        let take = match found {
            Some(at) => {
                self.ended = true;
                at
            }
            None => mark_at_end(&self.carry, &self.mark),
        };
        let carry = std::mem::take(&mut self.carry);
        self.keep(&carry[..take]);
        if found.is_none() {
            self.carry = carry[take..].to_vec();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(live) = self.live.as_ref().filter(|_| !bytes.is_empty()) {
            live.push(bytes);
        }
        let room = (self.limit / 5 * 3).saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let most = self.limit / 5 * 2;
        let skip = rest.len().saturating_sub(most);
        self.dropped += skip as u64;
        self.tail.extend(&rest[skip..]);
        let over = self.tail.len().saturating_sub(most);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    fn end(&mut self) {
        let carry = std::mem::take(&mut self.carry);
        if !self.ended {
            self.keep(&carry);
        }
        self.ended = true;
    }
}

impl Stream {
    fn start(pipe: Receiver, limit: usize) -> Self {
        let kept = Arc::new(Mutex::new(Kept { limit, ..Kept::default() }));
        let ended = Arc::new(Notify::new());
        let (to, told) = (Arc::clone(&kept), Arc::clone(&ended));
        let task = async move {
            let mut chunk = vec![0; 64 << 10];
            while pipe.readable().await.is_ok() {
                match pipe.try_read(&mut chunk) {
                    Ok(0) => break,
                    Ok(n) => lock(&to).push(&chunk[..n]),
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
                    Err(_) => break,
                }
                told.notify_waiters();
            }
            lock(&to).end();
            told.notify_waiters();
        };
        Self { kept, ended, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }

    /// A run begins whose output ends with `mark`, and is shown by `live`.
    pub(super) fn begin(&self, mark: &str, live: &Arc<Live>) {
        let mut kept = lock(&self.kept);
        let (limit, live) = (kept.limit, Some(Arc::clone(live)));
        *kept = Kept { limit, mark: mark.as_bytes().to_vec(), live, ..Kept::default() };
    }

    /// The run is over: nothing more is shown.
    pub(super) fn hush(&self) {
        lock(&self.kept).live = None;
    }

    /// Waits for the end of the run's output, for `longest` at most: what the script started may hold the stream.
    pub(super) async fn wait(&self, longest: Duration) {
        let wait = async {
            loop {
                let news = self.ended.notified();
                if lock(&self.kept).ended {
                    return;
                }
                news.await;
            }
        };
        let _ = tokio::time::timeout(longest, wait).await;
    }

    /// The output so far, clean, with a line in the place of what was left out.
    pub(super) fn text(&self) -> String {
        let mut kept = lock(&self.kept);
        let carry = if kept.ended { Vec::new() } else { kept.carry.clone() };
        let tail: Vec<u8> = kept.tail.make_contiguous().iter().copied().chain(carry).collect();
        if kept.dropped == 0 {
            return crate::text::clean(&[kept.head.as_slice(), &tail].concat());
        }
        let left_out = crate::output::human(kept.dropped);
        let (head, tail) = (crate::text::clean(&kept.head), crate::text::clean(&tail));
        let line_end = if head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{line_end}[... {left_out} left out: print less ...]\n{tail}")
    }
}
