//! Files and folders of hooks that the configuration of a repository names. What they say
//! decides what a later `git` runs.

use std::path::{Path, PathBuf};

use super::repository::OBEYED;

/// Included files of included files.
const DEPTH: u32 = 4;
/// Submodules that are looked at.
const MODULES: usize = 200;

/// Files and folders that decide what git runs in the repository of this `.git` folder, beside those that every
/// repository has. Read before the command, when the configuration can still be trusted. `top`: a folder of its files that does
/// not lie around it.
pub(super) fn protected(git: &Path, top: Option<&Path>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if git.is_dir() {
        for file in ["config", "config.worktree"] {
            configuration(&git.join(file), git, DEPTH, &mut all);
            if let Some(top) = top {
                // Relative folders of hooks are found as from a git folder there.
                configuration(&git.join(file), &top.join(".git"), DEPTH, &mut all);
            }
        }
        modules(&git.join("modules"), &mut all);
        worktrees(git, &mut all);
    }
    all
}

/// The files of linked worktrees that decide what git runs there.
fn worktrees(git: &Path, all: &mut Vec<PathBuf>) {
    for worktree in entries(&git.join("worktrees")) {
        all.extend(["commondir", "gitdir", "config.worktree"].map(|name| worktree.join(name)));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).take(MODULES).collect()
}

/// The repositories of submodules, whose names may have several parts.
fn modules(folder: &Path, all: &mut Vec<PathBuf>) {
    for module in entries(folder) {
        if all.len() > MODULES * OBEYED.len() {
            return;
        }
        if module.join("HEAD").is_file() {
            all.extend(OBEYED.iter().map(|name| module.join(name)));
            for file in ["config", "config.worktree"] {
                configuration(&module.join(file), &module, DEPTH, all);
            }
            worktrees(&module, all);
            modules(&module.join("modules"), all);
        } else if module.symlink_metadata().is_ok_and(|m| m.is_dir()) {
            modules(&module, all);
        }
    }
}

/// Collects the files that this file of settings includes, and the folder of hooks that it names.
fn configuration(file: &Path, git: &Path, depth: u32, all: &mut Vec<PathBuf>) {
    let mut named = Named::default();
    named.read(file, depth);
    all.extend(named.files);
    // Relative to the folder in which hooks run.
    all.extend(named.hooks.iter().map(|hooks| resolve(hooks, git.parent().unwrap_or(git))));
}

/// Paths that the settings of a repository name.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Included files.
    pub(crate) files: Vec<PathBuf>,
    /// Folders of hooks, as they are written: [`Self::hooks_in`].
    hooks: Vec<String>,
    /// The folder of its files, as it is written.
    pub(crate) worktree: Option<String>,
}

impl Named {
    /// Returns the paths that are named in this `.git` folder.
    pub(crate) fn in_repository(git: &Path) -> Self {
        let mut named = Self::default();
        for file in ["config", "config.worktree"] {
            named.read(&git.join(file), DEPTH);
        }
        named
    }

    /// The folders of hooks, when hooks run in the parent of `git`, in the folder that it names, or in one of `worktrees`.
    pub(crate) fn hooks_in<'a>(
        &self,
        git: &Path,
        worktrees: impl IntoIterator<Item = &'a Path>,
    ) -> Vec<PathBuf> {
        if self.hooks.is_empty() {
            return Vec::new();
        }
        let own = self.worktree.as_ref().map(|tree| resolve(tree, git));
        let around = git.parent().map(Path::to_owned);
        let bases = own.into_iter().chain(around).chain(worktrees.into_iter().map(Path::to_owned));
        bases.flat_map(|base| self.hooks.iter().map(move |hooks| resolve(hooks, &base))).collect()
    }

    fn read(&mut self, file: &Path, depth: u32) {
        for (section, name, value) in settings(file) {
            match (section.as_str(), name.as_str()) {
                ("include" | "includeif", "path") => {
                    let path = resolve(&value, file.parent().unwrap_or(file));
                    if !self.files.contains(&path) {
                        self.files.push(path.clone());
                        if depth > 0 {
                            self.read(&path, depth - 1);
                        }
                    }
                }
                ("core", "hookspath") => self.hooks.push(value),
                ("core", "worktree") => self.worktree = Some(value),
                _ => {}
            }
        }
    }
}

/// Files that git reads because this file of the person's settings, or one that it includes, names them.
pub(crate) fn named(file: &Path) -> Vec<PathBuf> {
    fn look(file: &Path, depth: u32, all: &mut Vec<PathBuf>) {
        for (section, name, value) in settings(file) {
            let path = resolve(&value, file.parent().unwrap_or(file));
            match (section.as_str(), name.as_str()) {
                ("include" | "includeif", "path") if depth > 0 && !all.contains(&path) => {
                    all.push(path.clone());
                    look(&path, depth - 1, all);
                }
                ("core", "attributesfile" | "excludesfile")
                | ("commit", "template")
                | ("mailmap", "file") => {
                    all.push(path);
                }
                _ => {}
            }
        }
    }
    let mut all = Vec::new();
    look(file, DEPTH, &mut all);
    // No setting of these opens a folder.
    all.retain(|path| path.is_file());
    all
}

/// The settings of a file: section, name, value.
pub(super) fn settings(file: &Path) -> Vec<(String, String, String)> {
    let Ok(text) = std::fs::read(file) else { return Vec::new() };
    let (mut section, mut all) = (String::new(), Vec::new());
    for line in String::from_utf8_lossy(&text).lines() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            section = head.split([' ', ']']).next().unwrap_or_default().to_lowercase();
        }
        // A setting may stand on the line of its section.
        let setting = line.rsplit_once(']').filter(|_| line.starts_with('[')).map_or(line, |(_, rest)| rest);
        if let Some((name, value)) = setting.split_once('=') {
            let value = value.trim().trim_matches('"').to_owned();
            all.push((section.clone(), name.trim().to_lowercase(), value));
        }
    }
    all
}

fn resolve(value: &str, folder: &Path) -> PathBuf {
    match (value.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.join(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_hook_folders_and_submodules_are_found() {
        let tmp = tempfile::tempdir().unwrap();
        let git = tmp.path().join(".git");
        std::fs::create_dir_all(git.join("modules/a/b")).unwrap();
        for folder in ["worktrees/w", "modules/a/b/worktrees/m"] {
            std::fs::create_dir_all(git.join(folder)).unwrap();
        }
        std::fs::write(git.join("modules/a/b/HEAD"), "x").unwrap();
        let config = "[core]\n\tbare = false\n\tHooksPath = tools/hooks\n[include]\n path = extra\n\
                      [includeIf \"gitdir:~/x/\"] path = \"../team.cfg\"\n[remote \"x\"]\n\turl = y\n";
        std::fs::write(git.join("config"), config).unwrap();
        std::fs::write(git.join("extra"), "[include]\npath = deeper\n[include]\npath = extra\n").unwrap();
        let found = protected(&git, Some(&tmp.path().join("linked")));
        for name in [
            "extra",
            "deeper",
            "../team.cfg",
            "modules/a/b/hooks",
            "modules/a/b/config",
            "modules/a/b/config.worktree",
            "modules/a/b/commondir",
            "modules/a/b/worktrees/m/commondir",
            "worktrees/w/gitdir",
        ] {
            assert!(found.contains(&git.join(name)), "{name}: {found:?}");
        }
        assert!(found.contains(&tmp.path().join("tools/hooks")), "{found:?}");
        assert!(found.contains(&tmp.path().join("linked/tools/hooks")), "{found:?}");
    }
}
