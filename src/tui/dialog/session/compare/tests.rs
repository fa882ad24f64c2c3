//! Two branches side by side, driven by the robot.

use tiller_protocol::compare::Side;
use tiller_protocol::{BranchName, BranchView, ToolOutcome};

use super::*;
use crate::testing::Robot;

fn open(w: u16, h: u16) -> Robot {
    let mut r = Robot::new(w, h);
    let made = sample();
    let (pair, compared) = (made.pair.clone(), made.compared.unwrap());
    r.push(Box::new(Compare::of(pair.clone())));
    r.reply(ReplyEvent::CompareReply { pair, compared: Box::new(compared) });
    r.clear();
    r
}

fn sent(r: &Robot) -> Vec<CompareCommand> {
    let all = r.commands().into_iter().filter_map(|c| match c {
        CommandBody::Compare(c) => Some(c.clone()),
        _ => None,
    });
    all.collect()
}

fn ran(exit: i32, tail: &str) -> SideRun {
    SideRun { name: "x".into(), outcome: ToolOutcome::Ok, exit: Some(exit), seconds: 1.24, tail: tail.into() }
}

#[test]
fn looks_well() {
    for (w, h) in [(118, 25), (80, 24)] {
        let mut r = open(w, h);
        insta::assert_snapshot!(format!("compare_files_at_{w}x{h}"), r.screen());
        r.run("tab");
        insta::assert_snapshot!(format!("compare_talk_at_{w}x{h}"), r.screen());
    }
}

#[test]
fn a_hunk_and_a_file_are_taken_and_a_conflict_is_shown() {
    let mut r = open(118, 25);
    r.run("t");
    let [CompareCommand::Take { parts, .. }] = &sent(&r)[..] else { panic!("{:?}", sent(&r)) };
    let hunk = parts[0].hunk.clone().unwrap();
    assert!(hunk.contains("@@ -1,3 +1,3 @@\n fn wait() {\n-    sleep(1)\n+"), "{hunk}");
    r.clear();
    r.run("T");
    let [CompareCommand::Take { parts, .. }] = &sent(&r)[..] else { panic!("{:?}", sent(&r)) };
    assert_eq!(parts[..], [TakePart { path: "src/client.rs".into(), hunk: None }]);
    let not = TakeConflict {
        path: "src/client.rs".into(),
        why: "both sides changed the same lines".into(),
        marked: "<<<<<<< ours\nmine\u{1b}[31m\n=======\ntheirs\n>>>>>>> theirs\n".into(),
    };
    r.reply(ReplyEvent::TakeReply { said: "Nothing was taken".into(), conflicts: vec![not] });
    let screen = r.screen();
    assert!(screen.contains("! src/client.rs") && screen.contains("Not taken: both sides"), "{screen}");
    assert!(screen.contains("<<<<<<< ours") && !screen.contains('\u{1b}'), "{screen}");
    r.clear();
    r.run("z");
    let undo = CommandBody::Session(SessionCommand::UndoOp { redo: false });
    assert!(r.commands().into_iter().any(|c| *c == undo));
}

#[test]
fn a_command_runs_on_both_and_stands_side_by_side() {
    for (w, h) in [(118, 25), (80, 24)] {
        let mut r = open(w, h);
        r.run("!; type make; enter");
        assert!(
            matches!(&sent(&r)[..], [CompareCommand::Run { line, .. }] if line == "make"),
            "{:?}",
            sent(&r)
        );
        assert!(r.screen().contains("Running"), "{}", r.screen());
        let (left, right) = (ran(0, "3 passed\n"), ran(2, "1 failed\u{1b}]0;x\u{7}\n"));
        r.reply(ReplyEvent::CompareRunReply { line: "make".into(), left, right, notes: Vec::new() });
        let screen = r.screen();
        assert!(screen.contains("exit 0 after 1.2 s") && screen.contains("3 passed"), "{screen}");
        if w < 90 {
            assert!(!screen.contains("exit 2"), "{screen}");
            r.run("|");
        }
        let screen = r.screen();
        assert!(screen.contains("exit 2 after 1.2 s") && screen.contains("1 failed"), "{screen}");
        assert!(!screen.contains('\u{1b}'));
    }
}

#[test]
fn the_other_branch_is_picked_and_the_sides_exchanged() {
    let mut r = Robot::new(118, 25);
    r.app.model.agent.session.branch = BranchName { head: "main".into(), label: String::new() };
    r.run("type /compare; enter");
    let branch = |head: &str, open: bool, words: &str| BranchView {
        name: BranchName { head: head.into(), label: String::new() },
        entry: Some(tiller_protocol::EntryId(Default::default())),
        open,
        words: words.into(),
        ..BranchView::default()
    };
    let branches = vec![branch("main", true, "way b"), branch("branch-1", false, "way a")];
    r.reply(ReplyEvent::BranchesReply { branches, tags: Vec::new() });
    assert!(r.screen().contains("way a") && !r.screen().contains("way b"), "{}", r.screen());
    r.clear();
    r.run("enter");
    let side = |head: &str| Side::Branch(head.into());
    let look = |l: &str, r: &str| {
        CommandBody::Query(Query::Compare { pair: Pair { left: side(l), right: side(r) } })
    };
    assert!(r.commands().into_iter().any(|c| *c == look("main", "branch-1")), "{:?}", r.commands());
    r.clear();
    r.run("x");
    assert!(r.commands().into_iter().any(|c| *c == look("branch-1", "main")), "{:?}", r.commands());
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut r = Robot::new(80, 24);
    r.push(Box::new(Compare::of(sample().pair)));
    let notice = Notice::new(NoticeKind::User, "nothing was said on main yet");
    r.reply(ReplyEvent::ErrorReply { notice });
    assert!(r.screen().contains("Cannot compare: nothing was said on main yet"), "{}", r.screen());
    r.run("q");
    assert!(!r.screen().contains("cannot be compared"));
}
