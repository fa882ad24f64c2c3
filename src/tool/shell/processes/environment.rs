//! The environment of commands. There is no terminal and standard input is empty; the variables here keep programs from
//! waiting for a user in other ways.

/// Variables that are set over those of the session's allow-list. Editors fail loudly (`false`), but git's own keeps
/// the proposed text (`true`): then merges and rebases go on, and a commit without a message still aborts.
const NONINTERACTIVE: &[(&str, &str)] = &[
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

/// The environment of a command: the session's allow-list with [`NONINTERACTIVE`] over it.
pub(crate) fn environment(base: &[(String, String)]) -> Vec<(String, String)> {
    let ours = |name: &str| NONINTERACTIVE.iter().any(|(k, _)| *k == name) || UNSET.contains(&name);
    let mut env: Vec<_> = base.iter().filter(|(k, _)| !ours(k)).cloned().collect();
    env.extend(NONINTERACTIVE.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
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

/// Programs that we start ourselves, by their names.
const OWN: &[&str] = &["bash", "sh", "grep"];

/// The environment without those folders of `PATH` in which files below `root` can place a program. For processes that
/// Tiller starts for itself.
pub(crate) fn outside(env: &[(String, String)], root: &std::path::Path) -> Vec<(String, String)> {
    let foreign = |dir: &&str| {
        let dir = std::path::Path::new(dir);
        let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        // A link to a program of the workspace may stand in a folder outside of it.
        let linked = OWN.iter().any(|name| dir.join(name).canonicalize().is_ok_and(|p| p.starts_with(root)));
        dir.is_absolute() && !dir.starts_with(root) && !real.starts_with(root) && !linked
    };
    env.iter()
        .map(|(name, value)| match name.as_str() {
            "PATH" => (name.clone(), value.split(':').filter(foreign).collect::<Vec<_>>().join(":")),
            _ => (name.clone(), value.clone()),
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_of_the_workspace_is_found_for_ourselves() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        let work = top.join("work");
        for folder in ["work/bin", "bin"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
            let file = top.join(folder).join("bash");
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(work.join("bin"), top.join("link")).unwrap();
        std::fs::create_dir(top.join("links")).unwrap();
        std::os::unix::fs::symlink(work.join("bin/bash"), top.join("links/sh")).unwrap();
        let t = top.display();
        let env = vec![
            ("PATH".to_owned(), format!(".::{t}/work/bin:{t}/link:{t}/links:bin:{t}/bin")),
            ("A".into(), "b".into()),
        ];
        assert_eq!(find("bash", &env), Some(work.join("bin/bash")), "or the test would show nothing");
        let safe = outside(&env, &work);
        assert_eq!(safe, [("PATH".to_owned(), format!("{t}/bin")), ("A".into(), "b".into())]);
        assert_eq!(find("bash", &safe), Some(top.join("bin/bash")));
    }
}
