//! The person edits files while a command of an agent runs: what no supervisor saw stays, whatever is taken back.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tiller_engine::EngineConfig;
use tiller_protocol::command::SessionCommand;
use tiller_protocol::{Profile, RestoreWhat};
use tiller_tool::Workspace;
use tiller_tool::shell::{CommandWatch, Confiner, Confiners, FileMark, Launch, Left};

use crate::files::checkpoints::{back, keeps, messages, preview, session_command};
use crate::rig::*;

/// Confines nothing. The test says what a supervisor would have seen.
#[derive(Debug, Default)]
struct Seeing(Mutex<Vec<CommandWatch>>);

impl Confiner for Seeing {
    fn confine(&self, launch: Launch, _workspace: &Path, _scratch: &Path) -> Launch {
        launch
    }

    fn confine_watched(&self, launch: Launch, _: &Path, _: &Path, watch: &CommandWatch) -> Launch {
        watch.sees_changes();
        self.0.lock().unwrap().push(watch.clone());
        launch
    }
}

impl Seeing {
    /// The command changes a file.
    fn command_writes(&self, place: &Place, name: &str, text: &str) {
        let path = place.work.join(name);
        let was = FileMark::of(&path);
        place.file(name, text);
        self.note(&path, FileMark::of(&path).map_or(Left::Nothing, Left::File), was);
    }

    fn command_removes(&self, place: &Place, name: &str) {
        let path = place.work.join(name);
        let was = FileMark::of(&path);
        std::fs::remove_file(&path).unwrap();
        self.note(&path, Left::Nothing, was);
    }

    fn note(&self, path: &Path, left: Left, was: Option<FileMark>) {
        self.0.lock().unwrap().iter().for_each(|watch| watch.changed(path, left, was));
    }
}

fn watched(place: &Place, seeing: &Arc<Seeing>) -> impl FnOnce(&mut EngineConfig) + use<> {
    let (work, seeing) = (place.work.clone(), Arc::clone(seeing) as Arc<dyn Confiner>);
    move |parts| {
        parts.session.profile = Some(Profile::Full);
        let confiners =
            Confiners { read: Some(Arc::clone(&seeing)), workspace: Some(seeing), ..Confiners::default() };
        parts.workspace = Workspace::new(&work).unwrap().confine(confiners);
    }
}

/// A command that waits until the test lets it go on.
fn command() -> Arc<Fake> {
    Fake::with(|n, _| match n {
        0 => calls(&[(
            "c0",
            "terminal",
            json!({"command": "touch ../began; while [ ! -e ../go ]; do sleep 0.01; done"}),
        )]),
        _ => says("Done."),
    })
}

/// An editor that writes a new file and moves it into place.
fn replaces(place: &Place, name: &str, text: &str) {
    let new = place.work.parent().unwrap().join("of the editor");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, place.work.join(name)).unwrap();
}

/// A way in which both change files while the command runs: what is done, and what must be there after an undo.
type Way = (&'static str, fn(&Seeing, &Place), &'static [(&'static str, Option<&'static str>)]);

const WAYS: &[Way] = &[
    (
        "another file",
        |command, place| {
            command.command_writes(place, "a.txt", "agent\n");
            place.file("b.txt", "mine\n");
        },
        &[("a.txt", Some("a\n")), ("b.txt", Some("mine\n"))],
    ),
    (
        "a new file",
        |command, place| {
            command.command_writes(place, "new by agent.txt", "agent\n");
            place.file("mine.txt", "mine\n");
        },
        &[("new by agent.txt", None), ("mine.txt", Some("mine\n"))],
    ),
    (
        "a file in a new folder",
        |command, place| {
            command.command_writes(place, "a.txt", "agent\n");
            std::fs::create_dir(place.work.join("dir")).unwrap();
            place.file("dir/mine.txt", "mine\n");
        },
        &[("a.txt", Some("a\n")), ("dir/mine.txt", Some("mine\n"))],
    ),
    (
        "a removed file",
        |command, place| {
            command.command_removes(place, "a.txt");
            std::fs::remove_file(place.work.join("b.txt")).unwrap();
        },
        &[("a.txt", Some("a\n")), ("b.txt", None)],
    ),
    (
        "a renamed file",
        |command, place| {
            command.command_writes(place, "a.txt", "agent\n");
            std::fs::rename(place.work.join("b.txt"), place.work.join("c.txt")).unwrap();
        },
        &[("a.txt", Some("a\n")), ("b.txt", None), ("c.txt", Some("b\n"))],
    ),
    (
        "an editor that replaces another file",
        |command, place| {
            command.command_writes(place, "a.txt", "agent\n");
            replaces(place, "b.txt", "mine\n");
        },
        &[("a.txt", Some("a\n")), ("b.txt", Some("mine\n"))],
    ),
    (
        "the same file, before the command",
        |command, place| {
            place.file("a.txt", "mine\n");
            command.command_writes(place, "a.txt", "mine\nagent\n");
        },
        &[("a.txt", Some("a\n")), ("a.txt.kept-1", Some("mine\nagent\n"))],
    ),
    (
        "the same file, replaced after the command",
        |command, place| {
            command.command_writes(place, "a.txt", "agent\n");
            replaces(place, "a.txt", "agent\nmine\n");
        },
        &[("a.txt", Some("a\n")), ("a.txt.kept-1", Some("agent\nmine\n"))],
    ),
    (
        "a file that the command removed, made again",
        |command, place| {
            command.command_removes(place, "a.txt");
            place.file("a.txt", "mine\n");
        },
        &[("a.txt", Some("a\n")), ("a.txt.kept-1", Some("mine\n"))],
    ),
    (
        "nothing: the command was alone",
        |command, place| {
            command.command_writes(place, "a.txt", "agent\n");
            command.command_writes(place, "a.txt", "agent, again\n");
            command.command_writes(place, "new.txt", "agent\n");
            command.command_removes(place, "b.txt");
        },
        &[("a.txt", Some("a\n")), ("b.txt", Some("b\n")), ("new.txt", None), ("a.txt.kept-1", None)],
    ),
];

fn files(place: &Place) -> std::collections::BTreeMap<String, String> {
    let mut all = std::collections::BTreeMap::new();
    let mut folders = vec![place.work.clone()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap().flatten() {
            if item.path().is_dir() {
                folders.push(item.path());
            } else if let Ok(text) = std::fs::read_to_string(item.path()) {
                all.insert(item.path().strip_prefix(&place.work).unwrap().display().to_string(), text);
            }
        }
    }
    all
}

async fn during(what: &str, act: fn(&Seeing, &Place)) -> (Place, Rig) {
    let seeing = Arc::new(Seeing::default());
    let confiner = Arc::clone(&seeing);
    during_confined(what, |place| watched(place, &confiner), |place| act(&seeing, place)).await
}

/// As [`during`], with what confines the command.
async fn during_confined<S: FnOnce(&mut EngineConfig)>(
    what: &str,
    set: impl FnOnce(&Place) -> S,
    act: impl FnOnce(&Place),
) -> (Place, Rig) {
    let place = Place::new();
    place.file("a.txt", "a\n");
    place.file("b.txt", "b\n");
    let set = set(&place);
    let fake = command();
    let mut rig = place
        .start_with(&fake, |parts| {
            keeps(&place, parts);
            set(parts);
        })
        .await;
    rig.submit("run it");
    let outside = place.work.parent().unwrap().to_owned();
    wait_until(&format!("{what}: the command"), async || outside.join("began").exists()).await;
    act(&place);
    std::fs::write(outside.join("go"), "").unwrap();
    rig.finished().await;
    (place, rig)
}

fn check(place: &Place, what: &str, wanted: &[(&str, Option<&str>)]) {
    let found = files(place);
    for (path, text) in wanted {
        assert_eq!(found.get(*path).map(String::as_str), *text, "{what}: {path} in {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w19_an_undo_keeps_what_the_person_did_while_the_command_ran() {
    for (what, act, wanted) in WAYS {
        let (place, mut rig) = during(what, *act).await;
        let before = files(&place);
        let said = session_command(&mut rig, SessionCommand::UndoOp { redo: false }).await;
        check(&place, what, wanted);
        let kept = wanted.iter().any(|(path, text)| path.ends_with(".kept-1") && text.is_some());
        // Named once: it is no restored file.
        assert_eq!(said.matches("a.txt.kept-1").count(), usize::from(kept), "{what}: {said}");
        session_command(&mut rig, SessionCommand::UndoOp { redo: true }).await;
        assert_eq!(files(&place), before, "{what}: the redo");
        session_command(&mut rig, SessionCommand::UndoOp { redo: false }).await;
        let undone = files(&place);
        for (path, text) in *wanted {
            let beside = path.ends_with(".kept-1");
            assert!(beside || undone.get(*path).map(String::as_str) == *text, "{what}: {path}, again");
        }
        rig.quit().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w19_a_restore_keeps_and_names_what_the_person_did_while_the_command_ran() {
    for (what, act, wanted) in WAYS {
        let (place, mut rig) = during(what, *act).await;
        let (before, now) = (messages(&mut rig).await[0], files(&place));
        let shown = preview(&mut rig, before).await;
        for (path, text) in *wanted {
            let original = match *path {
                "a.txt" => Some("a\n"),
                "b.txt" => Some("b\n"),
                _ => None,
            };
            let named = shown.files.iter().any(|f| f.path == *path && f.conflict.is_some());
            let stays = *text != original && !path.ends_with(".kept-1");
            assert_eq!(named, stays, "{what}: {path}: {shown:?}");
        }
        let kept = wanted.iter().any(|(path, text)| path.ends_with(".kept-1") && text.is_some());
        assert_eq!(shown.notes.iter().any(|note| note.contains("a.txt")), kept, "{what}: {:?}", shown.notes);
        let said = session_command(&mut rig, back(before, RestoreWhat::Files)).await;
        check(&place, what, wanted);
        assert_eq!(said.contains("a.txt.kept-1"), kept, "{what}: {said}");
        session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
        assert_eq!(files(&place), now, "{what}: the undo of the restore");
        session_command(&mut rig, SessionCommand::UndoRestore { redo: true }).await;
        check(&place, what, wanted);
        rig.quit().await;
    }
}

/// The folder with copies that a sentence names.
fn folder(said: &str) -> std::path::PathBuf {
    let (_, after) =
        said.split_once("is kept for 30 days in ").unwrap_or_else(|| panic!("no folder: {said}"));
    after.split(';').next().unwrap().trim_end_matches('.').into()
}

/// Where no supervisor sees what a command changes, it may be the person's: the undo takes one key, leaves nothing beside the files,
/// and names the folder that holds what stood there, for one file as for many, however short the command was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w19_an_undo_of_a_command_that_nothing_saw_keeps_what_stood_there() {
    for count in [1, 60] {
        let what = format!("{count} files");
        let unconfined = |place: &Place| {
            let work = place.work.clone();
            move |parts: &mut EngineConfig| {
                parts.session.profile = Some(Profile::Full);
                parts.workspace = Workspace::new(&work).unwrap();
            }
        };
        let writes = |place: &Place| {
            place.file("a.txt", "mine, while it ran\n");
            (1..count).for_each(|n| place.file(&format!("new {n}.txt"), "by the command\n"));
        };
        let (place, mut rig) = during_confined(&what, unconfined, writes).await;
        let now = files(&place);
        let first = messages(&mut rig).await[0];
        let shown = preview(&mut rig, first).await;
        assert!(
            shown.notes.iter().any(|note| note.contains("Perhaps changed by you") && note.contains("a.txt"))
        );
        let said = session_command(&mut rig, SessionCommand::UndoOp { redo: false }).await;
        assert!(said.contains("a.txt"), "{what}: {said}");
        let kept = folder(&said);
        assert_eq!(std::fs::read_to_string(kept.join("a.txt")).unwrap(), "mine, while it ran\n", "{what}");
        for n in 1..count {
            let copy = std::fs::read_to_string(kept.join(format!("new {n}.txt"))).unwrap();
            assert_eq!(copy, "by the command\n", "{what}");
        }
        check(&place, &what, &[("a.txt", Some("a\n")), ("a.txt.kept-1", None), ("new 1.txt", None)]);
        session_command(&mut rig, SessionCommand::UndoOp { redo: true }).await;
        assert_eq!(files(&place), now, "{what}: the redo");
        let said = session_command(&mut rig, back(first, RestoreWhat::Files)).await;
        assert_eq!(std::fs::read_to_string(folder(&said).join("a.txt")).unwrap(), "mine, while it ran\n");
        rig.quit().await;
    }
}
