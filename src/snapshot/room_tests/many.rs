//! Thousands of calls that change files, in one project and over many sessions, with few file descriptors and with
//! kills while packs are joined. (W18)

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::world::World;
use crate::{Id, Shadow};

/// Number of files that are written in turn.
const FILES: usize = 100;
/// Calls until the workspace is opened again, as the next session does.
const SESSION: usize = 400;

fn file(n: usize) -> String {
    format!("src/part{}/file{}.rs", n % 7, n % FILES)
}

/// Number of open file descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// One call that writes a file, with the states before and after it.
fn call(w: &Path, s: &mut Shadow, n: usize) -> Id {
    let path = file(n);
    s.snapshot_touched(&[&path]).unwrap();
    fs::write(w.join(&path), format!("state {n}")).unwrap();
    s.snapshot_touched(&[&path]).unwrap().id
}

fn acknowledged(log: &Path) -> Vec<Id> {
    let text = fs::read_to_string(log).unwrap_or_default();
    // A kill may cut the last line.
    text.split_inclusive('\n').filter_map(|l| l.strip_suffix('\n')?.parse().ok()).collect()
}

/// The part of the killed process, which is this test binary once more. Alone it does nothing.
#[test]
#[ignore = "the other process of the test beside it"]
fn calls_of_another_process() {
    let Some(top) = std::env::var_os("TILLER_TEST_CALLS").map(PathBuf::from) else { return };
    let count: usize = fs::read_to_string(top.join("count")).unwrap().parse().unwrap();
    let log = top.join("log");
    let mut n = acknowledged(&log).len();
    let mut out = fs::OpenOptions::new().append(true).create(true).open(&log).unwrap();
    let idle = descriptors();
    let mut most = 0;
    while n < count {
        let clock = std::sync::Arc::new(tiller_protocol::SystemClock::default());
        let mut s =
            Shadow::open(&top.join("work"), &top.join("store"), crate::Limits::default(), clock).unwrap();
        for _ in 0..SESSION.min(count - n) {
            let id = call(&top.join("work"), &mut s, n);
            out.write_all(format!("{id}\n").as_bytes()).unwrap();
            n += 1;
            most = most.max(descriptors() - idle);
        }
    }
    fs::write(top.join("descriptors"), most.to_string()).unwrap();
}

fn start(w: &World) -> Child {
    let mut child = Command::new("sh");
    child.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "room_tests::many::calls_of_another_process", "--ignored", "--nocapture"]);
    child.env("TILLER_TEST_CALLS", &w.top).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// This many calls, of which some processes are killed while they join packs.
fn killed(count: usize, kills: usize) {
    let w = World::new();
    for n in 0..FILES * 7 {
        w.put(&file(n), "0");
    }
    fs::write(w.top.join("count"), count.to_string()).unwrap();
    let (log, joining) = (w.top.join("log"), w.store().join("repo/objects/pack/tmp_join"));
    let mut torn = 0;
    for kill in 0..kills {
        let mut child = start(&w);
        // Not before it did its part, and then in the middle of a join, if one is seen before the next part is due.
        let wanted = count * (kill + 1) / (kills + 1);
        let latest = wanted + count / (kills + 1) / 2;
        let lines = || fs::metadata(&log).map_or(0, |m| m.len() / 65) as usize;
        while lines() < wanted || !joining.exists() && lines() < latest {
            if let Some(ended) = child.try_wait().unwrap() {
                assert!(ended.success(), "{}", std::io::read_to_string(child.stderr.unwrap()).unwrap());
                break;
            }
            std::thread::yield_now();
        }
        let _ = child.kill();
        torn += usize::from(child.wait().unwrap().signal() == Some(9));
    }
    assert!(torn * 2 >= kills, "{torn} of {kills} were killed at work");
    let last = start(&w).wait_with_output().unwrap();
    assert!(last.status.success(), "{}", String::from_utf8_lossy(&last.stderr));
    let most: usize = fs::read_to_string(w.top.join("descriptors")).unwrap().parse().unwrap();
    assert!(most <= 64, "{most} descriptors");
    let ids = acknowledged(&log);
    assert_eq!(ids.len(), count);
    let s = w.open();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(s.read(*id, Path::new(&file(n))).unwrap().unwrap(), format!("state {n}").into_bytes());
    }
    assert_eq!(s.verify().unwrap().problems, Vec::<String>::new());
    // Packs that wait for a join are counted too, on a slow machine as many as may wait.
    let packs = s.objects.packs().len();
    assert!(packs <= crate::pack::join::CROWD, "{packs} packs");
    drop(s);
    // The next sessions join them: each begins a join at its first call, and ends when that is finished.
    for n in count..count + 3 {
        call(&w.work(), &mut w.open(), n);
    }
    let mut s = w.open();
    let packs = s.objects.packs().len();
    assert!(packs <= 16, "{packs} packs");
    let before = s.bytes().unwrap();
    s.tidy().unwrap();
    let after = s.bytes().unwrap();
    // Data of the last calls still waits to be joined; for few calls that is a large part.
    let waiting = 256 << 10;
    assert!(before * 2 <= after * 3 + waiting, "{before} bytes, and {after} in one pack");
    super::kills::clean(&w);
}

#[test]
fn no_state_is_lost_by_kills_while_packs_are_joined_and_few_descriptors_are_enough() {
    killed(500, 6);
}

#[test]
#[ignore = "minutes: 20,000 calls"]
fn no_state_is_lost_in_20_000_calls_whole_() {
    killed(20_000, 40);
}

/// The time of a call at the start and after many, in one run:
/// `TILLER_CALLS=100000 cargo test --release -p tiller-snapshot --lib figures_of_the_cost -- --ignored --nocapture`
///
/// With `TMPDIR=/dev/shm` it measures this program alone: ext4 skips each inode that was freed in the last half minute,
/// so new files cost more when calls follow each other quickly.
#[test]
#[ignore = "prints figures"]
fn figures_of_the_cost_of_calls() {
    let count = std::env::var("TILLER_CALLS").map_or(20_000, |n| n.parse().unwrap());
    for flat in [0, 2000] {
        let w = World::new();
        for n in 0..FILES * 7 {
            w.put(&file(n), "0");
        }
        for n in 0..flat {
            w.put(&format!("flat/a-name-of-usual-length-{n}.rs"), "0");
        }
        w.sh("find . -exec touch -d '1 hour ago' {} +");
        let name = |n: usize| {
            if flat == 0 { file(n) } else { format!("flat/a-name-of-usual-length-{}.rs", n % flat) }
        };
        let mut s = w.open();
        s.snapshot().unwrap();
        s.tidy().unwrap();
        let empty = s.bytes().unwrap();
        let idle = descriptors();
        let (mut first, mut some, mut most, mut packs) = ([Duration::ZERO; 2], [vec![], vec![]], 0, 0);
        for n in 0..count {
            if n > 0 && n % SESSION == 0 {
                drop(s);
                s = w.open();
            }
            let begin = (Instant::now(), cpu());
            s.snapshot_touched(&[&name(n)]).unwrap();
            fs::write(w.work().join(name(n)), format!("state {n}")).unwrap();
            s.snapshot_touched(&[&name(n)]).unwrap();
            some[0].push(begin.0.elapsed());
            some[1].push(cpu() - begin.1);
            most = most.max(descriptors().saturating_sub(idle));
            packs = packs.max(s.objects.packs().len());
            if n == 9 {
                first = [middle(&mut some[0]), middle(&mut some[1])];
            }
            if (n + 1) % (count / 5) == 0 {
                let now = [middle(&mut some[0]), middle(&mut some[1])];
                let ratio = |n: usize| now[n].as_secs_f64() / first[n].as_secs_f64();
                println!(
                    "flat {flat:>4}: after {:>6} calls {:>7.1?} a call, {:.2}x of the first ten; of its thread's CPU {:.1?}, {:.2}x",
                    n + 1,
                    now[0],
                    ratio(0),
                    now[1],
                    ratio(1)
                );
            }
        }
        drop(s);
        s = w.open();
        let bytes = s.bytes().unwrap();
        s.tidy().unwrap();
        let one = s.bytes().unwrap();
        println!(
            "flat {flat:>4}: {most} descriptors, {packs} packs at most, {} bytes a call, {:.2}x of one pack",
            (bytes - empty) / count as u64,
            bytes as f64 / one as f64
        );
    }
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn middle(some: &mut Vec<Duration>) -> Duration {
    some.sort_unstable();
    let middle = some[some.len() / 2];
    some.clear();
    middle
}
