//! The session tree, driven by the robot.

use super::*;
use crate::app::msg::Msg;
use crate::model::conversation::script::{Script, text};
use crate::testing::Robot;
use tiller_protocol::command::Query;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::tree::{
    NodeKind, SessionTree, TreeHead, TreeLine, TreeMarks, TreeNode, TreeQuery, TreeReply,
};
use tiller_protocol::{Cost, SessionId, StopReason};

fn path(r: &mut Robot, s: &mut Script, turns: usize) -> Vec<EntryId> {
    let mut ids = Vec::new();
    let e = s.snapshot(Vec::new(), 0, false);
    r.msg(Msg::Engine(Box::new(e)));
    for n in 0..turns {
        let node = s.user(&format!("question {n}\nwith a second line"));
        ids.push(node.id);
        let e = s.added(node);
        r.msg(Msg::Engine(Box::new(e)));
        let node = s.assistant(vec![text(&"an answer\n\n".repeat(8))], StopReason::EndTurn);
        let e = s.added(node);
        r.msg(Msg::Engine(Box::new(e)));
    }
    ids
}

#[test]
fn looks_well_in_the_rail_and_alone() {
    let mut r = Robot::new(118, 25);
    path(&mut r, &mut Script::new(), 5);
    insta::assert_snapshot!("tree_at_118x25", r.screen());
    r.run("size 80x24; alt-5");
    insta::assert_snapshot!("tree_at_80x24", r.screen());
}

#[test]
fn enter_jumps_and_f_forks() {
    let mut r = Robot::new(80, 24);
    let ids = path(&mut r, &mut Script::new(), 9);
    r.run("alt-5");
    r.clear().run("g; down; enter");
    assert_eq!(r.app.screen.focus, View::Conversation);
    assert!(r.screen().contains("question 1"), "{}", r.screen());
    assert!(!r.screen().contains("question 8"), "{}", r.screen());
    r.clear().run("alt-5; f");
    let fork = CommandBody::Session(SessionCommand::Fork { entry: ids[1] });
    assert_eq!(r.commands(), [&fork], "the choice stayed where it was");
    assert_eq!(r.app.screen.focus, View::Composer);
}

/// Entries of the path and two branches that were left: one off the first turn, one off that branch.
fn tree(path: &[EntryId], left: &[EntryId]) -> SessionTree {
    let node = |n: usize, id: EntryId, parent: Option<u32>| TreeNode {
        id,
        seq: n as i64,
        parent,
        kind: if n.is_multiple_of(2) { NodeKind::User } else { NodeKind::Assistant },
        time: crate::testing::START,
        agent: 0,
        model: None,
        tokens: 10,
        cost: (!n.is_multiple_of(2)).then_some(Cost(40_000 + n as u64 * 10_000)),
    };
    let on = path.len() as u32;
    let nodes = path.iter().enumerate().map(|(n, id)| node(n, *id, n.checked_sub(1).map(|p| p as u32)));
    let off = left.iter().enumerate().map(|(n, id)| {
        let parent = if n == 0 { 1 } else { on + n as u32 - 1 };
        node(n, *id, Some(parent))
    });
    let head = |name: &str, node: u32, current| TreeHead {
        name: name.into(),
        label: String::new(),
        node: Some(node),
        archived: false,
        current,
        open_in: None,
    };
    SessionTree {
        session: SessionId(Default::default()),
        title: String::new(),
        project: String::new(),
        agents: vec!["main".into()],
        models: Vec::new(),
        nodes: nodes.chain(off).collect(),
        heads: vec![head("main", on - 1, true), head("b", on + left.len() as u32 - 1, false)],
        tags: Vec::new(),
        spawned: Vec::new(),
    }
}

/// Answers what the panel asks until it asks no more.
fn serve(r: &mut Robot, tree: &SessionTree, words: &[(EntryId, &str)]) {
    for _ in 0..6 {
        let asked = r.sent();
        r.clear();
        for (id, body) in asked {
            let CommandBody::Query(Query::Tree { query }) = body else { continue };
            let reply = match query {
                TreeQuery::Nodes { .. } => TreeReply::Nodes { tree: Box::new(tree.clone()) },
                TreeQuery::Marks { session } => {
                    let marks = TreeMarks { files: vec![(0, 3), (2, 1)], failed: Vec::new() };
                    TreeReply::Marks { session, marks }
                }
                TreeQuery::Lines { .. } => {
                    let line = |(entry, text): &(EntryId, &str)| TreeLine {
                        entry: *entry,
                        text: (*text).to_owned(),
                        origin: None,
                        call: None,
                    };
                    TreeReply::Lines { lines: words.iter().map(line).collect() }
                }
                _ => continue,
            };
            r.cause(Some(id), EventBody::Reply(Box::new(ReplyEvent::TreeReply { reply })));
        }
    }
}

/// The session is `tree(..)`, with three turns on its path.
fn grown(width: u16, height: u16) -> (Robot, Vec<EntryId>, Vec<EntryId>) {
    let mut r = Robot::new(width, height);
    let mut s = Script::new();
    path(&mut r, &mut s, 3);
    let mut on: Vec<EntryId> =
        r.app.model.agent.conversation.cells().iter().filter_map(|c| c.entry).collect();
    on.dedup();
    let left = ["try it with a library", "the library does it", "another library", "it does it too"];
    let left: Vec<EntryId> = left.iter().map(|text| s.user(text).id).collect();
    r.clear();
    r.run("alt-5");
    let session = r.app.model.main_session().unwrap();
    let tree = SessionTree { session, ..tree(&on, &left) };
    let words = [(left[0], "try it with a library\u{1b}[2J"), (left[2], "another library")];
    r.event(EventBody::State(StateEvent::HeadMoved { head: None, draft: None, branch: Default::default() }));
    serve(&mut r, &tree, &words);
    (r, on, left)
}

/// The lanes of the tree browser in small, with what each turn cost and changed.
#[test]
fn branches_that_were_left_have_lanes_costs_and_files() {
    for (width, height) in [(118, 32), (80, 24), (60, 20), (40, 12), (32, 12)] {
        let (r, ..) = grown(width, height);
        let screen = r.screen();
        let row = |text: &str| {
            screen.lines().position(|l| l.contains(text)).unwrap_or_else(|| panic!("{text}: {screen}"))
        };
        let line = |text: &str| screen.lines().nth(row(text)).unwrap();
        assert_eq!(row("├─○ try it"), row("● question 0") + 1, "{screen}");
        assert_eq!(row("│ ○ another"), row("● question 0") + 2, "{screen}");
        assert_eq!(row("● question 1"), row("● question 0") + 3, "{screen}");
        assert!(line("question 0").contains("$0.05") && line("question 2").contains("$0.09"), "{screen}");
        let files = if width >= 40 { ["3 files", "1 file"] } else { ["3f", "1f"] };
        assert!(line("question 0").contains(files[0]), "{screen}");
        assert!(line("question 1").contains(files[1]), "{screen}");
        assert!(line("question 2").contains("now"), "{screen}");
        assert!(!screen.contains('\u{1b}'));
    }
}

#[test]
fn a_turn_that_is_newer_than_the_tree_stands_below_it() {
    let (mut r, ..) = grown(118, 32);
    let mut s = Script::new();
    (0..20).for_each(|_| drop(s.user("taken")));
    let node = s.user("a new question");
    let e = s.added(node);
    r.msg(Msg::Engine(Box::new(e)));
    let screen = r.screen();
    let row = |text: &str| {
        screen.lines().position(|l| l.contains(text)).unwrap_or_else(|| panic!("{text}: {screen}"))
    };
    assert_eq!(row("● a new question"), row("● question 2") + 1, "{screen}");
    assert!(screen.lines().nth(row("● a new question")).unwrap().contains("now"), "{screen}");
    assert!(!screen.lines().nth(row("● question 2")).unwrap().contains("now"), "{screen}");
    // The tree is read again when the turn has ended, and only where it is seen.
    r.clear().turn_done();
    let nodes =
        |c: &&CommandBody| matches!(c, CommandBody::Query(Query::Tree { query: TreeQuery::Nodes { .. } }));
    assert_eq!(r.commands().iter().filter(|c| nodes(c)).count(), 1);
    let mut r = Robot::new(80, 24);
    path(&mut r, &mut Script::new(), 2);
    r.clear().turn_done();
    assert_eq!(r.commands().iter().filter(|c| nodes(c)).count(), 0);
}

#[test]
fn one_can_go_back_to_a_branch_that_was_left_and_look_at_it() {
    let (mut r, on, left) = grown(80, 24);
    let fork = |r: &mut Robot, steps: &str, entry| {
        r.clear().run(steps);
        let fork = CommandBody::Session(SessionCommand::Fork { entry });
        assert!(r.commands().contains(&&fork), "{steps}: {:?}", r.commands());
    };
    fork(&mut r, "alt-5; g; f", on[0]);
    fork(&mut r, "alt-5; g; down; f", left[0]);
    // At its end it goes on.
    fork(&mut r, "alt-5; g; down; down; f", left[3]);
    r.run("alt-5; enter");
    assert_eq!(r.app.layers.len(), 1, "{}", r.screen());
    assert!(r.screen().contains("Tree"), "{}", r.screen());
}

/// The branch that was opened before the first message has no entry yet: no turn of another branch is the present one.
#[test]
fn a_branch_without_entries_has_no_present_turn() {
    let (mut r, on, left) = grown(80, 24);
    let session = r.app.model.main_session().unwrap();
    let mut tree = SessionTree { session, ..tree(&on, &left) };
    tree.heads[0].current = false;
    tree.heads.push(TreeHead { name: "c".into(), node: None, current: true, ..tree.heads[0].clone() });
    let e = Script::new().snapshot(Vec::new(), 0, false);
    r.msg(Msg::Engine(Box::new(e)));
    r.clear();
    r.event(EventBody::State(StateEvent::HeadMoved { head: None, draft: None, branch: Default::default() }));
    serve(&mut r, &tree, &[(on[0], "question 0"), (on[2], "question 1"), (on[4], "question 2")]);
    let screen = r.screen();
    assert!(screen.contains("○ question 2") && !screen.contains("now"), "{screen}");
}
