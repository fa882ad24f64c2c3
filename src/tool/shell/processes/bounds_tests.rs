//! Row T6 of the fault matrix: a command that would take the whole machine. Each of these stops by itself far below
//! what would hurt: the limits here are smaller still.

use std::time::Duration;

use serde_json::{Value, json};
use tiller_protocol::ToolOutcome;

use super::*;
use crate::shell::{Process, Terminal};
use crate::testing::{Bench, text_of};
use crate::{Tool, ToolOutput};

fn bench(processes: u64, mib: u64) -> Bench {
    Bench::new().limits(|l| {
        l.bounds = Bounds { processes, memory: mib << 20, ..Bounds::default() };
        l.command = Duration::from_secs(100);
    })
}

async fn run(b: &Bench, args: Value) -> ToolOutput {
    Terminal.run(args, &b.cx).await.unwrap()
}

/// Two of itself, nine times over: a thousand at most.
const BOMB: &str = "b() { [ $1 -le 0 ] || { b $(($1-1)) & b $(($1-1)) & }; sleep 90; }; b 9";

/// How long processes may take to end. The machine may be busy with as many of other tests.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t6_a_fork_bomb_is_ended_and_said() {
    for bomb in [BOMB, "for i in $(seq 300); do setsid sleep 90 & done; wait"] {
        let b = bench(100, 0);
        let out = run(&b, json!({ "command": bomb })).await;
        let text = text_of(&out.content);
        assert_eq!(out.outcome, ToolOutcome::Error, "{text}");
        assert!(text.contains("more than 100 processes at once (limits.command_processes)"), "{text}");
        let end = Instant::now() + TIMEOUT;
        while !b.cx.state.shells.survivors().is_empty() {
            assert!(Instant::now() < end, "{bomb}: {:?}", b.cx.state.shells.survivors());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let out = run(&b, json!({ "command": "echo again" })).await;
        assert!(text_of(&out.content).starts_with("again"), "{out:?}");
    }
}

/// What the hog has started ends with it; the shell, and what stands behind the hog in the line, go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t6_a_memory_hog_leaves_no_child() {
    let b = bench(0, 64);
    let child = format!("sleep 90.{}", std::process::id());
    let hog = HOG.replace("sleep 90", &format!("{child}; true"));
    let out = run(&b, json!({ "command": format!("cd /; kept=1; {hog}") })).await;
    assert!(text_of(&out.content).contains("then 137"), "{out:?}");
    let line = |s: &Stat| std::fs::read_to_string(format!("/proc/{}/cmdline", s.pid)).unwrap_or_default();
    let left = || proc_fs::all().iter().any(|s| line(s).replace('\0', " ").contains(&child));
    let end = Instant::now() + TIMEOUT;
    while left() {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let out = run(&b, json!({ "command": "echo $kept $PWD" })).await;
    assert_eq!(text_of(&out.content), "1 /");
}

/// A quarter of a gigabyte, held for a while.
const HOG: &str =
    "awk 'BEGIN { s = \"x\"; for (i = 0; i < 28; i++) s = s s; system(\"sleep 90\") }'; echo \"then $?\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t6_a_memory_hog_is_killed_and_the_rest_goes_on() {
    let b = bench(0, 64);
    let out = run(&b, json!({ "command": HOG })).await;
    let text = text_of(&out.content);
    assert!(text.contains("then 137"), "the rest of the line ran: {text}");
    assert!(text.contains("more than 67 MB (limits.command_memory)") && text.contains("awk"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t6_holds_in_the_background_and_in_a_terminal() {
    for (background, pty) in [(true, false), (false, true), (true, true)] {
        let b = bench(100, 0);
        let out = run(&b, json!({ "command": BOMB, "background": background, "pty": pty })).await;
        let mut text = text_of(&out.content);
        let end = Instant::now() + Duration::from_secs(60);
        while background && !text.contains("more than 100") {
            assert!(Instant::now() < end, "{text}");
            let polled = Process.run(json!({"action": "poll", "id": "p1", "wait": 1}), &b.cx).await.unwrap();
            text = text_of(&polled.content);
        }
        assert!(text.contains("more than 100 processes at once"), "{background} {pty}: {text}");
    }
}

/// What a build does is no excess: many short processes, and threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t6_what_is_ordinary_is_left_alone() {
    let b = bench(100, 256);
    let out = run(&b, json!({ "command": "for i in $(seq 400); do /bin/true; done; echo whole" })).await;
    // A busy machine adds the time that it took.
    let text = text_of(&out.content);
    assert_eq!(text.lines().next(), Some("whole"), "{text}");
    let limit = run(&b, json!({ "command": "cat /proc/self/oom_score_adj" })).await;
    assert!(text_of(&limit.content).trim().parse::<i32>().unwrap() >= OOM_SCORE, "{limit:?}");
}

/// A number that a leader has left behind may be a stranger's: it is not signalled, whatever else is too much.
#[tokio::test]
async fn t6_a_group_whose_leader_is_another_process_by_now_lives() {
    use std::os::unix::process::CommandExt;
    let start = |line: &str| {
        let child = std::process::Command::new("sh").args(["-c", line]).process_group(0).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        (child, pid, proc_fs::stat(pid).unwrap().start)
    };
    let (mut many, pid, begun) = start("sleep 90 & sleep 90 & sleep 90 & wait");
    let (mut stranger, other, since) = start("sleep 90");
    let family = Family { roots: vec![(pid, begun), (other, since - 1)], ..Family::default() };
    let end = Instant::now() + TIMEOUT;
    while family.living().len() < 3 {
        assert!(Instant::now() < end, "{:?}", family.living());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let said = Mutex::new(None);
    let mut memory = Memory::new(family.clone());
    look(&family, Bounds { processes: 2, ..Bounds::default() }, (&mut memory, &Others::default()), &said);
    assert!(lock(&said).is_some());
    assert!(!many.wait().unwrap().success(), "its own are ended");
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger lives");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

/// A file in memory that another command was seen to write is not counted for a later one, whether that has counted it before
/// or not.
#[test]
fn t6_a_file_in_memory_counts_for_the_command_that_was_seen_to_write_it() {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    let start = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", line]).process_group(0).stdin(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let start = proc_fs::stat(pid).unwrap().start;
        (child, Family { roots: vec![(pid, start)], ..Family::default() })
    };
    let file = std::path::PathBuf::from(format!("/dev/shm/tiller-seen-{}", std::process::id()));
    let at = file.display();
    let line = "exec 3>FILE; head -c 9000000 /dev/zero >&3; read x; exec 3>&-; echo >FILE.closed; read x";
    let (mut writer, writes) = start(&line.replace("FILE", &at.to_string()));
    let (mut later, reads) = start("read x");
    let mut memories = [Memory::new(writes.clone()), Memory::new(reads.clone())];
    let until = |what: &str, done: &mut dyn FnMut() -> bool| {
        let end = Instant::now() + TIMEOUT;
        while !done() {
            assert!(Instant::now() < end, "{what}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    };
    until("it is written", &mut || {
        memories[0].held(&writes.living(), &Others::default());
        std::fs::metadata(&file).is_ok_and(|meta| meta.len() == 9_000_000)
            && !memories[0].own_files().is_empty()
    });
    writer.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    until("it is closed", &mut || std::path::Path::new(&format!("{at}.closed")).exists());
    let seen = Others { files: memories[0].own_files(), ..Others::default() };
    let counted =
        |memory: &mut Memory, others: &Others| memory.held(&reads.living(), others).loose >= 9_000_000;
    assert!(!counted(&mut memories[1], &seen), "another was seen to write it");
    assert!(counted(&mut memories[1], &Others::default()), "it may be its own");
    assert!(!counted(&mut memories[1], &seen), "by now another was seen to write it");
    for child in [&mut writer, &mut later] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for path in [format!("{at}"), format!("{at}.closed")] {
        std::fs::remove_file(path).unwrap();
    }
}
