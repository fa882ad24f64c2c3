//! Repositories elsewhere, good and hostile.

use tiller_testkit::file_url;

use super::*;
use crate::git::tests::{init, sh};

fn remote<'a>(url: &'a str, reference: Option<&'a str>) -> Remote<'a> {
    Remote { url, reference, limit: Duration::from_secs(60), bytes: 1 << 20, cancelled: &|| false }
}

fn fetched(remote: &Remote<'_>) -> Result<Fetched, GitError> {
    let scratch = tempfile::tempdir().unwrap();
    remote.fetch(scratch.path())
}

fn has(tar: &[u8], text: &str) -> bool {
    tar.windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn a_branch_a_tag_and_a_commit_are_fetched() {
    let dir = tempfile::tempdir().unwrap();
    init(dir.path());
    sh(dir.path(), "echo first > a; git add a; git commit -qm one; git tag v1; git branch old");
    sh(dir.path(), "echo second > a; git commit -qam two");
    let url = file_url(dir.path());
    let newest = fetched(&remote(&url, None)).unwrap();
    assert!(has(&newest.tar, "second"));
    for name in ["v1", "old", "refs/heads/old"] {
        let old = fetched(&remote(&url, Some(name))).unwrap();
        assert!(has(&old.tar, "first") && old.commit.len() == 40 && old.commit != newest.commit, "{name}");
    }
    let pinned = fetched(&remote(&url, Some(&newest.commit))).unwrap();
    assert!(pinned == newest, "the same commit gives the same bytes");
    let gone = fetched(&remote(&url, Some("nothing"))).unwrap_err().to_string();
    assert!(gone.contains("nothing"), "{gone}");
}

/// Nothing that the repository brings or that an address says runs a program.
#[test]
fn nothing_of_a_hostile_repository_runs() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    init(&work);
    let canary = dir.path().join("canary");
    let run = format!("touch \"{}\"", canary.display());
    sh(
        &work,
        &format!(
            "printf 'f filter=evil diff=evil export-subst\\n' > .gitattributes; echo '$Format:%G?%GG$' > f; \
             for h in post-checkout post-merge pre-commit reference-transaction post-update update; do \
             printf '#!/bin/sh\\n{run}\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done; \
             git add -A; git -c core.hooksPath=/dev/null commit -qm one; \
             git config filter.evil.smudge '{run}'; git config filter.evil.process '{run}'; \
             git config core.fsmonitor '{run}'; git config uploadpack.packObjectsHook '{run}'; \
             git config gpg.program '{run}'"
        ),
    );
    let url = file_url(&work);
    fetched(&remote(&url, None)).unwrap();
    for url in [
        format!("ext::sh -c {run}"),
        "ext::sh".into(),
        format!("--upload-pack={run}"),
        "-u".into(),
        "git@-oProxyCommand=x:y".into(),
        "ssh://-oProxyCommand=x/y".into(),
        "ssh://a@-oProxyCommand=x/y".into(),
        "https://".into(),
        "https://a b/c".into(),
        "https://a/b\n--c".into(),
        "http://example.com/a".into(),
        "git://example.com/a".into(),
        "file://host/x".into(),
        "fd::1".into(),
        "git@host".into(),
        work.display().to_string(),
    ] {
        assert!(!is_url(&url) && fetched(&remote(&url, None)).is_err(), "{url}");
    }
    for reference in [
        "--upload-pack=x",
        "-x",
        "",
        "a b",
        "a..b",
        "a:b",
        "+x",
        "+x:y",
        "x^{tree}",
        "a\n",
        "@{1}",
        "/x",
        "x/",
    ] {
        let refused = fetched(&remote(&url, Some(reference)));
        assert!(!is_reference(reference), "{reference}");
        assert!(refused.is_err(), "{reference}");
    }
    for url in
        ["https://example.com/a.git", "git@example.com:a/b.git", "ssh://git@example.com/a", "file:///a"]
    {
        assert!(is_url(url), "{url}");
    }
    assert!(!canary.exists());
}

#[test]
fn links_submodules_and_large_repositories_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    init(dir.path());
    let url = file_url(dir.path());
    sh(dir.path(), "ln -s /etc/passwd link; git add -A; git commit -qm one");
    let refused = fetched(&remote(&url, None)).err().unwrap().to_string();
    assert!(refused.contains("link is a link"), "{refused}");
    sh(
        dir.path(),
        "git rm -qf link; git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; \
         git commit -qm two",
    );
    let refused = fetched(&remote(&url, None)).err().unwrap().to_string();
    assert!(refused.contains("sub is a submodule"), "{refused}");
    sh(
        dir.path(),
        "git rm -q --cached sub; head -c 2000000 /dev/zero > big; git add big; git commit -qm three",
    );
    assert!(
        matches!(fetched(&remote(&url, None)), Err(GitError::TooLarge)),
        "zeros are small only when packed"
    );
    sh(dir.path(), "head -c 6000000 /dev/urandom > big; git commit -qam four");
    assert!(matches!(fetched(&remote(&url, None)), Err(GitError::TooLarge)));
}

#[test]
fn a_fetch_can_be_stopped_and_has_a_time_limit() {
    let dir = tempfile::tempdir().unwrap();
    init(dir.path());
    sh(dir.path(), "echo 1 > a; git add a; git commit -qm one");
    let url = file_url(dir.path());
    let stopped = fetched(&Remote { cancelled: &|| true, ..remote(&url, None) });
    assert!(matches!(stopped, Err(GitError::Stopped)));
    let slow = fetched(&Remote { limit: Duration::ZERO, ..remote(&url, None) });
    assert!(matches!(slow, Err(GitError::Slow)));
}
