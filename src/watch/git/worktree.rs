//! Git worktrees for agents that work in isolation. They are kept when the agent ends, since they hold its work.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::Repository;

/// Time limit; the checkout of a large repository is slow.
const LIMIT: Duration = Duration::from_secs(120);

/// Creates a worktree at `place`, which must not exist yet, of the repository that holds `folder`, at its last commit.
/// Returns the folder in it that corresponds to `folder`. Blocks.
///
/// # Errors
/// As text, with what to do.
pub fn make(folder: &Path, place: &Path) -> Result<PathBuf, String> {
    let repository = Repository::find(folder).ok_or_else(|| {
        "this folder is not in a git repository; let the agent work in the folder itself".to_owned()
    })?;
    let inner = folder.strip_prefix(&repository.work).unwrap_or(Path::new("")).to_owned();
    if let Some(above) = place.parent() {
        private(above).map_err(|e| format!("{} cannot be created: {e}", above.display()))?;
    }
    let target = place.to_str().ok_or("the name of the folder for worktrees is not UTF-8")?;
    repository.run(&["worktree", "add", "--quiet", "--detach", "--", target, "HEAD"], LIMIT).map_err(
        |e| format!("git could not create a worktree: {e}. The repository needs at least one commit"),
    )?;
    let inside = place.join(inner);
    if inside.is_dir() {
        Ok(inside)
    } else {
        Err(format!(
            "{} is not in the last commit; commit it, or let the agent work in the folder itself",
            folder.display()
        ))
    }
}

/// Creates a folder that only the person can access.
fn private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use tiller_testkit::git;

    use super::*;

    #[test]
    fn a_worktree_of_a_folder_within_a_repository_stands_beside_it() {
        let tmp = tempfile::tempdir().unwrap();
        let (repo, places) = (tmp.path().join("r"), tmp.path().join("w"));
        std::fs::create_dir_all(repo.join("sub")).unwrap();
        assert!(make(&repo, &places.join("a0")).unwrap_err().contains("not in a git repository"));
        git(&repo, &["init", "-q"]);
        assert!(make(&repo, &places.join("a0")).unwrap_err().contains("at least one commit"));
        std::fs::write(repo.join("sub/f"), "1").unwrap();
        // A hook of the repository's does not run.
        std::fs::write(repo.join(".git/hooks/post-checkout"), "#!/bin/sh\ntouch ../hooked\n").unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-qm", "one"]);
        std::fs::create_dir(repo.join("new")).unwrap();
        let made = make(&repo.join("sub"), &places.join("a1")).unwrap();
        assert_eq!(made, places.join("a1/sub"));
        std::fs::write(made.join("f"), "2").unwrap();
        assert_eq!(std::fs::read_to_string(repo.join("sub/f")).unwrap(), "1");
        assert!(make(&repo.join("new"), &places.join("a2")).unwrap_err().contains("not in the last commit"));
        assert!(!tmp.path().join("hooked").exists() && !repo.join("hooked").exists());
    }
}
