//! The paths that a command comes to, for the rules that narrow what may be done to a path. A rule
//! names the path; which program reads it, under which spelling, and in which tree, does not matter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::danger::{git_folders, git_subcommand};
use crate::decide::Policy;
use crate::paths::Roots;
use crate::paths::below::{Below, below, expand};
use crate::read_only::written_out;
use crate::rules::{Effect, PathUse, Rule, Subject};
use crate::targets::{quoted, surely_written, trees, written};
use tiller_shell::{Analysis, HOLE, Part, Redirect, Role, Word, code_reads, takes_code, utility};

/// What a rule says about the paths of a command.
pub(crate) enum PathMatch<'a> {
    /// The rule is met, by this path.
    Path(&'a Rule, PathBuf),
    /// Whether it is met is only known when the command runs, and why.
    Perhaps(&'a Rule, String),
}

/// The rule of this effect that some path of the command meets.
pub(crate) fn met<'a>(
    policy: &'a Policy,
    agent: &str,
    effect: Effect,
    analysis: &Analysis,
    places: &[PathBuf],
) -> Option<PathMatch<'a>> {
    let narrows = |how| {
        policy.rules.rules().iter().find(|r| r.effect == effect && r.narrows_paths(how) && r.is_for(agent))
    };
    let (reads, writes) = (narrows(PathUse::Read), narrows(PathUse::Write));
    if reads.is_none() && writes.is_none() {
        return None;
    }
    let known = if places.is_empty() { std::slice::from_ref(&policy.roots.workspace) } else { places };
    let look = Look { policy, agent, effect, known };
    for (how, word) in words(analysis) {
        for path in look.paths(&word) {
            if let Some(rule) = look.rule(how, &path) {
                return Some(PathMatch::Path(rule, path));
            }
        }
    }
    let reads = reads?;
    let mut perhaps = None;
    for part in analysis.parts.iter().filter(|p| p.role != Role::Transparent) {
        for tree in trees(part, analysis) {
            let folders = match policy.roots.candidates(&tree.folder, known) {
                Some(folders) if !tree.folder.glob => folders,
                Some(globs) => {
                    globs.iter().flat_map(|g| expand(&policy.roots, g).unwrap_or_default()).collect()
                }
                None => {
                    perhaps.get_or_insert(format!(
                        "{} reads a folder that is known only at run time",
                        part.base()
                    ));
                    continue;
                }
            };
            for folder in folders {
                let wanted = |p: &Path| {
                    tree.takes(&folder, p, &policy.roots)
                        && look.rule(PathUse::Read, p).is_some()
                        && (!tree.tracked || policy.roots.tracked(&folder, p))
                };
                match below(&policy.roots, &folder, &wanted) {
                    Below::Found(path) => {
                        let rule = look.rule(PathUse::Read, &path).unwrap_or(reads);
                        if tree.certain {
                            return Some(PathMatch::Path(rule, path));
                        }
                        perhaps.get_or_insert(format!("{} may show {}", part.base(), path.display()));
                    }
                    Below::TooMany => {
                        perhaps.get_or_insert(format!("{} reads too many files to check", part.base()));
                    }
                    Below::None => {}
                }
            }
        }
        if let Some(why) = unknown(part, analysis) {
            perhaps.get_or_insert(why);
        }
    }
    perhaps.map(|why| PathMatch::Perhaps(reads, why))
}

struct Look<'a, 'b> {
    policy: &'a Policy,
    agent: &'b str,
    effect: Effect,
    known: &'b [PathBuf],
}

impl<'a> Look<'a, '_> {
    fn rule(&self, how: PathUse, path: &Path) -> Option<&'a Rule> {
        // The name of the tool does not matter for rules that name a path; one without an argument is
        // about the tool alone.
        let subject = Subject::Path(path, how);
        let said = self.policy.rules.matching(self.agent, how.tool(), &subject, &self.policy.roots);
        let rule = if self.effect == Effect::Deny { said.deny } else { said.ask };
        rule.filter(|r| r.narrows_paths(how))
    }

    /// The paths that a word may stand for: what is known of it, the files that a pattern of names
    /// stands for now, and the names in the rules that it may hit.
    fn paths(&self, word: &Word) -> Vec<PathBuf> {
        let roots = &self.policy.roots;
        let known = spelled(roots, word, self.known);
        if !word.glob {
            return known;
        }
        let rules = self.policy.rules.rules().iter().filter(|r| r.effect == self.effect);
        let ruled: Vec<PathBuf> =
            rules.filter_map(|r| r.plain_path().map(|p| roots.workspace.join(p))).collect();
        known
            .iter()
            .flat_map(|path| {
                std::iter::once(path.clone())
                    .chain(ruled.iter().filter_map(|rule| hit(path, rule)))
                    .chain(expand(roots, path).unwrap_or_default())
            })
            .collect()
    }
}

/// The paths that a word names by what is known of it.
fn spelled(roots: &Roots, word: &Word, places: &[PathBuf]) -> Vec<PathBuf> {
    if !word.dynamic {
        return roots.candidates(word, places).unwrap_or_default();
    }
    // The known end of a name is enough: `$PWD/secrets/key`.
    let end = word.text.rsplit(HOLE).next().unwrap_or_default().trim_start_matches('/');
    let end = Word { text: end.to_owned(), dynamic: false, tilde: false, ..word.clone() };
    if end.text.is_empty() || !word.text.contains('/') {
        return vec![];
    }
    roots.candidates(&end, places).unwrap_or_default()
}

/// Paths, absolute, each with what is done to it.
pub(crate) type NamedPaths = BTreeSet<(PathUse, PathBuf)>;

/// Most paths of one command that rules are compared with.
const REACHED: usize = 2_000;

/// The paths that a command names, and what it does to each. What a program that is not known may write, and what lies
/// below a folder that is read, is not among them.
pub(crate) fn reached(roots: &Roots, analysis: &Analysis, places: &[PathBuf]) -> NamedPaths {
    spelled_and(roots, analysis, places, |glob| expand(roots, glob).unwrap_or_default())
}

/// The same, a pattern of names as it is spelled: no folder is listed.
pub(crate) fn as_spelled(roots: &Roots, analysis: &Analysis, places: &[PathBuf]) -> NamedPaths {
    spelled_and(roots, analysis, places, |_| Vec::new())
}

/// `matched`: the paths that a pattern of names stands for.
fn spelled_and(
    roots: &Roots,
    analysis: &Analysis,
    places: &[PathBuf],
    matched: impl Fn(&Path) -> Vec<PathBuf>,
) -> NamedPaths {
    let known = if places.is_empty() { std::slice::from_ref(&roots.workspace) } else { places };
    let mut found = NamedPaths::new();
    let mut add = |how: PathUse, word: &Word, places: &[PathBuf]| {
        if found.len() < REACHED {
            let paths = spelled(roots, word, places);
            let matched: Vec<PathBuf> =
                paths.iter().filter(|_| word.glob).flat_map(|path| matched(path)).collect();
            found.extend(paths.into_iter().chain(matched).map(|path| (how, path)));
        }
    };
    let rounds = written_out(analysis);
    for analysis in std::iter::once(analysis).chain(&rounds) {
        for redirect in analysis.all_redirects() {
            add(use_of(redirect.writes()), &redirect.target, known);
        }
        for word in &analysis.loops {
            add(PathUse::Read, word, known);
        }
        for part in &analysis.parts {
            let (part, places) = of_git(part, known);
            for word in surely_written(&part) {
                add(PathUse::Write, &word, &places);
            }
            for word in named(&part) {
                add(PathUse::Read, &word, &places);
            }
        }
    }
    found
}

/// A part and its folders; of git without the options in front of its command, in the folder that they name.
fn of_git(part: &Part, places: &[PathBuf]) -> (Part, Vec<PathBuf>) {
    match git_subcommand(part.args()).filter(|_| part.base() == "git") {
        None => (part.clone(), places.to_vec()),
        Some(at) => {
            let argv = part.argv.iter().take(1).chain(&part.args()[at..]).cloned().collect();
            (Part { argv, ..part.clone() }, git_folders(part.args(), places))
        }
    }
}

fn use_of(writes: bool) -> PathUse {
    if writes { PathUse::Write } else { PathUse::Read }
}

/// Every word of a command that may name a file, and what is done to it.
fn words(analysis: &Analysis) -> impl Iterator<Item = (PathUse, Word)> {
    analysis
        .all_redirects()
        .map(|r: &Redirect| (use_of(r.writes()), r.target.clone()))
        .chain(analysis.parts.iter().flat_map(|p| written(p).into_iter().map(|w| (PathUse::Write, w))))
        .chain(analysis.parts.iter().flat_map(named).map(|w| (PathUse::Read, w)))
        // `for f in .e*; do cat $f; done`
        .chain(analysis.loops.iter().map(|w| (PathUse::Read, w.clone())))
}

/// The words of a part that may name a file which it reads, also inside options and code.
fn named(part: &Part) -> Vec<Word> {
    let mut out = part.args().to_vec();
    // `f=.env; cat $f`
    out.extend(part.env.iter().map(|(_, value)| value.clone()));
    for word in part.args() {
        // `if=file`, `--file=file`, `-d @file`, `HEAD:file`, `-v file:/x`, `:(glob)file`
        let values = [word.text.split_once('=').map(|(_, v)| v), Some(word.text.as_str())];
        for value in values.into_iter().flatten() {
            let at = value.find(['@', '<']).map(|at| &value[at + 1..]);
            let ends = [
                Some(value.trim_start_matches(['@', '<'])),
                at,
                at.and_then(|v| v.split_once(';')).map(|(v, _)| v),
                value.rsplit_once(':').map(|(_, v)| v),
                value.split_once(':').map(|(_, v)| v),
                value.split_once(':').map(|(v, _)| v),
                value.rsplit_once(')').map(|(_, v)| v),
                value.strip_prefix("file://"),
            ];
            out.extend(
                ends.into_iter()
                    .flatten()
                    .filter(|v| *v != word.text && !v.is_empty())
                    .map(|v| Word { text: v.to_owned(), ..word.clone() }),
            );
        }
        // A value that stands directly after its letter: `-f.env`, `-T.env`.
        if let Some(joined) = word.text.strip_prefix('-').filter(|t| !t.starts_with('-')) {
            let mut letters = joined.chars();
            letters.next();
            out.push(Word { text: letters.as_str().trim_start_matches('@').to_owned(), ..word.clone() });
        }
    }
    let code = part.args().iter().chain(&part.stdin).filter(|_| takes_code(&part.base()));
    out.extend(code.flat_map(|w| quoted(&w.text)).map(Word::fixed));
    // `sed 'r file'`, `.import file table`, `:r file`: names without quotes.
    if matches!(
        part.base().as_str(),
        "sed" | "gsed" | "sqlite3" | "duckdb" | "psql" | "ed" | "ex" | "vi" | "vim" | "nvim" | "gnuplot"
    ) {
        let code = part.args().iter().chain(&part.stdin).filter(|w| w.text.contains(char::is_whitespace));
        let words = code.flat_map(|w| w.text.split([' ', '\t', '\n', ';', '}']));
        out.extend(words.filter(|t| !t.is_empty()).map(Word::fixed));
    }
    // Lists of names in the input.
    let lists = matches!(part.base().as_str(), "cpio" | "pax" | "xargs" | "parallel")
        || part.args().iter().any(|w| {
            matches!(w.text.as_str(), "--files-from=-" | "-T-" | "--files0-from=-" | "--files0-from")
        })
        || part
            .args()
            .windows(2)
            .any(|w| matches!(w[0].text.as_str(), "-T" | "--files-from") && w[1].text == "-");
    if part.wrappers.iter().any(|w| w == "xargs") || lists {
        out.extend(part.stdin.iter().flat_map(|w| w.text.split_whitespace()).map(Word::fixed));
    }
    out
}

/// Why it is only known when it runs what a part reads.
fn unknown(part: &Part, analysis: &Analysis) -> Option<String> {
    let base = part.base();
    if part.argv.is_empty() || utility(&base).is_some_and(|u| u.shows_no_content) {
        return None;
    }
    // What `find` hands over is looked at as a tree.
    let from_find = part.wrappers.iter().any(|w| matches!(w.as_str(), "find" | "gfind" | "fd" | "fdfind"))
        || part.wrappers.iter().any(|w| w == "xargs")
            && part.piped_from.is_some_and(|(from, to)| {
                let sources = analysis.parts.get(from..to).unwrap_or_default();
                !sources.is_empty() && sources.iter().all(|p| matches!(p.base().as_str(), "find" | "gfind"))
            });
    if from_find {
        return None;
    }
    let words = part.args().iter().chain(part.redirects.iter().map(|r| &r.target));
    if words.clone().any(|w| w.dynamic && !w.text.starts_with('-')) && part.role != Role::Guess {
        return Some(format!("the files that {base} reads are known only at run time"));
    }
    let code = part.args().iter().chain(&part.stdin).any(|w| code_reads(&base, &w.text));
    code.then(|| format!("the code that {base} runs may read any file"))
}

/// `path` with the names of `rule` in the place of patterns that may stand for them.
fn hit(path: &Path, rule: &Path) -> Option<PathBuf> {
    let names: Vec<_> = rule.components().collect();
    let parts: Vec<_> = path.components().collect();
    if parts.len() < names.len() {
        return None;
    }
    let mut out = PathBuf::new();
    for (at, part) in parts.iter().enumerate() {
        let text = part.as_os_str().to_string_lossy();
        let name = names.get(at).map(|n| n.as_os_str());
        match name {
            Some(name) if text.contains(['*', '?', '[']) => {
                let pattern = globset::GlobBuilder::new(&text).case_insensitive(true).build().ok()?;
                if !pattern.compile_matcher().is_match(Path::new(name)) {
                    return None;
                }
                out.push(name);
            }
            _ => out.push(part),
        }
    }
    Some(out)
}
