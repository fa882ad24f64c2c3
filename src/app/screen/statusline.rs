//! The command of the person's status line: run by the shell with the state as input, and killed with all its child
//! processes when its time is over.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Time limit of the command.
const TIME: Duration = Duration::from_millis(300);
/// Maximum bytes of its output that are read.
const MOST: u64 = 4096;

/// Runs `command` with `state` on its standard input and `env` as its whole environment (without keys), and returns its
/// first line of output.
///
/// # Errors
/// A sentence: it could not be started, failed, or took too long.
pub(crate) fn run(command: &str, state: &str, env: &[(String, String)]) -> Result<String, String> {
    within(TIME, command, state, env)
}

fn within(time: Duration, command: &str, state: &str, env: &[(String, String)]) -> Result<String, String> {
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .env_clear()
        .envs(env.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("it could not be started: {e}"))?;
    let group = child.id();
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    // One message: the output. The reading thread holds the sender and ends when the pipe is closed, at the latest by
    // the kill below.
    let (tx, rx) = mpsc::sync_channel(1);
    let state = state.to_owned();
    let reader = std::thread::Builder::new().name("tiller-status".into()).spawn(move || {
        // A command need not read its input.
        drop(stdin.map(|mut i| i.write_all(state.as_bytes())));
        let mut text = Vec::new();
        let read = stdout.map(|o| o.take(MOST).read_to_end(&mut text));
        drop(read);
        let _ = tx.send(String::from_utf8_lossy(&text).into_owned());
    });
    let text = match reader {
        Ok(_) => rx.recv_timeout(time).map_err(|_| format!("it took longer than {} ms", time.as_millis())),
        Err(e) => Err(format!("cannot start a thread: {e}")),
    };
    // Kills its child processes too, also when it printed its line and still runs.
    if let Some(pid) = i32::try_from(group).ok().and_then(rustix::process::Pid::from_raw)
        && (text.is_err() || !matches!(child.try_wait(), Ok(Some(_))))
    {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let status = child.wait().map_err(|e| format!("its exit status could not be read: {e}"))?;
    match text {
        Ok(text) if text.trim().is_empty() && !status.success() => Err(format!("it ended with {status}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(90);

    fn path() -> Vec<(String, String)> {
        vec![("PATH".into(), "/usr/bin:/bin".into())]
    }

    #[test]
    fn it_sees_the_listed_environment_only() {
        let names = within(LONG, "env", "{}", &path()).unwrap();
        let own = ["PATH", "PWD", "SHLVL", "_", "OLDPWD"];
        let names: Vec<&str> = names.lines().filter_map(|l| l.split_once('=')).map(|(k, _)| k).collect();
        assert!(names.contains(&"PATH"), "{names:?}");
        for name in names {
            assert!(own.contains(&name), "{name} leaked");
        }
    }

    #[test]
    fn it_gets_the_state_and_says_its_line() {
        assert_eq!(
            within(LONG, "read line; echo \"<$line>\"", "{\"a\":1}\n", &path()).unwrap(),
            "<{\"a\":1}>\n"
        );
        assert!(within(LONG, "exit 3", "{}", &path()).unwrap_err().contains("3"));
    }

    #[test]
    fn one_that_hangs_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let hang = format!("sleep 600 & echo $! > '{}'; wait", file.display());
        let why = within(Duration::from_secs(5), &hang, "{}", &path()).unwrap_err();
        assert!(why.contains("longer than 5000 ms"), "{why}");
        let pid = std::fs::read_to_string(&file).unwrap();
        let end = std::time::Instant::now() + LONG;
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while lives() {
            assert!(std::time::Instant::now() < end, "process {pid} lives");
            std::thread::yield_now();
        }
    }

    #[test]
    fn endless_output_is_cut() {
        let text = within(LONG, "yes", "{}", &path()).unwrap();
        assert_eq!(text.len() as u64, MOST);
    }
}
