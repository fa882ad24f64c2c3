//! X15: read-only commands, in repositories and shells that make them do more.

use tiller_testkit::ScriptServer;

use crate::common::{Place, says, shell};

/// X15 with the whole program: programs that a repository names do not run when a model only reads.
#[test]
fn x15_git_of_a_hostile_repository_runs_nothing() {
    let server = ScriptServer::start([shell("c1", "git status"), shell("c2", "git diff"), says("Done.")]);
    let place = Place::anthropic(&server);
    place.file("f.txt", "a\n");
    let canary = place.work.join("canary");
    let evil = format!("touch '{}'; cat", canary.display());
    place.git(&["init", "-q"]);
    place.git(&["add", "."]);
    place.git(&["commit", "-qm", "one"]);
    place.git(&["config", "core.fsmonitor", &evil]);
    place.git(&["config", "diff.external", &evil]);
    place.file("f.txt", "b\n");
    let out = place.run(&["exec", "look"]);
    let results = server.bodies().last().unwrap()["messages"].to_string();
    assert!(!canary.exists(), "{results}");
    assert!(results.contains("modified:"), "git status ran: {results}");
    assert!(results.contains("--no-ext-diff"), "git diff asks, and says why: {results}");
    assert_eq!(out.code, Some(3), "{}", out.stderr);
    // Without protection the repository does run it; otherwise the test would show nothing.
    place.git(&["status"]);
    assert!(canary.exists());
}

/// Changes that an allowed command leaves in the shell (a function, a search path, a variable) are checked as well.
#[test]
fn x15_a_shell_that_was_changed_runs_nothing_unasked() {
    for change in [
        "git() { touch canary; }",
        "export PATH=$PWD/bin:$PATH",
        "export PATH=bin:$PATH",
        "export GIT_DIR=elsewhere",
        "export GIT_EXTERNAL_DIFF=bin/git GIT_SSH=bin/git",
        "export LD_PRELOAD=./x.so",
        "trap : DEBUG",
        "shopt -s dotglob",
    ] {
        let server =
            ScriptServer::start([shell("c1", ". ./env.sh"), shell("c2", "git status"), says("Done.")]);
        let place = Place::anthropic(&server);
        place.git(&["init", "-q"]);
        place.file("env.sh", change);
        place.file("bin/git", "#!/bin/sh\ntouch canary\n");
        let bin = place.work.join("bin/git");
        std::fs::set_permissions(bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        place.config("");
        let rules = place.home.join("config/permissions.yaml");
        std::fs::write(rules, "allow:\n  - terminal(. ./env.sh)\n").unwrap();
        let out = place.run(&["exec", "look"]);
        let results = server.bodies().last().unwrap()["messages"].to_string();
        assert!(!place.work.join("canary").exists(), "{change}: {results}");
        assert!(results.contains("needs an approval"), "{change}: {results}");
        assert_eq!(out.code, Some(3), "{change}: {}", out.stderr);
    }
}
