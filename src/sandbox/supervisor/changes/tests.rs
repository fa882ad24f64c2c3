//! Changes by a command in the workspace are noted for its call, under each method; those of others meanwhile are not.

use std::collections::VecDeque;
use std::path::Path;
use std::time::SystemTime;

use tiller_tool::shell::{CommandWatch, FileMark, Whose, Witness};

use crate::confinement::Confinement;
use crate::policy::Profile;
use crate::supervisor::changes::Closings;
use crate::testing::{Place, methods};

/// Parts of the command, which need no program that may be missing.
const SCRIPT: &str = "exec 3>> log; printf x >> 'in place'; printf x > .part; mv .part saved; for n in 1 2 3 4 5 6 7 8 9; do printf x >> often; done; printf x > new; printf x >> appended; : > emptied; rm removed; mv moved there; cp given copy
mkdir folder; printf x > folder/in; ln -s new link; ln given second; chmod 700 mode; mv tree elsewhere; mkfifo pipe
exec 5>> nested; printf x >> nested; cat nested > /dev/null; printf x >> nested; exec 5>&-; cat < /dev/null > twice 2> twice; mkdir made; printf x > made/in; mv made turned
printf x > part; mv part replaced; cat given < given > /dev/null; rm -r gone; sed -i s/o/O/ edited
touch ready; until [ -e go ]; do sleep 0.01; done; printf x >> shared; rm spoiled; mv brought away; exec 3>&-; printf x >> 'turned/of a person'; printf x > late";

const FILES: &[&str] = &[
    "appended", "emptied", "removed", "moved", "given", "mode", "tree/in", "replaced", "gone/in", "edited",
    "shared", "spoiled", "in place", "saved", "often", "log", "brought", "beside", "swapped", "later",
];

/// The author of each change in the end.
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
    ("nested", Whose::Call),
    ("turned/in", Whose::Call),
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
    ("twice", Whose::Both),
    ("turned/of a person", Whose::Both),
];

/// An edit by the person while the command waits.
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
        "twice",
        "turned/of a person",
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

/// A step of a file's life.
#[derive(Clone, Copy, Debug)]
enum Life {
    /// The command opens it for writing.
    Open,
    /// The command closes what it opened first.
    Close,
    /// Another program reads it.
    Read,
    /// Another program writes it in its place.
    Save,
    /// The supervisor reads which files were closed.
    Look,
}

#[test]
fn closings_of_others_are_told_from_those_of_the_command() {
    use Life::{Close, Look, Open, Read, Save};
    let rows: &[(&str, &[Life], bool)] = &[
        ("one after another", &[Open, Close, Look, Open, Close, Look], false),
        ("nested", &[Open, Look, Open, Look, Close, Look, Read, Look, Open, Look, Close, Look, Close], false),
        ("both at once", &[Open, Look, Open, Look, Close, Close, Look], false),
        ("both at once, read by another", &[Open, Look, Open, Close, Close, Look, Read, Look], false),
        ("saved after", &[Open, Close, Save], true),
        ("saved after both at once", &[Open, Look, Open, Close, Close, Save], true),
        ("read and saved after both at once", &[Open, Open, Close, Close, Look, Read, Save], true),
        ("saved while it was open", &[Open, Save, Look, Close], true),
    ];
    for (what, lives, others) in rows {
        let place = Place::new();
        let path = place.top.join("work/a");
        std::fs::write(&path, "before").unwrap();
        let (mut closings, mut open, mut seen) = (Closings::default(), VecDeque::new(), Vec::new());
        for life in lives.iter().chain(&[Look]) {
            match life {
                Open => {
                    open.push_back(std::fs::File::options().append(true).open(&path).unwrap());
                    closings.look_at(&path, &path, true, 1);
                }
                Close => drop(open.pop_front()),
                Read => drop(std::fs::read(&path).unwrap()),
                Save => std::fs::write(&path, "of a person").unwrap(),
                Look => seen.push(closings.closed()),
            }
        }
        assert_eq!(seen.iter().any(|closed| closed.others.contains(&path)), *others, "{what}: {seen:?}");
        assert!(seen.iter().any(|closed| closed.own.contains(&path)), "{what}: {seen:?}");
    }
}

/// A change of a file: its name, and the other one of a move.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write(usize),
    Append(usize),
    Replace(usize),
    Remove(usize),
    Move(usize, usize),
}

/// The state of a file afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Touched {
    command: bool,
    person: bool,
    /// It may hold what the person wrote.
    theirs: bool,
}

impl Act {
    fn random(random: &mut impl FnMut(usize) -> usize) -> Self {
        let (file, other) = (random(4), random(4));
        match random(6) {
            0 | 1 => Self::Write(file),
            2 => Self::Append(file),
            3 => Self::Replace(file),
            4 => Self::Remove(file),
            _ => Self::Move(file, (file + 1 + other % 3) % 4),
        }
    }

    /// The act as a line of the command.
    fn line(self) -> String {
        match self {
            Self::Write(n) => format!("printf command > f{n}"),
            Self::Append(n) => format!("printf command >> f{n}"),
            Self::Replace(n) => format!("printf command > .f{n}; mv .f{n} f{n}"),
            Self::Remove(n) => format!("rm -f f{n}"),
            Self::Move(n, to) => format!("[ ! -e f{n} ] || mv f{n} f{to}"),
        }
    }

    fn of_person(self, work: &Path) {
        use std::io::Write;
        let at = |n: usize| work.join(format!("f{n}"));
        match self {
            Self::Write(n) => std::fs::write(at(n), "person").unwrap(),
            Self::Append(n) => {
                let mut file = std::fs::File::options().append(true).create(true).open(at(n)).unwrap();
                file.write_all(b"person").unwrap();
            }
            Self::Replace(n) => {
                std::fs::write(work.join(".of a person"), "person").unwrap();
                std::fs::rename(work.join(".of a person"), at(n)).unwrap();
            }
            // Where they are not there, nothing is done.
            Self::Remove(n) => drop(std::fs::remove_file(at(n))),
            Self::Move(n, to) => drop(std::fs::rename(at(n), at(to))),
        }
    }

    /// Notes who touches what. `there`: which files exist.
    fn note(self, person: bool, files: &mut [Touched; 4], there: &mut [bool; 4]) {
        let touch = |file: &mut Touched, theirs: bool| {
            file.command |= !person;
            file.person |= person;
            file.theirs = theirs;
        };
        match self {
            Self::Write(n) | Self::Append(n) | Self::Replace(n) => {
                let theirs = person || files[n].theirs;
                touch(&mut files[n], theirs);
                there[n] = true;
            }
            Self::Remove(n) if there[n] => {
                touch(&mut files[n], false);
                there[n] = false;
            }
            Self::Move(n, to) if there[n] => {
                let theirs = person || files[n].theirs;
                touch(&mut files[n], false);
                touch(&mut files[to], theirs);
                files[to].person |= files[n].person;
                (there[n], there[to]) = (false, true);
            }
            Self::Remove(_) | Self::Move(..) => {}
        }
    }
}

/// One round: the command and the person act in turns on the same four files.
fn interleave(method: crate::confine::Method, seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    };
    let place = Place::new();
    let work = place.top.join("work");
    for n in 0..4 {
        std::fs::write(work.join(format!("f{n}")), "before").unwrap();
    }
    let (mut files, mut there) = ([Touched::default(); 4], [true; 4]);
    let (mut script, mut turns) = (String::new(), Vec::new());
    for n in 0..6 {
        let (own, theirs) = (Act::random(&mut random), Act::random(&mut random));
        own.note(false, &mut files, &mut there);
        theirs.note(true, &mut files, &mut there);
        script += &format!("{}; : > at{n}; until [ -e go{n} ]; do sleep 0.005; done\n", own.line());
        turns.push(theirs);
    }
    let (witness, watch) = (Witness::default(), CommandWatch::default());
    witness.begin(SystemTime::now());
    watch.attend(&witness);
    let confined = place.confined(Profile::Workspace, method);
    // The last call of the command comes after the last act of the person.
    script += ": > end";
    std::thread::scope(|scope| {
        let command = scope.spawn(|| place.run_watched(&confined, &script, &watch));
        for (n, act) in turns.iter().enumerate() {
            while !work.join(format!("at{n}")).exists() {
                assert!(!command.is_finished(), "{method:?}, {seed}: {:?}\n{script}", command.join());
                std::thread::yield_now();
            }
            act.of_person(&work);
            std::fs::write(work.join(format!("go{n}")), "").unwrap();
        }
        assert!(command.join().unwrap().status.success(), "{method:?}, {seed}: {script}");
    });
    for (n, touched) in files.iter().enumerate() {
        let path = work.join(format!("f{n}"));
        let whose = witness.whose(&path, FileMark::of(&path));
        let right = match *touched {
            Touched { theirs: true, .. } => whose != Whose::Call,
            // They removed it, or what they wrote was removed: nothing of theirs is left.
            Touched { person: true, .. } => true,
            Touched { command: true, .. } => whose == Whose::Call,
            _ => whose == Whose::Others,
        };
        assert!(right, "{method:?}, {seed}: f{n} is {whose:?}: {touched:?}\n{script}{turns:?}");
    }
}

#[test]
fn w19_in_random_interleavings_nothing_of_a_persons_counts_as_the_commands() {
    if !Confinement::find().notification {
        return println!("skipped: this kernel has no user notification");
    }
    for method in methods() {
        (0..12).for_each(|seed| interleave(method, seed));
    }
}

#[test]
#[ignore = "a minute or two: hundreds of interleavings"]
fn w19_whole_in_500_interleavings() {
    for method in methods() {
        (100..350).for_each(|seed| interleave(method, seed));
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
            // A command can end before its supervisor has come.
            while profile == Profile::Read && !watch.is_supervised() {
                std::thread::yield_now();
            }
            assert_eq!(witness.is_complete(), complete, "{method:?}, {profile:?}");
        }
    }
}

/// Of files whose closings are not looked at, since there are too many, nothing says that they are the command's alone.
#[test]
fn w19_files_beyond_those_that_are_looked_at_are_unsure() {
    const SCRIPT: &str = "n=0; while [ $n -lt 1100 ]; do printf x > f$n; n=$((n+1)); done; mv f1099 moved";
    if !Confinement::find().notification {
        return println!("skipped: this kernel has no user notification");
    }
    for method in methods() {
        let place = Place::new();
        let (witness, watch) = (Witness::default(), CommandWatch::default());
        witness.begin(SystemTime::now());
        watch.attend(&witness);
        let confined = place.confined(Profile::Workspace, method);
        place.run_watched(&confined, SCRIPT, &watch);
        assert!(witness.is_complete(), "{method:?}");
        let work = place.top.join("work").canonicalize().unwrap();
        for (name, whose) in [("f0", Whose::Call), ("f1098", Whose::Unsure), ("moved", Whose::Unsure)] {
            let path = work.join(name);
            assert_eq!(witness.whose(&path, FileMark::of(&path)), whose, "{method:?}: {name}");
        }
    }
}
