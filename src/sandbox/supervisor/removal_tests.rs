//! Removals with a supervisor: what counts, what is asked, and that nothing else goes.

use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tiller_tool::shell::{CommandWatch, Deletion, DeletionGuard};

use crate::confine::{Confined, Method};
use crate::confinement::Confinement;
use crate::policy::Profile;
use crate::testing::{Place, methods};

const LIMIT: usize = 50;

fn supervised() -> Vec<Method> {
    if Confinement::find().notification {
        return methods();
    }
    println!("skipped: this kernel has no user notification");
    Vec::new()
}

/// A workspace with so many files in `folder`, older than the command.
fn files(place: &Place, folder: &str, count: usize) {
    let folder = place.top.join("work").join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    for n in 0..count {
        std::fs::write(folder.join(format!("f{n}")), "mine").unwrap();
    }
    age(place);
}

/// Waits until the clock of the file system has gone on: what is there now is older than the next command.
fn age(place: &Place) {
    let probe = place.top.join("probe");
    let made = || {
        let _ = std::fs::remove_file(&probe);
        std::fs::write(&probe, "").unwrap();
        let meta = std::fs::metadata(&probe).unwrap();
        meta.created().or_else(|_| meta.modified()).unwrap()
    };
    let now = made();
    while made() < now + Duration::from_millis(30) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Runs a script in the workspace whose questions get this answer; gives the questions.
fn run(place: &Place, method: Method, script: &str, answer: bool) -> (Output, Vec<Deletion>) {
    let (out, asked, supervised) = run_in(&place.confined(Profile::Workspace, method), place, script, answer);
    assert!(supervised, "{method:?}: {}", String::from_utf8_lossy(&out.stderr));
    (out, asked)
}

/// The same in a profile; also whether it was supervised.
fn run_in(confined: &Confined, place: &Place, script: &str, answer: bool) -> (Output, Vec<Deletion>, bool) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let guard = DeletionGuard {
        limit: LIMIT,
        answer: Arc::new(move |deletion| {
            log.lock().unwrap().push(deletion);
            answer
        }),
    };
    let watch = CommandWatch::default().guarded(guard);
    let out = place.run_watched(confined, script, &watch);
    let asked = asked.lock().unwrap().clone();
    (out, asked, watch.is_supervised())
}

#[test]
fn the_file_over_the_limit_is_asked_about_with_the_list() {
    for method in supervised() {
        let place = Place::new();
        files(&place, "d", 80);
        let (out, asked) = run(&place, method, "rm -rf d", false);
        assert!(!out.status.success(), "{method:?}");
        assert_eq!(asked.len(), 1, "{method:?}: once");
        assert_eq!((asked[0].removed.len(), asked[0].next.len()), (LIMIT, 1));
        let all = asked[0].removed.iter().chain(&asked[0].next);
        assert!(all.clone().all(|file| file.starts_with("d")), "{asked:?}");
        assert!(place.top.join("work").join(&asked[0].next[0]).exists(), "the answer was no");
        assert_eq!(count(&place.top.join("work/d")), 80 - LIMIT, "{method:?}");
        let (out, asked) = run(&place, method, "rm -rf d", true);
        assert!(out.status.success() && asked.is_empty(), "{method:?}: 30 are few");
        files(&place, "d", 80);
        let (out, asked) = run(&place, method, "rm -rf d", true);
        assert!(out.status.success(), "{method:?}: {out:?}");
        assert_eq!(asked.len(), 1, "{method:?}");
        assert!(!place.top.join("work/d").exists());
    }
}

#[test]
fn what_can_be_had_again_does_not_count() {
    for method in supervised() {
        let place = Place::new();
        let work = place.top.join("work");
        std::fs::remove_dir_all(work.join(".git")).unwrap();
        for folder in ["tracked", "target"] {
            files(&place, folder, 70);
        }
        std::fs::write(work.join(".gitignore"), "/target\n").unwrap();
        age(&place);
        for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "one"]] {
            tiller_testkit::git(&work, args);
        }
        files(&place, ".git/objects/xx", 70);
        for script in [
            "rm -rf tracked",
            "rm -rf target",
            "rm -rf .git/objects/xx",
            "mkdir own && for i in $(seq 80); do echo x > own/$i; done && rm -rf own",
            "for i in $(seq 80); do echo $i > $TMPDIR/$i; done && rm -rf $TMPDIR/*",
        ] {
            let (out, asked) = run(&place, method, script, false);
            assert!(out.status.success(), "{method:?}: {script}: {out:?}");
            assert!(asked.is_empty(), "{method:?}: {script}");
        }
        files(&place, "again", 70);
        let script = "for f in again/*; do rm $f && echo x > $f; done";
        let (out, asked) = run(&place, method, script, false);
        assert!(out.status.success() && asked.is_empty(), "{method:?}: {out:?}");
        files(&place, "moved", 70);
        let (out, asked) = run(&place, method, "mv moved other && mkdir n && mv other/* n/", false);
        assert!(out.status.success() && asked.is_empty(), "{method:?}: {out:?}");
    }
}

#[test]
fn moving_files_out_of_the_workspace_counts() {
    for method in supervised() {
        let place = Place::new();
        files(&place, "d", 70);
        let (out, asked) = run(&place, method, "mv d/* $TMPDIR/", false);
        assert!(!out.status.success(), "{method:?}");
        assert_eq!((asked.len(), count(&place.top.join("work/d"))), (1, 70 - LIMIT), "{method:?}");
    }
}

/// Renaming a folder removes all of its files from where they were; so does renaming it to where files do not count.
#[test]
fn moving_a_folder_to_where_it_does_not_stay_counts_its_files() {
    for method in supervised() {
        for script in [
            "mv d $TMPDIR/d",
            "mkdir -p target && mv d target/d",
            "mv d .git/d",
            "mkdir $TMPDIR/e && perl -e '($d, $e) = (\"d\", \"$ENV{TMPDIR}/e\"); \
             syscall(316, -100, $d, -100, $e, 2) and exit 1'",
        ] {
            if script.contains("316") && !cfg!(target_arch = "x86_64") {
                continue;
            }
            let place = Place::new();
            std::fs::write(place.top.join("work/.gitignore"), "/target\n").unwrap();
            files(&place, "d/deep/er", 70);
            let (out, asked) = run(&place, method, script, false);
            assert!(!out.status.success(), "{method:?}: {script}");
            assert_eq!(asked.len(), 1, "{method:?}: {script}");
            assert_eq!(asked[0].next.len(), 70, "{method:?}: {script}");
            assert_eq!(count(&place.top.join("work/d/deep/er")), 70, "{method:?}: {script}");
        }
    }
}

/// A command cannot declare files to be ignored and remove them then.
#[test]
fn rules_for_ignored_files_that_a_command_wrote_do_not_count() {
    for method in supervised() {
        let place = Place::new();
        files(&place, "d", 70);
        let (out, asked) = run(&place, method, "echo '*' > .gitignore; rm -rf d", false);
        assert!(!out.status.success() && asked.len() == 1, "{method:?}: {asked:?}");
        assert_eq!(count(&place.top.join("work/d")), 70 - LIMIT, "{method:?}");
    }
}

/// Outside the sandbox the first file elsewhere is asked about, and in the workspace the limit holds. Where the kernel does
/// not let this process supervise without `no_new_privs`, nothing is asked and nothing fails.
#[test]
fn outside_the_sandbox_removals_are_asked_about_too() {
    if tempfile::env::temp_dir().starts_with("/var/tmp") {
        println!("skipped: the files of this test are temporary ones here");
        return;
    }
    for method in supervised() {
        let place = Place::new();
        files(&place, "d", 80);
        let confined = place.confined(Profile::Floor, method);
        let (out, asked, supervised) = run_in(&confined, &place, "rm ../outside/old", false);
        if !supervised {
            assert!(out.status.success() && asked.is_empty(), "{method:?}: {out:?}");
            println!("skipped: {method:?}: this process may not supervise what runs outside the sandbox");
            continue;
        }
        assert_eq!((out.status.success(), asked.len()), (false, 1), "{method:?}: {out:?}");
        assert_eq!(asked[0].next, [place.top.join("outside/old")], "{method:?}");
        assert!(place.top.join("outside/old").exists(), "{method:?}");
        let script = "echo x > ../outside/new && rm ../outside/new && mv ../outside/old ../outside/other";
        let (out, asked, _) = run_in(&confined, &place, script, false);
        assert!(out.status.success() && asked.is_empty(), "{method:?}: {asked:?} {out:?}");
        let (out, asked, _) = run_in(&confined, &place, "rm -rf d", false);
        assert_eq!((out.status.success(), asked.len()), (false, 1), "{method:?}: {out:?}");
        assert_eq!(count(&place.top.join("work/d")), 80 - LIMIT, "{method:?}");
        let (out, asked, _) = run_in(&confined, &place, "cd ..; mv work away", false);
        assert_eq!(
            (out.status.success(), asked.len()),
            (false, 0),
            "{method:?}: protected names lie in it: {out:?}"
        );
        std::fs::remove_dir_all(place.top.join("work/.git")).unwrap();
        let (out, asked, _) = run_in(&confined, &place, "cd ..; mv work away", false);
        assert_eq!((out.status.success(), asked.len()), (false, 1), "{method:?}: {out:?}");
        let (out, asked, _) = run_in(&confined, &place, "rm ../outside/other", true);
        assert!(out.status.success() && asked.len() == 1, "{method:?}: {out:?}");
    }
}

#[test]
fn errors_are_those_of_the_kernel() {
    for method in supervised() {
        let place = Place::new();
        let script = "mkdir d; echo x > d/f; ln -s d l; \
                      perl -e '$! = 0; unlink \"none\"; print $!+0, \" \"; unlink \"d/f/x\"; print $!+0, \" \"; \
                      rmdir \"d\"; print $!+0, \" \"; rmdir \"d/f\"; print $!+0, \" \"; rmdir \"l/\"; print $!+0, \" \"; \
                      rmdir \"d/.\"; print $!+0, \" \"; unlink \"\"; print $!+0, \" \"; \
                      rename \"d\", \"d/x\"; print $!+0, \" \"; rename \"d/f\", \"d\"; print $!+0, \" \"; \
                      unlink(\"a\" x 300); print $!+0, \" \"; unlink(\"a\" x 5000); print $!+0, \" \"; \
                      unlink \"l/f\" or die; -e \"d/f\" and die; unlink \"l\" or die; rmdir \"d/\" or die'";
        let watched = run(&place, method, script, false).0;
        let plain = place.run(&place.confined(Profile::Workspace, method), script);
        assert!(watched.status.success(), "{method:?}: {watched:?}");
        assert_eq!(
            String::from_utf8_lossy(&watched.stdout),
            String::from_utf8_lossy(&plain.stdout),
            "{method:?}"
        );
    }
}

/// A folder is exchanged for a link to the outside while files in it are removed: the file outside stays, in every round.
#[test]
fn a_link_that_is_put_into_the_way_removes_nothing_outside() {
    for method in supervised() {
        let place = Place::new();
        let script = "mkdir x; ln -s ../outside y; perl -e '$child = fork; if (!$child) { \
                      while (1) { rename \"x\", \"z\"; rename \"y\", \"x\"; rename \"z\", \"y\" } } \
                      for (1..5000) { unlink \"x/old\" } print 5000; kill 9, $child'";
        let out = run(&place, method, script, false).0;
        // The launcher of the tests says something before.
        assert!(String::from_utf8_lossy(&out.stdout).ends_with("5000"), "{method:?}: {out:?}");
        assert_eq!(std::fs::read_to_string(place.top.join("outside/old")).unwrap(), "old", "{method:?}");
    }
}

/// Prints what a removal costs.
#[test]
fn a_removal_costs_little() {
    const FILES: usize = 2000;
    for method in supervised() {
        let place = Place::new();
        let confined = place.confined(Profile::Workspace, method);
        let make = || files(&place, ".git/many", FILES);
        let time = |watched: bool| {
            make();
            let watch = CommandWatch::default();
            let start = Instant::now();
            let script = "rm -rf .git/many";
            let out = if watched {
                place.run_watched(&confined, script, &watch)
            } else {
                place.run(&confined, script)
            };
            assert!(out.status.success(), "{out:?}");
            start.elapsed()
        };
        let (plain, watched) = (time(false).min(time(false)), time(true).min(time(true)));
        println!("{method:?}: a removal costs {:?} more", watched.saturating_sub(plain) / 2000);
    }
}
