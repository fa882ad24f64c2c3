//! Commands that only look, with the options that are known to only look. Everything not listed asks.
//!
//! That the words of a command only look is the first half of the proof; the second is that nothing around it (the
//! configuration of git, a launcher's files, a program of the workspace) makes it run something else: [`proof`].

mod fed;
mod find;
mod git;
mod glob;
mod program;
mod proof;
mod table;
mod text;

use std::path::PathBuf;

use crate::paths::Roots;
use tiller_shell::{Analysis, Part, Role, Word, is_cosmetic, program_name};

use git::git;
pub(crate) use proof::{Need, Place};
use table::{LOOKS, Look, Operands};

use Operands::{None as Nothing, OnePath, Paths, PatternThenPaths, Text};

/// Wrappers that hand a command on and do nothing else. A shell is one only with a text.
const HANDS_ON: &[&str] = &[
    "time", "nice", "ionice", "timeout", "gtimeout", "env", "command", "builtin", "eval", "xargs", "stdbuf",
];

/// What is left to be shown when the words of the whole command only look, at nothing but the workspace.
pub(crate) fn harmless(analysis: &Analysis, roots: &Roots, folders: &[PathBuf]) -> Option<Vec<Need>> {
    let plain = analysis.unclear.is_none() && analysis.loose_but_xargs().is_none();
    let looks = plain
        && !folders.is_empty()
        && !analysis.parts.is_empty()
        && loops_inside(analysis, roots, folders)
        && folders.iter().all(|f| roots.inside(f))
        && analysis.all_redirects().all(|r| {
            !r.writes() && (r.kind != tiller_shell::RedirectKind::Read || inside(&r.target, roots, folders))
        });
    if !looks {
        return None;
    }
    let mut needs = Vec::new();
    for part in &analysis.parts {
        if fed::is_fed(part) {
            let known = fed::written(part)?;
            // Only files are handed on: to a program that takes any number of these.
            let takes = LOOKS.iter().find(|l| program_name(known.program()) == Some(l.name))?;
            let enough = match takes.operands {
                Paths => !matches!(takes.name, "test" | "["),
                PatternThenPaths => known.args().iter().any(|w| !w.text.starts_with('-')),
                Text => matches!(takes.name, "echo" | "basename" | "dirname"),
                _ => false,
            };
            if !enough {
                return None;
            }
            needs.extend(part_is_harmless(&known, roots, folders)?);
            needs.extend(fed::names(analysis, part, roots, folders)?);
        } else {
            needs.extend(part_is_harmless(part, roots, folders)?);
        }
    }
    Some(needs)
}

/// `for f in /etc/*` tells the names that it goes over.
pub(crate) fn loops_inside(analysis: &Analysis, roots: &Roots, folders: &[PathBuf]) -> bool {
    analysis.loops.iter().all(|w| !(w.glob || w.tilde) || glob::inside(w, roots, folders))
}

/// What is left to be shown when the words of this part only look. Redirections are judged by the caller.
pub(crate) fn part_is_harmless(part: &Part, roots: &Roots, folders: &[PathBuf]) -> Option<Vec<Need>> {
    let elsewhere = |text: &str| text.starts_with('/') || text.contains("..");
    if part.env.iter().any(|(name, value)| !is_cosmetic(name) || !value.plain() || elsewhere(&value.text)) {
        return None;
    }
    match part.role {
        Role::Transparent => return hands_on(part),
        // What may run is judged by its own parts; a guess is only ever an addition to one.
        Role::Guess => return None,
        Role::Assignment => return (part.env.is_empty() && part.stdin.is_none()).then(Vec::new),
        Role::Command => {}
    }
    let name = part.argv.first().filter(|w| w.plain()).and_then(|w| program_name(&w.text))?;
    let mut needs = vec![Need::Program(part.program().to_owned())];
    if name == "git" {
        needs.push(Need::Git(git(part.args(), roots, folders)?));
        return Some(needs);
    }
    words_look(name, part.args(), roots, folders).then_some(needs)
}

/// A wrapper whose own options do nothing.
fn hands_on(part: &Part) -> Option<Vec<Need>> {
    let name = part.argv.first().filter(|w| w.plain()).and_then(|w| program_name(&w.text))?;
    let args = part.args();
    let text = |at: usize| args.get(at).map_or("", |w: &Word| w.text.as_str());
    let fine = match name {
        "xargs" => fed::hands_on(part),
        // With an option it may take away the variables by which nothing else runs.
        "env" => !text(0).starts_with('-'),
        "sh" | "bash" | "dash" => matches!(text(0), "-c" | "-ec" | "-euc") && args.len() == 2,
        _ => HANDS_ON.contains(&name),
    };
    fine.then(|| vec![Need::Program(part.program().to_owned())])
}

/// Whether the arguments of a program other than git only look.
fn words_look(name: &str, args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    match name {
        "find" => return find::find(args, roots, folders),
        "sed" => return text::sed(args, roots, folders),
        "awk" | "gawk" | "mawk" | "nawk" => return text::awk(args, roots, folders),
        "jq" => return text::jq(args, roots, folders),
        "command" => {
            return args.len() == 2 && matches!(args[0].text.as_str(), "-v" | "-V") && args[1].plain();
        }
        // `type` and `which` run nothing, `printf -v` sets a variable.
        "printf" if args.first().is_some_and(|w| w.text.starts_with('-') || w.dynamic || w.glob) => {
            return false;
        }
        _ if table::VERSIONS.contains(&name) => {
            return args.len() == 1
                && matches!(args[0].text.as_str(), "--version" | "-V" | "-v" | "version")
                && args[0].plain()
                && !(name.starts_with("python") && args[0].text == "-v");
        }
        // Any other operand sets the clock.
        "date" if args.iter().any(|w| !w.plain() || !w.text.starts_with(['+', '-'])) => return false,
        // A file of options.
        "strings" if args.iter().any(|w| w.text.starts_with('@')) => return false,
        _ => {}
    }
    let Some(look) = LOOKS.iter().find(|l| l.name == name) else { return false };
    let test = matches!(name, "test" | "[");
    let mut operands: Vec<&Word> = Vec::new();
    let mut ended = look.operands == Text && matches!(name, "true" | "false" | ":");
    let mut pattern_given = false;
    for word in args {
        let t = word.text.as_str();
        if look.operands == Text && matches!(name, "echo" | "printf") {
            operands.push(word);
            continue;
        }
        if ended || test || t == "-" || !t.starts_with('-') {
            operands.push(word);
            continue;
        }
        if t == "--" && word.plain() {
            ended = true;
        } else if !option_is_known(look, word) {
            return false;
        } else {
            pattern_given |= matches!(name, "grep" | "rg")
                && (t.starts_with("--regexp") || (!t.starts_with("--") && t.contains('e')) || t == "--files");
        }
    }
    match look.operands {
        Text => operands.iter().all(|w| {
            (!w.glob && !w.tilde || glob::inside(w, roots, folders))
                && (!w.dynamic || matches!(name, "echo" | "printf"))
        }),
        Nothing => operands.is_empty(),
        OnePath => {
            operands.len() <= 1
                && operands.iter().all(|w| inside(w, roots, folders))
                && (name != "cd" || operands.len() == 1)
        }
        // It follows the links that it meets.
        Paths if name == "diff" && !operands.iter().all(|w| tree_inside(w, roots, folders)) => false,
        Paths => {
            operands.iter().all(|w| inside(w, roots, folders) || (!test && glob::inside(w, roots, folders)))
        }
        PatternThenPaths => {
            let skip = usize::from(!pattern_given);
            operands.iter().take(skip).all(|w| !w.dynamic && !w.glob)
                && operands
                    .iter()
                    .skip(skip)
                    .all(|w| inside(w, roots, folders) || glob::inside(w, roots, folders))
        }
    }
}

fn option_is_known(look: &Look, word: &Word) -> bool {
    if !word.plain() {
        return false;
    }
    let t = word.text.as_str();
    match t.strip_prefix("--") {
        Some(long) => look.long.contains(&long.split('=').next().unwrap_or(long)) && safe_value(t),
        None => t[1..].chars().enumerate().all(|(i, c)| {
            look.short.contains(c)
                || (c.is_ascii_digit() && look.short.contains(['0', 'n']))
                // The value of an option that stands directly after its letter: `-d:`, `-k2,2`.
                || (i > 0 && matches!(c, ',' | '.' | ':' | '+' | '=' | '|' | ';' | '*' | '_' | ' ' | '-'))
        }),
    }
}

/// A value that names no place outside.
fn safe_value(option: &str) -> bool {
    option
        .split_once('=')
        .is_none_or(|(_, v)| !v.starts_with('/') && !v.starts_with('~') && !v.split('/').any(|c| c == ".."))
}

/// A file of the workspace, as spelled and as its links lead.
pub(crate) fn inside(word: &Word, roots: &Roots, folders: &[PathBuf]) -> bool {
    if word.dynamic || word.glob {
        return false;
    }
    if !word.tilde && matches!(word.text.as_str(), "-" | "/dev/null" | "/dev/stdin") {
        return true;
    }
    roots.candidates(word, folders).is_some_and(|all| !all.is_empty() && all.iter().all(|p| roots.inside(p)))
}

/// Whether no link in the folder that a word names leads out of the workspace.
fn tree_inside(word: &Word, roots: &Roots, folders: &[PathBuf]) -> bool {
    let all = roots.candidates(word, folders).unwrap_or_default();
    all.iter().all(|p| {
        crate::paths::below::below(roots, p, &|p| !roots.inside(p)) == crate::paths::below::Below::None
    })
}

#[cfg(test)]
#[path = "everyday_tests.rs"]
mod tests;
