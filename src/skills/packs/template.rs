//! A new skill, to be filled in.

use std::path::Path;

use tiller_config::agents::Origin;

use crate::files::SkillFiles;
use crate::read;
use crate::skill::{FILE, Skill, is_name};

/// The description of a new skill.
pub(super) const DESCRIPTION: &str =
    "What it does, and when an agent should use it. Agents choose skills by this line alone.";

/// Whether a skill still has the description of a new one, so that it is not offered to agents.
pub(crate) fn is_template(skill: &Skill) -> bool {
    skill.description == DESCRIPTION
}

/// Whether the skill in this folder still has the description of a new one. Blocks.
pub fn is_unfilled(folder: &Path) -> bool {
    let (path, files) = (folder.join(FILE), SkillFiles::Folder(folder.to_owned()));
    let Ok(bytes) = tiller_config::agents::read_file(&path) else { return false };
    read::skill(&path, Origin::User, &bytes, files).is_ok_and(|(skill, _)| is_template(&skill))
}

/// Makes the folder of a new skill, which is valid as it is, and is offered once its description is its own.
///
/// # Errors
/// A sentence: the name is not valid, or the folder exists or cannot be written.
pub fn new_skill(folder: &Path, name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(
            "a skill's name has lower-case letters, digits and single -, and at most 64 characters".into()
        );
    }
    let fail = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => format!("{} exists already", folder.display()),
        _ => format!("{} cannot be made: {e}", folder.display()),
    };
    if let Some(above) = folder.parent() {
        std::fs::create_dir_all(above).map_err(fail)?;
    }
    std::fs::create_dir(folder).map_err(fail)?;
    let text = format!(
        "---
name: {name}
description: {DESCRIPTION}
license: MIT
metadata:
  # Parameters, which stand as {{{{NAME}}}} in the text; one with = has a value where none is given.
  # params: target, branch=main
  # Skills that are loaded with this one.
  # requires: writing-tests
  version: \"1\"
---
# {title}

## When to use it
Say which tasks this is for, and which not.

## Steps
1. Say exactly what to do, with the commands.
2. Say what to do when that fails.

## Done when
Say how to know that it worked.
",
        title = title(name)
    );
    std::fs::write(folder.join(FILE), text).map_err(fail)
}

/// `code-review` as `Code review`.
fn title(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
