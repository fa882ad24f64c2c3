//! Merges files and hunks of the other side into the workspace. A file of which both sides changed the same lines
//! stays as it is, and the user sees the merge with its conflict marks.

use crate::files::record;
use crate::files::restore;
use std::collections::BTreeMap;

use tiller_protocol::compare::{Pair, TakeConflict, TakePart};
use tiller_protocol::{CommandId, Notice, NoticeKind, OpId};
use tiller_snapshot::{
    Answer, Entry, Goal, Id, Item, Kind, MergeResult, RestoreResult, Shadow, SnapshotError, merge,
};
use tiller_store::StepOf;

use super::look;
use crate::bus::ClientId;
use crate::core::Core;
use crate::files::restore::back;
use crate::files::restore::hunks;
use crate::files::{RestoreKind, RestoreOutcome, TakeOutcome, off, off_thread, unknown};

/// Bytes of a merge with marks that are shown.
const MARKED: usize = 64 << 10;

/// The three states of a merge.
#[derive(Clone, Copy, Debug)]
struct States {
    base: Option<Id>,
    left: Id,
    right: Id,
}

/// The result for one path.
enum PathResult {
    Answer(Answer),
    Not { why: &'static str, marked: Vec<u8> },
}

fn not(why: &'static str) -> PathResult {
    PathResult::Not { why, marked: Vec::new() }
}

/// Merges what is wanted into the workspace.
fn take(
    shadow: &mut Shadow,
    states: States,
    parts: &[TakePart],
) -> Result<(RestoreResult, Vec<TakeConflict>), SnapshotError> {
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for part in parts {
        wanted.entry(&part.path).or_default().extend(part.hunk.as_deref());
    }
    let whole = |path: &str| parts.iter().any(|p| p.path == path && p.hunk.is_none());
    let select = Some(wanted.keys().map(|p| tiller_protocol::names::path(p)).collect());
    let plan = shadow.plan(&Goal { select, ..Goal::back(states.right, Vec::new()) })?;
    let (mut answers, mut nots) = (BTreeMap::new(), Vec::new());
    for item in &plan.items {
        let path = back::shown(&item.diff.path);
        let fate = match wanted.remove(path.as_str()) {
            // Files inside a folder of that name were not selected.
            None => not("it was not selected"),
            Some(_) if whole(&path) => file(shadow, states.base, item)?,
            Some(parts) => some(shadow, states.left, item, &parts)?,
        };
        match fate {
            PathResult::Answer(answer) => drop(answers.insert(item.diff.path.clone(), answer)),
            PathResult::Not { why, mut marked } => {
                answers.insert(item.diff.path.clone(), Answer::Keep);
                marked.truncate(MARKED);
                let marked = String::from_utf8_lossy(&marked).into_owned();
                nots.push(TakeConflict { path, why: why.into(), marked });
            }
        }
    }
    let left = plan.left.iter();
    nots.extend(left.map(|l| TakeConflict {
        path: back::shown(&l.path),
        why: l.why.to_string(),
        marked: String::new(),
    }));
    for path in wanted.into_keys().filter(|p| !nots.iter().any(|n| n.path == *p)).collect::<Vec<_>>() {
        let why = "both sides are identical".into();
        nots.push(TakeConflict { path: path.into(), why, marked: String::new() });
    }
    let done = shadow.restore(&plan, &answers)?;
    // Another program changed the file meanwhile, or the file system refused.
    for l in &done.left {
        let path = back::shown(&l.path);
        if !nots.iter().any(|n| n.path == path) {
            nots.push(TakeConflict { path, why: l.why.to_string(), marked: String::new() });
        }
    }
    Ok((done, nots))
}

fn text(shadow: &Shadow, entry: Option<Entry>) -> Result<Option<Vec<u8>>, SnapshotError> {
    match entry {
        Some(Entry { kind: Kind::File, id, .. }) => Ok(Some(shadow.content(id)?)),
        _ => Ok(None),
    }
}

/// Merges a whole file from three states.
fn file(shadow: &Shadow, base: Option<Id>, item: &Item) -> Result<PathResult, SnapshotError> {
    let (ours, theirs) = (item.diff.before, item.diff.after);
    let was = match base {
        Some(base) => shadow.state(base, &item.diff.path)?.entry(),
        None => None,
    };
    if was == ours {
        return Ok(PathResult::Answer(Answer::Restore));
    }
    if was == theirs && base.is_some() {
        return Ok(not("only this side changed it since the branches diverged"));
    }
    let (Some(a), Some(b)) = (text(shadow, ours)?, text(shadow, theirs)?) else {
        let why = match (ours, theirs) {
            (None, _) => "deleted here, changed there",
            (_, None) => "changed here, deleted there",
            _ => "both sides changed it, and it cannot be merged",
        };
        return Ok(not(why));
    };
    if is_binary(&a) || is_binary(&b) {
        return Ok(not("both sides changed it, and it is not a text file"));
    }
    let base = text(shadow, was)?.unwrap_or_default();
    Ok(merged(merge(&base, &a, &b)))
}

/// Applies some hunks of the difference from left to right.
fn some(shadow: &Shadow, left: Id, item: &Item, parts: &[&str]) -> Result<PathResult, SnapshotError> {
    let was = shadow.state(left, &item.diff.path)?.entry();
    let (Some(old), ours) = (content(shadow, was)?, content(shadow, item.diff.before)?) else {
        return Ok(not("it is not a text file"));
    };
    let Some(theirs) = hunks::apply(&old, parts) else {
        return Ok(not("this hunk no longer applies: compare again"));
    };
    let Some(ours) = ours else { return Ok(not("it is not a text file here")) };
    if item.diff.after.is_none() && theirs.is_empty() && ours == old {
        return Ok(PathResult::Answer(Answer::Restore));
    }
    Ok(merged(merge(old.as_bytes(), ours.as_bytes(), theirs.as_bytes())))
}

/// Text of a file, empty when the file does not exist. `None`: not text.
fn content(shadow: &Shadow, entry: Option<Entry>) -> Result<Option<String>, SnapshotError> {
    match entry {
        None => Ok(Some(String::new())),
        Some(_) => Ok(text(shadow, entry)?.and_then(|bytes| String::from_utf8(bytes).ok())),
    }
}

fn merged(merged: MergeResult) -> PathResult {
    match merged {
        MergeResult::Clean(text) => PathResult::Answer(Answer::Content(text)),
        MergeResult::Conflict(marked) => PathResult::Not { why: "both sides changed the same lines", marked },
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

pub(crate) fn start_take(
    core: &mut Core,
    client: ClientId,
    cause: CommandId,
    pair: Pair,
    parts: Vec<TakePart>,
) {
    let why = if parts.is_empty() {
        Some(Notice::new(NoticeKind::User, "nothing was selected"))
    } else {
        restore::cannot_restore(core)
    };
    if let Some(why) = why {
        return core.refuse(client, cause, why);
    }
    let Some(keeper) = core.services.snapshots.workspace.clone() else {
        return core.refuse(client, cause, off());
    };
    let (store, session, watched) = (core.services.store.clone(), core.session.id, record::watched(core));
    let op = OpId::fresh(&*core.services.ids, core.services.clock.now());
    let here = core.session.head.id;
    let work = async move {
        let (states, from) = off_thread(move || {
            let ends = look::ends(&store, session, &pair)?;
            // The base is the last common entry of the right side and the open branch.
            let mut to_here = ends.clone();
            if let Some(here) = here {
                let apart = store.tree().divergence(here, ends.right.entry).map_err(|e| e.notice())?;
                to_here.base = apart.base;
                (to_here.left.entry, to_here.left.count) = (here, apart.left);
                to_here.left.session = session;
            }
            let base = look::base_state(&store, &to_here).map_err(|e| e.notice())?;
            let left = ends.left.state.ok_or_else(unknown)?;
            let right = ends.right.state.ok_or_else(unknown)?;
            Ok((States { base, left, right }, ends.right.name))
        })
        .await?;
        let title = format!("take files from {from}");
        let work = move |s: &mut Shadow| {
            let (done, not) = take(s, states, &parts)?;
            let others = watched.others(s, &done.before, StepOf::OthersBeforeRestore(op));
            watched.own(&done.after);
            let files = back::named(&s.compare(done.before.id, done.after.id)?);
            Ok(RestoreOutcome { done, files, others, way: RestoreKind::Took(TakeOutcome { from, not }) })
        };
        Ok((keeper.run(work).await.map_err(|e| e.notice())?, title))
    };
    restore::change_files(core, client, cause, work, op);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use tiller_protocol::SystemClock;
    use tiller_snapshot::Limits;

    use super::*;

    struct TakePlace {
        _dir: tempfile::TempDir,
        work: PathBuf,
        shadow: Shadow,
    }

    impl TakePlace {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            let work = root.join("work");
            std::fs::create_dir(&work).unwrap();
            let clock = Arc::new(SystemClock::default());
            let shadow = Shadow::open(&work, &root.join("kept"), Limits::default(), clock).unwrap();
            Self { _dir: dir, work, shadow }
        }

        /// Makes the folder hold exactly these, and keeps that state.
        fn state(&mut self, files: &[(&str, &str)]) -> Id {
            for old in std::fs::read_dir(&self.work).unwrap() {
                std::fs::remove_file(old.unwrap().path()).unwrap();
            }
            for (name, text) in files {
                std::fs::write(self.work.join(name), text).unwrap();
            }
            self.shadow.snapshot().unwrap().id
        }

        fn read(&self, name: &str) -> Option<String> {
            std::fs::read_to_string(self.work.join(name)).ok()
        }
    }

    fn whole(path: &str) -> TakePart {
        TakePart { path: path.into(), hunk: None }
    }

    const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

    #[test]
    fn whole_files_are_merged_three_ways_and_a_conflict_leaves_the_file() {
        let mut p = TakePlace::new();
        let base = p.state(&[("both", TEN), ("same", TEN), ("gone", "x\n"), ("mine", "m\n"), ("bin", "b")]);
        let theirs = [
            ("both", TEN.replace("9\n", "nine\n")),
            ("same", TEN.replace("5\n", "theirs\n")),
            ("mine", "m\n".into()),
            ("bin", "b\0theirs".into()),
            ("new", "n\n".into()),
        ];
        let right = p.state(&theirs.iter().map(|(n, t)| (*n, t.as_str())).collect::<Vec<_>>());
        let ours = [
            ("both", TEN.replace("2\n", "two\n")),
            ("same", TEN.replace("5\n", "ours\n")),
            ("gone", "x\n".into()),
            ("mine", "m\nmore\n".into()),
            ("bin", "b\0ours".into()),
        ];
        let left = p.state(&ours.iter().map(|(n, t)| (*n, t.as_str())).collect::<Vec<_>>());
        let states = States { base: Some(base), left, right };
        let parts = ["both", "same", "gone", "mine", "bin", "new", "nowhere"].map(whole);
        let (done, not) = take(&mut p.shadow, states, &parts).unwrap();
        let merged = TEN.replace("9\n", "nine\n").replace("2\n", "two\n");
        assert_eq!(p.read("both"), Some(merged));
        assert_eq!((p.read("gone"), p.read("new")), (None, Some("n\n".into())));
        assert_eq!(p.read("same"), Some(TEN.replace("5\n", "ours\n")), "never forced");
        assert_eq!(p.read("mine"), Some("m\nmore\n".into()));
        assert_eq!(done.done.len(), 3);
        let why: BTreeMap<&str, &str> = not.iter().map(|n| (n.path.as_str(), n.why.as_str())).collect();
        assert!(why["same"].contains("the same lines") && why["bin"].contains("not a text"), "{why:?}");
        assert!(
            why["mine"].contains("only this side") && why["nowhere"].contains("both sides are identical"),
            "{why:?}"
        );
        let marked = &not.iter().find(|n| n.path == "same").unwrap().marked;
        assert!(
            marked.contains("ours") && marked.contains("theirs") && marked.contains("<<<<<<<"),
            "{marked}"
        );
        // It is undone as a restore is.
        let plan = p.shadow.plan(&done.undo()).unwrap();
        p.shadow.restore(&plan, &BTreeMap::new()).unwrap();
        assert_eq!(p.read("both"), Some(TEN.replace("2\n", "two\n")));
        assert_eq!((p.read("gone"), p.read("new")), (Some("x\n".into()), None));
    }

    #[test]
    fn one_hunk_is_taken_over_what_the_person_changed_since() {
        let mut p = TakePlace::new();
        let left = p.state(&[("a", TEN)]);
        let right = p.state(&[("a", &TEN.replace("2\n", "two\n").replace("9\n", "nine\n"))]);
        p.state(&[("a", &TEN.replace("5\n", "mine\n"))]);
        let states = States { base: Some(left), left, right };
        let hunk = "--- a/a\n+++ b/a\n@@ -6,5 +6,5 @@\n 6\n 7\n 8\n-9\n+nine\n 10\n";
        let part = |hunk: &str| [TakePart { path: "a".into(), hunk: Some(hunk.into()) }];
        let (_, not) = take(&mut p.shadow, states, &part(hunk)).unwrap();
        assert_eq!(not, []);
        assert_eq!(p.read("a"), Some(TEN.replace("5\n", "mine\n").replace("9\n", "nine\n")));
        let stale = hunk.replace("-9", "-99");
        let (_, not) = take(&mut p.shadow, states, &part(&stale)).unwrap();
        assert!(not[0].why.contains("no longer applies"), "{not:?}");
    }
}
