//! Configuration by which a read-only command would run other programs.

use std::fmt;
use std::path::{Path, PathBuf};

pub use tiller_protocol::ShellState;

/// Variables as names and values.
pub type Variables = Vec<(String, String)>;

/// What git would run in a folder because of configuration, attributes and hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitConfiguration {
    /// Settings that put what is configured out of action, in addition to [`GIT_SETTINGS`].
    pub settings: Variables,
    /// Why no git command is certain to run nothing.
    pub any: Option<String>,
    /// Why commands that read the content of files are not.
    pub content: Option<String>,
    /// Why commands that compare files are not, unless they have `--no-ext-diff`.
    pub compare: Option<String>,
    /// True when git runs nothing even without the settings that this program passes.
    pub quiet: bool,
}

/// Looks at what is around a command. It may read files and ask git itself; it changes nothing.
pub trait Surroundings: fmt::Debug + Send + Sync {
    /// State of a shell that has run nothing yet.
    fn shell(&self) -> ShellState;

    /// What git would run in `folder`. `program` is the git that the command would start.
    ///
    /// # Errors
    /// In words, when it is not known; the command asks then.
    fn git(&self, folder: &Path, program: &Path) -> Result<GitConfiguration, String>;

    /// Why git in `folder` would obey configuration that lies among the files of the project, where an agent can
    /// write it: a repository without a `.git` folder, or a file that the configuration includes. `None`: as far as
    /// is known, it would not. The git that is asked lies outside of `workspace`.
    fn planted(&self, folder: &Path, workspace: &Path) -> Option<String>;

    /// Names of the files that git tracks in `folder`, relative to it.
    ///
    /// # Errors
    /// In words, when they cannot be listed.
    fn tracked(&self, folder: &Path, program: &Path) -> Result<Vec<PathBuf>, String>;
}

/// A program that does nothing. Where it is missing, what names it fails; it is never looked for on `PATH`.
const NOTHING: &str = "/bin/false";

/// Settings of git that put out of action what runs a program, reaches the network, or takes a folder for a
/// repository that the person did not make. For this program's own calls and for commands that run unasked.
pub const GIT_SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", NOTHING),
    ("core.askPass", NOTHING),
    ("core.sshCommand", NOTHING),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ""),
    ("credential.helper", ""),
    ("gpg.program", NOTHING),
    ("gpg.openpgp.program", NOTHING),
    ("gpg.x509.program", NOTHING),
    ("gpg.ssh.program", NOTHING),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
];

/// Variables of git to the same end.
pub const GIT_VARIABLES: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", NOTHING),
    ("GIT_PAGER", "cat"),
];

/// [`GIT_SETTINGS`] and `more` as variables that every git which is started below obeys. Versions before 2.31
/// know only the second form.
pub fn git_variables(more: &[(String, String)]) -> Variables {
    let fixed = GIT_SETTINGS.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let all: Variables = fixed.chain(more.iter().cloned()).collect();
    let mut out: Variables = GIT_VARIABLES.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    out.push(("GIT_CONFIG_COUNT".into(), all.len().to_string()));
    for (at, (key, value)) in all.iter().enumerate() {
        out.push((format!("GIT_CONFIG_KEY_{at}"), key.clone()));
        out.push((format!("GIT_CONFIG_VALUE_{at}"), value.clone()));
    }
    // Newer versions read both forms, the second one last: it has the same settings. Only a name with "=" cannot be in it.
    let quoted = |text: &str| text.replace('\'', "'\\''").replace('!', "'\\!'");
    let old = all.iter().filter(|(k, _)| !k.contains('='));
    let old: Vec<String> = old.map(|(k, v)| format!("'{}={}'", quoted(k), quoted(v))).collect();
    out.push(("GIT_CONFIG_PARAMETERS".into(), old.join(" ")));
    out
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A place where nothing is configured and every program is the system's.
    #[derive(Debug)]
    pub(crate) struct Calm;

    impl Surroundings for Calm {
        fn shell(&self) -> ShellState {
            ShellState::default()
        }

        fn git(&self, _: &Path, _: &Path) -> Result<GitConfiguration, String> {
            Ok(GitConfiguration { quiet: true, ..GitConfiguration::default() })
        }

        fn planted(&self, _: &Path, _: &Path) -> Option<String> {
            None
        }

        fn tracked(&self, _: &Path, _: &Path) -> Result<Vec<PathBuf>, String> {
            Ok(vec!["src/main.rs".into()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A helper for passwords is often a shell line: `!gh auth git-credential`.
    #[test]
    fn git_reads_a_setting_with_signs_of_a_shell_in_both_forms() {
        let value = "!it's \"a\" $line; `of` \\ a shell!";
        let all = git_variables(&[("credential.helper".into(), value.into())]);
        for form in ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_"] {
            let both = form == "GIT_CONFIG_";
            let mine = all.iter().filter(|(name, _)| {
                name.starts_with(form) && (both || name == form) && !(both && name == "GIT_CONFIG_PARAMETERS")
            });
            let mut git = std::process::Command::new("git");
            git.args(["config", "--get-all", "credential.helper"]).envs(mine.map(|(n, v)| (n, v)));
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir("/");
            let Ok(out) = git.output() else { return println!("skipped: there is no git") };
            assert_eq!(String::from_utf8_lossy(&out.stdout), format!("\n{value}\n"), "{form}");
        }
    }
}
