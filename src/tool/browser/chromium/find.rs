//! Which program on this machine is a Chromium.

use std::path::{Path, PathBuf};

/// Names of Chromium's program and of browsers built on it, in order of preference.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "microsoft-edge-stable",
    "brave-browser",
];
/// Programs outside of `PATH`, on macOS.
const BUNDLES: [&str; 3] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];

/// The first browser in the absolute folders of `path` (as `PATH`); `None`: there is none. Only looks at names.
pub(crate) fn program(path: &str) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let named = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let bundles = BUNDLES.iter().filter(|_| cfg!(target_os = "macos")).map(PathBuf::from);
    named.chain(bundles).find(|program| executable(program))
}

fn executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    program.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_wins_and_relative_folders_do_not_count() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let (a, b) = (scratch.path().join("a"), scratch.path().join("b"));
        for (folder, name, mode) in
            [(&a, "google-chrome", 0o755), (&b, "chromium", 0o755), (&a, "chromium", 0o644)]
        {
            std::fs::create_dir_all(folder).unwrap();
            let file = folder.join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = format!("bin:{}:{}", a.display(), b.display());
        assert_eq!(program(&path), Some(b.join("chromium")), "a file that cannot be executed does not count");
        assert_eq!(program(&a.display().to_string()), Some(a.join("google-chrome")));
        assert_eq!(program("bin:."), None);
    }
}
