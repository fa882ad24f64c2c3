//! Files that restrict what may be done: permission rules, settings, hooks, rules of memory, definitions.
//!
//! Only a file that is not there counts as none. Any other failure is an error, since what the file forbids is then not
//! known: a folder or a pipe in its place, a link that leads to nothing, another owner's file, text that is not UTF-8.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// The bytes of a regular file; `None`: there is nothing at `path`. A link is followed. Never waits for a pipe. `most`: the
/// largest size in bytes.
///
/// # Errors
/// The end of a sentence that begins with the path, without a full stop.
pub fn read_bytes(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    match read_start(path, most.saturating_add(1))? {
        Some(bytes) if bytes.len() as u64 > most => Err(format!("is larger than {} KiB", most / 1024)),
        read => Ok(read),
    }
}

/// As [`read_bytes`], up to the byte `most`, whatever the size.
///
/// # Errors
/// As [`read_bytes`].
pub fn read_start(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    Ok(Some(bytes))
}

/// As [`read_bytes`], decoded by [`text_of`].
///
/// # Errors
/// As those two.
pub fn read_text(path: &Path, most: u64) -> Result<Option<String>, String> {
    read_bytes(path, most)?.map(text_of).transpose()
}

/// The text of a file that restricts, without the byte order mark of UTF-8.
///
/// # Errors
/// As [`read_bytes`]: it is not UTF-8, or has a NUL, as UTF-16 does.
pub fn text_of(mut bytes: Vec<u8>) -> Result<String, String> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("is UTF-16 text; save it as UTF-8".into());
    }
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        bytes.drain(..3);
    }
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        return Err(format!("is not UTF-8 text: line {} has a NUL byte", line(&bytes, at)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let byte = bytes.get(at).copied().unwrap_or_default();
        format!("is not UTF-8 text: line {} has the byte 0x{byte:02X}", line(bytes, at))
    })
}

/// The line of a byte, from 1.
fn line(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|b| **b == b'\n').count() + 1
}

/// The open file; `None`: there is nothing at `path`.
fn open(path: &Path) -> Result<Option<File>, String> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return nothing_at(path).map(|()| None);
        }
        Err(e) => {
            // A socket cannot be opened at all.
            let other = fs::metadata(path).ok().and_then(|m| kind(m.file_type()));
            return Err(other.map_or_else(|| unreadable(&e), str::to_owned));
        }
    };
    let meta = file.metadata().map_err(|e| unreadable(&e))?;
    match kind(meta.file_type()) {
        Some(kind) => Err(kind.into()),
        None => Ok(Some(file)),
    }
}

/// The kind of a file that is no regular one.
fn kind(of: fs::FileType) -> Option<&'static str> {
    match of {
        of if of.is_file() => None,
        of if of.is_dir() => Some("is a folder, not a file"),
        of if of.is_fifo() => Some("is a pipe, not a file"),
        of if of.is_socket() => Some("is a socket, not a file"),
        _ => Some("is a device, not a file"),
    }
}

fn unreadable(error: &io::Error) -> String {
    // ELOOP has no stable kind.
    let looped = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    if looped { "is a link that leads to itself".into() } else { format!("cannot be read: {error}") }
}

/// Checks that a path which cannot be opened leads to nothing because nothing is there, not because a link on the way leads
/// nowhere or something else stands in the place of a folder.
///
/// # Errors
/// As [`read_bytes`].
pub fn nothing_at(path: &Path) -> Result<(), String> {
    for at in path.ancestors().filter(|at| !at.as_os_str().is_empty()) {
        let found = match fs::symlink_metadata(at) {
            Ok(found) => found,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(e) => return Err(unreadable(&e)),
        };
        return match fs::metadata(at) {
            Err(_) if found.is_symlink() && at == path => Err("is a link that leads to nothing".into()),
            Err(_) if found.is_symlink() => {
                Err(format!("cannot be read: {} is a link that leads to nothing", at.display()))
            }
            Err(e) => Err(unreadable(&e)),
            Ok(_) if at == path => Err("cannot be read: it changes all the time".into()),
            Ok(meta) if !meta.is_dir() => Err(format!("cannot be read: {} is not a folder", at.display())),
            Ok(_) => Ok(()),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::testing::{BadFile, is_root};

    #[test]
    fn only_a_file_that_is_not_there_is_none() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        assert_eq!(read_text(&at("none"), 9), Ok(None));
        assert_eq!(read_text(&at("no/folder/none"), 9), Ok(None));
        fs::write(at("file"), "text").unwrap();
        assert_eq!(read_text(&at("file"), 4), Ok(Some("text".into())));
        assert!(read_text(&at("file"), 3).unwrap_err().contains("larger"));
        symlink("file", at("link")).unwrap();
        assert_eq!(read_text(&at("link"), 9), Ok(Some("text".into())));
        assert!(read_text(&at("file/below"), 9).unwrap_err().contains("is not a folder"));
        symlink("gone", at("lost")).unwrap();
        let below = read_text(&at("lost/below"), 9).unwrap_err();
        assert!(below.contains("lost is a link that leads to nothing"), "{below}");
        fs::write(at("mark"), b"\xef\xbb\xbfdeny:").unwrap();
        assert_eq!(read_text(&at("mark"), 9), Ok(Some("deny:".into())), "the mark of UTF-8 is left out");
        assert!(read_text(Path::new("/dev/zero"), 9).unwrap_err().contains("device"));
        let closed = at("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let said = read_text(&closed.join("none"), 9);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(is_root() || said.unwrap_err().contains("ermission"), "whether it is there is not known");
    }

    #[test]
    fn each_kind_of_bad_file_is_an_error_that_says_why() {
        let tmp = tempfile::tempdir().unwrap();
        for bad in BadFile::all() {
            let path = tmp.path().join(bad.name);
            if !bad.make(&path, "deny:\n  - x\n") {
                continue;
            }
            let said = read_text(&path, 1 << 20);
            assert_eq!(
                said.as_ref().err().map(|e| e.contains(bad.said)),
                Some(true),
                "{}: {said:?}",
                bad.name
            );
        }
    }
}
