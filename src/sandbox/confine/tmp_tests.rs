//! The `/tmp` of a session, for real commands.

use std::path::Path;
use std::process::Output;

use super::*;
use crate::confine::Confined;
use crate::testing::{Place, launcher, methods};
use tiller_tool::shell::{CommandWatch, Confiner};

/// Runs a command as the session's sandbox starts it, with `tmp`.
fn run(place: &Place, method: Method, tmp: &TmpFolder, script: &str) -> Output {
    let mut confined = place.confined(Profile::Workspace, method);
    confined.policy.tmp = tmp.path().map(Path::to_owned);
    if method == Method::Landlock {
        confined.policy.writable.extend(confined.policy.tmp.clone());
    }
    place.run(&confined, script)
}

#[test]
fn commands_of_a_session_share_its_tmp_and_see_no_other() {
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
        let out =
            run(&place, method, &other, &format!("echo x > {}/secret; cat $TMPDIR/secret", own.display()));
        assert!(!out.status.success(), "{method:?}: {out:?}");
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
        for (stays, shown) in [(true, true), (false, false)] {
            let mut confined: Confined = place.confined(Profile::Workspace, method);
            confined.policy.tmp = tmp.path().map(Path::to_owned);
            confined.policy.stays = stays;
            let mut launch = place.launch("");
            launch.args = vec![script.display().to_string(), data.display().to_string()];
            let watch = CommandWatch::default();
            let out = place.start(confined.watched(launch, &watch, &std::sync::Arc::default()));
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            assert_eq!(said.contains("data of it"), shown, "stays {stays}: {out:?}");
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
