//! The queries of the tree browser.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::event::{ReplyEvent, StateEvent};
use tiller_protocol::tree::{EntryPreview, NodeKind, SessionTree, TreeMarks, TreeQuery, TreeReply};
use tiller_protocol::{ChangeKind, CommandBody, EntryId, EventBody};

use crate::files::checkpoints::{keeps, model};
use crate::rig::*;

async fn ask(rig: &mut Rig, query: TreeQuery) -> TreeReply {
    match rig.query(Query::Tree { query }).await {
        ReplyEvent::TreeReply { reply } => reply,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn tree(rig: &mut Rig) -> SessionTree {
    match ask(rig, TreeQuery::Nodes { session: None }).await {
        TreeReply::Nodes { tree } => std::sync::Arc::unwrap_or_clone(tree),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn preview(rig: &mut Rig, entry: EntryId) -> EntryPreview {
    match ask(rig, TreeQuery::Preview { entry }).await {
        TreeReply::Preview { preview } => *preview,
        other => panic!("{other:?}"),
    }
}

/// Asked for once, as the tree browser does: a reply that lacks the last calls would stay on the screen.
pub(crate) async fn marks(rig: &mut Rig, session: tiller_protocol::SessionId) -> TreeMarks {
    let TreeReply::Marks { marks, .. } = ask(rig, TreeQuery::Marks { session }).await else { panic!() };
    marks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tree_its_marks_its_lines_and_a_preview_of_what_a_turn_changed() {
    let place = Place::new();
    place.file("mine.txt", "before\n");
    let mut rig = place.start_with(&model(), |p| keeps(&place, p)).await;
    rig.turn("write it").await;
    rig.turn("more").await;
    let t = tree(&mut rig).await;
    let users: Vec<_> = t.nodes.iter().filter(|n| n.kind == NodeKind::User).collect();
    let calls: Vec<_> = t.nodes.iter().filter(|n| n.kind == NodeKind::ToolResult).collect();
    assert_eq!((users.len(), calls.len()), (2, 2));
    let m = marks(&mut rig, t.session).await;
    let of = |seq: i64| m.files.iter().find(|(s, _)| *s == seq).map(|(_, n)| *n);
    assert_eq!((of(users[0].seq), of(users[1].seq)), (Some(1), Some(2)));
    assert_eq!((of(calls[0].seq), of(calls[1].seq)), (Some(1), Some(2)));
    let shown = preview(&mut rig, users[1].id).await;
    let files: Vec<_> = shown.files.iter().map(|f| (f.path.as_str(), f.kind)).collect();
    assert_eq!(files, [("a.txt", ChangeKind::Modified), ("b.txt", ChangeKind::Added)]);
    assert!(shown.files[0].diff.contains("+more") && shown.text == "more", "{shown:?}");
    let call = preview(&mut rig, calls[0].id).await;
    assert_eq!((call.files.len(), call.files[0].path.as_str()), (1, "a.txt"));
    let TreeReply::Lines { lines } =
        ask(&mut rig, TreeQuery::Lines { entries: vec![users[0].id, calls[1].id] }).await
    else {
        panic!()
    };
    assert_eq!(lines[0].text, "write it");
    assert!(lines[1].call.as_ref().unwrap().arguments["command"].as_str().unwrap().starts_with("printf"));

    // Another branch from the second message: a node with two children, the open branch is the current one.
    rig.send(CommandBody::Session(SessionCommand::Fork { entry: users[1].id }));
    rig.until("the branch", |e| matches!(e, EventBody::State(StateEvent::HeadMoved { .. })).then_some(()))
        .await;
    rig.turn("instead").await;
    let t2 = tree(&mut rig).await;
    assert_eq!(t2.heads.len(), 2);
    let current = t2.heads.iter().find(|h| h.current).unwrap();
    assert_ne!(current.name, "main");
    assert_eq!(current.node.map(|n| n as usize), Some(t2.nodes.len() - 1));
    let forked = t2.nodes.iter().filter(|n| n.parent == users[1].parent).count();
    assert_eq!(forked, 2, "the message that was left, and the new one");
    let TreeReply::Find { found, .. } =
        ask(&mut rig, TreeQuery::Find { text: "instead".into(), everywhere: false }).await
    else {
        panic!()
    };
    assert_eq!(found.sessions.len(), 1);
    assert_eq!(found.sessions[0].1.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_says_why_there_is_nothing_to_compare() {
    let place = Place::new();
    let fake = Fake::new([says("one")]);
    let mut rig = place.start(&fake).await;
    rig.turn("hello").await;
    let t = tree(&mut rig).await;
    let user = t.nodes.iter().find(|n| n.kind == NodeKind::User).unwrap();
    let shown = preview(&mut rig, user.id).await;
    assert_eq!((shown.text.as_str(), shown.files.len()), ("hello", 0));
    assert!(shown.notes[0].contains("there is no snapshot"), "{shown:?}");
    let gone = EntryId(Default::default());
    let refused = rig.query(Query::Tree { query: TreeQuery::Preview { entry: gone } }).await;
    assert!(matches!(refused, ReplyEvent::ErrorReply { .. }), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_written_to_the_file_that_was_named() {
    let place = Place::new();
    let fake = Fake::new([says("one")]);
    let mut rig = place
        .start_with(&fake, |p| {
            p.user.exporter = Some(std::sync::Arc::new(|store, id, path| {
                let tree = store.tree().load(id).map_err(|e| e.notice())?;
                Ok(format!("{} to {}", tree.nodes.len(), path.display()))
            }));
        })
        .await;
    rig.turn("hello").await;
    let id = rig.session();
    let file = |file: &str| CommandBody::Session(SessionCommand::Export { id, file: file.into() });
    rig.send(file(" a b.md "));
    let ReplyEvent::DoneReply { said } = rig.reply().await else { panic!() };
    assert_eq!(said, format!("3 to {}", place.work.join("a b.md").display()), "what was said is in it");
    rig.send(file(" "));
    assert!(rig.refused().await.message.contains("file name"));
}
