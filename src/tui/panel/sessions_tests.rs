//! The session tree, driven by the robot.

use super::*;
use crate::app::msg::Msg;
use crate::model::conversation::script::{Script, text};
use crate::testing::Robot;
use tiller_protocol::StopReason;

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

/// A branch that was left is listed where the path went another way, and one key goes back to it.
#[test]
fn branches_that_were_left_are_in_the_tree_and_one_can_go_back() {
    use tiller_protocol::command::Query;
    use tiller_protocol::event::ReplyEvent;
    use tiller_protocol::op::{Op, OpChange};
    use tiller_protocol::{IdSource, OpId, SeqIds};

    let mut r = Robot::new(80, 24);
    let mut s = Script::new();
    let ids = path(&mut r, &mut s, 3);
    // Two entries that are not on this path, after the first turn's answer.
    let from =
        r.app.model.agent.conversation.cells().iter().filter_map(|c| c.entry).find(|e| *e != ids[0]).unwrap();
    let said = s.user("try it with a library");
    let tip = s.assistant(vec![text("the library does it")], StopReason::EndTurn);
    r.clear().event(EventBody::State(StateEvent::HeadMoved {
        head: None,
        draft: None,
        branch: Default::default(),
    }));
    let op = Op {
        id: OpId(SeqIds::default().next(crate::testing::START)),
        session: said.session,
        time: crate::testing::START,
        parent: None,
        cause: None,
        title: "fork".into(),
        of: None,
        with: None,
        change: OpChange::Head { name: "b".into(), before: Some(tip.id), after: Some(from), from: None },
    };
    let asked = r.asked(|c| matches!(c, CommandBody::Query(Query::Ops { .. })));
    r.cause(
        asked,
        EventBody::Reply(Box::new(ReplyEvent::OpsReply { ops: vec![op], undo: None, redo: None })),
    );
    let asked = r.asked(|c| *c == CommandBody::Query(Query::Page { before: tip.id, count: 100 }));
    let page = ReplyEvent::PageReply { entries: vec![said], earlier: 0, turns: Vec::new() };
    r.cause(asked, EventBody::Reply(Box::new(page)));
    r.run("alt-5");
    let screen = r.screen();
    let row = |text: &str| screen.lines().position(|l| l.contains(text)).expect(text);
    assert_eq!(row("├─○ try it with a library"), row("● question 0") + 1, "{screen}");
    assert_eq!(row("● question 1"), row("● question 0") + 2, "{screen}");
    r.clear().run("g; down; f");
    let fork = CommandBody::Session(SessionCommand::Fork { entry: tip.id });
    assert_eq!(r.commands(), [&fork]);
    r.run("alt-5; enter");
    assert!(r.screen().contains("A branch that you left"), "{}", r.screen());
}
