//! Kinds of files that cannot be read, for the tests of the rooms that read files which restrict.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a helper of tests")]

pub mod swap;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// A kind of file that cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct BadFile {
    pub name: &'static str,
    /// A part of the reason that is said.
    pub said: &'static str,
    make: fn(&Path, &str),
}

impl BadFile {
    /// All kinds.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// Makes it at `path`, instead of what is there: a good file would have `text`. False: it cannot be made here, which is
    /// printed.
    pub fn make(&self, path: &Path, text: &str) -> bool {
        if self.name == "closed" && is_root() {
            eprintln!("skipped: root may read every file");
            return false;
        }
        remove(path);
        (self.make)(path, text);
        true
    }
}

/// Removes whatever is at `path`.
pub fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
        fs::remove_dir_all(path).unwrap();
    } else {
        let _ = fs::remove_file(path);
    }
}

/// True when permissions of files do not count.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
}

const ALL: &[BadFile] = &[
    BadFile {
        name: "latin-1",
        said: "not UTF-8",
        make: |path, text| fs::write(path, [b"# gr\xfc\xdfe\n", text.as_bytes()].concat()).unwrap(),
    },
    BadFile {
        name: "utf-16-le",
        said: "UTF-16",
        make: |path, text| fs::write(path, utf16(text, u16::to_le_bytes)).unwrap(),
    },
    BadFile {
        name: "utf-16-be",
        said: "UTF-16",
        make: |path, text| fs::write(path, utf16(text, u16::to_be_bytes)).unwrap(),
    },
    BadFile {
        name: "utf-16-without-mark",
        said: "NUL",
        make: |path, text| fs::write(path, &utf16(text, u16::to_le_bytes)[2..]).unwrap(),
    },
    BadFile { name: "folder", said: "folder", make: |path, _| fs::create_dir(path).unwrap() },
    BadFile {
        name: "loop",
        said: "leads to itself",
        make: |path, _| symlink(path.file_name().unwrap(), path).unwrap(),
    },
    BadFile {
        name: "dangling",
        said: "leads to nothing",
        make: |path, _| symlink("not-here", path).unwrap(),
    },
    BadFile {
        name: "pipe",
        said: "pipe",
        make: |path, _| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success()),
    },
    BadFile { name: "device", said: "device", make: |path, _| symlink("/dev/zero", path).unwrap() },
    BadFile {
        name: "large",
        said: "larger",
        make: |path, text| {
            let filler = format!("# {}\n", "x".repeat(97)).repeat(12_000);
            fs::write(path, format!("{filler}{text}")).unwrap();
        },
    },
    BadFile {
        name: "closed",
        said: "ermission denied",
        make: |path, text| {
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        },
    },
];
