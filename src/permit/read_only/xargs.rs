//! Words that a program gets through `xargs`: `find ... | xargs wc -l`.

use std::path::{Path, PathBuf};

use super::inside;
use super::requirements::Requirement;
use crate::paths::Roots;
use tiller_shell::{Analysis, HOLE, Part, Role, Word};

/// Most entries that are read below the start.
const MOST: usize = 30_000;

/// True for a part that gets words from `xargs`.
pub(super) fn is_run_by_xargs(part: &Part) -> bool {
    part.role == Role::Command && part.wrappers.last().is_some_and(|w| w == "xargs")
}

/// The part with its fixed words only. `None`: a word from `xargs` is a piece of a larger word, or a word comes from
/// elsewhere, for instance a variable that holds a path.
pub(super) fn fixed_words(part: &Part) -> Option<Part> {
    let unknown = |w: &Word| w.dynamic || w.splits;
    let whole = |w: &&Word| w.added && w.text.chars().eq([HOLE]);
    if !part.args().iter().filter(|w| unknown(w)).all(|w| whole(&w)) {
        return None;
    }
    let mut known = part.clone();
    known.argv.retain(|w| !unknown(w));
    Some(known)
}

/// Whether the options of `xargs` itself do nothing but pass words on.
pub(super) fn only_passes_on(xargs: &Part) -> bool {
    let mut words = xargs.args().iter();
    while let Some(word) = words.next() {
        let t = word.text.as_str();
        if !t.starts_with('-') {
            return true;
        }
        if !word.plain() {
            return false;
        }
        let fine = match t {
            "-0" | "-r" | "-t" | "-x" | "--null" | "--no-run-if-empty" | "--verbose" | "--exit" => true,
            "-n" | "-P" | "-L" | "-s" | "-I" | "-d" => words.next().is_some_and(Word::plain),
            _ => {
                ["-n", "-P", "-L", "-s"].iter().any(|o| {
                    t.strip_prefix(o).is_some_and(|v| !v.is_empty() && v.chars().all(|c| c.is_ascii_digit()))
                }) || matches!(t, "-I{}" | "-I%" | "-0r" | "-r0" | "-0n1" | "-d\\n")
            }
        };
        if !fine {
            return false;
        }
    }
    false
}

/// What else must hold when the part gets plain names of files of the workspace. `None`: it can get something else.
pub(super) fn file_names(
    analysis: &Analysis,
    part: &Part,
    roots: &Roots,
    folders: &[PathBuf],
) -> Option<Vec<Requirement>> {
    let (from, to) = part.piped_from?;
    let [lister] = analysis.parts.get(from..to)? else { return None };
    let operands = |skip: usize| {
        let words: Vec<&Word> =
            lister.args().iter().filter(|w| !w.text.starts_with('-')).skip(skip).collect();
        words
    };
    let option = |letter: char, long: &[&str]| {
        lister.args().iter().any(|w| {
            long.contains(&w.text.as_str())
                || (w.text.starts_with('-') && !w.text.starts_with("--") && w.text[1..].contains(letter))
        })
    };
    let base = lister.base();
    let starts: Vec<&Word> = match base.as_str() {
        "find" => {
            let prints =
                lister.args().iter().all(|w| !matches!(w.text.as_str(), "-ls" | "-printf" | "-exec"));
            if !prints {
                return None;
            }
            lister.args().iter().take_while(|w| !w.text.starts_with(['-', '!', '('])).collect()
        }
        "fd" => operands(1),
        "rg" if lister.args().iter().any(|w| w.text == "--files") => operands(0),
        "rg" | "grep" if option('l', &["--files-with-matches", "--files-without-match"]) => operands(1),
        "git" if matches!(operands(0).first()?.text.as_str(), "ls-files") => {
            let others = lister.args().iter().any(|w| w.text.starts_with('-') && w.text != "-z");
            return (!others).then(|| vec![Requirement::Tracked]);
        }
        _ => return None,
    };
    plain_below(starts, roots, folders).map(|()| vec![])
}

/// `Some` when every name below these folders (without any: the current one) is one plain word, and leads nowhere out.
pub(super) fn plain_below(starts: Vec<&Word>, roots: &Roots, folders: &[PathBuf]) -> Option<()> {
    let here = Word::fixed(".");
    let starts = if starts.is_empty() { vec![&here] } else { starts };
    let mut left = MOST;
    for start in starts {
        let paths = roots.candidates(start, folders).filter(|_| inside(start, roots, folders))?;
        if start.text.starts_with('-') || !plain_name(&start.text) {
            return None;
        }
        if !paths.iter().all(|p| tree_is_plain(p, roots, &mut left)) {
            return None;
        }
    }
    Some(())
}

/// A text that is one word to `xargs`, and no option.
pub(super) fn plain_name(name: &str) -> bool {
    !name.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '\\'))
        && !name.split('/').any(|part| part.starts_with('-'))
}

/// Whether every name below `start` is one plain word, and no link below it leads out of the workspace.
fn tree_is_plain(start: &Path, roots: &Roots, left: &mut usize) -> bool {
    let mut open = vec![start.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let Ok(name) = entry.file_name().into_string() else { return false };
            let Ok(kind) = entry.file_type() else { return false };
            if !plain_name(&name) || kind.is_symlink() && !roots.inside(&entry.path()) {
                return false;
            }
            if kind.is_dir() {
                open.push(entry.path());
            }
        }
    }
    true
}

/// Whether each of the files that git tracks is one plain word to `xargs`, and a file of the workspace.
pub(super) fn tracked_are_plain(names: &[PathBuf], folder: &Path, roots: &Roots) -> bool {
    names.len() <= MOST
        && names.iter().all(|name| {
            name.to_str().is_some_and(plain_name)
                && name.is_relative()
                && !name.components().any(|c| c == std::path::Component::ParentDir)
                && roots.inside(&folder.join(name))
        })
}
