//! Calls whose files could not be kept: nothing runs without the user's knowledge that it cannot be undone.

use std::sync::Arc;

use serde_json::json;
use tiller_protocol::event::{EventBody, TurnEvent, TurnStatus};
use tiller_protocol::{AskBody, AskReply, Decision, Event, RestoreWhat};

use crate::files::checkpoints::{back, keeps, messages, preview, session_command};
use crate::rig::*;
use crate::turns::questions::permission;
use tiller_engine::EngineConfig;
use tiller_engine::Human;
use tiller_engine::files::{Keeper, SnapshotOptions};

fn model() -> std::sync::Arc<Fake> {
    Fake::with(|n, _| match n {
        0 => calls(&[("c0", "write_file", json!({"path": "a.txt", "content": "one\n"}))]),
        1 => calls(&[("c1", "terminal", json!({"command": "printf two > b.txt"}))]),
        _ => says("Done."),
    })
}

/// A file in place of the store's folder, so that it cannot be made.
pub(crate) fn cannot_keep(place: &Place, parts: &mut EngineConfig, ask: bool) {
    let file = parts.environment.places.data.join("snapshots");
    std::fs::create_dir_all(&parts.environment.places.data).unwrap();
    std::fs::write(&file, "in the way").unwrap();
    let at = SnapshotOptions {
        workspace: place.work.clone(),
        store: file.join("work"),
        limits: tiller_snapshot::Limits::default(),
        quota: 1 << 30,
        ask,
    };
    parts.files.snapshots = Some(Keeper::new(at, std::sync::Arc::clone(&parts.environment.clock)));
}

fn question(ask: &tiller_protocol::Ask) -> &tiller_protocol::ask::PermissionAsk {
    match &ask.body {
        AskBody::Permission(p) => p,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_cannot_be_undone_is_asked_about_in_full_too() {
    let place = Place::new();
    let mut rig = place.start_with(&model(), |p| cannot_keep(&place, p, true)).await;
    rig.submit("write them");
    let ask = rig.asked().await;
    let p = question(&ask).clone();
    assert!(p.effects.iter().any(|e| e.contains("cannot be undone")), "{p:?}");
    assert!(
        p.rule.text().contains("no snapshot could be taken") && !p.editable && p.always.is_none(),
        "{p:?}"
    );
    assert_eq!(p.risk, tiller_protocol::ask::Risk::High);
    assert!(!place.work.join("a.txt").exists());
    let deny = Decision::Deny { comment: None };
    rig.answer(&ask, AskReply::Permission { decision: deny, hash: p.hash });
    assert!(rig.tool_finished().await.1.contains("The user denied this call"));
    // The command, too; and with a yes it runs.
    let ask = rig.asked().await;
    let p = question(&ask).clone();
    assert_eq!(p.shown, "printf two > b.txt");
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert!(!place.work.join("a.txt").exists());
    assert_eq!(place.read("b.txt"), "two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setting_lets_it_run_and_a_notice_says_what_that_means() {
    let place = Place::new();
    let mut rig = place.start_with(&model(), |p| cannot_keep(&place, p, false)).await;
    rig.submit("write them");
    let notice = rig.notice("cannot be undone").await;
    assert_ne!(notice.kind, tiller_protocol::NoticeKind::Store, "plain runs pass over that kind");
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!((place.read("a.txt").as_str(), place.read("b.txt").as_str()), ("one\n", "two"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_can_answer_it_does_not_run() {
    let place = Place::new();
    let start = |p: &mut EngineConfig| {
        cannot_keep(&place, p, true);
        p.user.human = Human::Absent;
    };
    let mut rig = place.start_with(&model(), start).await;
    rig.submit("write them");
    let (_, output) = rig.tool_finished().await;
    assert!(
        output.contains("no one is available") && output.contains("no snapshot could be taken"),
        "{output}"
    );
    rig.finished().await;
    assert!(!place.work.join("a.txt").exists() && !place.work.join("b.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_full_counts_as_not_kept() {
    let place = Place::new();
    let mut keeper = None;
    let mut rig = place
        .start_with(&model(), |p| {
            keeps(&place, p);
            keeper = p.files.snapshots.clone();
        })
        .await;
    let keeper = keeper.unwrap();
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let (begins, begun) = tokio::sync::oneshot::channel();
    let busy = keeper.submit(move |_| {
        let _ = begins.send(());
        let _ = gate.recv();
        Ok(())
    });
    // The thread is busy with it, so no slot becomes free while the others wait.
    begun.await.unwrap();
    let waiting: Vec<_> = (0..400).map(|_| keeper.submit(|_| Ok(()))).collect();
    rig.submit("write them");
    let ask = rig.asked().await;
    let p = question(&ask).clone();
    assert!(p.rule.text().contains("too many changes are waiting"), "{p:?}");
    drop(open);
    busy.await.unwrap().unwrap();
    let mut refused = 0;
    for one in waiting {
        refused += usize::from(one.await.unwrap().is_err());
    }
    assert!(refused > 0);
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash: p.hash });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(place.read("b.txt"), "two");
}

/// No checkpoint covers a file outside of the workspace: a copy of it is kept before a tool writes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_content_of_a_file_outside_of_the_workspace_is_kept() {
    let place = Place::new();
    let outside = place.tmp.path().canonicalize().unwrap().join("notes.txt");
    std::fs::write(&outside, "the person's own").unwrap();
    let path = outside.to_str().unwrap().to_owned();
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "read_file", json!({"path": path}))]),
        1 => calls(&[("c1", "write_file", json!({"path": path, "content": "the model's"}))]),
        _ => says("Done."),
    });
    let full = |p: &mut EngineConfig| {
        keeps(&place, p);
        p.session.profile = Some(tiller_protocol::Profile::Full);
    };
    let mut rig = place.start_with(&fake, full).await;
    rig.submit("write it");
    let ask = rig.asked().await;
    let hash = permission(&ask).hash;
    rig.answer(&ask, AskReply::Permission { decision: Decision::Once, hash });
    assert_eq!(rig.finished().await.0, TurnStatus::Done);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "the model's");
    let result = format!("{:?}", fake.request(2));
    assert!(result.contains("previous content is kept"), "{result}");
    let kept = place.home().join("data/snapshots/work/outside");
    let call = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(call.join("0/notes.txt")).unwrap(), "the person's own");
    rig.quit().await;
}

/// The only copy that is kept of a file with this name outside of the states.
fn copy_of(place: &Place, name: &str) -> Option<String> {
    let calls = std::fs::read_dir(place.home().join("data/snapshots/work/outside")).ok()?;
    let copies: Vec<_> = calls.map(|call| call.unwrap().path().join("0").join(name)).collect();
    let [copy] = copies.as_slice() else { panic!("{copies:?}") };
    std::fs::read_to_string(copy).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_content_of_a_file_that_no_state_covers_is_kept() {
    let place = Place::new();
    for folder in ["bare/objects", "bare/refs"] {
        std::fs::create_dir_all(place.work.join(folder)).unwrap();
    }
    place.file("bare/HEAD", "ref: refs/heads/main\n");
    place.file("bare/notes", "the person's own\n");
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "read_file", json!({"path": "bare/notes"}))]),
        1 => calls(&[("c1", "write_file", json!({"path": "bare/notes", "content": "the model's\n"}))]),
        2 => calls(&[("c2", "write_file", json!({"path": "plain.txt", "content": "new\n"}))]),
        3 => calls(&[("c3", "write_file", json!({"path": "plain.txt", "content": "newer\n"}))]),
        _ => says("Done."),
    });
    let full = |p: &mut EngineConfig| {
        keeps(&place, p);
        p.session.profile = Some(tiller_protocol::Profile::Full);
    };
    let mut rig = place.start_with(&fake, full).await;
    assert_eq!(rig.turn("write it").await.0, TurnStatus::Done);
    assert_eq!(place.read("bare/notes"), "the model's\n");
    assert_eq!(place.read("plain.txt"), "newer\n");
    let said = format!("{:?}", fake.request(2));
    assert!(said.contains("bare/notes is not covered by checkpoints"), "{said}");
    // A file that a state covers needs no copy.
    assert_eq!(copy_of(&place, "notes").as_deref(), Some("the person's own\n"));
    rig.quit().await;
}

/// A command that overwrites files of which no content is kept is followed by a notice with their names; a small file that
/// git ignores comes back like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_overwrites_comes_back_or_is_named() {
    let place = Place::new();
    place.file(".gitignore", ".env\n*.bin\n*.log\n");
    place.file(".env", "KEY=mine\n");
    place.file("dev.log", "started\n");
    place.file("data.bin", &"0".repeat(300 << 10));
    let command = "echo x > .env; echo x > data.bin; echo more >> dev.log";
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "terminal", json!({ "command": command }))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| keeps(&place, p)).await;
    rig.submit("overwrite them");
    let notice = rig.notice("undo cannot restore them").await;
    assert!(notice.message.ends_with(": data.bin (ignored by git)"), "{}", notice.message);
    let is_end = |e: &Arc<Event>| matches!(e.body, EventBody::Turn(TurnEvent::TurnFinished { .. }));
    if !rig.seen.iter().any(is_end) {
        rig.finished().await;
    }
    let message = messages(&mut rig).await[0];
    let shown = preview(&mut rig, message).await;
    let files: Vec<&str> = shown.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(files, [".env"]);
    for path in ["data.bin", "dev.log"] {
        assert!(shown.left.iter().any(|l| l.starts_with(&format!("{path}: "))), "{path}: {:?}", shown.left);
    }
    let told = session_command(&mut rig, back(message, RestoreWhat::Files)).await;
    assert!(told.starts_with(".env was restored") && told.contains("data.bin"), "{told}");
    assert_eq!(place.read(".env"), "KEY=mine\n");
}
