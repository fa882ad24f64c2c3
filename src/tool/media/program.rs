//! A renderer of this machine: started in the sandbox of what only reads, without network, in a folder of its own, with a
//! limit of time; it ends with all that it started.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tiller_protocol::{Access, lock, names};
use tokio::net::unix::pipe::Receiver;
use tokio_util::task::AbortOnDropHandle;

use super::words;
use crate::browser::BrowserSettings;
use crate::shell::ShellError;
use crate::shell::processes::bounds::{self, Guard};
use crate::shell::processes::forks::ForkLimit;
use crate::shell::processes::launch::{self, Leader};
use crate::shell::processes::proc_fs::Family;
use crate::shell::processes::{end, environment};
use crate::state::ToolState;
use crate::text::clean;
use crate::{ToolCx, ToolError};

/// Bytes of its output that are kept, and characters that are shown.
const KEPT: usize = 16 << 10;
const SHOWN: usize = 600;
/// Time to end after TERM.
const GRACE: Duration = Duration::from_secs(2);
/// A proxy that nothing listens at.
const NOWHERE: &str = "http://127.0.0.1:9";
/// Bytes of a result.
const RESULT: u64 = 48 << 20;

/// The renderers that were found on `PATH`.
#[derive(Clone, Debug, Default)]
pub struct Renderers {
    /// Graphviz.
    pub dot: Option<PathBuf>,
    /// The command line of Mermaid.
    pub mmdc: Option<PathBuf>,
    /// The Chromium with which Mermaid draws: that of the browser's tools.
    pub chromium: Option<PathBuf>,
    pub pandoc: Option<PathBuf>,
    /// What makes PDF files for pandoc.
    pub pdf: Option<PathBuf>,
    /// Longest time of one run; `None`: [`TIME`].
    pub time: Option<Duration>,
}

/// Longest time of one run.
const TIME: Duration = Duration::from_secs(120);

/// What makes PDF files for pandoc, the lightest first.
const PDF: &[&str] = &["typst", "weasyprint", "wkhtmltopdf", "tectonic", "xelatex", "lualatex", "pdflatex"];

impl Renderers {
    /// Those of this `PATH`.
    pub fn find(path: &str) -> Self {
        let env = [("PATH".to_owned(), path.to_owned())];
        let find = |name: &str| environment::find(name, &env);
        Self {
            dot: find("dot"),
            mmdc: find("mmdc"),
            chromium: BrowserSettings::local(path).program,
            pandoc: find("pandoc"),
            pdf: PDF.iter().find_map(|name| find(name)),
            time: None,
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.time.unwrap_or(TIME)
    }
}

/// What starting `program` needs where the kernel confines nothing: that the command may run.
pub(super) fn access(program: &Path, cx: &ToolCx) -> Option<Access> {
    let confined = cx.reading_confiner().is_some_and(|confiner| confiner.confines());
    (!confined).then(|| Access::Run {
        command: names::written(program),
        folder: names::written(&cx.workspace.root),
        background: false,
    })
}

/// One run.
pub(super) struct Run<'a> {
    pub program: &'a Path,
    pub args: Vec<String>,
    /// Its working folder, and the only one that it can write.
    pub folder: &'a Path,
    pub time: Duration,
}

impl Run<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// What it said when it failed; that it took too long, or was stopped.
    pub(super) async fn finish(self, cx: &ToolCx) -> Result<(), ToolError> {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tell = |e: ShellError| ToolError::Tell(format!("{name} could not be started: {e}"));
        let mut child = Child::start(&self, cx).map_err(tell)?;
        enum How {
            Ended(i32),
            Late,
            Stopped,
        }
        let how = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => How::Stopped,
            exit = child.leader.ended() => How::Ended(exit.code),
            () = tokio::time::sleep(self.time) => How::Late,
        };
        let excess = child.guard.said();
        // Also after a regular end: it may have left processes behind.
        let _ = end::end(&child.family, GRACE, Some(&cx.hard)).await;
        child.over = true;
        // What it printed is complete now: nothing holds the pipe any more.
        let _ = tokio::time::timeout(GRACE, &mut child.task).await;
        match how {
            How::Stopped => Err(ToolError::Interrupted(String::new())),
            How::Late => {
                Err(ToolError::TimedOut(format!("{name} was ended after {} s", self.time.as_secs())))
            }
            How::Ended(0) => Ok(()),
            How::Ended(code) => {
                let said = excess.unwrap_or_else(|| child.said());
                let said = said.replace(&format!("{}/", self.folder.display()), "");
                let said = words(&said, SHOWN);
                Err(ToolError::Tell(match said.as_str() {
                    "" => format!("{name} failed (exit {code}) without a message"),
                    said => format!("{name} failed (exit {code}): {said}"),
                }))
            }
        }
    }
}

/// The file that a run made.
///
/// # Errors
/// When there is none, or it is empty or too large.
pub(super) fn made(file: &Path, program: &Path) -> Result<Vec<u8>, ToolError> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // It wrote in this folder: a link would lead elsewhere.
    let (folder, leaf) = (file.parent().unwrap_or(file), file.file_name().unwrap_or_default());
    match tiller_fs::beneath::read_below(folder, Path::new(leaf), RESULT + 1) {
        Ok(bytes) if bytes.is_empty() => Err(ToolError::Tell(format!("{name} made an empty file"))),
        Ok(bytes) if bytes.len() as u64 > RESULT => {
            Err(ToolError::Tell(format!("{name} made a file that is larger than 50 MB")))
        }
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(ToolError::Tell(format!("{name} made no file"))),
    }
}

/// A running program. Dropping it kills it, and all that it started.
struct Child {
    leader: Leader,
    family: Family,
    guard: Guard,
    said: Arc<std::sync::Mutex<Vec<u8>>>,
    state: std::sync::Weak<ToolState>,
    over: bool,
    task: AbortOnDropHandle<()>,
}

impl Child {
    fn start(run: &Run<'_>, cx: &ToolCx) -> Result<Self, ShellError> {
        let system = ShellError::system;
        let pool = &cx.state.shells;
        pool.check_open()?;
        let mut env = environment::environment(&cx.child_env);
        let marker = pool.fresh_marker();
        env.retain(|(name, _)| name != "TILLER_CHILD");
        env.push(("TILLER_CHILD".into(), marker.clone()));
        // Where no sandbox keeps it from the network, this does: pandoc would fetch images of a document.
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            env.retain(|(n, _)| n != name);
            env.push((name.into(), NOWHERE.into()));
        }
        env.retain(|(name, _)| !name.eq_ignore_ascii_case("no_proxy"));
        let launch = launch::Launch {
            program: run.program.to_owned(),
            args: run.args.clone(),
            env,
            folder: run.folder.to_owned(),
        };
        let forks = ForkLimit::default();
        let launch = match cx.reading_confiner() {
            Some(confiner) => confiner.confine_limited(launch, &cx.workspace.root, run.folder, &forks),
            None => pool.sandbox().wrap(launch),
        };
        let (out, stdout) = std::io::pipe().map_err(system("a pipe"))?;
        let stderr = stdout.try_clone().map_err(system("a pipe"))?;
        let out = Receiver::from_owned_fd(OwnedFd::from(out)).map_err(system("a pipe"))?;
        pool.prepare(&environment::outside(&cx.child_env, &cx.workspace.root));
        let leader = launch::start(&launch, std::process::Stdio::null(), stdout.into(), stderr.into())
            .map_err(system("the program"))?;
        let root = (leader.pid, leader.start);
        pool.adopt(root);
        let family = Family { roots: vec![root], marker, ..Family::default() };
        bounds::apply(root.0, cx.limits.bounds);
        let guard = Guard::start(family.clone(), cx.limits.bounds, Some(leader.exit.clone()), &forks);
        let said: Arc<std::sync::Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&said);
        let task = tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while out.readable().await.is_ok() {
                match out.try_read(&mut chunk) {
                    Ok(0) => break,
                    Ok(n) => {
                        let mut kept = lock(&kept);
                        let room = (KEPT - kept.len()).min(n);
                        kept.extend_from_slice(&chunk[..room]);
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        });
        let child = Self {
            leader,
            family,
            guard,
            said,
            state: Arc::downgrade(&cx.state),
            over: false,
            task: AbortOnDropHandle::new(task),
        };
        // A shutdown between the check and here has not seen it; dropping it kills it.
        pool.check_open()?;
        Ok(child)
    }

    /// What it printed, clean.
    fn said(&self) -> String {
        clean(&lock(&self.said))
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
