//! The files here. Nothing is reached through a link: neither what is sent nor what is written.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ignore::WalkBuilder;
use ignore::gitignore::Gitignore;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::known::{Stamp, below};

/// Larger files are not copied, in bytes.
pub(super) const LARGEST: u64 = 100 << 20;

/// The files of the folder that no ignore rule hides, and how many are too large.
pub(super) fn scan(root: &Path) -> (BTreeMap<String, Stamp>, usize) {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).ignore(false).git_global(false).require_git(false).follow_links(false);
    walk.filter_entry(|e| e.file_name() != ".git");
    let (mut files, mut large) = (BTreeMap::new(), 0);
    for entry in walk.build().flatten() {
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        let path = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
        let Some(path) = path.filter(|p| meta.is_file() && below(p)) else { continue };
        if meta.size() > LARGEST {
            large += 1;
            continue;
        }
        files.insert(path.to_owned(), stamp(&meta));
    }
    (files, large)
}

fn stamp(meta: &std::fs::Metadata) -> Stamp {
    let time = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Stamp {
        size: meta.size(),
        modified: time(meta.mtime(), meta.mtime_nsec()),
        changed: time(meta.ctime(), meta.ctime_nsec()),
        mode: meta.mode() & 0o777,
    }
}

/// What a file is like now; `None`: there is none, or it is no regular file.
pub(super) fn now(root: &Path, path: &str) -> Option<Stamp> {
    let meta = root.join(path).symlink_metadata().ok()?;
    meta.is_file().then(|| stamp(&meta))
}

/// Ignore rules, for paths of the other side.
pub(super) struct Ignored {
    /// By the folder of each file of rules, the deepest first.
    rules: Vec<(String, Gitignore)>,
}

impl Ignored {
    /// From the `.gitignore` files among these.
    pub(super) fn of(root: &Path, files: &BTreeMap<String, Stamp>) -> Self {
        let folder = |path: &str| {
            let folder = path.strip_suffix(".gitignore")?;
            (folder.is_empty() || folder.ends_with('/')).then(|| folder.to_owned())
        };
        let mut rules: Vec<_> = files
            .keys()
            .filter_map(|path| Some((folder(path)?, Gitignore::new(root.join(path)).0)))
            .collect();
        rules.sort_by_key(|(folder, _)| std::cmp::Reverse(folder.len()));
        Self { rules }
    }

    pub(super) fn hides(&self, path: &str) -> bool {
        for (folder, rules) in &self.rules {
            let Some(inner) = path.strip_prefix(folder.as_str()) else { continue };
            let found = rules.matched_path_or_any_parents(inner, false);
            if !found.is_none() {
                return found.is_ignore();
            }
        }
        false
    }
}

/// The folder of a path, opened without following a link. `make`: missing folders are made.
fn parent<'p>(root: &Path, path: &'p str, make: bool) -> std::io::Result<(OwnedFd, &'p str)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(root, flags, Mode::empty())?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in folders.split('/').filter(|p| !p.is_empty()) {
        let open = |dir: &OwnedFd| rustix::fs::openat(dir, part, flags | OFlags::NOFOLLOW, Mode::empty());
        dir = match open(&dir) {
            Err(rustix::io::Errno::NOENT) if make => {
                rustix::fs::mkdirat(&dir, part, Mode::from_raw_mode(0o777))?;
                open(&dir)?
            }
            other => other?,
        };
    }
    Ok((dir, name))
}

/// The content of a file, and its mode.
pub(super) fn read(root: &Path, path: &str) -> std::io::Result<(Vec<u8>, u32)> {
    let (dir, name) = parent(root, path, false)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::openat(&dir, name, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    file.take(LARGEST).read_to_end(&mut content)?;
    Ok((content, meta.mode() & 0o777))
}

/// Writes a file at once: a reader sees the old content or the new one. What is no regular file is not replaced.
pub(super) fn write(root: &Path, path: &str, content: &[u8], mode: u32) -> std::io::Result<()> {
    let (dir, name) = parent(root, path, true)?;
    if let Ok(stat) = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
        && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
    {
        return Err(std::io::Error::other("a link or a folder is in its place"));
    }
    let new = format!(".tiller-{}", uuid::Uuid::now_v7().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&dir, &new, flags, Mode::from_raw_mode(0o600))?;
    let written = std::fs::File::from(file);
    let result = (&written)
        .write_all(content)
        .and_then(|()| Ok(rustix::fs::fchmod(&written, Mode::from_raw_mode(mode & 0o777))?))
        .and_then(|()| Ok(rustix::fs::renameat(&dir, &new, &dir, name)?));
    if result.is_err() {
        let _ = rustix::fs::unlinkat(&dir, &new, AtFlags::empty());
    }
    result
}

/// Removes a regular file.
pub(super) fn remove(root: &Path, path: &str) -> std::io::Result<()> {
    let (dir, name) = parent(root, path, false)?;
    Ok(rustix::fs::unlinkat(&dir, name, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_read_or_written_through_a_link() {
        let tmp = tempfile::tempdir().unwrap();
        let (root, out) = (tmp.path().join("work"), tmp.path().join("out"));
        std::fs::create_dir_all(root.join("real")).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("key"), "secret").unwrap();
        symlink(&out, root.join("dir")).unwrap();
        symlink(out.join("key"), root.join("link")).unwrap();
        for path in ["dir/key", "link"] {
            assert!(read(&root, path).is_err(), "{path}");
            assert!(write(&root, path, b"x", 0o644).is_err(), "{path}");
        }
        assert!(remove(&root, "dir/key").is_err());
        assert_eq!(std::fs::read_to_string(out.join("key")).unwrap(), "secret");
        assert!(scan(&root).0.is_empty());
        write(&root, "new/deep/file", b"x", 0o4755).unwrap();
        assert_eq!(read(&root, "new/deep/file").unwrap(), (b"x".to_vec(), 0o755));
        assert!(write(&root, "real", b"x", 0o644).is_err(), "a folder is not replaced");
        assert_eq!(std::fs::read_dir(root.join("new/deep")).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn ignore_rules_hold_for_both_sides() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path();
        for (path, text) in [
            (".gitignore", "target/\n*.log\n!keep.log\n"),
            ("sub/.gitignore", "/own\n"),
            ("a.log", ""),
            ("keep.log", ""),
            ("target/x", ""),
            ("sub/own", ""),
            ("sub/deep/own", ""),
            (".git/config", ""),
        ] {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        let (files, _) = scan(root);
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, [".gitignore", "keep.log", "sub/.gitignore", "sub/deep/own"]);
        let ignored = Ignored::of(root, &files);
        for (path, hidden) in [
            ("b.log", true),
            ("keep.log", false),
            ("target/deep/y", true),
            ("sub/own", true),
            ("sub/own/x", true),
            ("sub/deep/own", false),
            ("own", false),
        ] {
            assert_eq!(ignored.hides(path), hidden, "{path}");
        }
    }
}
