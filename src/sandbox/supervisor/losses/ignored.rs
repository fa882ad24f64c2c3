//! Which files of a workspace git ignores: what builds and package managers make, and make again.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::Timespec;
use tiller_protocol::names::MADE_AGAIN;

/// In a folder that is a cache (bford.info/cachedir).
const TAG: &str = "CACHEDIR.TAG";

/// Folders that are remembered. Beyond it the rules are read again.
const FOLDERS: usize = 100_000;

/// The rules of one workspace, read when they are first needed. Files with rules that were changed since the commands were
/// started do not count: a command could have written them.
#[derive(Debug)]
pub(super) struct Ignored {
    top: PathBuf,
    started: Timespec,
    /// By folder, relative to the workspace: whether it is ignored, and the rules in it.
    folders: HashMap<PathBuf, Folder>,
}

#[derive(Clone, Debug)]
struct Folder {
    ignored: bool,
    rules: Option<Gitignore>,
}

impl Ignored {
    pub(super) fn new(workspace: &Path, started: Timespec) -> Self {
        Self { top: workspace.to_owned(), started, folders: HashMap::new() }
    }

    /// Whether a file is ignored. `name`: relative to the workspace.
    pub(super) fn contains(&mut self, name: &Path) -> bool {
        if self.folders.len() > FOLDERS {
            self.folders.clear();
        }
        let Some(parent) = name.parent() else { return false };
        self.folder(parent) || self.matches(name, false)
    }

    /// Whether the folder is ignored; remembers it and its rules.
    fn folder(&mut self, name: &Path) -> bool {
        if let Some(known) = self.folders.get(name) {
            return known.ignored;
        }
        let above = name.parent().is_some_and(|parent| self.folder(parent));
        let made =
            name.file_name().and_then(|name| name.to_str()).is_some_and(|name| MADE_AGAIN.contains(&name));
        let own = !name.as_os_str().is_empty();
        let ignored =
            above || own && (made || self.counts(&self.top.join(name).join(TAG)) || self.matches(name, true));
        // Nothing below an ignored folder is asked again.
        let rules = if ignored { None } else { self.rules(name) };
        self.folders.insert(name.to_owned(), Folder { ignored, rules });
        ignored
    }

    fn rules(&self, name: &Path) -> Option<Gitignore> {
        let folder = self.top.join(name);
        let mut files = vec![folder.join(".gitignore")];
        if name.as_os_str().is_empty() {
            files.insert(0, folder.join(".git/info/exclude"));
        }
        files.retain(|file| self.counts(file));
        if files.is_empty() {
            return None;
        }
        let mut rules = GitignoreBuilder::new(&folder);
        for file in files {
            // A line that is malformed has no effect.
            let _ = rules.add(file);
        }
        rules.build().ok()
    }

    /// Whether a file with rules is there and has not been changed since the start.
    fn counts(&self, file: &Path) -> bool {
        file.symlink_metadata().is_ok_and(|meta| {
            let changed = Timespec { tv_sec: meta.ctime(), tv_nsec: meta.ctime_nsec() };
            meta.is_file() && meta.len() < 1 << 20 && changed < self.started
        })
    }

    /// The nearest rule decides.
    fn matches(&self, name: &Path, is_folder: bool) -> bool {
        let path = self.top.join(name);
        for above in name.ancestors().skip(1) {
            let rules = self.folders.get(above).and_then(|folder| folder.rules.as_ref());
            match rules.map_or(Match::None, |rules| rules.matched(&path, is_folder)) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_decides_and_ignored_folders_contain_ignored_files_only() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::create_dir_all(top.join(".git/info")).unwrap();
        std::fs::write(top.join(".gitignore"), "/target\nnode_modules/\n*.log\n").unwrap();
        std::fs::write(top.join("a/.gitignore"), "!keep.log\nown\n").unwrap();
        std::fs::write(top.join(".git/info/exclude"), "mine\n").unwrap();
        let later = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
        let mut ignored = Ignored::new(top, later);
        for (name, expected) in [
            ("target/debug/x", true),
            ("a/target", false),
            ("a/node_modules/p/index.js", true),
            ("node_modules", false),
            ("x.log", true),
            ("a/b/x.log", true),
            ("a/b/keep.log", false),
            ("a/own", true),
            ("own", false),
            ("mine", true),
            ("src/main.rs", false),
        ] {
            assert_eq!(ignored.contains(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn what_package_managers_and_caches_hold_is_ignored_without_a_rule() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tmp.path().join("target/debug")).unwrap();
        std::fs::write(
            tmp.path().join("target/CACHEDIR.TAG"),
            "Signature: 8a477f597d28d172789f06886806bc55\n",
        )
        .unwrap();
        for (started, tagged) in [(i64::MAX, true), (1, false)] {
            let mut ignored = Ignored::new(tmp.path(), Timespec { tv_sec: started, tv_nsec: 0 });
            assert_eq!(ignored.contains(Path::new("target/debug/x")), tagged);
            assert!(ignored.contains(Path::new("web/node_modules/p/index.js")));
            assert!(!ignored.contains(Path::new("src/node_modules")));
        }
    }

    #[test]
    fn rules_that_were_changed_since_the_start_do_not_count() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join(".gitignore"), "*\n").unwrap();
        let mut ignored = Ignored::new(tmp.path(), Timespec { tv_sec: 1, tv_nsec: 0 });
        assert!(!ignored.contains(Path::new("src/main.rs")));
    }
}
