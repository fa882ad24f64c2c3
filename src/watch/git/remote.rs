//! Fetches the files of one commit of a repository elsewhere. Nothing of it is checked out: git writes the commit as a tar
//! file, which the caller unpacks within limits. So no hook, filter, submodule or link of the repository has an effect.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::git::command::{Call, ConfigScope, Stop};
use crate::git::{GitError, Repository};

/// Most files of a commit.
const FILES: usize = 5000;
/// Protocols that are used. Without encryption only to this machine.
const PROTOCOLS: &str = "https:ssh:file";
const LOCAL_PROTOCOLS: &str = "http";
const LOCAL: [&str; 3] = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
/// What ssh may not do: ask, or run a command of its settings.
const SSH: &str = "-oBatchMode=yes -oPermitLocalCommand=no";
/// Variables that say where the user's settings of git are, and those of the programs that it starts.
const PERSON: &[&str] = &[
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "USER",
    "LOGNAME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];

/// What is fetched, and how much at most.
pub struct Remote<'a> {
    /// `https://`, `ssh://`, `file://` or `git@HOST:PATH`; `http://` to this machine.
    pub url: &'a str,
    /// A branch, a tag or a whole commit hash; `None`: what the repository shows first.
    pub reference: Option<&'a str>,
    /// Time limit for all of it.
    pub limit: Duration,
    /// Bytes of the files of the commit at most. What comes over the wire may be four times as much.
    pub bytes: u64,
    /// Asked again and again meanwhile; true ends the fetch.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The hash of the commit.
    pub commit: String,
    /// Its files, as a tar file.
    pub tar: Vec<u8>,
}

/// Whether this is an address that git may be given. `ext::` and the like, options, and names with blanks are not.
pub fn is_url(url: &str) -> bool {
    let plain =
        |text: &str| text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '\\' | '"' | '\'' | '`'));
    let rest = match url.split_once("://") {
        Some(("https" | "ssh", rest)) => {
            !rest.is_empty() && !rest.starts_with(['-', '/']) && !rest.contains("@-")
        }
        Some(("file", rest)) => rest.starts_with('/'),
        Some(("http", _)) => is_local(url),
        Some(_) => false,
        None => url.strip_prefix("git@").is_some_and(|rest| {
            rest.split_once(':').is_some_and(|(host, path)| {
                !host.is_empty()
                    && !host.starts_with('-')
                    && !host.contains('/')
                    && !path.is_empty()
                    && !path.starts_with([':', '-'])
            })
        }),
    };
    rest && plain(url)
}

/// Whether an address without encryption leads to this machine.
fn is_local(url: &str) -> bool {
    LOCAL.iter().any(|start| url.starts_with(start)) && !url.contains('@')
}

/// Whether this can be the name of a branch or a tag, or a hash.
pub fn is_reference(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+');
    !name.is_empty()
        && name.len() <= 200
        && name.chars().all(plain)
        && !name.starts_with(['-', '.', '/', '+'])
        && !name.ends_with(['/', '.'])
        && !name.contains("..")
        && !name.contains("//")
}

impl Remote<'_> {
    /// Fetches it. `scratch` is an empty folder that the caller removes. Blocks, at most for the limit.
    ///
    /// # Errors
    /// When the address or the reference is none, git is missing, fails, is slow or is stopped, the commit is too large,
    /// or it has links or submodules.
    pub fn fetch(&self, scratch: &Path) -> Result<Fetched, GitError> {
        let until = Instant::now() + self.limit;
        if !is_url(self.url) {
            return Err(GitError::Failed("this is not an address for git".into()));
        }
        if self.reference.is_some_and(|name| !is_reference(name)) {
            return Err(GitError::Failed("this is not the name of a branch, tag or commit".into()));
        }
        let person: Vec<(String, String)> =
            PERSON.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
        // In addition to those of every call.
        let off = [
            ("core.symlinks", "false"),
            ("core.askPass", "/bin/false"),
            ("fetch.recurseSubmodules", "false"),
            ("uploadpack.packObjectsHook", ""),
        ];
        let mut settings: Vec<_> = off.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        settings.push(("core.sshCommand".into(), ssh(scratch, &person, until)));
        if is_local(self.url) {
            settings.push(("http.followRedirects".into(), "false".into()));
        }
        let helper = ["--get-urlmatch", "credential.helper", self.url];
        settings.extend(setting(scratch, &person, &helper, until).map(|h| ("credential.helper".into(), h)));
        let folder = scratch.join("repository");
        let name = folder.display().to_string();
        Call { settings: &settings, ..Call::new(scratch) }
            .run(&["init", "-q", "--template=", "--", &name], until)?;
        let repository = Repository::at(&folder).ok_or(GitError::NoRepository)?;
        let packs = repository.dir.join("objects/pack");
        let most = self.bytes.saturating_mul(4);
        let stop = || match (self.cancelled)() {
            true => Some(GitError::Stopped),
            false => (size(&packs) > most).then_some(GitError::TooLarge),
        };
        let call = Call {
            repository: Some(&repository),
            scope: ConfigScope::Person(&person),
            settings: &settings,
            network: Some(if is_local(self.url) { LOCAL_PROTOCOLS } else { PROTOCOLS }),
            stop: Some(Stop(&stop)),
            ..Call::new(&folder)
        };
        let reference = self.reference.unwrap_or("HEAD");
        let fetch = [
            "fetch",
            "-q",
            "--depth",
            "1",
            "--no-tags",
            "--no-recurse-submodules",
            "--",
            self.url,
            reference,
        ];
        call.run(&fetch, until).map_err(explained)?;
        let call = Call { network: None, scope: ConfigScope::None, ..call };
        let commit = call.run(&["rev-parse", "--verify", "-q", "FETCH_HEAD^{commit}"], until)?;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        self.check(&call.run(&["ls-tree", "-r", "-l", "-z", "--full-tree", &commit], until)?)?;
        let tar = call.run(&["archive", "--format=tar", &commit], until)?;
        Ok(Fetched { commit, tar })
    }

    /// Looks at the list of the files: `MODE TYPE HASH SIZE TAB PATH NUL`.
    fn check(&self, list: &[u8]) -> Result<(), GitError> {
        let (mut files, mut bytes) = (0, 0u64);
        for line in list.split(|b| *b == 0).filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let (head, path) = line.split_once('\t').unwrap_or((&line, ""));
            let path = path.escape_debug();
            match head.split(' ').next().unwrap_or_default() {
                "100644" | "100755" | "100664" => {}
                "120000" => {
                    return Err(GitError::Failed(format!("{path} is a link; only regular files are taken")));
                }
                "160000" => {
                    return Err(GitError::Failed(format!(
                        "{path} is a submodule; only regular files are taken"
                    )));
                }
                _ => return Err(GitError::Failed(format!("{path} is no regular file"))),
            }
            files += 1;
            bytes += head.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or_default();
        }
        if files > FILES || bytes > self.bytes { Err(GitError::TooLarge) } else { Ok(()) }
    }
}

/// The user's own ssh command, which may not ask.
fn ssh(folder: &Path, person: &[(String, String)], until: Instant) -> String {
    let own = std::env::var("GIT_SSH_COMMAND").ok().filter(|command| !command.trim().is_empty());
    let own = own.or_else(|| setting(folder, person, &["--get", "core.sshCommand"], until));
    match own {
        None => format!("ssh {SSH}"),
        // Other programs have other options.
        Some(own)
            if own.split_whitespace().next().is_some_and(|program| Path::new(program).ends_with("ssh")) =>
        {
            format!("{own} {SSH}")
        }
        Some(own) => own,
    }
}

/// A setting of the user's, or else of the machine's.
fn setting(folder: &Path, person: &[(String, String)], what: &[&str], until: Instant) -> Option<String> {
    let call = Call { scope: ConfigScope::Person(person), ..Call::new(folder) };
    ["--global", "--system"].into_iter().find_map(|place| {
        let args = [&["config", place, "--includes"], what].concat();
        let value = String::from_utf8(call.run(&args, until).ok()?).ok()?;
        Some(value.trim_end().to_owned()).filter(|value| !value.is_empty())
    })
}

/// What to do where git or ssh would have asked.
fn explained(error: GitError) -> GitError {
    let GitError::Failed(text) = &error else { return error };
    let why = if text.contains("askpass")
        || text.contains("terminal prompts disabled")
        || text.contains("could not read Username")
    {
        "the server asks for a name and a password; store them with a credential helper of git, or use ssh"
    } else if text.contains("IDENTIFICATION HAS CHANGED") {
        "the key of the server is another one than before, so nothing was fetched; ask who runs it why"
    } else if text.contains("Host key verification failed") || text.contains("host key is known") {
        "the key of the server is not known; connect to it once with ssh and check the key"
    } else if text.contains("Permission denied") {
        "the server does not accept a key of yours; add one to ssh-agent, or to the server"
    } else {
        return error;
    };
    GitError::Failed(why.into())
}

/// Bytes of the files directly in a folder.
fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
