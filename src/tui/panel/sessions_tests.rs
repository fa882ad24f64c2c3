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
                TreeQuery::Nodes { .. } => TreeReply::Nodes { tree: std::sync::Arc::new(tree.clone()) },
                TreeQuery::Marks { session } => {
                    let within = |w: &&(EntryId, &str)| w.1.starts_with("(in a turn)");
                    let seq = |w: &(EntryId, &str)| tree.nodes.iter().find(|n| n.id == w.0).map(|n| n.seq);
                    let within: Vec<i64> = words.iter().filter(within).filter_map(seq).collect();
                    let files = if within.is_empty() { vec![(0, 3), (2, 1)] } else { vec![(0, 4)] };
                    let marks = TreeMarks { files, failed: Vec::new(), within };
                    TreeReply::Marks { session, marks }
                }
                TreeQuery::Lines { .. } => {
                    let line = |(entry, text): &(EntryId, &str)| TreeLine {
                        entry: *entry,
                        text: (*text).to_owned(),
                        origin: text.starts_with("(in a turn)").then_some(Origin::Steer),
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
    let tree = of_main(&r, &on, &left);
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
        if width == 80 {
            assert!(line("├─○ try it").contains("try it with a library\\x1b[2J"), "{screen}");
        }
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
    assert_eq!(trees(&r), 1);
    let mut r = Robot::new(80, 24);
    path(&mut r, &mut Script::new(), 2);
    r.clear().turn_done();
    assert_eq!(trees(&r), 0);
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
    let mut tree = of_main(&r, &on, &left);
    tree.heads[0].current = false;
    tree.heads.push(TreeHead { name: "c".into(), node: None, current: true, ..tree.heads[0].clone() });
    let e = Script::new().snapshot(Vec::new(), 0, false);
    r.msg(Msg::Engine(Box::new(e)));
    moved(&mut r, &tree, &[(on[0], "question 0"), (on[2], "question 1"), (on[4], "question 2")]);
    let screen = r.screen();
    assert!(screen.contains("○ question 2") && !screen.contains("now"), "{screen}");
}

fn moved(r: &mut Robot, tree: &SessionTree, words: &[(EntryId, &str)]) {
    r.clear();
    r.event(EventBody::State(StateEvent::HeadMoved { head: None, draft: None, branch: Default::default() }));
    serve(r, tree, words);
}

/// Requests for a tree that were sent since the last [`Robot::clear`].
fn trees(r: &Robot) -> usize {
    let nodes =
        |c: &&CommandBody| matches!(c, CommandBody::Query(Query::Tree { query: TreeQuery::Nodes { .. } }));
    r.commands().into_iter().filter(nodes).count()
}

fn of_main(r: &Robot, on: &[EntryId], left: &[EntryId]) -> SessionTree {
    SessionTree { session: r.app.model.main_session().unwrap(), ..tree(on, left) }
}

#[test]
fn a_large_tree_is_read_again_when_the_person_goes_to_it() {
    let (mut r, on, left) = grown(118, 32);
    let mut tree = of_main(&r, &on, &left);
    let last = tree.nodes[tree.nodes.len() - 1];
    for n in 0..5_001_u32 {
        let id = format!("{:032x}", 70_000 + n).parse().unwrap();
        tree.nodes.push(TreeNode { id, seq: last.seq + 1 + i64::from(n), parent: Some(1), ..last });
    }
    moved(&mut r, &tree, &[]);
    r.run("alt-0").clear().turn_done();
    assert_eq!(trees(&r), 0);
    r.run("alt-5; wait 0");
    assert_eq!(trees(&r), 1);
}

#[test]
fn a_tree_that_is_not_drawn_is_not_read() {
    let (mut r, ..) = grown(118, 32);
    // It was seen and had the focus: both are over.
    r.run("alt-0").clear().turn_done();
    assert_eq!(trees(&r), 0, "{}", r.screen());
    r.run("alt-5; wait 0");
    assert_eq!(trees(&r), 1, "{}", r.screen());
}

#[test]
fn an_answer_that_was_missed_is_asked_for_again() {
    let (mut r, ..) = grown(118, 32);
    r.clear().turn_done();
    assert_eq!(trees(&r), 1);
    r.clear().of("main/a1", None, EventBody::State(StateEvent::Lagged { missed: 9 }));
    assert_eq!(trees(&r), 1);
}

/// Main's tree is drawn, and the agent a1 is on the screen.
fn away() -> Robot {
    let (mut r, ..) = grown(118, 32);
    let id = tiller_protocol::AgentId("main/a1".into());
    let session = Some(format!("{:032x}", 55).parse().unwrap());
    let child = tiller_protocol::ChildView { session, ..Default::default() };
    let view = tiller_protocol::AgentView {
        parent: id.parent(),
        id: id.clone(),
        child: Some(Box::new(child)),
        ..Default::default()
    };
    r.of("main/a1", None, EventBody::State(StateEvent::AgentChanged { view }));
    r.app.show_agent(&id);
    r.run("wait 0");
    assert!(r.app.model.shown.is_some());
    r
}

#[test]
fn what_main_did_while_another_agent_was_shown_is_read() {
    let mut r = away();
    r.turn_done().turn_done().clear();
    r.app.show_agent(&tiller_protocol::AgentId::main());
    r.run("alt-5; wait 0");
    assert_eq!(trees(&r), 1);
    assert!(r.screen().contains("○ try it"), "what is known stands there: {}", r.screen());
}

#[test]
fn a_session_that_was_opened_while_another_agent_was_shown_has_its_own_tree() {
    let mut r = away();
    let mut s = Script::new();
    let node = s.user("a new beginning");
    let EventBody::Reply(mut reply) = s.snapshot(vec![node], 0, false).body else { unreachable!() };
    if let ReplyEvent::SnapshotReply { snapshot } = reply.as_mut() {
        snapshot.session.id = format!("{:032x}", 77).parse().unwrap();
    }
    r.clear().of("main", None, EventBody::Reply(reply));
    assert!(r.app.model.shown.is_none());
    r.run("alt-5; wait 0");
    let screen = r.screen();
    assert!(screen.contains("● a new beginning") && !screen.contains("○ try it"), "{screen}");
    assert_eq!(trees(&r), 1);
}

/// A message in the middle of a turn begins none.
#[test]
fn figures_stand_where_the_turn_begins() {
    let (mut r, on, left) = grown(80, 24);
    let tree = of_main(&r, &on, &left);
    moved(&mut r, &tree, &[(on[2], "(in a turn) question 1")]);
    let screen = r.screen();
    let line = |text: &str| screen.lines().find(|l| l.contains(text)).unwrap();
    assert!(line("question 0").contains("$0.12") && line("question 0").contains("4 files"), "{screen}");
    assert!(line("question 1").contains('↳'), "it is no turn: {screen}");
    assert!(!line("question 1").contains('$') && !line("question 1").contains("file"), "{screen}");
    assert!(line("question 2").contains("$0.09") && line("question 2").contains("now"), "{screen}");
    // The present turn is the one that it steered.
    moved(&mut r, &tree, &[(on[2], "(in a turn) question 1"), (on[4], "(in a turn) question 2")]);
    let screen = r.screen();
    let line = |text: &str| screen.lines().find(|l| l.contains(text)).unwrap();
    assert!(line("question 0").contains("$0.21") && line("question 0").contains("now"), "{screen}");
    assert!(!line("question 2").contains("now"), "{screen}");
}

#[test]
fn an_archived_branch_names_no_row() {
    let (mut r, on, left) = grown(80, 24);
    let mut tree = of_main(&r, &on, &left);
    tree.heads[1].label = "library".into();
    moved(&mut r, &tree, &[]);
    assert!(r.screen().contains("another library library"), "{}", r.screen());
    tree.heads[1].label = "shelved".into();
    tree.heads[1].archived = true;
    moved(&mut r, &tree, &[]);
    assert!(!r.screen().contains("shelved") && !r.screen().contains("try it"), "{}", r.screen());
    assert!(r.screen().contains("question 0"), "{}", r.screen());
}

#[test]
fn no_lane_leads_to_the_session_of_an_agent() {
    let (mut r, on, left) = grown(80, 24);
    let before = r.screen();
    let mut tree = of_main(&r, &on, &left);
    tree.spawned.push(tiller_protocol::tree::TreeSpawned {
        session: format!("{:032x}", 55).parse().unwrap(),
        node: 3,
        title: "the task".into(),
        agent: None,
        state: None,
        time: None,
        entries: 3,
        tokens: 0,
        cost: None,
        files: 0,
    });
    moved(&mut r, &tree, &[]);
    assert_eq!(r.screen(), before);
}

#[test]
fn the_key_at_the_end_of_a_branch_that_was_left_says_that_it_goes_on() {
    let (mut r, ..) = grown(118, 32);
    r.run("alt-5; g; down; down");
    assert!(r.footer().contains("go on here"), "{}", r.footer());
    r.run("g");
    assert!(r.footer().contains("fork here"), "{}", r.footer());
}
