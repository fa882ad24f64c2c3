//! The crates of this workspace as parsed files with their module paths.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::{ImplItem, Item};

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
    /// Without the items that are compiled for tests only.
    pub(crate) parsed: syn::File,
}

impl File {
    /// # Errors
    /// When `text` is not Rust.
    pub(crate) fn parse(path: String, module: Vec<String>, text: String) -> syn::Result<Self> {
        let mut parsed = syn::parse_file(&text)?;
        remove_tests(&mut parsed.items);
        Ok(Self { path, module, text, parsed })
    }
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
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        files.push(File::parse(name, module, text).with_context(|| path.display().to_string())?);
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

/// Removes the items that are compiled for tests only, in modules and implementations too.
fn remove_tests(items: &mut Vec<Item>) {
    items.retain_mut(|item| match item {
        Item::Mod(module) => {
            if let Some((_, inner)) = &mut module.content {
                remove_tests(inner);
            }
            !only_for_tests(&module.attrs)
        }
        Item::Impl(block) => {
            block.items.retain(|i| !matches!(i, ImplItem::Fn(f) if only_for_tests(&f.attrs)));
            !only_for_tests(&block.attrs)
        }
        Item::Use(item) => !only_for_tests(&item.attrs),
        Item::Fn(item) => !only_for_tests(&item.attrs),
        _ => true,
    });
}

/// Whether an item is compiled for tests only.
fn only_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("cfg") && a.parse_args::<syn::Meta>().is_ok_and(|m| m.path().is_ident("test"))
    })
}
