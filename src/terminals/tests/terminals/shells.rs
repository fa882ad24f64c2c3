//! Commands and background processes.

use super::*;

#[tokio::test]
async fn a_shell_there_keeps_folder_variables_and_functions() {
    let there = There::pod(30);
    there.bench.file("sub/a", "1");
    let pwd = there.run("pwd; export A='x y'; B=1; f() { echo \"f $A $B\"; }").await;
    assert_eq!(pwd, there.home.join("work").display().to_string());
    assert_eq!(
        there.run("f\ncd sub").await,
        "f x y 1\n[folder is now {ROOT}/sub]".replace("{ROOT}", &there.bench.root.display().to_string())
    );
    assert_eq!(there.run("pwd | sed 's,.*/,,'; false").await, "sub\n[exit 1]");
    assert_eq!(
        there.run("echo $?; echo \"quotes ' \\\" \\\\ $((1 + 1))\"; continue").await,
        "1\nquotes ' \" \\ 2"
    );
    let at = there.terminal(json!({"command": "pwd | sed 's,.*/,,'", "workdir": "."})).await;
    assert_eq!(at, "work");
    assert_eq!(there.run("pwd | sed 's,.*/,,'").await, "sub", "a workdir holds for one call");
    let said = there.run("exit 3").await;
    assert!(said.starts_with("[exit 3]") && said.contains("The shell ended"), "{said}");
    assert_eq!(
        there.run("echo $A; pwd | sed 's,.*/,,'").await,
        "x y\nsub",
        "exported variables and the folder stay"
    );
    there.end().await;
}

/// What runs there has the environment of the other side: nothing of here, and no input to wait for.
#[tokio::test]
async fn nothing_of_the_environment_here_gets_there() {
    let mut there = There::pod(30);
    let env =
        vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("OWN_NAME".to_owned(), "of-here".to_owned())];
    there.bench.cx.child_env = Arc::new(env);
    let said = there.run("env; cat; tty").await;
    assert!(!said.contains("of-here") && !said.contains("hunter2"), "{said}");
    assert!(said.contains("not a tty"), "{said}");
    // Another screen changes the environment here.
    there.bench.cx.child_env = Arc::new(vec![("OWN_NAME".to_owned(), "of-another".to_owned())]);
    assert_eq!(there.run("echo \"[$OWN_NAME]\"").await, "[]");
    let other = There { bench: Bench::new(), place: Arc::clone(&there.place), home: there.home.clone() };
    assert_eq!(other.run("echo here").await, "here");
    there.end().await;
}

#[tokio::test]
async fn output_of_any_size_comes_as_it_was_written() {
    let there = There::pod(30);
    let said = there.run("seq 1 200000 >big; cksum <big; cat big").await;
    let full = said.split("read_file ").nth(1).or_else(|| said.split("in ").last()).unwrap_or_default();
    assert!(said.contains("left out"), "{full}");
    let spill = std::fs::read_dir(&there.bench.cx.folders.spill).unwrap().flatten().next().unwrap().path();
    let all = std::fs::read_to_string(spill).unwrap();
    let mut lines = all.lines();
    let sum = lines.next().unwrap().to_owned();
    assert!(lines.enumerate().all(|(at, line)| line == (at + 1).to_string()), "{sum}");
    assert!(
        there.run("printf 'gone\\ne 3\\nr\\n0'").await.starts_with("gone\ne 3\nr\n0"),
        "frames are no output"
    );
    there.end().await;
}

#[tokio::test]
async fn what_takes_too_long_or_is_stopped_ends_there() {
    let there = There::pod(30).bench_limits();
    let said = there.terminal(json!({"command": "echo begun; sleep 4321 & sleep 4322", "timeout": 5})).await;
    assert!(said.starts_with("begun\n[timed out after 5.0 s"), "{said}");
    until("both sleeps have ended", || !lives("sleep 4321") && !lives("sleep 4322")).await;
    let cancel = there.bench.cx.cancel.clone();
    let stop = async {
        until("the command runs", || lives("sleep 4324")).await;
        cancel.cancel();
    };
    let (said, ()) = tokio::join!(there.run("sleep 4324"), stop);
    assert!(said.contains("[stopped by the user]"), "{said}");
    until("all of the shell has ended", || !lives("sleep 4324")).await;
    there.end().await;
}

/// A process that has left the group and ignores TERM is found by its mark.
#[tokio::test]
async fn what_has_left_the_group_and_ignores_the_signal_ends_with_the_shell() {
    let there = There::pod(30).bench_limits();
    let [apart, late] = ["sleep 4323", "sleep 4327"];
    let hard = format!("trap '' TERM; setsid sh -c 'trap \"\" TERM; {apart}' & echo x");
    assert_eq!(there.run(&hard).await.lines().next(), Some("x"));
    until("it runs apart", || lives(apart)).await;
    let said = there.terminal(json!({"command": late, "timeout": 1})).await;
    assert!(said.contains("timed out"), "{said}");
    until("all of the shell has ended", || !lives(apart) && !lives(late)).await;
    there.end().await;
}

/// A new shell begins with the variables of the one before; the mark by which its processes are found is its own.
#[tokio::test]
async fn what_a_later_shell_or_a_background_process_starts_has_its_own_mark() {
    let there = There::pod(30).bench_limits();
    assert_eq!(there.run("export A=1; exit 3").await.lines().next(), Some("[exit 3]"));
    let [kept, apart] = ["sleep 4328", "sleep 4329"];
    let background = format!("setsid sh -c 'trap \"\" TERM; {kept}'; true");
    there.terminal(json!({"command": background, "background": true})).await;
    until("it runs in the background", || lives(kept)).await;
    let apart_runs = format!("setsid sh -c 'trap \"\" TERM; : >~/apart; {apart}' &");
    let wait = "until [ -e ~/apart ]; do sleep 0.02; done";
    let said = there.run(&format!("{apart_runs} {wait}; kill -9 $$")).await;
    assert!(said.contains("The shell ended"), "{said}");
    until("what the shell had started ends with it", || !lives(apart)).await;
    assert!(lives(kept), "it does not belong to the shell");
    assert_eq!(there.process(json!({"action": "kill", "id": "p1"})).await, "p1: killed");
    until("it ends with its own shell", || !lives(kept)).await;
    there.end().await;
}

impl There {
    fn bench_limits(mut self) -> Self {
        self.bench = self.bench.limits(|l| l.grace = Duration::from_millis(500));
        self.change(|w| w);
        self
    }
}

#[tokio::test]
async fn a_background_process_there_can_be_read_written_and_killed() {
    let there = There::pod(30);
    there.run("export WORD=hello; cd /").await;
    let script = "pwd; echo $WORD; while read line; do echo \"got $line\"; done; echo end; exit 4";
    let started = there.terminal(json!({"command": script, "background": true})).await;
    assert!(started.starts_with("started as p1"), "{started}");
    let poll = |text: &'static str| {
        let there = &there;
        async move {
            let mut all = String::new();
            let end = Instant::now() + Duration::from_secs(60);
            while !all.contains(text) {
                assert!(Instant::now() < end, "{text}: {all}");
                all.push_str(&there.process(json!({"action": "poll", "id": "p1", "wait": 1})).await);
            }
            all
        }
    };
    if !started.contains("hello") {
        poll("hello").await;
    }
    let wrote = there.process(json!({"action": "write", "id": "p1", "text": "one"})).await;
    assert!(wrote.contains("written"), "{wrote}");
    poll("got one").await;
    there.process(json!({"action": "write", "id": "p1", "text": "two", "close": true})).await;
    let all = poll("end").await;
    assert!(all.contains("got two"), "{all}");
    let listed = there.process(json!({"action": "list"})).await;
    assert!(listed.contains("exit 4") || listed.contains("ended (4)") || listed.contains('4'), "{listed}");
    there.terminal(json!({"command": "sleep 4325", "background": true})).await;
    until("it runs", || lives("sleep 4325")).await;
    let killed = there.process(json!({"action": "kill", "id": "p2"})).await;
    assert_eq!(killed, "p2: killed");
    until("it has ended there", || !lives("sleep 4325")).await;
    there.terminal(json!({"command": "sleep 4326", "background": true})).await;
    until("it runs", || lives("sleep 4326")).await;
    assert_eq!(there.bench.cx.state.shells.shutdown().await, 0);
    until("the end of the session ends it", || !lives("sleep 4326")).await;
    until("nothing is left there", || there.kept().is_empty()).await;
}

#[tokio::test]
async fn a_command_under_a_terminal_runs_there() {
    let there = There::pod(30);
    there.run("export WORD=hello").await;
    let said = there.terminal(json!({"command": "echo $WORD; basename \"$PWD\"", "pty": true})).await;
    assert!(said.contains("hello") && said.contains("work"), "{said}");
    there.end().await;
}
