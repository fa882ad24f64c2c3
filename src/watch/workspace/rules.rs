//! Which paths are not watched. Decided by the path alone, before a watch is set and again for each event.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use tiller_protocol::names::MADE_AGAIN;

/// Folders that are not watched at any depth, besides [`MADE_AGAIN`].
const FOLDERS: &[&str] = &[".git", ".hg", ".svn", ".jj", "target", ".Trash-1000"];

/// Temporary files that editors and tools write while they save.
const TEMPORARY: &[&str] = &[
    "*.swp",
    "*.swo",
    "*.swx",
    "*~",
    "4913",
    ".#*",
    "#*#",
    "*.tmp",
    "*.temp",
    ".~lock.*#",
    ".goutputstream-*",
    "*.kate-swp",
    "___jb_tmp___*",
    "___jb_old___*",
    ".DS_Store",
    ".nfs*",
    ".fuse_hidden*",
    "*.crdownload",
    ".sed??????",
    "sed??????",
    ".*.un~",
    "*.lock.tmp",
];

/// Names of the rule files.
const FILES: [&str; 2] = [".gitignore", ".ignore"];
/// Maximum size of a rule file that is read, in bytes.
const MAX: u64 = 1 << 20;

/// All rules of one root.
#[derive(Debug)]
pub(crate) struct Rules {
    root: PathBuf,
    /// From the configuration and built in; no other rule can override them.
    fixed: Gitignore,
    /// `.git/info/exclude` of the repository.
    exclude: Gitignore,
    /// Rules by folder, where it has rule files. Includes the folders above the root, up to the repository's.
    folders: HashMap<PathBuf, Arc<Gitignore>>,
    /// Tiller's own folders: state, data, spill.
    own: Vec<PathBuf>,
}

impl Rules {
    /// `extra`: patterns as in `.gitignore`. `own`: absolute folders. `work`: the repository's work tree
    /// and its git folder.
    pub(crate) fn new(root: &Path, extra: &[String], own: &[PathBuf], work: Option<(&Path, &Path)>) -> Self {
        let mut fixed = GitignoreBuilder::new(root);
        for folder in FOLDERS.iter().chain(MADE_AGAIN) {
            let _ = fixed.add_line(None, &format!("{folder}/"));
        }
        for pattern in TEMPORARY.iter().copied().chain(extra.iter().map(String::as_str)) {
            // An invalid pattern ignores nothing; the configuration reports it.
            let _ = fixed.add_line(None, pattern);
        }
        let mut rules = Self {
            root: root.to_owned(),
            fixed: fixed.build().unwrap_or_else(|_| Gitignore::empty()),
            exclude: Gitignore::empty(),
            folders: HashMap::new(),
            own: own.to_vec(),
        };
        if let Some((work, git)) = work {
            let mut exclude = GitignoreBuilder::new(work);
            let path = git.join("info/exclude");
            if small(&path) {
                exclude.add(path);
            }
            rules.exclude = exclude.build().unwrap_or_else(|_| Gitignore::empty());
            for above in root.ancestors().skip(1).take_while(|a| a.starts_with(work)) {
                rules.load(above);
            }
        }
        rules
    }

    /// Reads or rereads the rule files of a folder.
    pub(crate) fn load(&mut self, folder: &Path) {
        let mut builder = GitignoreBuilder::new(folder);
        let mut any = false;
        for name in FILES {
            let path = folder.join(name);
            if small(&path) {
                // Errors of single lines do not affect the other lines.
                builder.add(path);
                any = true;
            }
        }
        match builder.build() {
            Ok(rules) if any && !rules.is_empty() => {
                self.folders.insert(folder.to_owned(), Arc::new(rules));
            }
            _ => {
                self.folders.remove(folder);
            }
        }
    }

    /// Whether this is the name of a rule file.
    pub(crate) fn is_rules(name: &OsStr) -> bool {
        FILES.iter().any(|f| name == *f)
    }

    /// Whether `path` (absolute, under the root, its parents not ignored) is ignored.
    pub(crate) fn ignored(&self, path: &Path, is_dir: bool) -> bool {
        if path == self.root {
            return false;
        }
        // Before every other rule: a setting may exclude `*.tmp` from ignoring.
        if path.file_name().is_some_and(|n| tiller_protocol::names::is_temporary(n.as_encoded_bytes())) {
            return true;
        }
        if self.own.iter().any(|o| path.starts_with(o)) || self.fixed.matched(path, is_dir).is_ignore() {
            return true;
        }
        for folder in path.ancestors().skip(1) {
            if let Some(rules) = self.folders.get(folder) {
                match rules.matched(path, is_dir) {
                    ignore::Match::Ignore(_) => return true,
                    ignore::Match::Whitelist(_) => return false,
                    ignore::Match::None => {}
                }
            }
            if folder.parent().is_none() {
                break;
            }
        }
        self.exclude.path() != Path::new("")
            && path.starts_with(self.exclude.path())
            && self.exclude.matched(path, is_dir).is_ignore()
    }

    /// As [`Rules::ignored`], for a path whose parents may be ignored as well.
    pub(crate) fn ignored_deep(&self, path: &Path, is_dir: bool) -> bool {
        let mut at = path.to_owned();
        let mut dir = is_dir;
        while at != self.root && at.starts_with(&self.root) {
            if self.ignored(&at, dir) {
                return true;
            }
            dir = true;
            if !at.pop() {
                break;
            }
        }
        false
    }
}

fn small(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| m.is_file() && m.len() <= MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_temporary_and_gitignored_things_are_not_watched() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo/sub");
        std::fs::create_dir_all(root.join("deep")).unwrap();
        std::fs::create_dir_all(dir.path().join("repo/.git/info")).unwrap();
        std::fs::write(dir.path().join("repo/.git/info/exclude"), "secret*\n").unwrap();
        std::fs::write(dir.path().join("repo/.gitignore"), "*.log\n/sub/gen/\n").unwrap();
        std::fs::write(root.join("deep/.gitignore"), "!keep.log\nlocal\n").unwrap();
        let work = dir.path().join("repo");
        let own = root.join("state");
        let mut rules = Rules::new(&root, &["*.bak".into()], &[own], Some((&work, &work.join(".git"))));
        rules.load(&root.join("deep"));
        let is = |path: &str, dir: bool| rules.ignored_deep(&root.join(path), dir);
        for path in ["node_modules", "a/target", ".git", "gen", "state", "x/__pycache__", "node_modules/a/b"]
        {
            assert!(is(path, true), "{path}");
        }
        for path in [
            "a.log",
            "a.swp",
            "4913",
            "x~",
            ".#x",
            "a.bak",
            "secret.txt",
            "deep/local",
            "state/db",
            ".tiller-1-2.tmp",
        ] {
            assert!(is(path, false), "{path}");
        }
        for path in ["src/main.rs", "deep/keep.log", "targets", "locals", ".env", ".github/x.yml"] {
            assert!(!is(path, false), "{path}");
        }
        assert!(!is("target", false), "a file may be called so");
    }

    #[test]
    fn changed_rules_are_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let mut rules = Rules::new(dir.path(), &[], &[], None);
        assert!(!rules.ignored(&dir.path().join("out"), true));
        std::fs::write(dir.path().join(".gitignore"), "out/\n").unwrap();
        rules.load(dir.path());
        assert!(rules.ignored(&dir.path().join("out"), true));
        std::fs::remove_file(dir.path().join(".gitignore")).unwrap();
        rules.load(dir.path());
        assert!(!rules.ignored(&dir.path().join("out"), true));
    }
}
