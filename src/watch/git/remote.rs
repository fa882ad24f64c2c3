//! Fetches the files of one commit of a repository elsewhere. Nothing of it is checked out: git writes the commit as a tar
//! file, which the caller unpacks within limits. So no hook, filter, submodule or link of the repository has an effect.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::git::command::{Call, ConfigScope, Stop};
use crate::git::{GitError, Repository};

/// Most files of a commit.
const FILES: usize = 5000;

/// What is fetched, and how much at most.
pub struct Remote<'a> {
    /// `https://`, `ssh://`, `file://` or `git@HOST:PATH`.
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
        // In addition to those of every call.
        let off = [
            ("core.symlinks", "false"),
            ("core.sshCommand", "ssh -oBatchMode=yes -oPermitLocalCommand=no"),
            ("fetch.recurseSubmodules", "false"),
            ("uploadpack.packObjectsHook", ""),
        ];
        let settings: Vec<_> = off.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
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
            scope: ConfigScope::None,
            settings: &settings,
            network: true,
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
        call.run(&fetch, until)?;
        let call = Call { network: false, ..call };
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

/// Bytes of the files directly in a folder.
fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
