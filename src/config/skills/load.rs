//! The layers of skills: the person's, the project's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agents::front::{self, Parts, Value};
use crate::agents::{Origin, ProjectFile, read_file};
use crate::problem::Problem;
use tiller_protocol::nearest::nearest;

/// The person's folder, in the configuration folder.
const FOLDER: &str = "skills";
/// The project's, in its folder.
const PROJECT: &str = ".tiller/skills/";
/// What the file of a skill is called.
const FILE: &str = "SKILL.md";
/// Skills of one folder at most.
const MOST: usize = 500;
/// Characters of a name, and of a description, at most, as the open form has it.
const NAME: usize = 64;
const DESCRIPTION: usize = 1024;

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Small letters, digits and `-`; what a task or an agent's file calls it.
    pub name: String,
    /// One line: when it is of use.
    pub description: String,
    pub from: Origin,
    /// Its `SKILL.md`; relative to the project's folder where it is the project's.
    pub file: PathBuf,
    /// The body of the file.
    pub body: String,
}

/// Every skill, by name. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Skills(Arc<BTreeMap<String, Arc<Skill>>>);

impl Skills {
    /// Reads them. `config` is the person's configuration folder; `project` is empty until the folder is trusted.
    /// Every mistake is reported; what has one is left out, and nothing else is. Blocks.
    pub fn load(config: &Path, project: &[ProjectFile<'_>]) -> (Self, Vec<Problem>) {
        Self::load_with(config, &[], project)
    }

    /// As [`Skills::load`], with those of plugins, which are in these folders. The person's own replace them.
    pub fn load_with(
        config: &Path,
        plugins: &[PathBuf],
        project: &[ProjectFile<'_>],
    ) -> (Self, Vec<Problem>) {
        let mut all = BTreeMap::new();
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        let places = plugins.iter().map(|p| (Origin::Plugin, p.join(FOLDER)));
        for (from, place) in places.chain([(Origin::User, config.join(FOLDER))]) {
            let (found, more) = folder(&place, from);
            files.extend(found);
            problems.extend(more);
        }
        files.extend(project.iter().filter(|f| is_skill(f.path)).map(|f| {
            let content = f.bytes.map(<[u8]>::to_vec).ok_or_else(|| "it is a link, or too large".to_owned());
            (Origin::Project, PathBuf::from(f.path), content)
        }));
        for (from, path, content) in files {
            let content =
                content.map_err(|why| Problem::file(&path, format!("the file cannot be read: {why}")));
            match content.and_then(|bytes| skill(&path, from, &bytes)) {
                Ok(it) => {
                    all.insert(it.name.clone(), Arc::new(it));
                }
                Err(problem) => problems.push(problem),
            }
        }
        (Self(Arc::new(all)), problems)
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.0.get(name)
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.0.values()
    }

    /// What to say of the first of these names that is none.
    pub fn wrong<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Option<String> {
        names.into_iter().find(|n| self.get(n.as_ref()).is_none()).map(|n| self.no_such(n.as_ref()))
    }

    /// What to say of a name that is none: the nearest, or all.
    pub fn no_such(&self, name: &str) -> String {
        let names = self.0.keys().map(String::as_str);
        match nearest(name, names.clone()) {
            Some(near) => format!("there is no skill `{name}`; did you mean `{near}`?"),
            None if self.0.is_empty() => {
                format!("there is no skill `{name}`, and there are no others: put the knowledge into context")
            }
            None => {
                format!("there is no skill `{name}`; available: {}", names.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The file of a skill, directly in a folder of the project's skills.
fn is_skill(path: &str) -> bool {
    let inside = path.strip_prefix(PROJECT).and_then(|rest| rest.split_once('/'));
    inside.is_some_and(|(_, file)| file == FILE)
}

type SkillFile = (Origin, PathBuf, Result<Vec<u8>, String>);

/// The skills of the person's folder, by name. No folder is no mistake, nor is a folder in it without the file.
fn folder(path: &Path, from: Origin) -> (Vec<SkillFile>, Vec<Problem>) {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound) => return (Vec::new(), Vec::new()),
        Err(e) => return (Vec::new(), vec![Problem::file(path, format!("the folder cannot be read: {e}"))]),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path().join(FILE)).collect();
    paths.retain(|p| p.exists());
    paths.sort();
    let mut problems = Vec::new();
    if paths.len() > MOST {
        problems.push(Problem::file(path, format!("more than {MOST} skills; the rest is ignored")));
        paths.truncate(MOST);
    }
    (paths.into_iter().map(|p| (from, p.clone(), read_file(&p))).collect(), problems)
}

/// Reads one file.
fn skill(path: &Path, from: Origin, bytes: &[u8]) -> Result<Skill, Problem> {
    let Parts { pairs, above, body, body_line } = front::split(path, bytes)?;
    let at = |line, message: &str, hint: String| Problem {
        at: Some((line, 1)),
        hint: Some(hint),
        ..Problem::file(path, message)
    };
    let text = |wanted: &str| {
        let (key, value) = pairs.iter().find(|(k, _)| k.value == wanted)?;
        let line = above + front::number(key.referenced.line());
        Some(match &value.value {
            Value::Text(text) => Ok((line, text.split_whitespace().collect::<Vec<_>>().join(" "))),
            other => Err(at(
                line,
                &format!("`{wanted}` is {}, not text", other.kind()),
                "put it in quotes if it is text".into(),
            )),
        })
    };
    let folder = path.parent().and_then(Path::file_name).map(|f| f.to_string_lossy().into_owned());
    let folder = folder.unwrap_or_default();
    let (line, name) = text("name").transpose()?.unwrap_or_else(|| (1, folder.clone()));
    if !is_name(&name) {
        let hint = format!("use lower-case letters, digits and -, at most {NAME}");
        return Err(at(line, &format!("`{name}` is not a valid skill name"), hint));
    }
    if name != folder {
        let hint = "give the folder and the skill the same name".to_owned();
        return Err(at(line, &format!("the skill is named `{name}`, but its folder `{folder}`"), hint));
    }
    let Some((line, description)) = text("description").transpose()? else {
        let hint = "add `description: ...`: what it does and when to use it".to_owned();
        return Err(at(1, "the description is missing", hint));
    };
    if description.is_empty() || description.chars().count() > DESCRIPTION {
        let hint = format!("1 to {DESCRIPTION} characters");
        return Err(at(line, "the description is empty or too long", hint));
    }
    if body.is_empty() {
        return Err(at(
            body_line,
            "there is nothing below the front matter",
            "write the instructions".into(),
        ));
    }
    Ok(Skill { name, description, from, file: path.to_path_buf(), body })
}

/// May a skill be called this?
fn is_name(text: &str) -> bool {
    let plain = text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    plain && !text.is_empty() && text.len() <= NAME && !text.starts_with('-') && !text.ends_with('-')
}
