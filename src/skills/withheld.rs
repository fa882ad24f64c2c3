//! Skills, own commands and output styles that are there and not used: the user has not agreed to their files as they are.
//! They are listed for the person, with what to do. Models get nothing of them.

use std::path::{Path, PathBuf};

use tiller_config::agents::{Origin, ProjectFile};

use crate::extras::Extras;
use crate::skill::{Skill, source};

/// A pack, a plugin or files of the project that are not used until the user agrees to them.
#[derive(Clone, Debug)]
pub struct Withheld<'a> {
    /// The name of the pack; `None`: of a plugin or the project.
    pub pack: Option<String>,
    pub from: Origin,
    pub files: WithheldFiles<'a>,
    /// Why, as the end of a sentence that begins with "it is not used: ".
    pub why: String,
    /// What to do, without a full stop.
    pub remedy: String,
}

/// Where such files are.
#[derive(Clone, Debug)]
pub enum WithheldFiles<'a> {
    /// The folder of a pack or a plugin.
    Folder(PathBuf),
    /// Files of the project, by path.
    Project(Vec<ProjectFile<'a>>),
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithheldKind {
    /// A skill.
    Skill,
    /// An own command.
    Command,
    /// An output style.
    Style,
    /// A pack of which no file can be read.
    Pack,
}

/// One skill, own command or output style of a [`Withheld`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldItem {
    pub kind: WithheldKind,
    pub name: String,
    /// Its description, or why it cannot be read; may be empty.
    pub description: String,
    pub from: Origin,
    /// The name of its pack.
    pub pack: Option<String>,
    /// Relative to the project's folder where it is the project's.
    pub file: PathBuf,
    /// The text of a skill; may be empty.
    pub text: String,
    /// As [`Withheld::why`].
    pub why: String,
    /// As [`Withheld::remedy`].
    pub remedy: String,
}

impl WithheldItem {
    /// Whether it is a skill.
    pub fn is_skill(&self) -> bool {
        self.kind == WithheldKind::Skill
    }

    /// Where it is from, in words.
    pub fn source(&self) -> String {
        source(self.from, self.pack.as_deref())
    }

    /// Why it is not used and what to do, with its name before: `x is not used: ...`.
    pub fn why_not(&self) -> String {
        let of = match &self.pack {
            Some(pack) => format!(" of the pack {pack}"),
            None => String::new(),
        };
        format!("`{}`{of} is not used: {}; {}", self.name.escape_default(), self.why, self.remedy)
    }
}

impl Withheld<'_> {
    /// What is in it. `skills`: the files of its skills, and what they are or why they cannot be read.
    pub(crate) fn items(&self, skills: Vec<(PathBuf, Result<Skill, String>)>) -> Vec<WithheldItem> {
        let folder = |path: &Path| {
            path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
        };
        let mut all = Vec::new();
        for (path, skill) in skills {
            all.push(match skill {
                Ok(skill) => WithheldItem {
                    text: skill.body,
                    ..self.item(WithheldKind::Skill, skill.name, skill.description, path)
                },
                Err(why) => self.item(WithheldKind::Skill, folder(&path), why, path),
            });
        }
        let extras = Extras::of_withheld(self);
        let commands = extras.commands.values();
        all.extend(commands.map(|c| {
            self.item(WithheldKind::Command, c.name.clone(), c.description.clone(), c.file.clone())
        }));
        let styles = extras.styles.values();
        all.extend(
            styles.map(|s| {
                self.item(WithheldKind::Style, s.name.clone(), s.description.clone(), s.file.clone())
            }),
        );
        if let (true, Some(pack), WithheldFiles::Folder(folder)) = (all.is_empty(), &self.pack, &self.files) {
            let about = "None of its skills can be read".to_owned();
            all.push(self.item(WithheldKind::Pack, pack.clone(), about, folder.clone()));
        }
        all
    }

    fn item(&self, kind: WithheldKind, name: String, description: String, file: PathBuf) -> WithheldItem {
        WithheldItem {
            kind,
            name,
            description,
            from: self.from,
            pack: self.pack.clone(),
            file,
            text: String::new(),
            why: self.why.clone(),
            remedy: self.remedy.clone(),
        }
    }
}
