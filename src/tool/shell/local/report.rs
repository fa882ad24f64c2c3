//! The report of the shell after each line: `MARKER r|x STATUS NUMBER\nFOLDER\0EXPORTS\0NAMES\0`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use tiller_protocol::ShellState;

use crate::shell::local::steering::{self, EVERY};

/// A search path on which nothing is found.
const NOWHERE: &str = "/nonexistent";
/// Builtins that the shell's loop needs itself: when one is redefined, its reports are not trusted.
const LOOP: &[&str] = &[
    "command", "builtin", "eval", "read", "printf", "export", "declare", "alias", "enable", "set", "return",
    "[", ":",
];

/// One report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShellReport {
    /// The shell ends after it.
    pub last: bool,
    pub status: i32,
    /// Number of the line that it is about: the first that the shell was sent is 1.
    pub number: u64,
    pub folder: PathBuf,
    /// Code that sets the exported variables again, in the shell's own words.
    pub exports: Vec<u8>,
    /// Its functions, aliases, traps and options, as it lists them.
    pub names: Vec<u8>,
}

impl ShellReport {
    /// Takes all whole reports out of `pending` and returns the last about line `number`: one before it is of a shell that
    /// ended right after. Those about other lines are dropped: their
    /// commands were given up. What stands before a marker is of others.
    pub(crate) fn take(pending: &mut Vec<u8>, marker: &str, number: u64) -> Option<Self> {
        let mut found = None;
        while let Some((report, len)) = Self::parse(pending, marker.as_bytes()) {
            pending.drain(..len);
            found = Some(report).filter(|report| report.number == number).or(found);
        }
        found
    }

    fn parse(all: &[u8], marker: &[u8]) -> Option<(Self, usize)> {
        let begin = all.windows(marker.len() + 1).position(|w| w.ends_with(b" ") && w.starts_with(marker))?;
        let begin = begin + marker.len() + 1;
        let bytes = &all[begin..];
        let first = bytes.iter().position(|b| *b == 0)?;
        let second = first + 1 + bytes[first + 1..].iter().position(|b| *b == 0)?;
        let third = second + 1 + bytes[second + 1..].iter().position(|b| *b == 0)?;
        let line_end = bytes[..first].iter().position(|b| *b == b'\n')?;
        let (kind, rest) = std::str::from_utf8(&bytes[..line_end]).ok()?.split_once(' ')?;
        let (status, number) = rest.split_once(' ')?;
        let report = Self {
            last: kind == "x",
            status: status.trim().parse().ok()?,
            number: number.trim().parse().ok()?,
            folder: PathBuf::from(OsString::from_vec(bytes[line_end + 1..first].to_vec())),
            exports: bytes[first + 1..second].to_vec(),
            names: bytes[second + 1..third].to_vec(),
        };
        Some((report, begin + third + 1))
    }

    /// Which programs the shell runs by their names, when it began with the variables of `base`.
    pub(crate) fn state(&self, base: &[(String, String)]) -> ShellState {
        let Some(exports) = steering::exported(&String::from_utf8_lossy(&self.exports)) else {
            return ShellState {
                path: NOWHERE.into(),
                redefined: vec![EVERY.into()],
                ..ShellState::default()
            };
        };
        let path = exports.iter().find(|(name, _)| name == "PATH").and_then(|(_, value)| value.clone());
        let mut redefined = self.redefined();
        redefined.extend(steering::steered(&exports, base));
        redefined.sort();
        redefined.dedup();
        ShellState { path: path.unwrap_or_else(|| NOWHERE.into()), redefined, ..ShellState::default() }
    }

    /// Names of functions, aliases and what else changes the meaning of a command.
    fn redefined(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.names);
        let name = |line: &str| -> Option<String> {
            // `declare -f NAME` and `declare -fx NAME`; `alias NAME='...'`, in some shells without the word; `enable
            // -n NAME`; a trap or an option of the shell holds for each command.
            let name = if let Some(rest) = line.strip_prefix("declare -f") {
                rest.split_once(' ')?.1
            } else if let Some(name) = line.strip_prefix("enable -n ") {
                name
            } else if line.starts_with("trap -- ") || line.starts_with("shopt -s ") {
                EVERY
            } else {
                line.strip_prefix("alias ").unwrap_or(line).split_once('=')?.0
            };
            // The loop needs these itself.
            let name = if LOOP.contains(&name) { EVERY } else { name };
            (!name.starts_with("__tiller_") && !name.is_empty()).then(|| name.to_owned())
        };
        text.lines().filter_map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_in_pieces_and_hold_any_folder() {
        let whole = b"sh: no locale\0\nm r 3 7\n/a b\n\xff\0declare -x A=\"1\n2\"\n\0declare -f f\n\0";
        for cut in 0..whole.len() {
            let mut pending = whole[..cut].to_vec();
            assert_eq!(ShellReport::take(&mut pending, "m", 7), None, "cut at {cut}");
            pending.extend_from_slice(&whole[cut..]);
            let report = ShellReport::take(&mut pending, "m", 7).unwrap();
            assert_eq!((report.last, report.status), (false, 3));
            assert_eq!(report.folder.as_os_str().as_encoded_bytes(), b"/a b\n\xff");
            assert_eq!(report.exports, b"declare -x A=\"1\n2\"\n");
            assert_eq!(report.redefined(), ["f"]);
            assert!(pending.is_empty());
        }
    }

    #[test]
    fn a_report_about_another_line_is_refused() {
        let mut pending = b"m r 0 1\n/\0\0\0m r 3 2\n/\0\0\0m x 4 2\n/\0\0\0m r 5 3\n/\0\0\0".to_vec();
        let mut earlier = pending[..14].to_vec();
        assert_eq!(ShellReport::take(&mut earlier, "m", 2), None);
        let report = ShellReport::take(&mut pending, "m", 2).unwrap();
        assert_eq!((report.last, report.status, pending.len()), (true, 4, 0));
    }

    #[test]
    fn the_search_path_and_what_is_redefined_are_read_as_shells_write_them() {
        let state = |exports: &str, names: &str| {
            let report = ShellReport {
                last: false,
                status: 0,
                number: 1,
                folder: "/".into(),
                exports: exports.into(),
                names: names.into(),
            };
            report.state(&[("GIT_PAGER".into(), "cat".into())])
        };
        for (exports, want) in [
            ("declare -x HOME=\"/h\"\ndeclare -x PATH=\"/a b:/c\\$d\"\n", "/a b:/c$d"),
            ("export PATH='/a:/b'\n", "/a:/b"),
            ("declare -x PATH=$'/a\\n'\n", NOWHERE),
            ("declare -x MYPATH=\"/a\"\n", NOWHERE),
            ("declare -x A=\"\ndeclare -x PATH=\\\"/bin\\\"\n\"\ndeclare -x PATH=\"/x\"\n", "/x"),
        ] {
            assert_eq!(state(exports, "").path, want, "{exports}");
        }
        let names = "declare -f __tiller_rc\ndeclare -f ls\ndeclare -fx git\nalias wc='x\ny=1'\nll='ls -l'\nenable -n echo\ncd=CDPATH\n";
        assert_eq!(state("", names).redefined, ["cd", "echo", "git", "ll", "ls", "wc", "y"]);
        assert!(state("export GIT_PAGER='cat'\n", "").redefined.is_empty());
        assert_eq!(state("declare -x GIT_DIR=\"/x\"\n", "").redefined, ["git"]);
        for every in
            ["trap -- './x' DEBUG\n", "shopt -s dotglob\n", "declare -f command\n", "alias eval='x'\n"]
        {
            assert_eq!(state("", every).redefined, [EVERY], "{every}");
        }
        assert_eq!(state("odd", "").redefined, [EVERY]);
    }
}
