//! Brings a plugin into the folder of plugins. Nothing of it is run.

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::installed::Installed;
use crate::manifest::read;

/// Most files, bytes of all files, and nested folders.
const FILES: usize = 500;
const BYTES: u64 = 20 << 20;
const DEPTH: usize = 6;

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
    let mut left = (FILES, BYTES);
    let copied = scratch.path().join(&manifest.name);
    copy(from, &copied, 0, &mut left)?;
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

fn copy(from: &Path, to: &Path, depth: usize, left: &mut (usize, u64)) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{} cannot be copied: {e}", from.display());
    if depth > DEPTH {
        return Err(format!("{} is nested too deep", from.display()));
    }
    std::fs::DirBuilder::new().mode(0o700).create(to).map_err(fail)?;
    for entry in std::fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let (kind, path) = (entry.file_type().map_err(fail)?, entry.path());
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            if entry.file_name() != ".git" {
                copy(&path, &target, depth + 1, left)?;
            }
        } else if kind.is_file() {
            file(&path, &target, left)?;
        } else {
            return Err(format!(
                "{} is a link or a special file, which a plugin cannot have",
                path.display()
            ));
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path, left: &mut (usize, u64)) -> Result<(), String> {
    use std::io::Read;
    let fail = |e: std::io::Error| format!("{} cannot be copied: {e}", from.display());
    // A file that became a link meanwhile is not opened.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let source = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(from).map_err(fail)?;
    let executable = source.metadata().map_err(fail)?.permissions().mode() & 0o100 != 0;
    let mut target = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(if executable { 0o700 } else { 0o600 })
        .open(to)
        .map_err(fail)?;
    let copied = std::io::copy(&mut source.take(left.1 + 1), &mut target).map_err(fail)?;
    if left.0 == 0 || copied > left.1 {
        return Err(format!("the plugin has more than {FILES} files or {} MB", BYTES >> 20));
    }
    (left.0, left.1) = (left.0 - 1, left.1 - copied);
    Ok(())
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
