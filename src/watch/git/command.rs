//! Builds every git command of this crate: no hooks, no pager, no prompts, no network, no helper programs from the
//! repository, a cleared environment, a time limit.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use tiller_permit::surroundings::git_variables;

use crate::git::{GitError, Repository};

/// Maximum bytes of output that are kept.
const MAX: u64 = 32 << 20;
/// Interval between checks whether git has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The git configuration that applies in addition to the repository's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConfigScope<'a> {
    /// Neither the person's nor the system's configuration.
    None,
    /// The person's configuration, located by these variables.
    Person(&'a [(String, String)]),
}

/// One call of git.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// Working folder.
    pub(crate) folder: &'a Path,
    /// The repository, named explicitly so that git does not search for one.
    pub(crate) repository: Option<&'a Repository>,
    pub(crate) scope: ConfigScope<'a>,
    /// Settings in addition to the arguments of every call.
    pub(crate) settings: &'a [(String, String)],
    /// `None`: the first git on `PATH` that is not below `folder`.
    pub(crate) program: Option<&'a Path>,
    /// The protocols by which it may reach other machines, with `:` between them; `None`: it may not.
    pub(crate) network: Option<&'a str>,
    /// Asked while git runs.
    pub(crate) stop: Option<Stop<'a>>,
}

/// Ends a call of git early: `Some` says why.
#[derive(Clone, Copy)]
pub(crate) struct Stop<'a>(pub(crate) &'a dyn Fn() -> Option<GitError>);

impl std::fmt::Debug for Stop<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stop")
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self {
            folder,
            repository: None,
            scope: ConfigScope::None,
            settings: &[],
            program: None,
            network: None,
            stop: None,
        }
    }

    /// Runs git and returns its standard output. Blocks, at most until `until`.
    ///
    /// # Errors
    /// When git is missing, fails or is slow.
    pub(crate) fn run(&self, args: &[&str], until: Instant) -> Result<Vec<u8>, GitError> {
        let mut command = CommandWrap::from(self.command(args)?);
        if self.network.is_some() {
            // Without a terminal: neither ssh nor a credential helper can ask on the screen, or wait for keys.
            command.wrap(ProcessSession);
        }
        let mut child = tiller_tool::shell::apart(|| command.spawn()).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => GitError::Missing,
            _ => GitError::Failed(e.to_string()),
        })?;
        let out = reader(child.stdout().take(), MAX);
        let err = reader(child.stderr().take(), 4096);
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {
                    let slow = (Instant::now() >= until).then_some(GitError::Slow);
                    let Some(why) = slow.or_else(|| self.stop.and_then(|stop| (stop.0)())) else {
                        pause();
                        continue;
                    };
                    end(&mut *child);
                    return Err(why);
                }
                Err(e) => return Err(GitError::Failed(e.to_string())),
            }
        };
        let out = out.and_then(|t| t.join().ok()).unwrap_or_default();
        let err = err.and_then(|t| t.join().ok()).unwrap_or_default();
        if status.success() {
            return Ok(out);
        }
        let text = String::from_utf8_lossy(&err);
        if text.contains("not a git repository") {
            return Err(GitError::NoRepository);
        }
        // ssh draws frames.
        let said = |line: &&str| !line.trim_matches(['@', ' ']).is_empty();
        Err(GitError::Failed(text.lines().find(said).unwrap_or("no message").to_owned()))
    }

    fn command(&self, args: &[&str]) -> Result<Command, GitError> {
        let program = match self.program {
            Some(program) => program.to_owned(),
            None => found(self.folder).ok_or(GitError::Missing)?,
        };
        let mut command = Command::new(program);
        command.arg("--no-optional-locks").arg("--no-pager");
        if let Some(repository) = self.repository {
            command.arg("--git-dir").arg(&repository.dir).arg("--work-tree").arg(&repository.work);
        }
        command.args(args).current_dir(self.folder).env_clear();
        match self.scope {
            ConfigScope::None => {
                if let Some(path) = std::env::var_os("PATH") {
                    command.env("PATH", path);
                }
                command.envs([
                    ("GIT_CONFIG_GLOBAL", "/dev/null"),
                    ("GIT_CONFIG_NOSYSTEM", "1"),
                    ("GIT_CONFIG_SYSTEM", "/dev/null"),
                ]);
            }
            ConfigScope::Person(variables) => {
                command.envs(variables.iter().map(|(k, v)| (k, v)));
            }
        }
        command.envs(git_variables(self.settings)).env("LC_ALL", "C.UTF-8");
        if let Some(protocols) = self.network {
            command.env("GIT_ALLOW_PROTOCOL", protocols).env("GIT_TERMINAL_PROMPT", "0");
            // A credential helper that has windows.
            command.env("GCM_INTERACTIVE", "never");
            // The way out that holds for all of Tiller's connections, and the agent with the person's keys.
            let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"];
            let own = names.into_iter().chain(["SSH_AUTH_SOCK"]);
            command.envs(own.filter_map(|name| Some((name, std::env::var_os(name)?))));
            if let Some(file) = std::env::var_os("SSL_CERT_FILE") {
                command.env("GIT_SSL_CAINFO", file);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A process group of its own: Ctrl-C is for Tiller, and git must not read keys. A session of its own has one.
        if self.network.is_none() {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        Ok(command)
    }
}

/// Kills git and the programs that it started.
fn end(child: &mut dyn ChildWrapper) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The first git on Tiller's `PATH` that is in an absolute folder and not in the work tree.
pub(super) fn found(work: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let work = work.canonicalize().unwrap_or_else(|_| work.to_owned());
    std::env::split_paths(&path).filter(|f| f.is_absolute()).map(|f| f.join("git")).find(|file| {
        let real = file.canonicalize();
        rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
            && real.is_ok_and(|real| real.is_file() && !real.starts_with(&work))
            && !file.starts_with(&work)
    })
}

fn pause() {
    // Worker threads wait a few milliseconds for the child; the standard library has no wait with a time limit.
    std::thread::park_timeout(LOOK);
}

fn reader<R: Read + Send + 'static>(pipe: Option<R>, max: u64) -> Option<std::thread::JoinHandle<Vec<u8>>> {
    let pipe = pipe?;
    let read = move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(max);
        let _ = pipe.read_to_end(&mut bytes);
        // Output beyond the limit is discarded, so that git can end.
        let _ = std::io::copy(&mut pipe.into_inner(), &mut std::io::sink());
        bytes
    };
    std::thread::Builder::new().name("tiller-git-read".into()).stack_size(128 << 10).spawn(read).ok()
}
