//! Uses of git that only look.

use std::path::PathBuf;

use super::requirements::GitUse;
use super::{glob, inside};
use crate::paths::{Roots, normal};
use tiller_shell::{HOLE, Word};

/// Subcommands that can only look, with the letters of their short options; a `0` stands for any number.
pub(super) const SUBCOMMANDS: &[(&str, &str)] = &[
    ("status", "sbuvz"),
    ("diff", COMPARES),
    ("show", COMPARES),
    ("log", COMPARES),
    ("shortlog", COMPARES),
    ("reflog", "ns0"),
    ("grep", "nilwcFEPGeqhHovIWpLABC0a"),
    ("blame", "LwbesMC0"),
    ("annotate", "LwbesMC0"),
    ("branch", "avrvi"),
    ("tag", "ln0"),
    ("ls-files", "cdmoszvt"),
    ("for-each-ref", "qvsd"),
    ("show-ref", "qvsd"),
    ("check-ignore", "qvsd"),
    ("symbolic-ref", "q"),
    ("count-objects", "vH"),
    ("worktree", "vz"),
    ("rev-parse", NAMES),
    ("describe", NAMES),
    ("ls-tree", NAMES),
    ("merge-base", NAMES),
    ("rev-list", NAMES),
    ("name-rev", NAMES),
    ("cat-file", NAMES),
    ("remote", "v"),
    ("cherry", "v"),
    ("diff-tree", "nspurz"),
    ("stash", "p"),
    ("version", ""),
    ("--version", ""),
];

const COMPARES: &str = "nspuwbUSGiEFLMCRzacemtv0W";
const NAMES: &str = "rztpsn0";

/// What git reads when it only looks, at this repository. `None`: it may do more.
pub(super) fn git(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> Option<GitUse> {
    const COMMON: &[&str] = &[
        "--stat",
        "--oneline",
        "--graph",
        "--all",
        "--decorate",
        "--no-decorate",
        "--patch",
        "--no-patch",
        "--name-only",
        "--name-status",
        "--cached",
        "--staged",
        "--color",
        "--no-color",
        "--pretty",
        "--format",
        "--since",
        "--until",
        "--after",
        "--before",
        "--author",
        "--grep",
        "--reverse",
        "--follow",
        "--merges",
        "--no-merges",
        "--first-parent",
        "--abbrev",
        "--abbrev-commit",
        "--date",
        "--max-count",
        "--skip",
        "--summary",
        "--shortstat",
        "--numstat",
        "--diff-filter",
        "--no-renames",
        "--ignore-all-space",
        "--ignore-space-change",
        "--ignore-blank-lines",
        "--unified",
        "--short",
        "--porcelain",
        "--branch",
        "--untracked-files",
        "--list",
        "--show-toplevel",
        "--show-current",
        "--abbrev-ref",
        "--verify",
        "--is-inside-work-tree",
        "--others",
        "--exclude-standard",
        "--modified",
        "--deleted",
        "--tags",
        "--no-ext-diff",
        "--no-textconv",
        "--word-diff",
        "--check",
        "--count",
        "--left-right",
        "--show-prefix",
        "--long",
        "--always",
        "--merged",
        "--no-merged",
        "--contains",
        "--sort",
        "--ignored",
        "--function-context",
        "--minimal",
        "--patience",
        "--histogram",
        "--raw",
        "--full-index",
        "--compact-summary",
        "--stage",
        "--show-cdup",
        "--is-bare-repository",
        "--is-inside-git-dir",
        "--symbolic-full-name",
        "--git-dir",
        "--git-common-dir",
        "--absolute-git-dir",
        "--exact-match",
        "--dirty",
        "--match",
        "--points-at",
        "--ancestry-path",
        "--is-ancestor",
        "--ignore-case",
        "--word-regexp",
        "--fixed-strings",
        "--extended-regexp",
        "--perl-regexp",
        "--line-number",
        "--files-with-matches",
        "--files-without-match",
        "--heading",
        "--break",
        "--show-function",
        "--untracked",
        "--heads",
        "--human-readable",
        "--numbered",
        "--committer",
        "--simplify-by-decoration",
        "--no-walk",
        "--line-porcelain",
        "--tree",
        "--size",
        "--ignore-submodules",
        "--directory",
        "--no-empty-directory",
        "--full-name",
        "--error-unmatch",
        "--eol",
        "--find-renames",
        "--find-copies",
        "--color-words",
        "--cc",
        "--topo-order",
        "--date-order",
        "--boundary",
        "--quiet",
        "--exit-code",
        "--and",
        "--or",
        "--no-commit-id",
        "--root",
    ];
    let mut rest = args;
    let mut used = GitUse::default();
    loop {
        match rest {
            [word, more @ ..]
                if word.plain()
                    && matches!(word.text.as_str(), "--no-pager" | "--no-optional-locks" | "-P") =>
            {
                rest = more;
            }
            [c, to, more @ ..] if c.plain() && c.text == "-C" && inside(to, roots, folders) => {
                used.folders.push(to.text.clone());
                rest = more;
            }
            _ => break,
        }
    }
    let (sub, rest) = rest.split_first()?;
    if !sub.plain() || rest.iter().any(|w| w.dynamic || w.text.contains(HOLE)) {
        return None;
    }
    // Names are judged in the folder that git is sent to.
    let moved: Vec<PathBuf>;
    let folders = if used.folders.is_empty() {
        folders
    } else {
        let to = |f: &PathBuf| used.folders.iter().fold(f.clone(), |f, to| normal(&f.join(to)));
        moved = folders.iter().map(to).collect();
        &moved
    };
    let lists = |w: &str| rest.iter().any(|o| o.text == w || o.text.starts_with(&format!("{w}=")));
    match sub.text.as_str() {
        "status" | "blame" | "annotate" | "ls-files" | "stash" | "describe" | "grep" => used.content = true,
        "diff" | "show" | "log" | "shortlog" | "reflog" | "cherry" | "diff-tree" => {
            used.content = true;
            used.compare = matches!(sub.text.as_str(), "diff" | "diff-tree") && !lists("--no-ext-diff");
        }
        _ => {}
    }
    used.compare |= sub.text == "stash" && !lists("--no-ext-diff");
    if matches!(sub.text.as_str(), "--help" | "-h") {
        return rest.is_empty().then_some(used);
    }
    if sub.text == "config" {
        return config_reads(rest).then_some(used);
    }
    let (options, operands): (Vec<&Word>, Vec<&Word>) =
        rest.iter().partition(|w| w.text.starts_with('-') && w.text != "--");
    let (_, letters) = SUBCOMMANDS.iter().find(|(name, _)| *name == sub.text)?;
    let known = options.iter().all(|w| {
        let t = w.text.as_str();
        if t.contains("%G") || !w.plain() {
            return false;
        }
        match t.strip_prefix("--") {
            Some(_) => COMMON.contains(&t.split('=').next().unwrap_or(t)) && long_value(t),
            None => short_option(&t[1..], letters, sub.text == "grep"),
        }
    });
    // What grep looks for is no path; a pattern of names is judged by what it stands for.
    let pattern = usize::from(sub.text == "grep");
    let paths = operands
        .iter()
        .skip(pattern)
        .all(|w| w.text == "--" || inside(w, roots, folders) || glob::inside(w, roots, folders));
    let count = operands.len();
    let shape = match sub.text.as_str() {
        "branch" => {
            count == 0 || ["--list", "--merged", "--no-merged", "--contains"].iter().any(|w| lists(w))
        }
        "tag" => count == 0 || lists("-l") || lists("--list"),
        "remote" => count == 0 || count == 2 && operands[0].text == "get-url",
        "stash" => operands.first().is_some_and(|w| matches!(w.text.as_str(), "list" | "show")),
        "worktree" => count == 1 && operands[0].text == "list",
        "symbolic-ref" => count == 1 && !lists("-d") && !lists("--delete"),
        "reflog" => operands
            .first()
            .is_none_or(|w| !matches!(w.text.as_str(), "expire" | "delete" | "drop" | "write")),
        "cat-file" => !lists("--textconv") && !lists("--filters"),
        _ => true,
    };
    (known && paths && shape).then_some(used)
}

/// A value that names no place outside; and none at all for what `rev-parse` prints and every other one takes.
fn long_value(option: &str) -> bool {
    const PRINTS: &[&str] = &["--git-dir", "--git-common-dir"];
    super::safe_value(option) && !PRINTS.iter().any(|p| option.starts_with(&format!("{p}=")))
}

/// Letters of one word. Those that take a value have it directly after them; any other letter may be an option of its
/// own (`-nO` starts a pager).
fn short_option(word: &str, letters: &str, greps: bool) -> bool {
    let known = |c: char| letters.contains(c) || c.is_ascii_digit() && letters.contains('0');
    let Some(first) = word.chars().next().filter(|c| known(*c)) else { return false };
    let value = &word[first.len_utf8()..];
    match first {
        'S' | 'G' | 'L' if !greps => true,
        'u' if matches!(value, "no" | "all" | "normal") => true,
        _ => value.chars().all(|c| known(c) || c.is_ascii_digit() || c == '%'),
    }
}

fn config_reads(rest: &[Word]) -> bool {
    let [first, keys @ ..] = rest else { return false };
    match first.text.as_str() {
        "--list" | "-l" | "list" => keys.is_empty(),
        "--get" | "get" => keys.len() == 1 && keys[0].plain() && !keys[0].text.starts_with('-'),
        // A key alone is read; with a value it is set. No subcommand has a point in its name.
        key => keys.is_empty() && first.plain() && !key.starts_with('-') && key.contains('.'),
    }
}
