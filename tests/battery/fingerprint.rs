//! The state of a folder as text: names, kinds, modes, owners, times, attributes, flags, content.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Result;
use rustix::fs::{Mode, OFlags, ioctl_getflags, lgetxattr, llistxattr, open};

/// Content beyond this many bytes is not compared.
const MOST: u64 = 1 << 20;

/// The same text twice: nothing changed. Times of access do not count.
pub(crate) fn fingerprint(folder: &Path) -> Result<String> {
    let mut out = String::new();
    add(folder, &mut out)?;
    Ok(out)
}

fn add(path: &Path, out: &mut String) -> Result<()> {
    let Ok(meta) = path.symlink_metadata() else {
        writeln!(out, "{} is gone", path.display())?;
        return Ok(());
    };
    write!(
        out,
        "{} {:o} {}:{} {}.{} {}",
        path.display(),
        meta.mode(),
        meta.uid(),
        meta.gid(),
        meta.mtime(),
        meta.mtime_nsec(),
        if meta.is_dir() { 0 } else { meta.len() }
    )?;
    let mut names = [0_u8; 4096];
    if let Ok(len) = llistxattr(path, &mut names) {
        for name in names.get(..len).unwrap_or_default().split(|b| *b == 0).filter(|n| !n.is_empty()) {
            let mut value = [0_u8; 1024];
            let len = lgetxattr(path, name, &mut value).unwrap_or_default();
            write!(out, " {}={:?}", String::from_utf8_lossy(name), value.get(..len).unwrap_or_default())?;
        }
    }
    if meta.is_symlink() {
        write!(out, " -> {}", std::fs::read_link(path)?.display())?;
    }
    if (meta.is_file() || meta.is_dir())
        && let Ok(fd) = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        && let Ok(flags) = ioctl_getflags(&fd)
    {
        write!(out, " {flags:?}")?;
    }
    if meta.is_file() && meta.len() <= MOST {
        let mut content = DefaultHasher::new();
        content.write(&std::fs::read(path).unwrap_or_default());
        write!(out, " {:x}", content.finish())?;
    }
    out.push('\n');
    if meta.is_dir() {
        let mut entries: Vec<_> = std::fs::read_dir(path)?.flatten().map(|e| e.path()).collect();
        entries.sort();
        for entry in entries {
            add(&entry, out)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn every_change_shows() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("a");
        std::fs::write(&file, "x").unwrap();
        let first = fingerprint(tmp.path()).unwrap();
        assert_eq!(first, fingerprint(tmp.path()).unwrap());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let second = fingerprint(tmp.path()).unwrap();
        assert_ne!(first, second);
        std::fs::File::open(&file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let third = fingerprint(tmp.path()).unwrap();
        assert_ne!(second, third);
        std::fs::remove_file(&file).unwrap();
        assert_ne!(third, fingerprint(tmp.path()).unwrap());
    }
}
