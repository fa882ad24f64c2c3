//! Patterns of file names, judged by what they stand for now.

use std::path::{Component, Path, PathBuf};

use crate::paths::{Roots, normal};
use tiller_shell::Word;

/// Entries of folders that are looked at for one pattern.
const MOST: usize = 20_000;

/// True when the pattern stands for names of the workspace only, each of which leads to a file of the workspace and
/// cannot be taken for an option. What a pattern stands for may change between this look and the run; nothing that
/// runs unasked can change it.
pub(super) fn inside(word: &Word, roots: &Roots, folders: &[PathBuf]) -> bool {
    if word.dynamic || word.tilde || !word.glob {
        return false;
    }
    // What fits no name is handed on as it is written.
    let text = Path::new(&word.text);
    if word.text.starts_with('-') || text.components().any(|c| c == Component::ParentDir) {
        return false;
    }
    !folders.is_empty()
        && folders.iter().all(|folder| {
            roots.inside(&normal(&folder.join(text)))
                && matches(text, folder, roots).is_some_and(|found| {
                    found.iter().all(|(name, path)| !name.starts_with('-') && roots.inside(path))
                })
        })
}

/// The names as the shell would write them, with their paths. `None` when there are too many, or when the pattern
/// leads out of the workspace on its way.
fn matches(pattern: &Path, folder: &Path, roots: &Roots) -> Option<Vec<(String, PathBuf)>> {
    let mut found = vec![(String::new(), folder.to_owned())];
    let mut looked = 0;
    for component in pattern.components() {
        let part = match component {
            // Only a leading one is left by `components`; with it no name can be taken for an option.
            Component::CurDir => {
                found = vec![(".".to_owned(), folder.to_owned())];
                continue;
            }
            Component::RootDir => {
                found = vec![("/".to_owned(), PathBuf::from("/"))];
                continue;
            }
            Component::Normal(part) => part.to_str()?,
            _ => return None,
        };
        let mut next = Vec::new();
        for (name, path) in found {
            let spelled = |entry: &str| {
                if name.is_empty() || name == "/" {
                    format!("{name}{entry}")
                } else {
                    format!("{name}/{entry}")
                }
            };
            if !part.contains(['*', '?', '[']) {
                next.push((spelled(part), path.join(part)));
                continue;
            }
            if !roots.inside(&path) {
                return None;
            }
            let Ok(entries) = std::fs::read_dir(&path) else { continue };
            for entry in entries.flatten() {
                looked += 1;
                if looked > MOST {
                    return None;
                }
                let file = entry.file_name();
                // A name that is not UTF-8 is compared as if each odd byte were one character.
                let text = file.to_string_lossy();
                let hidden = text.starts_with('.') && !part.starts_with('.');
                if !hidden && may_match(part, &text) {
                    next.push((spelled(&text), path.join(&file)));
                }
            }
        }
        found = next;
    }
    Some(found)
}

/// Whether the shell may take `name` for `pattern`. In doubt it may: a bracket stands for any text.
fn may_match(pattern: &str, name: &str) -> bool {
    let mut wide = pattern.to_owned();
    if let (Some(open), Some(close)) = (pattern.find('['), pattern.rfind(']'))
        && open < close
    {
        wide.replace_range(open..=close, "*");
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (wide.chars().collect(), name.chars().collect());
    // The usual walk with one place to come back to.
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            back = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some((star, from)) = back {
            (p, n) = (star + 1, from + 1);
            back = Some((star, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Word {
        Word { glob: true, ..Word::fixed(text) }
    }

    #[test]
    fn a_pattern_is_judged_by_what_it_stands_for() {
        let tmp = tempfile::tempdir().unwrap();
        let top = tmp.path().canonicalize().unwrap();
        let (work, out) = (top.join("work"), top.join("out"));
        for folder in ["work/src", "work/odd", "work/leak", "work/far", "out"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        for file in [
            "work/src/a.rs",
            "work/src/b.rs",
            "work/odd/a.rs",
            "work/odd/-rf.rs",
            "out/secret.rs",
            "work/x.rs",
        ] {
            std::fs::write(top.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(out.join("secret.rs"), work.join("leak/c.rs")).unwrap();
        std::os::unix::fs::symlink(&out, work.join("far/out")).unwrap();
        let roots = Roots::new(&work, None, vec![]);
        let ok = |text: &str| inside(&glob(text), &roots, std::slice::from_ref(&work));
        for good in ["*.rs", "src/*.rs", "./src/*", "s?c/[ab].rs", "odd/*.rs", "src/*.none", "*/a.rs"] {
            assert!(ok(good), "{good}");
        }
        for bad in [
            "leak/*.rs",
            "far/*/*.rs",
            "far/*/secret.rs",
            "*/c.rs",
            "../*",
            "/etc/*",
            "-*",
            "src/../../*",
            "far/*",
        ] {
            assert!(!ok(bad), "{bad}");
        }
        // From within the folder the name stands first and is an option.
        assert!(!inside(&glob("*.rs"), &roots, &[work.join("odd")]));
        assert!(inside(&glob("./*.rs"), &roots, &[work.join("odd")]));
        let absolute = format!("{}/src/*.rs", work.display());
        assert!(ok(&absolute));
        // Not even a pattern, or only known when it runs.
        assert!(!inside(&Word::fixed("src/a.rs"), &roots, std::slice::from_ref(&work)));
    }

    #[test]
    fn in_doubt_a_name_matches() {
        for (pattern, name, want) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "a.rc", false),
            ("[!a]*", "a", true),
            ("a[", "a[", true),
            ("?", "ab", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("[[:alpha:]]x", "qx", true),
        ] {
            assert_eq!(may_match(pattern, name), want, "{pattern} {name}");
        }
    }
}
