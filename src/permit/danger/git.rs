//! Dangerous uses of git.

use std::path::PathBuf;

use super::args::{Args, broad};
use super::git_names::{COMMANDS, RUN};
use super::location::Location;
use crate::paths::normal;
use tiller_shell::{Word, git_key_runs_program, git_section_runs_program};

/// Global options with a value in the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--super-prefix",
    "--attr-source",
];

/// Index of the subcommand in the words of git.
pub(crate) fn git_subcommand(words: &[Word]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if VALUED.contains(&word.text.as_str()) {
            at += 2;
        } else if word.text.starts_with('-') {
            at += 1;
        } else {
            return Some(at);
        }
    }
    None
}

/// The folders in which a git with these words works, when it is started in one of `places`.
pub(crate) fn git_folders(words: &[Word], places: &[PathBuf]) -> Vec<PathBuf> {
    let globals = &words[..git_subcommand(words).unwrap_or(words.len())];
    let mut folders = places.to_vec();
    for pair in globals.windows(2).filter(|p| p[0].text == "-C") {
        folders = folders.iter().map(|f| normal(&f.join(&pair[1].text))).collect();
    }
    folders
}

/// Whether git is given a repository that is not the `.git` of a folder: its configuration may be a file like others.
fn unusual_repository(value: &str) -> bool {
    let path = value.trim_end_matches('/');
    !(path == ".git"
        || path.ends_with("/.git")
        || path.contains(".git/worktrees/")
        || path.contains(".git/modules/"))
}

/// A letter among short options in front of an option that takes a value: `-nO`, `-qu`.
fn letter(words: &[Word], letter: char, valued: &str) -> bool {
    words.iter().take_while(|w| w.text != "--").any(|w| {
        let t = w.text.as_str();
        if !t.starts_with('-') || t.starts_with("--") {
            return false;
        }
        let end = t[1..].find(|c| c != letter && valued.contains(c)).map_or(t.len(), |i| i + 1);
        t[1..end].contains(letter)
    })
}

/// A long option, also cut short as git allows, with `=` or without.
fn long(words: &[Word], names: &[&str]) -> bool {
    words.iter().take_while(|w| w.text != "--").any(|w| {
        let Some(t) = w.text.strip_prefix("--") else { return false };
        let t = t.split('=').next().unwrap_or(t);
        // `--text` is whole as it is.
        t != "text" && names.iter().any(|n| !t.is_empty() && n.starts_with(t))
    })
}

/// An address of another machine or another repository, in the place of the name of a remote.
fn address(text: &str) -> bool {
    text.contains("://")
        || text.contains("::")
        || text.starts_with(['/', '~'])
        || text.starts_with("./")
        || text.starts_with("../")
        // Of the first operand, which is no refspec.
        || text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/') && !host.starts_with('+'))
}

/// `git push` to an address that no remote names, and its siblings.
pub(super) fn pushes(words: &[Word]) -> Option<String> {
    let at = git_subcommand(words)?;
    let (sub, rest) = (words[at].text.as_str(), &words[at + 1..]);
    let to = match sub {
        "push" => rest
            .iter()
            .enumerate()
            .find(|(i, w)| {
                let value =
                    i.checked_sub(1).is_some_and(|b| matches!(rest[b].text.as_str(), "-o" | "--push-option"));
                !value && !w.text.starts_with('-')
            })
            .map(|(_, w)| w)
            .filter(|w| w.dynamic || w.tilde || address(&w.text))
            .or_else(|| rest.iter().find(|w| w.text.starts_with("--repo"))),
        "send-pack" | "http-push" | "request-pull" => rest.iter().find(|w| !w.text.starts_with('-')),
        "bundle" | "archive" => rest.iter().find(|w| w.text.starts_with("--remote")),
        _ => None,
    };
    to.map(|_| "git sends data to an address that is not a remote of this repository".to_owned())
}

/// What `git` would overwrite, delete or run.
pub(super) fn git(a: &Args<'_>, location: Location<'_>) -> Option<String> {
    let yes = |cond: bool, why: &str| cond.then(|| why.to_owned());
    const RUNS: &str = "git is told to run another program";
    const PLANTED: &str = "git is given a repository whose configuration may be a file of the project";
    let at = git_subcommand(a.words);
    let globals = &a.words[..at.unwrap_or(a.words.len())];
    for (i, w) in globals.iter().enumerate() {
        let t = w.text.as_str();
        let next = || globals.get(i + 1);
        match t {
            "-c" | "--config-env"
                if next().is_none_or(|w| {
                    w.dynamic || git_key_runs_program(w.text.split('=').next().unwrap_or_default())
                }) =>
            {
                return Some(RUNS.into());
            }
            _ if t.starts_with("--config-env=") || t.starts_with("--exec-path=") => return Some(RUNS.into()),
            // Its own configuration runs programs: which repository it is matters.
            "-C" | "--git-dir" | "--work-tree" if next().is_none_or(|w| !location.inside(w)) => {
                return Some("git works outside the workspace".into());
            }
            "--git-dir" if next().is_none_or(|w| unusual_repository(&w.text)) => return Some(PLANTED.into()),
            "--bare" => return Some(PLANTED.into()),
            _ if t.starts_with("--git-dir=") || t.starts_with("--work-tree=") => {
                let value = t.split_once('=').map_or("", |(_, v)| v);
                if !location.inside(&Word { text: value.to_owned(), ..w.clone() }) {
                    return Some("git works outside the workspace".into());
                }
                if t.starts_with("--git-dir=") && unusual_repository(value) {
                    return Some(PLANTED.into());
                }
            }
            _ => {}
        }
    }
    let sub = at.map_or("", |at| a.words[at].text.as_str());
    let rest = Args { words: at.map_or(&[][..], |at| &a.words[at + 1..]) };
    if RUN.contains(&sub) {
        return Some("git runs another program, serves, or handles passwords".into());
    }
    if at.is_some_and(|at| a.words[at].dynamic) || !sub.is_empty() && !COMMANDS.contains(&sub) {
        return Some(format!("git has no command '{sub}' of its own: an alias or another program would run"));
    }
    runs(sub, &rest)
        .then(|| RUNS.to_owned())
        .or_else(|| writes_outside(sub, &rest, location))
        .or_else(|| loses(sub, &rest, yes))
}

/// Options and addresses by which git's commands run another program.
fn runs(sub: &str, rest: &Args<'_>) -> bool {
    let words = rest.words;
    let at = |options: &[&str]| long(words, options);
    // `ext::sh -c ...`, and helpers for addresses of other kinds.
    let helper = matches!(
        sub,
        "clone"
            | "fetch"
            | "pull"
            | "push"
            | "ls-remote"
            | "remote"
            | "submodule"
            | "archive"
            | "fetch-pack"
            | "send-pack"
    ) && words
        .iter()
        .any(|w| w.text.contains("::") && !w.text.starts_with('-') && !w.text.starts_with("::"));
    let of_sub = match sub {
        "clone" => {
            letter(words, 'u', "bcoj")
                || letter(words, 'c', "buoj")
                || at(&["upload-pack", "config", "template"])
        }
        "fetch" | "pull" | "ls-remote" | "fetch-pack" => {
            at(&["upload-pack", "exec"]) || sub == "pull" && letter(words, 's', "Xj")
        }
        "push" | "send-pack" => at(&["receive-pack", "exec"]),
        "archive" => at(&["exec"]),
        "init" | "init-db" => at(&["template"]),
        "grep" => letter(words, 'O', "efABCm") || at(&["open-files-in-pager"]),
        "rebase" => letter(words, 'x', "sXCrS") || letter(words, 's', "xXCrS") || at(&["exec", "strategy"]),
        "merge" | "cherry-pick" | "revert" => {
            letter(words, 's', "XmFS") && sub != "cherry-pick" && sub != "revert" || at(&["strategy"])
        }
        "submodule" => rest.text("foreach"),
        "bisect" => rest.text("run") || rest.text("visualize") || rest.text("view") || rest.text("replay"),
        "diff" | "log" | "show" | "whatchanged" | "diff-tree" | "diff-files" | "diff-index"
        | "format-patch" | "blame" | "annotate" | "reflog" | "stash" | "range-diff" => {
            at(&["ext-diff", "textconv"])
        }
        "cat-file" => at(&["textconv", "filters"]),
        "config" => config_runs(words),
        "interpret-trailers" => at(&["trailer"]),
        "maintenance" => rest.text("start") || rest.text("register") || rest.text("run"),
        "lfs" => rest
            .operands()
            .next()
            .is_some_and(|w| matches!(w.text.as_str(), "install" | "custom" | "standalone-file")),
        "help" => letter(words, 'w', "") || at(&["web"]),
        _ => false,
    };
    helper || of_sub
}

/// `git config` that sets what executes, or opens an editor.
fn config_runs(words: &[Word]) -> bool {
    if config_is_read_only(words) {
        return false;
    }
    renames_to_what_runs(words)
        || words.iter().any(|w| {
            git_key_runs_program(&w.text)
                || w.dynamic
                || w.text == "edit"
                || w.text == "-e"
                || w.text == "--edit"
        })
}

/// `git config --rename-section old new`: keys that run nothing under their old names may do so under the new ones.
pub(crate) fn renames_to_what_runs(words: &[Word]) -> bool {
    let renames = |w: &Word| match w.text.strip_prefix("--") {
        Some(long) => long.len() >= 3 && "rename-section".starts_with(long),
        None => w.text == "rename-section",
    };
    if !words.iter().any(renames) {
        return false;
    }
    words.iter().rfind(|w| !w.text.starts_with('-')).is_none_or(|to| {
        let section = to.text.to_lowercase();
        let name = section.split('.').next().unwrap_or_default();
        to.dynamic || git_section_runs_program(name)
    })
}

/// Whether `git config` only reads: by an option, or by its first word. A value that is called `list` is a value.
pub(crate) fn config_is_read_only(words: &[Word]) -> bool {
    let first = words.iter().find(|w| !w.text.starts_with('-')).map_or("", |w| w.text.as_str());
    let option = |t: &str| {
        matches!(
            t,
            "--get"
                | "--get-all"
                | "--get-regexp"
                | "--get-urlmatch"
                | "--get-color"
                | "--get-colorbool"
                | "--list"
                | "-l"
        )
    };
    let writes = |t: &str| {
        matches!(t, "--add" | "--replace-all" | "--unset" | "--unset-all" | "--edit" | "-e" | "set" | "unset")
    };
    matches!(first, "get" | "list")
        || words.iter().any(|w| option(&w.text)) && !words.iter().any(|w| writes(&w.text))
}

/// Options by which git writes to a place of their own.
fn writes_outside(sub: &str, rest: &Args<'_>, location: Location<'_>) -> Option<String> {
    let words = rest.words;
    let value = |short: Option<char>, name: &str| {
        words.iter().enumerate().find_map(|(i, w)| {
            let next = || words.get(i + 1).cloned();
            if let Some(t) = w.text.strip_prefix("--") {
                let (n, v) = t.split_once('=').map_or((t, None), |(n, v)| (n, Some(v)));
                return (!n.is_empty() && name.starts_with(n)).then(|| match v {
                    Some(v) => Word { text: v.to_owned(), ..w.clone() },
                    None => next().unwrap_or_default(),
                });
            }
            let c = short?;
            let t = w.text.strip_prefix('-')?;
            let at = t.find(c)?;
            let joined = &t[at + 1..];
            if joined.is_empty() { next() } else { Some(Word { text: joined.to_owned(), ..w.clone() }) }
        })
    };
    let outside = |w: Word| !location.inside(&w);
    let out = match sub {
        // What it puts in front of each name need not be a folder.
        "checkout-index" => value(None, "prefix"),
        "archive" => value(Some('o'), "output").filter(|w| outside(w.clone())),
        "format-patch" => value(Some('o'), "output-directory").filter(|w| outside(w.clone())),
        "diff" | "log" | "show" | "whatchanged" => value(None, "output").filter(|w| outside(w.clone())),
        "apply" | "am" => value(None, "directory")
            .filter(|w| outside(w.clone()))
            .or_else(|| words.iter().find(|w| w.text.starts_with("--unsafe")).cloned()),
        "fast-export" => value(None, "export-marks").filter(|w| outside(w.clone())),
        "worktree" => words
            .iter()
            .skip_while(|w| w.text != "add" && w.text != "move")
            .filter(|w| !w.text.starts_with('-'))
            .nth(1)
            .filter(|w| outside((*w).clone()))
            .cloned(),
        "clone" => words
            .iter()
            .filter(|w| !w.text.starts_with('-'))
            .nth(1)
            .filter(|w| outside((*w).clone()))
            .cloned()
            .or_else(|| value(None, "separate-git-dir").filter(|w| outside(w.clone()))),
        "init" | "init-db" => words
            .iter()
            .find(|w| !w.text.starts_with('-') && outside((*w).clone()))
            .cloned()
            .or_else(|| value(None, "separate-git-dir").filter(|w| outside(w.clone()))),
        "bugreport" | "diagnose" => value(Some('o'), "output-directory").filter(|w| outside(w.clone())),
        "mailsplit" | "bundle" | "unpack-file" => words
            .iter()
            .skip(1)
            .find(|w| !w.text.starts_with('-') && w.text.contains('/') && outside((*w).clone()))
            .cloned(),
        _ => None,
    };
    out.map(|_| "git writes outside its own data".to_owned())
}

/// What a command of git throws away or overwrites.
fn loses(sub: &str, rest: &Args<'_>, yes: impl Fn(bool, &str) -> Option<String>) -> Option<String> {
    match sub {
        "push" => yes(
            rest.has('f', "force")
                || rest.any(|t| {
                    t.starts_with("--force")
                        || t.starts_with('+')
                        || t.starts_with(':')
                        || t == "--mirror"
                        || t == "--prune"
                        || t == "--delete"
                })
                || rest.has('d', "delete"),
            "it overwrites or deletes remote history",
        ),
        "reset" => yes(
            rest.any(|t| matches!(t, "--hard" | "--merge" | "--keep") || t.starts_with("--har")),
            "it discards uncommitted changes",
        ),
        "clean" => yes(rest.has('f', "force"), "it deletes untracked files"),
        "checkout" | "restore" | "switch" => yes(
            rest.has('f', "force")
                || rest.text("--discard-changes")
                || rest.text(".")
                || (sub == "checkout" && rest.text("--"))
                || (sub == "restore" && !rest.text("--staged")),
            "it discards uncommitted changes",
        ),
        "stash" => yes(rest.text("drop") || rest.text("clear"), "it discards stashed changes"),
        "branch" => yes(
            rest.has('D', "")
                || rest.has('f', "force")
                || (rest.has('d', "delete") && rest.has('f', "force")),
            "it deletes a branch",
        ),
        "tag" => yes(rest.has('d', "delete") || rest.has('f', "force"), "it deletes or moves a tag"),
        "update-ref" | "reflog" | "gc" | "prune" | "filter-branch" | "filter-repo" | "replace"
        | "symbolic-ref" => yes(
            match sub {
                "reflog" => rest.text("expire") || rest.text("delete"),
                "gc" => rest.any(|t| t.starts_with("--prune")) || rest.text("--aggressive"),
                "symbolic-ref" => rest.operands().count() > 1,
                _ => true,
            },
            "it rewrites history",
        ),
        "worktree" => yes(rest.text("remove") && rest.has('f', "force"), "it deletes a work tree"),
        "rm" => yes(rest.has('r', "") && rest.operands().any(broad), "it deletes a whole tree"),
        "remote" => yes(
            rest.text("set-url") || rest.text("remove") || rest.text("rm") || rest.text("add"),
            "it changes a remote address",
        ),
        _ => None,
    }
}
