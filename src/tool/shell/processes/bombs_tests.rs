//! Row X23 of the fault matrix: eight bombs, each on each kind of host that this room has. They run one after the other: the
//! machine has to stay usable for the other tests.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Tool;
use crate::shell::{Bounds, Host, Launch, Process, Terminal};
use crate::testing::bombs::{Bomb, Excess, GONE, MEMORY, PROCESSES};
use crate::testing::{Bench, text_of};

/// One bomb of this program at a time.
static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What is said about a bomb that was ended for this.
fn said(bomb: &Bomb, whose: &str) -> Option<String> {
    match bomb.excess {
        Excess::Processes => {
            Some(format!("it had more than {PROCESSES} processes at once (limits.{whose}_processes)"))
        }
        Excess::Threads => Some(format!("it had more than {} threads at once", PROCESSES * 4)),
        Excess::Memory => Some(format!("(limits.{whose}_memory)")),
        Excess::Time => None,
    }
}

fn bounds(bomb: &Bomb) -> Bounds {
    let memory = if bomb.excess == Excess::Memory { MEMORY } else { 0 };
    Bounds { processes: PROCESSES, memory, ..Bounds::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x23_no_bomb_of_a_command_is_left() {
    let _one = ONE.lock().await;
    for bomb in Bomb::all() {
        let b = Bench::new().limits(|l| {
            l.bounds = bounds(&bomb);
            l.command =
                if bomb.excess == Excess::Time { Duration::from_secs(1) } else { Duration::from_secs(50) };
            l.grace = Duration::from_millis(300);
        });
        let command = bomb.command.replace("exec python3", "python3");
        let out = Terminal.run(json!({ "command": command }), &b.cx).await.unwrap();
        let text = text_of(&out.content);
        if let Some(said) = said(&bomb, "command") {
            assert!(text.contains(&said), "{}: {text}", bomb.name);
            assert_eq!(text.matches(&said).count(), 1, "{}: {text}", bomb.name);
        }
        // A file that may be the user's is named instead.
        assert!(!bomb.has_ended().await || text.contains("/dev/shm/tiller-"), "{}: {text}", bomb.name);
        let out = Terminal.run(json!({ "command": "echo again" }), &b.cx).await.unwrap();
        assert!(text_of(&out.content).starts_with("again"), "{}: {out:?}", bomb.name);
    }
}

/// A bomb that begins when its command has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x23_no_bomb_that_a_command_left_is_left() {
    let _one = ONE.lock().await;
    for bomb in Bomb::all().into_iter().filter(|bomb| bomb.excess == Excess::Processes) {
        let b = Bench::new().limits(|l| l.bounds = bounds(&bomb));
        let script = b.cx.workspace.root.join("bomb.sh");
        std::fs::write(&script, format!(": >begun; {}", bomb.command)).unwrap();
        let command =
            format!("(sleep 0.2; exec sh ./bomb.sh {}) >/dev/null 2>&1 </dev/null & true", bomb.mark);
        Terminal.run(json!({ "command": command }), &b.cx).await.unwrap();
        let end = Instant::now() + GONE;
        while !b.cx.workspace.root.join("begun").exists() {
            assert!(Instant::now() < end, "{} does not begin", bomb.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bomb.has_ended().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x23_no_bomb_in_the_background_is_left() {
    let _one = ONE.lock().await;
    for bomb in Bomb::all() {
        let b = Bench::new().limits(|l| {
            l.bounds = bounds(&bomb);
            l.grace = Duration::from_millis(300);
        });
        let args = json!({ "command": bomb.command, "background": true });
        Terminal.run(args, &b.cx).await.unwrap();
        match said(&bomb, "command") {
            Some(said) => {
                let end = Instant::now() + GONE;
                loop {
                    let args = json!({"action": "poll", "id": "p1", "wait": 1});
                    let polled = Process.run(args, &b.cx).await.unwrap();
                    if text_of(&polled.content).contains(&said) {
                        break;
                    }
                    assert!(Instant::now() < end, "{}: {polled:?}", bomb.name);
                }
            }
            None => {
                bomb.begun().await;
                Process.run(json!({"action": "kill", "id": "p1"}), &b.cx).await.unwrap();
            }
        }
        bomb.has_ended().await;
    }
}

/// Hooks, servers, plugins and programs of other vendors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x23_no_bomb_of_a_hosted_program_is_left() {
    let _one = ONE.lock().await;
    for bomb in Bomb::all() {
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), bomb.command.clone()],
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
            folder: "/".into(),
        };
        let mut hosted = Host::default().start(launch, Stdio::null(), Stdio::null(), Stdio::null()).unwrap();
        hosted.bound(Bounds { whose: "program", ..bounds(&bomb) });
        match said(&bomb, "program") {
            Some(said) => {
                let end = Instant::now() + GONE;
                while hosted.excess().is_none() {
                    assert!(Instant::now() < end, "{} is not ended", bomb.name);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                let excess = hosted.excess().unwrap();
                assert!(excess.contains(&said), "{}: {excess}", bomb.name);
            }
            None => {
                bomb.begun().await;
                let left = hosted.end(Duration::from_millis(300), &CancellationToken::new()).await;
                assert_eq!(left, 0, "{}", bomb.name);
            }
        }
        bomb.has_ended().await;
    }
}

/// One that is dropped while it grows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x23_no_bomb_of_a_dropped_program_is_left() {
    let _one = ONE.lock().await;
    for bomb in Bomb::all().into_iter().filter(|bomb| bomb.excess == Excess::Processes) {
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), bomb.command.clone()],
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
            folder: "/".into(),
        };
        let host = Host::default();
        let hosted = host.start(launch, Stdio::null(), Stdio::null(), Stdio::null()).unwrap();
        let end = Instant::now() + GONE;
        while bomb.living().len() < 30 {
            assert!(Instant::now() < end, "{} does not grow", bomb.name);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(hosted);
        bomb.has_ended().await;
    }
}

/// What a build does is no excess: threads, and many short processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x23_threads_of_ordinary_programs_are_left_alone() {
    let _one = ONE.lock().await;
    let b = Bench::new().limits(|l| l.bounds = Bounds { processes: PROCESSES, ..Bounds::default() });
    let command = "command -v python3 >/dev/null || { echo 200; exit; }; python3 -c 'import threading, time
t = [threading.Thread(target=time.sleep, args=(1,)) for i in range(200)]
[x.start() for x in t]; [x.join() for x in t]; print(len(t))'";
    let out = Terminal.run(json!({ "command": command }), &b.cx).await.unwrap();
    assert_eq!(text_of(&out.content).lines().next(), Some("200"), "{out:?}");
}
