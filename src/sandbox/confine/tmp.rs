//! The `/tmp` of a session, as its commands see it.

use std::path::{Path, PathBuf};

use tiller_tool::shell::{Launch, TmpFolder};

use super::{Method, SessionSandbox};
use crate::bubblewrap;
use crate::policy::{Policy, Profile, real};

impl SessionSandbox {
    /// For questions about what commands see: it starts nothing.
    pub fn seeing(policy: Policy, tmp: TmpFolder) -> Self {
        let (writes, network, project, quarantine) = Default::default();
        let (in_terminal, proxy, tmp) = (false, None, Some(tmp));
        Self { policy, quarantine, writes, network, in_terminal, proxy, project, tmp }
    }

    /// The same with this folder as the `/tmp` of all that it starts.
    #[must_use]
    pub fn with_tmp(mut self, tmp: TmpFolder) -> Self {
        self.tmp = Some(tmp);
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
        let shown = self.shown_in_tmp(workspace, &[])?;
        let folder = self.tmp.as_ref()?.made()?;
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
