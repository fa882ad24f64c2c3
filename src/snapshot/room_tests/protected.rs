//! Attributes of files, and read-only files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::world::{World, agent, restore};
use crate::{Answer, Conflict, Goal, SkipReason, Step};

/// Attributes and access lists are restored with the content, for changed and for deleted files.
#[test]
fn attributes_and_access_lists_survive_a_restore() {
    use tiller_fs::attributes::testing;
    let w = World::new();
    if !testing::supported(&w.top) {
        eprintln!("skipped: no access lists on this file system");
        return;
    }
    let list = c"system.posix_acl_access";
    for name in ["changed", "deleted", "later"] {
        w.put(name, "0");
    }
    for name in ["changed", "deleted"] {
        testing::set(&w.work().join(name), c"user.note", b"a note");
        testing::set(&w.work().join(name), list, &testing::list());
    }
    let state = |name: &str| {
        let path = w.work().join(name);
        (testing::of(&path), fs::metadata(&path).unwrap().permissions().mode() & 0o777)
    };
    let was = ["changed", "deleted"].map(state);
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    // Also from the cache on disk.
    s.save_cache();
    drop(s);
    let mut s = w.open();
    let step = agent(&mut s, || {
        for name in ["changed", "deleted"] {
            w.remove(name);
        }
        w.put("changed", "1");
        w.put("later", "1");
    });
    // Attributes that the owner set since stay, where the state to restore has none.
    testing::set(&w.work().join("later"), c"user.note", b"later");
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(done.left, []);
    assert_eq!(["changed", "deleted"].map(state), was);
    assert_eq!(state("later").0, testing::of(&w.work().join("later")));
    assert!(state("later").0.iter().any(|(name, _)| name == b"user.note"));
    assert_eq!((w.get("changed"), w.get("deleted"), w.get("later")), ("0".into(), "0".into(), "0".into()));
    // A collection keeps them.
    s.collect(&[first.id], std::time::Duration::ZERO, u64::MAX).unwrap();
    let step = agent(&mut s, || w.remove("deleted"));
    restore(&mut s, &done.after, &[step]);
    assert_eq!(state("deleted"), was[1]);
}

/// A file that only a tool's call covers gets back the attributes that it had before the call.
#[test]
fn attributes_of_an_ignored_file_that_a_tool_names_survive_a_restore() {
    use tiller_fs::attributes::testing;
    let w = World::new();
    if !testing::supported(&w.top) {
        eprintln!("skipped: no access lists on this file system");
        return;
    }
    w.put(".gitignore", "*.env\n");
    w.put("deleted.env", "0");
    let path = w.work().join("deleted.env");
    testing::set(&path, c"user.note", b"a note");
    testing::set(&path, c"system.posix_acl_access", &testing::list());
    let was = testing::of(&path);
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let before = s.snapshot_touched(&[&path]).unwrap().id;
    w.remove("deleted.env");
    let after = s.snapshot_touched(&[&path]).unwrap().id;
    let done = restore(&mut s, &first, &[Step { before, after }]);
    assert_eq!(done.left, []);
    assert_eq!((w.get("deleted.env"), testing::of(&path)), ("0".into(), was));
}

/// A read-only file is changed by a restore only when the answer names it.
#[test]
fn a_read_only_file_is_restored_only_when_asked() {
    let w = World::new();
    let chmod = |mode| fs::set_permissions(w.work().join("kept"), fs::Permissions::from_mode(mode)).unwrap();
    w.put("kept", "0");
    chmod(0o444);
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    let step = agent(&mut s, || {
        w.remove("kept");
        w.put("kept", "1");
        chmod(0o444);
    });
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    assert_eq!(plan.items[0].conflict, Some(Conflict::ReadOnly));
    let done = s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!((w.get("kept").as_str(), &done.left[0].why), ("1", &SkipReason::ReadOnly));
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    s.restore(&plan, &BTreeMap::from([("kept".into(), Answer::Restore)])).unwrap();
    assert_eq!(w.get("kept"), "0");
}

/// The state of a path: permissions with all bits, and attributes in any order.
fn state(w: &World, path: &str) -> (u32, std::collections::BTreeMap<Vec<u8>, Vec<u8>>) {
    let path = w.work().join(path);
    let all = tiller_fs::attributes::testing::of(&path);
    let all = all.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    (fs::metadata(&path).unwrap().permissions().mode() & 0o7777, all)
}

#[test]
fn sticky_and_set_id_bits_come_back() {
    let w = World::new();
    for path in ["shared/f", "group/f", "tool", "gone/f"] {
        w.put(path, "0");
    }
    w.sh("chmod 1777 shared; chmod 2775 group gone; chmod 4755 tool");
    let paths = ["shared", "group", "tool", "gone"];
    let was = paths.map(|path| state(&w, path));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    s.save_cache();
    drop(s);
    let mut s = w.open();
    let step = agent(&mut s, || {
        w.sh("chmod 0755 shared group; rm tool; echo 1 > tool; rm -r gone");
    });
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(done.left, []);
    assert_eq!(paths.map(|path| state(&w, path)), was);
    assert_eq!(w.get("tool"), "0");
    // Bits alone, too.
    let step = agent(&mut s, || drop(w.sh("chmod u-s tool; chmod -t shared")));
    restore(&mut s, &done.after, &[step]);
    assert_eq!(paths.map(|path| state(&w, path)), was);
}

/// A state of a version that stored neither these bits nor attributes of folders takes none away.
#[test]
fn an_older_state_takes_no_bits_and_no_lists_away() {
    use tiller_fs::attributes::testing;
    let w = World::new();
    w.put("tool", "0");
    w.sh("chmod 4755 tool");
    let mut s = w.open();
    let now = s.snapshot().unwrap();
    let older = s.as_an_older_version(now.id, &["tool"]);
    assert_eq!(s.compare(older, now.id).unwrap(), []);
    w.put("tool", "1");
    w.sh("chmod 4755 tool");
    if testing::supported(&w.top) {
        w.sh("mkdir shared");
        testing::set(&w.work().join("shared"), c"system.posix_acl_default", &testing::list());
    }
    let was = state(&w, "tool");
    let plan = s.plan(&Goal::back(older, Vec::new())).unwrap();
    let answers = BTreeMap::from([("tool".into(), Answer::Restore)]);
    s.restore(&plan, &answers).unwrap();
    assert_eq!((w.get("tool").as_str(), state(&w, "tool")), ("0", was));
}

/// Access lists come back although no content changed: those of files, and the lists that folders give to new files.
#[test]
fn access_lists_alone_come_back() {
    use tiller_fs::attributes::testing;
    let w = World::new();
    if !testing::supported(&w.top) {
        eprintln!("skipped: no access lists on this file system");
        return;
    }
    let (own, default) = (c"system.posix_acl_access", c"system.posix_acl_default");
    for path in ["lost/f", "gone/f", "plain/f", "given", "taken"] {
        w.put(path, "0");
    }
    for path in ["lost", "gone"] {
        testing::set(&w.work().join(path), default, &testing::list());
    }
    testing::set(&w.work().join("taken"), own, &testing::list());
    let paths = ["lost", "gone", "plain", "given", "taken", "gone/f"];
    let was = paths.map(|path| state(&w, path));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    s.save_cache();
    drop(s);
    let mut s = w.open();
    let step = agent(&mut s, || {
        rustix::fs::removexattr(w.work().join("lost"), default).unwrap();
        rustix::fs::removexattr(w.work().join("taken"), own).unwrap();
        testing::set(&w.work().join("plain"), default, &testing::list());
        testing::set(&w.work().join("given"), own, &testing::list());
        w.sh("chmod 640 taken; rm -r gone");
    });
    let done = restore(&mut s, &first, &[step]);
    assert_eq!(done.left, []);
    assert_eq!(paths.map(|path| state(&w, path)), was);
    // What a person changed stays.
    testing::set(&w.work().join("given"), c"user.note", b"mine");
    let plan = s.plan(&Goal::back(done.after.id, Vec::new())).unwrap();
    assert!(plan.items.iter().all(|i| matches!(i.conflict, Some(Conflict::Changed { .. }))), "{plan:?}");
    assert_eq!(plan.items.len(), 1);
}
