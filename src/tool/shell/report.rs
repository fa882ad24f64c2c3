//! What the shell tells after each command: `r|x STATUS\nFOLDER\0EXPORTS\0`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The shell ends after it.
    pub last: bool,
    pub status: i32,
    pub folder: PathBuf,
    /// Code that sets the exported variables again, in the shell's own words.
    pub exports: Vec<u8>,
}

impl Report {
    /// Takes the first whole report out of `pending`. Of several the last counts: the earlier one is of a
    /// shell that ended right after it.
    pub(crate) fn take(pending: &mut Vec<u8>) -> Option<Self> {
        let mut found = None;
        while let Some((report, len)) = Self::parse(pending) {
            pending.drain(..len);
            found = Some(report);
        }
        found
    }

    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let first = bytes.iter().position(|b| *b == 0)?;
        let second = first + 1 + bytes[first + 1..].iter().position(|b| *b == 0)?;
        let line_end = bytes[..first].iter().position(|b| *b == b'\n')?;
        let (kind, status) = std::str::from_utf8(&bytes[..line_end]).ok()?.split_once(' ')?;
        let report = Self {
            last: kind == "x",
            status: status.trim().parse().ok()?,
            folder: PathBuf::from(OsString::from_vec(bytes[line_end + 1..first].to_vec())),
            exports: bytes[first + 1..second].to_vec(),
        };
        Some((report, second + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_in_pieces_and_hold_any_folder() {
        let whole = b"r 3\n/a b\n\xff\0declare -x A=\"1\n2\"\n\0";
        for cut in 0..whole.len() {
            let mut pending = whole[..cut].to_vec();
            assert_eq!(Report::take(&mut pending), None, "cut at {cut}");
            pending.extend_from_slice(&whole[cut..]);
            let report = Report::take(&mut pending).unwrap();
            assert_eq!((report.last, report.status), (false, 3));
            assert_eq!(report.folder.as_os_str().as_encoded_bytes(), b"/a b\n\xff");
            assert_eq!(report.exports, b"declare -x A=\"1\n2\"\n");
            assert!(pending.is_empty());
        }
    }
}
