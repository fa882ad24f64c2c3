//! The paths of a policy as the file system has them, looked up once for each launch.
//!
//! Nothing is kept from one launch to the next, so nothing can be stale: a name that does not exist yet is protected as
//! well, and a folder that was replaced is looked up again. A folder is resolved once, however many names lie in it, so the
//! number of look-ups depends on the policy alone and not on how much lies in the home folder or the workspace.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiller_protocol::secret_paths::settings_at_home;

use super::repository::Repository;
use super::{Policy, Profile, SSH, Sight};

/// What a policy comes to on this system, by real paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Paths {
    /// Folders that may be written.
    pub writable: Vec<PathBuf>,
    /// In these, what must not be written, whether it exists or not.
    pub protected: Vec<PathBuf>,
    /// The files of git's configuration among the protected ones.
    pub settings: Vec<PathBuf>,
    /// Those of the protected ones that git may write, of the workspace.
    #[serde(default)]
    pub judged: Vec<PathBuf>,
    /// Tiller's own folders in a writable one.
    pub own: Vec<PathBuf>,
    /// What exists and must not be read.
    pub hidden: Vec<PathBuf>,
    /// Which parts of the file system are seen at all.
    pub sight: Sight,
    /// The repository of the workspace, if it lies elsewhere.
    #[serde(default)]
    pub repository: Option<Repository>,
}

impl Paths {
    pub(super) fn of(policy: &Policy) -> Self {
        Self::look_up(policy, &mut LookUp::default())
    }

    fn look_up(policy: &Policy, files: &mut LookUp) -> Self {
        let repository = policy.repository();
        let git = repository.as_ref();
        let writable = writable(policy, git, files);
        let protected = protected(policy, git, &writable, files);
        let settings = settings(policy, git, &protected, files);
        let judged = judged(policy, &protected, files);
        let inside = |path: &Path| writable.iter().any(|folder| path.starts_with(folder) && path != folder);
        let mut own: Vec<PathBuf> = policy.own.iter().filter_map(|path| files.find(path)).collect();
        own.retain(|path| inside(path));
        let plain = plain_settings(policy);
        let kept = policy.hidden.iter().filter(|path| !plain.contains(path));
        let mut hidden: Vec<PathBuf> = kept.filter_map(|path| files.find(path)).collect();
        hidden.retain(|path| !writable.iter().any(|folder| folder.starts_with(path)));
        let mut sight = Sight::of(policy, &writable, git, files);
        if policy.profile == Profile::Read {
            hidden.retain(|path| sight.sees(path));
        }
        // What is closed as a whole is hidden as a secret is.
        let open = std::mem::take(&mut sight.open);
        hidden.extend(sight.closed.extract_if(.., |path| !open.iter().any(|open| open.starts_with(&*path))));
        sight.open = open;
        let user = rustix::process::geteuid();
        hidden.retain(|path| !hidden_anyway(path, user.as_raw()));
        for list in [&mut own, &mut hidden] {
            list.sort();
            list.dedup();
        }
        Self { writable, protected, settings, judged, own, hidden, sight, repository }
    }
}

/// The settings of programs that hold no password or token: builds read them. Of what cannot be told, none.
fn plain_settings(policy: &Policy) -> Vec<PathBuf> {
    let home = policy.reads.home.iter();
    home.flat_map(|home| settings_at_home().map(|name| home.join(name)))
        .chain(policy.reads.settings.iter().cloned())
        .filter(|path| is_plain(path))
        .collect()
}

fn is_plain(path: &Path) -> bool {
    if path.is_dir() {
        let files = std::fs::read_dir(path).map(|files| files.take(SETTINGS_FILES + 1).collect::<Vec<_>>());
        return files.is_ok_and(|files| {
            let plain = |file: &std::io::Result<std::fs::DirEntry>| {
                file.as_ref().is_ok_and(|file| !file.path().is_dir() && is_plain(&file.path()))
            };
            files.len() <= SETTINGS_FILES && files.iter().all(plain)
        });
    }
    let small = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= SETTINGS_BYTES);
    let text = small.then(|| std::fs::read_to_string(path).ok()).flatten();
    text.is_some_and(|text| !holds_secret(&text.to_lowercase()))
}

/// Settings of programs are smaller.
const SETTINGS_BYTES: u64 = 256 * 1024;
/// Folders of settings hold fewer files.
const SETTINGS_FILES: usize = 50;

/// Returns true where a word for a secret, or an address with a password, stands in `text` (in lower case).
fn holds_secret(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "pass",
        "pwd",
        "token",
        "secret",
        "credential",
        "authorization",
        "bearer",
        "_key",
        "apikey",
        "api-key",
        "accesskey",
    ];
    let address = |rest: &str| {
        let host = rest.split(|c: char| c == '/' || c.is_whitespace() || "\"'<>".contains(c)).next();
        host.is_some_and(|host| host.contains('@'))
    };
    // Words in front of nothing, as a comment names the fields that there are.
    let is_empty = |line: &str| {
        ["#", "--", ";", "//"].iter().any(|sign| line.trim_start().starts_with(sign))
            && line.trim_end().ends_with([':', '='])
    };
    let in_line = |line: &str| {
        WORDS.iter().any(|word| line.contains(word))
            || line.replace("author", "").contains("auth")
            // Bundler names hosts so, and conda puts a token into the path.
            || line.contains("bundle_") && line.contains("__") && !line.contains("bundle_build__")
            || line.split("://").skip(1).any(|rest| address(rest) || rest.contains("/t/"))
    };
    text.lines().filter(|line| !is_empty(line)).any(in_line)
}

/// Whether the system itself keeps this user from reading the path, and from letting it be read. Each path that has to be
/// hidden costs Landlock a rule for every other entry of its folder.
fn hidden_anyway(path: &Path, user: u32) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use std::os::unix::fs::MetadataExt;
    let denied = |access| accessat(CWD, path, access, AtFlags::EACCESS) == Err(rustix::io::Errno::ACCESS);
    user != 0
        && path.symlink_metadata().is_ok_and(|meta| meta.uid() != user)
        && denied(Access::READ_OK)
        && denied(Access::EXEC_OK)
}

/// Every folder that may be written; what does not exist is left out.
fn writable(policy: &Policy, repository: Option<&Repository>, files: &mut LookUp) -> Vec<PathBuf> {
    if policy.profile == Profile::Floor {
        return vec![PathBuf::from("/")];
    }
    let mut all = vec![policy.scratch.as_path()];
    if policy.profile == Profile::Workspace {
        all.extend(policy.writable.iter().map(PathBuf::as_path));
        if !policy.only_reads_workspace {
            all.push(&policy.workspace);
            all.extend(repository.iter().flat_map(|git| git.folders()));
        }
    }
    let mut all: Vec<PathBuf> = all.into_iter().filter_map(|path| files.find(path)).collect();
    if policy.only_reads_workspace {
        // One above it would open it.
        all.retain(|folder| !policy.workspace.starts_with(folder));
    }
    all.dedup();
    all
}

fn protected(
    policy: &Policy,
    repository: Option<&Repository>,
    writable: &[PathBuf],
    files: &mut LookUp,
) -> Vec<PathBuf> {
    if !matches!(policy.profile, Profile::Workspace | Profile::Floor) {
        return Vec::new();
    }
    let judged = |path: &Path| policy.judges_writes && path.is_relative() && crate::writes::is_judged(path);
    let own = policy.protected.iter().filter(|path| !judged(path)).map(|path| policy.workspace.join(path));
    // A file `.git` says where the repository is, and so which programs git runs.
    let pointer = [policy.workspace.join(".git")].into_iter().filter(|git| git.is_file());
    let main = repository.iter().flat_map(|git| git.obeyed());
    let top = repository.map(|git| git.top.as_path());
    let git = repository.map_or_else(|| policy.workspace.join(".git"), |git| git.common.clone());
    let named = super::git_files::protected(&git, top);
    let own = own.flat_map(|path| match path.ends_with(".ssh") && policy.profile == Profile::Floor {
        true => SSH.iter().map(|name| path.join(name)).collect(),
        false => vec![path],
    });
    let mut all: Vec<PathBuf> =
        own.chain(pointer).chain(main).chain(named).map(|path| files.real(&path)).collect();
    all.retain(|path| writable.iter().any(|folder| path.starts_with(folder) && path != folder));
    // A worktree's `.git` is a file: nothing lies below it.
    all.retain(|path| !path.ancestors().skip(1).any(|above| files.is_file(above)));
    all.sort();
    all.dedup();
    all
}

fn settings(
    policy: &Policy,
    repository: Option<&Repository>,
    protected: &[PathBuf],
    files: &mut LookUp,
) -> Vec<PathBuf> {
    let at_home = policy.protected.iter().filter(|path| path.is_absolute() && path.ends_with(".gitconfig"));
    let at_home: Vec<PathBuf> = at_home.map(|path| files.real(path)).collect();
    let is_one = |path: &Path| match path.file_name().and_then(|name| name.to_str()) {
        Some("config" | "config.worktree") => {
            path.components().any(|part| part.as_os_str() == ".git")
                || repository.is_some_and(|git| git.holds(path))
        }
        _ => at_home.iter().any(|home| home == path),
    };
    let counts = |path: &Path| policy.profile == Profile::Floor || path.is_file();
    protected.iter().filter(|path| is_one(path) && counts(path)).cloned().collect()
}

fn judged(policy: &Policy, protected: &[PathBuf], files: &mut LookUp) -> Vec<PathBuf> {
    let own = policy.protected.iter().filter(|path| path.is_relative() && crate::writes::is_judged(path));
    let own: Vec<PathBuf> = own.map(|path| files.real(&policy.workspace.join(path))).collect();
    protected.iter().filter(|path| own.contains(path)).cloned().collect()
}

/// Resolves paths, each folder once.
#[derive(Debug, Default)]
pub(super) struct LookUp {
    /// The real paths of what was looked up; `None`: it is not there.
    found: HashMap<PathBuf, Option<PathBuf>>,
    files: HashMap<PathBuf, bool>,
    /// Links that were met, and where they lead.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Questions to the file system; a link counts as one.
    asked: Cell<usize>,
}

impl LookUp {
    /// The path without links; `None`: nothing is there, or it leads nowhere.
    pub(super) fn find(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.found.get(path) {
            return known.clone();
        }
        let found = self.ask(path);
        self.found.insert(path.to_owned(), found.clone());
        found
    }

    fn ask(&mut self, path: &Path) -> Option<PathBuf> {
        let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back())
        else {
            return self.resolve(path);
        };
        // A relative path of one part.
        if parent.as_os_str().is_empty() {
            return self.resolve(path);
        }
        let path = self.find(parent)?.join(name);
        self.asked.set(self.asked.get() + 1);
        let meta = path.symlink_metadata().ok()?;
        if !meta.is_symlink() {
            return Some(path);
        }
        let found = self.resolve(&path)?;
        self.links.push((path, found.clone()));
        Some(found)
    }

    /// By the system.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        self.asked.set(self.asked.get() + 1);
        path.canonicalize().ok()
    }

    /// The path with the links of its longest existing part resolved.
    fn real(&mut self, path: &Path) -> PathBuf {
        if let Some(found) = self.find(path) {
            return found;
        }
        match (path.parent(), path.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => self.real(parent).join(name),
            _ => path.to_owned(),
        }
    }

    fn is_file(&mut self, path: &Path) -> bool {
        if let Some(known) = self.files.get(path) {
            return *known;
        }
        self.asked.set(self.asked.get() + 1);
        let is_file = path.is_file();
        self.files.insert(path.to_owned(), is_file);
        is_file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home folder with a workspace, and `more` files in each folder of both.
    fn policy(top: &Path, more: usize) -> Policy {
        for folder in ["home/work/.git/hooks", "home/.ssh", "home/.config/git", "scratch", "home/src"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
            for n in 0..more {
                std::fs::write(top.join(folder).join(format!("file{n}")), "x").unwrap();
            }
        }
        let (home, work) = (top.join("home"), top.join("home/work"));
        Policy::new(Profile::Workspace, &work, &top.join("scratch"), Some(&home))
    }

    /// How often the file system is asked for one launch.
    fn asked(policy: &Policy) -> usize {
        let mut files = LookUp::default();
        Paths::look_up(policy, &mut files);
        files.asked.get()
    }

    #[test]
    fn look_ups_do_not_grow_with_the_home_folder_or_the_workspace() {
        let (small, large) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let few = asked(&policy(&small.path().canonicalize().unwrap(), 1));
        let many = asked(&policy(&large.path().canonicalize().unwrap(), 200));
        assert_eq!(few, many);
        assert!(few < 500, "{few} look-ups");
    }

    #[test]
    fn paths_are_resolved_as_the_system_does_it() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/file"), "x").unwrap();
        for (to, name) in [("a", "link"), ("none", "dangling"), ("loop", "loop"), ("../a/b", "a/up")] {
            std::os::unix::fs::symlink(to, top.join(name)).unwrap();
        }
        let mut files = LookUp::default();
        for name in [
            "a/b",
            "link/b",
            "link/file",
            "dangling",
            "loop",
            "loop/x",
            "a/up",
            "link/up/..",
            "a/file/x",
            "no/no",
        ] {
            let path = top.join(name);
            assert_eq!(files.find(&path), path.canonicalize().ok(), "{name}");
            assert_eq!(files.find(&path), path.canonicalize().ok(), "{name}, remembered");
            assert_eq!(files.real(&path), super::super::real(&path), "{name}");
        }
        assert_eq!(files.find(Path::new("/")), Some(PathBuf::from("/")));
    }

    /// A resolved policy says the same without another look.
    #[test]
    fn a_resolved_policy_says_the_same() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        let policy = policy(&top, 1);
        let resolved = policy.resolved();
        assert_eq!(resolved.protected_paths(), policy.protected_paths());
        assert_eq!(resolved.hidden_paths(), policy.hidden_paths());
        assert_eq!(resolved.writable_folders(), policy.writable_folders());
        let text = serde_json::to_string(&resolved).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), resolved, "as the launcher reads it");
        // What it names later does not change what was decided.
        std::fs::remove_dir_all(top.join("home/.ssh")).unwrap();
        assert_ne!(resolved.hidden_paths(), policy.hidden_paths());
    }

    #[test]
    fn what_the_system_hides_needs_no_rule() {
        use std::os::unix::fs::PermissionsExt;
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("file");
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert!(!hidden_anyway(&file, user), "its owner can change that");
        assert!(!hidden_anyway(&file, 0));
        if user != 0 && Path::new("/etc/shadow").exists() {
            assert!(hidden_anyway(Path::new("/etc/shadow"), user));
        }
    }

    #[test]
    fn settings_are_hidden_when_they_hold_a_secret() {
        for (text, secret) in [
            ("org.gradle.jvmargs=-Xmx2g\n", false),
            ("<settings><mirrors><url>https://repo.example/m2</url></mirrors></settings>", false),
            ("index-url = https://pypi.example/@scope/simple\n", false),
            ("npmRegistryServer: \"https://npm.example\"\n", false),
            ("", false),
            ("signing.Password=x\n", true),
            ("<server><username>u</username><password>{x}</password></server>", true),
            ("index-url = https://u:p@pypi.example/simple\n", true),
            ("npmAuthToken: x\n", true),
            ("npmAuthIdent: \"bob:x\"\n", true),
            ("BUNDLE_GEMS__EXAMPLE__COM: \"id:x\"\n", true),
            ("BUNDLE_PATH: \"vendor\"\nBUNDLE_BUILD__X: \"--use\"\n", false),
            ("channels:\n  - https://conda.example/t/xx-1/channel\n", true),
            ("dev:\n  user: u\n  pass: x\n", true),
            ("{\"github-oauth\": {\"github.com\": \"x\"}}", true),
            ("[publish.index]\nauth = \"x\"\n", true),
            ("[template]\nauthor = \"A\"\n", false),
            ("remote-repo: x\n-- password:\n-- username:\n", false),
            ("-- password: x\n", true),
            ("url = \"https://x@npm.example\"", true),
        ] {
            let tmp = tempfile::tempdir().unwrap();
            let top = tmp.path().canonicalize().unwrap();
            let (policy, file) = (policy(&top, 0), top.join("home/.m2/settings.xml"));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            assert_eq!(policy.hidden_paths().contains(&file), secret, "{text}");
            // Not text, or larger than settings are.
            std::fs::write(&file, [b'a', 0xff]).unwrap();
            assert!(policy.hidden_paths().contains(&file));
            std::fs::write(&file, " ".repeat(SETTINGS_BYTES as usize + 1)).unwrap();
            assert!(policy.hidden_paths().contains(&file));
        }
    }
}
