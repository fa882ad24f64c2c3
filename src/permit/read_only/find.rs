//! Uses of find that only list.

use std::path::PathBuf;

use super::inside;
use crate::paths::Roots;
use tiller_shell::Word;

/// True when find only lists names below places of the workspace.
pub(super) fn find(args: &[Word], roots: &Roots, folders: &[PathBuf]) -> bool {
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
        "-printf",
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
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let t = word.text.as_str();
        // What it runs is a part of its own, and judged there.
        if word.plain() && t == "-exec" && !value {
            places = false;
            if !words.by_ref().any(|w| matches!(w.text.as_str(), ";" | "+")) {
                return false;
            }
            continue;
        }
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
                    | "-printf"
            );
        } else if !places || !inside(word, roots, folders) {
            return false;
        }
    }
    true
}
