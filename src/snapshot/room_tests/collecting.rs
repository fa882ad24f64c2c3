//! Age, quota, damage, and leftovers of kills in the store. (W8)

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tiller_protocol::Clock;

use super::kills::{Fuse, clean};
use super::world::{World, diff};
use crate::{Id, SnapshotError};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn what_nobody_needs_goes_when_it_is_old() {
    let w = World::new();
    let mut s = w.open();
    let mut ids = Vec::new();
    for n in 0..30 {
        w.put("shared", "the same in all");
        w.put("a", format!("state {n}"));
        ids.push(s.snapshot().unwrap().id);
        w.clock.advance(DAY);
    }
    let keep = [ids[3], ids[17]];
    let done = s.collect(&keep, 10 * DAY, u64::MAX).unwrap();
    // Older than ten days and not kept: days 0 to 19 without the two.
    assert_eq!((done.removed, done.dropped.len()), (18, 0));
    assert!(done.bytes_after < done.bytes_before);
    for (n, id) in ids.iter().enumerate() {
        let there = n >= 20 || keep.contains(id);
        assert_eq!(s.find(*id).is_ok(), there, "{n}");
        if there {
            let text = s.read(*id, Path::new("a")).unwrap().unwrap();
            assert_eq!(text, format!("state {n}").into_bytes());
        }
    }
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!(s.list().unwrap().len(), 12);
    // The folder did not change, and the cached state is still valid.
    let again = s.snapshot().unwrap();
    assert_eq!(diff(&s, ids[29], again.id), "");
    clean(&w);
}

/// Folders with copies of files go when they are 30 days old without another one being made, and the oldest before that while all
/// are larger than the quota.
#[test]
fn copies_of_files_go_by_age_and_by_the_quota() {
    let w = World::new();
    let mut s = w.open();
    s.snapshot().unwrap();
    let now = w.clock.now().millis();
    let day = i64::try_from(DAY.as_millis()).unwrap();
    let put = |parent: &str, age: i64| {
        let folder = w.store().join(parent).join(format!("{}-0", now - age * day));
        fs::create_dir_all(folder.join("0")).unwrap();
        fs::write(folder.join("0/copy"), [0; 1000]).unwrap();
        folder
    };
    let [old, outside, older, newer] =
        [("kept", 31), ("outside", 31), ("kept", 3), ("outside", 2)].map(|(parent, age)| put(parent, age));
    let fresh = put("kept", 0);
    let left = |s: &mut crate::Shadow, quota| {
        s.collect(&[], 365 * DAY, quota).unwrap();
        [&old, &outside, &older, &newer, &fresh].map(|folder| folder.exists())
    };
    assert_eq!(left(&mut s, u64::MAX), [false, false, true, true, true]);
    assert_eq!(left(&mut s, 2_500), [false, false, false, true, true]);
    assert_eq!(left(&mut s, 10), [false, false, false, false, true], "the last hours");
}

#[test]
fn a_quota_drops_the_oldest_and_says_which() {
    let w = World::new();
    let mut s = w.open();
    let mut ids = Vec::new();
    for n in 0..20_u32 {
        // Does not compress.
        let bytes: Vec<u8> = (0..2000_u32)
            .flat_map(|i| Id::of(crate::objects::id::Sort::Content, &(i * 64 + n).to_le_bytes()).0)
            .collect();
        w.put("big", bytes);
        ids.push(s.snapshot().unwrap().id);
        w.clock.advance(DAY);
    }
    let quota = 600_000;
    let done = s.collect(&ids, 365 * DAY, quota).unwrap();
    assert!(done.bytes_after <= quota, "{done:?}");
    assert!(done.dropped.len() >= 10 && ids.starts_with(&done.dropped), "{:?}", done.dropped);
    assert!(s.find(ids[19]).is_ok());
    assert_eq!(s.find(ids[0]), Err(SnapshotError::Missing(ids[0])));
    // The newest is kept even when it alone exceeds the quota.
    let done = s.collect(&ids, 365 * DAY, 1).unwrap();
    assert!(s.find(ids[19]).is_ok() && done.bytes_after < quota);
}

#[test]
fn another_process_that_collects_does_not_hurt_one_that_is_open() {
    let w = World::new();
    w.put("a", "0");
    let (mut one, mut two) = (w.open(), w.open());
    let first = one.snapshot().unwrap();
    // Of two states of one moment the one with the greater id would count as the newest.
    w.clock.advance(Duration::from_secs(1));
    w.put("a", "1");
    let kept = two.snapshot().unwrap();
    w.clock.advance(3 * DAY);
    two.collect(&[kept.id], Duration::ZERO, u64::MAX).unwrap();
    assert_eq!(w.open().find(first.id), Err(SnapshotError::Missing(first.id)));
    // The cache of the first one names objects that are gone: it must scan again.
    w.put("a", "0");
    let now = one.snapshot().unwrap();
    assert_eq!(one.read(now.id, Path::new("a")).unwrap().unwrap(), b"0");
    assert_eq!(two.verify().unwrap().problems, Vec::<String>::new());
    // A young one of another process is kept, though it is not recorded yet.
    two.collect(&[], Duration::ZERO, 0).unwrap();
    assert!(one.find(now.id).is_ok());
}

#[test]
fn several_at_once_keep_each_others_snapshots() {
    let w = World::new();
    for n in 0..20 {
        w.put(&format!("f{n}"), "0");
    }
    let ids: Vec<Id> = std::thread::scope(|scope| {
        let run = |who: usize| {
            let w = &w;
            scope.spawn(move || {
                let mut s = w.open();
                let mut ids = Vec::new();
                for n in 0..15 {
                    w.put(&format!("f{}", who * 4), format!("{who} {n}"));
                    ids.push(s.snapshot_touched(&[format!("f{}", who * 4)]).unwrap().id);
                    ids.push(s.snapshot().unwrap().id);
                    if n % 5 == who {
                        s.collect(&[], DAY, u64::MAX).unwrap();
                    }
                    if n % 4 == who {
                        s.tidy().unwrap();
                    }
                    for id in &ids {
                        assert!(s.files(*id).is_ok());
                    }
                }
                ids
            })
        };
        let all: Vec<_> = (0..4).map(run).collect();
        all.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let s = w.open();
    assert!(ids.iter().all(|id| s.files(*id).is_ok()));
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    clean(&w);
}

/// Checkpoints with kills in between; the store stays within its quota and undamaged.
fn many(checkpoints: usize, kills: usize) {
    let w = World::new();
    let quota = 400_000;
    let fuse = Fuse::new();
    let mut s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
    let mut ids = Vec::new();
    for n in 0..checkpoints {
        w.put(&format!("d{}/f", n % 10), format!("{n} ").repeat(n % 300));
        w.clock.advance(Duration::from_secs(600));
        if n % (checkpoints / kills) == 0 {
            // Killed at a snapshot, or during a collection.
            fuse.after(n / 3 % 25);
            let _ =
                if n % 2 == 0 { s.snapshot().map(|_| ()) } else { s.collect(&ids, DAY, quota).map(|_| ()) };
            drop(s);
            fuse.after(usize::MAX);
            s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
            clean(&w);
        }
        ids.push(s.snapshot().unwrap().id);
        if n % 50 == 49 {
            let dropped = s.collect(&ids, DAY, quota).unwrap().dropped;
            ids.retain(|id| !dropped.contains(id));
            // A pack with a little waste is kept, hence a tenth more.
            assert!(s.bytes().unwrap() <= quota + quota / 10, "{} after {n}", s.bytes().unwrap());
        }
    }
    s.collect(&ids, DAY, quota).unwrap();
    assert!(s.bytes().unwrap() <= quota + quota / 10);
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    clean(&w);
    let packs = fs::read_dir(w.store().join("repo/objects/pack")).unwrap().count();
    assert!(packs < 100, "{packs}");
}

#[test]
fn many_checkpoints_and_kills_stay_within_the_quota() {
    many(300, 20);
}

#[test]
#[ignore = "minutes: 10,000 checkpoints"]
fn ten_thousand_checkpoints_and_kills_stay_within_the_quota() {
    many(10_000, 100);
}

#[test]
fn damage_is_found_and_named_and_the_rest_stays_readable() {
    let w = World::new();
    w.put("a", "0".repeat(1000));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    w.put("a", "1".repeat(1000));
    let second = s.snapshot().unwrap();
    drop(s);
    // The older pack holds the first snapshot.
    let packs = w.store().join("repo/objects/pack");
    let holds = |name: &Path, id: Id| {
        let index = fs::read(name.with_extension("idx")).unwrap();
        index.windows(32).any(|bytes| bytes == id.0)
    };
    let all: Vec<_> = fs::read_dir(&packs).unwrap().map(|e| e.unwrap().path()).collect();
    let old = all.iter().find(|p| p.extension().unwrap() == "pack" && holds(p, first.id)).unwrap();
    let mut bytes = fs::read(old).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 0xff;
    fs::write(old, &bytes).unwrap();
    let mut s = w.open();
    assert!(!s.verify().unwrap().problems.is_empty());
    assert_eq!(s.read(second.id, Path::new("a")).unwrap().unwrap(), "1".repeat(1000).into_bytes());
    // A lost or zeroed index is rebuilt.
    for index in all.iter().filter(|p| p.extension().unwrap() == "idx" && !holds(p, first.id)) {
        let len = fs::metadata(index).unwrap().len();
        fs::write(index, vec![0; usize::try_from(len).unwrap()]).unwrap();
    }
    drop(s);
    s = w.open();
    assert_eq!(s.read(second.id, Path::new("a")).unwrap().unwrap(), "1".repeat(1000).into_bytes());
    w.put("a", "2");
    assert!(s.snapshot().is_ok());
}

/// Torn by a loss of power: the index is intact, some sectors of the pack are zeros.
fn tear(pack: &Path) {
    let mut bytes = fs::read(pack).unwrap();
    let from = bytes.len() / 3;
    let to = from + (bytes.len() / 3).min(512);
    bytes[from..to].fill(0);
    fs::write(pack, bytes).unwrap();
}

#[test]
fn a_torn_pack_that_was_never_flushed_does_not_say_that_it_has_what_it_lost() {
    let w = World::new();
    let noise = |n: u64| -> Vec<u8> {
        let mut x = n;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x.to_le_bytes()[0]
        };
        (0..3000).map(|_| next()).collect()
    };
    w.put("kept", noise(7));
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    s.settle().unwrap();
    w.put("a", noise(9));
    w.put("b", noise(11));
    // Not flushed: snapshots around a call never are.
    s.snapshot_touched(&[w.work().join("a"), w.work().join("b")]).unwrap();
    drop(s);
    let flushed = fs::read_to_string(w.store().join("flushed")).unwrap();
    let packs = w.store().join("repo/objects/pack");
    let all = || {
        fs::read_dir(&packs).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().unwrap() == "pack")
    };
    let loose: Vec<_> =
        all().filter(|p| !flushed.contains(p.file_stem().unwrap().to_str().unwrap())).collect();
    assert_eq!((loose.len(), all().count()), (1, 2), "the first is flushed, the second is not");
    tear(&loose[0]);
    let mut s = w.open();
    let again = s.snapshot().unwrap();
    for (name, n) in [("a", 9), ("b", 11), ("kept", 7)] {
        assert_eq!(s.read(again.id, Path::new(name)).unwrap().unwrap(), noise(n), "{name}");
    }
    assert_eq!(s.read(first.id, Path::new("kept")).unwrap().unwrap(), noise(7));
    s.settle().unwrap();
    // A collection copies no damaged object, and deletes the torn pack where it still exists.
    s.collect(&[first.id, again.id], DAY, u64::MAX).unwrap();
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    drop(s);
    // Flushed packs are not read at each start: damage shows only when an object is read.
    let flushed = fs::read_to_string(w.store().join("flushed")).unwrap();
    assert!(all().all(|p| flushed.contains(p.file_stem().unwrap().to_str().unwrap())), "{flushed}");
}
