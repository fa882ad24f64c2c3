//! A process that runs beside the conversation: `p1`, `p2`, ... with its output kept for polls.

pub(super) mod background;
pub(super) mod pty;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tiller_protocol::{AgentId, ProcessRow, ProcessState, lock};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ToolCx;
use crate::foreign::Connections;
use crate::output::Spill;
use crate::shell::confined::blocked::{Refusals, blocked_words};
use crate::shell::confined::watch::CommandWatch;
use crate::shell::output::leftover::{CHUNK, PipeRead, read_ready};
use crate::shell::output::screen::Screen;
use crate::shell::processes::bounds::Guard;
use crate::shell::processes::launch::Exit;
use crate::shell::processes::proc_fs::Family;
use crate::shell::protected::{Restored, not_compared};

/// Bytes of output that are kept for the next poll.
const KEPT: usize = 256 << 10;

/// Bytes of input that are kept to judge what follows, and calls that may be judged at a time.
const TYPED: usize = 16 << 10;
const JUDGED: usize = 64;

/// Characters of a command in a row.
const COMMAND: usize = 100;

/// After the end of a process, for its last output, and looks in this time.
const SETTLE: Duration = Duration::from_millis(200);
const LOOKS: u32 = 40;

/// Raw output: the last part here, everything up to a cap on disk.
#[derive(Debug, Default)]
pub(crate) struct Log {
    spill: Option<Spill>,
    recent: Vec<u8>,
    total: u64,
    polled: u64,
}

impl Log {
    pub(crate) fn new(cx: &ToolCx) -> Self {
        let spill = Spill::create(cx)
            .inspect_err(|e| tracing::warn!(error = %e, "output of a process is not kept on disk"))
            .ok();
        Self { spill, ..Self::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if let Some(Err(_)) = self.spill.as_mut().map(|s| s.write(bytes)) {
            self.spill = None;
        }
        let last = &bytes[bytes.len().saturating_sub(KEPT)..];
        self.recent.extend_from_slice(last);
        if self.recent.len() > 2 * KEPT {
            self.recent.drain(..self.recent.len() - KEPT);
        }
    }

    /// Bytes since the last poll, and how many of them were lost.
    pub(crate) fn poll(&mut self) -> (Vec<u8>, u64) {
        let new = self.total - self.polled;
        let have = new.min(self.recent.len() as u64);
        self.polled = self.total;
        let from = self.recent.len() - usize::try_from(have).unwrap_or(0);
        (self.recent[from..].to_vec(), new - have)
    }

    pub(crate) fn unread(&self) -> bool {
        self.total > self.polled
    }

    /// The file, or what is in memory when there is none.
    pub(crate) fn source(&self) -> Result<PathBuf, Vec<u8>> {
        self.spill.as_ref().map(|s| s.path().to_owned()).ok_or_else(|| self.recent.clone())
    }
}

/// What kind it is.
pub(crate) enum Kind {
    /// Started with `background`; holds its standard input until it is closed.
    Piped { input: Option<std::io::PipeWriter> },
    /// Under a pseudo-terminal. The master is kept so that the terminal stays.
    Pty {
        screen: Arc<Mutex<Screen>>,
        keys: SyncSender<Vec<u8>>,
        _master: Box<dyn portable_pty::MasterPty + Send>,
    },
    /// Left behind by a command with `&`: only its output is ours.
    Leftover,
}

/// What was typed into a process, for judging what is typed next: a line may come in pieces, and variables
/// and open quotes reach into later lines.
#[derive(Debug, Default)]
pub(crate) struct TypedInput {
    text: String,
    /// Grows with each write.
    writes: u64,
    /// Calls that were judged, and after which write each was.
    judged: VecDeque<(String, u64)>,
}

impl TypedInput {
    /// What a call is to be judged with. What it then writes must follow this directly.
    pub(crate) fn judge(&mut self, call: &str) -> String {
        self.judged.retain(|(id, _)| id != call);
        self.judged.push_back((call.to_owned(), self.writes));
        while self.judged.len() > JUDGED {
            self.judged.pop_front();
        }
        self.text.clone()
    }

    /// Whether nothing else was written since this call was judged.
    pub(crate) fn is_as_judged(&self, call: &str) -> bool {
        self.judged.iter().any(|(id, writes)| id == call && *writes == self.writes)
    }

    /// It was written.
    pub(crate) fn wrote(&mut self, text: &str) {
        self.writes += 1;
        self.text.push_str(text);
        // Whole lines go first; a line that has no end yet stays whole.
        while self.text.len() > TYPED
            && let Some(end) = self.text.find('\n').filter(|end| end + 1 < self.text.len())
        {
            self.text.drain(..=end);
        }
    }
}

/// One of them.
pub(crate) struct Job {
    pub id: String,
    pub command: String,
    pub agent: AgentId,
    pub started: Instant,
    pub kind: Mutex<Kind>,
    pub output: Output,
    pub typed: Mutex<TypedInput>,
    /// Set once. For a leftover: when its output ended (the code is not known then).
    pub exit: watch::Receiver<Option<Exit>>,
    pub family: Family,
    pub guard: Guard,
    /// Ends it, when it runs elsewhere.
    pub there: Option<CancellationToken>,
    /// Protected files that were put back after its end.
    pub restored: Restored,
    /// What it is refused.
    pub watch: CommandWatch,
    /// The connections that had been made when it began.
    connections: Connections,
    /// Reads the output; ends with the pipe, or with the job.
    pub reader: Option<JoinHandle<()>>,
}

/// What a process is listed with that has just started.
pub(crate) struct Running {
    pub kind: Kind,
    pub output: Output,
    pub family: Family,
    pub exit: watch::Receiver<Option<Exit>>,
    pub watch: CommandWatch,
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

impl Job {
    /// A process of this call that has just started; it has no id yet. Its resources are limited from now on.
    pub(crate) fn new(command: &str, running: Running, cx: &ToolCx) -> Self {
        let Running { kind, output, family, exit, watch } = running;
        Self {
            id: String::new(),
            command: command.to_owned(),
            agent: cx.agent.clone(),
            started: Instant::now(),
            kind: Mutex::new(kind),
            output,
            typed: Mutex::default(),
            guard: Guard::start(family.clone(), cx.limits.bounds, Some(exit.clone()), &watch.forks),
            exit,
            family,
            there: None,
            restored: not_compared(),
            watch,
            connections: Connections::now(cx),
            reader: None,
        }
    }

    /// The same process, with an id.
    pub(crate) fn with_id(mut self, id: String) -> Self {
        self.id = id;
        self
    }

    /// How it stands now, without its output.
    pub(crate) fn row(&self) -> ProcessRow {
        let leftover = matches!(*lock(&self.kind), Kind::Leftover);
        let state = match *self.exit.borrow() {
            None => ProcessState::Running { seconds: self.started.elapsed().as_secs() },
            Some(exit) => ProcessState::Ended { code: (!leftover).then_some(exit.code) },
        };
        ProcessRow {
            id: self.id.clone(),
            state,
            intervention: self.interventions().join("; "),
            command: self.command.lines().next().unwrap_or_default().chars().take(COMMAND).collect(),
            last: String::new(),
        }
    }

    /// What was done about it: because it took too much, or wrote protected files; what a sandbox refused to a job that
    /// failed.
    fn interventions(&self) -> Vec<String> {
        let failed = self.exit.borrow().is_some_and(|exit| exit.code != 0);
        let refused = if failed { self.refusals().serious() } else { Vec::new() };
        let refused =
            (!refused.is_empty()).then(|| format!("the sandbox blocked {}", blocked_words(&refused)));
        let restored = self.restored.borrow().compared.clone();
        self.guard.said().into_iter().chain(restored.lines()).chain(refused).collect()
    }

    /// Where its output is from, if not from here alone.
    pub(crate) fn source(&self, cx: &ToolCx) -> Option<String> {
        self.connections.source(&self.command, cx)
    }

    /// What a sandbox refused to it until now.
    pub(crate) fn refusals(&self) -> Refusals {
        Refusals { known: self.watch.is_supervised(), blocked: self.watch.blocked.all() }
    }

    /// Waits until the last output is read, which can arrive after the end of the process. Does not wait for other
    /// processes that hold the pipe.
    pub(crate) async fn settle(&self) {
        // Looks are counted: on a busy machine the reader may not run for a while.
        for _ in 0..LOOKS {
            if self.output.drained.load(Ordering::Acquire) {
                return;
            }
            tokio::time::sleep(SETTLE / LOOKS).await;
        }
    }

    /// The folder in which it works now; `None`: unknown.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let living = self.family.living();
        let pid = living.last().map(|s| s.pid)?;
        std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
    }

    /// The last line that it said and that is not blank.
    pub(crate) fn last_line(&self) -> Option<String> {
        const LAST: usize = 4 << 10;
        let text = match self.screen() {
            Some(screen) => lock(&screen).visible(),
            None => {
                let log = lock(&self.output.log);
                let recent = &log.recent;
                crate::text::clean(&recent[recent.len().saturating_sub(LAST)..])
            }
        };
        let line = text.lines().rev().map(str::trim).find(|l| !l.is_empty())?;
        Some(line.chars().take(200).collect())
    }

    /// The screen, when it has one.
    pub(crate) fn screen(&self) -> Option<Arc<Mutex<Screen>>> {
        match &*lock(&self.kind) {
            Kind::Pty { screen, .. } => Some(screen.clone()),
            _ => None,
        }
    }
}

/// Where output goes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub log: Arc<Mutex<Log>>,
    /// Fires at new output. Waiters also watch the exit.
    pub news: Arc<Notify>,
    /// Set when all output has been read.
    pub drained: Arc<AtomicBool>,
}

impl Output {
    pub(crate) fn new(cx: &ToolCx) -> Self {
        Self { log: Arc::new(Mutex::new(Log::new(cx))), news: Arc::default(), drained: Arc::default() }
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        lock(&self.log).push(bytes);
        self.news.notify_waiters();
    }

    pub(crate) fn end(&self) {
        self.drained.store(true, Ordering::Release);
        self.news.notify_waiters();
    }
}

/// Moves a pipe into a log until its end. `end` is reported when that is the only end there is to see.
pub(crate) fn drain(
    pipe: Receiver,
    output: Output,
    end: Option<watch::Sender<Option<Exit>>>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut buffer = vec![0; CHUNK / 4];
        while pipe.readable().await.is_ok() {
            match read_ready(&pipe, &mut buffer) {
                PipeRead::Bytes(n) => output.push(&buffer[..n]),
                PipeRead::Nothing => {}
                PipeRead::End => break,
            }
        }
        if let Some(end) = end {
            let _ = end.send(Some(Exit { code: 0 }));
        }
        output.end();
    })
}
