//! The list of the built-in skills: each folder of the top-level `skills/` that has a `SKILL.md`, with all of its files.
//! A folder without one, such as a pack, is no built-in skill. The list of the built-in packs: each folder of `skills/packs`
//! that has a `plugin.toml`, with all of its files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let crate_folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let root = crate_folder.join("../../skills");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", root.display());
    std::fs::write(out.join("built_in.rs"), list(&root, "SKILL.md")?)?;
    std::fs::write(out.join("built_in_packs.rs"), list(&root.join("packs"), "plugin.toml")?)
}

/// The folders of `root` that have a file `marker`, with all of their files, as Rust code.
fn list(root: &Path, marker: &str) -> std::io::Result<String> {
    let mut code = String::from("&[\n");
    for folder in entries(root)? {
        if !folder.join(marker).is_file() {
            continue;
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Writing to a string cannot fail.
        let _ = writeln!(code, "({name:?}, &[");
        for file in files(&folder)? {
            println!("cargo::rerun-if-changed={}", file.display());
            let below = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
            let _ = writeln!(code, "({below:?}, include_bytes!({:?}).as_slice()),", file.canonicalize()?);
        }
        code.push_str("]),\n");
    }
    code.push_str("]\n");
    Ok(code)
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut all = std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    all.sort();
    Ok(all)
}

/// The files below a folder, by path.
fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            all.extend(files(&path)?);
        } else {
            all.push(path);
        }
    }
    Ok(all)
}
