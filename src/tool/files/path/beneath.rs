//! Opening files by descriptor, for tools. Every open starts at a folder descriptor and follows no link at all, see
//! [`tiller_fs::beneath`].

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
pub(crate) use tiller_fs::beneath::open_at;
use tiller_fs::beneath::{CHANGED, step};
use tokio_util::sync::CancellationToken;

use crate::files::path::{Place, Zone, check_declared, tell};
use crate::output::human;
use crate::{ToolCx, ToolError};

/// Files above this are neither edited nor hashed.
pub(crate) const WHOLE_MAX: u64 = 64 << 20;

/// A regular file, open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub file: File,
    pub stat: Stat,
}

/// A folder descriptor and the name of a file in it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub dir: OwnedFd,
    pub leaf: OsString,
}

/// Opens a regular file for reading. FIFOs, sockets, devices and the kernel's own files are refused before
/// a byte is read.
pub(crate) fn open_file(place: &Place, cx: &ToolCx) -> Result<OpenFile, ToolError> {
    check_declared(place, cx)?;
    let (base, rel) = base(place, cx)?;
    open_regular(base.as_fd(), &rel, &place.name)
}

/// Opens a folder.
pub(crate) fn open_dir(place: &Place, cx: &ToolCx) -> Result<OwnedFd, ToolError> {
    check_declared(place, cx)?;
    let (base, rel) = base(place, cx)?;
    open_at(base.as_fd(), &rel, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|e| say(e, &place.name))
}

/// Opens the folder that holds `place`, which need not exist.
pub(crate) fn open_parent(place: &Place, cx: &ToolCx) -> Result<OwnedFd, ToolError> {
    let (base, rel) = base(place, cx)?;
    let parent = rel.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    open_at(base.as_fd(), parent, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|e| say(e, &place.name))
}

/// At most `max` names in a folder, in no order.
pub(crate) fn names(dir: &OwnedFd, max: usize) -> Result<Vec<OsString>, ToolError> {
    let entries = tiller_fs::beneath::entries(dir, max);
    let entries = entries.map_err(|e| ToolError::Tell(format!("the folder: {e}")))?;
    Ok(entries.into_iter().map(|(name, _)| name).collect())
}

/// Whether `rel` lies beneath `dir`, with no link on the way.
pub(crate) fn is_there(dir: &OwnedFd, rel: &Path) -> bool {
    let Some(leaf) = rel.file_name() else { return false };
    let look =
        |dir: BorrowedFd<'_>| rustix::fs::statat(dir, leaf, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok();
    match rel.parent().filter(|p| !p.as_os_str().is_empty()) {
        None => look(dir.as_fd()),
        Some(parent) => {
            open_at(dir.as_fd(), parent, OFlags::RDONLY | OFlags::DIRECTORY).is_ok_and(|d| look(d.as_fd()))
        }
    }
}

/// As [`open_file`], for a name in an open folder.
pub(crate) fn open_regular(dir: BorrowedFd<'_>, rel: &Path, name: &str) -> Result<OpenFile, ToolError> {
    // A look first: opening a device can already do something. The check that counts is on the descriptor.
    if let Ok(stat) = rustix::fs::statat(dir, rel, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        regular(&stat, name)?;
    }
    let fd = open_at(dir, rel, OFlags::RDONLY).map_err(|e| say(e, name))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| say(e, name))?;
    regular(&stat, name)?;
    #[cfg(target_os = "linux")]
    {
        // Endless files and our own environment live there.
        const PROC: i64 = 0x9fa0;
        let kind = rustix::fs::fstatfs(&fd).map_err(|e| say(e, name))?.f_type;
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            reason = "its width differs by platform"
        )]
        if kind as i64 == PROC {
            return tell(format!("{name} is a kernel interface, not a file"));
        }
    }
    Ok(OpenFile { file: fd.into(), stat })
}

fn regular(stat: &Stat, name: &str) -> Result<(), ToolError> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a folder; use list_dir",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::Symlink => return tell(format!("{name} {CHANGED}")),
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "not a regular file",
    };
    tell(format!("{name} is {what}"))
}

/// Error of the system, for the model.
pub(crate) fn say(e: Errno, name: &str) -> ToolError {
    ToolError::Tell(match e {
        Errno::NOENT => format!("{name} does not exist"),
        Errno::LOOP => format!("{name} {CHANGED}"),
        Errno::NOTDIR => format!("{name}: a part of the path is not a folder"),
        Errno::ISDIR => format!("{name} is a folder"),
        // A socket or a device without driver.
        Errno::NXIO => format!("{name} is not a regular file"),
        e => format!("{name}: {}", std::io::Error::from(e)),
    })
}

/// The folder to start from, and the way from there.
fn base(place: &Place, cx: &ToolCx) -> Result<(OwnedFd, PathBuf), ToolError> {
    let (dir, prefix) = match place.zone {
        Zone::Inside if place.path == place.named => {
            (cx.workspace.dir.try_clone(), cx.workspace.root.as_path())
        }
        Zone::Inside | Zone::Outside | Zone::Spill => (File::open("/").map(OwnedFd::from), Path::new("/")),
    };
    let dir = dir.map_err(|e| ToolError::Tell(format!("{}: {e}", place.name)))?;
    let rel = place.path.strip_prefix(prefix).unwrap_or(&place.path);
    Ok((dir, if rel.as_os_str().is_empty() { ".".into() } else { rel.to_owned() }))
}

/// A folder that was made on the way to a file. The descriptor of its parent is kept, because by the time it
/// is to go again its path may lead elsewhere.
#[derive(Debug)]
pub(crate) struct MadeFolder {
    parent: OwnedFd,
    leaf: OsString,
}

/// Opens the folder that holds `place`, making missing folders on the way (and saying which).
pub(crate) fn slot(place: &Place, cx: &ToolCx, made: &mut Vec<MadeFolder>) -> Result<Slot, ToolError> {
    check_declared(place, cx)?;
    let (base, rel) = base(place, cx)?;
    let name = &place.name;
    let Some(leaf) = rel.file_name() else { return tell(format!("{name} names a folder, not a file")) };
    let parent = rel.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = match open_at(base.as_fd(), parent, OFlags::RDONLY | OFlags::DIRECTORY) {
        Err(Errno::NOENT) => make_dirs(base, parent, name, made)?,
        done => done.map_err(|e| say(e, name))?,
    };
    Ok(Slot { dir, leaf: leaf.to_owned() })
}

fn make_dirs(
    mut dir: OwnedFd,
    rel: &Path,
    place: &str,
    made: &mut Vec<MadeFolder>,
) -> Result<OwnedFd, ToolError> {
    for part in rel.components() {
        let Component::Normal(name) = part else { continue };
        let new = match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Err(say(e, place)),
        };
        let next = step(dir.as_fd(), name);
        if new {
            let parent = dir.try_clone().map_err(|e| ToolError::Tell(format!("{place}: {e}")))?;
            made.push(MadeFolder { parent, leaf: name.to_owned() });
        }
        dir = next.map_err(|e| say(e, place))?;
    }
    Ok(dir)
}

/// Takes away folders that were made for nothing; only empty ones go, and only where they were made.
pub(crate) fn unmake_dirs(made: &[MadeFolder]) {
    for MadeFolder { parent, leaf } in made.iter().rev() {
        // It is no loss when something has appeared in it.
        let _ = rustix::fs::unlinkat(parent, leaf, rustix::fs::AtFlags::REMOVEDIR);
    }
}

/// The whole of a file, which may be at most [`WHOLE_MAX`] bytes, also when it grows meanwhile.
pub(crate) fn read_whole(
    opened: &mut OpenFile,
    name: &str,
    cancel: &CancellationToken,
) -> Result<Vec<u8>, ToolError> {
    let size = u64::try_from(opened.stat.st_size).unwrap_or(0);
    let too_large = || tell(format!("{name} is too large to edit here (above {})", human(WHOLE_MAX)));
    if size > WHOLE_MAX {
        return too_large();
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    let mut piece = vec![0; 1 << 16];
    loop {
        if cancel.is_cancelled() {
            return Err(ToolError::Interrupted(String::new()));
        }
        match opened.file.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return tell(format!("{name}: {e}")),
        }
        if bytes.len() as u64 > WHOLE_MAX {
            return too_large();
        }
    }
}

#[cfg(test)]
#[path = "beneath_tests.rs"]
mod tests;
