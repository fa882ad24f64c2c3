//! Notes of several commands, repositories beside each other, and limits.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Session, repository, supervised};
use crate::policy::Profile;
use crate::testing::Place;
use crate::writes::{ProtectedWrites, Tips};

/// A name that a command gives a protected file writes it in no later command.
#[test]
fn a_new_hard_link_writes_nothing_later() {
    for method in supervised() {
        for script in [
            "mv .npmrc x && ln x y && mv x .npmrc",
            "ln .npmrc y",
            "mv .npmrc x && cp -l x y && mv -f x .npmrc && : >> .npmrc",
        ] {
            let session = Session::new(method);
            std::fs::write(session.work(".npmrc"), "mine").unwrap();
            let (_, judged) = session.run(script);
            assert!(judged.violations.iter().all(|v| v.failed.is_none()), "{method:?}: {script}");
            session.run("echo evil >> y");
            let text = std::fs::read_to_string(session.work(".npmrc")).unwrap();
            assert_eq!(text, "mine", "{method:?}: {script}");
        }
    }
}

/// A file that was only opened keeps its other names, and its attributes if it is made anew.
#[test]
fn an_opened_file_keeps_its_links_and_attributes() {
    for method in supervised() {
        let session = Session::new(method);
        let (linked, alone) = (session.work(".npmrc"), session.work(".envrc"));
        for file in [&linked, &alone] {
            std::fs::write(file, "mine").unwrap();
        }
        std::fs::hard_link(&linked, session.work("other")).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        let has_attributes = rustix::fs::setxattr(&alone, c"user.mine", b"x", flags).is_ok();
        let (out, judged) = session.run("set -e; : >> .npmrc; : >> .envrc");
        assert!(out.status.success() && judged.violations.is_empty(), "{method:?}: {out:?} {judged:?}");
        assert_eq!(linked.metadata().unwrap().nlink(), 2, "{method:?}");
        let mut value = [0; 8];
        let read = rustix::fs::getxattr(&alone, c"user.mine", &mut value[..]);
        assert_eq!(read.is_ok(), has_attributes, "{method:?}");
    }
}

#[test]
fn a_mode_by_which_a_hook_runs_is_taken_back() {
    for method in supervised() {
        for (script, told) in [("chmod +x .githooks/pre-commit", 1), ("chmod g+w .githooks/pre-commit", 0)] {
            let session = Session::new(method);
            let hook = session.work(".githooks/pre-commit");
            std::fs::create_dir_all(session.work(".githooks")).unwrap();
            std::fs::write(&hook, "mine").unwrap();
            let (out, judged) = session.run(script);
            assert!(out.status.success(), "{method:?}: {out:?}");
            assert_eq!(judged.violations.len(), told, "{method:?}: {script}: {judged:?}");
            let mode = hook.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o111, 0, "{method:?}: {script}");
        }
    }
}

/// The commits of a repository below the workspace say nothing of files around it.
#[test]
fn another_repository_does_not_vouch() {
    for method in supervised() {
        let session = Session::new(method);
        repository(&session, &[".npmrc".to_owned()]);
        std::fs::create_dir_all(session.work("third/.vscode")).unwrap();
        std::fs::write(session.work("third/.vscode/tasks.json"), "theirs").unwrap();
        std::fs::write(session.work("third/.npmrc"), "theirs").unwrap();
        let settings = super::SETTINGS;
        let init = "git init -q -b main third; cd third; git add -f .; git commit -qm a; cd ..; git worktree add -q wt other";
        let out = session.place.start(session.place.launch(&format!("{settings} set -e; {init}")));
        assert!(out.status.success(), "{out:?}");
        for (script, told) in [
            ("mkdir .vscode; cp third/.vscode/tasks.json .vscode/", 1),
            ("cp third/.npmrc .", 1),
            ("cp third/.npmrc wt/", 1),
            ("cp .npmrc third/", 1),
            ("git checkout -q other~1 -- .npmrc; git checkout -q HEAD -- .npmrc", 0),
            ("cd wt; git checkout -q half; git checkout -q other", 0),
            ("cd third; rm -r .vscode .npmrc; git checkout -q -- .", 0),
            ("git clone -q third again", 0),
        ] {
            let (out, judged) = session.run(&format!("{settings} {script}"));
            assert!(out.status.success(), "{method:?}: {script}: {out:?}");
            assert_eq!(judged.violations.len(), told, "{method:?}: {script}: {judged:?}");
        }
    }
}

/// An object that is too large is passed over, and the next ones are read.
#[test]
fn a_large_object_hides_no_commit() {
    let Some(method) = supervised().pop() else { return };
    let session = Session::new(method);
    repository(&session, &[".npmrc".to_owned()]);
    let settings = super::SETTINGS;
    let script = "echo three > .npmrc; git commit -qam three; \
                  git tag large $(head -c 17000000 /dev/zero | git hash-object -w --stdin)";
    let out = session.place.start(session.place.launch(&format!("{settings} set -e; {script}")));
    assert!(out.status.success(), "{out:?}");
    let (out, judged) = session.run(&format!("{settings} git checkout -q main~1 -- .npmrc"));
    assert!(out.status.success() && judged.violations.is_empty(), "{out:?} {judged:?}");
}

/// A pipe in the place of a file of git keeps nothing waiting.
#[test]
fn a_git_that_waits_is_ended() {
    let place = Place::new();
    let git = place.top.join("work/.git");
    for folder in ["objects", "refs", "logs"] {
        std::fs::create_dir_all(git.join(folder)).unwrap();
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    for name in ["packed-refs", "logs/HEAD"] {
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, git.join(name), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let since = Instant::now();
    let paths = [git.as_path(); 8].into_iter();
    Tips::record_within(Duration::from_millis(200), Path::new("/work"), paths);
    assert!(since.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_is_noted_has_a_limit() {
    let place = Place::new();
    let work = place.top.join("work");
    let writes = ProtectedWrites::default();
    let note = |n: usize| {
        let path = work.join(format!("{n}/.npmrc"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(&path).unwrap().set_len(super::super::BYTES as u64).unwrap();
        writes.hold().note(&work, &path, false).is_ok()
    };
    let most = super::super::ALL / super::super::BYTES;
    assert_eq!((0..most + 2).filter(|n| note(*n)).count(), most);
    let move_one = || writes.hold().note_moved(&work, &work.join("0/.npmrc"), &work.join("new/.npmrc"));
    assert!(move_one().is_err(), "moved states count too");
    for n in 0..most + 2 {
        std::fs::remove_file(work.join(format!("{n}/.npmrc"))).unwrap();
        std::fs::remove_dir(work.join(n.to_string())).unwrap();
    }
    writes.restore(&Tips::default(), &place.top.join("kept"));
    assert!(note(0), "the next command begins anew");
}

/// Without a supervisor nothing would be judged, so nothing starts.
#[test]
fn a_command_that_cannot_be_supervised_does_not_start() {
    for method in supervised() {
        let place = Place::new();
        let mut confined = place.confined(Profile::Workspace, method);
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(std::path::PathBuf::from);
        let all = ["/tmp", "/var/tmp", "/run"].map(std::path::PathBuf::from);
        confined.policy.writable = all.into_iter().chain(own).chain([tempfile::env::temp_dir()]).collect();
        let out = place.run_watched(&confined, "echo EVIL > .mcp.json", &Default::default());
        assert_eq!(out.status.code(), Some(126), "{method:?}: {out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("supervisor"), "{method:?}: {out:?}");
        assert!(!place.top.join("work/.mcp.json").exists(), "{method:?}");
    }
}
