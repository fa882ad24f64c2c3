//! The system's git, without settings of this machine.

use std::path::Path;
use std::process::Command;

/// Runs git in `folder`; what it printed, without blanks at the ends. Panics when it fails.
pub fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(args).current_dir(folder);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let out = git.output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}
