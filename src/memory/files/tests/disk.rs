use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use super::*;
use crate::files::document::Entry;

thread_local! {
    /// Points that this thread has passed, and the one at which the process is killed.
    static STEPS: std::cell::Cell<(u32, u32)> = const { std::cell::Cell::new((0, 0)) };
    /// What another program does at the point of this name, once.
    static MEANWHILE: std::cell::RefCell<Option<Meanwhile>> = const { std::cell::RefCell::new(None) };
}

type Meanwhile = (&'static str, Box<dyn FnOnce()>);

/// Does at the point of this name what another program would.
fn meanwhile(point: &'static str, work: impl FnOnce() + 'static) {
    MEANWHILE.set(Some((point, Box::new(work))));
}

/// Kills the process without warning at the chosen point.
pub(crate) fn step(name: &str) {
    if MEANWHILE.with_borrow(|m| m.as_ref().is_some_and(|(point, _)| *point == name))
        && let Some((_, work)) = MEANWHILE.take()
    {
        work();
    }
    let (passed, end) = STEPS.get();
    STEPS.set((passed + 1, end));
    if end != 0 && passed + 1 == end {
        die();
    }
}

fn slot(dir: &Path) -> Slot {
    Slot { path: dir.join("MEMORY.md"), locks: dir.join("locks"), links: true, inside: None }
}

fn add(slot: &Slot, text: &str) {
    let entry = Entry::new("2026-11-26", text);
    slot.change(|doc| {
        doc.add(&entry, None);
        Ok(())
    })
    .unwrap();
}

fn texts(slot: &Slot) -> Vec<String> {
    let text = slot.read().unwrap().unwrap_or_default();
    Document::parse(&text).entries().map(|e| e.text.clone()).collect()
}

/// What a child of a test does: the test starts its own binary again with these variables.
fn child(test: &str, dir: &Path, job: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("files::disk::tests::{test}"), "--nocapture"])
        .env("TILLER_MEMORY_CHILD", job)
        .env("TILLER_MEMORY_DIR", dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn job() -> Option<(String, PathBuf)> {
    let job = std::env::var("TILLER_MEMORY_CHILD").ok()?;
    Some((job, std::env::var_os("TILLER_MEMORY_DIR").unwrap().into()))
}

/// Two processes write 100 entries each, while an editor that knows no locks rewrites the file.
#[test]
#[expect(clippy::disallowed_methods, reason = "an editor saves now and then")]
fn two_processes_and_an_editor_that_write_at_once_lose_nothing() {
    const ROUNDS: usize = 100;
    /// After so many writes each, a process waits until the editor has saved twice more.
    const EACH: usize = 16;
    if let Some((job, dir)) = job() {
        let (slot, waits) = (slot(&dir), dir.join(format!("{job} waits")));
        for n in 0..ROUNDS {
            add(&slot, &format!("{job} {n}"));
            let saved = dir.join(format!("saved {}", (n + 1) / EACH * 2));
            if (n + 1).is_multiple_of(EACH) && !saved.exists() {
                fs::write(&waits, "").unwrap();
                while !saved.exists() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                fs::remove_file(&waits).unwrap();
            }
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let slot = slot(dir.path());
    fs::write(&slot.path, "# Mine\n\nText of the person's.\n").unwrap();
    let name = "two_processes_and_an_editor_that_write_at_once_lose_nothing";
    let mut children: Vec<_> =
        ["a", "b"].iter().map(|job| child(name, dir.path(), job).spawn().unwrap()).collect();
    // An editor takes no lock. This one saves a new file in the place of the old one, and when that is not what it had
    // read, it saves again with the lines that it would have lost.
    let (mut saved, mut seen) = (0, BTreeSet::new());
    // Lines that a save of it took out, which it adds again unless it sees them. It may see them in a file that is about to
    // be replaced by what its save and the change of a process are together, where they are out.
    let mut taken_out = BTreeSet::new();
    while children.iter_mut().any(|c| c.try_wait().unwrap().is_none()) {
        // It saves after two changes by others, so that these get on, or when one of them waits for it.
        seen.insert(fs::read_to_string(&slot.path).unwrap());
        let awaited = ["a", "b"].iter().any(|job| dir.path().join(format!("{job} waits")).exists());
        if seen.len() < 3 && !awaited {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        seen.clear();
        let mut more = format!("- editor {saved}\n");
        loop {
            let before = fs::read_to_string(&slot.path).unwrap();
            let known: BTreeSet<&str> = before.lines().collect();
            let new: String = more.lines().filter(|l| !known.contains(l)).map(|l| format!("{l}\n")).collect();
            let after = format!("{before}{new}");
            let beside = dir.path().join("editor.tmp");
            fs::write(&beside, &after).unwrap();
            renameat_with(CWD, &beside, CWD, &slot.path, RenameFlags::EXCHANGE).unwrap();
            let displaced = fs::read_to_string(&beside).unwrap();
            if displaced == before {
                break;
            }
            let known: BTreeSet<&str> = after.lines().collect();
            taken_out.extend(displaced.lines().filter(|l| !known.contains(l)).map(str::to_owned));
            more = displaced.lines().filter(|l| !known.contains(l)).map(|l| format!("{l}\n")).collect();
        }
        saved += 1;
        fs::write(dir.path().join(format!("saved {saved}")), "").unwrap();
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let found: BTreeSet<String> = texts(&slot).into_iter().collect();
    let missing: Vec<String> = ["a", "b"]
        .iter()
        .flat_map(|job| (0..ROUNDS).map(move |n| format!("{job} {n}")))
        .filter(|text| !found.contains(text))
        .filter(|text| !taken_out.iter().any(|line| line.ends_with(&format!(" {text}"))))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
    assert!(saved > 10, "the editor saved {saved} times");
    assert!(fs::read_to_string(&slot.path).unwrap().starts_with("# Mine\n\nText of the person's.\n"));
}

#[test]
fn two_hundred_writes_of_four_threads_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let slot = slot(dir.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let slot = slot.clone();
            scope.spawn(move || (0..50).for_each(|n| add(&slot, &format!("{thread} {n}"))));
        }
    });
    assert_eq!(texts(&slot).into_iter().collect::<BTreeSet<_>>().len(), 200);
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "the file and the folder of locks: {left:?}");
}

/// Killed at each point of a write, the file is as before or as after it, and the next write works.
#[test]
fn s2_killed_at_each_point_of_a_write_the_file_is_old_or_new() {
    let name = "s2_killed_at_each_point_of_a_write_the_file_is_old_or_new";
    if let Some((job, dir)) = job() {
        STEPS.set((0, job.parse().unwrap()));
        add(&slot(&dir), "new");
        return;
    }
    let (mut killed, mut at) = (0, 0);
    loop {
        at += 1;
        let mut ended = false;
        for old in [None, Some("# Mine\n- old\n")] {
            let dir = tempfile::tempdir().unwrap();
            let slot = slot(dir.path());
            if let Some(old) = old {
                fs::write(&slot.path, old).unwrap();
            }
            let status = child(name, dir.path(), &at.to_string()).status().unwrap();
            let text = fs::read_to_string(&slot.path).ok();
            let new = format!("{}- 2026-11-26: new\n", old.unwrap_or_default());
            assert!(text.as_deref() == old || text.as_deref() == Some(&new), "at point {at}: {text:?}");
            if status.success() {
                assert_eq!(text.as_deref(), Some(new.as_str()));
                ended = true;
            } else {
                killed += 1;
            }
            add(&slot, "after");
            assert!(texts(&slot).contains(&"after".to_owned()));
            let left = fs::read_dir(dir.path()).unwrap().count();
            assert_eq!(left, 2, "nothing is left of the killed process");
        }
        if ended && at > 5 {
            break;
        }
        assert!(at < 50, "a write has fewer points");
    }
    assert!(killed >= 10, "{killed} processes were killed");
}

#[test]
fn what_an_editor_wrote_between_reading_and_writing_is_merged() {
    let dir = tempfile::tempdir().unwrap();
    let slot = slot(dir.path());
    fs::write(&slot.path, "- one\n- two\n").unwrap();
    let mut first = true;
    slot.change(|doc| {
        if std::mem::take(&mut first) {
            // After the file was read for this change.
            fs::write(&slot.path, "# Title\n- one, better\n- two\n- by hand\n").unwrap();
        }
        doc.remove(&doc.find("two").unwrap());
        doc.add(&Entry::new("", "by the agent"), None);
        Ok(())
    })
    .unwrap();
    let text = fs::read_to_string(&slot.path).unwrap();
    assert!(text.starts_with("# Title\n- one, better\n"), "{text}");
    assert!(
        !text.contains("two") && text.contains("- by hand\n") && text.contains("- by the agent\n"),
        "{text}"
    );
}

/// An editor that saves in place empties the file and writes it a little later: what it writes goes to the file that was just
/// exchanged.
#[test]
fn what_an_editor_writes_in_place_during_the_exchange_is_merged() {
    let dir = tempfile::tempdir().unwrap();
    let slot = slot(dir.path());
    fs::write(&slot.path, "# Mine\n- one\n- two\n").unwrap();
    let path = slot.path.clone();
    meanwhile("compared", move || {
        let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        file.write_all(b"# Mine, ").unwrap();
        // Its beginning was read, and it is waited for.
        meanwhile("waits", move || file.write_all(b"better\n- one\n- two\n- by hand\n").unwrap());
    });
    add(&slot, "by the agent");
    let text = fs::read_to_string(&slot.path).unwrap();
    assert_eq!(text, "# Mine, better\n- one\n- two\n- 2026-11-26: by the agent\n- by hand\n");
}

/// An editor saves in the moment before the exchange, and the process is killed right after it: the editor's version is only
/// in the temporary file.
#[test]
fn s2_killed_after_the_exchange_the_version_of_an_editor_is_taken_up() {
    let name = "s2_killed_after_the_exchange_the_version_of_an_editor_is_taken_up";
    if let Some((_, dir)) = job() {
        let slot = slot(&dir);
        let path = slot.path.clone();
        meanwhile("compared", move || {
            fs::write(&path, "# Mine, better\n- one, better\n- by hand\n").unwrap();
            meanwhile("exchanged", die);
        });
        add(&slot, "by the agent");
        return;
    }
    for later in [None, Some("- saved later\n")] {
        let dir = tempfile::tempdir().unwrap();
        let slot = slot(dir.path());
        fs::write(&slot.path, "# Mine\n- one\n").unwrap();
        assert!(!child(name, dir.path(), "1").status().unwrap().success());
        assert!(!fs::read_to_string(&slot.path).unwrap().contains("by hand"), "it was exchanged");
        if let Some(later) = later {
            fs::write(&slot.path, later).unwrap();
        }
        add(&slot, "after");
        let text = fs::read_to_string(&slot.path).unwrap();
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        if later.is_some() {
            // The file was written since: nothing is mixed into it, and nothing is lost.
            assert_eq!(text, "- saved later\n- 2026-11-26: after\n");
            assert_eq!(left, ["MEMORY.md", "MEMORY.md.saved-1", "locks"]);
            let saved = fs::read_to_string(dir.path().join("MEMORY.md.saved-1")).unwrap();
            assert_eq!(saved, "# Mine, better\n- one, better\n- by hand\n");
        } else {
            assert!(text.starts_with("# Mine, better\n- one, better\n- by hand\n"), "{text}");
            assert!(text.contains("by the agent\n") && text.ends_with("after\n"), "{text}");
            assert_eq!(left, ["MEMORY.md", "locks"]);
        }
    }
}

/// An editor saves in the moment before the exchange, and the process is killed at each point from there on: what was saved is in
/// the file after the next change, or beside it under a name that is seen, and nothing is there twice.
#[test]
fn s2_killed_at_each_point_of_a_merge_the_version_of_an_editor_is_not_lost() {
    let name = "s2_killed_at_each_point_of_a_merge_the_version_of_an_editor_is_not_lost";
    let saved = "# Mine, better\n- one, better\n- by hand\n";
    if let Some((at, dir)) = job() {
        let slot = slot(&dir);
        let path = slot.path.clone();
        meanwhile("compared", move || {
            fs::write(&path, saved).unwrap();
            STEPS.set((0, at.parse().unwrap()));
        });
        add(&slot, "by the agent");
        return;
    }
    for at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let slot = slot(dir.path());
        fs::write(&slot.path, "# Mine\n- one\n").unwrap();
        let ended = child(name, dir.path(), &at.to_string()).status().unwrap().success();
        add(&slot, "after");
        let text = fs::read_to_string(&slot.path).unwrap();
        assert!(text.starts_with("# Mine, better\n- one, better\n"), "at point {at}: {text}");
        for once in ["by hand", "after"] {
            assert_eq!(text.matches(once).count(), 1, "at point {at}: {text}");
        }
        assert!(text.matches("by the agent").count() == usize::from(at > 1), "at point {at}: {text}");
        let left: BTreeSet<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["MEMORY.md", "locks"].map(Into::into).into(), "at point {at}");
        if ended {
            assert!(at > 8, "{at} points");
            break;
        }
    }
}

/// What cannot be merged is not lost: it stays beside the file, and the error says where.
#[test]
fn what_an_editor_saved_during_the_exchange_stays_when_it_cannot_be_merged() {
    let largest = usize::try_from(LARGEST).unwrap();
    let nearly = format!("- {}\n", "a".repeat(largest - 8));
    for (saved, why) in [
        (&b"- caf\xe9\n"[..], "UTF-8"),
        (b"- a\0b\n", "NUL"),
        (&vec![b'a'; largest + 1], "larger than 1 MiB"),
        // It is a memory file, but with the new entry it would be none.
        (nearly.as_bytes(), "would be larger than 1 MiB"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let slot = slot(dir.path());
        fs::write(&slot.path, "- one\n").unwrap();
        let (path, bytes) = (slot.path.clone(), saved.to_vec());
        meanwhile("compared", move || fs::write(&path, bytes).unwrap());
        let add_to = |text: &str| {
            slot.change(|doc| {
                doc.add(&Entry::new("", text), None);
                Ok(())
            })
        };
        let error = add_to("by the agent").unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("MEMORY.md.saved-1"), "{error}");
        assert_eq!(fs::read(dir.path().join("MEMORY.md.saved-1")).unwrap(), saved, "{why}");
        add_to("after").unwrap();
        assert_eq!(texts(&slot), ["one", "by the agent", "after"], "{why}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "{why}");
    }
}

/// The person saves, and then removes the file: what was saved stays.
#[test]
fn what_an_editor_saved_stays_when_the_file_is_removed_before_the_merge() {
    let dir = tempfile::tempdir().unwrap();
    let slot = slot(dir.path());
    fs::write(&slot.path, "- one\n").unwrap();
    let path = slot.path.clone();
    meanwhile("compared", move || {
        fs::write(&path, "- by hand\n").unwrap();
        meanwhile("noted", move || fs::remove_file(&path).unwrap());
    });
    add(&slot, "by the agent");
    assert_eq!(texts(&slot), ["by the agent"]);
    assert_eq!(fs::read_to_string(dir.path().join("MEMORY.md.saved-1")).unwrap(), "- by hand\n");
}

/// Kills the process without warning.
/// Kills the process at the n-th point from now on.
pub(crate) fn die_at(n: u32) {
    STEPS.set((0, n));
}

pub(crate) fn die() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
}

#[test]
fn what_is_no_memory_file_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let slot = slot(dir.path());
    let refused = |part: &str| {
        let (read, write) = (
            slot.read(),
            slot.change(|doc| {
                doc.add(&Entry::new("", "x"), None);
                Ok(())
            }),
        );
        for why in [read.unwrap_err().to_string(), write.unwrap_err().to_string()] {
            assert!(why.contains(part), "{why}");
        }
    };
    fs::write(&slot.path, b"a\0b").unwrap();
    refused("NUL");
    fs::write(&slot.path, b"a\xff").unwrap();
    refused("UTF-8");
    fs::write(&slot.path, vec![b'a'; usize::try_from(LARGEST).unwrap() + 1]).unwrap();
    refused("larger than 1 MiB");
    fs::remove_file(&slot.path).unwrap();
    fs::create_dir(&slot.path).unwrap();
    refused("not a plain file");
    fs::remove_dir(&slot.path).unwrap();
    rustix::fs::mknodat(CWD, &slot.path, rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600), 0)
        .unwrap();
    refused("not a plain file");
    fs::remove_file(&slot.path).unwrap();
    symlink("MEMORY.md", &slot.path).unwrap();
    refused("cannot be read");
    fs::remove_file(&slot.path).unwrap();
    // One that would grow too large stays as it is.
    let big = format!("{}\n", "a".repeat(usize::try_from(LARGEST).unwrap() - 2));
    fs::write(&slot.path, &big).unwrap();
    let why = slot
        .change(|doc| {
            doc.add(&Entry::new("", "more"), None);
            Ok(())
        })
        .unwrap_err()
        .to_string();
    assert!(why.contains("larger than 1 MiB"), "{why}");
    assert_eq!(fs::read_to_string(&slot.path).unwrap(), big);
}

#[test]
fn a_link_of_the_person_s_is_followed_and_one_of_a_project_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("dotfiles.md");
    fs::write(&elsewhere, "- a\n").unwrap();
    let mine = slot(dir.path());
    symlink(&elsewhere, &mine.path).unwrap();
    add(&mine, "b");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "- a\n- 2026-11-26: b\n");
    assert!(fs::symlink_metadata(&mine.path).unwrap().is_symlink());

    let project = dir.path().join("project");
    fs::create_dir(&project).unwrap();
    let project = project.canonicalize().unwrap();
    fs::create_dir(project.join(".tiller")).unwrap();
    let theirs =
        Slot { path: project.join(".tiller/MEMORY.md"), links: false, inside: Some(project.clone()), ..mine };
    symlink(&elsewhere, &theirs.path).unwrap();
    assert!(theirs.read().unwrap_err().to_string().contains("is a link"));
    fs::remove_dir_all(project.join(".tiller")).unwrap();
    symlink(dir.path(), project.join(".tiller")).unwrap();
    assert!(theirs.read().unwrap_err().to_string().contains("out of the project"));
    assert!(
        theirs
            .change(|doc| {
                doc.add(&Entry::new("", "x"), None);
                Ok(())
            })
            .is_err()
    );
}

/// The folder of a project's memory file that is swapped with a link out of the project.
#[test]
fn x20_a_swapped_folder_of_a_project_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let swaps = tiller_fs::testing::swap::Swaps::new(dir.path(), ".tiller", &["MEMORY.md"]);
    let slot = Slot {
        path: swaps.root().join(".tiller/MEMORY.md"),
        locks: dir.path().join("locks"),
        links: false,
        inside: Some(swaps.root().to_owned()),
    };
    swaps.check("a memory file", || match slot.read() {
        Ok(text) => text.unwrap_or_default(),
        Err(e) => e.to_string(),
    });
}
