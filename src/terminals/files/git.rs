//! Git's own files of a folder, which are copied to the other side only (the setting `git`): nothing of them is ever taken
//! back, and no hooks, no programs and no addresses go there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::known::{Stamp, below};
use super::tree;

/// Of the folder that all worktrees of a repository share: files, and folders with all that is in them.
const SHARED: &[&str] = &[
    "objects",
    "refs",
    "reftable",
    "logs",
    "packed-refs",
    "shallow",
    "info/exclude",
    "info/attributes",
    "config",
];
/// Of the worktree; a name that ends with `*` or begins with it stands for more.
const OWN: &[&str] = &["HEAD", "*_HEAD", "index", "sharedindex.*", "MERGE_MSG", "MERGE_MODE"];
/// Names that are for a moment, or lead elsewhere.
const LEFT_OUT: &[&str] = &["objects/info/alternates", "objects/info/http-alternates"];
/// Without these folders git finds no repository; a file keeps an empty one.
const KEPT: &[&str] = &[".git/objects/info/tiller", ".git/refs/tiller.lock"];
/// Settings that say how the files of the repository are to be read. All others stay here.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "ignorecase",
            "symlinks",
            "precomposeunicode",
            "autocrlf",
            "eol",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
];

/// A repository, as the folder's `.git` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Of this worktree: `HEAD` and the index.
    own: PathBuf,
    /// What all worktrees share.
    pub(crate) common: PathBuf,
}

impl Repository {
    /// Whether the folder is a worktree of a repository that lies elsewhere.
    pub(crate) fn is_linked(&self) -> bool {
        self.own != self.common
    }

    /// `None`: the folder is not the root of a worktree. A `.git` that is a file counts only if the repository names this
    /// worktree too, since a command may have written it.
    pub(crate) fn of(root: &Path) -> Option<Self> {
        let git = root.join(".git");
        let meta = git.symlink_metadata().ok()?;
        if meta.is_dir() {
            return Some(Self { own: git.clone(), common: git });
        }
        let text = std::fs::read_to_string(&git).ok().filter(|_| meta.is_file())?;
        let own = root.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        let back = std::fs::read_to_string(own.join("gitdir")).ok()?;
        if Path::new(back.trim()).canonicalize().ok()? != git.canonicalize().ok()? {
            return None;
        }
        let common = std::fs::read_to_string(own.join("commondir")).ok()?;
        let common = own.join(common.trim()).canonicalize().ok()?;
        (own.starts_with(&common) && common.join("HEAD").is_file()).then_some(Self { own, common })
    }

    /// Its files by the paths that they get there, and how many are too large. Reads folders, no files.
    pub(super) fn scan(&self) -> (BTreeMap<String, Stamp>, usize) {
        let (mut files, mut large) = (BTreeMap::new(), 0);
        let mut add = |folder: &Path, path: &str| {
            let Some(stamp) = tree::now(folder, path) else { return };
            if stamp.size > tree::LARGEST {
                large += 1;
            } else if allowed(path) {
                files.insert(format!(".git/{path}"), stamp);
            }
        };
        for name in names(&self.own) {
            if OWN.iter().any(|pattern| matches(pattern, &name)) {
                add(&self.own, &name);
            }
        }
        let mut folders: Vec<String> = Vec::new();
        for path in SHARED {
            add(&self.common, path);
            folders.push((*path).to_owned());
        }
        while let Some(folder) = folders.pop() {
            // Not through a link.
            let at = self.common.join(&folder);
            if !at.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                continue;
            }
            for name in names(&at) {
                let path = format!("{folder}/{name}");
                add(&self.common, &path);
                folders.push(path);
            }
        }
        (files, large)
    }

    /// What goes there under this path, and its mode.
    pub(super) fn read(&self, path: &str) -> io::Result<(Vec<u8>, u32)> {
        let inner = path.strip_prefix(".git/").ok_or(io::ErrorKind::InvalidInput)?;
        let own = OWN.iter().any(|pattern| matches(pattern, inner));
        let (content, mode) = tree::read(if own { &self.own } else { &self.common }, inner)?;
        match inner {
            "config" => Ok((settings(&String::from_utf8_lossy(&content)).into_bytes(), 0o444)),
            _ => Ok((content, mode)),
        }
    }
}

/// Files that keep folders there that git needs.
pub(super) fn kept() -> impl Iterator<Item = &'static str> {
    KEPT.iter().copied()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => pattern == name,
    }
}

fn allowed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    below(path) && !name.ends_with(".lock") && !name.starts_with("tmp_") && !LEFT_OUT.contains(&path)
}

/// The settings of [`SETTINGS`] in the text of git's own.
fn settings(text: &str) -> String {
    let mut section: Option<&(&str, &[&str])> = None;
    let mut out = String::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            let name = head.split(']').next().unwrap_or_default();
            section = SETTINGS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
            continue;
        }
        let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
            continue;
        };
        let plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric());
        if let Some((name, keys)) = section
            && plain
            && keys.iter().any(|known| key.eq_ignore_ascii_case(known))
        {
            out.push_str(&format!("[{name}]\n\t{key} = {value}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tiller_testkit::git;

    /// Writes what is copied into another folder.
    fn copy(repository: &Repository, to: &Path) {
        let (files, large) = repository.scan();
        assert_eq!(large, 0);
        for path in files.keys() {
            let (content, _) = repository.read(path).unwrap();
            tree::write(to, path, &content, 0o644).unwrap();
        }
        kept().for_each(|path| tree::write(to, path, b"", 0o644).unwrap());
    }

    #[test]
    fn a_copy_is_a_repository_and_a_worktree_is_one_too() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().canonicalize().unwrap().join(name);
        std::fs::create_dir(at("work")).unwrap();
        git(&at("work"), &["init", "-q", "-b", "main"]);
        std::fs::create_dir(at("empty")).unwrap();
        copy(&Repository::of(&at("work")).unwrap(), &at("empty"));
        assert_eq!(git(&at("empty"), &["status", "--short", "--branch"]), "## No commits yet on main");
        std::fs::write(at("work").join("a"), "1\n").unwrap();
        git(&at("work"), &["add", "."]);
        git(&at("work"), &["commit", "-qm", "one"]);
        git(&at("work"), &["worktree", "add", "-q", "-b", "side", "../linked"]);
        for (folder, branch) in [("work", "main"), ("linked", "side")] {
            let repository = Repository::of(&at(folder)).unwrap();
            assert_eq!(repository.is_linked(), folder == "linked");
            let there = at(&format!("{folder}-there"));
            std::fs::create_dir(&there).unwrap();
            copy(&repository, &there);
            std::fs::write(there.join("a"), "2\n").unwrap();
            assert_eq!(git(&there, &["status", "--short", "--branch"]), format!("## {branch}\n M a"));
            assert_eq!(git(&there, &["log", "--format=%s"]), "one");
            assert_eq!(git(&there, &["fsck", "--strict"]), "");
        }
        // A file that leads to a repository which does not know of it.
        std::fs::create_dir(at("liar")).unwrap();
        std::fs::copy(at("linked").join(".git"), at("liar").join(".git")).unwrap();
        assert_eq!(Repository::of(&at("liar")), None);
        symlink(at("work").join(".git"), at("empty").join("link")).unwrap();
        assert_eq!(Repository::of(&at("empty").join("link")), None);
    }

    #[test]
    fn no_hooks_programs_addresses_and_links_go_there() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().canonicalize().unwrap();
        git(&root, &["init", "-q"]);
        for (path, text) in [
            (".git/hooks/pre-commit", "#!/bin/sh\n"),
            (".git/config.worktree", "[core]\n\tpager = evil\n"),
            (".git/objects/info/alternates", "/other\n"),
            (".git/refs/heads/x.lock", ""),
        ] {
            std::fs::write(root.join(path), text).unwrap();
        }
        symlink("/etc", root.join(".git/objects/etc")).unwrap();
        symlink("/etc/passwd", root.join(".git/packed-refs")).unwrap();
        let text = "[core] fsmonitor = evil\n[Core]\n\tfileMode = true\n\tfsmonitor = evil\n\trepositoryformatversion = 0 ; x\n\
            \teol = lf\\\n\n[remote \"o\"]\n\turl = https://key@example.com\n\tfilemode = false\n[include]\n\tpath = x\n\
            [extensions]\n\tobjectFormat = sha1\n\tworktreeConfig = true\n";
        std::fs::write(root.join(".git/config"), text).unwrap();
        let repository = Repository::of(&root).unwrap();
        let (files, _) = repository.scan();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, [".git/HEAD", ".git/config", ".git/info/exclude"]);
        let (config, mode) = repository.read(".git/config").unwrap();
        assert_eq!(mode, 0o444);
        assert_eq!(
            String::from_utf8(config).unwrap(),
            "[core]\n\tfileMode = true\n[extensions]\n\tobjectFormat = sha1\n"
        );
        assert!(repository.read(".git/packed-refs").is_err(), "not through a link");
    }
}
