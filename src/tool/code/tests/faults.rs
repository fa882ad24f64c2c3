//! Scripts that do what they should not.

use std::time::Duration;

use serde_json::json;
use tiller_protocol::{ToolOutcome, lock};

use super::{bench, output, said};
use crate::code::ExecuteCode;
use crate::testing::text_of;

#[tokio::test]
async fn a_script_that_loops_for_ever_is_ended() {
    let Some(b) = bench() else { return };
    let b = b.limits(|limits| limits.code.time = Duration::from_secs(2));
    let code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('begun', flush=True)\nwhile True:\n    pass\n";
    let b = b.limits(|limits| limits.grace = Duration::from_millis(300));
    let (outcome, text) = said(&b, code).await;
    assert_eq!(outcome, ToolOutcome::TimedOut);
    assert!(text.starts_with("status: timeout\n") && text.contains("ended after 2 s"), "{text}");
    assert!(b.cx.state.shells.survivors().is_empty());
}

#[tokio::test]
async fn what_a_script_leaves_running_ends_with_it() {
    let Some(b) = bench() else { return };
    let code = "import os, subprocess\nsubprocess.Popen(['sleep', '3000'], start_new_session=True)\n\
                if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execve('/bin/sleep', ['sleep', '3000'], {})\n    os._exit(0)\n\
                print('done')\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "done"), "{text}");
    assert!(b.cx.state.shells.survivors().is_empty());
}

/// Whichever way a script ends its process, its end is known at once, named or not, and the next script runs.
#[tokio::test]
async fn a_script_that_ends_its_process_is_over_at_once() {
    const WAIT: &str = "import time\ntime.sleep(3000)\n";
    let ways = [
        ("kill -9", format!("import os\nprint('begun', flush=True)\nos.kill(os.getpid(), 9)\n{WAIT}"), 137),
        ("_exit", format!("import os\nprint('begun', flush=True)\nos._exit(3)\n{WAIT}"), 3),
        ("abort", format!("import os\nprint('begun', flush=True)\nos.abort()\n{WAIT}"), 134),
        ("segfault", format!("import ctypes\nprint('begun', flush=True)\nctypes.string_at(0)\n{WAIT}"), 139),
        (
            "exec",
            "import os\nprint('begun', flush=True)\nos.execv('/bin/sh', ['sh', '-c', 'exit 4'])\n".into(),
            4,
        ),
        (
            "a thread",
            format!(
                "import os, threading\nprint('begun', flush=True)\nthreading.Timer(0.1, os._exit, [5]).start()\n{WAIT}"
            ),
            5,
        ),
        (
            "with a child that holds its pipes",
            format!(
                "import os, time\nprint('begun', flush=True)\nif os.fork() == 0:\n    time.sleep(3000)\nos._exit(6)\n{WAIT}"
            ),
            6,
        ),
        (
            "with its descriptors closed",
            format!(
                "import os\nprint('begun', flush=True)\nos.closerange(3, 200)\nos.kill(os.getpid(), 9)\n{WAIT}"
            ),
            137,
        ),
    ];
    for (way, code, exit) in ways {
        for session in [None, Some("s")] {
            // Far above the time that it takes, far below the limit of a script.
            let Some(b) = bench() else { return };
            let began = std::time::Instant::now();
            let args = |code: &str| match session {
                None => json!({"code": code}),
                Some(name) => json!({"code": code, "session": name}),
            };
            b.call(&ExecuteCode, args("n = 1\n")).await.unwrap();
            let out = b.call(&ExecuteCode, args(&code)).await.unwrap();
            let text = text_of(&out.content);
            assert_eq!(out.outcome, ToolOutcome::Error, "{way}, {session:?}: {text}");
            assert!(text.contains(&format!("ended with exit code {exit}")), "{way}, {session:?}: {text}");
            assert_eq!(output(&text).trim(), "begun", "{way}, {session:?}: {text}");
            assert_eq!(session.is_some(), text.contains("its variables are lost"), "{way}: {text}");
            let out = b.call(&ExecuteCode, args("print('next')\n")).await.unwrap();
            assert_eq!(output(&text_of(&out.content)).trim(), "next", "{way}, {session:?}");
            assert!(began.elapsed() < Duration::from_secs(300), "{way}, {session:?}: it was waited for");
            assert_eq!(b.cx.state.shells.shutdown().await, 0, "{way}, {session:?}");
        }
    }
}

/// The processes above a script are not what keeps its session from ending.
#[tokio::test]
async fn a_script_that_kills_what_runs_it_ends_its_session() {
    for (way, code) in [
        ("its parent", "import os\nos.kill(os.getppid(), 9)\nprint('alone')\n"),
        ("both", "import os\nos.kill(os.getppid(), 9)\nos.kill(os.getpid(), 9)\n"),
        ("its group", "import os\nos.killpg(0, 9)\n"),
    ] {
        let Some(b) = bench() else { return };
        let args = |code: &str| json!({"code": code, "session": "s"});
        let out = b.call(&ExecuteCode, args(code)).await.unwrap();
        let want = if way == "its parent" { ToolOutcome::Ok } else { ToolOutcome::Error };
        assert_eq!(out.outcome, want, "{way}: {}", text_of(&out.content));
        let out = b.call(&ExecuteCode, args("print('next')\n")).await.unwrap();
        assert_eq!(output(&text_of(&out.content)).trim(), "next", "{way}");
    }
}

/// A run that is collected leaves a child behind: the session goes on.
#[tokio::test]
async fn a_collecting_run_with_a_child_that_stays_keeps_its_session() {
    let Some(b) = bench() else { return };
    *lock(&b.ports.asking) = vec!["write_file"];
    let args = |code: &str| json!({"code": code, "session": "s"});
    b.call(&ExecuteCode, args("n = 7\n")).await.unwrap();
    let code = "import os, time\nfrom tiller_tools import write_file\nif os.fork() == 0:\n    time.sleep(3000)\nwrite_file('a.txt', 'x')\n";
    b.call(&ExecuteCode, args(code)).await.unwrap();
    assert!(b.cx.run.script.waits());
    b.cx.run.script.forget();
    let out = b.call(&ExecuteCode, args("print(n)\n")).await.unwrap();
    assert_eq!(output(&text_of(&out.content)).trim(), "7");
}

#[tokio::test]
async fn a_flood_of_output_is_cut_with_a_marker() {
    let Some(b) = bench() else { return };
    // Written by system calls: as fast as it goes.
    let code = "import os, sys\nline = b'x' * 99 + b'\\n'\nblock = line * 10000\nsys.stdout.write('first\\n'); sys.stdout.flush()\n\
                for n in range(1000):\n    os.write(1, block)\nprint('last')\nsys.stderr.write('e' * 100000)\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!(outcome, ToolOutcome::Ok);
    assert!(text.len() < 62_000, "{}", text.len());
    let out = output(&text);
    assert!(out.starts_with("first\n") && out.trim_end().ends_with("last"), "{out:.100}");
    assert!(out.contains(" left out: print less ...]"), "no marker");
}

#[tokio::test]
async fn a_script_that_misuses_its_connection_is_ended_or_goes_on_alone() {
    let Some(b) = bench() else { return };
    let write = |what: &str| {
        format!(
            "import os, tiller_tools, time\nfd = [n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{{n}}') and os.readlink(f'/proc/self/fd/{{n}}').startswith('socket:')][0]\n{what}\n"
        )
    };
    let (outcome, text) = said(&b, &write("os.write(fd, b'garbage\\n')\ntime.sleep(1000)")).await;
    assert_eq!(outcome, ToolOutcome::Error);
    assert!(text.contains("something else than calls"), "{text}");
    let long = "block = b'x' * (1 << 20)\nfor n in range(100):\n    os.write(fd, block)\ntime.sleep(1000)";
    let (_, text) = said(&b, &write(long)).await;
    assert!(text.contains("too long for a call"), "{text}");
    // A number that is used twice belongs to the first call; the process lives on.
    let twice = "for n in range(2):\n    os.write(fd, b'{\"id\": 7, \"tool\": \"read_file\", \"args\": {\"path\": \"none\"}}\\n')\nprint('alive')";
    let (outcome, text) = said(&b, &write(twice)).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "alive"), "{text}");
    let (outcome, text) = said(&b, &write("os.close(fd)\nprint('alone')")).await;
    assert_eq!((outcome, output(&text).trim()), (ToolOutcome::Ok, "alone"), "{text}");
    let shut =
        "import socket\nprint('x', flush=True)\nsocket.socket(fileno=fd).shutdown(2)\ntime.sleep(1000)";
    let (outcome, text) = said(&b, &write(shut)).await;
    assert_eq!(outcome, ToolOutcome::Error, "{text}");
    assert!(b.cx.state.shells.survivors().is_empty());
}

#[tokio::test]
async fn the_fifty_first_call_is_refused() {
    let Some(b) = bench() else { return };
    b.file("a.txt", "x\n");
    let code = "from tiller_tools import read_file\nfor n in range(51):\n    read_file('a.txt')\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!(outcome, ToolOutcome::Error);
    assert!(
        text.contains("tool_calls_made: 50\n") && text.contains("the script has made its 50 calls"),
        "{text}"
    );
    assert_eq!(lock(&b.ports.calls).len(), 50);
}

#[tokio::test]
async fn an_interrupt_ends_the_script_and_its_call() {
    let Some(b) = bench() else { return };
    let b = b.limits(|limits| limits.grace = Duration::from_millis(500));
    let cancel = b.cx.cancel.clone();
    let code = "from tiller_tools import terminal\nterminal('touch begun; sleep 3000')\n";
    let begun = b.root.join("begun");
    let stop = tokio::spawn(async move {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    });
    let out = b.call(&ExecuteCode, json!({"code": code})).await.unwrap();
    stop.await.unwrap();
    assert_eq!(out.outcome, ToolOutcome::Interrupted);
    assert!(text_of(&out.content).starts_with("status: interrupted\n"));
    // The command belongs to the shell of the agent, which its own call ends.
    assert_eq!(b.cx.state.shells.shutdown().await, 0);
}

#[tokio::test]
async fn a_command_of_a_script_ends_with_it_and_later_results_are_their_own() {
    const THREAD: &str = "import os, threading, time\nfrom tiller_tools import terminal\n\
                          def job():\n    terminal('echo $$ >begun.new; mv begun.new begun; sleep 3000; echo INNER')\n";
    const WAIT: &str = "threading.Thread(target=job, daemon=True).start()\n\
                        while not os.path.exists('begun'):\n    time.sleep(0.01)\n";
    for (way, last, outcome) in [
        ("its time is over", "job()\n", ToolOutcome::TimedOut),
        ("it was stopped", "job()\n", ToolOutcome::Interrupted),
        ("it was killed", "os.kill(os.getpid(), 9)\n", ToolOutcome::Error),
        ("it ended before its call", "print('over')\n", ToolOutcome::Ok),
    ] {
        let Some(b) = bench() else { return };
        let seconds = if way == "its time is over" { 5 } else { 600 };
        let mut b = b.limits(|limits| {
            limits.grace = Duration::from_millis(300);
            limits.code.time = Duration::from_secs(seconds);
        });
        let begun = b.root.join("begun");
        let stopped = (way == "it was stopped").then(|| b.cx.cancel.clone());
        let stop = async {
            let Some(cancel) = stopped else { return };
            while !begun.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            cancel.cancel();
        };
        let wait = if last == "job()\n" { "" } else { WAIT };
        let ((got, text), ()) =
            tokio::join!(async { said(&b, &format!("{THREAD}{wait}{last}")).await }, stop);
        assert_eq!(got, outcome, "{way}: {text}");
        b.cx.cancel = tokio_util::sync::CancellationToken::new();
        for word in ["A", "B", "C"] {
            let out = b.say(&crate::shell::Terminal, json!({"command": format!("echo {word}")})).await;
            assert_eq!(out, word, "{way}");
        }
        // It was killed before, and is gone as soon as it may run.
        let shell = std::fs::read_to_string(&begun).unwrap_or_else(|_| "none".to_owned());
        while std::path::Path::new("/proc").join(shell.trim()).exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(b.cx.state.shells.shutdown().await, 0);
    }
}

#[tokio::test]
async fn hostile_output_and_keys() {
    let Some(mut b) = bench() else { return };
    let mut env = (*b.cx.child_env).clone();
    env.push(("PYTHONSTARTUP".into(), "/evil.py".into()));
    b.cx.child_env = std::sync::Arc::new(env);
    let code = "import os, sys\nsys.stdout.write('a\\x1b[2J\\x07b\\n'); sys.stdout.flush()\nos.write(1, b'\\xff\\xfe\\n')\n\
                print(sorted(k for k in os.environ if 'KEY' in k or 'TOKEN' in k or k.startswith('PYTHONS')), sys.stdin.read() == '')\n";
    let (outcome, text) = said(&b, code).await;
    assert_eq!(outcome, ToolOutcome::Ok, "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(output(&text).ends_with("[] True"), "{text}");
}

#[tokio::test]
async fn without_python_there_is_a_reason() {
    let b = crate::testing::Bench::new().limits(|limits| limits.code.python = "/nowhere/python3".into());
    let said = b.say(&ExecuteCode, json!({"code": "print(1)"})).await;
    assert_eq!(
        said,
        "error: /nowhere/python3 was not found on this machine, so that scripts cannot be run; use the tools directly"
    );
    for (args, want) in
        [(json!({"code": " "}), "code is empty"), (json!({"code": "1", "session": ""}), "session is a name")]
    {
        assert!(b.say(&ExecuteCode, args).await.contains(want));
    }
}
