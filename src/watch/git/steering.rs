//! Settings and hooks of a repository that make git run programs, also in read-only commands.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::git::command::{Call, ConfigScope};
use crate::git::{GitError, Repository, around};

/// Time limit for reading the configuration.
const LIMIT: Duration = Duration::from_secs(5);

/// Settings of `folder`'s repository (not of the person) by which git runs a program, as key and value; and a hook that
/// runs whenever git writes its index, as its path and content. `env`: the environment of the started program. Blocks
/// for one git call.
///
/// # Errors
/// As text, when git fails.
pub fn steering(folder: &Path, env: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
    let Some(repository) = Repository::find(folder) else { return Ok(Vec::new()) };
    let call = Call { scope: ConfigScope::Person(env), ..Call::new(folder) };
    let list = ["config", "--list", "-z", "--show-scope", "--includes"];
    let out = match call.run(&list, Instant::now() + LIMIT) {
        Ok(out) => out,
        // A program started here has no working git either.
        Err(GitError::Missing | GitError::NoRepository) => return Ok(Vec::new()),
        Err(e) => return Err(e.to_string()),
    };
    let settings = around::parse(&out)?;
    let mut found: Vec<(String, String)> = settings
        .into_iter()
        .filter(|s| s.repository && runs(&s.key, &s.value))
        .map(|s| (s.key, s.value))
        .collect();
    let hook = repository.common.join("hooks/post-index-change");
    if hook.symlink_metadata().is_ok() {
        let text = std::fs::read(&hook).map(|b| String::from_utf8_lossy(&b).into_owned());
        found.push(("hooks/post-index-change".into(), text.unwrap_or_default()));
    }
    Ok(found)
}

/// Whether git runs the value of this setting in commands that agent programs use themselves: status, log, diff, add,
/// commit, checkout.
fn runs(key: &str, value: &str) -> bool {
    if value.is_empty() || value == "false" {
        return false;
    }
    let key = key.to_lowercase();
    let (section, last) =
        (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
    match (section, last) {
        ("core", "fsmonitor") => value != "true",
        (
            "core",
            "hookspath" | "sshcommand" | "gitproxy" | "alternaterefscommand" | "askpass" | "pager" | "editor",
        )
        | ("filter", "clean" | "smudge" | "process")
        | ("diff", "external" | "command" | "textconv")
        | ("interactive", "difffilter")
        | ("sequence", "editor")
        | ("merge", "driver")
        | ("gpg", "program" | "defaultkeycommand")
        | ("gc", "recentobjectshook")
        | ("hook" | "credential", _) => true,
        ("lfs", _) => around::lfs_runs(&key),
        ("pager", _) => value != "true",
        ("alias", _) => value.trim_start().starts_with('!'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tiller_testkit::git;

    use super::*;

    #[test]
    fn x18_what_the_repository_makes_git_run_is_found_and_nothing_else_is() {
        let tmp = tempfile::tempdir().unwrap();
        let (home, work) = (tmp.path().join("home"), tmp.path().join("work"));
        for folder in [&home, &work] {
            std::fs::create_dir(folder).unwrap();
        }
        let env = [("HOME", home.display().to_string()), ("PATH", std::env::var("PATH").unwrap())]
            .map(|(k, v)| (k.to_owned(), v));
        let keys = || -> Vec<String> { steering(&work, &env).unwrap().into_iter().map(|(k, _)| k).collect() };
        assert!(keys().is_empty(), "no repository");
        git(&work, &["init", "-q"]);
        git(&work, &["remote", "add", "origin", "https://example.org/x"]);
        git(&work, &["config", "user.name", "x"]);
        git(&work, &["config", "core.fsmonitor", "true"]);
        git(&work, &["config", "alias.st", "status -s"]);
        git(&work, &["config", "lfs.https://example.org/x.access", "basic"]);
        // The person's own settings are not reported.
        std::fs::write(
            home.join(".gitconfig"),
            "[core]\n\tfsmonitor = mine\n[filter \"lfs\"]\n\tclean = x\n",
        )
        .unwrap();
        assert!(keys().is_empty(), "{:?}", keys());
        for (key, value) in [
            ("core.fsmonitor", "touch x"),
            ("core.hooksPath", ".husky"),
            ("filter.evil.clean", "touch x"),
            ("diff.evil.textconv", "touch x"),
            ("alias.st", "!touch x"),
            ("lfs.customtransfer.x.path", "touch"),
            ("gc.recentObjectsHook", "touch x"),
        ] {
            git(&work, &["config", key, value]);
        }
        std::fs::write(work.join("more"), "[diff]\n\texternal = touch x\n").unwrap();
        git(&work, &["config", "include.path", "../more"]);
        let mut found = keys();
        found.sort();
        let expected = [
            "alias.st",
            "core.fsmonitor",
            "core.hookspath",
            "diff.evil.textconv",
            "diff.external",
            "filter.evil.clean",
            "gc.recentobjectshook",
            "lfs.customtransfer.x.path",
        ];
        assert_eq!(found, expected);
        // From a folder below, and with a hook.
        let below = work.join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(work.join(".git/hooks/post-index-change"), "touch x").unwrap();
        assert_eq!(steering(&below, &env).unwrap().len(), expected.len() + 1);
    }
}
