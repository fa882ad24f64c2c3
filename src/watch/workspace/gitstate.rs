//! The state of git: branch, changed files, operations under way; and the feed's lines when they change.

use std::time::Duration;

use tiller_protocol::view::{GitOperation, GitState};

use crate::git::{GitError, Repository};

/// Time limit of `git status`.
const LIMIT: Duration = Duration::from_secs(10);

/// The result of one examination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub state: GitState,
    /// Commit of `HEAD`; empty before the first.
    pub commit: String,
    /// Its short hash and subject.
    pub subject: String,
    /// Files in conflict.
    pub conflicts: u32,
}

/// Examines the repository. Blocks; runs on a separate thread.
pub(crate) fn look(repo: &Repository, before: Option<&Facts>) -> Facts {
    let mut facts = Facts::default();
    facts.state.under_way = repo.under_way();
    let args = ["status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=all"];
    match repo.run(&args, LIMIT) {
        Ok(out) => parse(&out, &mut facts),
        Err(e) => {
            if !matches!(e, GitError::Missing) {
                tracing::debug!(error = %e, "git status");
            }
            // Facts that need no git call.
            facts.state.branch = repo.branch().unwrap_or_default();
            if let Some(before) = before {
                facts.commit.clone_from(&before.commit);
                facts.subject.clone_from(&before.subject);
                facts.state.changed = before.state.changed;
            }
            return facts;
        }
    }
    match before {
        Some(b) if b.commit == facts.commit => facts.subject.clone_from(&b.subject),
        _ if facts.commit.is_empty() => {}
        _ => {
            let line = repo.run(&["log", "-1", "--format=%h %s"], LIMIT).unwrap_or_default();
            facts.subject = String::from_utf8_lossy(&line).trim().chars().take(200).collect();
        }
    }
    facts
}

/// Parses `status --porcelain=v2 --branch -z`: `# branch.oid X`, `# branch.head X`, then one entry each (`1`, `2` with
/// a second path as an entry of its own, `u`, `?`).
fn parse(out: &[u8], facts: &mut Facts) {
    let mut skip = false;
    for entry in out.split(|b| *b == 0) {
        if std::mem::take(&mut skip) {
            continue;
        }
        if let Some(header) = entry.strip_prefix(b"# branch.") {
            let header = String::from_utf8_lossy(header);
            match header.split_once(' ') {
                Some(("oid", "(initial)")) | None => {}
                Some(("oid", oid)) => facts.commit = oid.into(),
                Some(("head", head)) => facts.state.branch = head.into(),
                Some(_) => {}
            }
            continue;
        }
        match entry.first() {
            Some(b'1' | b'?') => facts.state.changed += 1,
            Some(b'2') => {
                facts.state.changed += 1;
                skip = true;
            }
            Some(b'u') => {
                facts.state.changed += 1;
                facts.conflicts += 1;
            }
            _ => {}
        }
    }
    if facts.state.branch == "(detached)" {
        let short = facts.commit.get(..7).unwrap_or_default();
        facts.state.branch = format!("detached at {short}");
    }
}

/// Lines for the feed.
pub(crate) fn news(before: &Facts, now: &Facts) -> Vec<String> {
    let mut news = Vec::new();
    if before.state.branch != now.state.branch {
        news.push(format!("branch {} → {}", before.state.branch, now.state.branch));
    } else if before.commit != now.commit && !now.subject.is_empty() {
        news.push(format!("commit {}", now.subject));
    }
    if before.state.under_way != now.state.under_way {
        news.push(match (&before.state.under_way, &now.state.under_way) {
            (was, GitOperation::None) => format!("{was} ended"),
            (_, is) => format!("{is} began"),
        });
    }
    if before.conflicts != now.conflicts {
        news.push(match now.conflicts {
            0 => "no conflicts left".into(),
            n => format!("{n} files in conflict"),
        });
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::tests::{init, sh};

    #[test]
    fn status_commits_and_conflicts_are_seen_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let repo = init(dir.path());
        let empty = look(&repo, None);
        assert_eq!((empty.state.branch.as_str(), empty.commit.as_str()), ("trunk", ""));
        sh(dir.path(), "echo 1 > a; echo 1 > 'b c'; git add .; git commit -qm 'first one'");
        let one = look(&repo, Some(&empty));
        assert!(one.subject.ends_with(" first one"), "{one:?}");
        assert_eq!(news(&empty, &one), [format!("commit {}", one.subject)]);
        sh(dir.path(), "git mv a z; echo 2 > 'b c'; echo n > new");
        assert_eq!(look(&repo, Some(&one)).state.changed, 3);
        sh(
            dir.path(),
            "git reset -q --hard; rm -f new; git checkout -qb side; echo s > a; git commit -qam side; git checkout -q trunk; echo t > a; git commit -qam trunk",
        );
        let two = look(&repo, Some(&one));
        sh(dir.path(), "git merge -q side >/dev/null 2>&1 || true");
        let merge = look(&repo, Some(&two));
        assert_eq!((&merge.state.under_way, merge.conflicts), (&GitOperation::Merging, 1));
        assert_eq!(news(&two, &merge), ["merging began", "1 files in conflict"]);
        sh(dir.path(), "git merge --abort; git checkout -q side; git checkout -q --detach");
        let detached = look(&repo, Some(&merge));
        assert!(detached.state.branch.starts_with("detached at "), "{detached:?}");
        let told = news(&merge, &detached);
        assert!(
            told[0].starts_with("branch trunk → detached") && told.contains(&"merging ended".into()),
            "{told:?}"
        );
    }
}
