//! The one way in which we call git on a repository that may be hostile: fixed overrides, no hooks, no
//! pager, no prompts, no network, no helpers that the repository names, cleared environment, a time limit.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Output that is read at most.
const MAX: u64 = 32 << 20;
/// Between two looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Why git gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed")]
    Missing,
    #[error("not a git repository")]
    NoRepository,
    #[error("git took too long")]
    Slow,
    #[error("git failed: {0}")]
    Failed(String),
}

/// Settings that could run something or reach out, put out of action.
const SAFE: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
];

/// A repository, named explicitly so that none is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The work tree's folder.
    pub work: PathBuf,
    /// `.git`, or where its pointer file leads.
    pub dir: PathBuf,
    /// Where branches are; `dir` but for linked work trees.
    pub common: PathBuf,
}

impl Repository {
    /// The repository whose work tree holds `folder`, by reading alone.
    pub fn find(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    fn at(work: &Path) -> Option<Self> {
        let entry = work.join(".git");
        let meta = entry.symlink_metadata().ok()?;
        let dir = if meta.is_dir() {
            entry
        } else if meta.is_file() && meta.len() < 4096 {
            // A work tree of its own or a submodule: `gitdir: PATH`.
            let text = std::fs::read_to_string(&entry).ok()?;
            work.join(text.strip_prefix("gitdir:")?.trim())
        } else {
            return None;
        };
        dir.join("HEAD").symlink_metadata().ok()?;
        let common = std::fs::read_to_string(dir.join("commondir"))
            .map_or_else(|_| dir.clone(), |text| dir.join(text.trim()));
        Some(Self { work: work.to_owned(), dir, common })
    }

    /// The branch as `HEAD` names it; `None` when detached or unreadable.
    pub fn branch(&self) -> Option<String> {
        let head = std::fs::read_to_string(self.dir.join("HEAD")).ok()?;
        Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
    }

    /// `merging`, `rebasing`, ...; empty when nothing is under way.
    pub fn under_way(&self) -> &'static str {
        let has = |name: &str| self.dir.join(name).symlink_metadata().is_ok();
        match () {
            () if has("rebase-merge") || has("rebase-apply") => "rebasing",
            () if has("MERGE_HEAD") => "merging",
            () if has("CHERRY_PICK_HEAD") => "cherry-picking",
            () if has("REVERT_HEAD") => "reverting",
            () if has("BISECT_LOG") => "bisecting",
            () => "",
        }
    }

    /// Runs git on it; gives its standard output. Blocks, at most for `limit`.
    ///
    /// # Errors
    /// When git is missing, fails or is slow.
    pub fn run(&self, args: &[&str], limit: Duration) -> Result<Vec<u8>, GitError> {
        let until = Instant::now() + limit;
        let filters = self.filters(until)?;
        self.call(&filters, args, until)
    }

    /// Filters run programs that the repository names, even for `status`. Each is overridden by name.
    fn filters(&self, until: Instant) -> Result<Vec<String>, GitError> {
        let names =
            match self.call(&[], &["config", "--name-only", "-z", "--get-regexp", "^filter\\."], until) {
                Ok(names) => names,
                // Exit 1: there are none.
                Err(GitError::Failed(_)) => return Ok(Vec::new()),
                Err(e) => return Err(e),
            };
        let mut over = Vec::new();
        for name in names.split(|b| *b == 0).filter(|n| !n.is_empty()) {
            let name = String::from_utf8_lossy(name);
            let value = if name.ends_with(".required") { "false" } else { "" };
            over.push(format!("{name}={value}"));
        }
        Ok(over)
    }

    fn call(&self, over: &[String], args: &[&str], until: Instant) -> Result<Vec<u8>, GitError> {
        let mut command = Command::new("git");
        command.arg("--no-optional-locks").arg("--no-pager");
        command.arg("--git-dir").arg(&self.dir).arg("--work-tree").arg(&self.work);
        for setting in SAFE.iter().copied().chain(over.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        command.args(args).current_dir(&self.work).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_ASKPASS", "false"),
            ("GIT_PAGER", "cat"),
            ("GIT_ALLOW_PROTOCOL", ""),
            ("LC_ALL", "C.UTF-8"),
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Not in the terminal's foreground group: Ctrl-C is for us, and nothing of it may read keys.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => GitError::Missing,
            _ => GitError::Failed(e.to_string()),
        })?;
        let out = reader(child.stdout.take(), MAX);
        let err = reader(child.stderr.take(), 4096);
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < until => pause(),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(GitError::Slow);
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
        Err(GitError::Failed(text.lines().next().unwrap_or("no message").to_owned()))
    }
}

fn pause() {
    // A worker thread that waits for a child of a few milliseconds; std has no wait with a limit.
    std::thread::park_timeout(LOOK);
}

fn reader<R: Read + Send + 'static>(pipe: Option<R>, max: u64) -> Option<std::thread::JoinHandle<Vec<u8>>> {
    let pipe = pipe?;
    let read = move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(max);
        let _ = pipe.read_to_end(&mut bytes);
        // What is over the cap is read away, so that git can end.
        let _ = std::io::copy(&mut pipe.into_inner(), &mut std::io::sink());
        bytes
    };
    std::thread::Builder::new().name("tiller-git-read".into()).stack_size(128 << 10).spawn(read).ok()
}

#[cfg(test)]
#[path = "git_tests.rs"]
pub(crate) mod tests;
