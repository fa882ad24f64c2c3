use std::process::Command;

use tiller_testkit::plain_git;

use super::*;

/// A repository in `dir`, made with the real git.
pub(crate) fn init(dir: &Path) -> Repository {
    sh(dir, "git init -q -b trunk . && git config user.name t && git config user.email t@t");
    Repository::find(dir).unwrap()
}

pub(crate) fn sh(dir: &Path, script: &str) {
    let mut command = Command::new("sh");
    let out = plain_git(command.args(["-ec", script]).current_dir(dir)).output().unwrap();
    assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
}

const LIMIT: Duration = Duration::from_secs(90);

#[test]
fn finds_what_it_is_without_running_anything() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Repository::find(&dir.path().join("x")), None);
    let repo = init(dir.path());
    assert_eq!(repo.branch().unwrap(), "trunk");
    assert!(repo.under_way().is_none());
    std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
    assert_eq!(Repository::find(&dir.path().join("a/b")).unwrap(), repo);
    sh(
        dir.path(),
        "echo 1 > f; git add f; git commit -qm one; git worktree add -q ../wt-$$ -b other; mv ../wt-$$ wt; git worktree repair wt",
    );
    let linked = Repository::find(&dir.path().join("wt")).unwrap();
    assert_eq!(linked.branch().unwrap(), "other");
    assert!(linked.common.join("refs/heads/other").exists());
}

/// X11 for this wrapper: settings and hooks of the repository run nothing.
#[test]
fn x11_nothing_that_a_repository_names_runs() {
    let dir = tempfile::tempdir().unwrap();
    let repo = init(dir.path());
    sh(
        dir.path(),
        "echo 1 > f.txt; git add f.txt; git commit -qm one; echo '*.txt filter=evil diff=evil' > .gitattributes",
    );
    let canary = dir.path().join("canary");
    let run = format!("touch \"{}\"", canary.display());
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "diff.external",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "gpg.program",
        "credential.helper",
        "core.alternateRefsCommand",
        "pager.status",
        "alias.status",
    ] {
        let value = if key == "alias.status" { format!("!{run}") } else { run.clone() };
        sh(dir.path(), &format!("git config {key} '{value}'"));
    }
    sh(dir.path(), "git config filter.evil.required true; mkdir -p .git/hooks");
    for hook in ["post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"] {
        let path = dir.path().join(".git/hooks").join(hook);
        std::fs::write(&path, format!("#!/bin/sh\n{run}\n")).unwrap();
        sh(dir.path(), &format!("chmod +x .git/hooks/{hook}"));
    }
    std::fs::write(dir.path().join("f.txt"), "2\n").unwrap();
    let calls: [&[&str]; 3] = [
        &["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=all"],
        &["log", "-1", "--format=%h %s"],
        &["cat-file", "blob", "HEAD:f.txt"],
    ];
    for args in calls {
        repo.run(args, LIMIT).unwrap();
        assert!(!canary.exists(), "{args:?}");
    }
}

#[test]
fn a_slow_git_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let repo = init(dir.path());
    assert!(matches!(repo.run(&["status"], Duration::ZERO), Err(GitError::Slow) | Ok(_)));
    assert!(matches!(repo.run(&["no-such-verb"], LIMIT), Err(GitError::Failed(_))));
}
