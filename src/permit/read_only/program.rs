//! Which file a program's name stands for, and whether that file takes another program from what the folder holds.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::paths::Roots;
use crate::surroundings::ShellState;
use tiller_shell::program_name;

/// Builtins of the shell: no file is looked up for them.
const BUILTINS: &[&str] = &[
    ":",
    "true",
    "false",
    "echo",
    "printf",
    "pwd",
    "cd",
    "type",
    "test",
    "[",
    "command",
    "builtin",
    "eval",
    "read",
    "break",
    "continue",
    "dirs",
    "help",
    "history",
    "jobs",
    "mapfile",
    "readarray",
    "set",
    "ulimit",
    "umask",
    "popd",
    "pushd",
];

/// Files by which version managers choose what their launchers run; some of them may name a path.
const CHOOSERS: &[&str] = &[
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    ".config/mise.toml",
    ".config/mise/config.toml",
    ".mise/config.toml",
    "mise/config.toml",
    ".rtx.toml",
    ".envrc",
];

/// Further such files, by program.
const STEERED: &[(&[&str], &[&str])] = &[
    (&["cargo", "rustc"], &["rust-toolchain", "rust-toolchain.toml"]),
    (&["node", "npm"], &[".node-version", ".npmrc"]),
    (&["python", "python3"], &[".python-version"]),
];

/// Programs that are often launchers, even where nothing shows it.
const LAUNCHED: &[&str] = &["cargo", "rustc", "node", "npm", "python", "python3", "go"];

/// The file that `written` (a program as it stands in a command) is run from. `None` for a builtin.
///
/// # Errors
/// The reason, when that is not a program of the system, or is steered by what `folders` hold.
pub(super) fn find(
    written: &str,
    shell: &ShellState,
    folders: &[PathBuf],
    roots: &Roots,
) -> Result<Option<PathBuf>, String> {
    let name = program_name(written).unwrap_or(written);
    if shell.redefined.iter().any(|r| r == "*") {
        return Err("a variable, a trap or an option of this shell changes what its commands do".into());
    }
    if shell.redefined.iter().any(|r| r == name) {
        return Err(format!("{name} is redefined in this shell"));
    }
    if written == name && BUILTINS.contains(&name) {
        return Ok(None);
    }
    // Nothing is known of the programs of this shell, for instance in a test.
    let file = if written != name {
        PathBuf::from(written)
    } else if shell.path.is_empty() {
        return Ok(Some(PathBuf::from(name)));
    } else {
        on_path(name, &shell.path, folders)?
    };
    let Ok(real) = file.canonicalize() else { return Ok(Some(file)) };
    if roots.inside(&file) || roots.inside(&real) || real.starts_with(roots.real(&roots.workspace)) {
        return Err(format!("{name} is a program in the workspace: {}", file.display()));
    }
    if let Some(by) = steered(name, &file, &real, folders, roots) {
        return Err(format!("{} decides which {name} runs", by.display()));
    }
    Ok(Some(file))
}

/// The first file of this name on the search path.
fn on_path(name: &str, path: &str, folders: &[PathBuf]) -> Result<PathBuf, String> {
    for entry in path.split(':') {
        let candidates: Vec<PathBuf> = if entry.starts_with('/') {
            vec![Path::new(entry).join(name)]
        } else {
            folders.iter().map(|f| f.join(entry).join(name)).collect()
        };
        for file in candidates {
            if runs(&file) {
                return if entry.starts_with('/') {
                    Ok(file)
                } else {
                    Err(format!("{name} is found through the relative folder '{entry}' of PATH"))
                };
            }
        }
    }
    // The shell finds it nowhere either.
    Ok(PathBuf::from(name))
}

fn runs(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The file below which a launcher would choose the program to run.
fn steered(name: &str, file: &Path, real: &Path, folders: &[PathBuf], roots: &Roots) -> Option<PathBuf> {
    let launcher = LAUNCHED.contains(&name)
        || [file, real].iter().any(|p| p.components().any(|c| c.as_os_str() == "shims"))
        || real.file_name().is_some_and(|n| {
            let n = n.to_string_lossy();
            matches!(n.as_ref(), "mise" | "rtx" | "asdf" | "volta-shim" | "rustup" | "corepack.js" | "npm.js")
        });
    if !launcher {
        return None;
    }
    let more = STEERED.iter().filter(|(names, _)| names.contains(&name)).flat_map(|(_, files)| files.iter());
    let names: Vec<&str> = CHOOSERS.iter().chain(more).copied().collect();
    above(folders, roots).find_map(|folder| {
        let by_name = names.iter().map(|n| folder.join(n)).find(|f| f.symlink_metadata().is_ok());
        by_name.or_else(|| {
            let manifest = folder.join("package.json");
            (matches!(name, "node" | "npm") && chooses(&manifest)).then_some(manifest)
        })
    })
}

/// The folders and those above them that may belong to the project: not the home folder and what is above that.
fn above<'a>(folders: &'a [PathBuf], roots: &'a Roots) -> impl Iterator<Item = PathBuf> + 'a {
    let persons = move |f: &Path| roots.home.as_deref().is_some_and(|h| h.starts_with(f));
    folders
        .iter()
        .flat_map(|f| roots.real(f).ancestors().map(Path::to_owned).collect::<Vec<_>>())
        .filter(move |f| f.parent().is_some() && !persons(f))
}

/// Whether a manifest names the node or npm that launchers run. An unreadable manifest counts as naming one.
fn chooses(manifest: &Path) -> bool {
    const MOST: u64 = 1 << 20;
    let Ok(meta) = std::fs::metadata(manifest) else { return manifest.symlink_metadata().is_ok() };
    if meta.len() > MOST || !meta.is_file() {
        return true;
    }
    std::fs::read_to_string(manifest).map_or(true, |text| {
        ["volta", "packageManager", "devEngines", "\\u"].iter().any(|w| text.contains(w))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(file: &Path) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_of_the_workspace_is_none_of_the_table() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        let (work, bin) = (top.join("work"), top.join("bin"));
        program(&bin.join("ls"));
        program(&bin.join("cargo"));
        program(&top.join("shims/jq"));
        program(&work.join("bin/cat"));
        program(&work.join("wc"));
        std::fs::create_dir_all(work.join("sub")).unwrap();
        std::os::unix::fs::symlink(work.join("bin/cat"), bin.join("tac")).unwrap();
        let roots = Roots::new(&work, None, vec![]);
        let path =
            format!("{}:{}:{}", top.join("shims").display(), bin.display(), work.join("bin").display());
        let find_in = |name: &str, path: &str, folder: &Path| {
            let shell =
                ShellState { path: path.to_owned(), redefined: vec!["fn1".into()], ..ShellState::default() };
            find(name, &shell, &[folder.to_owned()], &roots)
        };
        let here = |name: &str| find_in(name, &path, &work);
        assert_eq!(here("ls").unwrap(), Some(bin.join("ls")));
        assert_eq!(here("echo").unwrap(), None);
        assert!(here("cat").unwrap_err().contains("program in the workspace"));
        assert!(here("tac").unwrap_err().contains("program in the workspace"), "a link into it");
        assert!(here("fn1").unwrap_err().contains("redefined"));
        for relative in [".", "", "./", "../work"] {
            let path = format!("{relative}:{path}");
            assert!(find_in("wc", &path, &work).unwrap_err().contains("relative"), "{relative}");
            // Only what is found there matters.
            assert!(find_in("ls", &path, &work).is_ok(), "{relative}");
        }
        // Launchers.
        assert!(here("cargo").is_ok() && here("jq").is_ok());
        std::fs::write(work.join("rust-toolchain.toml"), "[toolchain]\npath = \"x\"\n").unwrap();
        assert!(here("cargo").unwrap_err().contains("rust-toolchain.toml decides"));
        assert!(find_in("cargo", &path, &work.join("sub")).is_err(), "from below, too");
        assert!(here("jq").is_ok(), "that file is none of its");
        std::fs::write(top.join(".tool-versions"), "jq path:./evil\n").unwrap();
        assert!(here("jq").unwrap_err().contains(".tool-versions decides"), "above the workspace, too");
        assert!(here("ls").is_ok(), "no launcher");
        // What stands in the home folder is the person's own.
        let roots = Roots::new(&work, Some(top), vec![]);
        let shell = ShellState { path, redefined: vec![], ..ShellState::default() };
        assert!(find("jq", &shell, std::slice::from_ref(&work), &roots).is_ok());
    }
}
