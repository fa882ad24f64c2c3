//! Files and folders that a change makes for a moment, and what a process that ended in between left of them.
//!
//! | name | what it is |
//! | --- | --- |
//! | `.SKILL.PID.new` beside the skills | the folder that a skill is about to become, or that it was and that is removed |
//! | `.SKILL.PID.old` beside the skills | the folder that a skill was, where folders cannot be exchanged in one step |
//! | `.PID.new` in a skill | a file that is about to take its place |
//! | `.new-PID` among versions | a version that is not complete |

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::skill::is_name;

/// The name of a new folder beside the skill's.
pub(super) fn beside(skill: &str) -> String {
    format!(".{skill}.{}.new", std::process::id())
}

/// The name of a new file in a skill.
pub(super) fn inside() -> String {
    format!(".{}.new", std::process::id())
}

/// The name of a new folder among versions.
pub(super) fn version() -> String {
    format!(".new-{}", std::process::id())
}

/// Whether a file in a skill's folder is one that a change makes for a moment.
pub(crate) fn is_inside(name: &OsStr) -> bool {
    let name = name.to_str().and_then(|name| name.strip_prefix('.'));
    name.and_then(|name| name.strip_suffix(".new")).is_some_and(is_pid)
}

/// Removes what earlier processes left, while the lock is held, and puts a skill back that one moved aside. `place`: the folder
/// of the skills. `skill`: the folder of the skill that changes. `versions`: the folder of the versions of the scope. What
/// cannot be removed is tried again at the next change.
pub(super) fn remove(place: &Path, skill: &Path, versions: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let Some((name, ending)) = file_name.to_str().and_then(of_skill) else { continue };
        let home = place.join(name);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if ending == "old" && is_folder && fs::symlink_metadata(&home).is_err() {
            drop(fs::rename(entry.path(), &home));
        } else {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
    remove_inside(skill, 0);
    for folder in fs::read_dir(versions).into_iter().flatten().flatten() {
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().and_then(|name| name.strip_prefix(".new-")).is_some_and(is_pid) {
                drop(fs::remove_dir_all(entry.path()));
            }
        }
    }
}

/// Folders below each other in which files are looked for.
const DEPTH: usize = 6;

fn remove_inside(folder: &Path, depth: usize) {
    // Links are not followed.
    if !fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < DEPTH {
            remove_inside(&entry.path(), depth + 1);
        } else if kind.is_file() && is_inside(&entry.file_name()) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// The skill of a folder that a change makes for a moment, and the ending of its name.
fn of_skill(name: &str) -> Option<(&str, &str)> {
    let (rest, ending) = name.strip_prefix('.')?.rsplit_once('.')?;
    let (skill, pid) = rest.rsplit_once('.')?;
    (matches!(ending, "new" | "old") && is_pid(pid) && is_name(skill)).then_some((skill, ending))
}

fn is_pid(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
