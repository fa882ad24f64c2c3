//! States of files: kept at each message and around each call, shown, restored, undone.

use serde_json::json;
use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{ChangeKind, CommandBody, EntryBody, EntryId, EventBody, RestorePreview, RestoreWhat};
use tiller_store::{Options, StepOf, Store};

use crate::rig::*;
use tiller_engine::Open;
use tiller_engine::files::{Keeper, SnapshotOptions};

pub(crate) fn keeps(place: &Place, parts: &mut tiller_engine::EngineConfig) {
    let at = SnapshotOptions {
        workspace: place.work.clone(),
        store: parts.environment.places.data.join("snapshots/work"),
        limits: tiller_snapshot::Limits::default(),
        quota: 1 << 30,
        ask: true,
    };
    parts.files.snapshots = Some(Keeper::new(at, std::sync::Arc::clone(&parts.environment.clock)));
}

/// A file written, then one edited and one made by the shell, in two turns.
pub(crate) fn model() -> std::sync::Arc<Fake> {
    Fake::with(|n, _| match n {
        0 => calls(&[("c0", "write_file", json!({"path": "a.txt", "content": "one\n"}))]),
        1 => says("Written."),
        2 => calls(&[(
            "c1",
            "terminal",
            json!({"command": "printf two > b.txt; printf 'one\\nmore\\n' > a.txt"}),
        )]),
        _ => says("Done."),
    })
}

pub(crate) async fn messages(rig: &mut Rig) -> Vec<EntryId> {
    let entries = rig.snapshot().await.entries;
    entries.iter().filter(|e| matches!(e.body, EntryBody::User { .. })).map(|e| e.id).collect()
}

pub(crate) async fn preview(rig: &mut Rig, entry: EntryId) -> RestorePreview {
    match rig.query(Query::RestorePreview { entry }).await {
        ReplyEvent::RestorePreviewReply { preview, .. } => preview,
        other => panic!("{other:?}"),
    }
}

/// Waits until the state behind all that was done is kept. What another changes on disk before that counts for the call.
pub(crate) async fn kept(rig: &mut Rig) {
    let first = messages(rig).await[0];
    preview(rig, first).await;
}

pub(crate) async fn session_command(rig: &mut Rig, command: SessionCommand) -> String {
    rig.send(CommandBody::Session(command));
    match rig.reply().await {
        ReplyEvent::DoneReply { said } => said,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn back(entry: EntryId, what: RestoreWhat) -> SessionCommand {
    SessionCommand::Restore { entry, what, keep: Vec::new(), force: Vec::new(), parts: Vec::new() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_talk_go_back_and_one_command_undoes_it() {
    let place = Place::new();
    place.file("mine.txt", "before\n");
    let mut rig = place.start_with(&model(), |p| keeps(&place, p)).await;
    rig.turn("write it").await;
    rig.turn("more").await;
    let said = messages(&mut rig).await;
    let shown = preview(&mut rig, said[1]).await;
    let files: Vec<_> = shown.files.iter().map(|f| (f.path.as_str(), f.kind, f.conflict.is_some())).collect();
    assert_eq!(files, [("a.txt", ChangeKind::Modified, false), ("b.txt", ChangeKind::Deleted, false)]);
    assert!(shown.files[0].diff.contains("-more"), "{}", shown.files[0].diff);
    assert_eq!(shown.title, "more");
    let told = session_command(&mut rig, back(said[1], RestoreWhat::Both)).await;
    assert!(told.starts_with("2 files were restored; you may have changed "), "{told}");
    let draft = rig
        .until("the head moves", |e| match e {
            EventBody::State(StateEvent::HeadMoved { draft, .. }) => Some(draft.clone()),
            _ => None,
        })
        .await;
    assert_eq!(draft.unwrap().text, "more", "the message is there to be written anew");
    assert_eq!((place.read("a.txt").as_str(), place.read("mine.txt").as_str()), ("one\n", "before\n"));
    assert!(!place.work.join("b.txt").exists());
    assert_eq!(messages(&mut rig).await, said[..1]);
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    assert_eq!((place.read("a.txt").as_str(), place.read("b.txt").as_str()), ("one\nmore\n", "two"));
    session_command(&mut rig, SessionCommand::UndoRestore { redo: true }).await;
    assert_eq!(place.read("a.txt"), "one\n");
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    assert_eq!(place.read("b.txt"), "two");
    rig.send(CommandBody::Session(SessionCommand::UndoRestore { redo: false }));
    assert!(rig.refused().await.message.contains("no restore of files to undo"), "undo does not undo itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_person_changed_since_stays_unless_it_is_asked_for() {
    let place = Place::new();
    place.file("a.txt", "zero\n");
    let mut rig = place.start_with(&model(), |p| keeps(&place, p)).await;
    rig.turn("write it").await;
    rig.turn("more").await;
    let said = messages(&mut rig).await;
    kept(&mut rig).await;
    place.file("a.txt", "mine\n");
    place.file("new.txt", "mine too\n");
    let shown = preview(&mut rig, said[0]).await;
    let conflict = |path: &str| shown.files.iter().find(|f| f.path == path).unwrap().conflict.is_some();
    assert!(conflict("a.txt") && conflict("new.txt") && !conflict("b.txt"), "{shown:?}");
    let told = session_command(&mut rig, back(said[0], RestoreWhat::Files)).await;
    assert!(
        told.contains("b.txt was restored")
            && told.contains("a.txt (you or another program changed it since)"),
        "{told}"
    );
    assert_eq!((place.read("a.txt").as_str(), place.read("new.txt").as_str()), ("mine\n", "mine too\n"));
    let force = SessionCommand::Restore {
        entry: said[0],
        what: RestoreWhat::Files,
        keep: Vec::new(),
        force: vec!["a.txt".into()],
        parts: Vec::new(),
    };
    session_command(&mut rig, force).await;
    assert_eq!((place.read("a.txt").as_str(), place.read("new.txt").as_str()), ("zero\n", "mine too\n"));
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    assert_eq!(place.read("a.txt"), "mine\n", "what was replaced had been kept");
    assert_eq!(messages(&mut rig).await.len(), 2, "the conversation stayed");
}

/// The hunks of a unified difference, one by one.
fn hunks_of(diff: &str) -> Vec<String> {
    let mut hunks: Vec<String> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@ ") {
            hunks.push(String::new());
        }
        if let Some(hunk) = hunks.last_mut() {
            hunk.push_str(line);
        }
    }
    hunks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_hunks_of_a_file_go_back_and_undo_brings_back_exactly_what_was() {
    let twenty = |second: &str, last: &str| -> String {
        let line = |n: usize| match n {
            2 => second.to_owned(),
            19 => last.to_owned(),
            n => n.to_string(),
        };
        (1..=20).map(|n| line(n) + "\n").collect()
    };
    let place = Place::new();
    place.file("a.txt", &twenty("2", "19"));
    let edit = "sed -i 's/^2$/two/; s/^19$/nineteen/' a.txt; echo new > b.txt";
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", json!({"command": edit}))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.turn("edit it").await;
    let said = messages(&mut rig).await;
    let shown = preview(&mut rig, said[0]).await;
    let hunks = hunks_of(&shown.files[0].diff);
    assert_eq!((shown.files[0].path.as_str(), hunks.len()), ("a.txt", 2), "{shown:?}");
    let take = |hunk: &str| SessionCommand::Restore {
        entry: said[0],
        what: RestoreWhat::Files,
        keep: vec!["b.txt".into()],
        force: Vec::new(),
        parts: vec![tiller_protocol::compare::TakePart { path: "a.txt".into(), hunk: Some(hunk.into()) }],
    };
    let told = session_command(&mut rig, take(&hunks[1])).await;
    assert!(told.starts_with("a.txt was partly restored"), "{told}");
    assert_eq!(place.read("a.txt"), twenty("two", "19"), "the other hunk stays as it is now");
    let ReplyEvent::OpsReply { ops, .. } = rig.query(Query::Ops { limit: 5 }).await else { panic!() };
    let tiller_protocol::op::OpChange::Files { files, .. } = &ops[0].change else { panic!("{ops:?}") };
    assert!(files.len() == 1 && files[0].partly, "its row says so: {files:?}");
    // The same hunk does not match again; nothing is guessed.
    let told = session_command(&mut rig, take(&hunks[1])).await;
    assert!(told.contains("it was changed in the meantime"), "{told}");
    assert_eq!(place.read("a.txt"), twenty("two", "19"));
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    assert_eq!(place.read("a.txt"), twenty("two", "nineteen"));
    session_command(&mut rig, SessionCommand::UndoRestore { redo: true }).await;
    assert_eq!(place.read("a.txt"), twenty("two", "19"));
    // A hunk of a file that the user changed: other changes of the user's in it stay.
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    place.file("a.txt", &twenty("two", "nineteen").replace("10\n", "ten\n"));
    let shown = preview(&mut rig, said[0]).await;
    assert!(shown.files[0].conflict.is_some());
    let hunks = hunks_of(&shown.files[0].diff);
    session_command(&mut rig, take(hunks.last().unwrap())).await;
    assert_eq!(place.read("a.txt"), twenty("two", "19").replace("10\n", "ten\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn points_and_steps_outlive_the_engine() {
    let place = Place::new();
    let fake = model();
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    let session = rig.session();
    rig.turn("write it").await;
    let told = session_command(&mut rig, SessionCommand::Checkpoint { name: "written".into() }).await;
    assert!(told.contains("written"));
    rig.turn("more").await;
    rig.quit().await;
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let rows = store.steps().list(session, 0).unwrap();
    let calls: Vec<_> = rows.iter().filter(|r| matches!(r.of, StepOf::Call(_))).collect();
    assert_eq!((rows.len(), calls.len()), (5, 2), "two messages, a checkpoint, two calls: {rows:?}");
    let names = |n: usize| calls[n].files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec!["a.txt"], vec!["a.txt", "b.txt"]));
    drop(store);
    let mut rig = place
        .start_with(&fake, |p| {
            keeps(&place, p);
            p.session.open = Open::Session(session);
        })
        .await;
    let entries = rig.snapshot().await.entries;
    let named =
        entries.iter().find(|e| matches!(&e.body, EntryBody::Checkpoint { name } if name == "written"));
    session_command(&mut rig, back(named.unwrap().id, RestoreWhat::Files)).await;
    assert_eq!(place.read("a.txt"), "one\n");
    assert!(!place.work.join("b.txt").exists());
}

/// Servers that number their calls from one give the same id on two branches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_id_of_a_call_on_two_branches_means_two_states() {
    let place = Place::new();
    let fake = Fake::with(|n, _| match n {
        0 => calls(&[("c0", "write_file", json!({"path": "a.txt", "content": "one\n"}))]),
        2 => calls(&[("c0", "write_file", json!({"path": "b.txt", "content": "two\n"}))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    let session = rig.session();
    rig.turn("a").await;
    let first = messages(&mut rig).await[0];
    let tip = rig.snapshot().await.entries.last().unwrap().id;
    rig.send(CommandBody::Session(SessionCommand::Fork { entry: first }));
    rig.until("the branch", |e| matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(()))
        .await;
    rig.turn("b").await;
    let now = messages(&mut rig).await[0];
    preview(&mut rig, now).await;
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let (left, right) = (
        tiller_engine::files::restore::back::point(&store, session, tip).unwrap().unwrap(),
        tiller_engine::files::restore::back::point(
            &store,
            session,
            rig.snapshot().await.entries.last().unwrap().id,
        )
        .unwrap()
        .unwrap(),
    );
    assert_ne!(left.snapshot, right.snapshot);
    rig.quit().await;
}

/// Rows of changes by others: the files, and their authors.
fn others(rows: &[tiller_store::StepRow]) -> Vec<(String, tiller_protocol::restore::By)> {
    let of = |r: &&tiller_store::StepRow| {
        matches!(r.of, StepOf::OthersBefore(_) | StepOf::OthersBeforeCall(_) | StepOf::OthersBeforeRestore(_))
    };
    let files = rows.iter().filter(of).flat_map(|r| r.files.clone());
    files.map(|f| (f.path, f.by.unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_names_a_moment_and_goes_back_to_it_after_a_yes() {
    let place = Place::new();
    place.file("a.txt", "zero\n");
    let fake = Fake::with(|n, _| match n {
        // In one reply: changes after the checkpoint are not part of it.
        0 => calls(&[
            ("c0", "checkpoint", json!({"name": "before the rewrite"})),
            ("c1", "terminal", json!({"command": "printf 'one\\n' > a.txt; printf new > b.txt"})),
        ]),
        1 => calls(&[("c2", "restore", json!({"name": "nothing like it"}))]),
        2 => calls(&[("c3", "restore", json!({"name": "before the rewrite"}))]),
        3 => calls(&[("c4", "restore", json!({"name": "before the rewrite"}))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.submit("try it");
    let ask = rig.asked().await;
    place.file("mine.txt", "by hand\n");
    assert_eq!(place.read("a.txt"), "one\n", "nothing happens before the yes");
    let tiller_protocol::AskBody::Clarify { question, .. } = &ask.body else { panic!("{ask:?}") };
    assert!(question.contains("D b.txt") && question.contains("M a.txt"), "{question}");
    rig.answer(&ask, tiller_protocol::AskReply::Choice { answers: vec!["restore them".into()] });
    rig.finished().await;
    assert_eq!((place.read("a.txt").as_str(), place.read("mine.txt").as_str()), ("zero\n", "by hand\n"));
    assert!(!place.work.join("b.txt").exists());
    let results = |n: usize| message_text(&fake.request(n), fake.request(n).messages.len() - 1);
    assert!(results(2).contains("available: before the rewrite"), "{}", results(2));
    assert!(results(3).contains("2 files were restored"), "{}", results(3));
    assert!(results(4).contains("nothing to do"), "{}", results(4));
    let kinds = shape(&rig.snapshot().await.entries);
    assert!(kinds.iter().any(|k| k.contains("checkpoint before the rewrite")), "{kinds:?}");
    // The call lists its changes, and it is a restore like any other.
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let rows = store.steps().list(rig.session(), 0).unwrap();
    let of = |call: &str| rows.iter().find(|r| r.of == StepOf::Call(call.into())).map(|r| r.files.len());
    assert_eq!((of("c3"), of("c4")), (Some(2), None), "{rows:?}");
    drop(store);
    session_command(&mut rig, SessionCommand::UndoRestore { redo: false }).await;
    assert_eq!(place.read("b.txt"), "new");
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_changed_in_between_is_known_with_its_author() {
    use tiller_protocol::restore::By;
    let place = Place::new();
    let fake = Fake::with(|n, _| match n {
        0 => calls(&[("c0", "write_file", json!({"path": "a.txt", "content": "one\n"}))]),
        2 => calls(&[("c2", "terminal", json!({"command": "sleep 300", "background": true}))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    let session = rig.session();
    rig.turn("write it").await;
    kept(&mut rig).await;
    place.file("by-hand.txt", "mine\n");
    rig.turn("start something").await;
    kept(&mut rig).await;
    place.file("built.txt", "by whom?\n");
    rig.turn("and now").await;
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let wanted = [
        ("by-hand.txt".to_owned(), By::Outside),
        ("built.txt".to_owned(), By::Background { commands: "p1: sleep 300".into() }),
    ];
    let until = std::time::Instant::now() + std::time::Duration::from_secs(90);
    while others(&store.steps().list(session, 0).unwrap()) != wanted && std::time::Instant::now() < until {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let rows = store.steps().list(session, 0).unwrap();
    assert_eq!(others(&rows), wanted, "{rows:?}");
    let said = messages(&mut rig).await;
    let before: Vec<_> = rows
        .iter()
        .filter_map(|r| match r.of {
            StepOf::OthersBefore(entry) => Some(entry),
            _ => None,
        })
        .collect();
    assert_eq!(before, said[1..], "each stands before the message that came next");
    // A browser of the tree says so.
    let query = tiller_protocol::tree::TreeQuery::Preview { entry: said[1] };
    let ReplyEvent::TreeReply { reply: tiller_protocol::tree::TreeReply::Preview { preview } } =
        rig.query(Query::Tree { query }).await
    else {
        panic!()
    };
    assert_eq!(preview.notes, ["changed by you or another program before it: by-hand.txt"]);
    rig.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_session_of_the_folder_is_told_apart_from_the_person() {
    use tiller_protocol::restore::By;
    let place = Place::new();
    let quiet = Fake::with(|_, _| says("Seen."));
    let mut first = place.start_with(&quiet, |p| keeps(&place, p)).await;
    let session = first.session();
    first.turn("look").await;
    first.quit().await;
    let writer = Fake::with(|n, _| match n {
        0 => calls(&[("c0", "write_file", json!({"path": "theirs.txt", "content": "one\n"}))]),
        _ => says("Done."),
    });
    let mut second = place.start_with(&writer, |p| keeps(&place, p)).await;
    let theirs = second.session();
    second.turn("write it").await;
    second.quit().await;
    place.file("mine.txt", "by hand\n");
    let mut first = place
        .start_with(&quiet, |p| {
            keeps(&place, p);
            p.session.open = Open::Session(session);
        })
        .await;
    first.turn("and now?").await;
    first.quit().await;
    let store = Store::open(&place.db(), Options::default()).unwrap();
    let found = others(&store.steps().list(session, 0).unwrap());
    let by = |path: &str| found.iter().find(|f| f.0 == path).map(|f| f.1.clone());
    assert_eq!(by("mine.txt"), Some(By::Outside));
    assert!(matches!(by("theirs.txt"), Some(By::Session { session, .. }) if session == theirs), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_snapshots_only_the_conversation_goes_back() {
    let place = Place::new();
    let mut rig = place.start(&model()).await;
    rig.turn("write it").await;
    let said = messages(&mut rig).await;
    let shown = preview(&mut rig, said[0]).await;
    assert!(shown.time.is_none() && shown.notes[0].contains("there is no snapshot"), "{shown:?}");
    rig.send(CommandBody::Session(back(said[0], RestoreWhat::Files)));
    assert!(rig.refused().await.message.contains("no snapshots are kept"));
    rig.send(CommandBody::Session(back(said[0], RestoreWhat::Talk)));
    rig.until("the head moves", |e| {
        matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(())
    })
    .await;
    assert_eq!(place.read("a.txt"), "one\n");
}
