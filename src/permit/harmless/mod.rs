//! Commands that only look, with the options that are known to only look. Everything not listed asks.

mod git;
mod table;

use std::path::PathBuf;

use crate::paths::Roots;
use crate::shell::{Analysis, Part, Role, Word, is_quiet, program_name};

use git::git;
use table::{LOOKS, Look, Operands};

use Operands::{None as Nothing, OnePath, Paths, PatternThenPaths, Text};

/// True when the whole command only looks, at nothing but the workspace.
pub(crate) fn harmless(analysis: &Analysis, roots: &Roots, folders: &[PathBuf]) -> bool {
    analysis.is_plain()
        && !folders.is_empty()
        && !analysis.parts.is_empty()
        && folders.iter().all(|f| roots.inside(f))
        && analysis.all_redirects().all(|r| {
            !r.writes() && (r.kind != crate::shell::RedirectKind::Read || inside(&r.target, roots, folders))
        })
        && analysis.parts.iter().all(|p| part_is_harmless(p, roots, folders))
}

/// True when this part only looks. Redirections are judged by the caller.
pub(crate) fn part_is_harmless(part: &Part, roots: &Roots, folders: &[PathBuf]) -> bool {
    let elsewhere = |text: &str| text.starts_with('/') || text.contains("..");
    if part.env.iter().any(|(name, value)| !is_quiet(name) || !value.plain() || elsewhere(&value.text)) {
        return false;
    }
    match part.role {
        Role::Transparent => return true,
        // What may run is judged by its own parts; a guess is only ever an addition to one.
        Role::Guess => return false,
        Role::Assignment => return part.env.is_empty() && part.stdin.is_none(),
        Role::Command => {}
    }
    let Some(name) = program_name(part.program()) else { return false };
    let args = part.args();
    match name {
        "git" => return git(args, roots, folders),
        "find" => return find(args, roots, folders),
        "sed" => return sed(args, roots, folders),
        "command" => {
            return args.len() == 2 && matches!(args[0].text.as_str(), "-v" | "-V") && args[1].plain();
        }
        // `type` and `which` run nothing, `printf -v` sets a variable.
        "printf" if args.first().is_some_and(|w| w.text.starts_with('-') || w.dynamic) => return false,
        "cargo" | "rustc" | "node" | "python3" | "python" | "go" | "npm" | "gcc" | "make" | "git-lfs" => {
            return args.len() == 1
                && matches!(args[0].text.as_str(), "--version" | "-V" | "-v" | "version")
                && args[0].plain()
                && !(name.starts_with("python") && args[0].text == "-v");
        }
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
            (!w.glob && !w.tilde || glob_inside(w, roots, folders))
                && (!w.dynamic || matches!(name, "echo" | "printf"))
        }),
        Nothing => operands.is_empty(),
        OnePath => {
            operands.len() <= 1
                && operands.iter().all(|w| inside(w, roots, folders))
                && (name != "cd" || operands.len() == 1)
        }
        Paths => operands
            .iter()
            .all(|w| inside(w, roots, folders) || (name == "ls" && glob_inside(w, roots, folders))),
        PatternThenPaths => {
            let skip = usize::from(!pattern_given);
            operands.iter().take(skip).all(|w| !w.dynamic && !w.glob)
                && operands.iter().skip(skip).all(|w| inside(w, roots, folders))
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
                || (i > 0 && matches!(c, ',' | '.' | ':' | '+' | '=' | '|' | ';' | '*' | '_' | ' '))
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

/// A pattern of names in one folder of the workspace.
fn glob_inside(word: &Word, roots: &Roots, folders: &[PathBuf]) -> bool {
    if word.dynamic || word.tilde {
        return false;
    }
    let (folder, last) = word.text.rsplit_once('/').map_or((".", word.text.as_str()), |(f, l)| (f, l));
    let plain = Word::fixed(if folder.is_empty() { "/" } else { folder });
    !folder.contains(['*', '?', '[']) && !last.starts_with('.') && inside(&plain, roots, folders)
}

fn find(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    const TESTS: &[&str] = &[
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-type",
        "-maxdepth",
        "-mindepth",
        "-not",
        "!",
        "(",
        ")",
        "-o",
        "-a",
        "-or",
        "-and",
        "-prune",
        "-print",
        "-print0",
        "-size",
        "-mtime",
        "-mmin",
        "-empty",
        "-newer",
        "-regex",
        "-iregex",
        "-regextype",
        "-depth",
        "-xdev",
        "-mount",
        "-perm",
        "-user",
        "-group",
        "-ls",
        "-true",
        "-false",
        "-quit",
        "-readable",
        "-executable",
        "-P",
        "-ctime",
        "-atime",
    ];
    let mut places = true;
    let mut value = false;
    for word in args {
        let t = word.text.as_str();
        let test = t.starts_with('-') || matches!(t, "!" | "(" | ")");
        if value && !word.dynamic {
            // `-newer` reads a file's date.
            if t.starts_with('/') || t.contains("..") {
                return false;
            }
            value = false;
        } else if word.dynamic || word.tilde || word.glob {
            return false;
        } else if test {
            if !TESTS.contains(&t) {
                return false;
            }
            places &= t == "-P";
            value = matches!(
                t,
                "-name"
                    | "-iname"
                    | "-path"
                    | "-ipath"
                    | "-wholename"
                    | "-type"
                    | "-maxdepth"
                    | "-mindepth"
                    | "-size"
                    | "-mtime"
                    | "-mmin"
                    | "-newer"
                    | "-regex"
                    | "-iregex"
                    | "-regextype"
                    | "-perm"
                    | "-user"
                    | "-group"
                    | "-ctime"
                    | "-atime"
            );
        } else if !places || !inside(word, roots, folders) {
            return false;
        }
    }
    true
}

/// `sed -n '10,20p' file` and nothing else of that rich language.
fn sed(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
    let [n, script, files @ ..] = args else { return false };
    let prints = |s: &str| {
        let s = s.strip_suffix('p').unwrap_or("x");
        !s.is_empty() && s.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$'))
    };
    n.plain()
        && n.text == "-n"
        && script.plain()
        && script.text.split(';').all(prints)
        && files.iter().all(|w| !w.text.starts_with('-') && inside(w, roots, folders))
}
