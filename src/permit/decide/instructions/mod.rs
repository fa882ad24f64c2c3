//! Files that agents read as instructions: what is written there counts as the person's words in later sessions. Settings of what
//! git runs at each commit are treated alike.

pub(super) mod held;
pub(super) mod mcp;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tiller_protocol::protected_names::{COMMITS, by_consent};
use tiller_protocol::{AskReason, Risk};
use tiller_shell::{Analysis, Word};

use crate::decide::path::{pattern, short};
use crate::decide::{Need, Policy, Request, always};
use crate::paths::below::MOST;
use crate::rules::{PathUse, Rule, Subject};
use crate::targets::{named_in_code, names_in_code, written};

/// The reason for a question about a file of instructions.
pub const INSTRUCTS: &str = "it becomes instructions for every later session";
/// The same for settings of what git runs at each commit.
pub const COMMIT_RUNS: &str = "git runs the programs that it names at every later commit";

/// Returns true for the reason of such a question.
pub fn is_of_instructions(reason: &str) -> bool {
    matches!(reason, INSTRUCTS | COMMIT_RUNS)
}

/// The reason for the question about this file.
fn reason(path: &Path) -> &'static str {
    if COMMITS.contains(&folded_name(path).as_str()) { COMMIT_RUNS } else { INSTRUCTS }
}

/// The last part of a path, as the lists of names have it; empty: there is none.
fn folded_name(path: &Path) -> String {
    path.file_name().map(|name| crate::protected::fold(&name.to_string_lossy())).unwrap_or_default()
}

/// Paths that were found for each folder.
type Found = RefCell<HashMap<PathBuf, Rc<BTreeSet<PathBuf>>>>;

fn found(known: &Found, folder: &Path, find: impl FnOnce() -> BTreeSet<PathBuf>) -> Rc<BTreeSet<PathBuf>> {
    let there = known.borrow().get(folder).cloned();
    there.unwrap_or_else(|| {
        let paths = Rc::new(find());
        known.borrow_mut().insert(folder.to_owned(), paths.clone());
        paths
    })
}

/// The files of instructions as they are during one decision: each folder is listed and judged once.
pub(super) struct Instructions<'p> {
    policy: &'p Policy,
    root: OnceCell<PathBuf>,
    linked: Found,
    held: Found,
}

impl<'p> Instructions<'p> {
    pub(super) fn of(policy: &'p Policy) -> Self {
        Self { policy, root: OnceCell::new(), linked: Found::default(), held: Found::default() }
    }

    pub(super) fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// Whether the path is one of them: by its name, as its links lead, or because a link of such a name leads to it, in the
    /// workspace's own folder or beside it.
    pub(super) fn are_at(&self, path: &Path) -> bool {
        is_named(path) || self.are_really_at(&self.policy.roots.real(path))
    }

    /// The same for a path without links.
    fn are_really_at(&self, real: &Path) -> bool {
        let roots = &self.policy.roots;
        let root = self.root.get_or_init(|| roots.real(&roots.workspace));
        let linked = |folder: &Path| self.linked_in(folder).contains(real);
        is_named(real) || real.starts_with(root) && (linked(root) || real.parent().is_some_and(linked))
    }

    /// What links with such a name in this folder lead to.
    fn linked_in(&self, folder: &Path) -> Rc<BTreeSet<PathBuf>> {
        let roots = &self.policy.roots;
        found(&self.linked, folder, || {
            let all = roots.list(folder).into_iter().map(|(name, _)| folder.join(name));
            all.filter(|path| is_named(path)).map(|path| roots.real(&path)).collect()
        })
    }

    /// Those in this folder. Where it has more names than a search looks at, each of them may be there.
    fn held_in(&self, folder: &Path) -> Rc<BTreeSet<PathBuf>> {
        let roots = &self.policy.roots;
        found(&self.held, folder, || {
            let (names, real) = (roots.list(folder), roots.real(folder));
            let cut = names.len() > MOST;
            let all = names.into_iter().map(|(name, _)| (folder.join(&name), real.join(&name)));
            let there = all.filter(|(path, real)| match path.is_symlink() {
                true => self.are_at(path),
                false => self.are_really_at(real),
            });
            let perhaps = by_consent().filter(|_| cut).map(|name| folder.join(name));
            there.map(|(path, _)| path).chain(perhaps).collect()
        })
    }

    /// Those that a word may stand for. A pattern stands for what is there.
    fn meant_by(&self, word: &Word, folders: &[PathBuf]) -> Vec<PathBuf> {
        let roots = &self.policy.roots;
        let (folder, name) = word.text.rsplit_once(['/', tiller_shell::HOLE]).unwrap_or(("", &word.text));
        if word.glob {
            let Ok(glob) = globset::GlobBuilder::new(name).case_insensitive(true).build() else {
                return Vec::new();
            };
            let matcher = glob.compile_matcher();
            if word.dynamic || folder.contains(['*', '?', '[']) {
                // Its folder is not known: a wide pattern is most often about other files.
                let hit = by_consent().find(|file| !name.starts_with('*') && matcher.is_match(file));
                return hit.map(|file| roots.workspace.join(file)).into_iter().collect();
            }
            let folder = Word::fixed(if folder.is_empty() { "." } else { folder });
            let places = roots.candidates(&folder, folders).unwrap_or_default();
            let held = places.iter().map(|place| self.held_in(place));
            let hits = |path: &PathBuf| path.file_name().is_some_and(|name| matcher.is_match(name));
            return held
                .flat_map(|all| all.iter().filter(|p| hits(p)).cloned().collect::<Vec<_>>())
                .collect();
        }
        let paths = match word.dynamic {
            true => vec![roots.workspace.join(name)],
            false => roots.candidates(word, folders).unwrap_or_default(),
        };
        paths.into_iter().filter(|path| self.are_at(path)).collect()
    }
}

/// Returns true for the name of a file of instructions.
fn is_named(path: &Path) -> bool {
    let name = folded_name(path);
    by_consent().any(|file| file == name)
}

/// What a write of instructions needs: the user's yes to this very file, in every mode. No mode gives it, and of the rules
/// one that names the file.
pub(super) fn agreed(policy: &Policy, request: &Request<'_>, path: &Path, need: Need) -> Need {
    match (rule_for(policy, request, path), need) {
        (Some(rule), Need::Ok(_) | Need::Ask { rule: AskReason::NoRule, .. }) => Need::Ok(rule.words()),
        (Some(_), need) => need,
        (None, need) => beside(need, || question(policy, &[path.to_owned()])),
    }
}

/// What a call needs that may write instructions: beside `need` the user's yes to these very files, in every mode. What allows
/// the call does not agree to them, and what asks about it for another reason names them too. `question`: [`question`].
pub(super) fn beside(need: Need, question: impl FnOnce() -> Option<Need>) -> Need {
    match need {
        Need::Ok(_) => question().unwrap_or(need),
        Need::Ask { rule, risk, mut effects, always } => match question() {
            Some(Need::Ask { rule: why, risk: high, effects: more, always: files }) => {
                effects.extend(more);
                let risk = risk.max(high);
                match rule {
                    AskReason::NoRule => Need::Ask { rule: why, risk, effects, always: files },
                    // One rule cannot answer several questions.
                    rule => Need::Ask { rule, risk, effects, always: None },
                }
            }
            _ => Need::Ask { rule, risk, effects, always },
        },
        other => other,
    }
}

/// The rule by which this request may write the file of instructions: one for its tool, or for every tool that writes.
fn rule_for<'p>(policy: &'p Policy, request: &Request<'_>, path: &Path) -> Option<&'p Rule> {
    [request.tool, PathUse::Write.tool()]
        .into_iter()
        .find_map(|tool| rule_of(policy, request.agent, tool, path))
}

/// The rule by which calls of this tool may write the file of instructions.
fn rule_of<'p>(policy: &'p Policy, agent: &str, tool: &str, path: &Path) -> Option<&'p Rule> {
    let said = policy.rules.matching(agent, tool, &Subject::Path(path, PathUse::Write), &policy.roots);
    said.allow.filter(|rule| said.ask.is_none() && rule.names_file())
}

/// The question about files of instructions, all of them; `None`: there are none.
pub(super) fn question(policy: &Policy, paths: &[PathBuf]) -> Option<Need> {
    let effect = |path: &PathBuf| format!("changes {}: {}", short(policy, path).display(), reason(path));
    let rules = paths.iter().map(|path| pattern(PathUse::Write.tool(), short(policy, path)));
    let always = rules.collect::<Option<Vec<_>>>().map(|rules| always::joined(&rules));
    let effects = paths.iter().map(effect).collect();
    let why = reason(paths.first()?);
    Some(Need::Ask { rule: why.into(), risk: Risk::High, effects, always })
}

/// The files of instructions that a command writes by its words, and to which the user has not agreed.
pub(super) fn written_by(
    policy: &Policy,
    request: &Request<'_>,
    analysis: &Analysis,
    folders: &[PathBuf],
) -> Vec<PathBuf> {
    let redirects = analysis.all_redirects().filter(|r| r.writes()).map(|r| r.target.clone());
    let parts = analysis.parts.iter().flat_map(|part| written(part).into_iter().chain(named_in_code(part)));
    let words: Vec<Word> = redirects.chain(parts).collect();
    among(policy, request, &words, folders)
}

/// The files of instructions that a script writes by the words of its code, and to which the user has not agreed.
pub(super) fn in_code(policy: &Policy, request: &Request<'_>, code: &str) -> Vec<PathBuf> {
    among(policy, request, &names_in_code(code), &[])
}

/// The files of instructions among words of paths, to which the user has not agreed. Where the folder is not known, names are
/// of the workspace.
fn among(policy: &Policy, request: &Request<'_>, words: &[Word], folders: &[PathBuf]) -> Vec<PathBuf> {
    let known = if folders.is_empty() { std::slice::from_ref(&policy.roots.workspace) } else { folders };
    let instructions = Instructions::of(policy);
    let mut seen = HashSet::new();
    let paths = words.iter().flat_map(|word| instructions.meant_by(word, known));
    paths.filter(|p| seen.insert(p.clone()) && rule_for(policy, request, p).is_none()).collect()
}
