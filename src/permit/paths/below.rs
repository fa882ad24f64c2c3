//! What lies below a folder, and what a pattern of names stands for: for commands that read whole trees.

use std::path::{Component, Path, PathBuf};

use crate::paths::{Roots, normal};

/// Entries that one search looks at. Fewer in the tests of this crate, which reach the limit.
pub(crate) const MOST: usize = if cfg!(test) { 3_000 } else { 60_000 };
/// Paths that one pattern stands for.
const PATHS: usize = 4_000;

/// Outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    None,
    Found(PathBuf),
    /// There is more than one search looks at.
    TooMany,
}

/// The first path below `folder` that `wanted` takes. Links are looked at and not followed.
pub(crate) fn below(roots: &Roots, folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Below {
    let mut folders = vec![roots.real(folder)];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for (name, is_folder) in roots.list(&folder) {
            seen += 1;
            if seen > MOST {
                return Below::TooMany;
            }
            let path = folder.join(&name);
            if wanted(&path) {
                return Below::Found(path);
            }
            if is_folder && name != ".git" {
                folders.push(path);
            }
        }
    }
    Below::None
}

/// The paths that a pattern of names stands for, as far as they exist; a pattern takes names that begin
/// with a dot as well. `None` when there are too many.
pub(crate) fn expand(roots: &Roots, pattern: &Path) -> Option<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in normal(pattern).components() {
        let text = part.as_os_str().to_string_lossy();
        let wild = matches!(part, Component::Normal(_)) && text.contains(['*', '?', '[']);
        if !wild {
            found.iter_mut().for_each(|p| p.push(part));
            continue;
        }
        let Ok(glob) = globset::GlobBuilder::new(&text).case_insensitive(true).build() else { return None };
        let glob = glob.compile_matcher();
        let mut next = Vec::new();
        for folder in &found {
            let names = roots.list(folder);
            next.extend(names.iter().filter(|(n, _)| glob.is_match(n)).map(|(n, _)| folder.join(n)));
            // `**` stands for folders below as well.
            if text == "**" {
                next.extend(names.iter().filter(|(_, d)| *d).flat_map(|(n, _)| {
                    let inner = folder.join(n);
                    roots.list(&inner).into_iter().map(move |(n, _)| inner.join(n))
                }));
            }
            if next.len() > PATHS {
                return None;
            }
        }
        found = next;
    }
    Some(found)
}
