//! What a skill's folder requires and which parameters its text has, against what there is and what is declared: for authors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiller_config::Problem;
use tiller_config::agents::{Origin, front};
use tiller_protocol::nearest::nearest;

use crate::files::SkillFiles;
use crate::graph;
use crate::load::Skills;
use crate::read;
use crate::skill::{FILE, Skill};

/// Entries of a folder that are looked at.
const ENTRIES: usize = 2_000;

/// What is wrong with the requirements and parameters of one skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relations {
    /// With these the skill is not used.
    pub errors: Vec<Problem>,
    /// The skill is used nevertheless.
    pub warnings: Vec<Problem>,
}

/// Skills by name.
type Named = BTreeMap<String, Arc<Skill>>;

/// Checks the skills in these folders. They may require skills of `known`, and those in the folders beside them. Nothing is said
/// of a folder whose file is no skill. Blocks.
pub fn relations(folders: &[PathBuf], known: &Skills) -> Vec<Relations> {
    let mut known = known.with_unmet();
    let given = folders.iter().filter_map(|folder| skill_in(folder));
    known.extend(given.map(|(_, skill)| (skill.name.clone(), Arc::new(skill))));
    let mut around: BTreeMap<PathBuf, Named> = BTreeMap::new();
    let check = |folder: &PathBuf| {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let Some((bytes, skill)) = skill_in(&folder) else { return Relations::default() };
        let place = folder.parent().unwrap_or(&folder).to_path_buf();
        let all = around.entry(place).or_insert_with_key(|place| beside(place, known.clone()));
        all.insert(skill.name.clone(), Arc::new(skill.clone()));
        Relations {
            errors: requirements(all, &skill, &bytes).into_iter().collect(),
            warnings: undeclared(&skill, &bytes),
        }
    };
    folders.iter().map(check).collect()
}

/// The skill in a folder, and the bytes of its file.
fn skill_in(folder: &Path) -> Option<(Vec<u8>, Skill)> {
    let path = folder.join(FILE);
    let bytes = tiller_config::agents::read_file(&path).ok()?;
    let files = SkillFiles::Folder(folder.to_owned());
    let (skill, _) = read::skill(&path, Origin::User, &bytes, files).ok()?;
    Some((bytes, skill))
}

/// The skills in the folders below `place`, and `all` besides.
fn beside(place: &Path, mut all: Named) -> Named {
    for entry in std::fs::read_dir(place).into_iter().flatten().take(ENTRIES).flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if let Some((_, skill)) = skill_in(&entry.path()) {
            all.insert(skill.name.clone(), Arc::new(skill));
        }
    }
    all
}

/// Why the requirements of a skill cannot be met.
fn requirements(all: &Named, skill: &Skill, bytes: &[u8]) -> Option<Problem> {
    let graph::Unmet { why, remedy } = graph::closure(all, &skill.name).err()?;
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().position(|line| line.trim_start().starts_with("requires")).map_or(1, |at| at + 1);
    let gone = skill.requires.iter().find(|name| !all.contains_key(*name));
    let near = gone.and_then(|name| nearest(name, all.keys().map(String::as_str)));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`? Otherwise {remedy}"),
        None => remedy.to_owned(),
    };
    let key = "metadata.requires".to_owned();
    Some(Problem { at: Some((line, 1)), key, hint: Some(hint), ..Problem::file(&skill.file, why) })
}

/// Places for parameters that are not declared, each name once.
fn undeclared(skill: &Skill, bytes: &[u8]) -> Vec<Problem> {
    let Ok(parts) = front::split(&skill.file, bytes) else { return Vec::new() };
    let mut seen: Vec<String> = skill.params.iter().map(|param| param.name.clone()).collect();
    let mut problems = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    for (at, line) in text.lines().enumerate().skip(parts.body_line.saturating_sub(1)) {
        for name in places(line) {
            if seen.contains(&name) {
                continue;
            }
            let near = nearest(&name, skill.params.iter().map(|param| param.name.as_str()));
            let near =
                near.map(|near| format!("did you mean `{{{{{near}}}}}`? Otherwise ")).unwrap_or_default();
            let hint = format!(
                "{near}declare it below `metadata`, as `params: {name}` or `params: {name}=DEFAULT`; undeclared, it stays in the text as it is"
            );
            let message = format!("`{{{{{name}}}}}` stands for a parameter that is not declared");
            let problem = Problem::file(&skill.file, message);
            problems.push(Problem { at: Some((at + 1, 1)), hint: Some(hint), ..problem });
            seen.push(name);
        }
    }
    problems
}

/// The names between `{{` and `}}` in a line that could be those of parameters. Expressions of other programs, such as
/// `{{.Size}}` and `${{ secrets.key }}`, are none.
fn places(line: &str) -> Vec<String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let mut names = Vec::new();
    let mut rest = line;
    while let Some((head, tail)) = rest.split_once("{{") {
        let Some((name, behind)) = tail.split_once("}}") else { break };
        if !head.ends_with('$') && is_name(name.trim()) {
            names.push(name.trim().to_owned());
        }
        rest = behind;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sources;

    fn put(home: &Path, name: &str, metadata: &str, body: &str) -> PathBuf {
        let folder = home.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text =
            format!("---\nname: {name}\ndescription: x\nmetadata:\n  by: us\n{metadata}---\n\n{body}\n");
        std::fs::write(folder.join(FILE), text).unwrap();
        folder
    }

    fn said(problems: &[Problem]) -> Vec<(usize, String)> {
        problems
            .iter()
            .map(|p| (p.at.unwrap().0, format!("{} ({})", p.message, p.hint.clone().unwrap())))
            .collect()
    }

    #[test]
    fn cycles_and_missing_requirements_are_errors_with_their_line_and_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let folders = [
            put(home.path(), "a", "  requires: b\n", "Do it."),
            put(home.path(), "b", "  requires: a\n", "Do it."),
            put(home.path(), "lost", "  requires: code-reviews\n", "Do it."),
            put(home.path(), "fine", "  requires: code-review\n", "Do it."),
        ];
        let known = Skills::load(&Sources { built_in: true, ..Sources::default() }).0;
        let all = relations(&folders, &known);
        let errors: Vec<Vec<(usize, String)>> = all.iter().map(|one| said(&one.errors)).collect();
        assert!(errors[0][0].1.contains("in a cycle: a -> b -> a (remove one of them"), "{errors:?}");
        assert!(errors[1][0].1.contains("in a cycle: b -> a -> b"), "{errors:?}");
        assert_eq!(errors[2][0].0, 6, "{errors:?}");
        assert!(
            errors[2][0]
                .1
                .contains("not there or not in use: lost -> code-reviews (did you mean `code-review`?"),
            "{errors:?}"
        );
        assert_eq!(all[3], Relations::default());
        // One skill alone is compared with those beside it.
        assert_eq!(said(&relations(&folders[..1], &Skills::default())[0].errors), errors[0]);
    }

    #[test]
    fn undeclared_parameters_are_warned_of_and_expressions_of_other_programs_are_not() {
        let home = tempfile::tempdir().unwrap();
        let body = "Go to {{stage}}.\n`{{.Size}}` ${{ matrix.os }} ${{os}} {{ stag }} {{stag}} {{}} {{other";
        let folders = [put(home.path(), "a", "  params: stage\n", body)];
        let all = relations(&folders, &Skills::default());
        let warnings = said(&all[0].warnings);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].0, 10, "{warnings:?}");
        assert!(
            warnings[0].1.starts_with(
                "`{{stag}}` stands for a parameter that is not declared (did you mean `{{stage}}`?"
            ),
            "{warnings:?}"
        );
        assert!(all[0].errors.is_empty());
    }
}
