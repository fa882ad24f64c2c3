//! The shells and background processes of one session, and their common end. How an agent's shell is started and runs a
//! command is in `run`.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tiller_protocol::{AgentId, ProcessRow, ShellState, lock};

use crate::shell::backend::{CommandResult, Shell, ShellError};
use crate::shell::elsewhere::Elsewhere;
use crate::shell::jobs::Job;
use crate::shell::local::{env_update, own_folder};
use crate::shell::processes::end::{self, Zombies};
use crate::shell::processes::guardian::Guardian;
use crate::shell::processes::launch::{Compared, FileGuard, NoSandbox, Sandbox};
use crate::shell::processes::proc_fs::Family;
use crate::shell::protected::put_back;
use crate::{CommandProfile, ToolCx};

mod run;

/// From TERM to KILL at the end of the session, so that everything but bombs is over within 3 s.
const LAST_GRACE: Duration = Duration::from_millis(1500);
/// Background processes at once, for one session.
pub(crate) const JOBS: usize = 32;

/// Ended sessions that are remembered.
const ENDED: usize = 1000;

/// One agent's shell, and what outlives it.
#[derive(Default)]
pub(crate) struct PooledShell {
    pub(crate) shell: Option<Box<dyn Shell>>,
    pub(crate) exports: Vec<u8>,
    /// What shell and exports began with.
    pub(crate) env: Option<Arc<Vec<(String, String)>>>,
    /// A confined shell with the same folder and variables, for commands that only read; `None` after each other
    /// command, which may change them.
    pub(crate) reader: Option<Reader>,
    /// The protected files before the last command of the shell, while something that this started lives on.
    pub(crate) guard: Option<Arc<dyn FileGuard>>,
    /// Results of comparing them since, for the next command.
    pub(crate) compared: Compared,
}

/// A confined shell.
pub(crate) struct Reader {
    pub(crate) shell: Box<dyn Shell>,
    /// What it began with.
    pub(crate) env: Arc<Vec<(String, String)>>,
}

/// What runs for a session. Cheap to make; the first command starts the first process.
pub struct ShellPool {
    /// `TILLER_CHILD` of everything of this session starts with it.
    marker: OnceLock<String>,
    count: AtomicU64,
    sandbox: Arc<dyn Sandbox>,
    pub(super) slots: Mutex<HashMap<AgentId, Arc<tokio::sync::Mutex<PooledShell>>>>,
    folders: Mutex<HashMap<AgentId, PathBuf>>,
    states: Mutex<HashMap<AgentId, ShellState>>,
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
    roots: Mutex<Vec<(i32, u64)>>,
    /// Roots that have ended; their sessions may have members.
    ended: Mutex<Vec<i32>>,
    pipes: Mutex<Vec<PathBuf>>,
    guardian: Mutex<Option<Guardian>>,
    zombies: Zombies,
    closed: AtomicBool,
    pub(super) confined: Arc<Mutex<ConfinedCommands>>,
    /// Terminals elsewhere that were used.
    pub(super) places: Mutex<Vec<Arc<dyn Elsewhere>>>,
}

/// What the confined commands of a session have in common.
#[derive(Default)]
pub(super) struct ConfinedCommands {
    /// Temporary files of those that have no shell of their own.
    scratch: Option<tempfile::TempDir>,
    /// Protected files, compared once more at the end of the session.
    pub(super) guards: Vec<Arc<dyn FileGuard>>,
    /// The number of scripts of each agent that run.
    pub(super) scripts: HashMap<AgentId, Arc<AtomicUsize>>,
}

impl std::fmt::Debug for ShellPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShellPool").field("sandbox", &self.sandbox).finish_non_exhaustive()
    }
}

impl Default for ShellPool {
    fn default() -> Self {
        Self::with_sandbox(Arc::new(NoSandbox))
    }
}

/// A finished command, with what the caller needs to word it.
#[derive(Debug)]
pub(crate) struct FinishedCommand {
    pub ended: CommandResult,
    /// The folder, when it is another than before.
    pub moved: Option<PathBuf>,
    /// Number of the process that it left running.
    pub left: Option<String>,
    /// Protected files that were put back, or changed otherwise.
    pub restored: Compared,
}

impl ShellPool {
    /// Shells of this machine, with each launch wrapped by `sandbox`.
    pub fn with_sandbox(sandbox: Arc<dyn Sandbox>) -> Self {
        Self {
            marker: OnceLock::new(),
            count: AtomicU64::new(0),
            sandbox,
            slots: Mutex::default(),
            folders: Mutex::default(),
            states: Mutex::default(),
            jobs: Mutex::default(),
            roots: Mutex::default(),
            ended: Mutex::default(),
            pipes: Mutex::default(),
            guardian: Mutex::default(),
            zombies: Zombies::default(),
            closed: AtomicBool::new(false),
            confined: Arc::default(),
            places: Mutex::default(),
        }
    }

    /// Compares these files again at the end of the session.
    pub(crate) fn watched(&self, guard: Arc<dyn FileGuard>) {
        lock(&self.confined).guards.push(guard);
    }

    /// The folder of the agent's shell now.
    pub fn folder(&self, cx: &ToolCx) -> PathBuf {
        lock(&self.folders).get(&cx.agent).cloned().unwrap_or_else(|| cx.workspace.root.clone())
    }

    /// Which programs the agent's shell runs by their names now.
    pub(crate) fn state(&self, cx: &ToolCx) -> ShellState {
        if cx.workspace.terminal().is_some() {
            // Which programs there are is not known: none of them is taken for harmless.
            return ShellState { redefined: vec!["*".into()], ..ShellState::default() };
        }
        let mut state = lock(&self.states).get(&cx.agent).cloned().unwrap_or_default();
        if state.path.is_empty() {
            let path = cx.child_env.iter().find(|(n, _)| n == "PATH").map(|(_, v)| v.clone());
            state.path = path.unwrap_or_default();
        }
        state.confined = cx.workspace.confines(CommandProfile::Workspace);
        state
    }

    pub(crate) fn sandbox(&self) -> &dyn Sandbox {
        &*self.sandbox
    }

    /// A folder for temporary files of confined commands, until the session ends.
    pub(crate) fn scratch(&self) -> Result<PathBuf, ShellError> {
        let mut confined = lock(&self.confined);
        if confined.scratch.is_none() {
            let made = own_folder::make("scratch");
            confined.scratch = Some(made.map_err(ShellError::system("a folder for temporary files"))?);
        }
        Ok(confined.scratch.as_ref().map(|dir| dir.path().to_owned()).unwrap_or_default())
    }

    pub(crate) fn session_marker(&self) -> &str {
        self.marker.get_or_init(|| {
            // Random by the process's own seed; unique is enough, it is no secret.
            let mut hasher = std::hash::RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            format!("{:016x}.", hasher.finish())
        })
    }

    /// The marker of one shell or process.
    pub(crate) fn fresh_marker(&self) -> String {
        format!("{}{}.", self.session_marker(), self.count.fetch_add(1, Ordering::Relaxed))
    }

    /// Notes a process that we started, for the end of the session.
    pub(crate) fn adopt(&self, root: (i32, u64)) {
        if let Some(g) = &mut *lock(&self.guardian) {
            g.watch(root);
        }
        lock(&self.roots).push(root);
    }

    /// Before a program starts: afterwards it would wait for that, and so would the limits of the program.
    pub(crate) fn prepare(&self, env: &[(String, String)]) {
        end::adopt_orphans();
        let mut guardian = lock(&self.guardian);
        if guardian.is_none() {
            *guardian = Guardian::start(self.session_marker(), env);
        }
    }

    /// Forgets the process of this root, which has ended.
    pub(crate) fn forget(&self, root: (i32, u64)) {
        let mut roots = lock(&self.roots);
        let before = roots.len();
        roots.retain(|r| *r != root);
        if roots.len() < before {
            let mut ended = lock(&self.ended);
            if ended.len() >= ENDED {
                ended.remove(0);
            }
            ended.push(root.0);
        }
        drop(roots);
        if let Some(g) = &mut *lock(&self.guardian) {
            g.forget(root);
        }
    }

    /// Everything of this session that may live.
    pub(crate) fn everything(&self) -> Family {
        Family {
            roots: lock(&self.roots).clone(),
            ended: lock(&self.ended).clone(),
            marker: self.session_marker().to_owned(),
            pipes: lock(&self.pipes).clone(),
            ..Family::default()
        }
    }

    pub(crate) fn check_open(&self) -> Result<(), ShellError> {
        if self.closed.load(Ordering::Acquire) { Err(ShellError::Closed) } else { Ok(()) }
    }

    /// The exported variables that the agent's shell reported last, as shell code, followed by later changes.
    pub(crate) async fn exports(&self, cx: &ToolCx) -> Vec<u8> {
        let slot = lock(&self.slots).get(&cx.agent).cloned();
        let Some(slot) = slot else { return Vec::new() };
        let slot = slot.lock().await;
        let mut code = slot.exports.clone();
        if cx.workspace.terminal().is_none()
            && let Some(line) = slot.env.as_deref().and_then(|old| env_update::change(old, &cx.child_env))
        {
            code.push(b'\n');
            code.extend_from_slice(line.as_bytes());
        }
        code
    }

    pub(crate) fn slot(&self, cx: &ToolCx) -> Arc<tokio::sync::Mutex<PooledShell>> {
        lock(&self.slots).entry(cx.agent.clone()).or_default().clone()
    }

    pub(crate) fn moved_to(&self, folder: PathBuf, cx: &ToolCx) {
        lock(&self.folders).insert(cx.agent.clone(), folder);
    }

    /// Puts a process on the list.
    pub(crate) fn list_job(&self, make: impl FnOnce(String) -> Job) -> Arc<Job> {
        let mut jobs = lock(&self.jobs);
        let n = jobs.keys().next_back().map_or(1, |n| n + 1);
        let job = Arc::new(make(format!("p{n}")));
        jobs.insert(n, job.clone());
        // Ended sessions go first when the list grows long.
        while jobs.len() > 4 * JOBS {
            let Some(old) = jobs.iter().find(|(_, j)| j.exit.borrow().is_some()).map(|(n, _)| *n) else {
                break;
            };
            jobs.remove(&old);
        }
        job
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        lock(&self.jobs).values().filter(|j| j.exit.borrow().is_none()).count()
    }

    /// Background processes that run, each as its id and the first line of its command.
    pub fn living(&self) -> Vec<String> {
        let row = |j: &Arc<Job>| {
            let row = j.row();
            format!("{}: {}", row.id, row.command)
        };
        lock(&self.jobs).values().filter(|j| j.exit.borrow().is_none()).map(row).collect()
    }

    /// All of them, oldest first, each with the last line of its output.
    pub fn rows(&self) -> Vec<ProcessRow> {
        let row = |j: &Arc<Job>| ProcessRow { last: j.last_line().unwrap_or_default(), ..j.row() };
        self.jobs().iter().map(row).collect()
    }

    /// All of them, oldest first.
    pub(crate) fn jobs(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).values().cloned().collect()
    }

    /// Collects dead orphans.
    pub(crate) fn sweep(&self) {
        let roots = lock(&self.roots).clone();
        self.zombies.sweep(&roots);
    }

    /// Ends every process of the session, within 3 s (a bomb: 20 s), and lets nothing new start. Returns how many could
    /// not be ended.
    pub async fn shutdown(&self) -> usize {
        self.closed.store(true, Ordering::Release);
        if self.marker.get().is_none() {
            return 0;
        }
        self.close_there().await;
        let left = end::end(&self.everything(), LAST_GRACE, None).await;
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let mut guards = Vec::new();
        for slot in slots {
            // A slot in use has a command that is being ended, and compares the files itself.
            guards.extend(slot.try_lock().ok().and_then(|mut slot| slot.guard.take()));
        }
        // After the slots: what is compared between two commands is among these.
        guards.append(&mut lock(&self.confined).guards);
        for guard in &guards {
            put_back(guard).await;
        }
        lock(&self.jobs).clear();
        lock(&self.slots).clear();
        lock(&self.roots).clear();
        if let Some(guardian) = lock(&self.guardian).take() {
            guardian.dismiss();
        }
        left
    }

    /// Living processes of the session, for tests and `doctor`.
    pub fn survivors(&self) -> Vec<i32> {
        if self.marker.get().is_none() {
            return Vec::new();
        }
        self.everything().living().iter().map(|s| s.pid).collect()
    }
}

impl Drop for ShellPool {
    fn drop(&mut self) {
        // Not shut down in order: no waiting here, only KILL. What forked meanwhile is left to the guardian.
        if self.marker.get().is_some() && !self.closed.load(Ordering::Acquire) {
            end::kill_now(&self.everything());
            drop(lock(&self.guardian).take());
        }
    }
}
