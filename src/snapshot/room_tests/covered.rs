//! Paths that are covered although a complete scan would skip them, and reports about those that are not.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::world::World;
use crate::report::NAMED_BYTES;
use crate::{Change, Goal, Reason, Shadow, SkipReason, SkippedPath, Step};

fn has(s: &Shadow, id: crate::Id, path: &str) -> bool {
    s.read(id, Path::new(path)).unwrap().is_some()
}

fn restore(s: &mut Shadow, goal: &Goal) -> Vec<SkippedPath> {
    let plan = s.plan(goal).unwrap();
    s.restore(&plan, &BTreeMap::new()).unwrap().left
}

#[test]
fn w16_what_git_tracks_is_covered_though_it_ignores_it() {
    for version in ["2", "3", "4"] {
        let w = World::new();
        w.sh(&format!("git init -q .; git config index.version {version}"));
        w.put(".gitignore", "*.log\nvendor/\nodd*\n");
        for path in
            ["kept.log", "vendor/lib/a.c", "vendor/lib/b.c", "sub/deep/c.log", "plain.c", "odd\u{e9}\u{1}"]
        {
            w.put(path, "old\n");
        }
        w.put("free.log", "ignored\n");
        w.put("vendor/free.c", "ignored\n");
        w.sh("git add -f kept.log vendor/lib sub plain.c odd* .gitignore");
        if version == "3" {
            w.put("late.c", "later\n");
            w.sh("git add -N late.c");
        }
        let mut s = w.open();
        let before = s.snapshot().unwrap();
        for path in ["kept.log", "vendor/lib/a.c", "vendor/lib/b.c", "sub/deep/c.log", "odd\u{e9}\u{1}"] {
            assert!(has(&s, before.id, path), "{version}: {path}");
        }
        assert!(!has(&s, before.id, "free.log") && !has(&s, before.id, "vendor/free.c"));
        assert_eq!(s.snapshot().unwrap().id, before.id, "a second look finds nothing new");
        w.put("kept.log", "new\n");
        w.remove("vendor/lib/a.c");
        fs::remove_dir_all(w.work().join("sub")).unwrap();
        let after = s.snapshot().unwrap();
        let changes = s.compare(before.id, after.id).unwrap();
        let told: Vec<_> = changes.iter().map(|d| (d.path.to_str().unwrap(), d.change)).collect();
        let all = [
            ("kept.log", Change::Modified),
            ("sub/deep/c.log", Change::Deleted),
            ("vendor/lib/a.c", Change::Deleted),
        ];
        assert_eq!(told, all, "{version}");
        drop(s);
        let mut s = w.open();
        let goal = Goal::back(before.id, vec![Step { before: before.id, after: after.id }]);
        assert_eq!(restore(&mut s, &goal), []);
        assert_eq!(
            (w.get("kept.log"), w.get("vendor/lib/a.c"), w.get("sub/deep/c.log")),
            ("old\n".into(), "old\n".into(), "old\n".into())
        );
        // A file that is no longer tracked is no longer covered, and a file that becomes tracked is.
        w.sh("git add -f free.log");
        let more = s.snapshot().unwrap();
        assert!(has(&s, more.id, "free.log"), "the index alone has changed");
        assert!(w.sh("git status --porcelain").contains("free.log"), "and git finds nothing odd");
    }
}

#[test]
fn w16_a_folder_of_a_repository_a_nested_one_and_a_work_tree_have_their_own_index() {
    let w = World::new();
    let top = w.top.clone();
    super::world::sh(
        &top,
        "git init -q .; mkdir -p other; echo '*.log' > .gitignore; echo x > work/in.log; echo x > other/out.log; git add -f work/in.log other/out.log",
    );
    w.put("nested/.gitignore", "*.o\n");
    w.put("nested/a.o", "x");
    w.put("nested/b.o", "x");
    w.sh("git init -q nested; git -C nested add -f a.o; git -C nested commit -qm x; git -C nested worktree add -q ../tree; echo '*.o' > tree/.gitignore; echo y > tree/t.o; git -C tree add -f t.o");
    let mut s = w.open();
    let now = s.snapshot().unwrap();
    for (path, yes) in [("in.log", true), ("nested/a.o", true), ("nested/b.o", false), ("tree/t.o", true)] {
        assert_eq!(has(&s, now.id, path), yes, "{path}");
    }
    // An unreadable index tracks nothing, and stops nothing.
    fs::write(w.work().join("nested/.git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xffjunk").unwrap();
    s.snapshot().unwrap();
}

#[test]
fn w16_what_a_tool_changes_by_name_comes_back_ignored_or_not_large_or_not() {
    let mut w = World::new();
    w.limits.file_bytes = 1000;
    w.put(".gitignore", ".env\nmade.secret\nout/\n");
    let large = "x".repeat(5000);
    for (path, text) in
        [(".env", "KEY=1\n"), ("large", large.as_str()), ("out/deep/x", "old\n"), ("gone.large", &large)]
    {
        w.put(path, text);
    }
    let mut s = w.open();
    let point = s.snapshot().unwrap();
    assert_eq!(point.uncovered(Path::new("large")), Some(Reason::TooLarge));
    let paths = [".env", "large", "out/deep/x", "gone.large", "made.secret"];
    let mut steps = Vec::new();
    let all = w.tree();
    for path in paths {
        let before = s.snapshot_touched(&[path]).unwrap();
        match path {
            "gone.large" => w.remove(path),
            _ => w.put(path, format!("new {path}\n")),
        }
        let after = s.snapshot_touched(&[path]).unwrap();
        let told = s.compare(before.id, after.id).unwrap();
        assert_eq!(told.len(), 1, "{path}: {told:?}");
        steps.push(Step { before: before.id, after: after.id });
    }
    drop(s);
    let mut s = w.open();
    // The checkpoint itself knew none of them; the session's steps since do.
    assert_eq!(restore(&mut s, &Goal::back(point.id, steps.clone())), []);
    let mut now = w.tree();
    now.retain(|path, _| all.contains_key(path) || path.ends_with("made.secret"));
    assert_eq!(now, all);
    // A person's change after the tool's is a conflict.
    w.put(".env", "KEY=new\n");
    s.snapshot().unwrap();
    w.put(".env", "KEY=mine\n");
    let plan = s.plan(&Goal::back(point.id, steps)).unwrap();
    assert!(plan.items.iter().any(|i| i.diff.path == Path::new(".env") && i.conflict.is_some()), "{plan:?}");
}

#[test]
fn a_large_file_that_is_covered_by_name_is_read_once() {
    let mut w = World::new();
    w.limits.file_bytes = 1000;
    w.put("large", "x".repeat(5000));
    let mut s = w.open();
    w.sh("touch -d '2020-01-01' large");
    // Until its stamp is old enough to be reliable.
    let first = loop {
        let first = s.snapshot_touched(&["large"]).unwrap();
        if w.sh("find . -name large -newerct '1 second ago'").is_empty() {
            s.snapshot().unwrap();
            break first;
        }
    };
    fs::set_permissions(w.work().join("large"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(w.work().join("large"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(has(&s, s.last().unwrap().id, "large") && has(&s, first.id, "large"));
    // Larger than any file that a tool changes: it is reported.
    let file = fs::OpenOptions::new().write(true).open(w.work().join("large")).unwrap();
    file.set_len(NAMED_BYTES + 1).unwrap();
    assert_eq!(s.snapshot_touched(&["large"]).unwrap().uncovered(Path::new("large")), Some(Reason::TooLarge));
}

#[test]
fn w16_what_was_not_kept_and_is_gone_is_named() {
    let mut w = World::new();
    w.limits.file_bytes = 1000;
    w.put("big", "x".repeat(2000));
    w.put("a", "old\n");
    w.put("n/x", "1\n");
    w.sh("mkfifo pipe; git init -q n");
    let socket = std::os::unix::net::UnixListener::bind(w.work().join("socket")).unwrap();
    let mut s = w.open();
    let before = s.snapshot().unwrap();
    drop(socket);
    w.sh("rm -rf big pipe socket n/.git; echo new > a");
    let after = s.snapshot().unwrap();
    let goal = Goal::back(before.id, vec![Step { before: before.id, after: after.id }]);
    let left = restore(&mut s, &goal);
    let told: Vec<_> = left.iter().map(|l| (l.path.to_str().unwrap(), l.why.clone())).collect();
    let gone = |path, reason| (path, SkipReason::Vanished(reason));
    assert_eq!(
        told,
        [
            gone("big", Reason::TooLarge),
            gone("n/.git", Reason::Repository),
            gone("pipe", Reason::Special),
            gone("socket", Reason::Special)
        ]
    );
    assert!(told[0].1.to_string().contains("no longer exists"));
    let compared: Vec<_> = s.vanished(before.id, after.id).unwrap().into_iter().map(|u| u.path).collect();
    assert_eq!(compared, ["big", "n", "pipe", "socket"].map(std::path::PathBuf::from));
    assert_eq!(s.vanished(before.id, before.id).unwrap(), []);
    // Only selected paths are reported.
    let plan = s.plan(&Goal { select: Some(vec!["a".into()]), ..goal }).unwrap();
    assert_eq!(plan.left, []);
}

/// Large ignored files and build output are not stored. When they are deleted, the comparison and the restore report
/// them.
#[test]
fn ignored_files_that_a_command_deletes_are_named() {
    let w = World::new();
    w.put(".gitignore", ".env\n*.key\nbuild/\n");
    let large = "0".repeat(300 << 10);
    for path in [".env", "sub/app.key", "sub/deep/b.key", "build/big", "stays.key"] {
        w.put(path, &large);
    }
    w.put("sub/c.txt", "0");
    let mut s = w.open();
    let before = s.snapshot().unwrap();
    // An edit of another file reports nothing, and causes no new state at the next scan.
    w.put("a.txt", "1");
    let other = s.snapshot().unwrap();
    assert_eq!(s.vanished(before.id, other.id).unwrap(), []);
    s.save_cache();
    drop(s);
    // Also when another process scans next.
    let mut s = w.open();
    fs::remove_file(w.work().join(".env")).unwrap();
    fs::remove_dir_all(w.work().join("sub")).unwrap();
    fs::remove_dir_all(w.work().join("build")).unwrap();
    let after = s.snapshot().unwrap();
    let gone: Vec<_> = s.vanished(other.id, after.id).unwrap();
    let names: Vec<_> = gone.iter().map(|u| u.path.to_str().unwrap()).collect();
    assert_eq!(names, [".env", "build", "sub/app.key", "sub/deep/b.key"]);
    assert!(gone.iter().all(|u| u.reason == Reason::Ignored));
    assert_eq!(s.snapshot().unwrap().id, after.id, "it is said once");
    let goal = Goal::back(before.id, vec![Step { before: other.id, after: after.id }]);
    let left = restore(&mut s, &goal);
    let words: Vec<_> = left.iter().map(|l| format!("{}: {}", l.path.display(), l.why)).collect();
    for path in [".env", "build", "sub/app.key", "sub/deep/b.key"] {
        let line = format!("{path}: it no longer exists and its content was not kept: ignored by git");
        assert!(words.contains(&line), "{words:?}");
    }
    assert_eq!(w.get("sub/c.txt"), "0");
    // A file that exists again is not reported as deleted.
    w.put(".env", &large);
    let left = s.plan(&goal).unwrap().left;
    let again = left.iter().find(|l| l.path == Path::new(".env")).map(|l| &l.why);
    assert_eq!(again, Some(&SkipReason::Changed(Reason::Ignored)));
}

/// A named path is stored, so it is restored and not reported.
#[test]
fn an_ignored_file_that_was_named_comes_back_when_a_command_deletes_it() {
    let w = World::new();
    w.put(".gitignore", ".env\n");
    w.put(".env", "0");
    let mut s = w.open();
    let before = s.snapshot_touched(&[".env"]).unwrap();
    fs::remove_file(w.work().join(".env")).unwrap();
    let after = s.snapshot().unwrap();
    assert_eq!(s.vanished(before.id, after.id).unwrap(), []);
    let left = restore(&mut s, &Goal::back(before.id, vec![Step { before: before.id, after: after.id }]));
    assert_eq!((left, w.get(".env").as_str()), (Vec::new(), "0"));
}

/// A snapshot reads what stands in the workspace, not what a folder that is swapped with a link leads to.
#[test]
fn x20_a_swapped_folder_is_not_read_into_a_snapshot() {
    let tmp = tempfile::tempdir().unwrap();
    let swaps = tiller_fs::testing::swap::Swaps::new(tmp.path(), "d", &["f", "sub/f"]);
    let world = World::new();
    let mut s = Shadow::open(swaps.root(), &world.store(), world.limits, world.clock).unwrap();
    let mut read = || {
        let id = s.snapshot().unwrap().id;
        let text =
            |path| String::from_utf8(s.read(id, Path::new(path)).unwrap().unwrap_or_default()).unwrap();
        format!("{}{}", text("d/f"), text("d/sub/f"))
    };
    assert!(read().contains(tiller_fs::testing::swap::MINE));
    swaps.race("snapshots", 50, 1_000, read);
}
