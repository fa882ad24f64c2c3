//! What a request would change.

use std::fs;
use std::path::{Component, Path, PathBuf};

use similar::TextDiff;
use tiller_config::agents::Origin;

use super::tree::Tree;
use super::{Editor, Scope};
use crate::files::{ReadFailure, SkillFile, SkillFiles, read_inside};
use crate::load::Skills;
use crate::read;
use crate::skill::{FILE, NAME, Skill, is_name};

/// Bytes of a file that is written at most.
const LARGEST: usize = 256 * 1024;
/// Folders below each other in a skill at most.
const DEPTH: usize = 6;
/// Bytes of a difference that are shown at most.
const DIFF: usize = 256 * 1024;

/// A change that is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub scope: Scope,
    pub name: String,
    /// A file other than `SKILL.md`.
    pub file: Option<String>,
    pub act: Act,
}

/// What to do with a skill or one of its files.
#[derive(Clone, Debug)]
pub enum Act {
    /// A new skill, or a new file of one.
    Create(String),
    /// The whole content of a file.
    Edit(String),
    /// One place of a file.
    Patch {
        old: String,
        new: String,
    },
    Delete,
}

/// A change of a skill that was checked and not made yet.
#[derive(Clone, Debug)]
pub struct Plan {
    pub scope: Scope,
    pub name: String,
    /// What it does, as one word: create, edit, patch, delete, restore.
    pub action: &'static str,
    /// The skill's folder.
    pub(super) folder: PathBuf,
    /// The files that change. Of a whole folder those whose text can be shown.
    pub(super) files: Vec<FileChange>,
    /// The folder as a whole is replaced or removed.
    pub(super) whole: Option<WholeChange>,
}

/// A change of a whole folder.
#[derive(Clone, Debug)]
pub(super) struct WholeChange {
    /// The folder that the change was planned for.
    pub(super) before: Tree,
    /// The folder that it becomes a copy of, and what is in it; `None`: the skill is removed.
    pub(super) after: Option<(PathBuf, Tree)>,
    /// A line for each difference that cannot be shown as text.
    pub(super) unshown: Vec<String>,
}

/// A file that changes.
#[derive(Clone, Debug)]
pub(super) struct FileChange {
    /// Below the skill's folder.
    pub(super) path: String,
    pub(super) old: Option<Vec<u8>>,
    pub(super) new: Option<Vec<u8>>,
}

impl WholeChange {
    /// The change of a folder into a copy of another one, or into none; and the files whose text can be shown.
    ///
    /// # Errors
    /// A sentence without a full stop: a folder cannot be read, or has more than a version can keep.
    pub(super) fn of(folder: &Path, after: Option<PathBuf>) -> Result<(Self, Vec<FileChange>), String> {
        let read = |folder: &Path| Tree::read(folder).map_err(|e| format!("the skill cannot be read: {e}"));
        let (before, then) = (read(folder)?, after.as_deref().map(read).transpose()?.unwrap_or_default());
        let other = after.as_deref().unwrap_or(folder);
        let (files, unshown) = before.changes(folder, &then, other);
        Ok((Self { before, after: after.map(|folder| (folder, then)), unshown }, files))
    }
}

impl Plan {
    /// The exact difference (unified).
    pub fn diff(&self) -> String {
        let mut out = String::new();
        // First, since what is too long is cut at the end.
        let unshown = self.whole.iter().flat_map(|whole| &whole.unshown);
        let lines: Vec<String> = unshown.map(|line| format!("  {}\n", line.escape_debug())).collect();
        if !lines.is_empty() {
            out = format!("Changes that are not shown as text:\n{}\n", lines.concat());
        }
        for change in &self.files {
            let name = format!("skills/{}/{}", self.name, change.path);
            let side = |prefix: &str, content: &Option<Vec<u8>>| match content {
                Some(_) => format!("{prefix}/{name}"),
                None => "/dev/null".to_owned(),
            };
            let (before, after) = (side("a", &change.old), side("b", &change.new));
            let text = |content: &Option<Vec<u8>>| {
                content.as_ref().map(|b| String::from_utf8_lossy(b).into_owned()).unwrap_or_default()
            };
            let (old, new) = (text(&change.old), text(&change.new));
            let diff = TextDiff::from_lines(&old, &new);
            out.push_str(&diff.unified_diff().context_radius(3).header(&before, &after).to_string());
            if out.len() > DIFF {
                out.truncate(out.floor_char_boundary(DIFF));
                out.push_str("\n[... the difference is too long to be shown ...]\n");
                break;
            }
        }
        out
    }

    /// Whether anything changes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.whole.is_none()
    }
}

impl Editor {
    /// The file that a request names; `None`: its place cannot be written.
    pub(crate) fn file(&self, request: &Request) -> Option<PathBuf> {
        let file = request.file.as_deref().unwrap_or(FILE);
        Some(self.place(request.scope).ok()?.join(&request.name).join(file))
    }

    /// What a request would change. Writes nothing. Blocks.
    ///
    /// # Errors
    /// A sentence without a full stop, when it is not possible or not allowed.
    pub fn plan(&self, request: &Request, skills: &Skills) -> Result<Plan, String> {
        let Request { scope, name, file, act } = request;
        if !is_name(name) {
            let shown = name.escape_default();
            return Err(format!(
                "`{shown}` is not a skill name: use lower-case letters, digits and -, at most {NAME}"
            ));
        }
        let folder = self.place(*scope)?.join(name);
        let exists = existing(&folder)?;
        let path = file.as_deref().unwrap_or(FILE);
        let path = path.strip_prefix("./").unwrap_or(path);
        check_path(path)?;
        let new_skill = matches!(act, Act::Create(_)) && path == FILE;
        if !exists && !new_skill {
            return Err(self.missing(*scope, name, skills));
        }
        // What has no such file is no skill, whatever it is.
        if exists && !new_skill && matches!(read_inside(&folder, FILE), Err(ReadFailure::Missing)) {
            return Err(self.missing(*scope, name, skills));
        }
        let old = match read_inside(&folder, path) {
            Ok(bytes) => Some(bytes),
            Err(ReadFailure::Missing) => None,
            Err(ReadFailure::Refused(why)) => return Err(format!("`{path}` {why}")),
        };
        let missing = || format!("the skill `{name}` has no file `{path}`");
        let new = match act {
            Act::Create(_) if old.is_some() => {
                return Err(format!("`{path}` of the skill `{name}` exists already: use edit or patch"));
            }
            Act::Edit(_) if old.is_none() && path == FILE => return Err(missing()),
            Act::Create(content) | Act::Edit(content) => Some(content.clone()),
            Act::Patch { old: from, new: to } => {
                let bytes = old.as_ref().ok_or_else(missing)?;
                let text = std::str::from_utf8(bytes).map_err(|_| format!("`{path}` is not text"))?;
                Some(patched(text, from, to)?)
            }
            Act::Delete => None,
        };
        let action = match act {
            Act::Create(_) => "create",
            Act::Edit(_) => "edit",
            Act::Patch { .. } => "patch",
            Act::Delete => "delete",
        };
        let mut files = Vec::new();
        match new {
            Some(content) => {
                self.check_content(&folder, path, &content, skills)?;
                files.push(FileChange { path: path.to_owned(), old, new: Some(content.into_bytes()) });
            }
            None if path == FILE => {
                let (whole, files) = WholeChange::of(&folder, None)?;
                let name = name.clone();
                return Ok(Plan { scope: *scope, name, action, folder, files, whole: Some(whole) });
            }
            None => files.push(FileChange {
                path: path.to_owned(),
                old: Some(old.ok_or_else(missing)?),
                new: None,
            }),
        }
        files.retain(|f| f.old != f.new);
        if files.is_empty() {
            return Err("this changes nothing".into());
        }
        Ok(Plan { scope: *scope, name: name.clone(), action, folder, files, whole: None })
    }

    fn missing(&self, scope: Scope, name: &str, skills: &Skills) -> String {
        match skills.get(name).map(|s| s.from) {
            Some(Origin::BuiltIn) => format!(
                "the skill `{name}` is built in and cannot be changed; a new one of the same name takes its place"
            ),
            Some(Origin::Plugin) => {
                let pack = skills.get(name).and_then(|s| s.pack.as_deref());
                let owner = pack.map_or_else(|| "a plugin".to_owned(), |pack| format!("the pack {pack}"));
                format!(
                    "the skill `{name}` belongs to {owner} and cannot be changed; a new one of the same name takes its place"
                )
            }
            Some(Origin::User | Origin::Project) => {
                format!("the skill `{name}` is not in the {} scope", scope.word())
            }
            None => skills.no_such(name),
        }
    }

    /// Copies a skill that is built in, or belongs to a pack or a plugin, to the user's own, where it takes its place. `by`: who
    /// does it, for the list of versions. Returns a sentence without a full stop. Blocks.
    ///
    /// # Errors
    /// A sentence without a full stop: it is an own one, there is one of its name, or it cannot be read or written.
    pub fn copy_to_user(&self, skill: &Skill, by: &str) -> Result<String, String> {
        let name = &skill.name;
        if !matches!(skill.from, Origin::BuiltIn | Origin::Plugin) {
            return Err(format!("the skill `{name}` is in {} and can be edited there", skill.file.display()));
        }
        let folder = self.place(Scope::User)?.join(name);
        if existing(&folder)? {
            return Err(format!("there is a skill of yours in {}: edit that one", folder.display()));
        }
        let (whole, files) = match skill.files.folder() {
            Some(from) => {
                let (whole, files) = WholeChange::of(&folder, Some(from.to_owned()))?;
                let pinned = match &skill.files {
                    SkillFiles::Pinned { hashes, .. } => Some(hashes),
                    _ => None,
                };
                let copied = pinned.zip(whole.after.as_ref());
                if let Some(path) = copied.and_then(|(hashes, (_, tree))| tree.not_agreed(hashes)) {
                    return Err(format!(
                        "`{}` of the skill `{name}` changed since you agreed to it",
                        path.escape_debug()
                    ));
                }
                (Some(whole), files)
            }
            None => {
                let file = |file: SkillFile| -> Result<FileChange, String> {
                    let new = Some(skill.files.read(&file.path)?);
                    Ok(FileChange { path: file.path, old: None, new })
                };
                (None, skill.files.list().into_iter().map(file).collect::<Result<Vec<_>, String>>()?)
            }
        };
        let plan = Plan {
            scope: Scope::User,
            name: name.clone(),
            action: "create",
            folder: folder.clone(),
            files,
            whole,
        };
        self.apply(&plan, by)?;
        Ok(format!("The skill {name} is copied to {}, and the copy is used from now on", folder.display()))
    }

    fn check_content(&self, folder: &Path, path: &str, content: &str, skills: &Skills) -> Result<(), String> {
        if content.len() > LARGEST {
            return Err(format!("`{path}` is larger than {} KiB", LARGEST / 1024));
        }
        if let Some(why) = (self.0.screen)(content) {
            return Err(format!("the text is refused: {why}"));
        }
        if path != FILE {
            return Ok(());
        }
        let file = folder.join(FILE);
        if let Some(problem) = crate::validate_bytes(&file, content.as_bytes()).into_iter().next() {
            let line = problem.at.map_or(1, |(line, _)| line);
            let hint = problem.hint.map(|h| format!(" ({h})")).unwrap_or_default();
            return Err(format!("{FILE}:{line}: {}{hint}", problem.message));
        }
        let files = SkillFiles::Folder(folder.to_owned());
        let (skill, _) =
            read::skill(&file, Origin::User, content.as_bytes(), files).map_err(|p| p.message)?;
        skills.check_with(skill)
    }
}

/// Whether a skill's folder is there. A link is none that may be changed.
pub(super) fn existing(folder: &Path) -> Result<bool, String> {
    match fs::symlink_metadata(folder) {
        Ok(meta) if meta.is_dir() => Ok(true),
        Ok(meta) if meta.file_type().is_symlink() => {
            Err(format!("{} is a link: change the skill where it leads", folder.display()))
        }
        Ok(_) => Err(format!("{} is not a folder", folder.display())),
        Err(_) => Ok(false),
    }
}

/// A path of a file in a skill's folder.
fn check_path(path: &str) -> Result<(), String> {
    let plain = Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
    let shown = path.escape_default();
    if path.is_empty() || !plain || path.contains(['\0', '\\', '\n']) || path.ends_with('/') {
        return Err(format!("`{shown}` is not a path below the skill's folder"));
    }
    if Path::new(path).components().count() > DEPTH {
        return Err(format!("`{shown}` is too deep: at most {DEPTH} parts"));
    }
    if path.eq_ignore_ascii_case(FILE) && path != FILE {
        return Err(format!("`{shown}` is too like {FILE}"));
    }
    Ok(())
}

/// The text with its one place `from` replaced.
fn patched(text: &str, from: &str, to: &str) -> Result<String, String> {
    match text.matches(from).count() {
        _ if from.is_empty() => Err("`old` is empty".into()),
        0 => Err("`old` is not in the file".into()),
        1 => Ok(text.replacen(from, to, 1)),
        n => Err(format!("`old` is in the file {n} times: give more of the text around it")),
    }
}
