//! Shell commands that would write a protected name.

use std::path::{Path, PathBuf};

use crate::danger::renames_to_what_runs;
use crate::paths::Roots;
use crate::protected::{Protected, glob_may_hit};
use crate::targets::{named_in_code, written};
use tiller_shell::{Analysis, Part, Word, git_key_runs_program};

impl Protected {
    /// Why a command may not run in any profile, because of a protected name that its words show it
    /// would write. `folder` is where it starts.
    ///
    /// A best effort: a program may write what its words do not tell. The kernel sandbox, where there
    /// is one, holds the rest.
    pub fn check_command(&self, roots: &Roots, analysis: &Analysis, folder: &Path) -> Option<String> {
        let folders = roots.folders(analysis, folder);
        let mut targets: Vec<Word> =
            analysis.all_redirects().filter(|r| r.writes()).map(|r| r.target.clone()).collect();
        for part in &analysis.parts {
            if let Some(why) = git_config(part) {
                return Some(why);
            }
            targets.extend(written(part));
            targets.extend(named_in_code(part));
        }
        // `cd .g*t; touch x`
        if !targets.is_empty()
            && let Some(to) = analysis
                .parts
                .iter()
                .filter(|p| matches!(p.base().as_str(), "cd" | "pushd"))
                .flat_map(Part::args)
                .find(|w| w.glob)
        {
            targets.push(to.clone());
        }
        // Where the folder is not known, relative names are judged as if they were in the workspace.
        let known = if folders.is_empty() { vec![roots.workspace.clone()] } else { folders };
        targets.iter().find_map(|w| self.check_word(roots, w, &known))
    }

    fn check_word(&self, roots: &Roots, word: &Word, folders: &[PathBuf]) -> Option<String> {
        if word.glob && word.text.split('/').any(glob_may_hit) {
            return Some(format!("'{}' may match a protected name", word.text));
        }
        if word.dynamic {
            // The known end of a name is enough: `$HOME/.bashrc`.
            let end = word.text.rsplit(tiller_shell::HOLE).next().unwrap_or_default().trim_start_matches('/');
            if end.is_empty() || !word.text.contains('/') {
                return None;
            }
            return self.check_write(&roots.workspace.join(end));
        }
        roots.candidates(word, folders)?.iter().find_map(|p| {
            let why = self.check_write(p)?;
            // Deleting or changing the workspace itself is dangerous, not protected.
            Some(why)
        })
    }
}

/// `git config` of a key that makes git run something, or of another file than the repository's.
fn git_config(part: &Part) -> Option<String> {
    if part.base() != "git" {
        return None;
    }
    let args = part.args();
    let at = args.iter().position(|w| w.text == "config")?;
    // An operand of another subcommand.
    let valued = |i: usize| {
        i > 0
            && matches!(args[i - 1].text.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace")
    };
    if (0..at).any(|i| !args[i].text.starts_with('-') && !valued(i) && !args[i].text.contains(['/', '='])) {
        return None;
    }
    let rest = &args[at + 1..];
    if crate::danger::config_is_read_only(rest) {
        return None;
    }
    let wide = |t: &str| {
        matches!(t, "-e" | "--edit" | "edit" | "-f")
            || t.starts_with("--glo")
            || t.starts_with("--sys")
            || t.starts_with("--file")
            || t.starts_with("--worktree")
    };
    if rest.iter().any(|w| wide(&w.text)) && rest.iter().filter(|w| !w.text.starts_with('-')).count() != 1 {
        return Some("git's configuration is protected".into());
    }
    let set = rest.iter().filter(|w| !w.text.starts_with('-')).count() > 1;
    (set && (rest.iter().any(|w| git_key_runs_program(&w.text) || w.dynamic) || renames_to_what_runs(rest)))
        .then(|| "git's configuration is protected: this key makes git run a program".into())
}
