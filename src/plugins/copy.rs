//! Brings a plugin into the folder of plugins. Nothing of it is run.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::archive::LIMITS;
use crate::installed::Installed;
use crate::manifest::read;

/// Copies the plugin in `from` into the folder of plugins, `home`, in place of an earlier one of its name. Returns its folder. Links are
/// refused, `.git` is left out.
///
/// # Errors
/// A sentence.
pub fn bring(from: &Path, home: &Path) -> Result<PathBuf, String> {
    let manifest = read(from)?;
    let to = Installed::place(home, &manifest.name);
    let parent = to.parent().unwrap_or(home);
    let fail = |e: std::io::Error| format!("the plugin cannot be stored: {e}");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(fail)?;
    // Complete before it has its name: a half copied one is never seen.
    let scratch = tempfile::Builder::new().prefix(".new-").tempdir_in(parent).map_err(fail)?;
    let copied = scratch.path().join(&manifest.name);
    std::fs::DirBuilder::new().mode(0o700).create(&copied).map_err(fail)?;
    tiller_fs::archive::copy(from, &copied, LIMITS)?;
    if to.exists() {
        let old = scratch.path().join("old");
        std::fs::rename(&to, &old).map_err(fail)?;
        if let Err(e) = std::fs::rename(&copied, &to) {
            // The earlier one comes back.
            let _ = std::fs::rename(&old, &to);
            return Err(fail(e));
        }
    } else {
        std::fs::rename(&copied, &to).map_err(fail)?;
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installed::{PluginState, all};
    use crate::manifest::new_plugin;

    #[test]
    fn a_plugin_is_copied_whole_and_links_are_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let (from, data) = (tmp.path().join("src"), tmp.path().join("data"));
        new_plugin(&from, "mine").unwrap();
        std::fs::create_dir_all(from.join("skills/a")).unwrap();
        std::fs::write(from.join("skills/a/SKILL.md"), "x").unwrap();
        let to = bring(&from, &data).unwrap();
        assert_eq!(to, data.join("mine"));
        assert!(to.join("skills/a/SKILL.md").is_file());
        let found = all(&data, &|_| None);
        assert_eq!((found.len(), &found[0].state), (1, &PluginState::New));
        // Bound to its whole content: one more byte, one more file, one file less.
        let decision = found[0].files.decision(tiller_permit::trust::Choice::Trust);
        let state = || all(&data, &|_| Some(decision.clone())).remove(0).state;
        assert_eq!(state(), PluginState::Trusted);
        std::fs::write(to.join("skills/a/SKILL.md"), "y").unwrap();
        assert_eq!(state(), PluginState::Changed("skills/a/SKILL.md".into()));
        std::fs::write(to.join("skills/a/SKILL.md"), "x").unwrap();
        std::fs::write(to.join("more"), "x").unwrap();
        assert_eq!(state(), PluginState::Changed("more".into()));
        std::fs::remove_file(to.join("more")).unwrap();
        std::fs::remove_file(to.join("echo.sh")).unwrap();
        assert_eq!(state(), PluginState::Changed("echo.sh".into()));
        // A second installation replaces the first one as a whole.
        bring(&from, &data).unwrap();
        assert_eq!(state(), PluginState::Trusted);
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        assert!(bring(&from, &data).unwrap_err().contains("link"));
        assert_eq!(state(), PluginState::Trusted, "the earlier one stays");
        std::os::unix::fs::symlink("/etc/passwd", to.join("link")).unwrap();
        assert!(matches!(state(), PluginState::Refused(_)));
        let names: Vec<_> = std::fs::read_dir(&data).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}
