//! What else must hold for a command whose words are read-only: nothing around it makes its programs run others.

use std::path::{Path, PathBuf};

use super::{program, xargs};
use crate::paths::Roots;
use crate::surroundings::{GitConfiguration, ShellState, Surroundings, Variables, git_variables};

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// This program is one of the system, and no configuration makes it run another.
    Program(String),
    /// Git runs no other program; with what it reads.
    Git(GitUse),
    /// The names that git lists are plain names.
    Tracked,
    /// It runs in the sandbox, which lets what else it may run neither write nor send.
    Sandbox,
}

/// What a git command reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GitUse {
    /// Reads the content of files, so that filters may run.
    pub(crate) content: bool,
    /// Compares files, so that an external diff may run.
    pub(crate) compare: bool,
    /// Folders that `-C` leads to, in their order.
    pub(crate) folders: Vec<String>,
}

/// Where a command runs, and in which shell.
pub(crate) struct RunContext<'a> {
    pub(crate) roots: &'a Roots,
    pub(crate) folders: &'a [PathBuf],
    pub(crate) around: Option<&'a dyn Surroundings>,
    /// The shell of this program that runs it. `None`: another program runs it, and its variables cannot be set.
    pub(crate) shell: Option<&'a ShellState>,
    /// Whether what runs unasked runs in the sandbox.
    pub(crate) sandboxed: fn() -> bool,
}

impl RunContext<'_> {
    /// Checks the requirements. Gives the variables that keep the command from running other programs; with `bare`,
    /// none may be needed.
    ///
    /// # Errors
    /// The requirement that is not met, or cannot be checked, in words.
    pub(crate) fn check(&self, needs: &[Requirement], bare: bool) -> Result<Variables, String> {
        let around =
            self.around.ok_or_else(|| "the programs that it would start are not known".to_owned())?;
        let first;
        let shell = match self.shell {
            Some(shell) => shell,
            None => {
                first = around.shell();
                &first
            }
        };
        let bare = bare || self.shell.is_none();
        let mut out = Variables::new();
        let mut settings = Variables::new();
        let mut git = None;
        let mut seen: Vec<(PathBuf, GitConfiguration)> = Vec::new();
        for need in needs {
            match need {
                Requirement::Program(written) => {
                    let file = program::find(written, shell, self.folders, self.roots)?;
                    let name = written.rsplit('/').next().unwrap_or(written);
                    match name {
                        "git" => git = file.or(git),
                        // Not another version from the network.
                        "go" if bare => return Err("go may load another version of itself".into()),
                        "go" => set(&mut out, "GOTOOLCHAIN", "local"),
                        "cargo" | "rustc" if !bare => set(&mut out, "RUSTUP_AUTO_INSTALL", "0"),
                        "rg" if !bare => set(&mut out, "RIPGREP_CONFIG_PATH", ""),
                        // It may name programs to run.
                        "tar" if !bare => set(&mut out, "TAR_OPTIONS", ""),
                        _ => {}
                    }
                }
                Requirement::Git(used) => {
                    let git = git.clone().unwrap_or_else(|| "git".into());
                    for folder in self.git_folders(used)? {
                        if !seen.iter().any(|(f, _)| *f == folder) {
                            seen.push((folder.clone(), around.git(&folder, &git)?));
                        }
                        let Some((_, found)) = seen.iter().find(|(f, _)| *f == folder) else { continue };
                        let why = found
                            .any
                            .as_ref()
                            .or(found.content.as_ref().filter(|_| used.content))
                            .or(found.compare.as_ref().filter(|_| used.compare));
                        if let Some(why) = why {
                            return Err(why.clone());
                        }
                        if bare && !found.quiet {
                            return Err("git's configuration names programs that it may run".into());
                        }
                        for setting in &found.settings {
                            if !settings.contains(setting) {
                                settings.push(setting.clone());
                            }
                        }
                    }
                }
                // What a rule allows beside it runs outside of the sandbox.
                Requirement::Sandbox if bare || !(self.sandboxed)() => {
                    return Err("it may run what the project brings, which needs the sandbox".into());
                }
                Requirement::Sandbox => {}
                Requirement::Tracked => {
                    let git = git.clone().unwrap_or_else(|| "git".into());
                    for folder in self.folders {
                        let names = around.tracked(folder, &git)?;
                        if !xargs::tracked_are_plain(&names, folder, self.roots) {
                            return Err("file names here may be read as options or as other files".into());
                        }
                    }
                }
            }
        }
        if bare {
            return Ok(Variables::new());
        }
        if needs.iter().any(|n| matches!(n, Requirement::Git(_) | Requirement::Tracked)) {
            out.extend(git_variables(&settings));
        }
        Ok(out)
    }

    /// The folders in which git looks for its repository.
    fn git_folders(&self, used: &GitUse) -> Result<Vec<PathBuf>, String> {
        let mut folders = self.folders.to_vec();
        for to in &used.folders {
            folders = folders.iter().map(|f| crate::paths::normal(&f.join(Path::new(to)))).collect();
        }
        if folders.iter().all(|f| self.roots.inside(f)) {
            Ok(folders)
        } else {
            Err("git is directed to another folder".into())
        }
    }
}

fn set(out: &mut Variables, name: &str, value: &str) {
    if !out.iter().any(|(n, _)| n == name) {
        out.push((name.to_owned(), value.to_owned()));
    }
}
