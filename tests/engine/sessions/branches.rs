//! Branches of one session: changing between them, naming and archiving them.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::{AskBody, BranchView, CommandBody, EntryId, EventBody, TagView};

use crate::rig::*;
use tiller_engine::Open;

pub(crate) fn session(rig: &mut Rig, command: SessionCommand) {
    rig.send(CommandBody::Session(command));
}

/// Waits until the head moved; returns the open branch.
pub(crate) async fn moved(rig: &mut Rig) -> String {
    rig.until("the branch", |e| match e {
        EventBody::State(StateEvent::HeadMoved { branch, .. }) => Some(branch.head.clone()),
        _ => None,
    })
    .await
}

pub(crate) async fn fork(rig: &mut Rig, entry: EntryId) -> String {
    session(rig, SessionCommand::Fork { entry });
    moved(rig).await
}

pub(crate) async fn open(rig: &mut Rig, head: &str) {
    session(rig, SessionCommand::OpenBranch { head: head.into() });
    // The start announces a head as well.
    while moved(rig).await != head {}
}

pub(crate) async fn branches(rig: &mut Rig) -> (Vec<BranchView>, Vec<TagView>) {
    match rig.query(Query::Branches).await {
        ReplyEvent::BranchesReply { branches, tags } => (branches, tags),
        other => panic!("{other:?}"),
    }
}

fn names(rows: &[BranchView]) -> Vec<&str> {
    rows.iter().map(|b| b.name.head.as_str()).collect()
}

/// What a rename, archive, tag led to.
pub(crate) async fn changed(rig: &mut Rig) {
    rig.until("the change", |e| match e {
        EventBody::State(
            StateEvent::BranchNamed { .. }
            | StateEvent::BranchArchived { .. }
            | StateEvent::TagChanged { .. },
        ) => Some(()),
        _ => None,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_is_left_and_gone_back_to_and_each_goes_on_by_itself() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), says("other"), says("three"), says("more")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let before = rig.snapshot().await;
    assert_eq!(before.branch.head, "main");
    let b = fork(&mut rig, before.entries[3].id).await;
    rig.turn("instead").await;
    open(&mut rig, "main").await;
    let back = rig.snapshot().await;
    assert_eq!((back.branch.head.as_str(), &back.entries, back.head), ("main", &before.entries, before.head));
    rig.turn("third").await;
    let request = fake.request(3);
    assert_eq!(message_text(&request, request.messages.len() - 1), "third");
    let text = format!("{:?}", request.messages);
    assert!(text.contains("second") && !text.contains("instead"), "{text}");
    open(&mut rig, &b).await;
    rig.turn("and then").await;
    let shape_b = shape(&rig.snapshot().await.entries);
    assert!(shape_b.iter().any(|s| s.contains("instead")) && !shape_b.iter().any(|s| s.contains("third")));
    let (rows, _) = branches(&mut rig).await;
    assert_eq!(rows.len(), 2);
    let main = rows.iter().find(|r| r.name.head == "main").unwrap();
    let ours = rows.iter().find(|r| r.name.head == b).unwrap();
    assert_eq!((main.words.as_str(), main.open, &main.open_in), ("third", false, &None));
    assert_eq!((ours.words.as_str(), ours.open, &ours.open_in), ("and then", true, &None));
    // The next start opens the branch where the user spoke last.
    rig.quit().await;
    let mut rig = place.start_with(&fake, |p| p.session.open = Open::Last).await;
    assert_eq!(rig.snapshot().await.branch.head, b);
    session(&mut rig, SessionCommand::OpenBranch { head: "nowhere".into() });
    assert!(rig.refused().await.message.contains("no branch nowhere"));
    session(&mut rig, SessionCommand::OpenBranch { head: b });
    assert!(rig.refused().await.message.contains("this is the current branch"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_without_words_of_its_own_leaves_nothing_behind() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), says("three")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let entries = rig.snapshot().await.entries;
    let empty = fork(&mut rig, entries[3].id).await;
    let b = fork(&mut rig, entries[1].id).await;
    assert_ne!(empty, b);
    // It follows the news of the new branch.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(90);
    let mut rows = branches(&mut rig).await.0;
    while names(&rows).len() != 2 && std::time::Instant::now() < until {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        rows = branches(&mut rig).await.0;
    }
    assert_eq!(names(&rows), [b.as_str(), "main"]);
    // A named one stays.
    session(
        &mut rig,
        SessionCommand::LabelBranch { session: None, head: b.clone(), label: " plan\n b ".into() },
    );
    changed(&mut rig).await;
    assert_eq!(rig.snapshot().await.branch.label, "plan b");
    open(&mut rig, "main").await;
    let (rows, _) = branches(&mut rig).await;
    assert_eq!(names(&rows), [b.as_str(), "main"]);
    assert_eq!(rows[0].name.label, "plan b");
    open(&mut rig, &b).await;
    assert_eq!(rig.snapshot().await.branch.label, "plan b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_refused_with_a_reason_and_branches_are_put_away() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    let entries = rig.snapshot().await.entries;
    let b = fork(&mut rig, entries[1].id).await;
    rig.turn("instead").await;
    let label = |head: &str, label: &str| SessionCommand::LabelBranch {
        session: None,
        head: head.into(),
        label: label.into(),
    };
    session(&mut rig, label(&b, "try b"));
    changed(&mut rig).await;
    for (command, why) in [
        (label("main", "try b"), "another branch is already named try b"),
        (label("main", " \n "), "at least one letter"),
        (label("main", &"x".repeat(61)), "61 columns"),
        (label("gone", "x"), "no branch gone"),
        (
            SessionCommand::ArchiveBranch { session: None, head: b.clone(), archived: true },
            "cannot be archived",
        ),
    ] {
        session(&mut rig, command);
        let said = rig.refused().await.message;
        assert!(said.contains(why), "{said}");
    }
    session(&mut rig, SessionCommand::ArchiveBranch { session: None, head: "main".into(), archived: true });
    changed(&mut rig).await;
    // Opening it lists it again; that is undone after the change of branch.
    open(&mut rig, "main").await;
    let away = |rows: &[BranchView]| rows.iter().any(|r| r.archived);
    assert!(!away(&branches(&mut rig).await.0));
    for _ in 0..2 {
        session(&mut rig, SessionCommand::UndoOp { redo: false });
        assert!(matches!(rig.reply().await, ReplyEvent::DoneReply { .. }));
    }
    assert!(away(&branches(&mut rig).await.0));
    assert_eq!(rig.snapshot().await.branch.head, b);
    let tag = |name: &str, entry| SessionCommand::Tag { session: None, name: name.into(), entry };
    session(&mut rig, tag("good", Some(entries[1].id)));
    changed(&mut rig).await;
    session(&mut rig, tag("good", Some(entries[2].id)));
    assert!(rig.refused().await.message.contains("another entry already has the tag good"));
    let (rows, tags) = branches(&mut rig).await;
    let shown: Vec<_> = rows.iter().map(|r| (r.name.word().to_owned(), r.archived)).collect();
    assert_eq!(shown, [("try b".to_owned(), false), ("main".to_owned(), true)]);
    assert_eq!(tags, [TagView { name: "good".into(), entry: entries[1].id }]);
    session(&mut rig, tag("good", None));
    changed(&mut rig).await;
    assert_eq!(branches(&mut rig).await.1, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_another_window_works_on_is_only_looked_at_until_the_person_branches() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), says("three")]);
    let mut first = place.start(&fake).await;
    first.turn("hello").await;
    let entries = first.snapshot().await.entries;
    let b = fork(&mut first, entries[1].id).await;
    first.turn("instead").await;
    let id = first.session();
    // The second window has its other branch open.
    let mut second = place.start_with(&fake, |p| p.session.open = Open::Session(id)).await;
    let ask = second.asked().await;
    assert!(matches!(ask.body, AskBody::SessionBusy { .. }));
    open(&mut second, "main").await;
    assert!(!second.snapshot().await.read_only);
    let (rows, _) = branches(&mut second).await;
    assert!(rows.iter().any(|r| r.name.head == b && r.open_in.is_some() && !r.open));
    // It changes to the branch of the first window.
    open(&mut second, &b).await;
    let again = second.asked().await;
    assert!(matches!(again.body, AskBody::SessionBusy { .. }));
    assert!(second.snapshot().await.read_only);
    second.submit("me too");
    assert!(second.refused().await.message.contains("read-only"));
    second.answer(&again, tiller_protocol::AskReply::Branch);
    second.notice("is open").await;
    second.turn("beside it").await;
    assert!(shape(&first.snapshot().await.entries).iter().all(|s| !s.contains("beside it")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_is_told_after_the_way_was_gone_so_that_a_summary_can_be_offered() {
    let place = Place::new();
    let fake = Fake::new([says("one"), says("two"), says("other")]);
    let mut rig = place.start(&fake).await;
    rig.turn("first").await;
    rig.turn("second").await;
    let before = rig.snapshot().await;
    let (entries, tip) = (before.entries, before.head.unwrap());
    session(&mut rig, SessionCommand::Fork { entry: entries[2].id });
    // The head moves first: the change does not wait for the search.
    let order = std::cell::RefCell::new(Vec::new());
    let (from, name, count) = rig
        .until("what was left", |e| match e {
            EventBody::State(StateEvent::HeadMoved { .. }) => {
                order.borrow_mut().push("moved");
                None
            }
            EventBody::State(StateEvent::BranchLeft { from, name, entries }) => {
                Some((*from, name.head.clone(), *entries))
            }
            _ => None,
        })
        .await;
    let order = order.into_inner();
    assert!(order.ends_with(&["moved"]), "{order:?}");
    assert_eq!((from, name.as_str(), count), (tip, "main", 2));
    // A branch without replies offers no summary, and an undo offers none.
    let silent = |e: &EventBody| match e {
        EventBody::State(StateEvent::BranchLeft { .. }) => panic!("{e:?}"),
        EventBody::State(StateEvent::HeadMoved { branch, .. }) => Some(branch.head.clone()),
        _ => None,
    };
    session(&mut rig, SessionCommand::UndoOp { redo: false });
    assert_eq!(rig.until("back", silent).await, "main");
    session(&mut rig, SessionCommand::Fork { entry: tip });
    let b = rig.until("another", silent).await;
    rig.turn("instead").await;
    session(&mut rig, SessionCommand::OpenBranch { head: "main".into() });
    let told = |e: &EventBody| match e {
        EventBody::State(StateEvent::BranchLeft { name, entries, .. }) => Some((name.head.clone(), *entries)),
        _ => None,
    };
    assert_eq!(rig.until("what was left", told).await, (b, 2));
}
