//! Commands whose programs only look, with words that are known only when they run: `x=$(git rev-parse HEAD)`, `cat "$f"`. In
//! the sandbox they read what is seen there, the workspace and the system, and write nothing, whatever these words come to.

use std::path::PathBuf;

use super::requirements::Requirement;
use super::{glob, inside, is_own_variable, part_requirements};
use crate::paths::Roots;
use tiller_shell::{Analysis, HOLE, Part, RedirectKind, Role, Word, is_cosmetic};

/// Stands for what is not known: a number, a name, a pattern.
const ANY: &str = "1";

/// The further conditions under which a command only looks, if its programs are all known to only look, and its words that are
/// known name nothing outside of the workspace. `None`: that is not so.
pub(super) fn requirements(
    analysis: &Analysis,
    roots: &Roots,
    folders: &[PathBuf],
) -> Option<Vec<Requirement>> {
    let plain = analysis.unclear_but_words().is_none()
        && !analysis.parts.is_empty()
        && !folders.is_empty()
        && folders.iter().all(|folder| roots.inside(folder))
        && !defines(&analysis.raw);
    let named = |word: &Word| {
        let known = known(word);
        inside(&known, roots, folders) || known.glob && glob::inside(&known, roots, folders)
    };
    let redirects = analysis.all_redirects().all(|redirect| {
        !redirect.writes() && (redirect.kind != RedirectKind::Read || named(&redirect.target))
    });
    if !plain || !redirects || !analysis.loops.iter().all(named) {
        return None;
    }
    let mut needs = vec![Requirement::Sandbox];
    for part in &analysis.parts {
        needs.extend(of_part(part, roots, folders)?);
    }
    Some(needs)
}

fn of_part(part: &Part, roots: &Roots, folders: &[PathBuf]) -> Option<Vec<Requirement>> {
    if part.role == Role::Assignment {
        let is_own =
            |(name, value): &(String, Word)| is_own_variable(name) && inside(&known(value), roots, folders);
        return part.env.iter().all(is_own).then(Vec::new);
    }
    // Other programs than find and xargs choose themselves what they run with names.
    let adds = |wrapper: &String| super::exec::ADDS_NAMES.contains(&wrapper.as_str()) && wrapper != "find";
    let is_known = part.argv.first().is_some_and(Word::plain) && !part.wrappers.iter().any(adds);
    let settings = part.env.iter().all(|(name, _)| is_cosmetic(name) || name == "IFS");
    if !is_known || !settings {
        return None;
    }
    // The folders that they change to are judged with those of the whole command.
    if matches!(part.program(), "cd" | "pushd" | "popd") && part.env.is_empty() {
        let is_folder = |w: &Word| !w.text.starts_with(['-', '+']) || w.plain() && w.text == "-";
        let fine = part.args().len() <= 1 && part.args().iter().all(is_folder);
        return fine.then(|| vec![Requirement::Program(part.program().to_owned())]);
    }
    let part = Part {
        argv: part.argv.iter().map(known).collect(),
        env: part.env.iter().map(|(name, value)| (name.clone(), known(value))).collect(),
        ..part.clone()
    };
    part_requirements(&part, roots, folders)
}

/// The word with something in the place of what is not known.
fn known(word: &Word) -> Word {
    if !word.dynamic && word.each.is_none() {
        return word.clone();
    }
    let text = word.text.replace(HOLE, ANY);
    Word { text, glob: word.glob, tilde: word.tilde, ..Word::default() }
}

/// True for a text that may give the name of a program another meaning.
fn defines(text: &str) -> bool {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    bare.contains("()") || words.any(|word| matches!(word, "function" | "coproc" | "alias"))
}
