//! The diff review of a turn.

use serde_json::json;
use tiller_protocol::command::ReviewCommand;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::review::Reject;
use tiller_protocol::{CommandBody, NoticeKind};

use crate::rig::*;
use tiller_engine::Open;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hunk_is_taken_back_told_and_brought_back() {
    let place = Place::new();
    place.file("a.txt", "one\ntwo\nthree\n");
    let edit = json!({"path": "a.txt", "old": "two", "new": "TWO"});
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "read_file", read_args("a.txt"))]),
        1 => calls(&[("c1", "edit_file", edit.clone())]),
        _ => says("Edited."),
    });
    let mut rig = place.start(&fake).await;
    rig.turn("edit").await;
    assert_eq!(place.read("a.txt"), "one\nTWO\nthree\n", "{}", message_text(&fake.request(2), 4));
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!() };
    assert_eq!((review.files.len(), review.files[0].added, review.files[0].removed), (1, 1, 1));
    let hunks = vec![Reject { path: "a.txt".into(), hunk: review.files[0].diff.clone() }];
    rig.send(CommandBody::Review(ReviewCommand::Reject { turn: review.turn, hunks: hunks.clone() }));
    let ReplyEvent::RejectReply { rejected: 1, .. } = rig.reply().await else { panic!() };
    assert_eq!(place.read("a.txt"), "one\ntwo\nthree\n");
    rig.send(CommandBody::Review(ReviewCommand::Reject { turn: review.turn, hunks }));
    let ReplyEvent::RejectReply { rejected: 0, conflicts } = rig.reply().await else { panic!() };
    assert_eq!(conflicts.len(), 1, "a hunk that does not apply is never forced");
    rig.send(CommandBody::Review(ReviewCommand::UndoReject));
    let ReplyEvent::RejectReply { rejected: 1, .. } = rig.reply().await else { panic!() };
    assert_eq!(place.read("a.txt"), "one\nTWO\nthree\n");
    rig.turn("go on").await;
    let last = fake.request(fake.count() - 1);
    assert!(message_text(&last, last.messages.len() - 1).contains("reverted part of your change to a.txt"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_hunk_with_a_masked_secret_says_why_it_cannot_be_taken_back() {
    let place = Place::new();
    place.file("a.txt", "one\nkey = hunter2-hunter2\nthree\n");
    let edit = json!({"path": "a.txt", "old": "three", "new": "THREE"});
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "read_file", read_args("a.txt"))]),
        1 => calls(&[("c1", "edit_file", edit.clone())]),
        _ => says("Edited."),
    });
    let masks = |p: &mut tiller_engine::EngineConfig| {
        p.redaction.redact = std::sync::Arc::new(|t| t.replace("hunter2-hunter2", "[redacted secret]"));
    };
    let mut rig = place.start_with(&fake, masks).await;
    let session = rig.session();
    rig.turn("edit").await;
    rig.quit().await;
    // Another process has only what was stored.
    let mut rig = place
        .start_with(&fake, |p| {
            masks(p);
            p.session.open = Open::Session(session);
        })
        .await;
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!() };
    assert!(review.files[0].diff.contains("[redacted secret]"), "{review:?}");
    let hunks = vec![Reject { path: "a.txt".into(), hunk: review.files[0].diff.clone() }];
    rig.send(CommandBody::Review(ReviewCommand::Reject { turn: review.turn, hunks }));
    let ReplyEvent::RejectReply { rejected: 0, conflicts } = rig.reply().await else { panic!() };
    assert!(conflicts[0].why.contains("masked"), "{conflicts:?}");
    assert!(place.read("a.txt").contains("THREE"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejecting_what_the_record_masks_writes_no_mask() {
    let place = Place::new();
    place.file("a.txt", "one\nkey = hunter2-hunter2\nthree\n");
    place.file("d.txt", "key = hunter2-hunter2\n");
    let edit = json!({"path": "a.txt", "old": "key = hunter2-hunter2", "new": "key = env"});
    let patch = "*** Begin Patch\n*** Delete File: d.txt\n*** End Patch";
    let fake = Fake::with(move |n, _| match n {
        0 => calls(&[("c0", "read_file", read_args("a.txt")), ("c1", "read_file", read_args("d.txt"))]),
        1 => calls(&[("c2", "edit_file", edit.clone()), ("c3", "patch", json!({ "patch": patch }))]),
        _ => says("Edited."),
    });
    let masks = |p: &mut tiller_engine::EngineConfig| {
        p.redaction.redact = std::sync::Arc::new(|t| t.replace("hunter2-hunter2", "[redacted secret]"));
    };
    let mut rig = place.start_with(&fake, masks).await;
    let session = rig.session();
    rig.turn("edit").await;
    assert_eq!(place.read("a.txt"), "one\nkey = env\nthree\n");
    rig.quit().await;
    let mut rig = place
        .start_with(&fake, |p| {
            masks(p);
            p.session.open = Open::Session(session);
        })
        .await;
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!() };
    let hunks: Vec<Reject> =
        review.files.iter().map(|f| Reject { path: f.path.clone(), hunk: f.diff.clone() }).collect();
    assert_eq!(hunks.iter().filter(|h| h.hunk.contains("-key = [redacted secret]")).count(), 2, "{hunks:?}");
    rig.send(CommandBody::Review(ReviewCommand::Reject { turn: review.turn, hunks }));
    let ReplyEvent::RejectReply { rejected: 0, conflicts } = rig.reply().await else { panic!() };
    assert!(conflicts.iter().all(|c| c.why.contains("masked in the record")), "{conflicts:?}");
    assert_eq!(place.read("a.txt"), "one\nkey = env\nthree\n");
    assert!(!place.work.join("d.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_made_a_file_huge_is_reviewed_without_stopping_anything() {
    let place = Place::new();
    place.file("a.txt", "one\ntwo\n");
    let fake = Fake::new([
        calls(&[("c0", "read_file", read_args("a.txt"))]),
        calls(&[("c1", "edit_file", json!({"path": "a.txt", "old": "two", "new": "TWO"}))]),
        says("Edited."),
    ]);
    let mut rig = place.start(&fake).await;
    rig.turn("edit").await;
    std::fs::File::options().write(true).open(place.work.join("a.txt")).unwrap().set_len(8 << 30).unwrap();
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let notice = rig.notice("too large to compare").await;
    assert_eq!(notice.kind, NoticeKind::Info);
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!() };
    assert!(review.files[0].diff.contains("+TWO"), "as its call showed it: {review:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_file_that_is_no_text_comes_back_whole_and_goes_again() {
    let place = Place::new();
    let bytes = [0x89, b'P', b'N', b'G', 0, 1, 2, 0xff];
    std::fs::write(place.work.join("logo.png"), bytes).unwrap();
    place.file("b.txt", "theirs\n");
    let patch = "*** Begin Patch\n*** Delete File: logo.png\n*** End Patch";
    let fake = Fake::with(move |n, _| match n {
        // The result names the change that the model had not read.
        0 => calls(&[("c0", "patch", json!({ "patch": patch }))]),
        1 => calls(&[("c1", "patch", json!({ "patch": patch }))]),
        _ => says("Done."),
    });
    let mut rig = place.start_with(&fake, |p| crate::files::checkpoints::keeps(&place, p)).await;
    rig.turn("delete it").await;
    let file = place.work.join("logo.png");
    assert!(!file.exists(), "{}", message_text(&fake.request(2), 4));
    rig.send(CommandBody::Review(ReviewCommand::Open { turn: None }));
    let ReplyEvent::ReviewReply { review } = rig.reply().await else { panic!() };
    assert_eq!((review.files.len(), review.files[0].diff.as_str()), (1, ""));
    let whole = |path: &str| Reject { path: path.into(), hunk: String::new() };
    let reject = |hunks| CommandBody::Review(ReviewCommand::Reject { turn: review.turn, hunks });

    rig.send(reject(vec![whole("logo.png")]));
    let ReplyEvent::RejectReply { rejected: 1, conflicts } = rig.reply().await else { panic!() };
    assert!(conflicts.is_empty(), "{conflicts:?}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    rig.send(CommandBody::Review(ReviewCommand::UndoReject));
    let ReplyEvent::DoneReply { .. } = rig.reply().await else { panic!() };
    assert!(!file.exists(), "as the agent left it");
    // Only once: earlier operations are not undone by accident.
    rig.send(CommandBody::Review(ReviewCommand::UndoReject));
    let ReplyEvent::ErrorReply { notice } = rig.reply().await else { panic!() };
    assert!(notice.message.contains("nothing was rejected"), "{notice:?}");

    // Later changes of the user's are not overwritten.
    std::fs::write(&file, b"\x00mine").unwrap();
    rig.send(reject(vec![whole("logo.png")]));
    let ReplyEvent::RejectReply { rejected: 0, conflicts } = rig.reply().await else { panic!() };
    assert_eq!(conflicts[0].path, "logo.png", "{conflicts:?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"\x00mine");
    assert_eq!(place.read("b.txt"), "theirs\n");

    rig.turn("go on").await;
    let last = fake.request(fake.count() - 1);
    let told = message_text(&last, last.messages.len() - 1);
    assert!(told.contains("reverted your change to these files: logo.png"), "{told}");
}
