//! The `/tmp` of a session, for real commands.

use std::path::Path;
use std::process::Output;

use super::*;
use crate::confine::Confined;
use crate::testing::{Place, launcher, methods};
use tiller_tool::shell::{CommandWatch, Confiner, ForkLimit};

/// Runs a command as the session's sandbox starts it, with `tmp`.
fn run(place: &Place, method: Method, tmp: &TmpFolder, script: &str) -> Output {
    run_in(Profile::Workspace, place, method, tmp, script)
}

fn run_in(profile: Profile, place: &Place, method: Method, tmp: &TmpFolder, script: &str) -> Output {
    let mut confined = place.confined(profile, method);
    confined.policy.tmp = tmp.path().map(Path::to_owned);
    if method == Method::Landlock {
        confined.policy.writable.extend(confined.policy.tmp.clone());
    }
    place.run(&confined, script)
}

#[test]
fn commands_of_a_session_share_its_tmp_and_write_no_other() {
    for method in methods() {
        let (place, tmp, other) = (Place::new(), TmpFolder::default(), TmpFolder::default());
        let own = tmp.path().unwrap();
        let said = |out: &Output| {
            (
                String::from_utf8_lossy(&out.stdout).into_owned(),
                String::from_utf8_lossy(&out.stderr).into_owned(),
            )
        };
        // By TMPDIR in both ways.
        let out = run(&place, method, &tmp, "echo one > $TMPDIR/a && mkdir $TMPDIR/d && mktemp >/dev/null");
        assert!(out.status.success(), "{method:?}: {out:?}");
        assert_eq!(
            std::fs::read_to_string(own.join("a")).unwrap(),
            "one\n",
            "{method:?}: the person finds it"
        );
        let out = run(&place, method, &tmp, "cat $TMPDIR/a && rm $TMPDIR/a && rmdir $TMPDIR/d");
        assert!(out.status.success() && said(&out).0.ends_with("one\n"), "{method:?}: {out:?}");
        assert!(!own.join("a").exists(), "{method:?}");
        // By the name `/tmp` where it can be mounted; else nothing is written there.
        let name = own.file_name().unwrap().to_str().unwrap().replace("tiller-tmp", "test");
        let out = run(&place, method, &tmp, &format!("echo two > /tmp/{name}"));
        let mounts = method == Method::Bubblewrap;
        assert_eq!(out.status.success(), mounts, "{method:?}: {out:?}");
        assert_eq!(own.join(&name).exists(), mounts, "{method:?}");
        assert!(!Path::new("/tmp").join(&name).exists(), "{method:?}: the machine's own is not written");
        // Another session's.
        std::fs::write(own.join("secret"), "mine").unwrap();
        let out = run(
            &place,
            method,
            &other,
            &format!("cat {own}/secret; echo x > {own}/secret", own = own.display()),
        );
        assert!(!out.status.success(), "{method:?}: {out:?}");
        // Without mounts, and outside of `/tmp`, it is read as the rest of the machine is.
        let hidden = mounts && own.starts_with("/tmp");
        assert_eq!(said(&out).0.contains("mine"), !hidden, "{method:?}: {out:?}");
        assert_eq!(std::fs::read_to_string(own.join("secret")).unwrap(), "mine", "{method:?}");
    }
}

/// The rest of the machine's own `/tmp` stays hidden; what the settings name is shown, and cannot be written.
#[test]
fn what_the_settings_name_below_tmp_is_shown_and_nothing_else() {
    for method in methods().into_iter().filter(|method| *method == Method::Bubblewrap) {
        let place = Place::new();
        let real = tempfile::tempdir_in("/tmp").unwrap();
        let top = real.path().canonicalize().unwrap();
        for folder in ["server", "other"] {
            std::fs::create_dir(top.join(folder)).unwrap();
            std::fs::write(
                top.join(folder).join("run.sh"),
                "cat \"$1\"; cat ../other/run.sh; echo x > $1; true\n",
            )
            .unwrap();
        }
        std::fs::write(top.join("server/data"), "data of it\n").unwrap();
        let (script, data) = (top.join("server/run.sh"), top.join("server/data"));
        let tmp = TmpFolder::default();
        for shown in [true, false] {
            let mut confined: Confined = place.confined(Profile::Workspace, method);
            confined.policy.tmp = tmp.path().map(Path::to_owned);
            let mut launch = place.launch("");
            launch.args = vec![script.display().to_string(), data.display().to_string()];
            if shown {
                confined = confined.naming(&launch);
            } else {
                // A program of an agent stays too, and its arguments are a model's.
                confined.policy.stays = true;
            }
            let watch = CommandWatch::default();
            let out = place.start(confined.watched(launch, &watch, &std::sync::Arc::default()));
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            assert_eq!(said.contains("data of it"), shown, "{out:?}");
            assert!(!said.contains("cat \"$1\""), "what lies beside it: {out:?}");
            assert_eq!(std::fs::read_to_string(&data).unwrap(), "data of it\n", "it is not written");
        }
    }
}

/// A link that a command put where the machine's own folder is to be shown would lead a mount astray.
#[test]
fn a_link_in_the_place_of_what_is_shown_starts_nothing() {
    for method in methods().into_iter().filter(|method| *method == Method::Bubblewrap) {
        let place = Place::below("/tmp");
        let tmp = TmpFolder::default();
        let work = place.top.join("work");
        let first = work.strip_prefix("/tmp").unwrap().components().next().unwrap();
        assert!(run(&place, method, &tmp, "echo x > here").status.success());
        let point = tmp.path().unwrap().join(first);
        std::fs::remove_dir_all(&point).unwrap();
        std::os::unix::fs::symlink("/etc", &point).unwrap();
        let out = run(&place, method, &tmp, "echo x > there");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("lies in the way of"), "{out:?}");
    }
}

/// A failure for want of a file of the machine's own `/tmp` is known to be the sandbox's.
#[test]
fn a_hidden_file_in_the_output_is_found() {
    let place = Place::new();
    let work = place.top.join("work");
    let tmp = TmpFolder::default();
    let policy = Policy::new(Profile::Workspace, &work, &place.top.join("scratch"), None);
    let session = SessionSandbox::seeing(policy, tmp.clone());
    let real = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let (path, own) = (real.path().display().to_string(), tmp.path().unwrap());
    let output = format!("python3: can't open file '{path}': [Errno 2] No such file or directory");
    let mounts = methods().contains(&Method::Bubblewrap);
    assert_eq!(session.hidden_in(&output, &work, &work), mounts.then(|| path.clone()));
    assert_eq!(session.hidden_in("cat: /tmp/none-such: No such file", &work, &work), None);
    std::fs::write(own.join(real.path().file_name().unwrap()), "").unwrap();
    assert_eq!(session.hidden_in(&output, &work, &work), None, "the session has one of this name");
    let _ = launcher();
}

/// What the launches of a session were shown is not said to be hidden from them.
#[test]
fn what_a_launch_was_shown_is_not_blamed() {
    let place = Place::new();
    let work = place.top.join("work");
    let real = tempfile::tempdir_in("/tmp").unwrap();
    let top = real.path().canonicalize().unwrap();
    for folder in ["venv/bin", "server", "other"] {
        std::fs::create_dir_all(top.join(folder)).unwrap();
        std::fs::write(top.join(folder).join("file"), "").unwrap();
    }
    let policy = Policy::new(Profile::Workspace, &work, &place.top.join("scratch"), None);
    let session = SessionSandbox::seeing(policy, TmpFolder::default()).naming();
    let scratch = place.top.join("scratch");
    let mut launch = place.launch("");
    launch.env.retain(|(name, _)| name != "PATH");
    launch.env.push(("PATH".into(), format!("/usr/bin:{}", top.join("venv/bin").display())));
    launch.args = vec![top.join("server/file").display().to_string()];
    session.confine_limited(launch, &work, &scratch, &ForkLimit::default());
    let mounts = methods().contains(&Method::Bubblewrap);
    for (path, blamed) in [("venv/bin/file", false), ("server/file", false), ("other/file", mounts)] {
        let path = top.join(path).display().to_string();
        let found = session.hidden_in(&format!("{path}: No such file or directory"), &work, &work);
        assert_eq!(found, blamed.then_some(path));
    }
}

/// A command leaves nothing of its mounts in the session's folder, and each later one starts as the first.
#[test]
fn mounts_leave_nothing_in_the_folder_of_the_session() {
    for method in methods().into_iter().filter(|method| *method == Method::Bubblewrap) {
        let (place, tmp) = (Place::new(), TmpFolder::default());
        for profile in [Profile::Workspace, Profile::Read, Profile::Workspace, Profile::Read] {
            let mut confined = place.confined(profile, method);
            confined.policy.tmp = tmp.path().map(Path::to_owned);
            let launch = place.launch("cat /tmp/report 2>/dev/null || echo made > /tmp/report");
            let watch = CommandWatch::default();
            let out = place.start(confined.watched(launch, &watch, &std::sync::Arc::default()));
            assert!(out.status.success(), "{profile:?}: {out:?}");
        }
        let names: Vec<_> =
            tmp.path().unwrap().read_dir().unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(!names.iter().any(|name| name.to_string_lossy().contains("meet")), "{names:?}");
        // What only reads finds what was written, and writes nothing.
        let out = run_in(Profile::Read, &place, method, &tmp, "cat /tmp/report; echo x > /tmp/report");
        assert!(!out.status.success() && String::from_utf8_lossy(&out.stdout).contains("made"), "{out:?}");
    }
}

/// A single file of `/tmp` is not shown: its mount would leave an empty one of that name.
#[test]
fn a_file_that_lies_in_tmp_itself_is_not_mounted() {
    let place = Place::new();
    let real = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let mut launch = place.launch("");
    launch.args = vec![real.path().display().to_string()];
    assert_eq!(bubblewrap::named(&launch), Vec::<std::path::PathBuf>::new());
    launch.program = real.path().to_owned();
    assert!(!bubblewrap::needed(&launch).contains(&real.path().to_owned()));
}

/// Each mount below the session's `/tmp` is looked at, whichever part of the sandbox it is for.
#[test]
fn every_mount_is_looked_at_for_a_link_in_its_way() {
    let place = Place::new();
    let mut policy = place.confined(Profile::Workspace, Method::Bubblewrap).policy;
    let tmp = TmpFolder::default();
    let own = tmp.path().unwrap();
    policy.tmp = Some(own.to_owned());
    std::os::unix::fs::symlink("/etc", own.join("link")).unwrap();
    std::fs::create_dir(own.join("folder")).unwrap();
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    for (args, obstacle) in [
        (["--ro-bind", "/usr", "/tmp/link"], true),
        (["--bind", "/usr", "/tmp/link/below"], true),
        (["--tmpfs", "/tmp/link", "--"], true),
        (["--dir", "/tmp/link/x", "--"], true),
        (["--ro-bind", "/usr", "/tmp/folder"], false),
        (["--ro-bind", "/usr", "/tmp/none/below"], false),
        (["--", "--ro-bind", "/tmp/link"], false),
    ] {
        assert_eq!(bubblewrap::obstacle(&policy, &words(&args)).is_some(), obstacle, "{args:?}");
    }
}
