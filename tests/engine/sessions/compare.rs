//! Comparing two branches: messages, cost, files, a command on both, and files taken from one to the other.

use serde_json::json;
use tiller_protocol::command::{CompareCommand, Query, SessionCommand};
use tiller_protocol::compare::{Comparison, Pair, Side, TakeConflict, TakePart};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{ChangeKind, CommandBody, EventBody, RestoreWhat};

use crate::files::checkpoints::{back, keeps, messages, session_command};
use crate::rig::*;
use crate::sessions::branches::{branches, session};

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

fn writes(path: &str, text: &str) -> Vec<Step> {
    calls(&[("c", "write_file", json!({"path": path, "content": text}))])
}

/// Approach A and B to the same thing, from the same place. The head of A is `main`; B is open.
async fn two_ways(place: &Place) -> (Rig, String) {
    place.file("shared.txt", TEN);
    let fake = Fake::new([
        says("Looking."),
        writes("a.txt", "way a\n"),
        calls(&[("c2", "terminal", json!({"command": "sed -i s/9/nine/ shared.txt"}))]),
        says("Done as A."),
        writes("b.txt", "way b\n"),
        calls(&[("c4", "terminal", json!({"command": "sed -i s/2/two/ shared.txt"}))]),
        says("Done as B."),
        says("Thanks."),
    ]);
    let mut rig = place.start_with(&fake, |p| keeps(place, p)).await;
    rig.turn("look at it").await;
    rig.turn("do it as A").await;
    let said = messages(&mut rig).await;
    session_command(&mut rig, back(said[1], RestoreWhat::Both)).await;
    let moved = |e: &EventBody| matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(());
    rig.until("the branch", moved).await;
    assert_eq!(place.read("shared.txt"), TEN);
    rig.turn("do it as B").await;
    let b = rig.snapshot().await.branch.head;
    (rig, b)
}

fn pair(left: &str, right: &str) -> Pair {
    Pair { left: Side::Branch(left.into()), right: Side::Branch(right.into()) }
}

async fn compare(rig: &mut Rig, pair: Pair) -> Comparison {
    match rig.query(Query::Compare { pair }).await {
        ReplyEvent::CompareReply { compared, .. } => *compared,
        other => panic!("{other:?}"),
    }
}

async fn take(rig: &mut Rig, pair: Pair, parts: Vec<TakePart>) -> (String, Vec<TakeConflict>) {
    rig.send(CommandBody::Compare(CompareCommand::Take { pair, parts }));
    match rig.reply().await {
        ReplyEvent::TakeReply { said, conflicts } => (said, conflicts),
        other => panic!("{other:?}"),
    }
}

fn whole(path: &str) -> TakePart {
    TakePart { path: path.into(), hunk: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_cost_and_files_of_both_since_they_parted() {
    let place = Place::new();
    let (mut rig, b) = two_ways(&place).await;
    let got = compare(&mut rig, pair(&b, "main")).await;
    assert_eq!(got.base_line, "Looking.");
    let words = |side: &tiller_protocol::compare::ComparedSide| {
        side.said
            .iter()
            .map(|s| format!("{}: {}", s.who, s.text.lines().next().unwrap_or("")))
            .collect::<Vec<_>>()
    };
    let (left, right) = (words(&got.left), words(&got.right));
    assert_eq!((left[0].as_str(), left.last().unwrap().as_str()), ("you: do it as B", "agent: Done as B."));
    assert_eq!((right[0].as_str(), right.last().unwrap().as_str()), ("you: do it as A", "agent: Done as A."));
    assert!(got.left.usage.output > 0 && got.right.usage.output > 0, "{got:?}");
    let files: Vec<_> = got.files.iter().map(|f| (f.path.as_str(), f.kind)).collect();
    let is =
        [("a.txt", ChangeKind::Added), ("b.txt", ChangeKind::Deleted), ("shared.txt", ChangeKind::Modified)];
    assert_eq!(files, is);
    assert!(
        got.files[2].diff.contains("-two") && got.files[2].diff.contains("+nine"),
        "{}",
        got.files[2].diff
    );
    let changed = |s: &tiller_protocol::compare::ComparedSide| {
        s.files.iter().map(|f| f.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(changed(&got.left), ["b.txt", "shared.txt"]);
    assert_eq!(changed(&got.right), ["a.txt", "shared.txt"]);
    // Any two entries.
    let entries = rig.snapshot().await.entries;
    let (first, last) = (entries[1].id, entries.last().unwrap().id);
    let got = compare(&mut rig, Pair { left: Side::Entry(first), right: Side::Entry(last) }).await;
    assert_eq!((got.base, got.left.entries), (Some(first), 0));
    assert_eq!(got.files.len(), 2);
    rig.send(CommandBody::Query(Query::Compare { pair: pair("main", "nowhere") }));
    assert!(rig.refused().await.message.contains("no branch nowhere"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_the_other_branch_are_merged_in_and_one_undo_takes_them_back() {
    let place = Place::new();
    let (mut rig, b) = two_ways(&place).await;
    let mine = TEN.replace("2\n", "two\n");
    let parts = vec![whole("a.txt"), whole("shared.txt")];
    let (said, not) = take(&mut rig, pair(&b, "main"), parts).await;
    assert_eq!((said.as_str(), not), ("Taken from main: 2 files", vec![]));
    assert_eq!(place.read("a.txt"), "way a\n");
    assert_eq!(place.read("shared.txt"), mine.replace("9\n", "nine\n"), "both changes are in it");
    let undone = session_command(&mut rig, SessionCommand::UndoOp { redo: false }).await;
    assert!(undone.starts_with("Undone: take files from main"), "{undone}");
    assert_eq!(place.read("shared.txt"), mine);
    assert!(!place.work.join("a.txt").exists());
    session_command(&mut rig, SessionCommand::UndoOp { redo: true }).await;
    assert_eq!(place.read("a.txt"), "way a\n");
    // The agent is notified, and later changes of the user's are not overwritten.
    session_command(&mut rig, SessionCommand::UndoOp { redo: false }).await;
    place.file("shared.txt", &mine.replace("9\n", "my own\n"));
    let (said, not) = take(&mut rig, pair(&b, "main"), vec![whole("shared.txt")]).await;
    assert!(said.contains("Nothing was taken") && said.contains("the same lines"), "{said}");
    assert!(not[0].marked.contains("my own") && not[0].marked.contains("nine"), "{not:?}");
    assert_eq!(place.read("shared.txt"), mine.replace("9\n", "my own\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_runs_on_the_files_of_each_side_and_leaves_nothing() {
    let place = Place::new();
    let (mut rig, b) = two_ways(&place).await;
    let line = "cat a.txt b.txt 2>/dev/null; grep -c nine shared.txt; echo more > made.txt; test -f b.txt";
    let run = CompareCommand::Run { pair: pair(&b, "main"), line: line.into() };
    rig.send(CommandBody::Compare(run));
    let ReplyEvent::CompareRunReply { left, right, .. } = rig.reply().await else { panic!() };
    assert_eq!((left.exit, right.exit), (Some(0), Some(1)), "{left:?} {right:?}");
    assert!(left.tail.contains("way b\n0"), "{left:?}");
    assert!(right.tail.contains("way a\n1"), "{right:?}");
    assert_eq!((left.name.as_str(), right.name.as_str()), (b.as_str(), "main"));
    assert!(!place.work.join("made.txt").exists());
    let cache = place.tmp.path().join("home/cache/compare");
    assert_eq!(std::fs::read_dir(cache).unwrap().count(), 0, "the folders went again");
    // The tree is as it was.
    assert_eq!(branches(&mut rig).await.0.len(), 2);
    session(&mut rig, SessionCommand::OpenBranch { head: "main".into() });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_of_another_session_is_named_and_compared_without_opening_it() {
    let place = Place::new();
    let (mut rig, b) = two_ways(&place).await;
    let first = rig.session();
    let tip = rig.snapshot().await.head.unwrap();
    session(&mut rig, SessionCommand::New);
    let started = |e: &EventBody| {
        matches!(e, EventBody::Turn(tiller_protocol::event::TurnEvent::SessionStarted { .. })).then_some(())
    };
    rig.until("another session", started).await;
    rig.turn("something else").await;
    let before = rig.snapshot().await;
    let label = SessionCommand::LabelBranch { session: Some(first), head: b.clone(), label: "way b".into() };
    let tag = SessionCommand::Tag { session: Some(first), name: "good".into(), entry: Some(tip) };
    for command in [label, tag] {
        session_command(&mut rig, command).await;
    }
    // The open branch keeps its name.
    assert_eq!(rig.snapshot().await.branch, before.branch);
    let open = Side::Branch(before.branch.head.clone());
    let got = compare(&mut rig, Pair { left: open, right: Side::Entry(tip) }).await;
    assert!(got.right.name.ends_with("Done as B.") && got.base.is_none(), "{:?}", got.right.name);
    assert!(got.right.said.iter().any(|s| s.text.contains("do it as B")));
    rig.quit().await;
    let store = tiller_store::Store::open(&place.db(), tiller_store::Options::default()).unwrap();
    let row = store.branches().list(first).unwrap().into_iter().find(|r| r.name == b).unwrap();
    assert_eq!((row.label.as_str(), store.tags().list(first).unwrap()[0].entry), ("way b", tip));
}
