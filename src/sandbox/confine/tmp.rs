//! The `/tmp` of a session, as its commands see it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tiller_tool::shell::{Launch, TmpFolder};

use super::{Confined, Method, SessionSandbox};
use crate::bubblewrap;
use crate::confinement::Confinement;
use crate::policy::{Policy, Profile, real};

/// Paths that are remembered of the launches of a session.
const MOST: usize = 1_000;

/// The `/tmp` that the launches of a session have.
#[derive(Clone, Debug)]
pub(super) struct SharedTmp {
    pub(super) folder: TmpFolder,
    /// What arguments name below the machine's own `/tmp` is shown: the settings alone wrote them.
    names: bool,
    /// What its launches were shown of the machine's own `/tmp`.
    shown: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl SharedTmp {
    fn of(folder: TmpFolder) -> Self {
        Self { folder, names: false, shown: Arc::default() }
    }
}

impl Confined {
    /// With what the arguments of this launch name shown to it, where the machine's own `/tmp` is hidden.
    pub(super) fn naming(mut self, launch: &Launch) -> Self {
        self.policy.needed = bubblewrap::named(launch);
        self
    }

    /// The folder of temporary files as the command names it.
    pub(super) fn temporary(&self) -> String {
        let own = self.policy.tmp.as_ref().filter(|_| self.policy.profile == Profile::Workspace);
        match (self.method, own) {
            (Method::Bubblewrap, Some(_)) => "/tmp".to_owned(),
            (_, Some(folder)) => folder.display().to_string(),
            (_, None) => self.policy.scratch.display().to_string(),
        }
    }
}

impl SessionSandbox {
    /// The same for programs whose arguments are words of the settings alone: what those name is shown.
    #[must_use]
    pub fn naming(mut self) -> Self {
        if let Some(tmp) = &mut self.tmp {
            tmp.names = true;
        }
        self
    }

    pub(super) fn names(&self) -> bool {
        self.tmp.as_ref().is_some_and(|tmp| tmp.names)
    }

    /// Remembers what a launch is shown, so that no failure of it is blamed on that.
    pub(super) fn note_shown(&self, confined: &Confined, launch: &Launch) {
        let Some(tmp) = self.tmp.as_ref().filter(|_| confined.method == Method::Bubblewrap) else { return };
        let mut shown = tmp.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let new = confined.policy.needed.iter().cloned().chain(bubblewrap::needed(launch));
        for path in new {
            if shown.len() < MOST {
                shown.insert(path);
            }
        }
    }

    /// The session's folder for a launch; `None`: the launch has its own.
    pub(super) fn shared_tmp(&self, profile: Profile, method: Method) -> Option<PathBuf> {
        let shared = matches!(
            (profile, method),
            (Profile::Workspace, Method::Bubblewrap | Method::Landlock) | (Profile::Read, Method::Bubblewrap)
        );
        self.tmp.as_ref().filter(|_| shared)?.folder.path().map(Path::to_owned)
    }

    /// The method for commands; only a mount shows files of the session's `/tmp`.
    pub(super) fn showing_tmp(&self, chosen: Option<Method>, found: &Confinement) -> Option<Method> {
        match chosen {
            Some(Method::Landlock) if self.has_temporary_files() => Method::present(found).last().copied(),
            chosen => chosen,
        }
    }

    /// Whether there is something in the session's `/tmp`.
    fn has_temporary_files(&self) -> bool {
        let made = self.tmp.as_ref().and_then(|tmp| tmp.folder.made());
        made.and_then(|folder| folder.read_dir().ok()).is_some_and(|mut all| all.next().is_some())
    }

    /// For questions about what commands see: it starts nothing.
    pub fn seeing(policy: Policy, tmp: TmpFolder) -> Self {
        let (writes, network, project, quarantine) = Default::default();
        let (in_terminal, proxy, tmp) = (false, None, Some(SharedTmp::of(tmp)));
        Self { policy, quarantine, writes, network, in_terminal, proxy, project, tmp }
    }

    /// The same with this folder as the `/tmp` of all that it starts.
    #[must_use]
    pub fn with_tmp(mut self, tmp: TmpFolder) -> Self {
        self.tmp = Some(SharedTmp::of(tmp));
        self
    }

    /// Which paths of the machine's own `/tmp` commands in this workspace see as they are. `None`: all, since nothing is
    /// mounted in its place.
    pub fn shown_in_tmp(&self, workspace: &Path, env: &[(String, String)]) -> Option<Vec<PathBuf>> {
        let mounts = self.method() == Some(Method::Bubblewrap) && self.policy.profile == Profile::Workspace;
        self.tmp.as_ref().filter(|_| mounts)?;
        let (args, env, folder) = (Vec::new(), env.to_vec(), workspace.to_owned());
        let launch = Launch { program: "/bin/sh".into(), args, env, folder };
        let mut shown = bubblewrap::needed(&launch);
        let policy = Policy { workspace: workspace.to_owned(), ..self.policy.clone() };
        shown.extend(policy.repository().map(|git| git.top));
        shown.extend(policy.writable.iter().chain([&policy.workspace]).map(|path| real(path)));
        Some(shown)
    }

    /// The first path in the output of a command that failed which lies in the machine's own `/tmp` only.
    pub(super) fn hidden_in_tmp(&self, output: &str, workspace: &Path) -> Option<String> {
        if !output.contains("/tmp/") {
            return None;
        }
        let mut shown = self.shown_in_tmp(workspace, &[])?;
        let tmp = self.tmp.as_ref()?;
        shown.extend(tmp.shown.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        let folder = tmp.folder.made()?;
        let words = output.split(|c: char| c.is_whitespace() || "'\"`:,;()[]{}<>=".contains(c));
        let mut found = words.take(2_000).filter_map(|word| {
            let path = Path::new(word);
            let below = path.strip_prefix("/tmp").ok()?;
            let only_there = path.symlink_metadata().is_ok()
                && folder.join(below).symlink_metadata().is_err()
                && !shown.iter().any(|shown| path.starts_with(shown) || shown.starts_with(path));
            only_there.then(|| word.to_owned())
        });
        found.next()
    }
}

#[cfg(test)]
#[path = "tmp_tests.rs"]
mod tests;
