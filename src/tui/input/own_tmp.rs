//! The `/tmp` of a session, by the paths that a person writes: the files that commands and file tools see there lie in a private
//! folder.

use std::path::{Component, Path, PathBuf};

use tiller_protocol::SandboxState;

/// Where a path lies that a person named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnTmp {
    /// In the session's folder. `also`: the machine's own `/tmp` has one of that name too.
    Here { at: PathBuf, also: bool },
    /// In the machine's own `/tmp` only.
    Machine,
    /// The session has no `/tmp` of its own, it is no path there, or there is nothing.
    Elsewhere,
}

/// Looks for `path` in the session's folder.
pub(crate) fn find(path: &Path, sandbox: Option<&SandboxState>) -> OwnTmp {
    let Some(folder) = sandbox.and_then(SandboxState::own_tmp) else { return OwnTmp::Elsewhere };
    let Ok(below) = path.strip_prefix("/tmp") else { return OwnTmp::Elsewhere };
    if !below.components().all(|c| matches!(c, Component::Normal(_))) {
        return OwnTmp::Elsewhere;
    }
    let folder = Path::new(folder);
    let also = path.symlink_metadata().is_ok();
    // A link of a command's that leads out of the folder names another file there than here.
    let real = folder.join(below).canonicalize().ok().filter(|real| real.starts_with(folder));
    match real {
        Some(at) => OwnTmp::Here { at, also },
        None if also => OwnTmp::Machine,
        None => OwnTmp::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name below the machine's `/tmp` that no other test has.
    #[test]
    fn a_path_below_tmp_is_that_of_the_session_where_it_has_one_and_never_another_one_silently() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let there = tempfile::Builder::new().prefix("own-tmp-").tempdir_in("/tmp").unwrap();
        let name = there.path().file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::create_dir(top.join(&name)).unwrap();
        std::fs::write(top.join("only"), "session").unwrap();
        std::fs::write(top.join(&name).join("both"), "session").unwrap();
        std::fs::write(there.path().join("both"), "machine").unwrap();
        std::fs::write(there.path().join("machine"), "machine").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", top.join("out")).unwrap();
        let state = |method: &str, main: Option<&str>| SandboxState {
            method: Some(method.into()),
            main: main.map(str::to_owned),
            tmp: Some(top.display().to_string()),
            ..SandboxState::default()
        };
        let mounted = state("Landlock and bubblewrap", None);
        let here = |at: &str, also| OwnTmp::Here { at: top.join(at), also };
        let both = format!("{name}/both");
        for (path, found) in [
            ("/tmp/only".to_owned(), here("only", false)),
            (format!("/tmp/{both}"), here(&both, true)),
            (format!("/tmp/{name}/machine"), OwnTmp::Machine),
            ("/tmp/out".into(), OwnTmp::Elsewhere),
            ("/tmp/nothing-of-this-name".into(), OwnTmp::Elsewhere),
            ("/tmp/../etc/hostname".into(), OwnTmp::Elsewhere),
            ("/etc/hostname".into(), OwnTmp::Elsewhere),
            ("only".into(), OwnTmp::Elsewhere),
        ] {
            assert_eq!(find(Path::new(&path), Some(&mounted)), found, "{path}");
        }
        for unmounted in
            [state("Landlock", None), state("bubblewrap", Some("build")), SandboxState::default()]
        {
            assert_eq!(find(Path::new("/tmp/only"), Some(&unmounted)), OwnTmp::Elsewhere, "{unmounted:?}");
        }
    }
}
