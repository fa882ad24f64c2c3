//! Files that a command overwrites: those that git ignores, large ones, build output, and those on another mount. Each
//! comes back, or is named.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tiller_protocol::names::MADE_AGAIN;

use super::world::{World, diff, sh};
use crate::{Answer, Change, Goal, Limits, Mode, Plan, Reason, Shadow, State, Step};

/// Ways to overwrite the file `$F`; `other` is another file.
const WAYS: [(&str, &str); 6] = [
    ("echo", "echo x > $F"),
    ("sed", "sed -i s/0/1/ $F"),
    ("cp", "cp other $F"),
    ("mv", "mv other $F"),
    ("truncate", "truncate -s 3 $F"),
    ("append", "echo more >> $F"),
];
const LARGE: usize = 300 << 10;
/// Larger than any file that is covered here.
const HUGE: usize = 500 << 10;

/// What a restore leaves, as `PATH: REASON`.
fn left(plan: &Plan) -> Vec<String> {
    plan.left.iter().map(|l| format!("{}: {}", l.path.display(), l.why)).collect()
}

fn unkept(s: &Shadow, step: Step) -> Vec<(String, Reason, Change)> {
    let all = s.unkept(step.before, step.after).unwrap();
    all.into_iter().map(|u| (u.path.to_str().unwrap().to_owned(), u.reason, u.change)).collect()
}

fn world() -> World {
    let mut w = World::new();
    w.limits.file_bytes = 400 << 10;
    w.put(".gitignore", ".env*\n*.bin\n*.log\ntarget/\n.idea/\nconfig/local.toml\n");
    w.put("other", "other\n");
    w
}

/// A command runs between two snapshots of a world with one more file.
fn run(w: &World, s: &mut Shadow, command: &str, file: &str) -> Step {
    let before = s.snapshot().unwrap().id;
    w.sh(&command.replace("$F", file));
    Step { before, after: s.snapshot().unwrap().id }
}

#[test]
fn small_ignored_files_come_back_however_a_command_overwrites_them() {
    let files = [".env", ".env.local", "sub/.env", ".idea/deep/x.xml", "config/local.toml", "small.bin"];
    for (file, (way, command)) in files.iter().flat_map(|file| WAYS.map(|way| (*file, way))) {
        let w = world();
        w.put(file, "0\nSECRET=1\n");
        let all = w.tree();
        let mut s = w.open();
        let step = run(&w, &mut s, command, file);
        assert!(diff(&s, step.before, step.after).contains(&format!("~{file}")), "{file}, {way}");
        assert_eq!(unkept(&s, step), [], "{file}, {way}");
        let plan = s.plan(&Goal::back(step.before, vec![step])).unwrap();
        assert_eq!(left(&plan), Vec::<String>::new(), "{file}, {way}");
        s.restore(&plan, &BTreeMap::new()).unwrap();
        assert_eq!(w.tree(), all, "{file}, {way}");
    }
}

/// Where no rule names them, too: tests of a new project write such files.
#[test]
fn folders_that_programs_make_again_are_no_change_unless_a_rule_takes_them_back() {
    for name in MADE_AGAIN {
        for taken_back in [false, true] {
            let mut w = World::new();
            w.limits.file_bytes = 400 << 10;
            if taken_back {
                w.put(".gitignore", format!("!{name}/\n"));
            }
            let file = format!("sub/{name}/a.py");
            let mut s = w.open();
            let step = run(&w, &mut s, &format!("mkdir -p sub/{name} && echo 1 > $F"), &file);
            let changes = diff(&s, step.before, step.after);
            assert_eq!(changes.contains(&file), taken_back, "{changes}");
        }
    }
}

#[test]
fn what_is_not_covered_is_named_however_a_command_overwrites_it() {
    let files = [
        ("data.bin", LARGE, Reason::Ignored),
        (".idea/cache.bin", LARGE, Reason::Ignored),
        ("dev.log", 10, Reason::Ignored),
        ("video", HUGE, Reason::TooLarge),
    ];
    for ((file, size, reason), (way, command)) in files.iter().flat_map(|file| WAYS.map(|way| (*file, way))) {
        let w = world();
        w.put(file, "0".repeat(size));
        let mut s = w.open();
        let step = run(&w, &mut s, command, file);
        let changed = w.get(file);
        assert_eq!(unkept(&s, step), [(file.to_owned(), reason, Change::Modified)], "{file}, {way}");
        let plan = s.plan(&Goal::back(step.before, vec![step])).unwrap();
        let all = left(&plan);
        assert!(all.iter().any(|l| l.starts_with(&format!("{file}: "))), "{file}, {way}: {all:?}");
        // It stays as the command left it, and does not become covered because a restore named it.
        s.restore(&plan, &BTreeMap::new()).unwrap();
        assert_eq!((w.get(file), w.get("other").as_str()), (changed, "other\n"), "{file}, {way}");
        assert_eq!(s.snapshot().unwrap().id, s.snapshot().unwrap().id);
    }
}

#[test]
fn build_output_is_neither_kept_nor_named() {
    for (way, command) in WAYS {
        let w = world();
        w.put("target/debug/x", "0");
        w.put("deep/a.pyc", "0");
        w.put("deep/.gitignore", "*.pyc\n");
        let mut s = w.open();
        for file in ["target/debug/x", "deep/a.pyc"] {
            w.put("other", "other\n");
            let step = run(&w, &mut s, command, file);
            assert_eq!(unkept(&s, step), [], "{way}");
            assert!(!diff(&s, step.before, step.after).contains(file), "{way}");
            assert_eq!(s.state(step.before, Path::new(file)).unwrap(), State::Unknown);
        }
    }
}

#[test]
fn new_and_deleted_files_that_are_not_covered_are_named() {
    let w = world();
    w.put("old.bin", "0".repeat(LARGE));
    w.put("grows.bin", "0");
    let mut s = w.open();
    let before = s.snapshot().unwrap().id;
    w.remove("old.bin");
    w.put("new.bin", "0".repeat(LARGE));
    w.put("video", "0".repeat(HUGE));
    w.put("grows.bin", "0".repeat(LARGE));
    w.put(".env", "new\n");
    let after = s.snapshot().unwrap().id;
    let step = Step { before, after };
    let told = [
        ("grows.bin".to_owned(), Reason::Ignored, Change::Modified),
        ("new.bin".to_owned(), Reason::Ignored, Change::Added),
        ("old.bin".to_owned(), Reason::Ignored, Change::Deleted),
        ("video".to_owned(), Reason::TooLarge, Change::Added),
    ];
    assert_eq!(unkept(&s, step), told);
    assert_eq!(diff(&s, before, after), "+.env ?grows.bin");
    let plan = s.plan(&Goal::back(before, vec![step])).unwrap();
    let named: Vec<&Path> = plan.left.iter().map(|l| l.path.as_path()).collect();
    assert_eq!(named, ["grows.bin", "new.bin", "old.bin", "video"].map(Path::new));
    s.restore(&plan, &BTreeMap::new()).unwrap();
    assert!(!w.work().join(".env").exists(), "the checkpoint knows that it did not exist");
    assert!(w.work().join("video").exists() && w.work().join("new.bin").exists());
}

/// A folder that a program fills is left out as a whole, and left alone until its names change.
#[test]
fn an_ignored_folder_of_many_files_is_left_out() {
    let w = world();
    w.put(".gitignore", "gen/\nmany/\n");
    w.put("gen/a/notes.md", "mine");
    for n in 0..600 {
        w.put(&format!("many/{}/{n}", n % 7), "0");
    }
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    assert_eq!(first.uncovered(Path::new("many/0/7")), Some(Reason::Ignored));
    let files: Vec<PathBuf> = s.files(first.id).unwrap().into_iter().map(|(path, _)| path).collect();
    assert_eq!(files, [".gitignore", "gen/a/notes.md", "other"].map(PathBuf::from));
    w.put("many/0/7", "1");
    assert_eq!(s.snapshot().unwrap().id, first.id);
    // A folder that grows beyond it stands for its files: a restore takes none of them for deleted.
    for n in 0..600 {
        w.put(&format!("gen/a/{n}"), "0");
    }
    let second = s.snapshot().unwrap().id;
    let step = Step { before: first.id, after: second };
    assert_eq!(unkept(&s, step), [("gen/a".to_owned(), Reason::Ignored, Change::Modified)]);
    assert_eq!(diff(&s, first.id, second), "?gen/a/notes.md");
    let plan = s.plan(&Goal::back(first.id, vec![step])).unwrap();
    s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(w.get("gen/a/notes.md"), "mine");
    assert_eq!(fs::read_dir(w.work().join("gen/a")).unwrap().count(), 601);
}

#[test]
fn more_ignored_files_than_are_looked_at_are_unknown() {
    let w = world();
    w.put(".gitignore", "*.gen\n.env\n");
    w.put(".env", "0");
    for n in 0..2_100 {
        w.put(&format!("{n:04}.gen"), "0");
    }
    let mut s = w.open();
    let first = s.snapshot().unwrap();
    assert!(s.read(first.id, Path::new(".env")).unwrap().is_some());
    assert_eq!(s.state(first.id, Path::new("2099.gen")).unwrap(), State::Unknown);
    s.save_cache();
    drop(s);
    let mut s = w.open();
    assert_eq!(s.snapshot().unwrap().tree, first.tree);
    w.put("2099.gen", "1");
    let plan = s.plan(&Goal::back(first.id, Vec::new())).unwrap();
    s.restore(&plan, &BTreeMap::new()).unwrap();
    assert_eq!(w.get("2099.gen"), "1", "it is not taken for new");
}

/// A snapshot of a version that did not cover ignored files knows nothing of them, and nothing is taken for new.
#[test]
fn an_older_snapshot_stays_readable_and_deletes_nothing() {
    let w = world();
    w.put(".env", "0");
    w.put("a", "0");
    let mut s = w.open();
    let now = s.snapshot().unwrap();
    let older = s.as_an_older_version(now.id, &[".gitignore", "a", "other"]);
    assert_eq!(s.find(older).unwrap().mode, Mode::Full);
    assert_eq!(s.state(older, Path::new(".env")).unwrap(), State::Unknown);
    assert_eq!(diff(&s, older, now.id), "?.env");
    w.put("a", "1");
    let plan = s.plan(&Goal::back(older, Vec::new())).unwrap();
    let answers = plan.items.iter().map(|i| (i.diff.path.clone(), Answer::Restore)).collect();
    s.restore(&plan, &answers).unwrap();
    assert_eq!((w.get("a").as_str(), w.get(".env").as_str()), ("0", "0"));
}

#[test]
fn what_the_store_keeps_of_an_ignored_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let w = world();
    w.put(".env", "SECRET=1\n");
    let mut s = w.open();
    s.snapshot().unwrap();
    s.save_cache();
    for path in super::world::paths(&w.store()) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}

/// The part that runs in a mount namespace of its own, which is this test binary once more. Alone it does nothing.
#[test]
#[ignore = "the other process of the test beside it"]
fn on_another_mount_in_a_namespace() {
    let Some(top) = std::env::var_os("TILLER_TEST_MOUNT").map(PathBuf::from) else { return };
    let work = top.join("work");
    let clock = Arc::new(tiller_protocol::SystemClock::default());
    let mut s = Shadow::open(&work, &top.join("store"), Limits::default(), clock).unwrap();
    for rules in ["", "mnt/\n"] {
        fs::write(work.join(".gitignore"), rules).unwrap();
        for (way, command) in WAYS {
            fs::write(work.join("other"), "other\n").unwrap();
            fs::write(work.join("mnt/d/f"), "0000\n").unwrap();
            let before = s.snapshot().unwrap();
            assert_eq!(before.uncovered(Path::new("mnt/d/f")), Some(Reason::OtherDisk));
            sh(&work, &command.replace("$F", "mnt/d/f"));
            let step = Step { before: before.id, after: s.snapshot().unwrap().id };
            assert_eq!(
                unkept(&s, step),
                [("mnt/d/f".to_owned(), Reason::OtherDisk, Change::Modified)],
                "{way}"
            );
            let plan = s.plan(&Goal::back(step.before, vec![step])).unwrap();
            let line = "mnt/d/f: it changed and its earlier content was not kept: on another file system";
            assert!(left(&plan).contains(&line.to_owned()), "{way}: {:?}", left(&plan));
        }
    }
    let before = s.snapshot().unwrap().id;
    sh(&work, "rm mnt/d/f; echo 1 > mnt/new");
    let after = s.snapshot().unwrap().id;
    let told = [
        ("mnt/d/f".to_owned(), Reason::OtherDisk, Change::Deleted),
        ("mnt/new".to_owned(), Reason::OtherDisk, Change::Added),
    ];
    assert_eq!(unkept(&s, Step { before, after }), told);
    fs::write(top.join("done"), "").unwrap();
}

#[test]
fn files_on_another_mount_are_named() {
    let w = World::new();
    w.sh("mkdir mnt");
    let line = "mount -t tmpfs none work/mnt && mkdir work/mnt/d && exec \"$0\" \"$@\"";
    let mut child = Command::new("unshare");
    child.args(["-m", "sh", "-c", "mount -t tmpfs none work/mnt"]).current_dir(&w.top);
    if !child.output().is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: no mount namespace");
        return;
    }
    let mut child = Command::new("unshare");
    child.args(["-m", "sh", "-c", line]).arg(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "room_tests::ignored::on_another_mount_in_a_namespace",
        "--ignored",
        "--nocapture",
    ]);
    let out = child.env("TILLER_TEST_MOUNT", &w.top).current_dir(&w.top).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(w.top.join("done").exists(), "{text}{}", String::from_utf8_lossy(&out.stderr));
}
