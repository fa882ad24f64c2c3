//! Finds which programs git would run in a folder because of its configuration, by asking git itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tiller_permit::{GitConfiguration, ShellState, Surroundings};
use tiller_tool::ChildEnv;

use crate::git::command::{Call, ConfigScope, found};
use crate::git::{GitError, Repository, leads, overridden};

/// Time limit of all git calls for one command.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of submodules that are examined, and their maximum depth.
const SUBMODULES: usize = 64;
const DEPTH: usize = 4;

/// Examines the git configuration that applies to the commands of a session.
#[derive(Debug)]
pub struct GitSurroundings {
    env: Arc<ChildEnv>,
}

impl GitSurroundings {
    /// `env`: the environment of child processes.
    pub fn new(env: Arc<ChildEnv>) -> Self {
        Self { env }
    }
}

impl Surroundings for GitSurroundings {
    fn shell(&self) -> ShellState {
        let path = self.env.now().iter().find(|(n, _)| n == "PATH").map(|(_, v)| v.clone());
        ShellState { path: path.unwrap_or_default(), redefined: Vec::new(), ..ShellState::default() }
    }

    fn git(&self, folder: &Path, program: &Path) -> Result<GitConfiguration, String> {
        let env = self.env.now();
        let mut look = Look { env: &env, program, until: Instant::now() + LIMIT, left: SUBMODULES };
        look.at(folder, 0)
    }

    fn planted(&self, folder: &Path, workspace: &Path) -> Option<String> {
        let folder = folder.canonicalize().ok()?;
        if let Some(bare) = bare(&folder) {
            return Some(format!("{} looks like a repository inside another", bare.display()));
        }
        let repository = Repository::find(&folder)?;
        let env = self.env.now();
        // A git binary in the workspace could have been written by an agent.
        let program = found(workspace)?;
        let look = Look { env: &env, program: &program, until: Instant::now() + LIMIT, left: 0 };
        // If git cannot list its configuration, it does not work here at all.
        let list = ["config", "--list", "-z", "--show-scope", "--includes"];
        let settings = parse(&look.call(&folder, &[], &list).ok()?).ok()?;
        settings
            .iter()
            .filter(|s| s.repository)
            .find_map(|s| leads::includes_project(&s.key, &s.value, &repository))
    }

    fn tracked(&self, folder: &Path, program: &Path) -> Result<Vec<PathBuf>, String> {
        let env = self.env.now();
        let look = Look { env: &env, program, until: Instant::now() + LIMIT, left: 0 };
        let out = look.call(folder, &[], &["ls-files", "-z"])?;
        Ok(out.split(|b| *b == 0).filter(|n| !n.is_empty()).map(path_of).collect())
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// One examination, with its deadline.
struct Look<'a> {
    env: &'a [(String, String)],
    program: &'a Path,
    until: Instant,
    left: usize,
}

/// One setting as git reads it.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Whether it comes from the repository's own files, or from files that these include.
    pub(crate) repository: bool,
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Look<'_> {
    fn call(&self, folder: &Path, settings: &[(String, String)], args: &[&str]) -> Result<Vec<u8>, String> {
        let call = Call {
            program: Some(self.program),
            scope: ConfigScope::Person(self.env),
            settings,
            ..Call::new(folder)
        };
        call.run(args, self.until).map_err(|e| match e {
            GitError::Failed(why) => format!("git could not report what it would run here: {why}"),
            e => format!("what git would run here is not known: {e}"),
        })
    }

    fn at(&mut self, folder: &Path, depth: usize) -> Result<GitConfiguration, String> {
        let folder =
            folder.canonicalize().map_err(|e| format!("{} cannot be read: {e}", folder.display()))?;
        let mut out = GitConfiguration { quiet: true, ..GitConfiguration::default() };
        if let Some(bare) = bare(&folder) {
            out.any = Some(format!("{} looks like a nested repository", bare.display()));
            return Ok(out);
        }
        let repository = Repository::find(&folder);
        if let Some(why) = leads::out_of(&folder, repository.as_ref()) {
            out.any = Some(why);
            return Ok(out);
        }
        let list = ["config", "--list", "-z", "--show-scope", "--includes"];
        let settings = parse(&self.call(&folder, &[], &list)?)?;
        judge(&settings, repository.as_ref(), &mut out);
        let Some(repository) = repository else { return Ok(out) };
        if out.any.is_none() {
            self.filters(&folder, &settings, &mut out)?;
            self.submodules(&repository, &mut out, depth)?;
        }
        Ok(out)
    }

    /// Filters that files of the repository use: without them git would report these files as changed.
    fn filters(&self, folder: &Path, settings: &[Setting], out: &mut GitConfiguration) -> Result<(), String> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in settings.iter().filter_map(|s| Some((filter(&s.key)?, s))) {
            if !names.contains(&name) && out.settings.iter().any(|(k, _)| filter(k) == Some(name)) {
                names.push(name);
            }
        }
        for name in names {
            if !plain(name) {
                out.content = Some(format!("the filter '{}' is configured", name.escape_debug()));
                return Ok(());
            }
            let files = format!(":(top,attr:filter={name})");
            let used = self.call(folder, &out.settings, &["ls-files", "-z", "--", &files])?;
            if !used.is_empty() {
                out.content =
                    Some(format!("git runs the filter '{name}' of its configuration on files here"));
            }
        }
        Ok(())
    }

    /// For the state of a submodule git starts another git process, which reads the submodule's own configuration.
    fn submodules(
        &mut self,
        repository: &Repository,
        out: &mut GitConfiguration,
        depth: usize,
    ) -> Result<(), String> {
        let staged = self.call(&repository.work, &out.settings, &["ls-files", "-s", "-z"])?;
        let links = staged.split(|b| *b == 0).filter_map(|row| row.strip_prefix(b"160000 "));
        for row in links {
            let Some(tab) = row.iter().position(|b| *b == b'\t') else { continue };
            let folder = repository.work.join(path_of(&row[tab + 1..]));
            if folder.join(".git").symlink_metadata().is_err() {
                continue;
            }
            if self.left == 0 || depth >= DEPTH {
                out.content = Some("there are more submodules than can be checked".into());
                return Ok(());
            }
            self.left -= 1;
            let inner = self.at(&folder, depth + 1)?;
            out.quiet &= inner.quiet;
            let why = inner.any.or(inner.content).or(inner.compare);
            if let Some(why) = why {
                out.content.get_or_insert(format!("in the submodule {}: {why}", folder.display()));
            }
            for setting in inner.settings {
                if !out.settings.contains(&setting) {
                    out.settings.push(setting);
                }
            }
        }
        Ok(())
    }
}

/// The name in `filter.NAME.KEY`.
fn filter(key: &str) -> Option<&str> {
    key.strip_prefix("filter.")?.rsplit_once('.').map(|(name, _)| name)
}

/// Whether a name has no special meaning in a setting, a variable or a pattern.
fn plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// The folder itself, or one above it up to its repository, that git would take for a bare repository: its
/// configuration is among the files of the project.
fn bare(folder: &Path) -> Option<&Path> {
    for at in folder.ancestors() {
        if at.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        let looks = at.join("HEAD").symlink_metadata().is_ok()
            && at.join("objects").is_dir()
            && (at.join("refs").is_dir() || at.join("config").is_file());
        if looks || at.file_name().is_some_and(|n| n == ".git") {
            return Some(at);
        }
    }
    None
}

/// Parses `scope NUL key LF value NUL`, repeated.
pub(crate) fn parse(out: &[u8]) -> Result<Vec<Setting>, String> {
    let odd = || "git's configuration cannot be read".to_owned();
    let mut fields = out.split(|b| *b == 0);
    let mut settings = Vec::new();
    while let Some(scope) = fields.next() {
        if scope.is_empty() {
            continue;
        }
        let pair = fields.next().ok_or_else(odd)?;
        let pair = String::from_utf8_lossy(pair);
        let (key, value) = pair.split_once('\n').unwrap_or((pair.as_ref(), "true"));
        if scope == b"command" {
            continue;
        }
        settings.push(Setting {
            repository: !matches!(scope, b"system" | b"global"),
            key: key.to_owned(),
            value: value.to_owned(),
        });
    }
    Ok(settings)
}

/// Records what each setting would run, and the override that prevents it.
fn judge(settings: &[Setting], repository: Option<&Repository>, out: &mut GitConfiguration) {
    let steers_lfs = settings.iter().any(|s| s.repository && lfs_runs(&s.key));
    for Setting { repository: own, key, value } in settings {
        let off = value.is_empty() || value == "false";
        let (section, last) =
            (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
        if *own && repository.is_some_and(|r| leads::names_outside(key, value, r)) {
            out.any = Some(format!("{key} names a file elsewhere, which git would read"));
        }
        match (section, last) {
            ("filter" | "diff", _) if overridden(key).is_some() && key.matches('.').count() >= 2 => {
                if section == "filter" && !own && !steers_lfs && standard_lfs(key, value) {
                    continue;
                }
                out.quiet = false;
                let name = key.split_once('.').and_then(|(_, r)| r.rsplit_once('.')).map_or("", |(n, _)| n);
                if !plain(name) {
                    out.content =
                        Some(format!("the {section} driver '{}' is configured", name.escape_debug()));
                } else if (section, last) == ("diff", "command") {
                    out.compare =
                        Some(format!("{key} runs a program to compare files; use --no-ext-diff to avoid it"));
                } else if let Some(value) = overridden(key) {
                    let setting = (key.clone(), value.to_owned());
                    if !out.settings.contains(&setting) {
                        out.settings.push(setting);
                    }
                }
            }
            ("diff", "external") if !off => {
                out.quiet = false;
                out.compare = Some(
                    "diff.external runs a program to compare files; use --no-ext-diff to avoid it".into(),
                );
            }
            ("core", "worktree") if *own => {
                let leads = repository
                    .is_some_and(|r| r.dir.join(value).canonicalize().ok() == r.work.canonicalize().ok());
                if !leads {
                    out.any = Some("core.worktree points to another folder".into());
                }
            }
            ("hook", _) if *own => out.any = Some(format!("{key} names a program that git may run")),
            (
                "core",
                "fsmonitor" | "hookspath" | "sshcommand" | "gitproxy" | "alternaterefscommand" | "askpass",
            )
            | ("log", "showsignature")
                if !off =>
            {
                out.quiet = false;
            }
            ("gpg", "program")
            | ("extensions", "partialclone")
            | ("remote", "promisor" | "partialclonefilter") => {
                out.quiet = false;
            }
            _ => {}
        }
    }
    if let Some(repository) = repository {
        let hook = repository.common.join("hooks/post-index-change");
        out.quiet &= hook.symlink_metadata().is_err();
    }
}

/// Whether it is the filter of Git LFS as its installer writes it. That is the person's own setting, and without it the
/// files of Git LFS would all seem changed.
fn standard_lfs(key: &str, value: &str) -> bool {
    matches!(
        (key, value),
        ("filter.lfs.clean", "git-lfs clean -- %f")
            | ("filter.lfs.smudge", "git-lfs smudge -- %f" | "git-lfs smudge --skip -- %f")
            | ("filter.lfs.process", "git-lfs filter-process" | "git-lfs filter-process --skip")
            | ("filter.lfs.required", "true")
    )
}

/// Settings with which Git LFS runs other programs.
pub(crate) fn lfs_runs(key: &str) -> bool {
    let harmless =
        key == "lfs.repositoryformatversion" || key.ends_with(".access") || key.ends_with(".locksverify");
    (key.starts_with("lfs.") && !harmless) || key.starts_with("filter.lfs.")
}

#[cfg(test)]
#[path = "git_around_tests.rs"]
mod tests;
