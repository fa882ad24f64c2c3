//! What a confined command may do.

pub(crate) mod git_files;
mod paths;
pub(crate) mod project;
pub(crate) mod repository;
mod sight;
mod tools;

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiller_protocol::secret_paths;

use crate::confinement::Confinement;
use paths::Paths;
use repository::Repository;
pub(crate) use sight::Sight;
pub use tools::Variables;

/// How much a command may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// It writes nowhere but in the scratch folder, and reads the system, the workspace and [`Policy::reads`] only.
    Read,
    /// It also writes in the workspace and in [`Policy::writable`].
    Workspace,
    /// It may do everything but write what is protected: for commands that a person lets run outside the sandbox.
    Floor,
    /// It is not confined.
    Off,
}

/// What a command may reach over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing.
    Off,
    /// Servers that it starts itself. Needs a network namespace (bubblewrap) or a supervisor; without both it is the same as
    /// `Off`.
    Loopback,
    /// Also listed domains, through the proxy of [`Policy::proxy`] in a network namespace, and of [`Policy::proxy_port`]
    /// with a supervisor.
    Domains,
    /// Everything, sockets in the file system excepted.
    All,
}

/// What one command may do. All paths are absolute unless a field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub profile: Profile,
    pub workspace: PathBuf,
    /// A private folder for temporary files; `TMPDIR` of the command.
    pub scratch: PathBuf,
    /// Further folders that may be written, for instance caches of package managers.
    pub writable: Vec<PathBuf>,
    /// What must not be written although it lies in a writable folder. Relative: below the workspace.
    pub protected: Vec<PathBuf>,
    /// Folders of Tiller itself, protected as well. Only mounts can do that: Tiller writes there at any time, so they cannot
    /// be compared and put back.
    pub own: Vec<PathBuf>,
    /// Secrets that must not be read; of [`secret_paths::settings_at_home`], those that hold one.
    pub hidden: Vec<PathBuf>,
    #[serde(default)]
    pub reads: Reads,
    /// The folder of the session that commands see as `/tmp`, or by `TMPDIR` where nothing is mounted; `None`: each has its own.
    #[serde(default)]
    pub tmp: Option<PathBuf>,
    /// Folders below `/tmp` that the command needs, by their real paths. A sandbox with a private `/tmp` shows them read-only.
    #[serde(default)]
    pub(crate) needed: Vec<PathBuf>,
    pub network: Network,
    /// Variables of the command, unless it has others of these names.
    pub variables: Vec<(String, String)>,
    /// The socket of the proxy for [`Network::Domains`]; `None`: no domain is reached.
    #[serde(default)]
    pub proxy: Option<PathBuf>,
    /// The same proxy for commands without a network namespace.
    #[serde(default)]
    pub proxy_port: Option<ProxyPort>,
    /// It is for a program that stays while the person works: a server, a plugin, an agent of another vendor. Nothing can be
    /// compared after it, so protected names are kept from it by its supervisor, those too that do not exist yet.
    #[serde(default)]
    pub(crate) stays: bool,
    /// Its supervisor notes protected names of the workspace that git may write, and they are judged after the command.
    #[serde(default)]
    pub(crate) judges_writes: bool,
    /// A program that stays may remove some files only, like a command.
    #[serde(default)]
    pub counts_losses: bool,
    /// A program that stays is asked about what it writes: Tiller decides about its calls.
    #[serde(default)]
    pub asks: bool,
    /// The repository of the workspace, if it lay elsewhere when this was made: a command opens no other one by what it writes.
    #[serde(default)]
    pub(crate) repository: Option<Repository>,
    /// Copies that lie over files: pairs of a copy and the path of its file. Only mounts can do that.
    #[serde(default)]
    pub(crate) copies: Vec<(PathBuf, PathBuf)>,
    /// The workspace is not written, though the other folders of [`Profile::Workspace`] are.
    #[serde(default)]
    pub only_reads_workspace: bool,
    /// What the lists above come to, once they were looked up: they are empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paths: Option<Box<Paths>>,
}

/// What commands see beside the workspace and the system, and what they do not see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// Folders that are not seen, though they lie in one that is: of Tiller.
    pub private: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Settings of programs where variables move them: hidden if they hold a secret.
    settings: Vec<PathBuf>,
    /// Tool chains, fonts and git's configuration. These and the following are for [`Profile::Read`].
    tools: Vec<PathBuf>,
    /// What belongs to the project elsewhere.
    pub(crate) project: Vec<PathBuf>,
}

/// A port on loopback on which the proxy listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyPort {
    pub port: u16,
    /// Of the socket: after the end of the proxy another program may take the port.
    pub inode: u64,
}

/// Files below the workspace that other programs run or obey later, as far as the kernel keeps them from being written. All
/// names of [`tiller_protocol::protected_names`] are judged after a command that has a supervisor.
pub const PROTECTED: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".tiller",
    ".envrc",
    ".mcp.json",
    ".husky",
    ".githooks",
    ".claude/hooks",
    ".claude/settings.json",
    ".codex",
];

/// Start files of shells and tools below the home folder. They are out of reach unless a writable folder contains them.
const START_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".config/git",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".gitconfig",
    ".inputrc",
    ".vimrc",
    ".exrc",
    ".emacs",
    ".emacs.d",
    ".tmux.conf",
    ".gdbinit",
    ".ssh",
];

/// What of `.ssh` decides who may log in, and what `ssh` runs. Outside the sandbox `ssh` may note the keys of hosts.
const SSH: &[&str] = &["authorized_keys", "authorized_keys2", "config", "environment", "rc"];

impl Policy {
    /// The usual protected and hidden paths, no further writable folder, no network.
    pub fn new(profile: Profile, workspace: &Path, scratch: &Path, home: Option<&Path>) -> Self {
        let below = |names: &[&str]| -> Vec<PathBuf> {
            home.iter().flat_map(|home| names.iter().map(|name| home.join(name))).collect()
        };
        let mut protected: Vec<PathBuf> = PROTECTED.iter().map(PathBuf::from).collect();
        protected.extend(below(START_FILES));
        let mut hidden: Vec<PathBuf> =
            home.iter().flat_map(|home| secret_paths::at_home().map(|name| home.join(name))).collect();
        hidden.extend(secret_paths::OF_SYSTEM.iter().map(PathBuf::from));
        Self {
            profile,
            repository: Repository::of(workspace, home),
            workspace: real(workspace),
            scratch: real(scratch),
            writable: Vec::new(),
            protected,
            own: Vec::new(),
            hidden,
            reads: Reads { home: home.map(Path::to_owned), ..Reads::default() },
            tmp: None,
            needed: Vec::new(),
            network: Network::Off,
            variables: Vec::new(),
            proxy: None,
            proxy_port: None,
            stays: false,
            judges_writes: false,
            counts_losses: false,
            asks: false,
            copies: Vec::new(),
            only_reads_workspace: false,
            paths: None,
        }
        .with_tools(&|_| None)
    }

    /// The same policy with the secrets that these variables name, and for what only reads the tool chains and programs.
    #[must_use]
    pub fn with_tools(mut self, variables: Variables<'_>) -> Self {
        for (path, is_settings) in secret_paths::moved(variables, &self.workspace) {
            self.reads.settings.extend(is_settings.then(|| path.clone()));
            self.hidden.push(path);
        }
        if self.profile == Profile::Read {
            self.reads.tools = tools::of(self.reads.home.as_deref(), variables);
        }
        self
    }

    /// The same policy with what belongs to its workspace elsewhere, for what only reads. Reads manifests.
    #[must_use]
    pub fn with_project(mut self) -> Self {
        if self.profile == Profile::Read {
            self.reads.project = project::beside(&self.workspace, self.reads.home.as_deref());
        }
        self
    }

    /// Returns true if protected names that git may write can be judged after a command.
    pub(crate) fn can_judge_writes(&self, found: &Confinement) -> bool {
        self.profile == Profile::Workspace && !self.stays && found.notification
    }

    /// Whether the supervisor does the calls for servers and connections on loopback: the command has no network of its own,
    /// and is to use a part of that of the machine.
    pub(crate) fn loopback_by_supervisor(&self, namespaces: bool) -> bool {
        !namespaces && self.sockets_by_supervisor()
    }

    /// Whether the supervisor does the calls by which sockets listen and connect, so that those in the file system can be
    /// told apart. With all of the network there is no sandbox of sockets that it could keep.
    pub(crate) fn sockets_by_supervisor(&self) -> bool {
        self.profile == Profile::Workspace && matches!(self.network, Network::Loopback | Network::Domains)
    }

    /// The socket of the proxy, where domains are to be reached.
    pub(crate) fn proxy_socket(&self) -> Option<&Path> {
        self.proxy.as_deref().filter(|_| self.network == Network::Domains)
    }

    /// The same policy with all of its paths looked up: everything that a launch needs to know of them.
    #[must_use]
    pub(crate) fn resolved(&self) -> Self {
        if self.paths.is_some() {
            return self.clone();
        }
        let none = Vec::new;
        let paths = Some(Box::new(Paths::of(self)));
        let reads = Reads::default();
        Self {
            paths,
            writable: none(),
            protected: none(),
            own: none(),
            hidden: none(),
            reads,
            ..self.clone()
        }
    }

    fn paths(&self) -> Cow<'_, Paths> {
        self.paths.as_deref().map_or_else(|| Cow::Owned(Paths::of(self)), Cow::Borrowed)
    }

    /// The repository of the workspace, if it lies elsewhere. One that names its folder of files is known at any time.
    pub(crate) fn repository(&self) -> Option<Repository> {
        if let Some(paths) = &self.paths {
            return paths.repository.clone();
        }
        let known = || {
            let is_around = |git: &Repository| real(&self.workspace).starts_with(&git.top);
            self.repository.clone().filter(|git| is_around(git) && git.is_there())
        };
        Repository::linked(&self.workspace).or_else(known)
    }

    /// Every folder that may be written, by its real path: what does not exist is left out.
    pub fn writable_folders(&self) -> Vec<PathBuf> {
        self.paths().writable.clone()
    }

    /// The protected paths that lie in a writable folder, whether they exist or not.
    pub fn protected_paths(&self) -> Vec<PathBuf> {
        self.paths().protected.clone()
    }

    /// The files of git's configuration among the protected paths. Git writes them itself, so outside the sandbox they are
    /// compared after a command instead of being kept from being written. Inside, only those that exist: a change of one
    /// may have been made by a command outside meanwhile.
    pub(crate) fn git_configurations(&self, protected: &[PathBuf]) -> Vec<PathBuf> {
        self.paths().settings.iter().filter(|path| protected.contains(path)).cloned().collect()
    }

    /// The names of the workspace among the protected paths that git may write. Outside the sandbox they are compared after a
    /// command, too.
    pub(crate) fn judged_paths(&self) -> Vec<PathBuf> {
        if self.profile == Profile::Floor { self.paths().judged.clone() } else { Vec::new() }
    }

    /// The folders of Tiller that exist in a writable folder.
    pub fn own_folders(&self) -> Vec<PathBuf> {
        self.paths().own.clone()
    }

    /// The hidden paths that exist, by their real paths. A path that contains a writable folder cannot be hidden.
    pub fn hidden_paths(&self) -> Vec<PathBuf> {
        self.paths().hidden.clone()
    }

    /// Which parts of the file system the command sees.
    pub(crate) fn sight(&self) -> Sight {
        self.paths().sight.clone()
    }
}

/// The path with the links of its longest existing part resolved.
pub(crate) fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(found) = at.canonicalize() {
            let mut found = found;
            found.extend(rest.iter().rev());
            return found;
        }
        match (at.parent(), at.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => {
                rest.push(name.to_owned());
                at = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_names_count_only_where_something_may_be_written() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["work/.git/hooks", "scratch", "home/.ssh"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        let home = top.join("home");
        let make =
            |profile, workspace: &Path| Policy::new(profile, workspace, &top.join("scratch"), Some(&home));
        let work = make(Profile::Workspace, &top.join("work"));
        let names = work.protected_paths();
        assert!(names.contains(&top.join("work/.git/hooks")));
        assert!(names.contains(&top.join("work/.envrc")), "a missing name is protected too");
        assert!(!names.contains(&home.join(".bashrc")), "the home folder is out of reach anyway");
        assert!(make(Profile::Read, &top.join("work")).protected_paths().is_empty());
        let at_home = make(Profile::Workspace, &home);
        assert!(at_home.protected_paths().contains(&home.join(".bashrc")));
        assert!(at_home.hidden_paths().contains(&home.join(".ssh")));
    }

    #[test]
    fn under_the_floor_the_protected_names_of_home_and_workspace_count() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["work/.git", "home", "state"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        let mut policy = Policy::new(Profile::Floor, &top.join("work"), &top, Some(&top.join("home")));
        policy.own.push(top.join("state"));
        let names = policy.protected_paths();
        assert!(names.contains(&top.join("home/.bashrc")) && names.contains(&top.join("work/.git/config")));
        assert_eq!(policy.own_folders(), [top.join("state")]);
    }

    #[test]
    fn a_worktree_reaches_its_repository_only_if_that_names_it_too() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        let own = top.join("main/.git/worktrees/w");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(top.join("w")).unwrap();
        for folder in ["objects", "refs"] {
            std::fs::create_dir_all(top.join("main/.git").join(folder)).unwrap();
        }
        for file in [top.join("main/.git/HEAD"), own.join("HEAD")] {
            std::fs::write(file, "ref: refs/heads/main\n").unwrap();
        }
        std::fs::write(own.join("commondir"), "../..\n").unwrap();
        std::fs::write(top.join("w/.git"), format!("gitdir: {}\n", own.display())).unwrap();
        let linked = || Repository::linked(&top.join("w")).map(|git| git.common);
        assert_eq!(linked(), None, "no way back");
        std::fs::write(own.join("gitdir"), format!("{}\n", top.join("w/.git").display())).unwrap();
        assert_eq!(linked(), Some(top.join("main/.git")));
        let policy = Policy::new(Profile::Workspace, &top.join("w"), &top, None);
        assert!(policy.protected_paths().contains(&top.join("main/.git/hooks")));
        assert!(policy.protected_paths().contains(&top.join("w/.git")));
    }
}
