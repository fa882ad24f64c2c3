//! What is no file at the other side, and folders that another user has put there.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use tiller_tool::files::{EditFile, ReadFile, Search};

/// The longest that a refusal may take, beyond the requests of a command.
const SOON: Duration = Duration::from_secs(60);

/// W12: pipes, sockets and devices there are never opened, and it is said why they are not here.
async fn w12_what_is_no_file_is_refused(there: &There, work: &Path) {
    there.bench.file("a", "1\n");
    let make = "mkfifo pipe; ln -s /dev/zero zero; truncate -s 200M large 2>/dev/null; mkdir sub; mkfifo sub/pipe; \
                python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' 2>/dev/null; echo made";
    let said = tokio::time::timeout(SOON, there.run(make)).await.expect("it hangs");
    assert!(said.starts_with("made"), "{said}");
    assert!(work.join("pipe").exists(), "{said}");
    for part in ["not taken from build: ", "pipe (a pipe, socket or device)", "large (above 100 MiB)"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for name in ["pipe", "sock", "zero", "sub/pipe", "large"] {
        assert!(there.bench.root.join(name).symlink_metadata().is_err(), "{name} came here");
        let began = Instant::now();
        let read = there.bench.say(&ReadFile, json!({"path": name})).await;
        let edit = there.bench.say(&EditFile, json!({"path": name, "old": "a", "new": "b"})).await;
        // Both read the files of this machine: the load of the machine is all that they wait for.
        assert!(began.elapsed() < SOON, "{name}");
        assert!(read.contains(name) && edit.contains(name), "{name}: {read} {edit}");
    }
    let found = tokio::time::timeout(SOON, there.bench.say(&Search, json!({"pattern": "1"}))).await;
    assert!(found.expect("the search hangs").contains('a'));
    // Named once. A snapshot of what is here, and what is copied there, does not open them either.
    assert_eq!(tokio::time::timeout(SOON, there.run("cat a")).await.expect("it hangs"), "1");
    // The same here: it does not go there.
    let made = Command::new("mkfifo").arg(there.bench.root.join("here")).status().unwrap();
    assert!(made.success());
    let said = tokio::time::timeout(SOON, there.run("ls -A here")).await.expect("it hangs");
    assert!(said.contains("No such file"), "{said}");
    let read = tokio::time::timeout(SOON, there.bench.say(&ReadFile, json!({"path": "here"}))).await;
    let read = read.expect("it hangs");
    assert!(read.contains("pipe") || read.contains("regular file"), "{read}");
}

#[tokio::test]
async fn w12_no_pipe_socket_or_device_of_a_pod_is_opened() {
    let there = There::pod(30);
    let work = there.home.join("work");
    w12_what_is_no_file_is_refused(&there, &work).await;
    there.end().await;
}

#[tokio::test]
async fn w12_no_pipe_socket_or_device_of_another_machine_is_opened() {
    let Some((there, _server)) = machines::machine(60) else { return };
    let work = there.home.join("work dir");
    w12_what_is_no_file_is_refused(&there, &work).await;
    there.end().await;
}

/// A file that grows while it is copied ends nothing and fills no disk.
#[tokio::test]
async fn w12_a_file_that_grows_without_end_is_copied_as_it_was_or_not() {
    let there = There::pod(30);
    let started = there
        .terminal(json!({"command": "while :; do echo line >>grows; sleep 0.01; done", "background": true}))
        .await;
    assert!(started.starts_with("started as p1"), "{started}");
    until("it grows", || there.home.join("work/grows").exists()).await;
    let said = tokio::time::timeout(SOON, there.run("echo done")).await.expect("it hangs");
    assert!(said.starts_with("done"), "{said}");
    assert_eq!(there.process(json!({"action": "kill", "id": "p1"})).await, "p1: killed");
    there.end().await;
}

impl There {
    /// The folder for temporary files of the pod.
    fn set_temporary(&self, folder: &Path) {
        let script = self.bench.scratch.path().join("bin/kubectl");
        let text = std::fs::read_to_string(&script).unwrap();
        let variable = format!("env -u SECRET_TOKEN TMPDIR='{}' ", folder.display());
        program(&script, &text.replace("env -u SECRET_TOKEN ", &variable));
    }
}

/// X13: the folder of the shells there is a link, or others may write there: it is not used.
#[tokio::test]
async fn x13_a_folder_that_another_user_could_have_made_is_not_used() {
    let there = There::pod(30);
    let cache = there.home.join(".cache");
    let theirs = there.home.join("theirs");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::create_dir_all(&theirs).unwrap();
    symlink(&theirs, cache.join("tiller")).unwrap();
    // The folder for temporary files is none either.
    let temporary = there.home.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let planted = temporary.join(format!(".tiller-{}", rustix::process::getuid().as_raw()));
    symlink(&theirs, &planted).unwrap();
    there.set_temporary(&temporary);
    let said = there.run("touch reached").await;
    assert!(said.contains("cannot be used: it is a link, belongs to another user"), "{said}");
    assert!(said.contains(&planted.display().to_string()), "{said}");
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0, "nothing was put there");
    // Others may write there, and something lies in it: it may be a shell of theirs.
    std::fs::remove_file(&planted).unwrap();
    std::fs::create_dir(&planted).unwrap();
    std::fs::create_dir(planted.join("planted")).unwrap();
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o777)).unwrap();
    let said = there.run("touch reached").await;
    assert!(said.contains("others may write there"), "{said}");
    assert!(!there.home.join("work/reached").exists());
    // Without what is planted there it works.
    std::fs::remove_dir_all(&planted).unwrap();
    assert_eq!(there.run("echo works").await, "works");
    let mode = std::fs::metadata(&planted).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    there.end().await;
}

/// X13: of another user. Only an administrator can make one for a test.
#[tokio::test]
async fn x13_a_folder_of_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: this needs an administrator, who can give a folder to another user");
        return;
    }
    let there = There::pod(30);
    let folder = there.home.join(".cache/tiller");
    std::fs::create_dir_all(&folder).unwrap();
    let temporary = there.home.join("tmp");
    let planted = temporary.join(".tiller-0");
    std::fs::create_dir_all(&planted).unwrap();
    for path in [&folder, &planted] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    there.set_temporary(&temporary);
    let said = there.run("touch reached").await;
    assert!(said.contains("belongs to another user"), "{said}");
    assert!(!there.home.join("work/reached").exists());
    there.end().await;
}
