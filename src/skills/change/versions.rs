//! Every state of a skill that a change replaced. A version is a folder that is complete or not there.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiller_protocol::Time;

use super::plan::{WholeChange, existing};
use super::{Editor, Plan, Scope};
use crate::files::read_inside;

/// What a version says of itself.
const ABOUT: &str = "version.json";
/// The skill's files in it.
const FILES: &str = "files";
/// Versions of a skill that are listed at most.
const MOST: usize = 500;

/// A state of a skill that a change replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its number, from 1.
    #[serde(skip)]
    pub number: u64,
    /// When it was replaced, in milliseconds since 1970.
    pub time: u64,
    /// What replaced it: create, edit, patch, delete, restore.
    pub action: String,
    /// Who replaced it.
    pub by: String,
    /// The skill existed.
    pub existed: bool,
}

impl Editor {
    /// The versions of a skill, the newest first. Blocks.
    pub fn versions(&self, scope: Scope, name: &str) -> Vec<Version> {
        let Ok(folder) = self.version_folder(scope, name) else { return Vec::new() };
        let mut all: Vec<Version> = numbers(&folder)
            .into_iter()
            .filter_map(|number| {
                let bytes = read_inside(&folder.join(number.to_string()), ABOUT).ok()?;
                let version: Version = serde_json::from_slice(&bytes).ok()?;
                Some(Version { number, ..version })
            })
            .collect();
        all.sort_by_key(|v| std::cmp::Reverse(v.number));
        all.truncate(MOST);
        all
    }

    /// Names of the skills of a scope that have versions. Blocks.
    pub fn changed_skills(&self, scope: Scope) -> Vec<String> {
        let Ok(folder) = self.scope_folder(scope) else { return Vec::new() };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The change that would restore a version. Writes nothing. Blocks.
    ///
    /// # Errors
    /// A sentence without a full stop: there is no such version, or nothing differs.
    pub fn plan_restore(&self, scope: Scope, name: &str, number: u64) -> Result<Plan, String> {
        let version = self.versions(scope, name).into_iter().find(|v| v.number == number);
        let version = version
            .ok_or_else(|| format!("the skill `{}` has no version {number}", name.escape_default()))?;
        let folder = self.place(scope)?.join(name);
        existing(&folder)?;
        let kept = self.version_folder(scope, name)?.join(number.to_string()).join(FILES);
        let (whole, files) = WholeChange::of(&folder, version.existed.then_some(kept))?;
        if files.is_empty() && whole.unshown.is_empty() {
            return Err(format!("the skill `{name}` is already as in version {number}"));
        }
        Ok(Plan { scope, name: name.to_owned(), action: "restore", folder, files, whole: Some(whole) })
    }

    /// Keeps the present state of a skill as a version.
    pub(super) fn keep(&self, plan: &Plan, by: &str) -> Result<(), String> {
        let folder = self.version_folder(plan.scope, &plan.name)?;
        let wrong = |e: std::io::Error| format!("the old version cannot be kept: {e}");
        fs::create_dir_all(&folder).map_err(wrong)?;
        let number = numbers(&folder).into_iter().max().unwrap_or(0) + 1;
        let beside = folder.join(super::leftovers::version());
        self.step();
        let existed = existing(&plan.folder)?;
        fs::create_dir_all(beside.join(FILES)).map_err(wrong)?;
        if existed {
            super::apply::copy(&plan.folder, &beside.join(FILES)).map_err(wrong)?;
        }
        let time: Time = self.0.clock.now();
        let version = Version {
            number,
            time: u64::try_from(time.millis()).unwrap_or_default(),
            action: plan.action.to_owned(),
            by: by.to_owned(),
            existed,
        };
        let about = serde_json::to_vec_pretty(&version).map_err(|e| e.to_string())?;
        self.step();
        super::apply::write_new(&beside.join(ABOUT), &about).map_err(wrong)?;
        self.step();
        fs::rename(&beside, folder.join(number.to_string())).map_err(wrong)?;
        super::apply::sync(&folder).map_err(wrong)
    }

    /// Where the versions of a scope's skills are: the project's by the hash of its path.
    pub(super) fn scope_folder(&self, scope: Scope) -> Result<PathBuf, String> {
        let name = match scope {
            Scope::User => "user".to_owned(),
            Scope::Project => {
                let hash = blake3::hash(self.place(scope)?.as_os_str().as_encoded_bytes()).to_hex();
                format!("project-{}", hash.get(..16).unwrap_or_default())
            }
        };
        Ok(self.0.versions.join(name))
    }

    fn version_folder(&self, scope: Scope, name: &str) -> Result<PathBuf, String> {
        if !crate::skill::is_name(name) {
            return Err(format!("`{}` is not a skill name", name.escape_default()));
        }
        Ok(self.scope_folder(scope)?.join(name))
    }
}

/// The numbers of the versions in a folder.
fn numbers(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}
