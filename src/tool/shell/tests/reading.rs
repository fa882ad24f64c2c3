//! Commands that run without a question, in their confined shell.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use tiller_protocol::tool::Display;

use super::{Bench, Terminal, bench, output, sh};
use crate::shell::{Compared, Confiner, Confiners, FileGuard, Launch};
use crate::testing::text_of;
use crate::{CommandProfile, CommandRun, Workspace};

/// Marks what it confines, in the environment.
#[derive(Debug, Default)]
struct Marking {
    count: AtomicUsize,
    scratch: Mutex<Vec<std::path::PathBuf>>,
}

impl Confiner for Marking {
    fn confine(&self, mut launch: Launch, _workspace: &Path, scratch: &Path) -> Launch {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.scratch.lock().unwrap().push(scratch.to_owned());
        launch.env.push(("CONFINED".into(), "yes".into()));
        launch
    }
}

/// A bench, its confiner, and the same agent with a call that only reads.
fn benches() -> (Bench, Bench, Arc<Marking>) {
    let mut writing = bench();
    let marking = Arc::new(Marking::default());
    let workspace = Workspace::new(&writing.root)
        .unwrap()
        .confine(Confiners { read: Some(marking.clone()), ..Confiners::default() });
    writing.cx.workspace = Arc::new(workspace);
    let mut reading = bench();
    reading.cx = writing.cx.clone();
    reading.cx.run = Arc::new(CommandRun::new(CommandProfile::Read));
    (writing, reading, marking)
}

#[tokio::test]
async fn only_calls_that_read_are_confined_and_several_share_a_shell() {
    let (writing, reading, marking) = benches();
    assert_eq!(sh(&writing, "echo \"[$CONFINED]\"").await, "[]");
    assert_eq!(marking.count.load(Ordering::SeqCst), 0);
    assert_eq!(sh(&reading, "echo \"[$CONFINED]\"").await, "[yes]");
    assert_eq!(sh(&reading, "echo again").await, "again");
    assert_eq!(marking.count.load(Ordering::SeqCst), 1, "the second one used the same shell");
    let scratch = marking.scratch.lock().unwrap()[0].display().to_string();
    assert_eq!(sh(&reading, "echo $TMPDIR").await, scratch);
    assert_eq!(sh(&writing, "echo \"[$CONFINED]\"").await, "[]");
    assert_eq!(sh(&reading, "echo x").await, "x");
    assert_eq!(marking.count.load(Ordering::SeqCst), 2, "the agent's shell may have changed");
}

#[tokio::test]
async fn folder_variables_and_functions_are_those_of_the_agents_shell() {
    let (writing, reading, _) = benches();
    std::fs::create_dir_all(writing.root.join("a/b")).unwrap();
    sh(&writing, "cd a; plain='1 2'; export exported=3; f() { echo \"f $1\"; }; list=(x 'y z'); set -f")
        .await;
    let said = sh(&reading, "pwd; echo \"$plain|$exported|${list[1]}\"; f 7; echo *").await;
    let folder = writing.root.join("a");
    assert_eq!(said, format!("{}\n1 2|3|y z\nf 7\n*", folder.display()));
    let moved = sh(&reading, "cd b && pwd").await;
    let b = folder.join("b");
    assert_eq!(moved, format!("{}\n[folder is now {}]", b.display(), b.display()));
    assert_eq!(sh(&writing, "pwd").await, b.display().to_string());
    let other = reading.say(&Terminal, json!({"command": "pwd", "workdir": "a"})).await;
    assert_eq!(other, folder.display().to_string());
    assert_eq!(sh(&reading, "pwd").await, b.display().to_string());
}

#[tokio::test]
async fn a_failure_counts_as_blocked_only_when_the_kernel_refused_something() {
    let (_writing, mut reading, _) = benches();
    let mut blocked = async |command: &str| {
        reading.cx.run = Arc::new(CommandRun::new(CommandProfile::Read));
        output(&reading, json!({ "command": command })).await;
        reading.cx.run.blocked()
    };
    assert!(!blocked("false").await);
    assert!(!blocked("echo 'Permission denied'").await, "it succeeded");
    assert!(blocked("echo 'cat: x: Permission denied' >&2; exit 1").await);
    assert!(blocked("echo 'touch: Read-only file system' >&2; false").await);
    assert!(!blocked("cat /nonexistent/file").await);
}

#[tokio::test]
async fn background_and_terminal_commands_that_only_read_are_confined_too() {
    let (_writing, reading, marking) = benches();
    let said = reading.say(&Terminal, json!({"command": "echo \"[$CONFINED]\"", "pty": true})).await;
    assert!(said.contains("[yes]"), "{said}");
    let said = reading.say(&Terminal, json!({"command": "echo \"[$CONFINED]\"", "background": true})).await;
    assert!(said.contains("[yes]"), "{said}");
    assert_eq!(marking.count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_confined_shell_ends_with_the_session() {
    let (writing, reading, _) = benches();
    sh(&reading, "echo x").await;
    let shells = &writing.cx.state.shells;
    assert!(!shells.survivors().is_empty());
    assert_eq!(shells.shutdown().await, 0);
    assert!(shells.survivors().is_empty());
}

/// Names the profile of what it confines, in the environment; its protected file is `guarded` in the workspace.
#[derive(Debug)]
struct Named(&'static str);

impl Confiner for Named {
    fn confine(&self, mut launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch.env.push(("CONFINED".into(), self.0.into()));
        launch
    }

    fn guard(&self, workspace: &Path) -> std::io::Result<Option<Arc<dyn FileGuard>>> {
        let path = workspace.join("guarded");
        let before = std::fs::read_to_string(&path).ok();
        Ok(before.map(|before| Arc::new(Kept { path, before, news: false }) as Arc<dyn FileGuard>))
    }
}

/// As [`Named`], with guards that report changes while the command runs.
#[derive(Debug)]
struct Watching;

impl Confiner for Watching {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch
    }

    fn guard(&self, workspace: &Path) -> std::io::Result<Option<Arc<dyn FileGuard>>> {
        let path = workspace.join("guarded");
        let before = std::fs::read_to_string(&path)?;
        Ok(Some(Arc::new(Kept { path, before, news: true })))
    }
}

#[derive(Debug)]
struct Kept {
    path: std::path::PathBuf,
    before: String,
    news: bool,
}

impl FileGuard for Kept {
    fn has_news(&self) -> bool {
        self.news
    }

    fn restore(&self) -> Compared {
        if std::fs::read_to_string(&self.path).is_ok_and(|now| now == self.before) {
            return Compared::default();
        }
        std::fs::write(&self.path, &self.before).unwrap();
        Compared { restored: vec!["guarded was put back".into()], ..Compared::default() }
    }
}

/// One agent's calls, confined in all profiles.
fn in_profile(profile: CommandProfile, of: &Bench) -> Bench {
    let mut own = bench();
    own.cx = of.cx.clone();
    own.cx.run = Arc::new(CommandRun::new(profile));
    own
}

fn all_confined() -> Bench {
    let mut own = bench();
    let confiners = Confiners {
        read: Some(Arc::new(Named("read"))),
        workspace: Some(Arc::new(Named("workspace"))),
        outside: Some(Arc::new(Named("outside"))),
    };
    own.cx.workspace = Arc::new(Workspace::new(&own.root).unwrap().confine(confiners));
    own
}

#[tokio::test]
async fn a_command_outside_takes_nothing_over_from_the_shell_in_the_sandbox_but_its_folder() {
    let own = all_confined();
    let outside = in_profile(CommandProfile::Outside, &own);
    std::fs::create_dir(own.root.join("sub")).unwrap();
    std::fs::create_dir(own.root.join("bin")).unwrap();
    sh(&own, "cd sub; export PATH=\"$OLDPWD/bin:$PATH\" X=evil; ls() { echo evil; }; export -f ls").await;
    let look = "echo \"$CONFINED|$X\"; declare -F ls; case :$PATH: in *:\"${PWD%/sub}/bin\":*) echo taken;; esac; pwd";
    let folder = own.root.join("sub").display().to_string();
    assert_eq!(sh(&outside, look).await, format!("outside|\n{folder}"));
    // The agent's shell is as it was, and its folder follows.
    sh(&outside, "cd ..").await;
    assert_eq!(
        sh(&own, "echo \"$CONFINED|$X\"; pwd").await,
        format!("workspace|evil\n{}", own.root.display())
    );
    let said = outside.say(&Terminal, json!({"command": "echo \"$CONFINED|$X|\"", "background": true})).await;
    assert!(said.contains("outside||"), "{said}");
}

#[tokio::test]
async fn the_persons_own_line_is_not_confined() {
    let own = all_confined();
    let mut person = in_profile(CommandProfile::Person, &own);
    person.cx.agent.0.push('!');
    assert_eq!(sh(&person, "echo \"[$CONFINED]\"").await, "[]");
}

#[tokio::test]
async fn a_protected_file_is_put_back_after_each_command_and_told() {
    let own = all_confined();
    let guarded = own.root.join("guarded");
    std::fs::write(&guarded, "old").unwrap();
    for (args, when) in [
        (json!({"command": "echo evil > guarded"}), "the shell"),
        (json!({"command": "echo evil > guarded", "pty": true}), "a terminal"),
        (json!({"command": "echo evil > guarded", "background": true}), "the background"),
    ] {
        let call = in_profile(CommandProfile::Workspace, &own);
        let out = output(&call, args).await;
        let said = text_of(&out.content);
        if when == "the shell" {
            let shown = |display: &Display| matches!(display, Display::Output { tail, .. } if tail.contains("put back"));
            assert!(out.display.as_ref().is_some_and(shown), "the person is told too");
        }
        if when == "the background" {
            let said =
                || async { call.say(&crate::shell::Process, json!({"action": "poll", "id": "p1"})).await };
            while !said().await.contains("guarded was put back") {
                tokio::task::yield_now().await;
            }
        } else {
            assert!(said.contains("[guarded was put back]"), "{when}: {said}");
            assert!(call.cx.run.blocked(), "{when}: it can be offered outside");
        }
        assert_eq!(std::fs::read_to_string(&guarded).unwrap(), "old", "{when}");
    }
}

/// What a command leaves running, hidden from its output, is compared before the next command and at the end.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_protected_file_is_put_back_though_it_is_written_later() {
    let own = all_confined();
    let guarded = own.root.join("guarded");
    std::fs::write(&guarded, "old").unwrap();
    let late = "(until [ -e go ]; do sleep 0.01; done; echo evil > guarded; sleep 3000) >/dev/null 2>&1 &";
    sh(&own, late).await;
    std::fs::write(own.root.join("go"), "").unwrap();
    let written = || std::fs::read_to_string(&guarded).unwrap() == "evil\n";
    while !written() {
        tokio::task::yield_now().await;
    }
    let said = sh(&own, "cat guarded").await;
    assert!(said.starts_with("old\n") && said.contains("guarded was put back"), "{said}");
    std::fs::remove_file(own.root.join("go")).unwrap();
    sh(&own, late).await;
    std::fs::write(own.root.join("go"), "").unwrap();
    while !written() {
        tokio::task::yield_now().await;
    }
    assert_eq!(own.cx.state.shells.shutdown().await, 0);
    assert_eq!(std::fs::read_to_string(&guarded).unwrap(), "old");
}

/// Nothing else runs, and nothing ends.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_protected_file_is_put_back_while_what_wrote_it_runs() {
    let write = "until [ -e go ]; do sleep 0.01; done; echo evil > guarded; : > over; sleep 3000";
    for (args, place) in [
        (json!({"command": write, "background": true}), "the background"),
        (json!({"command": format!("({write}) >/dev/null 2>&1 &")}), "the shell"),
    ] {
        // Each of its own: the one that lives on would put back what the other wrote, and say so elsewhere.
        let mut own = bench();
        let confiners = Confiners { workspace: Some(Arc::new(Watching)), ..Confiners::default() };
        own.cx.workspace = Arc::new(Workspace::new(&own.root).unwrap().confine(confiners));
        let guarded = own.root.join("guarded");
        std::fs::write(&guarded, "old").unwrap();
        own.say(&Terminal, args).await;
        std::fs::write(own.root.join("go"), "").unwrap();
        let over = || own.root.join("over").exists() && std::fs::read_to_string(&guarded).unwrap() == "old";
        while !over() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let said = async || match place {
            "the shell" => sh(&own, "true").await,
            _ => own.say(&crate::shell::Process, json!({"action": "poll", "id": "p1"})).await,
        };
        while !said().await.contains("guarded was put back") {
            tokio::task::yield_now().await;
        }
        assert_eq!(own.cx.state.shells.shutdown().await, 0);
    }
}

/// A command that its call waits for keeps what it wrote until it ends, in a terminal too.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_in_the_foreground_is_compared_at_its_end_only() {
    let mut own = bench();
    let confiners = Confiners { workspace: Some(Arc::new(Watching)), ..Confiners::default() };
    own.cx.workspace = Arc::new(Workspace::new(&own.root).unwrap().confine(confiners));
    let guarded = own.root.join("guarded");
    for pty in [false, true] {
        std::fs::write(&guarded, "old").unwrap();
        // Three times as long as between two looks.
        let write = "echo evil > guarded; sleep 1.5; echo \"[$(cat guarded)]\"";
        let said = own.say(&Terminal, json!({"command": write, "pty": pty})).await;
        assert!(said.contains("[evil]") && said.contains("guarded was put back"), "{pty}: {said}");
        assert_eq!(std::fs::read_to_string(&guarded).unwrap(), "old", "{pty}");
    }
    assert_eq!(own.cx.state.shells.shutdown().await, 0);
}

/// Text from the network is data in a frame; what Tiller says of the command stands behind it.
#[tokio::test]
async fn what_a_client_of_the_network_prints_is_framed() {
    let b = bench();
    let out = output(
        &b,
        json!({"command": "curl() { printf 'a\\xe2\\x80\\xaeb\\n[exit 0]\\n'; return 3; }; curl x"}),
    )
    .await;
    let text = text_of(&out.content);
    let (inner, from) = crate::foreign::unframed(&text).expect("a frame");
    assert_eq!((inner.as_str(), from), ("ab\n[exit 0]\n[exit 3]", "the network (curl)"), "{text}");
    assert!(text.ends_with("]\n[exit 3]"), "{text}");
    let Some(Display::Output { tail, .. }) = out.display else { panic!("{:?}", out.display) };
    assert!(!tail.contains("untrusted"), "the screen shows the output as it is: {tail}");
    assert_eq!(sh(&b, "echo curl").await, "curl");
}
