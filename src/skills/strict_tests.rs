//! The strict form against a table of cases, and against the public format's own checker where it is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::*;

/// One `SKILL.md` with the verdict of the format's own checker (version 0.1.1).
#[derive(Deserialize)]
struct Case {
    why: String,
    folder: String,
    text: String,
    valid: bool,
    /// Refused here only: other readers of the format trip over it.
    #[serde(default)]
    stricter: bool,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("fixtures/format.json")).unwrap()
}

fn put(root: &Path, case: &Case, at: usize) -> PathBuf {
    let folder = root.join(at.to_string()).join(&case.folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(FILE), &case.text).unwrap();
    folder
}

#[test]
fn the_verdict_is_that_of_the_public_format() {
    let tmp = tempfile::tempdir().unwrap();
    let all = cases();
    assert!(all.len() >= 50);
    for (at, case) in all.iter().enumerate() {
        let problems = validate(&put(tmp.path(), case, at));
        let wanted = case.valid && !case.stricter;
        assert_eq!(problems.is_empty(), wanted, "{}: {problems:?}", case.why);
        for problem in problems {
            assert!(problem.at.is_some() && problem.hint.is_some(), "{}: {problem:?}", case.why);
        }
    }
}

/// `TILLER_TEST_SKILLS_REF` names the program `agentskills` of the package `skills-ref` (`.ci/skills-ref` installs it).
#[test]
fn the_public_checker_agrees_on_all_cases_and_accepts_all_built_in_skills() {
    let Ok(program) = std::env::var("TILLER_TEST_SKILLS_REF") else {
        return println!("skipped: TILLER_TEST_SKILLS_REF names no checker of the public format");
    };
    let tmp = tempfile::tempdir().unwrap();
    let accepts = |folder: &Path| {
        let out = Command::new(&program).arg("validate").arg(folder).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    for (at, case) in cases().iter().enumerate() {
        let (valid, said) = accepts(&put(tmp.path(), case, at));
        assert_eq!(valid, case.valid, "{}: {said}", case.why);
    }
    let mut skills = Vec::new();
    for (name, files) in crate::built_in_folders() {
        let folder = tmp.path().join("built-in").join(name);
        for (path, bytes) in *files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        skills.push(folder);
    }
    crate::packs::new_skill(&tmp.path().join("a-new-one"), "a-new-one").unwrap();
    skills.push(tmp.path().join("a-new-one"));
    // Those of the packs of this repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten().filter(|e| e.path().is_dir()) {
            if entry.path().join(FILE).is_file() {
                skills.push(entry.path())
            } else {
                folders.push(entry.path())
            }
        }
    }
    for skill in skills {
        let (valid, said) = accepts(&skill);
        assert!(valid, "{}: {said}", skill.display());
        assert_eq!(validate(&skill), [], "{}", skill.display());
    }
}
