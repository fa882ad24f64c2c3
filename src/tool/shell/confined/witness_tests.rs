//! The author of a change, by the notes of supervisors.

use super::*;

const BEGAN: i64 = 1_000_000_000;

fn mark(inode: u64, seconds: i64) -> FileMark {
    FileMark::new(1, inode, seconds, 0)
}

fn witness() -> Witness {
    let witness = Witness::default();
    witness.begin(mark(0, BEGAN).changed);
    witness.program(true);
    witness
}

/// A file from before the call, and one that was changed while it ran.
const OLD: i64 = BEGAN - 5;
const NEW: i64 = BEGAN + 5;

#[test]
fn a_change_is_the_calls_where_a_program_of_it_touched_the_file_alone() {
    type Notes = &'static [(&'static str, Left, Option<i64>)];
    let file = |inode| Left::File(mark(inode, NEW));
    let rows: &[(&str, Notes, Option<FileMark>, Whose)] = &[
        ("nothing was noted", &[], Some(mark(1, NEW)), Whose::Others),
        (
            "written",
            &[(
                "a",
                Left::File(FileMark { device: 1, inode: 1, changed: SystemTime::UNIX_EPOCH }),
                Some(OLD),
            )],
            Some(mark(1, NEW)),
            Whose::Call,
        ),
        ("only linked", &[("a", Left::Same, Some(OLD))], Some(mark(1, NEW)), Whose::Others),
        ("removed", &[("a", Left::Nothing, Some(OLD))], None, Whose::Call),
        ("changed before it was removed", &[("a", Left::Nothing, Some(NEW))], None, Whose::Both),
        ("removed and there again", &[("a", Left::Nothing, Some(OLD))], Some(mark(2, NEW)), Whose::Both),
        ("changed before", &[("a", Left::Other, Some(NEW))], Some(mark(1, NEW)), Whose::Both),
        (
            "twice by the call",
            &[("a", Left::Other, Some(OLD)), ("a", Left::Other, Some(NEW))],
            Some(mark(1, NEW)),
            Whose::Call,
        ),
        (
            "linked, then written",
            &[("a", Left::Same, Some(OLD)), ("a", Left::Other, Some(NEW))],
            Some(mark(1, NEW)),
            Whose::Call,
        ),
        ("below a moved folder", &[("d", Left::Tree, None)], Some(mark(1, OLD)), Whose::Others),
    ];
    for (what, notes, now, whose) in rows {
        let witness = witness();
        for (path, left, was) in *notes {
            witness.changed(Path::new(path), *left, was.map(|was| mark(1, was)));
        }
        assert_eq!(witness.whose(Path::new("a"), *now), *whose, "{what}");
    }
    let moved = witness();
    moved.changed(Path::new("d"), Left::Tree, None);
    assert_eq!(moved.whose(Path::new("d/x"), Some(mark(1, OLD))), Whose::Call);
    assert_eq!(moved.whose(Path::new("d/x"), Some(mark(1, NEW))), Whose::Both);
    let replaced = witness();
    replaced.changed(Path::new("a"), file(1), Some(mark(1, OLD)));
    assert_eq!(replaced.whose(Path::new("a"), Some(mark(2, NEW))), Whose::Both, "another file stands there");
}

#[test]
fn a_file_that_was_changed_long_after_its_last_opening_may_have_another_writer() {
    let witness = witness();
    let now = SystemTime::now();
    let at = |later: u64| FileMark { device: 1, inode: 1, changed: now + Duration::from_secs(later) };
    witness.changed(Path::new("a"), Left::File(at(0)), None);
    assert_eq!(witness.whose(Path::new("a"), Some(at(1))), Whose::Call);
    assert_eq!(witness.whose(Path::new("a"), Some(at(60))), Whose::Both);
}

#[test]
fn a_file_that_was_held_open_is_judged_by_its_closing() {
    let (witness, now) = (witness(), SystemTime::now());
    let late = FileMark { device: 1, inode: 1, changed: now + HELD + Duration::from_millis(40) };
    witness.changed(Path::new("a"), Left::File(late), None);
    while SystemTime::now() < now + Duration::from_millis(50) {
        std::thread::yield_now();
    }
    witness.closed(Path::new("a"));
    assert_eq!(witness.whose(Path::new("a"), Some(late)), Whose::Call);
}

#[test]
fn what_was_noted_of_files_moves_with_their_folder() {
    let (x, y) = (Path::new("x"), Path::new("y"));
    let file = |inode| Left::File(mark(inode, NEW));
    let moved = witness();
    moved.changed(x, Left::Other, None);
    moved.changed(Path::new("x/a"), file(1), None);
    moved.changed(Path::new("x/in/b"), file(2), Some(mark(2, NEW)));
    moved.changed(Path::new("y/a"), Left::Nothing, Some(mark(5, OLD)));
    moved.moved((x, y), Left::Tree, None, None);
    moved.changed(Path::new("y/person"), file(3), Some(mark(3, NEW)));
    // Another folder there does not hide what was in the first.
    moved.changed(x, Left::Other, None);
    for (path, now, whose) in [
        ("y/a", Some(mark(1, NEW)), Whose::Call),
        ("y/in/b", Some(mark(2, NEW)), Whose::Both),
        ("y/person", Some(mark(3, NEW)), Whose::Both),
        ("y/old", Some(mark(4, OLD)), Whose::Call),
        ("x/a", None, Whose::Call),
        ("x2", Some(mark(6, NEW)), Whose::Others),
    ] {
        assert_eq!(moved.whose(Path::new(path), now), whose, "{path}");
    }
    let exchanged = witness();
    exchanged.changed(Path::new("x/a"), file(1), None);
    exchanged.exchanged([x, y], [Left::Tree, Left::Tree], [None, None]);
    assert_eq!(exchanged.whose(Path::new("y/a"), Some(mark(1, NEW))), Whose::Call);
    let marks = [mark(1, OLD), mark(2, OLD)];
    exchanged.exchanged(
        [Path::new("a"), Path::new("b")],
        [Left::File(marks[1]), Left::File(marks[0])],
        marks.map(Some),
    );
    assert_eq!(exchanged.whose(Path::new("a"), Some(marks[1])), Whose::Call);
    assert_eq!(exchanged.whose(Path::new("b"), Some(marks[0])), Whose::Call);
}

#[test]
fn an_inner_call_has_written_what_differs_after_it() {
    type Act = fn(&Path);
    // Times of files have steps of some milliseconds.
    let write: Act = |path| {
        let before = FileMark::of(path);
        while FileMark::of(path) == before {
            std::fs::write(path, "the call").unwrap();
        }
    };
    let rows: [(&str, Act, Whose); 4] = [
        ("refused", |_| {}, Whose::Others),
        ("written", write, Whose::Call),
        ("removed", |path| std::fs::remove_file(path).unwrap(), Whose::Call),
        (
            "replaced",
            |path| {
                std::fs::write(path.with_extension("new"), "the call").unwrap();
                std::fs::rename(path.with_extension("new"), path).unwrap();
            },
            Whose::Call,
        ),
    ];
    for (what, act, whose) in rows {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        std::fs::write(&path, "of a person").unwrap();
        let witness = Witness::default();
        witness.begin(SystemTime::now());
        let before = PathBefore::of(&path);
        act(&path);
        witness.wrote(&before);
        assert_eq!(witness.whose(&path, FileMark::of(&path)), whose, "{what}");
    }
}

#[test]
fn a_file_that_was_changed_after_the_end_of_the_call_may_have_another_writer() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("a");
    std::fs::write(&path, "the call's").unwrap();
    let now = FileMark::of(&path).unwrap();
    let later = FileMark { changed: SystemTime::now() + Duration::from_secs(1), ..now };
    let witness = witness();
    witness.changed(&path, Left::File(now), None);
    assert_eq!(witness.whose(&path, Some(later)), Whose::Call, "a program of the call can have it open");
    witness.end();
    assert_eq!(witness.whose(&path, Some(now)), Whose::Call);
    assert_eq!(witness.whose(&path, Some(later)), Whose::Both);
    // What was made anew after a comparison is as the call left it.
    let new = tmp.path().join("new");
    std::fs::write(&new, "the call's").unwrap();
    std::fs::rename(&new, &path).unwrap();
    let anew = FileMark::of(&path);
    assert_eq!(witness.whose(&path, anew), Whose::Both, "another file stands there");
    witness.remade(std::slice::from_ref(&path));
    witness.end();
    assert_eq!(witness.whose(&path, anew), Whose::Call);
}

#[test]
fn it_is_complete_when_every_program_of_the_call_has_a_supervisor() {
    let witness = Witness::default();
    assert!(!witness.is_complete());
    witness.begin(SystemTime::now());
    assert!(!witness.is_complete(), "no program ran");
    witness.program(true);
    assert!(witness.is_complete());
    witness.program(false);
    assert!(!witness.is_complete());
    witness.supervisor();
    assert!(witness.is_complete());
    witness.begin(SystemTime::now());
    assert!(!witness.is_complete(), "another call");
}
