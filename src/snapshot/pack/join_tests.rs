//! Which packs are joined, and that kills and other processes lose no data.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::{FEW, join_store, smallest};
use crate::room_tests::kills::{Fuse, clean};
use crate::room_tests::world::World;
use crate::{Id, Shadow, Snapshot};

/// Number of packs in a store.
fn packs(w: &World) -> usize {
    let dir = w.store().join("repo/objects/pack");
    fs::read_dir(dir).unwrap().filter(|e| e.as_ref().unwrap().path().extension().unwrap() == "pack").count()
}

#[test]
fn the_number_of_packs_grows_with_the_logarithm_and_so_does_what_is_copied() {
    let (mut sizes, mut copied, mut most) = (Vec::new(), 0_u64, 0);
    for call in 0..100_000_u64 {
        sizes.push(3 + call % 3);
        sizes.sort_unstable();
        let take = smallest(&sizes);
        if take > 0 {
            let sum: u64 = sizes.drain(..take).sum();
            copied += sum;
            sizes.push(sum);
            sizes.sort_unstable();
        }
        most = most.max(sizes.len());
    }
    assert!(most <= 24, "{most} packs");
    let written = 100_000 * 4;
    assert!(copied < 12 * written, "each object is copied {} times", copied / written);
}

/// Snapshots of a folder in which one file after the other changes; each with the content.
fn story(w: &World, s: &mut Shadow, from: usize, count: usize) -> Vec<(Snapshot, String)> {
    (from..from + count)
        .map(|n| {
            w.put(&format!("d/{}", n % 40), format!("state {n}"));
            (s.snapshot_touched(&[format!("d/{}", n % 40)]).unwrap(), format!("state {n}"))
        })
        .collect()
}

fn all_there(s: &Shadow, from: usize, story: &[(Snapshot, String)]) {
    for (n, (snapshot, text)) in story.iter().enumerate() {
        let path = format!("d/{}", (from + n) % 40);
        assert_eq!(s.read(snapshot.id, Path::new(&path)).unwrap().unwrap(), text.as_bytes(), "{n}");
    }
}

#[test]
fn packs_are_joined_as_they_come_and_folders_become_deltas() {
    let w = World::new();
    for n in 0..2000 {
        w.put(&format!("flat/a-file-with-a-name-{n}.txt"), "0");
    }
    let mut s = w.open_with(Fuse::new().steps(io::ErrorKind::Interrupted)).unwrap();
    let first = s.snapshot().unwrap();
    let base = s.bytes().unwrap();
    let mut ids = vec![first.id];
    for n in 0..200 {
        let name = format!("flat/a-file-with-a-name-{}.txt", n * 7);
        w.put(&name, format!("{n}"));
        ids.push(s.snapshot_touched(&[&name]).unwrap().id);
    }
    assert!(packs(&w) <= 20, "{}", packs(&w));
    // Packs that wait for a join are intact.
    s.tidy().unwrap();
    let each = (s.bytes().unwrap() - base) / 200;
    assert!(each < 4_000, "{each} bytes an edit");
    for (n, id) in ids.iter().enumerate().skip(1) {
        let name = format!("flat/a-file-with-a-name-{}.txt", (n - 1) * 7);
        assert_eq!(s.read(*id, Path::new(&name)).unwrap().unwrap(), format!("{}", n - 1).into_bytes());
    }
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!(packs(&w), 1);
    // CollectReport objects may have been the base of others.
    w.clock.advance(std::time::Duration::from_secs(30 * 86_400));
    let keep: Vec<Id> = ids.iter().copied().skip(3).step_by(5).collect();
    s.collect(&keep, std::time::Duration::ZERO, u64::MAX).unwrap();
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    for id in keep {
        assert_eq!(s.files(id).unwrap().len(), 2000);
    }
}

/// In a folder that is too large to be covered completely, each snapshot lists the paths that were named so far.
#[test]
fn snapshots_that_list_many_paths_cost_what_changed() {
    let mut w = World::new();
    w.limits.files = 10;
    for n in 0..20 {
        w.put(&format!("many/{n}"), "0");
    }
    let mut s = w.open_with(Fuse::new().steps(io::ErrorKind::Interrupted)).unwrap();
    s.snapshot().unwrap();
    let mut ids = Vec::new();
    for n in 0..300 {
        let name = format!("some/folder/a-file-with-a-name-{n}.txt");
        w.put(&name, format!("{n}"));
        ids.push(s.snapshot_touched(&[&name]).unwrap().id);
    }
    s.tidy().unwrap();
    // Without deltas the list of the last snapshot alone takes 13,000.
    let each = s.bytes().unwrap() / 300;
    assert!(each < 1_500, "{each} bytes a call");
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(s.kept(*id).unwrap().named.len(), n + 1);
    }
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    let git = format!("git --git-dir='{}' cat-file commit {}", w.store().join("repo").display(), ids[299]);
    assert_eq!(w.sh(&git).lines().filter(|l| l.starts_with("named ")).count(), 300);
}

#[test]
fn git_reads_what_was_joined() {
    let w = World::new();
    let mut s = w.open();
    let told = story(&w, &mut s, 0, 120);
    s.tidy().unwrap();
    let git = format!("git --git-dir='{}'", w.store().join("repo").display());
    let stats = w.sh(&format!(
        "for i in '{}'/*.idx; do git verify-pack --object-format=sha256 -v \"$i\"; done",
        s.place.packs().display()
    ));
    assert!(stats.contains("chain length = "), "no deltas: {stats}");
    for (n, (snapshot, text)) in told.iter().enumerate() {
        if n % 10 == 0 {
            assert_eq!(w.sh(&format!("{git} cat-file blob {}:d/{}", snapshot.id, n % 40)), *text);
        }
    }
    // A lost index is rebuilt, deltas included.
    let index = fs::read_dir(s.place.packs()).unwrap().map(|e| e.unwrap().path());
    let index = index.into_iter().find(|p| p.extension().unwrap() == "idx").unwrap();
    let before = fs::read(&index).unwrap();
    drop(s);
    fs::remove_file(&index).unwrap();
    let s = w.open();
    assert_eq!(fs::read(&index).unwrap(), before);
    all_there(&s, 0, &told);
    // A git that repacks the store writes offsets instead of ids.
    w.sh(&format!("{git} repack -q -a -f --window=5 --depth=5 || true"));
    let ids: Vec<String> = told.iter().map(|(s, _)| s.id.to_string()).collect();
    fs::write(w.top.join("ids"), ids.join("\n")).unwrap();
    w.sh(&format!(
        "{git} pack-objects -q --revs --delta-base-offset '{}/repo/objects/pack/pack' < '{}/ids'",
        w.store().display(),
        w.top.display()
    ));
    fs::remove_file(index.with_extension("pack")).unwrap();
    fs::remove_file(&index).unwrap();
    let s = w.open();
    all_there(&s, 0, &told);
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_join_that_is_killed_anywhere_loses_nothing() {
    let mut steps = 0;
    loop {
        let w = World::new();
        let fuse = Fuse::new();
        let mut s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
        let told = story(&w, &mut s, 0, FEW - 1);
        assert_eq!(packs(&w), FEW - 1);
        w.put("d/last", "0");
        let last = s.snapshot().unwrap();
        assert_eq!(packs(&w), 1, "the eighth snapshot joined all");
        let told2 = story(&w, &mut s, FEW - 1, FEW - 2);
        fuse.after(steps);
        // No snapshot, which would take steps of its own.
        let _ = s.tidy();
        let blown = fuse.blown();
        drop(s);
        // The next start is killed too.
        fuse.after(steps % 3);
        let _ = w.open_with(fuse.steps(io::ErrorKind::Interrupted));
        fuse.after(usize::MAX);
        let s = w.open_with(fuse.steps(io::ErrorKind::Interrupted)).unwrap();
        clean(&w);
        all_there(&s, 0, &told);
        all_there(&s, FEW - 1, &told2);
        assert!(s.files(last.id).is_ok());
        assert_eq!(s.verify().unwrap().problems, Vec::<String>::new(), "killed after {steps}");
        if !blown {
            assert_eq!(packs(&w), 1);
            break;
        }
        steps += 1;
    }
    assert!(steps > 20, "{steps} steps");
}

#[test]
fn a_full_disk_stops_a_join_and_nothing_else() {
    let w = World::new();
    let fuse = Fuse::new();
    let steps = fuse.clone();
    // Only the writes of a join fail for lack of space.
    let mut s = w
        .open_with(crate::steps::Steps::with(move |what| {
            if what == "close pack" && !steps.burn() {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Ok(())
        }))
        .unwrap();
    let told = story(&w, &mut s, 0, FEW - 1);
    fuse.after(1);
    let last = story(&w, &mut s, FEW - 1, 1);
    assert_eq!(packs(&w), FEW, "the join failed, the snapshot did not");
    fuse.after(usize::MAX);
    clean(&w);
    // It is not attempted again at once.
    let more = story(&w, &mut s, FEW, 3);
    assert_eq!(packs(&w), FEW + 3);
    s.tidy().unwrap();
    assert_eq!(packs(&w), 1);
    all_there(&s, 0, &told);
    all_there(&s, FEW - 1, &last);
    all_there(&s, FEW, &more);
}

#[test]
fn a_damaged_pack_is_left_alone_and_the_others_are_joined() {
    let w = World::new();
    let mut s = w.open();
    let told = story(&w, &mut s, 0, 5);
    let dir = s.place.packs();
    let victim = s.objects.packs()[1].name.clone();
    drop(s);
    let path = dir.join(format!("{victim}.pack"));
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 0xff;
    fs::write(&path, bytes).unwrap();
    // Flushed packs are not read at the start.
    let names: BTreeSet<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    fs::write(w.store().join("flushed"), names.iter().map(|n| format!("{n}\n")).collect::<String>()).unwrap();
    let done = join_store(&w.store(), w.limits.wait).unwrap().unwrap();
    assert_eq!((done.packs_before, done.packs_after), (5, 2));
    assert!(path.exists());
    let s = w.open();
    all_there(&s, 2, &told[2..]);
}

#[test]
fn another_process_finds_what_was_joined_while_it_read() {
    let w = World::new();
    let mut one = w.open();
    let told = story(&w, &mut one, 0, 7);
    let two = w.open();
    all_there(&two, 0, &told);
    // As another process does.
    let done = join_store(&w.store(), w.limits.wait).unwrap().unwrap();
    assert_eq!((done.packs_before, done.packs_after), (7, 1));
    assert!(done.bytes_after < done.bytes_before);
    all_there(&one, 0, &told);
    all_there(&two, 0, &told);
    assert_eq!(join_store(&w.top.join("none"), w.limits.wait), Ok(None));
    let more = story(&w, &mut one, 7, 3);
    all_there(&two, 7, &more);
}

#[test]
fn an_older_store_gets_no_deltas_while_an_older_program_may_have_it_open() {
    let w = World::new();
    let mut s = w.open();
    let mut told = story(&w, &mut s, 0, 6);
    drop(s);
    let format = w.store().join("format");
    let text = fs::read_to_string(&format).unwrap();
    fs::write(&format, text.replace("snapshots 2", "snapshots 1")).unwrap();
    let mut s = w.open();
    assert_eq!(fs::read_to_string(&format).unwrap(), text);
    assert!(!s.place.deltas());
    s.tidy().unwrap();
    let stats = |s: &Shadow| {
        w.sh(&format!(
            "for i in '{}'/*.idx; do git verify-pack --object-format=sha256 -v \"$i\"; done",
            s.place.packs().display()
        ))
    };
    assert!(!stats(&s).contains("chain length"), "{}", stats(&s));
    let day_before = std::time::SystemTime::now() - std::time::Duration::from_secs(90_000);
    fs::File::open(w.store().join("upgraded")).unwrap().set_modified(day_before).unwrap();
    assert!(s.place.deltas());
    told.extend(story(&w, &mut s, 6, 40));
    s.tidy().unwrap();
    assert!(stats(&s).contains("chain length"), "{}", stats(&s));
    all_there(&s, 0, &told);
}
