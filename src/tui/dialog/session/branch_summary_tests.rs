//! The question about another branch, driven by the robot.

use tiller_protocol::EventBody;
use tiller_protocol::event::StateEvent;

use super::*;
use crate::testing::Robot;

fn left(w: u16, h: u16, how: BranchSummary) -> Robot {
    let mut r = Robot::new(w, h);
    std::sync::Arc::make_mut(&mut r.app.model.ui).branch_summary = how;
    let name = BranchName { head: "main".into(), label: "by a\u{1b}[31m library".into() };
    r.event(EventBody::State(StateEvent::BranchLeft { from: EntryId(Default::default()), name, entries: 7 }));
    r
}

fn sent(r: &Robot) -> Vec<SessionCommand> {
    let all = r.commands().into_iter().filter_map(|c| match c {
        CommandBody::Session(s) => Some(s.clone()),
        _ => None,
    });
    all.collect()
}

fn summary(focus: Option<&str>) -> SessionCommand {
    SessionCommand::CarryOver { from: EntryId(Default::default()), focus: focus.map(Into::into) }
}

#[test]
fn looks_well() {
    for (w, h) in [(118, 25), (80, 24)] {
        insta::assert_snapshot!(format!("leave_at_{w}x{h}"), left(w, h, BranchSummary::Ask).screen());
    }
}

#[test]
fn enter_is_no_and_a_summary_takes_two_keys() {
    for keys in ["enter", "esc"] {
        let mut r = left(80, 24, BranchSummary::Ask);
        r.run(keys);
        assert!(sent(&r).is_empty() && !r.screen().contains("Summarize the branch"), "{}", r.screen());
    }
    let mut r = left(80, 24, BranchSummary::Ask);
    r.run("tab enter");
    assert_eq!(sent(&r), [summary(None)]);
    let mut r = left(80, 24, BranchSummary::Ask);
    r.run("right right enter; type what broke; enter");
    assert_eq!(sent(&r), [summary(Some("what broke"))]);
    let mut r = left(80, 24, BranchSummary::Ask);
    r.run("left enter; type x; esc");
    assert!(sent(&r).is_empty() && r.screen().contains("[with instructions]"), "{}", r.screen());
}

#[test]
fn who_goes_on_typing_is_not_held_up() {
    let mut r = left(80, 24, BranchSummary::Ask);
    r.run("type as before");
    let screen = r.screen();
    assert!(screen.contains("as before") && !screen.contains("Summarize the branch"), "{screen}");
    assert!(sent(&r).is_empty());
}

#[test]
fn it_can_be_switched_off_or_done_always() {
    let r = left(80, 24, BranchSummary::Never);
    assert!(sent(&r).is_empty() && !r.screen().contains("Summarize the branch"));
    let r = left(80, 24, BranchSummary::Always);
    assert_eq!(sent(&r), [summary(None)]);
}

#[test]
fn it_goes_when_the_person_is_somewhere_else() {
    let mut r = left(80, 24, BranchSummary::Ask);
    let branch = BranchName { head: "main".into(), label: String::new() };
    r.event(EventBody::State(StateEvent::HeadMoved { head: None, draft: None, branch }));
    assert!(!r.screen().contains("Summarize the branch"), "{}", r.screen());
}

#[test]
fn instructions_that_were_begun_come_back_with_up() {
    let branch = BranchName { head: "main".into(), label: String::new() };
    let moved = EventBody::State(StateEvent::HeadMoved { head: None, draft: None, branch });
    for by_event in [false, true] {
        let mut r = left(80, 24, BranchSummary::Ask);
        r.run("left enter; type what broke");
        if by_event {
            r.event(moved.clone());
        } else {
            r.run("esc; esc");
        }
        assert!(!r.screen().contains("what broke"), "{}", r.screen());
        r.run("up");
        r.reply(tiller_protocol::event::ReplyEvent::HistoryReply { prompts: Vec::new() });
        assert!(r.screen().contains("what broke"), "{}", r.screen());
    }
}
