//! A tiny helper that outlives us by a moment: when this process dies without a word (kill -9), it kills
//! what we had started. It waits on a pipe from us and costs nothing until then.

use std::io::{PipeWriter, Write};
use std::path::PathBuf;
use std::process::Stdio;

use super::launch::{self, Launch};
use super::quiet;

/// `$1`: the marker. Reads `+ GROUP` and `- GROUP`; `done` means an orderly end. The end of the pipe
/// means that we are dead. Groups reach those that cleared their environment, the marker those that left
/// their group. What is killed may have forked a moment before, so the marker is looked for until nobody has it.
const SCRIPT: &str = r#"
groups=' '
while read -r verb group; do
  case $verb in
    +) groups="$groups$group " ;;
    -) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
    done) exit 0 ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null
if [ -d /proc/self ]; then
  for turn in 1 2 3 4 5; do
    found=
    for file in $(grep -las "TILLER_CHILD=$1" /proc/[0-9]*/environ 2>/dev/null); do
      pid=${file#/proc/}
      kill -s KILL "${pid%/environ}" && found=1
    done 2>/dev/null
    [ -n "$found" ] || break
  done
fi
"#;

/// Holds the pipe. Dropping it without [`Guardian::dismiss`] is our death.
#[derive(Debug)]
pub(crate) struct Guardian {
    pipe: PipeWriter,
    /// Number and start; for tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests look at it"))]
    pub root: (i32, u64),
}

impl Guardian {
    /// `None` when it cannot be started; everything else works without it.
    pub(crate) fn start(marker: &str, env: &[(String, String)]) -> Option<Self> {
        let program = quiet::find("sh", env)?;
        let (read, pipe) = std::io::pipe().ok()?;
        let launch = Launch {
            program,
            args: vec!["-c".into(), SCRIPT.into(), "tiller-guardian".into(), marker.into()],
            env: env.iter().filter(|(k, _)| k == "PATH").cloned().collect(),
            folder: PathBuf::from("/"),
        };
        let leader = launch::start(&launch, read.into(), Stdio::null(), Stdio::null())
            .inspect_err(|e| tracing::warn!(error = %e, "no guardian"))
            .ok()?;
        Some(Self { pipe, root: (leader.pid, leader.start) })
    }

    /// A group that is to die with us.
    pub(crate) fn watch(&mut self, group: i32) {
        let _ = writeln!(self.pipe, "+ {group}");
    }

    /// A group that has ended; its number may soon be someone else's.
    pub(crate) fn forget(&mut self, group: i32) {
        let _ = writeln!(self.pipe, "- {group}");
    }

    /// Everything is ended; so may it.
    pub(crate) fn dismiss(mut self) {
        let _ = writeln!(self.pipe, "done");
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::super::procs;
    use super::*;

    fn sleeper(marker: &str) -> std::process::Child {
        Command::new("sleep").arg("3700").env("TILLER_CHILD", marker).spawn().unwrap()
    }

    fn path() -> Vec<(String, String)> {
        vec![("PATH".into(), "/usr/bin:/bin".into())]
    }

    /// S1: after our sudden death nothing of ours runs on.
    #[test]
    fn s1_the_end_of_the_pipe_ends_what_was_started() {
        let guardian = Guardian::start("gtest1.", &path()).unwrap();
        let mut mine = sleeper("gtest1.7.");
        let mut other = sleeper("gtest2.7.");
        drop(guardian);
        let end = Instant::now() + Duration::from_secs(20);
        while mine.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "it lives on");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn s1_groups_are_ended_unless_they_were_forgotten() {
        use std::os::unix::process::CommandExt;
        let mut guardian = Guardian::start("gtest3.", &path()).unwrap();
        let group = || Command::new("sleep").arg("3700").env_clear().process_group(0).spawn().unwrap();
        let (mut watched, mut forgotten) = (group(), group());
        for child in [&watched, &forgotten] {
            guardian.watch(child.id().cast_signed());
        }
        guardian.forget(forgotten.id().cast_signed());
        drop(guardian);
        watched.wait().unwrap();
        assert!(forgotten.try_wait().unwrap().is_none());
        forgotten.kill().unwrap();
        forgotten.wait().unwrap();
    }

    #[test]
    fn an_orderly_end_leaves_everything_alone() {
        let guardian = Guardian::start("gtest4.", &path()).unwrap();
        let (pid, start) = guardian.root;
        let mut mine = sleeper("gtest4.1.");
        guardian.dismiss();
        let end = Instant::now() + Duration::from_secs(20);
        while procs::stat(pid).is_some_and(|s| s.start == start && !s.dead()) {
            assert!(Instant::now() < end, "it did not go");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        assert!(mine.try_wait().unwrap().is_none());
        mine.kill().unwrap();
        mine.wait().unwrap();
    }
}
