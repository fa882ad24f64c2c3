//! The crates of this workspace as parsed files with their module paths.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A crate of this workspace.
pub(crate) struct Room {
    /// The folder below `src/`; `tiller` for the root package.
    pub(crate) name: String,
    pub(crate) files: Vec<File>,
}

/// A source file, tests left out.
pub(crate) struct File {
    /// Relative to the repository, with `/`.
    pub(crate) path: String,
    /// The module that it defines, as path segments below the crate; empty for the crate's root.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
    pub(crate) parsed: syn::File,
}

/// All crates below `src/`, sorted by name, without `xtask`.
///
/// # Errors
/// When a file cannot be read or parsed.
pub(crate) fn read(root: &Path) -> Result<Vec<Room>> {
    let mut roots = vec![("tiller".to_owned(), root.join("src"))];
    for entry in std::fs::read_dir(root.join("src"))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if path.join("Cargo.toml").exists() && name != "xtask" {
            roots.push((name, path));
        }
    }
    roots.sort();
    roots.into_iter().map(|(name, folder)| room(root, name, &folder)).collect()
}

fn room(root: &Path, name: String, folder: &Path) -> Result<Room> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let below = path.strip_prefix(folder)?.with_extension("");
        let mut module: Vec<String> = below.iter().map(|s| s.to_string_lossy().into_owned()).collect();
        match module.last().map(String::as_str) {
            Some("mod") => drop(module.pop()),
            Some("lib" | "main") if module.len() == 1 => module.clear(),
            _ => {}
        }
        let text = std::fs::read_to_string(&path)?;
        let parsed = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        let path = path.strip_prefix(root)?.to_string_lossy().into_owned();
        files.push(File { path, module, text, parsed });
    }
    Ok(Room { name, files })
}

/// Source files below `dir` that are not tests and belong to this crate.
fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if is_test(name) {
            continue;
        }
        if path.is_dir() {
            if !path.join("Cargo.toml").exists() {
                collect(&path, found)?;
            }
        } else if path.extension().is_some_and(|x| x == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether the name is that of a test, a fixture or an example.
fn is_test(name: &str) -> bool {
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    matches!(stem, "tests" | "test" | "testing" | "fixtures" | "examples" | "room_tests" | "benches")
        || stem.ends_with("_tests")
        || stem.ends_with("_test")
}

/// Whether an item is compiled for tests only.
pub(crate) fn only_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("cfg") && a.parse_args::<syn::Meta>().is_ok_and(|m| m.path().is_ident("test"))
    })
}
