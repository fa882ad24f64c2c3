//! One skill.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tiller_config::agents::Origin;

use crate::files::SkillFiles;

/// Characters that change how text is read without being seen. What joins the parts of an emoji or of a script's letters is
/// none.
pub(crate) use tiller_text::clean::is_invisible as is_hidden;

/// What a skill's file is called.
pub(crate) const FILE: &str = "SKILL.md";
/// Characters of a name at most, in the public format.
pub(crate) const NAME: usize = 64;
/// Characters of a description at most, in the public format.
pub(crate) const DESCRIPTION: usize = 1024;
/// Characters of `compatibility` at most, in the public format.
pub(crate) const COMPATIBILITY: usize = 500;

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Lower-case letters, digits and `-`; what a task, a person or an agent's file calls it.
    pub name: String,
    /// One line: what it does, and when it is of use.
    pub description: String,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    /// The entries of `metadata` that are text or numbers.
    pub metadata: BTreeMap<String, String>,
    /// The only tools that are used while its task lasts, as written; empty: it does not narrow them. They never grant
    /// anything.
    pub allowed_tools: Vec<String>,
    /// Parameters of its body.
    pub params: Vec<Param>,
    /// Names of skills that are loaded with it.
    pub requires: Vec<String>,
    pub from: Origin,
    /// The name of the pack that it belongs to.
    pub pack: Option<String>,
    /// Its `SKILL.md`; relative to the project's folder where it is the project's, and a bare name where it is built in.
    pub file: PathBuf,
    /// All of its files.
    pub files: SkillFiles,
    /// The body of `SKILL.md`.
    pub body: String,
}

impl Skill {
    /// Where it is from, in words.
    pub fn source(&self) -> String {
        source(self.from, self.pack.as_deref())
    }
}

/// Where something is from, in words. `pack`: the name of the pack that it belongs to.
pub(crate) fn source(from: Origin, pack: Option<&str>) -> String {
    pack.map_or_else(|| from.word().to_owned(), |pack| format!("pack {pack}"))
}

/// A parameter of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// As it stands between `{{` and `}}`.
    pub name: String,
    /// Its value where none is given.
    pub default: Option<String>,
}

/// Whether a skill may be called this in the public format, and so may a pack: lower-case letters, digits and single `-`, at most
/// 64 of them.
pub fn is_name(text: &str) -> bool {
    text.len() <= NAME && is_plain(text) && !text.contains("--")
}

/// Lower-case letters, digits and `-`, neither first nor last a `-`.
pub(crate) fn is_plain(text: &str) -> bool {
    let plain = text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    plain && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}
