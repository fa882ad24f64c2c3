//! Instructions that a project brings: AGENTS.md from the repository's root down to the folder, CLAUDE.md
//! where a folder has no AGENTS.md. They are text for the model and have no power over rules.

use std::path::{Path, PathBuf};

use tiller_config::PluginPlace;
use tiller_fs::beneath;
use tiller_tool::Unreadable;

/// Bytes read of one file.
const FILE: u64 = 128 << 10;
/// Most parent folders that are searched.
const DEPTH: usize = 64;

/// Replaces the text of a file that a permission rule forbids to read.
pub(crate) const FORBIDDEN: &str = "Not shown: a permission rule forbids reading this file.";
/// Replaces the text of a file that the repository does not hold. It may be any file of the machine, and the user did not
/// agree to it.
const OUTSIDE: &str = "Not shown: it is a link out of the repository, which is not followed.";
/// Replaces the text of a file that was swapped while it was read.
const SWAPPED: &str = "Not shown: it changed while it was being opened.";
/// Texts of files that are left out though no rule forbids them, and the reason for the user.
pub(crate) const WITHHELD: &[(&str, &str)] = &[
    (OUTSIDE, "it is a link out of the repository; put a file in its place, or let a tool read it"),
    (SWAPPED, "it changed while it was being opened"),
];

/// One file with instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub path: PathBuf,
    pub text: String,
}

/// The top of the git repository that holds `folder`; `folder` itself when there is none.
pub(crate) fn repository(folder: &Path) -> PathBuf {
    folder
        .ancestors()
        .take(DEPTH)
        .find(|f| f.join(".git").exists())
        .map_or_else(|| folder.to_owned(), Path::to_owned)
}

/// Instruction files from the repository's root (first) down to `folder` (last). A file that is a link out of the repository
/// is not read; its text says so.
pub(crate) fn instructions(folder: &Path, rule: Option<&Unreadable>) -> Vec<Instructions> {
    let root = repository(folder);
    let mut folders: Vec<&Path> = folder.ancestors().take_while(|f| f.starts_with(&root)).collect();
    folders.reverse();
    folders
        .into_iter()
        .filter_map(|f| {
            ["AGENTS.md", "CLAUDE.md"].iter().find_map(|name| read(&f.join(name), Some(&root), rule))
        })
        .collect()
}

/// A regular file's text, up to a limit; `None` when it is absent, empty or no regular file. What is opened is what was
/// judged: the file to which links lead. `within`: it must be in this folder; `rule`: forbids reading a path.
pub(crate) fn read(path: &Path, within: Option<&Path>, rule: Option<&Unreadable>) -> Option<Instructions> {
    let judged = path.canonicalize().ok().filter(|path| path.is_file())?;
    let said = |text: String| Some(Instructions { path: path.to_owned(), text });
    if rule.is_some_and(|rule| rule(path).or_else(|| rule(&judged)).is_some()) {
        return said(FORBIDDEN.into());
    }
    let within = within.map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
    if within.is_some_and(|folder| !judged.starts_with(folder)) {
        return said(OUTSIDE.into());
    }
    match beneath::read(&judged, FILE) {
        Ok(bytes) => of_bytes(path, &bytes),
        Err(e) if e.to_string().contains(beneath::CHANGED) => said(SWAPPED.into()),
        Err(_) => None,
    }
}

/// The text of a file of a plugin, up to the same limit; `None` also when it is not as the user agreed to it.
pub(crate) fn read_of_plugin(plugin: &PluginPlace, below: &str) -> Option<Instructions> {
    let mut bytes = plugin.read(below)?;
    bytes.truncate(usize::try_from(FILE).unwrap_or(usize::MAX));
    of_bytes(&plugin.folder.join(below), &bytes)
}

fn of_bytes(path: &Path, bytes: &[u8]) -> Option<Instructions> {
    let text = String::from_utf8_lossy(bytes).trim().to_owned();
    (!text.is_empty()).then(|| Instructions { path: path.to_owned(), text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_goes_from_the_root_down_and_agents_md_wins_in_its_folder() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |p: &str| tmp.path().join(p);
        std::fs::create_dir_all(at("repo/.git")).unwrap();
        std::fs::create_dir_all(at("repo/a/b/c")).unwrap();
        for (path, text) in [
            ("AGENTS.md", "outside the repository"),
            ("repo/AGENTS.md", "root"),
            ("repo/CLAUDE.md", "not read: AGENTS.md is there"),
            ("repo/a/CLAUDE.md", "from claude"),
            ("repo/a/b/AGENTS.md", "   "),
            ("repo/a/b/c/AGENTS.md", "leaf"),
            ("repo/a/b/c/d.md", "no"),
        ] {
            std::fs::write(at(path), text).unwrap();
        }
        let got: Vec<String> = instructions(&at("repo/a/b/c"), None).into_iter().map(|i| i.text).collect();
        assert_eq!(got, ["root", "from claude", "leaf"]);
    }

    #[test]
    fn special_and_huge_files_do_no_harm() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir(tmp.path().join("AGENTS.md")).unwrap();
        assert!(instructions(tmp.path(), None).is_empty());
        let huge = std::fs::File::create(tmp.path().join("CLAUDE.md")).unwrap();
        huge.set_len(4 << 30).unwrap();
        assert!(instructions(tmp.path(), None)[0].text.len() as u64 <= FILE);
    }
}
