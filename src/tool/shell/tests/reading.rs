//! Commands that run without a question, in their confined shell.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{Bench, Terminal, bench, output, sh};
use crate::shell::{Confiner, Launch};
use crate::{ReadRun, Workspace};

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
    let workspace = Workspace::new(&writing.root).unwrap().confine(Some(marking.clone()), None);
    writing.cx.workspace = Arc::new(workspace);
    let mut reading = bench();
    reading.cx = writing.cx.clone();
    reading.cx.read_only = Some(Arc::default());
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
        reading.cx.read_only = Some(Arc::new(ReadRun::default()));
        output(&reading, json!({ "command": command })).await;
        reading.cx.read_only.as_ref().unwrap().blocked()
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
