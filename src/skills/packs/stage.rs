//! The files of a source, brought into the layout of a pack: `skills/NAME/SKILL.md`.

use std::path::{Path, PathBuf};

use tiller_fs::archive::{self, Limits};

use super::contents::pin;
use super::lock::PinnedFile;
use crate::skill::{FILE, is_name};

/// What a pack may have at most.
pub const LIMITS: Limits = Limits { entries: 2000, bytes: 20 << 20, depth: 10 };
/// The folder of the skills in a pack.
pub(super) const SKILLS: &str = "skills";

/// A pack that is not installed yet.
#[derive(Debug)]
pub struct Staged {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name.
    pub name: String,
    /// Its files; others are not installed.
    pub files: Vec<PinnedFile>,
}

/// Copies the pack in `from` into the empty folder `into`. `name`: its name where it is not a single skill.
///
/// A folder with a `SKILL.md` is one skill. Otherwise the skills are in `skills/`, or directly in the folder.
///
/// # Errors
/// A sentence: there is no skill, or a file cannot be taken.
pub fn stage(from: &Path, into: &Path, name: &str) -> Result<Staged, String> {
    let fail = |e: std::io::Error| format!("the pack cannot be stored: {e}");
    let has_skills = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|e| is_regular(&e.path().join(FILE))).count() > 0
    };
    if is_regular(&from.join(FILE)) {
        // Its folder must be called as the skill is: an archive or a repository may have another name.
        let name = named(&from.join(FILE)).unwrap_or_else(|| name.to_owned());
        let skill = into.join(SKILLS).join(&name);
        std::fs::create_dir_all(&skill).map_err(fail)?;
        archive::copy(from, &skill, LIMITS)?;
        return pinned(into, &name);
    }
    if has_skills(&from.join(SKILLS)) {
        archive::copy(from, into, LIMITS)?;
    } else if has_skills(from) {
        let skills = into.join(SKILLS);
        std::fs::create_dir_all(&skills).map_err(fail)?;
        archive::copy(from, &skills, LIMITS)?;
    } else {
        return Err(format!("there is no skill in it: neither {FILE} nor skills/NAME/{FILE}"));
    }
    pinned(into, name)
}

fn pinned(folder: &Path, name: &str) -> Result<Staged, String> {
    Ok(Staged { folder: folder.to_owned(), name: name.to_owned(), files: pin(folder)? })
}

fn is_regular(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// The name that a `SKILL.md` gives.
fn named(file: &Path) -> Option<String> {
    let bytes = tiller_config::agents::read_file(file).ok()?;
    let parts = tiller_config::agents::front::split(file, &bytes).ok()?;
    let (_, value) = parts.pairs.iter().find(|(key, _)| key.value == "name")?;
    match &value.value {
        tiller_config::agents::front::Value::Text(name) => {
            Some(name.trim().to_owned()).filter(|name| is_name(name))
        }
        _ => None,
    }
}
