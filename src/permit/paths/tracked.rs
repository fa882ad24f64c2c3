//! Whether git tracks a path, by its index.

use std::path::Path;

/// Largest index that is read.
const MOST: u64 = 256 << 20;

/// False only when the index of the repository that holds `folder` surely does not name `path`.
pub(crate) fn tracked(folder: &Path, path: &Path) -> bool {
    let Some((root, index)) = folder.ancestors().find_map(|f| Some((f, index(f)?))) else { return true };
    let Ok(name) = path.strip_prefix(root) else { return true };
    let name = name.as_os_str().as_encoded_bytes();
    // Since version 4 names are cut where they begin like the one before.
    let whole = index.starts_with(b"DIRC") && index.get(4..8).is_some_and(|v| v < [0, 0, 0, 4].as_slice());
    !whole || name.is_empty() || memmem(&index, name)
}

fn index(folder: &Path) -> Option<Vec<u8>> {
    let git = folder.join(".git");
    let meta = std::fs::symlink_metadata(&git).ok()?;
    let file = if meta.is_dir() {
        git.join("index")
    } else {
        let text = std::fs::read_to_string(&git).ok()?;
        folder.join(text.strip_prefix("gitdir:")?.trim()).join("index")
    };
    match std::fs::metadata(&file) {
        Ok(m) if m.is_file() && m.len() <= MOST => Some(std::fs::read(&file).unwrap_or_default()),
        Ok(_) => Some(vec![]),
        // A repository without an index tracks nothing.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some(b"DIRC\0\0\0\x02".to_vec()),
        Err(_) => Some(vec![]),
    }
}

fn memmem(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}
