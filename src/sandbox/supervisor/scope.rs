//! What a sandboxed command may change, by the names of files.

use std::path::{Path, PathBuf};

use crate::confine::Method;
use crate::policy::{Policy, Profile};

/// The policy of one command, as its supervisor asks it.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) profile: Profile,
    /// The command runs in namespaces of its own.
    pub(crate) namespaces: bool,
    /// Files of instructions are judged as protected names are.
    pub(crate) judges_instructions: bool,
    /// Removals are counted, and too many of them refused.
    pub(crate) counts: bool,
    workspace: PathBuf,
    writable: Vec<PathBuf>,
    /// Read-only parts of the private `/tmp`.
    shown: Vec<PathBuf>,
    protected: Vec<PathBuf>,
    /// Files of git's configuration that may be changed, but not moved with their folder.
    compared: Vec<PathBuf>,
}

impl Scope {
    pub(crate) fn new(policy: &Policy, method: Method) -> Self {
        let namespaces = method == Method::Bubblewrap;
        let mut writable = policy.writable_folders();
        if policy.profile == Profile::Workspace {
            writable.push("/dev/shm".into());
        }
        let mut shown = Vec::new();
        if namespaces {
            shown.clone_from(&policy.needed);
            shown.retain(|path| !writable.iter().any(|folder| path.starts_with(folder)));
            // A private one.
            writable.push("/tmp".into());
        }
        let mut protected = policy.protected_paths();
        let mut compared = Vec::new();
        if policy.profile == Profile::Floor {
            compared = policy.git_configurations(&protected);
            compared.extend(policy.judged_paths());
            protected.retain(|path| !compared.contains(path));
        }
        let stays = policy.stays && policy.profile == Profile::Workspace;
        if namespaces && !stays {
            // Mounts lie over those that exist; the others can be made, and are compared afterwards.
            protected.retain(|path| path.symlink_metadata().is_ok());
        }
        protected.extend(policy.own_folders());
        if policy.profile != Profile::Floor {
            // Where the supervisor moved them to, they could be read. A mount over them would not keep it from that.
            protected.extend(policy.hidden_paths());
        }
        let (profile, workspace) = (policy.profile, crate::policy::real(&policy.workspace));
        let counts = !stays || policy.counts_losses;
        let judges_instructions = !policy.asks;
        Self {
            profile,
            namespaces,
            judges_instructions,
            counts,
            workspace,
            writable,
            shown,
            protected,
            compared,
        }
    }

    /// Whether files below this path may be changed, by its real name.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        let shown = |folder: &PathBuf| {
            self.shown.iter().any(|part| path.starts_with(part) && part.starts_with(folder))
        };
        self.writable.iter().any(|folder| path.starts_with(folder) && !shown(folder)) && !self.protects(path)
    }

    /// Whether an entry may be removed or renamed: the writable folders themselves may not, and neither may what contains
    /// something protected.
    pub(crate) fn may_go(&self, path: &Path) -> bool {
        self.contains(path)
            && !self.writable.iter().any(|folder| folder.starts_with(path))
            && !self.protected.iter().any(|name| name.starts_with(path) && name.symlink_metadata().is_ok())
            && !self.compared.iter().any(|name| name != path && name.starts_with(path) && name.exists())
    }

    /// Whether something protected lies below this path, or would.
    pub(crate) fn is_above_protected(&self, path: &Path) -> bool {
        self.protected.iter().chain(&self.compared).any(|name| name.starts_with(path))
    }

    /// Whether the workspace lies below this path, or is it.
    pub(crate) fn is_above_workspace(&self, path: &Path) -> bool {
        self.workspace.starts_with(path)
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(crate) fn is_workspace(&self, path: &Path) -> bool {
        path.starts_with(&self.workspace)
    }

    /// True for a path that is protected, or must not be read.
    pub(crate) fn protects(&self, path: &Path) -> bool {
        self.protected.iter().any(|name| path.starts_with(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_that_of_the_policy() {
        let tmp = tempfile::tempdir_in("/var/tmp").unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["work/.git/hooks", "scratch", "work/keys/secret"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        let mut policy = Policy::new(Profile::Workspace, &top.join("work"), &top.join("scratch"), None);
        policy.hidden.push(top.join("work/keys/secret"));
        let scope = Scope::new(&policy, Method::Landlock);
        for (path, inside, may_go) in [
            ("work/a", true, true),
            ("work/.git/HEAD", true, true),
            ("work/.git", true, false),
            ("work/.git/hooks/x", false, false),
            ("work/.envrc", false, false),
            ("work/keys", true, false),
            ("work/keys/secret", false, false),
            ("work", true, false),
            ("workshop", false, false),
            ("scratch/x", true, true),
            ("", false, false),
        ] {
            assert_eq!(scope.contains(&top.join(path)), inside, "{path}");
            assert_eq!(scope.may_go(&top.join(path)), may_go, "{path}");
        }
    }

    #[test]
    fn what_is_shown_in_a_private_folder_is_read_only() {
        let tmp = tempfile::tempdir_in("/tmp").unwrap();
        let top = tmp.path().canonicalize().unwrap();
        for folder in ["home/work/bin", "scratch"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        let (work, scratch) = (top.join("home/work"), top.join("scratch"));
        let mut policy = Policy::new(Profile::Workspace, &work, &scratch, None);
        policy.needed = vec![top.join("home"), work.join("bin")];
        let scope = Scope::new(&policy, Method::Bubblewrap);
        for (path, inside) in [
            ("home/x", false),
            ("home/work/x", true),
            ("home/work/bin/x", true),
            ("other", true),
            ("scratch/x", true),
        ] {
            assert_eq!(scope.contains(&top.join(path)), inside, "{path}");
        }
    }
}
