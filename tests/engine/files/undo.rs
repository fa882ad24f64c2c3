//! Undo and redo of operations of every kind.

use tiller_protocol::command::{ContextCommand, Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent, TurnEvent};
use tiller_protocol::op::OpChange;
use tiller_protocol::{CommandBody, EventBody, Op, OpId, RestoreWhat};

use crate::files::checkpoints::{back, keeps, messages, model, session_command};
use crate::rig::*;
use crate::sessions::branches::{branches, changed, fork, open, session};

async fn undo(rig: &mut Rig) -> String {
    session_command(rig, SessionCommand::UndoOp { redo: false }).await
}

async fn redo(rig: &mut Rig) -> String {
    session_command(rig, SessionCommand::UndoOp { redo: true }).await
}

async fn ops(rig: &mut Rig) -> (Vec<Op>, Option<OpId>, Option<OpId>) {
    match rig.query(Query::Ops { limit: 100 }).await {
        ReplyEvent::OpsReply { ops, undo, redo } => (ops, undo, redo),
        other => panic!("{other:?}"),
    }
}

async fn head(rig: &mut Rig) -> String {
    rig.snapshot().await.branch.head
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_and_a_jump_are_undone_and_done_again() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), says("other"), says("four")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let main = rig.snapshot().await;
    let b = fork(&mut rig, main.entries[3].id).await;
    // The branch has no messages: the undo removes it, and the redo makes it again where it was.
    assert_eq!(undo(&mut rig).await, "Undone: fork: the branch main is now open");
    assert_eq!(branches(&mut rig).await.0.len(), 1);
    assert_eq!(rig.snapshot().await.entries, main.entries);
    assert_eq!(redo(&mut rig).await, format!("Redone: fork: the branch {b} is now open"));
    assert_eq!(rig.snapshot().await.entries, main.entries[..3]);
    rig.turn("instead").await;
    let on_b = rig.snapshot().await.entries;
    open(&mut rig, "main").await;
    // The jump first, then the fork.
    assert!(undo(&mut rig).await.contains("open branch"));
    assert_eq!((head(&mut rig).await, rig.snapshot().await.entries), (b.clone(), on_b.clone()));
    assert!(undo(&mut rig).await.contains("fork"));
    assert_eq!(head(&mut rig).await, "main");
    rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: false }));
    assert!(rig.refused().await.message.contains("there is nothing to undo"));
    assert!(redo(&mut rig).await.contains("fork"));
    assert_eq!(rig.snapshot().await.entries, on_b);
    assert!(redo(&mut rig).await.contains("open branch"));
    assert_eq!(head(&mut rig).await, "main");
    rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: true }));
    assert!(rig.refused().await.message.contains("there is nothing to redo"));
    let (log, next, again) = ops(&mut rig).await;
    assert_eq!((log.len(), again), (8, None), "the log only grows");
    assert_eq!(next, log.iter().find(|o| o.title == "open branch").map(|o| o.id));
    // Entries are still added there.
    rig.turn("third").await;
    assert!(shape(&rig.snapshot().await.entries).iter().any(|s| s.contains("third")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_tags_titles_and_what_was_put_away_are_undone() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    let entries = rig.snapshot().await.entries;
    let id = rig.session();
    fork(&mut rig, entries[1].id).await;
    rig.turn("instead").await;
    let label =
        |label: &str| SessionCommand::LabelBranch { session: None, head: "main".into(), label: label.into() };
    session(&mut rig, label("plan a"));
    session(&mut rig, label("plan z"));
    session(&mut rig, SessionCommand::ArchiveBranch { session: None, head: "main".into(), archived: true });
    session(&mut rig, SessionCommand::Tag { session: None, name: "good".into(), entry: Some(entries[2].id) });
    session(&mut rig, SessionCommand::Rename { id, title: "Mine".into() });
    rig.until("the title", |e| {
        matches!(e, EventBody::State(StateEvent::TitleChanged { title }) if title == "Mine").then_some(())
    })
    .await;
    let state = async |rig: &mut Rig| {
        let (rows, tags) = branches(rig).await;
        let main = rows.into_iter().find(|b| b.name.head == "main").unwrap();
        (rig.snapshot().await.session.title, tags.len(), main.archived, main.name.label)
    };
    let is =
        |title: &str, tags: usize, away: bool, name: &str| (title.to_owned(), tags, away, name.to_owned());
    let steps = [
        is("Mine", 1, true, "plan z"),
        is("first", 1, true, "plan z"),
        is("first", 0, true, "plan z"),
        is("first", 0, false, "plan z"),
        is("first", 0, false, "plan a"),
        is("first", 0, false, ""),
    ];
    assert_eq!(state(&mut rig).await, steps[0]);
    let said = ["rename", "tag: good", "archive branch: main", "name branch: plan z", "name branch: plan a"];
    for (what, after) in said.iter().zip(&steps[1..]) {
        assert_eq!(undo(&mut rig).await, format!("Undone: {what}"));
        assert_eq!(state(&mut rig).await, *after);
    }
    for (what, after) in said.iter().rev().zip(steps.iter().rev().skip(1)) {
        assert_eq!(redo(&mut rig).await, format!("Redone: {what}"));
        assert_eq!(state(&mut rig).await, *after);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_of_talk_and_files_is_undone_in_one() {
    let place = Place::new();
    let mut rig = place.start_with(&model(), |p| keeps(&place, p)).await;
    rig.turn("write it").await;
    rig.turn("more").await;
    let said = messages(&mut rig).await;
    session_command(&mut rig, back(said[1], RestoreWhat::Both)).await;
    rig.until("the branch", |e| matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(()))
        .await;
    assert_eq!((place.read("a.txt").as_str(), messages(&mut rig).await.len()), ("one\n", 1));
    assert!(undo(&mut rig).await.contains("the branch main is now open"));
    let files = match rig.reply().await {
        ReplyEvent::DoneReply { said } => said,
        other => panic!("{other:?}"),
    };
    assert_eq!(files, "Undone: restore files: more; 2 files were restored");
    assert_eq!((place.read("a.txt").as_str(), messages(&mut rig).await.len()), ("one\nmore\n", 2));
    assert!(redo(&mut rig).await.contains("Redone: restore files: more"));
    assert!(matches!(rig.reply().await, ReplyEvent::DoneReply { said } if said.contains("fork")));
    assert_eq!((place.read("a.txt").as_str(), messages(&mut rig).await.len()), ("one\n", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_is_in_the_log_and_undone_on_a_branch() {
    let place = Place::new();
    let fake = Fake::new((0..6).map(|i| says(&format!("reply {i}"))).collect::<Vec<_>>());
    let mut rig = place.start_with(&fake, |p| p.config.context.compact_tokens = Some(1_000_000)).await;
    for i in 0..6 {
        rig.turn(&format!("question {i} {}", "x".repeat(20_000))).await;
    }
    let before = rig.snapshot().await.entries;
    fake.push(says("## Goal\nTHE SUMMARY"));
    rig.send(CommandBody::Context(ContextCommand::Compact { focus: None }));
    rig.until("compaction", |e| matches!(e, EventBody::Turn(TurnEvent::Compacted { .. })).then_some(()))
        .await;
    let (log, next, _) = ops(&mut rig).await;
    assert_eq!((log[0].title.as_str(), next), ("compact", Some(log[0].id)));
    assert!(matches!(log[0].change, OpChange::Compaction { .. }));
    assert!(undo(&mut rig).await.starts_with("Undone: compact: the branch branch-"));
    assert_eq!(rig.snapshot().await.entries, before);
    fake.push(says("After."));
    rig.turn("go on").await;
    let last = fake.request(fake.count() - 1);
    let all = format!("{:?}", last.messages);
    assert!(all.contains("question 0") && !all.contains("THE SUMMARY"));
    assert_valid(&last);
    assert_eq!(redo(&mut rig).await, "Redone: compact: the branch main is now open");
    fake.push(says("Again."));
    rig.turn("go on").await;
    assert!(message_text(&fake.request(fake.count() - 1), 0).contains("THE SUMMARY"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w17_an_undo_that_can_change_nothing_says_so_and_gives_way_to_the_one_before() {
    let place = Place::new();
    let mut rig = place.start_with(&model(), |p| keeps(&place, p)).await;
    rig.turn("write it").await;
    rig.turn("more").await;
    renamed(&mut rig, "Mine").await;
    let said = messages(&mut rig).await;
    session_command(&mut rig, back(said[1], RestoreWhat::Files)).await;
    // The user changes both files: the restore can no longer be undone.
    for name in ["a.txt", "b.txt"] {
        place.file(name, "mine\n");
    }
    let told = undo(&mut rig).await;
    assert!(told.starts_with("Not undone: restore files: more; No file was changed"), "{told}");
    assert!(told.contains("a.txt (you or another program changed it since)"), "{told}");
    assert!(told.contains("The next undo continues with the step before it"), "{told}");
    assert_eq!(place.read("a.txt"), "mine\n");
    assert_eq!(undo(&mut rig).await, "Undone: rename");
    // Nothing is lost: once the user's changes are gone, the restore can be undone after all.
    assert_eq!(redo(&mut rig).await, "Redone: rename");
    let told = redo(&mut rig).await;
    assert!(told.starts_with("There was nothing left to redo: restore files: more"), "{told}");
    place.file("a.txt", "one\n");
    std::fs::remove_file(place.work.join("b.txt")).unwrap();
    let told = undo(&mut rig).await;
    assert_eq!(told, "Undone: restore files: more; 2 files were restored");
    assert_eq!((place.read("a.txt").as_str(), place.read("b.txt").as_str()), ("one\nmore\n", "two"));
    // And the same by the command for restores alone.
    for name in ["a.txt", "b.txt"] {
        place.file(name, "mine again\n");
    }
    let told = session_command(&mut rig, SessionCommand::UndoRestore { redo: true }).await;
    assert!(told.starts_with("Not redone: restore files: more"), "{told}");
    rig.send(CommandBody::Session(SessionCommand::UndoRestore { redo: true }));
    assert!(rig.refused().await.message.contains("no restore has been undone"), "it is not stuck there");
}

async fn renamed(rig: &mut Rig, title: &str) {
    let wanted = title;
    let id = rig.session();
    session(rig, SessionCommand::Rename { id, title: title.into() });
    rig.until("the title", |e| {
        matches!(e, EventBody::State(StateEvent::TitleChanged { title }) if *title == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w17_a_name_of_a_branch_that_is_gone_does_not_block_what_comes_after_it() {
    let place = Place::new();
    let mut rig = place.start(&Fake::new([says("one"), says("two")])).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let entries = rig.snapshot().await.entries;
    let b = fork(&mut rig, entries[3].id).await;
    session(&mut rig, SessionCommand::LabelBranch { session: None, head: b.clone(), label: "x".into() });
    changed(&mut rig).await;
    renamed(&mut rig, "Mine").await;
    assert_eq!(undo(&mut rig).await, "Undone: rename");
    assert_eq!(undo(&mut rig).await, "Undone: name branch: x");
    // The branch has no messages and no name: it is deleted when it is left.
    open(&mut rig, "main").await;
    assert_eq!(branches(&mut rig).await.0.len(), 1);
    let told = redo(&mut rig).await;
    assert!(told.starts_with("Not redone: name branch: x; "), "{told}");
    assert!(told.contains(&b) && told.ends_with("The next redo continues with the step after it"), "{told}");
    assert_eq!(redo(&mut rig).await, "Redone: rename");
    assert_eq!(rig.snapshot().await.session.title, "Mine");
    rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: true }));
    assert!(rig.refused().await.message.contains("there is nothing to redo"));
    // And no undo is lost or blocked.
    let mut told = Vec::new();
    while let (_, Some(_), _) = ops(&mut rig).await {
        told.push(undo(&mut rig).await);
        assert!(told.len() < 10, "{told:?}");
    }
    assert!(told.iter().any(|t| t == "Undone: rename"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w17_in_random_stories_every_operation_is_reached_by_undo() {
    for seed in 0..6_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut dice = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let place = Place::new();
        let mut rig = place.start_with(&model(), |p| keeps(&place, p)).await;
        rig.turn("write it").await;
        rig.turn("more").await;
        let said = messages(&mut rig).await;
        for n in 0..14_usize {
            match dice(8) {
                0 => renamed(&mut rig, &format!("title {n}")).await,
                6 => {
                    let label = format!("name-{n}");
                    session(
                        &mut rig,
                        SessionCommand::LabelBranch { session: None, head: "main".into(), label },
                    );
                    changed(&mut rig).await;
                }
                7 => {
                    let name = format!("tag-{}", n % 2);
                    session(&mut rig, SessionCommand::Tag { session: None, name, entry: Some(said[n % 2]) });
                    changed(&mut rig).await;
                }
                1 | 2 => {
                    let to = usize::try_from(dice(2)).unwrap();
                    session_command(&mut rig, back(said[to], RestoreWhat::Files)).await;
                }
                3 => place.file("a.txt", &format!("by hand {n}\n")),
                4 => drop(std::fs::remove_file(place.work.join("b.txt"))),
                _ => {
                    // Undone in between, or there is none yet.
                    let (_, next, _) = ops(&mut rig).await;
                    if next.is_some() {
                        undo(&mut rig).await;
                    }
                }
            }
        }
        let (log, _, _) = ops(&mut rig).await;
        let rows = |root: OpId| log.iter().filter(|o| o.root() == root).count();
        let mut in_force: Vec<OpId> =
            log.iter().filter(|o| o.root() == o.id && rows(o.id) % 2 == 1).map(|o| o.id).collect();
        while let (_, Some(next), _) = ops(&mut rig).await {
            let told = undo(&mut rig).await;
            // Newest first, each once.
            assert!(!in_force.is_empty() && in_force.remove(0) == next, "seed {seed}: {told}");
        }
        assert_eq!(in_force, [], "seed {seed}: every operation was reached");
        rig.send(CommandBody::Session(SessionCommand::UndoOp { redo: false }));
        assert!(rig.refused().await.message.contains("there is nothing to undo"));
    }
}
