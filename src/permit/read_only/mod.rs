//! Commands that change nothing, with the options that are known to change nothing. Any other command asks.
//!
//! The words of a command are checked first, here. Then its [`Requirement`]s are: that nothing around it (the
//! configuration of git, a launcher's files, a program of the workspace) makes it run something else.

mod archives;
mod confined;
mod exec;
mod find;
mod git;
mod glob;
mod held;
mod places;
mod program;
mod requirements;
mod table;
mod text;
mod unroll;
mod xargs;

use std::path::PathBuf;

use crate::paths::Roots;
use tiller_shell::{Analysis, Part, Role, Word, changes_programs, is_cosmetic, program_name};

use git::git;
pub(crate) use requirements::{Requirement, RunContext};
use table::{Operands, PROGRAMS, Program};
pub(crate) use unroll::written_out;

use Operands::{None as Nothing, OnePath, Paths, PatternThenPaths, Text};

/// Wrappers that run a command and do nothing else. A shell is one only with `-c TEXT`.
const WRAPPERS: &[&str] = &[
    "time", "nice", "ionice", "timeout", "gtimeout", "env", "command", "builtin", "eval", "xargs", "stdbuf",
];

/// What else must hold when the words of the whole command are read-only and name nothing outside of the workspace;
/// `None`: they are not, or do. Words and folders that are known only when it runs need the sandbox. `known`: it runs
/// in no other folders than these.
pub(crate) fn requirements(
    analysis: &Analysis,
    roots: &Roots,
    folders: &[PathBuf],
    known: bool,
) -> Option<Vec<Requirement>> {
    let by_words = known.then(|| by_words(analysis, roots, folders)).flatten();
    by_words.or_else(|| held::requirements(analysis, roots, folders))
}

fn by_words(analysis: &Analysis, roots: &Roots, folders: &[PathBuf]) -> Option<Vec<Requirement>> {
    let plain = analysis.unclear.is_none() && analysis.loose_but_added().is_none();
    let read_only = plain
        && !folders.is_empty()
        && !analysis.parts.is_empty()
        && loops_inside(analysis, roots, folders)
        && folders.iter().all(|f| roots.inside(f))
        && analysis.all_redirects().all(|r| {
            !r.writes() && (r.kind != tiller_shell::RedirectKind::Read || inside(&r.target, roots, folders))
        });
    if !read_only {
        return None;
    }
    let mut needs = Vec::new();
    for (at, part) in analysis.parts.iter().enumerate() {
        for part in &unroll::unroll(part, &analysis.loops)? {
            if xargs::is_run_by_xargs(part) {
                needs.extend(takes_file_names(part, roots, folders)?);
                needs.extend(xargs::file_names(analysis, part, roots, folders)?);
            } else if exec::is_run_by_find(part) {
                needs.extend(takes_file_names(part, roots, folders)?);
                exec::file_names(analysis, at, roots, folders)?;
            } else if part.wrappers.iter().any(|w| exec::ADDS_NAMES.contains(&w.as_str())) {
                return None;
            } else {
                needs.extend(part_requirements(part, roots, folders)?);
            }
        }
    }
    Some(needs)
}

/// What else must hold for a part that gets further words, all of which are names of files: it takes any number of
/// them.
fn takes_file_names(part: &Part, roots: &Roots, folders: &[PathBuf]) -> Option<Vec<Requirement>> {
    let known = xargs::fixed_words(part)?;
    let takes = PROGRAMS.iter().find(|l| program_name(known.program()) == Some(l.name))?;
    let enough = match takes.operands {
        Paths => !matches!(takes.name, "test" | "["),
        PatternThenPaths => known.args().iter().any(|w| !w.text.starts_with('-')),
        Text => matches!(takes.name, "echo" | "basename" | "dirname"),
        _ => false,
    };
    if !enough {
        return None;
    }
    part_requirements(&known, roots, folders)
}

/// Whether all loops go over names of the workspace: `for f in /etc/*` would show names outside.
pub(crate) fn loops_inside(analysis: &Analysis, roots: &Roots, folders: &[PathBuf]) -> bool {
    analysis.loops.iter().all(|w| !(w.glob || w.tilde) || glob::inside(w, roots, folders))
}

/// What else must hold when the words of this part are read-only. Redirections are checked by the caller.
pub(crate) fn part_requirements(part: &Part, roots: &Roots, folders: &[PathBuf]) -> Option<Vec<Requirement>> {
    let elsewhere = |text: &str| text.starts_with('/') || text.contains("..");
    let splits = |name: &str| name == "IFS" && matches!(part.program(), "read" | "mapfile" | "readarray");
    let harmless = |name: &str, value: &Word| {
        value.plain() && (splits(name) || is_cosmetic(name) && !elsewhere(&value.text))
    };
    if !part.env.iter().all(|(name, value)| harmless(name, value)) {
        return None;
    }
    match part.role {
        Role::Transparent => return wrapper_requirements(part),
        // What may run has parts of its own; a guess is always an addition to one of them.
        Role::Guess => return None,
        Role::Assignment => return (part.env.is_empty() && part.stdin.is_none()).then(Vec::new),
        Role::Command => {}
    }
    let name = part.argv.first().filter(|w| w.plain()).and_then(|w| program_name(&w.text))?;
    let mut needs = vec![Requirement::Program(part.program().to_owned())];
    if name == "git" {
        needs.push(Requirement::Git(git(part.args(), roots, folders)?));
        return Some(needs);
    }
    if !words_are_read_only(name, part.args(), roots, folders) {
        needs.push(Requirement::Sandbox);
        return confined::reads(name, part.args(), roots, folders).then_some(needs);
    }
    needs.extend(
        archives::HELPERS
            .iter()
            .filter(|(n, _)| *n == name)
            .flat_map(|(_, helpers)| helpers.iter().map(|helper| Requirement::Program((*helper).to_owned()))),
    );
    Some(needs)
}

/// The same for a wrapper whose own options do nothing.
fn wrapper_requirements(part: &Part) -> Option<Vec<Requirement>> {
    let name = part.argv.first().filter(|w| w.plain()).and_then(|w| program_name(&w.text))?;
    let args = part.args();
    let text = |at: usize| args.get(at).map_or("", |w: &Word| w.text.as_str());
    let fine = match name {
        "xargs" => xargs::only_passes_on(part),
        // With an option it may take away the variables by which nothing else runs.
        "env" => !text(0).starts_with('-'),
        "sh" | "bash" | "dash" => matches!(text(0), "-c" | "-ec" | "-euc") && args.len() == 2,
        _ => WRAPPERS.contains(&name),
    };
    fine.then(|| vec![Requirement::Program(part.program().to_owned())])
}

/// Whether the arguments of a program other than git are read-only.
fn words_are_read_only(name: &str, args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    match name {
        "find" => return find::find(args, roots, folders),
        "sed" => return text::sed(args, roots, folders),
        "awk" | "gawk" | "mawk" | "nawk" => return text::awk(args, roots, folders),
        "jq" => return text::jq(args, roots, folders),
        "tar" => return archives::tar(args, roots, folders),
        "unzip" | "zipinfo" => return archives::zip(name, args, roots, folders),
        "zcat" | "gzcat" => return archives::zcat(args, roots, folders),
        "date" => return text::date(args),
        "test" | "[" if compares_texts(name, args) => return true,
        // `[ -f *.rs ]`, or such a name in a loop.
        "test" | "[" if args.len() <= 3 && args.get(1).is_some_and(|w| w.glob) => {
            let kind =
                args[0].plain() && matches!(args[0].text.as_str(), "-f" | "-d" | "-e" | "-s" | "-r" | "-x");
            let end = args.len() == 2 || args[2].plain() && args[2].text == "]";
            return kind && end && glob::inside(&args[1], roots, folders);
        }
        // It sets variables of the shell, none of which means anything to a program.
        "read" => {
            return matches!(args, [r, names @ ..] if r.plain() && r.text == "-r" && !names.is_empty()
                && names.iter().all(|w| w.plain() && is_own_variable(&w.text)));
        }
        // Without a name it prints them all.
        "printenv" => {
            let name = |w: &Word| w.plain() && w.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            return !args.is_empty() && args.iter().all(name);
        }
        _ if helps(name, args) => return true,
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
        // A file of options.
        "strings" if args.iter().any(|w| w.text.starts_with('@')) => return false,
        _ => {}
    }
    let Some(program) = PROGRAMS.iter().find(|l| l.name == name) else { return false };
    let test = matches!(name, "test" | "[");
    let mut operands: Vec<&Word> = Vec::new();
    let mut ended = program.operands == Text && matches!(name, "true" | "false" | ":");
    let mut pattern_given = false;
    for word in args {
        let t = word.text.as_str();
        if program.operands == Text && matches!(name, "echo" | "printf") {
            operands.push(word);
            continue;
        }
        if ended || test || t == "-" || !t.starts_with('-') {
            operands.push(word);
            continue;
        }
        if t == "--" && word.plain() {
            ended = true;
        } else if !option_is_known(program, word) {
            return false;
        } else {
            pattern_given |= matches!(name, "grep" | "rg")
                && (t.starts_with("--regexp") || (!t.starts_with("--") && t.contains('e')) || t == "--files");
        }
    }
    match program.operands {
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
        Paths => operands.iter().all(|w| {
            inside(w, roots, folders)
                || (!test && (glob::inside(w, roots, folders) || w.pipe || places::is_public(w, roots)))
        }),
        PatternThenPaths => {
            let skip = usize::from(!pattern_given);
            operands.iter().take(skip).all(|w| !w.dynamic && !w.glob)
                && operands
                    .iter()
                    .skip(skip)
                    .all(|w| inside(w, roots, folders) || glob::inside(w, roots, folders) || w.pipe)
        }
    }
}

/// `[ -n "$HOME" ]`, `[ "$a" = b ]`: texts, whatever they are. Any other test may read an index of an array as code.
fn compares_texts(name: &str, args: &[Word]) -> bool {
    let args = match args.split_last() {
        Some((last, rest)) if name == "[" && last.plain() && last.text == "]" => rest,
        _ if name == "test" => args,
        _ => return false,
    };
    let one = |w: &Word| !w.splits && !w.glob;
    let is = |w: &Word, all: &[&str]| w.plain() && all.contains(&w.text.as_str());
    match args {
        [op, text] => is(op, &["-n", "-z"]) && one(text),
        [a, op, b] => is(op, &["=", "==", "!="]) && one(a) && one(b),
        _ => false,
    }
}

/// A name as scripts use them for themselves: small letters, and nothing that other programs look at.
fn is_own_variable(name: &str) -> bool {
    !changes_programs(name) && !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// `rg --help`: a text of the program itself. What opens a manual or a browser instead is left out.
fn helps(name: &str, args: &[Word]) -> bool {
    let known = PROGRAMS.iter().any(|p| p.name == name) || table::VERSIONS.contains(&name);
    let opens = matches!(name, "npm" | "go" | "pip" | "docker" | "kubectl");
    known && !opens && matches!(args, [w] if w.plain() && w.text == "--help")
}

fn option_is_known(program: &Program, word: &Word) -> bool {
    if !word.plain() {
        return false;
    }
    let t = word.text.as_str();
    match t.strip_prefix("--") {
        Some(long) => program.long.contains(&long.split('=').next().unwrap_or(long)) && safe_value(t),
        None => t[1..].chars().enumerate().all(|(i, c)| {
            program.short.contains(c)
                || (c.is_ascii_digit() && program.short.contains(['0', 'n']))
                // Between fields any character may stand.
                || program.name == "cut" && i == 1 && t.starts_with("-d")
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
