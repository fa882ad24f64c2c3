//! The budgets marked T that concern files. Run alone, on a calm machine, optimised:
//! `cargo test --release -p tiller-snapshot --lib room_tests::figures -- --ignored --nocapture`

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::world::{World, agent, sh, undo};
use crate::{Goal, Shadow};

/// On a machine with other load, only the second figure is meaningful.
fn timed<T>(what: &str, budget: &str, act: impl FnOnce() -> T) -> T {
    let (start, cpu) = (Instant::now(), cpu());
    let out = act();
    let (wall, cpu) = (start.elapsed().as_secs_f64() * 1000.0, self::cpu() - cpu);
    println!("{what:40} {wall:>9.1} ms, {cpu:>8.1} ms of CPU; budget {budget}");
    out
}

/// CPU time of all threads of this process, in milliseconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1000.0 + time.tv_nsec as f64 / 1e6
}

#[test]
#[ignore = "prints figures"]
fn snapshots_and_restores_of_50_000_files() {
    let w = World::new();
    for n in 0..50_000 {
        let (d, f) = (n / 50, n % 50);
        let text: String = (d * f..d * f + 150).map(|line| format!("line {line}\n")).collect();
        w.put(&format!("p{}/d{d}/file{f}.rs", d % 40), text);
    }
    // Old enough to be settled, as files usually are.
    settle();
    let mut s = w.open();
    let first = timed("first snapshot, 50,000 files", "5 s", || s.snapshot().unwrap());
    println!("{:44} {:>9.1} MiB", "store", s.bytes().unwrap() as f64 / f64::from(1 << 20));
    for _ in 0..5 {
        timed("snapshot, nothing changed", "100 ms", || s.snapshot().unwrap());
    }
    w.put("p1/d1/file1.rs", "changed");
    timed("snapshot, one file changed", "-", || s.snapshot().unwrap());
    for n in 0..5 {
        w.put("p1/d1/file2.rs", format!("changed {n}"));
        timed("snapshot of one named edit", "5 ms", || s.snapshot_touched(&["p1/d1/file2.rs"]).unwrap());
    }
    timed("settle", "-", || s.settle().unwrap());
    s.save_cache();
    drop(s);
    let mut s: Shadow = timed("open, with what was remembered", "-", || w.open());
    timed("first snapshot after that", "100 ms", || s.snapshot().unwrap());
    let step = agent(&mut s, || {
        sh(
            &w.work(),
            "for d in p3/d3 p3/d43 p3/d83 p3/d123; do for f in $d/*; do echo new > $f; done; done; \
            for d in $(seq 4 40 844); do for f in p4/d$d/*; do echo new > $f; done; done; rm -r p5/d5 p5/d45 p5/d85 p5/d125; \
            for d in $(seq 205 40 605); do rm -r p5/d$d; done",
        );
    });
    let plan = timed("plan of a restore", "-", || s.plan(&Goal::back(first.id, vec![step])).unwrap());
    println!("{:44} {:>9}", "files to restore", plan.items.len());
    let done = timed("restore", "1 s for 2,000", || s.restore(&plan, &BTreeMap::new()).unwrap());
    timed("undo, with its plan", "1 s for 2,000", || undo(&mut s, &done));
    timed("collect", "-", || s.collect(&[first.id], Duration::ZERO, u64::MAX).unwrap());
    timed("verify", "-", || s.verify().unwrap());
}

/// The cost of ignored files: build output is not entered, small files are looked at.
#[test]
#[ignore = "prints figures"]
fn snapshots_beside_ignored_files() {
    let w = World::new();
    for n in 0..100_000 {
        w.put(&format!("p{}/d{}/file{n}.rs", n % 40, n / 100), "text");
    }
    w.put(".gitignore", "target/\nout.d/\n.env*\n.idea/\n");
    settle();
    let mut s = w.open();
    timed("first snapshot, 100,000 files", "-", || s.snapshot().unwrap());
    let mut least = || {
        let one = |_| {
            let start = cpu();
            s.snapshot().unwrap();
            cpu() - start
        };
        (0..7).map(one).fold(f64::MAX, f64::min)
    };
    let without = least();
    for n in 0..50_000 {
        w.put(&format!("target/{}/{n}", n % 100), "0");
        w.put(&format!("out.d/{}/{n}", n % 100), "0");
    }
    for n in 0..1_000 {
        w.put(&format!("p1/d{n}/.env.local"), "0");
        w.put(&format!(".idea/{}/{n}.xml", n % 4), "0");
    }
    settle();
    least();
    let with = least();
    println!(
        "nothing changed: {without:.1} ms of CPU, beside ignored files {with:.1}: {:.2}x",
        with / without
    );
}

/// Waits until what was just written counts as settled.
#[expect(clippy::disallowed_methods, reason = "the file system's clock is real")]
fn settle() {
    std::thread::sleep(Duration::from_millis(200));
}
