//! A tiny helper that outlives us by a moment: when this process dies without a word (kill -9), it kills
//! what we had started. It waits on a pipe from us and costs nothing until then.

use std::io::{PipeWriter, Write};
use std::path::PathBuf;
use std::process::Stdio;

use crate::shell::processes::environment;
use crate::shell::processes::launch::{self, Launch};

/// `$1`: the marker. Reads `+ GROUP:START` and `- GROUP:START`; `done` means an orderly end. The end of the pipe
/// means that we are dead. Groups reach those that cleared their environment, the marker those that left
/// their group. All that are found are stopped before the first is killed. What is killed may have forked a moment before, and a
/// process within `exec` has no environment: the marker is looked for until two looks find no process that has it.
/// The number of a group can have been reused: a group is identified by its number and the start of its leader, or,
/// when the leader has ended, by a member that has the marker.
const SCRIPT: &str = r#"
groups=' '
while read -r verb group; do
  case $verb in
    +) groups="$groups$group " ;;
    -) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
    done) exit 0 ;;
  esac
done
start_of() {
  line=
  read -r line 2>/dev/null <"/proc/$1/stat" || return 0
  set -- ${line##*) }
  echo "${20}"
}
group_of() { found=$3; }
is_ours() {
  [ -d /proc/self ] || return 0
  now=$(start_of "$1" 2>/dev/null)
  [ -z "$now" ] || { [ "$now" = "$2" ]; return; }
  for file in /proc/[0-9]*/stat; do
    line=
    read -r line <"$file" || continue
    group_of ${line##*) }
    [ "$found" = "$1" ] && grep -aqs "TILLER_CHILD=$3" "${file%/stat}/environ" && return 0
  done 2>/dev/null
  return 1
}
for group in $groups; do
  is_ours "${group%:*}" "${group#*:}" "$1" && kill -s KILL -- "-${group%:*}"
done 2>/dev/null
if [ -d /proc/self ]; then
  empty=
  turn=0
  while [ "$turn" -lt 60 ]; do
    turn=$((turn + 1))
    found=$(grep -las "TILLER_CHILD=$1" /proc/[0-9]*/environ 2>/dev/null)
    for verb in STOP KILL; do
      for file in $found; do
        pid=${file#/proc/}
        kill -s "$verb" "${pid%/environ}"
      done 2>/dev/null
    done
    if [ -n "$found" ]; then empty=
    elif [ -n "$empty" ]; then break
    else empty=1; fi
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
        let program = environment::find("sh", env)?;
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

    /// A group that is to die with us: number and start of its leader.
    pub(crate) fn watch(&mut self, (group, start): (i32, u64)) {
        let _ = writeln!(self.pipe, "+ {group}:{start}");
    }

    /// Forgets a group that has ended: the system may give its number to another one.
    pub(crate) fn forget(&mut self, (group, start): (i32, u64)) {
        let _ = writeln!(self.pipe, "- {group}:{start}");
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

    use super::*;
    use crate::shell::processes::proc_fs;

    /// A marker that no other run of these tests has.
    fn marker(name: &str) -> String {
        format!("{name}-{}.", std::process::id())
    }

    fn sleeper(marker: &str) -> std::process::Child {
        Command::new("sleep").arg("3700").env("TILLER_CHILD", marker).spawn().unwrap()
    }

    fn path() -> Vec<(String, String)> {
        vec![("PATH".into(), "/usr/bin:/bin".into())]
    }

    /// S1: after the sudden death of this program no process of it keeps running.
    #[test]
    fn s1_the_end_of_the_pipe_ends_what_was_started() {
        let guardian = Guardian::start(&marker("gtest1"), &path()).unwrap();
        let mut mine = sleeper(&format!("{}7.", marker("gtest1")));
        let mut other = sleeper(&format!("{}7.", marker("gtest2")));
        drop(guardian);
        let end = Instant::now() + Duration::from_secs(90);
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
        let mut guardian = Guardian::start(&marker("gtest3"), &path()).unwrap();
        let group = || Command::new("sleep").arg("3700").env_clear().process_group(0).spawn().unwrap();
        let (mut watched, mut forgotten) = (group(), group());
        let mut other = group();
        let root = |child: &std::process::Child| {
            let pid = child.id().cast_signed();
            (pid, proc_fs::stat(pid).unwrap().start)
        };
        for child in [&watched, &forgotten] {
            guardian.watch(root(child));
        }
        guardian.forget(root(&forgotten));
        // A process with this number and another start: the number was reused, so it must not be killed.
        guardian.watch((root(&other).0, root(&other).1 - 1));
        drop(guardian);
        watched.wait().unwrap();
        for alive in [&mut forgotten, &mut other] {
            assert!(alive.try_wait().unwrap().is_none());
            alive.kill().unwrap();
            alive.wait().unwrap();
        }
    }

    /// The leader has ended: its group is known by a member with the marker, and another group is left alone.
    #[test]
    fn s1_a_group_without_its_leader_is_known_by_the_marker() {
        use std::os::unix::process::CommandExt;
        let mut guardian = Guardian::start(&marker("gtest5"), &path()).unwrap();
        let orphan = |marker: &str| {
            // One with a cleared environment stands beside the one with the marker.
            let script = "sleep 3700 & env -i sleep 3700 & echo $! $$";
            let mut command = Command::new("sh");
            command.args(["-c", script]).env("TILLER_CHILD", marker).process_group(0);
            let told = command.stderr(std::process::Stdio::null()).output_of_first_line();
            let mut numbers = told.split_whitespace().map(|n| n.parse::<i32>().unwrap());
            (numbers.next().unwrap(), numbers.next().unwrap())
        };
        let ((bare, group), (spared, other)) =
            (orphan(&format!("{}1.", marker("gtest5"))), orphan(&format!("{}1.", marker("gtest6"))));
        guardian.watch((group, 1));
        guardian.watch((other, 1));
        let start = proc_fs::stat(bare).unwrap().start;
        drop(guardian);
        let end = Instant::now() + Duration::from_secs(90);
        while proc_fs::stat(bare).is_some_and(|s| s.start == start && !s.dead()) {
            assert!(Instant::now() < end, "it lives on");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        assert!(proc_fs::stat(spared).is_some_and(|s| !s.dead()), "another's group was hit");
        let _ = Command::new("kill").args(["-9", "--", &format!("-{other}")]).status();
    }

    trait FirstLine {
        fn output_of_first_line(&mut self) -> String;
    }

    impl FirstLine for Command {
        /// Starts it, gives its first line, and waits for its own end (what it left may hold its output).
        fn output_of_first_line(&mut self) -> String {
            use std::io::BufRead;
            let mut child = self.stdout(std::process::Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            child.wait().unwrap();
            line
        }
    }

    #[test]
    fn an_orderly_end_leaves_everything_alone() {
        let guardian = Guardian::start(&marker("gtest4"), &path()).unwrap();
        let (pid, start) = guardian.root;
        let mut mine = sleeper(&format!("{}1.", marker("gtest4")));
        guardian.dismiss();
        let end = Instant::now() + Duration::from_secs(90);
        while proc_fs::stat(pid).is_some_and(|s| s.start == start && !s.dead()) {
            assert!(Instant::now() < end, "it did not go");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        assert!(mine.try_wait().unwrap().is_none());
        mine.kill().unwrap();
        mine.wait().unwrap();
    }
}
