//! Uses of git that only look.

use std::path::PathBuf;

use super::inside;
use crate::paths::Roots;
use crate::shell::{HOLE, Word};

/// True when git only looks, at this repository.
pub(super) fn git(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
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
    ];
    let mut rest = args;
    while rest
        .first()
        .is_some_and(|w| w.plain() && matches!(w.text.as_str(), "--no-pager" | "--no-optional-locks" | "-P"))
    {
        rest = &rest[1..];
    }
    let Some((sub, rest)) = rest.split_first() else { return false };
    if !sub.plain() || rest.iter().any(|w| w.dynamic || w.text.contains(HOLE)) {
        return false;
    }
    let (options, operands): (Vec<&Word>, Vec<&Word>) =
        rest.iter().partition(|w| w.text.starts_with('-') && w.text != "--");
    let letters = match sub.text.as_str() {
        "status" => "sbuvz",
        "diff" | "show" | "log" | "shortlog" => "nspuwbUSGiEFLMCRzacemtv0W",
        "blame" | "annotate" => "Lwbes0",
        "branch" => "avrvi",
        "tag" => "ln0",
        "ls-files" => "cdmosz",
        "rev-parse" | "describe" | "ls-tree" | "merge-base" | "rev-list" | "name-rev" | "cat-file" => {
            "rztpsn0"
        }
        "remote" => "v",
        "stash" => "p",
        "version" | "--version" => "",
        "config" => return config_reads(rest),
        _ => return false,
    };
    let known = options.iter().all(|w| {
        let t = w.text.as_str();
        if t.contains("%G") || !w.plain() {
            return false;
        }
        match t.strip_prefix("--") {
            Some(_) => COMMON.contains(&t.split('=').next().unwrap_or(t)),
            None => {
                t[1..]
                    .chars()
                    .next()
                    .is_some_and(|c| letters.contains(c) || c.is_ascii_digit() && letters.contains('0'))
                    && (matches!(
                        t.as_bytes().get(1),
                        Some(b'S' | b'G' | b'L' | b'U' | b'n' | b'M' | b'C' | b'u')
                    ) || t[1..].chars().all(|c| letters.contains(c) || c.is_ascii_digit()))
            }
        }
    });
    let paths = operands.iter().all(|w| w.text == "--" || (!w.glob && inside(w, roots, folders)));
    let count = operands.len();
    let lists = |w: &str| options.iter().any(|o| o.text == w || o.text.starts_with(&format!("{w}=")));
    let shape = match sub.text.as_str() {
        "branch" => {
            count == 0 || ["--list", "--merged", "--no-merged", "--contains"].iter().any(|w| lists(w))
        }
        "tag" => count == 0 || lists("-l") || lists("--list"),
        "remote" => count == 0,
        "stash" => operands.first().is_some_and(|w| matches!(w.text.as_str(), "list" | "show")),
        "cat-file" => !lists("--textconv") && !lists("--filters"),
        _ => true,
    };
    known && paths && shape
}

fn config_reads(rest: &[Word]) -> bool {
    let [first, keys @ ..] = rest else { return false };
    match first.text.as_str() {
        "--list" | "-l" | "list" => keys.is_empty(),
        "--get" | "get" => keys.len() == 1 && keys[0].plain() && !keys[0].text.starts_with('-'),
        _ => false,
    }
}
