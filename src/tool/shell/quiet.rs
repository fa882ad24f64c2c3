//! The part of a child's environment that keeps programs from waiting for a person. There is no terminal
//! and standard input is empty; these close the other doors.

/// Set over what the session's allow-list gives. Editors fail loudly (`false`), but git's own keeps the
/// proposed text (`true`): then merges and rebases go on, and a commit without a message still aborts.
const QUIET: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("PSQL_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("DELTA_PAGER", "cat"),
    ("BAT_PAGER", "cat"),
    ("AWS_PAGER", ""),
    ("LESS", "-FRX"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("GCM_INTERACTIVE", "never"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("SUDO_ASKPASS", "/bin/false"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("HOMEBREW_NO_AUTO_UPDATE", "1"),
    ("TERM", "dumb"),
];

/// Names that would undo the above or run a file at start.
const UNSET: &[&str] = &["BASH_ENV", "ENV", "PROMPT_COMMAND", "GPG_TTY", "COLUMNS", "LINES"];

/// The environment of a command: the session's allow-list, quieted.
pub(crate) fn environment(base: &[(String, String)]) -> Vec<(String, String)> {
    let ours = |name: &str| QUIET.iter().any(|(k, _)| *k == name) || UNSET.contains(&name);
    let mut env: Vec<_> = base.iter().filter(|(k, _)| !ours(k)).cloned().collect();
    env.extend(QUIET.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    env
}

/// The environment under a pseudo-terminal: a full terminal of a known kind and size.
pub(crate) fn terminal_environment(base: &[(String, String)], cols: u16, rows: u16) -> Vec<(String, String)> {
    let mut env = environment(base);
    env.retain(|(k, _)| k != "TERM");
    env.push(("TERM".into(), "xterm-256color".into()));
    env.push(("COLUMNS".into(), cols.to_string()));
    env.push(("LINES".into(), rows.to_string()));
    env
}

/// Looks a program up in the `PATH` of the child's environment, then in the usual folders.
pub(crate) fn find(program: &str, env: &[(String, String)]) -> Option<std::path::PathBuf> {
    let path = env.iter().find(|(k, _)| k == "PATH").map_or("", |(_, v)| v.as_str());
    path.split(':')
        .chain(["/bin", "/usr/bin", "/usr/local/bin"])
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| std::path::Path::new(dir).join(program))
        .find(|p| rustix::fs::access(p, rustix::fs::Access::EXEC_OK).is_ok() && p.is_file())
}
