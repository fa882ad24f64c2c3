//! The system's git, without settings of this machine.

use std::path::Path;
use std::process::Command;

/// Variables with which git reads nothing of the person's: no settings, no list of ignored names, no identity.
const VARIABLES: [(&str, &str); 9] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_AUTHOR_NAME", "a"),
    ("GIT_AUTHOR_EMAIL", "a@example.com"),
    ("GIT_COMMITTER_NAME", "a"),
    ("GIT_COMMITTER_EMAIL", "a@example.com"),
    ("LC_ALL", "C.UTF-8"),
];

/// The same for each git that a program of a test starts. Its home folder is one that does not exist.
pub fn plain_git(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command.env_remove("XDG_CONFIG_HOME").env("HOME", "/nonexistent").envs(VARIABLES)
}

/// Runs git in `folder`; what it printed, without blanks at the ends. Panics when it fails.
pub fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    let out = plain_git(git.args(args).current_dir(folder)).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}
