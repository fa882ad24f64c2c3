//! The folder for temporary files.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::Access;
use tiller_protocol::{Notice, NoticeKind};

/// The variable that names it.
pub(crate) const VARIABLE: &str = "TMPDIR";

/// Looks once for a folder in which files can be made, when `TMPDIR` names none; until then, and where there is none, the named
/// one is used.
pub(crate) fn settle() {
    if let Some((_, folder)) = replaced() {
        // Refused only after an earlier choice, which then holds.
        let _ = tempfile::env::override_temp_dir(folder);
    }
}

/// `TMPDIR`, which cannot be used, and the folder in its place; `None`: it can, or is not set.
pub(crate) fn replaced() -> Option<(&'static Path, &'static Path)> {
    static REPLACED: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let found = REPLACED.get_or_init(|| replacement(std::env::var_os(VARIABLE)?.into()));
    found.as_ref().map(|(named, folder)| (named.as_path(), folder.as_path()))
}

fn replacement(named: PathBuf) -> Option<(PathBuf, PathBuf)> {
    let is_usable = |path: &Path| {
        path.is_absolute()
            && path.is_dir()
            && rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    };
    let others = || ["/tmp", "/var/tmp", "/dev/shm"].into_iter().map(PathBuf::from);
    if is_usable(&named) { None } else { others().find(|path| is_usable(path)).map(|path| (named, path)) }
}

/// The notice about a `TMPDIR` that is not used.
pub(crate) fn notice() -> Option<Notice> {
    let (named, folder) = replaced().filter(|(named, _)| !named.as_os_str().is_empty())?;
    let text =
        format!("TMPDIR names {}, where no file can be made: {} is used.", named.display(), folder.display());
    Some(Notice::new(NoticeKind::Info, text).hint("Make the folder, or unset TMPDIR."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_where_files_can_be_made_is_used() {
        let tmp = tempfile::tempdir().unwrap();
        assert_eq!(replacement(tmp.path().into()), None);
        std::fs::write(tmp.path().join("file"), "").unwrap();
        for named in [tmp.path().join("missing"), tmp.path().join("file"), "".into(), "relative".into()] {
            let (of, other) = replacement(named.clone()).unwrap();
            assert_eq!((of, other.is_dir()), (named, true));
        }
    }
}
