//! What a command changes in the workspace is noted for its call, under each method; what others change meanwhile is not.

use std::path::Path;
use std::time::SystemTime;

use tiller_tool::shell::{CommandWatch, FileMark, Whose, Witness};

use crate::confinement::Confinement;
use crate::policy::Profile;
use crate::testing::{Place, methods};

/// What the command does, in parts that need no program that may be missing.
const SCRIPT: &str = "exec 3>> log; printf x >> 'in place'; printf x > .part; mv .part saved; for n in 1 2 3 4 5 6 7 8 9; do printf x >> often; done; printf x > new; printf x >> appended; : > emptied; rm removed; mv moved there; cp given copy
mkdir folder; printf x > folder/in; ln -s new link; ln given second; chmod 700 mode; mv tree elsewhere; mkfifo pipe
printf x > part; mv part replaced; cat given < given > /dev/null; rm -r gone; sed -i s/o/O/ edited
touch ready; until [ -e go ]; do sleep 0.01; done; printf x >> shared; rm spoiled; mv brought away; exec 3>&-; printf x > late";

const FILES: &[&str] = &[
    "appended", "emptied", "removed", "moved", "given", "mode", "tree/in", "replaced", "gone/in", "edited",
    "shared", "spoiled", "in place", "saved", "often", "log", "brought", "beside", "swapped", "later",
];

/// What is whose in the end.
const WHOSE: &[(&str, Whose)] = &[
    ("new", Whose::Call),
    ("appended", Whose::Call),
    ("emptied", Whose::Call),
    ("removed", Whose::Call),
    ("moved", Whose::Call),
    ("there", Whose::Call),
    ("copy", Whose::Call),
    ("folder", Whose::Call),
    ("folder/in", Whose::Call),
    ("link", Whose::Call),
    ("second", Whose::Call),
    ("mode", Whose::Call),
    ("tree/in", Whose::Call),
    ("elsewhere/in", Whose::Call),
    ("pipe", Whose::Call),
    ("replaced", Whose::Call),
    ("gone/in", Whose::Call),
    ("edited", Whose::Call),
    ("late", Whose::Call),
    ("often", Whose::Call),
    ("given", Whose::Others),
    ("beside", Whose::Others),
    ("swapped", Whose::Others),
    ("of a person", Whose::Others),
    ("folder/of a person", Whose::Others),
    ("later", Whose::Others),
    ("shared", Whose::Both),
    ("in place", Whose::Both),
    ("saved", Whose::Both),
    ("log", Whose::Both),
    ("spoiled", Whose::Both),
    ("away", Whose::Both),
];

/// What a person does while the command waits.
fn edit(work: &Path) {
    for name in [
        "beside",
        "of a person",
        "folder/of a person",
        "shared",
        "spoiled",
        "brought",
        "in place",
        "saved",
        "log",
    ] {
        std::fs::write(work.join(name), "of a person").unwrap();
    }
    std::fs::write(work.join(".swap"), "of a person").unwrap();
    std::fs::rename(work.join(".swap"), work.join("swapped")).unwrap();
    std::fs::remove_file(work.join("later")).unwrap();
    std::fs::write(work.join("go"), "").unwrap();
}

#[test]
fn w19_changes_of_a_command_are_told_from_those_of_others() {
    if !Confinement::find().notification {
        return println!("skipped: this kernel has no user notification");
    }
    for method in methods() {
        let place = Place::new();
        let work = place.top.join("work");
        for file in FILES {
            std::fs::create_dir_all(work.join(file).parent().unwrap()).unwrap();
            std::fs::write(work.join(file), "before").unwrap();
        }
        let (witness, watch) = (Witness::default(), CommandWatch::default());
        witness.begin(SystemTime::now());
        watch.attend(&witness);
        let confined = place.confined(Profile::Workspace, method);
        let out = std::thread::scope(|scope| {
            let command = scope.spawn(|| place.run_watched(&confined, SCRIPT, &watch));
            while !work.join("ready").exists() {
                assert!(!command.is_finished(), "{method:?}: {:?}", command.join());
                std::thread::yield_now();
            }
            edit(&work);
            command.join().unwrap()
        });
        assert!(out.status.success(), "{method:?}: {out:?}");
        assert!(witness.is_complete(), "{method:?}");
        for (name, whose) in WHOSE {
            let path = work.join(name);
            assert_eq!(witness.whose(&path, FileMark::of(&path)), *whose, "{method:?}: {name}");
        }
    }
}

/// A command that only reads, and one outside the sandbox, of which only removals are seen.
#[test]
fn only_a_supervisor_that_sees_all_changes_is_a_witness() {
    if !Confinement::find().notification {
        return println!("skipped: this kernel has no user notification");
    }
    for method in methods() {
        for (profile, complete) in [(Profile::Read, true), (Profile::Floor, false)] {
            let place = Place::new();
            let (witness, watch) = (Witness::default(), CommandWatch::default());
            witness.begin(SystemTime::now());
            watch.attend(&witness);
            place.run_watched(&place.confined(profile, method), "true", &watch);
            assert_eq!(witness.is_complete(), complete, "{method:?}, {profile:?}");
        }
    }
}

/// What noting costs the supervisor: 5,000 new files with a call to note them for, and without one. Time of this process
/// alone, so it wants to be the only test.
#[test]
#[ignore = "measures time"]
fn w19_what_a_witness_costs() {
    let time = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        std::time::Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
    };
    for method in methods() {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..10 {
            let place = Place::new();
            let (witness, watch) = (Witness::default(), CommandWatch::default());
            witness.begin(SystemTime::now());
            if round % 2 == 0 {
                watch.attend(&witness);
            }
            let confined = place.confined(Profile::Workspace, method);
            let began = time();
            let script = "i=0; while [ $i -lt 5000 ]; do echo x > f$i; i=$((i+1)); done";
            assert!(place.run_watched(&confined, script, &watch).status.success());
            times[round % 2].push(time() - began);
        }
        times.iter_mut().for_each(|all| all.sort());
        println!("{method:?}: with {:?}, without {:?}", times[0], times[1]);
    }
}
