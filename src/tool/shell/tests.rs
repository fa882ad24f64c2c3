//! The terminal tool as a model meets it, on real shells.

use std::time::{Duration, Instant};

use serde_json::json;
use tiller_protocol::ToolOutcome;
use tiller_protocol::tool::Display;

use super::{Process, Terminal};
use crate::testing::{Bench, text_of};
use crate::{ToolError, ToolOutput};

mod environments;
mod faults;
mod jobs;
mod reading;
mod waiting;

/// For conditions that come true by themselves.
const DEADLINE: Duration = Duration::from_secs(60);

/// A bench whose commands may take long on a busy machine.
fn bench() -> Bench {
    Bench::new().limits(|l| l.grace = Duration::from_millis(300))
}

async fn sh(bench: &Bench, command: &str) -> String {
    bench.say(&Terminal, json!({ "command": command })).await
}

async fn output(bench: &Bench, args: serde_json::Value) -> ToolOutput {
    bench.call(&Terminal, args).await.unwrap()
}

async fn process(bench: &Bench, args: serde_json::Value) -> String {
    bench.say(&Process, args).await
}

/// A program that runs for about this many seconds, with a command line that no other process on this machine has.
fn nap(seconds: u32) -> String {
    format!("sleep {seconds}.{}", std::process::id())
}

/// How many processes run with exactly this command line.
fn running(args: &str) -> usize {
    let args: String = args.split(' ').map(|a| format!("{a}\0")).collect();
    let all = crate::shell::processes::proc_fs::all();
    let lines = all
        .iter()
        .filter(|s| !s.dead())
        .filter_map(|s| std::fs::read(format!("/proc/{}/cmdline", s.pid)).ok());
    lines.filter(|l| l == args.as_bytes()).count()
}

/// Whether a process with this command line runs that belongs to the session of `marker`.
fn carries(args: &str, marker: &str) -> bool {
    let args: String = args.split(' ').map(|a| format!("{a}\0")).collect();
    let read = |pid, file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    crate::shell::processes::proc_fs::all().iter().filter(|s| !s.dead()).any(|s| {
        read(s.pid, "cmdline") == args.as_bytes()
            && String::from_utf8_lossy(&read(s.pid, "environ")).contains(marker)
    })
}

/// Waits until `check` holds.
async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !check() {
        assert!(Instant::now() < end, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn folder_environment_and_functions_stay() {
    let b = bench();
    std::fs::create_dir(b.root.join("sub dir")).unwrap();
    assert_eq!(sh(&b, "echo hello").await, "hello");
    assert_eq!(
        sh(&b, "cd 'sub dir'").await,
        format!("(no output)\n[folder is now {}/sub dir]", b.root.display())
    );
    assert_eq!(sh(&b, "pwd").await, format!("{}/sub dir", b.root.display()));
    assert_eq!(sh(&b, "export A=1; B=2; f() { echo f$1; }").await, "(no output)");
    assert_eq!(sh(&b, "echo $A $B; f x; env | grep ^A=").await, "1 2\nfx\nA=1");
    assert_eq!(sh(&b, "false").await, "[exit 1]");
    assert_eq!(sh(&b, "echo $?").await, "1");
}

#[tokio::test]
async fn odd_commands_are_taken_as_they_are() {
    let b = bench();
    assert_eq!(sh(&b, "cat <<'E'\na $x `y`\n  b\nE\necho end").await, "a $x `y`\n  b\nend");
    assert_eq!(sh(&b, "echo 'a\\nb'  \"c  d\" \\\\").await, "a\\nb c  d \\");
    let long = format!("echo {}", "x".repeat(20_000));
    assert_eq!(sh(&b, &long).await.len(), 20_000);
    assert!(sh(&b, "echo )").await.contains("syntax error"));
    assert_eq!(sh(&b, "continue; echo off").await, "(no output)");
    assert_eq!(sh(&b, "echo still").await, "still");
    let said = sh(&b, "printf 'r 0\\n/evil\\0\\0' >&9; printf x; echo 'r 0'").await;
    assert!(said.contains("r 0"), "{said}");
    assert!(!said.contains("/evil"), "{said}");
    assert_eq!(sh(&b, "exec >/dev/null 2>&1; echo lost").await, "(no output)");
    assert_eq!(sh(&b, "echo back").await, "back");
}

/// A model that reads an error looks for that line in its own command, not in our loop.
#[tokio::test]
async fn errors_count_the_lines_of_the_command() {
    let b = bench();
    for background in [false, true] {
        let args = json!({"command": "true\n\nno_such_program_3", "background": background});
        let mut said = b.say(&Terminal, args).await;
        let until = Instant::now() + Duration::from_secs(90);
        while background && !said.contains("no_such") && Instant::now() < until {
            said = process(&b, json!({"action": "log", "id": "p1"})).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(said.contains("line 3: no_such_program_3"), "{said}");
        assert!(!said.contains("tiller-sh"), "no path of ours: {said}");
    }
}

#[tokio::test]
async fn wrong_arguments_are_told() {
    let b = bench();
    for (args, part) in [
        (json!({}), "command"),
        (json!({ "command": " \n" }), "empty"),
        (json!({ "command": "a\0b" }), "NUL byte"),
        (json!({ "command": "ls", "workdir": "nowhere" }), "not a folder"),
    ] {
        match b.call(&Terminal, args).await {
            Err(ToolError::Tell(text)) => assert!(text.contains(part), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn workdir_is_for_one_call() {
    let b = bench();
    std::fs::create_dir(b.root.join("it's")).unwrap();
    let said = b.say(&Terminal, json!({ "command": "pwd; cd /", "workdir": "it's" })).await;
    assert_eq!(said, format!("{}/it's", b.root.display()));
    assert_eq!(sh(&b, "pwd").await, b.root.display().to_string());
}

#[tokio::test]
async fn outcome_and_display_tell_the_exit() {
    let b = bench();
    let out = output(&b, json!({ "command": "echo a; echo b >&2; exit 3" })).await;
    assert_eq!(out.outcome, ToolOutcome::Error);
    assert_eq!(out.display, Some(Display::Output { tail: "a\nb\n".into(), exit: Some(3), full: None }));
    let text = text_of(&out.content);
    assert!(text.starts_with("a\nb\n[exit 3]"), "{text}");
    assert!(text.contains("shell ended"), "{text}");
    let out = output(&b, json!({ "command": "echo ok" })).await;
    assert_eq!(out.outcome, ToolOutcome::Ok);
}

#[tokio::test]
async fn a_shell_that_ends_leaves_folder_and_exports_to_the_next() {
    for end in ["exit 7", "kill -9 $$", "exec sh -c 'exit 7'", "set -e; false"] {
        let b = bench();
        sh(&b, "mkdir -p d; export KEEP=\"a'b\\\"c\nd\"; gone=1; cd d").await;
        let said = sh(&b, end).await;
        assert!(said.contains("shell ended"), "{end}: {said}");
        let said = sh(&b, "echo \"$KEEP|$gone|${PWD##*/}\"").await;
        assert_eq!(said, "a'b\"c\nd||d", "{end}");
    }
}

#[tokio::test]
async fn a_folder_that_went_away_falls_back_to_the_workspace() {
    let b = bench();
    sh(&b, "mkdir d; cd d; rmdir ../d; exit").await;
    assert_eq!(sh(&b, "pwd").await, b.root.display().to_string());
}

/// X8: a child's environment is the allow-list and what keeps it quiet, without variables of this program.
#[tokio::test]
async fn x8_children_see_the_allowed_environment_only() {
    let b = bench();
    let ours: Vec<String> = std::env::vars().map(|(k, _)| k).collect();
    for args in [json!({ "command": "env" }), json!({ "command": "env", "pty": true })] {
        let said = b.say(&Terminal, args).await;
        let names: Vec<&str> = said.lines().filter_map(|l| l.split_once('=')).map(|(k, _)| k).collect();
        assert!(names.contains(&"PATH") && names.contains(&"TILLER_CHILD"), "{said}");
        let quiet = crate::shell::processes::environment::terminal_environment(&b.cx.child_env, 1, 1);
        let own = ["TILLER_CHILD", "SHELL", "PWD", "OLDPWD", "SHLVL", "_"];
        for name in names {
            assert!(own.contains(&name) || quiet.iter().any(|(k, _)| k == name), "{name} leaked: {said}");
        }
        assert!(ours.iter().any(|k| !quiet.iter().any(|(q, _)| q == k)), "the check is worth something");
    }
}

#[tokio::test]
async fn live_output_comes_in_joined_pieces() {
    let mut b = bench();
    let cx = b.cx.clone();
    // It goes on when what it has printed was seen.
    let line = "for i in 1 3 5; do echo n$i; echo n$((i+1)); until [ -e go$i ]; do sleep 0.02; done; done";
    let call = tokio::spawn(async move { super::run_line(&cx, line).await });
    let mut live = String::new();
    let mut pieces = 0;
    for n in [1, 3, 5] {
        while !live.contains(&format!("n{}\n", n + 1)) {
            live += &tokio::time::timeout(DEADLINE, b.progress.recv()).await.unwrap().unwrap();
            pieces += 1;
        }
        std::fs::write(b.root.join(format!("go{n}")), "").unwrap();
    }
    let out = call.await.unwrap().unwrap();
    assert_eq!(text_of(&out.content), "n1\nn2\nn3\nn4\nn5\nn6");
    while let Ok(piece) = b.progress.try_recv() {
        live.push_str(&piece);
        pieces += 1;
    }
    assert!(live.starts_with("n1\n") && pieces >= 2, "{pieces}: {live}");
}

#[tokio::test]
async fn agents_have_shells_of_their_own() {
    let b = bench();
    sh(&b, "A=main; cd /").await;
    let mut other = b.cx.clone();
    other.agent = tiller_protocol::AgentId("main/a1".into());
    let out = super::run_line(&other, "echo \"[$A]\"; pwd").await.unwrap();
    assert_eq!(text_of(&out.content), format!("[]\n{}", b.root.display()));
}

/// A program that asks and waits is seen to ask, though it prints nothing more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_live_output_of_a_terminal_program_is_seen_while_it_waits() {
    let mut b = bench();
    let (go, cancel) = (b.root.join("go"), b.cx.cancel.clone());
    let command = format!("printf 'Password: '; while [ ! -e '{}' ]; do sleep 0.05; done", go.display());
    let cx = b.cx.clone();
    let call = tokio::spawn(async move {
        crate::Tool::run(&Terminal, json!({ "command": command, "pty": true }), &cx).await
    });
    let piece = tokio::time::timeout(DEADLINE, b.progress.recv()).await;
    assert_eq!(piece.ok().flatten().as_deref(), Some("Password: "), "while it still waits");
    std::fs::write(&go, "").unwrap();
    call.await.unwrap().unwrap();
    drop(cancel);
}
