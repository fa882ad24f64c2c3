//! Real commands with a supervisor, in each way that this machine has.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tiller_tool::shell::{BlockedKind, CommandWatch, blocked_words};

use super::channel::Meeting;
use crate::confine::{Confined, Method};
use crate::confinement::Confinement;
use crate::policy::Profile;
use crate::testing::{Place, methods};

/// The ways to confine in which calls can be supervised, or a note that the test is skipped.
fn supervised() -> Vec<Method> {
    if Confinement::find().notification {
        return methods();
    }
    println!("skipped: this kernel has no user notification");
    Vec::new()
}

/// What `script` was refused, as `kind target program`. Paths are below the place.
fn refused(profile: Profile, method: Method, script: &str) -> (Vec<String>, bool) {
    let place = Place::new();
    let watch = CommandWatch::default();
    let out = place.run_watched(&place.confined(profile, method), script, &watch);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    // The supervisor may learn of a command that it had nothing to decide about after its end.
    let until = Instant::now() + Duration::from_secs(60);
    while !watch.is_supervised() {
        assert!(Instant::now() < until, "{method:?}: {script}: {said}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let top = format!("{}/", place.top.display());
    let row = |a: tiller_tool::shell::BlockedAction| {
        format!("{:?} {} {}", a.kind, a.target.replace(&top, ""), a.program)
    };
    let serious = watch.blocked.take().into_iter().filter(|a| !a.minor);
    (serious.map(row).collect(), out.status.success())
}

#[test]
fn what_was_refused_is_known_by_kind_path_and_program() {
    for method in supervised() {
        for (script, expected) in [
            ("touch ../outside/new", "Create outside/new touch"),
            ("echo x >> ../outside/old", "Write outside/old sh"),
            ("ln -s ../outside way; echo x > way/new", "Create outside/new sh"),
            ("ln -s ../outside/old way; echo x > way", "Write outside/old sh"),
            ("mkdir ../outside/d", "Create outside/d mkdir"),
            ("rm ../outside/old", "Remove outside/old rm"),
            ("mv ../outside/old here", "Rename outside/old mv"),
            ("touch here; mv here ../outside/moved", "Rename outside/moved mv"),
            ("ln -s x ../outside/l", "Create outside/l ln"),
            ("truncate -s 0 ../outside/old", "Write outside/old truncate"),
            ("cd ../outside; rm ./old", "Remove outside/old rm"),
            ("cd ../outside && exec touch new", "Create outside/new touch"),
        ] {
            let (all, done) = refused(Profile::Workspace, method, script);
            assert!(!done, "{method:?}: {script}");
            // Programs try other ways: `mv` copies.
            assert_eq!(all.first().map(String::as_str), Some(expected), "{method:?}: {script}: {all:?}");
            assert!(all.iter().all(|row| row.contains("outside/")), "{method:?}: {script}: {all:?}");
        }
    }
}

#[test]
fn what_may_be_done_or_would_fail_anyway_is_no_refusal() {
    for method in supervised() {
        for script in [
            "echo x > here && mkdir d && mv here d/ && ln d/here e && rm -r d e",
            "echo x > $TMPDIR/x && echo x > /dev/null && cat ../outside/old",
            "touch ../missing/x; cat ../missing/y; rm ../outside/none; rmdir ../outside/none; true",
            "mkdir ../outside; rm -f ../outside/none; true",
            "exec 3<>/dev/null; echo x > /dev/stdout; true",
            "touch .git/index.lock && mv .git/index.lock .git/index",
        ] {
            let (all, done) = refused(Profile::Workspace, method, script);
            assert!(done, "{method:?}: {script}");
            assert_eq!(all, [""; 0], "{method:?}: {script}");
        }
    }
}

#[test]
fn modes_owners_and_times_change_inside_only() {
    for method in supervised() {
        for script in [
            "echo x > f && chmod 640 f && touch -d @5 f && [ \"$(stat -c '%a %Y' f)\" = '640 5' ]",
            "mkdir d && ln -s ../f d/l; touch f; chmod 600 d/l && [ \"$(stat -c %a f)\" = 600 ]",
            "ln -s none l && touch -h -d @7 l && [ \"$(stat -c %Y l)\" = 7 ]",
            "touch f && chown \"$(id -u)\" f && chown -h \"$(id -u):$(id -g)\" f && cp -p f g",
            "exec 3<>f && perl -e 'open F, \">&=3\"; chmod 0604, *F or die; utime 9, 9, *F or die' && \
             [ \"$(stat -c '%a %Y' f)\" = '604 9' ]",
            "touch f && chmod 620 /proc/self/cwd/f && [ \"$(stat -c %a f)\" = 620 ]",
            "echo x > $TMPDIR/f && chmod 400 $TMPDIR/f",
        ] {
            let (all, done) = refused(Profile::Workspace, method, script);
            assert!(done && all.is_empty(), "{method:?}: {script}: {all:?}");
        }
        for (script, program) in [
            ("chmod 777 ../outside/old", "chmod"),
            ("touch -d @5 ../outside/old", "touch"),
            ("ln -s ../outside/old l; chmod 777 l", "chmod"),
            ("exec 3< ../outside/old; chmod 777 /proc/self/fd/3", "chmod"),
            ("perl -e 'open F, \"../outside/old\"; chmod 0777, *F or exit 1'", "perl"),
            ("cp -p ../outside/old . && perl -e 'utime(5, 5, \"../outside/old\") or exit 1'", "perl"),
            ("cd ../outside; chmod 777 .", "chmod"),
        ] {
            let (all, done) = refused(Profile::Workspace, method, script);
            assert!(!done, "{method:?}: {script}");
            // Mounts refuse it without the supervisor.
            if method == Method::Landlock {
                let told =
                    all.iter().any(|row| row.starts_with("Attributes outside") && row.ends_with(program));
                assert!(told, "{script}: {all:?}");
            }
        }
    }
}

#[test]
fn a_reading_command_is_refused_the_workspace_too() {
    for method in supervised() {
        let (all, done) = refused(Profile::Read, method, "touch here");
        // It goes on to set the times.
        assert!(!done && all[0] == "Create work/here touch", "{method:?}: {all:?}");
        let (all, done) = refused(Profile::Read, method, "echo x > $TMPDIR/x; cat .git/config");
        assert_eq!((all, done), (vec![], true), "{method:?}");
    }
}

#[test]
fn protected_names_are_refused_and_told() {
    for method in supervised() {
        for (script, expected) in [
            ("echo x > .git/hooks/pre-commit", "Create work/.git/hooks/pre-commit sh"),
            ("echo x >> .git/config", "Write work/.git/config sh"),
            ("mv .git moved", "Rename work/.git mv"),
            ("rm -f .git/config", "Remove work/.git/config rm"),
        ] {
            let (all, done) = refused(Profile::Workspace, method, script);
            assert_eq!((all, done), (vec![expected.to_owned()], false), "{method:?}: {script}");
        }
    }
}

#[test]
fn the_network_is_told_by_what_was_tried() {
    for method in supervised() {
        let script = "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) or exit 1; \
                      connect(S, sockaddr_in(443, inet_aton(\"192.0.2.7\"))) or exit 1'";
        let (all, done) = refused(Profile::Read, method, script);
        assert!(!done, "{method:?}");
        let expected = match method {
            Method::Landlock => "Socket the network perl",
            Method::Bubblewrap | Method::Seatbelt => "Connect 192.0.2.7:443 perl",
        };
        assert_eq!(all, [expected], "{method:?}");
    }
}

#[test]
fn without_its_supervisor_a_command_can_change_nothing() {
    for method in supervised() {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        let meeting = Meeting::new(&confined.policy.writable_folders()).unwrap();
        // In the same process: another one cannot be started either.
        let launch = confined.found_by(place.launch("exec mkdir made 2>&1"), &meeting);
        // It takes the listener and is gone.
        let thread = std::thread::spawn(|| drop(meeting.listener()));
        let out = place.start(launch);
        thread.join().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(!out.status.success() && said.contains("not implemented"), "{method:?}: {said}");
        assert!(!place.top.join("work/made").exists(), "{method:?}");
    }
}

#[test]
fn a_launcher_without_its_supervisor_starts_nothing() {
    for method in supervised() {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        let meeting = Meeting::new(&confined.policy.writable_folders()).unwrap();
        let launch = confined.found_by(place.launch("touch made"), &meeting);
        drop(meeting);
        assert!(!place.start(launch).status.success(), "{method:?}");
        assert!(!place.top.join("work/made").exists(), "{method:?}");
    }
}

/// Threads of this program that supervise.
fn threads() -> HashSet<std::ffi::OsString> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let name =
        |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.filter(|task| name(task).trim() == "tiller-supervis").map(|task| task.file_name()).collect()
}

#[test]
fn a_supervisor_ends_with_the_last_process_of_its_command() {
    for method in supervised() {
        let place = Place::new();
        let watch = CommandWatch::default();
        let confined = place.confined(Profile::Workspace, method);
        let before = threads();
        place.run_watched(&confined, "touch a; (touch b) & wait", &watch);
        // Its own, and those that other tests have started meanwhile.
        let new: HashSet<_> = threads().difference(&before).cloned().collect();
        let until = Instant::now() + Duration::from_secs(90);
        while !new.is_disjoint(&threads()) {
            assert!(Instant::now() < until, "{method:?}");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

/// Prints what the supervisor costs.
#[test]
fn starting_with_a_supervisor_costs_little() {
    for method in supervised() {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        let time = |watched: bool, script: &str| {
            let mut all: Vec<Duration> = (0..15)
                .map(|_| {
                    let watch = CommandWatch::default();
                    let start = Instant::now();
                    let out = match watched {
                        true => place.run_watched(&confined, script, &watch),
                        false => place.run(&confined, script),
                    };
                    assert!(out.status.success());
                    start.elapsed()
                })
                .collect();
            all.sort();
            all[all.len() / 2]
        };
        let (without, with) = (time(false, "true"), time(true, "true"));
        println!("{method:?}: a command {without:?}, with a supervisor {with:?}");
        let script = "i=0; while [ $i -lt 1000 ]; do : > x; i=$((i+1)); done";
        let (plain, seen) = (time(false, script), time(true, script));
        println!("{method:?}: an open for writing costs {:?} more", seen.saturating_sub(plain) / 1000);
    }
}

#[test]
fn words_name_what_was_blocked() {
    let watch = CommandWatch::default();
    let place = Place::new();
    for method in supervised() {
        place.run_watched(&place.confined(Profile::Workspace, method), "touch ../outside/new", &watch);
    }
    let all = watch.blocked.take();
    if !all.is_empty() {
        assert_eq!(all[0].kind, BlockedKind::Create);
        assert_eq!(blocked_words(&all), format!("creating {}/outside/new (touch)", place.top.display()));
    }
}

impl Confined {
    /// The launch with the supervisor that waits at this meeting.
    fn found_by(&self, launch: tiller_tool::shell::Launch, meeting: &Meeting) -> tiller_tool::shell::Launch {
        self.change(launch, crate::launcher::Step::Exec, Some(meeting.folder()))
    }
}

/// Ways to change the file `linked`, which is `outside/linked` too, without replacing it.
const IN_PLACE: &[&str] = &[
    "echo evil > linked",
    "echo evil >> linked",
    "ln -s linked way; echo evil > way",
    "ln linked other; echo evil > other",
    "mv linked other; echo evil > other",
    "echo evil > /proc/self/cwd/linked",
    "exec 3< linked; echo evil > /proc/self/fd/3",
    "exec 3< linked; echo evil > /dev/fd/3",
    "exec 3< linked; echo evil > /proc/$$/fd/3",
    "exec 3< linked; ln -s /proc/self/fd/3 way; echo evil > way",
    "exec 0< linked; echo evil > /dev/stdin",
    "sleep 9 < linked & echo evil > /proc/$!/fd/0; kill $!",
    "truncate -s 1 linked",
    "exec 3< linked; truncate -s 1 /proc/self/fd/3",
    "dd if=/dev/zero of=linked bs=1 count=1 conv=notrunc",
    "echo evil > x; cp x linked",
    "echo evil | tee linked",
    "chmod 777 linked",
    "exec 3< linked; chmod 777 /proc/self/fd/3",
    "exec 3< linked; perl -e 'open F, \"<&=3\"; chmod 0777, *F'",
    "setfacl -m u:1:rw linked",
    "setfattr -n user.evil -v 1 linked",
    "python3 -c 'import os; f = os.open(\"linked\", os.O_PATH); open(f\"/proc/self/fd/{f}\", \"w\").write(\"evil\")'",
    "python3 -c 'import os; f = os.open(\"linked\", os.O_PATH); os.chmod(f\"/proc/self/fd/{f}\", 0o777)'",
    "python3 -c 'import os; f = os.open(\"linked\", os.O_RDONLY); os.fchmod(f, 0o777)'",
    "python3 -c 'import os; os.setxattr(\"linked\", \"user.evil\", b\"1\")'",
    "python3 -c 'import mmap; f = open(\"linked\", \"r+b\"); mmap.mmap(f.fileno(), 0)[0:1] = b\"X\"'",
    "python3 -c 'import ctypes; ctypes.CDLL(None).syscall(437, -100, b\"linked\", (ctypes.c_ulong * 3)(2, 0, 0), 24)'",
    "for n in $(seq 3000); do : > f$n; done; echo evil > linked",
];

#[test]
fn a_file_that_is_outside_too_is_changed_in_no_way() {
    for method in supervised() {
        for script in IN_PLACE {
            let place = Place::new();
            let outside = place.top.join("outside/linked");
            std::fs::write(&outside, "mine").unwrap();
            std::fs::hard_link(&outside, place.top.join("work/linked")).unwrap();
            let before = std::fs::metadata(&outside).unwrap().permissions();
            let watch = CommandWatch::default();
            place.run_watched(&place.confined(Profile::Workspace, method), script, &watch);
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine", "{method:?}: {script}");
            assert_eq!(std::fs::metadata(&outside).unwrap().permissions(), before, "{method:?}: {script}");
            let mut names = [0; 64];
            let listed = rustix::fs::listxattr(&outside, &mut names).unwrap();
            assert_eq!(listed, 0, "{method:?}: {script}: attributes");
        }
        // To replace it is as before.
        for script in
            ["sed -i s/mine/yours/ linked", "rm linked; echo yours > linked", "echo yours > x; mv x linked"]
        {
            let place = Place::new();
            let outside = place.top.join("outside/linked");
            std::fs::write(&outside, "mine\n").unwrap();
            std::fs::hard_link(&outside, place.top.join("work/linked")).unwrap();
            let watch = CommandWatch::default();
            place.run_watched(&place.confined(Profile::Workspace, method), script, &watch);
            assert_eq!(
                std::fs::read_to_string(place.top.join("work/linked")).unwrap(),
                "yours\n",
                "{script}"
            );
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine\n", "{script}");
        }
    }
}

/// One thread changes the path of a call between a free name and the link while another one makes it.
#[test]
fn a_file_that_is_outside_too_is_not_opened_by_a_path_that_changes() {
    let script = r#"
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(b"harmless", 16)
stop = False
def change():
    while not stop:
        path.value = b"harmless"
        path.value = b"linked"
threading.Thread(target=change, daemon=True).start()
made = 0
for _ in range(2000):
    fd = libc.open(path, 0o101, 0o600)
    if fd >= 0:
        made += 1
        os.write(fd, b"evil")
        libc.close(fd)
stop = True
print("made", made > 0)
"#;
    for method in supervised() {
        let place = Place::new();
        let outside = place.top.join("outside/linked");
        std::fs::write(&outside, "mine").unwrap();
        std::fs::hard_link(&outside, place.top.join("work/linked")).unwrap();
        std::fs::write(place.top.join("work/race.py"), script).unwrap();
        let watch = CommandWatch::default();
        let out =
            place.run_watched(&place.confined(Profile::Workspace, method), "exec python3 race.py", &watch);
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("made True"), "{method:?}: {said}");
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine", "{method:?}");
    }
}
