//! The list of branches, driven by the robot.

use tiller_protocol::{BranchName, EntryId, SeqIds, Time};

use super::*;
use crate::testing::{Robot, START};

fn rows() -> Vec<BranchView> {
    let ids = SeqIds::default();
    let row = |head: &str, label: &str, words: &str, hours: i64| BranchView {
        name: BranchName { head: head.into(), label: label.into() },
        entry: Some(EntryId::fresh(&ids, START)),
        time: Some(Time(START.0 - hours * 3_600_000)),
        archived: head == "branch-3",
        open: head == "main",
        open_in: (head == "branch-2").then(|| "4711".into()),
        words: words.into(),
    };
    vec![
        row("branch-2", "plan b", "with a library", 5),
        row("branch-3", "", "an old\u{1b}[31m idea", 30),
        row("branch-4", "", "by hand", 1),
        row("main", "", "make it retry", 2),
    ]
}

fn opened(w: u16, h: u16) -> Robot {
    let mut r = Robot::new(w, h);
    r.run("type /branch; enter");
    // The list of commands asks for the prompts of servers and for commands from files when it opens.
    let own = Query::Skills { query: tiller_protocol::skill::SkillQuery::Commands };
    let queries = [Query::Mcp, own, Query::Branches].map(CommandBody::Query);
    assert_eq!(r.commands(), queries.iter().collect::<Vec<_>>());
    r.reply(ReplyEvent::BranchesReply { branches: rows(), tags: Vec::new() });
    r.clear();
    r
}

fn sent(r: &Robot) -> Vec<SessionCommand> {
    let session = |c: &CommandBody| match c {
        CommandBody::Session(s) => Some(s.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(session).collect()
}

#[test]
fn looks_well() {
    for (w, h) in [(118, 25), (80, 24)] {
        insta::assert_snapshot!(format!("branches_at_{w}x{h}"), opened(w, h).screen());
    }
}

/// Answers with so many files that differ from the end of that branch.
fn preview(r: &mut Robot, files: usize) {
    let entry = rows()[2].entry.unwrap();
    let asked =
        r.asked(|c| matches!(c, CommandBody::Query(Query::RestorePreview { entry: e }) if *e == entry));
    let file = |n: usize| tiller_protocol::RestoreFile {
        path: format!("src/f{n}.rs"),
        kind: tiller_protocol::ChangeKind::Modified,
        added: 1,
        removed: 1,
        diff: "@@ -1 +1 @@\n-a\n+b\n".into(),
        conflict: None,
    };
    let preview = tiller_protocol::RestorePreview {
        title: "by hand".into(),
        time: Some(START),
        files: (0..files).map(file).collect(),
        ..tiller_protocol::RestorePreview::default()
    };
    let reply = ReplyEvent::RestorePreviewReply { entry, preview };
    r.cause(asked, EventBody::Reply(Box::new(reply)));
}

#[test]
fn enter_says_that_the_files_stay_and_a_second_one_goes_there() {
    let mut r = opened(118, 25);
    r.run("down; enter");
    assert!(sent(&r).is_empty(), "nothing moved yet: {:?}", sent(&r));
    assert!(r.words().contains("stay as they are"), "{}", r.screen());
    preview(&mut r, 2);
    assert!(
        r.words().contains("2 files that differ can be restored too")
            && r.words().contains("end of that branch"),
        "{}",
        r.screen()
    );
    assert!(
        r.footer().contains("Enter open, keep files") && r.footer().contains("f open, restore files"),
        "{}",
        r.footer()
    );
    r.run("enter");
    assert_eq!(sent(&r), [SessionCommand::OpenBranch { head: "branch-4".into() }]);
    assert!(r.app.layers.is_empty());
    let mut r = opened(118, 25);
    r.run("enter");
    assert!(sent(&r).is_empty() && r.app.layers.is_empty());
}

#[test]
fn the_files_of_the_branch_come_along_when_they_are_asked_for() {
    let entry = rows()[2].entry.unwrap();
    let mut r = opened(80, 24);
    r.run("down; enter");
    r.run("f");
    assert!(sent(&r).is_empty(), "not before they are compared");
    preview(&mut r, 2);
    r.run("down; space; f; f");
    assert_eq!(sent(&r), [SessionCommand::OpenBranch { head: "branch-4".into() }], "the branch first, once");
    let went = r.asked(|c| matches!(c, CommandBody::Session(SessionCommand::OpenBranch { .. })));
    r.clear();
    let moved = tiller_protocol::event::StateEvent::HeadMoved {
        head: Some(entry),
        draft: None,
        branch: BranchName { head: "branch-4".into(), label: String::new() },
    };
    r.cause(went, EventBody::State(moved));
    let restore = SessionCommand::Restore {
        entry,
        what: tiller_protocol::RestoreWhat::Files,
        keep: vec!["src/f1.rs".into()],
        force: Vec::new(),
        parts: Vec::new(),
    };
    assert_eq!(sent(&r), [restore], "{}", r.screen());
    let asked = r.asked(|c| matches!(c, CommandBody::Session(SessionCommand::Restore { .. })));
    let done = ReplyEvent::DoneReply { said: "1 file is as it was".into() };
    r.cause(asked, EventBody::Reply(Box::new(done)));
    assert!(r.words().contains("/undo reverts it") && r.app.layers.is_empty(), "{}", r.screen());
}

#[test]
fn names_archives_and_begins_anew() {
    let mut r = opened(118, 25);
    r.run("down; ctrl-x r; type by hand; enter");
    let label =
        SessionCommand::LabelBranch { session: None, head: "branch-4".into(), label: "by hand".into() };
    assert_eq!(sent(&r), [label]);
    r.clear().run("ctrl-x x");
    assert_eq!(
        sent(&r),
        [SessionCommand::ArchiveBranch { session: None, head: "branch-4".into(), archived: true }]
    );
    assert!(!r.screen().contains("an old"), "{}", r.screen());
    r.clear().run("ctrl-t; type old; ctrl-x x");
    assert_eq!(
        sent(&r),
        [SessionCommand::ArchiveBranch { session: None, head: "branch-3".into(), archived: false }]
    );
    let mut r = opened(118, 25);
    r.run("ctrl-x x");
    assert!(sent(&r).is_empty() && r.screen().contains("This is the current branch"), "{}", r.screen());
    r.run("ctrl-x f");
    assert_eq!(sent(&r), [SessionCommand::Fork { entry: rows()[3].entry.unwrap() }]);
}

#[test]
fn a_summary_comes_over_with_or_without_a_wish() {
    let from = rows()[2].entry.unwrap();
    for (keys, focus) in [("enter", None), ("type the error; enter", Some("the error".to_owned()))] {
        let mut r = opened(80, 24);
        r.run("down; ctrl-x s").run(keys);
        assert_eq!(sent(&r), [SessionCommand::CarryOver { from, focus }]);
        assert!(r.app.layers.is_empty());
    }
}

#[test]
fn the_command_names_the_open_branch() {
    let mut r = Robot::new(80, 24);
    r.run("type /branch plan a; enter");
    assert!(sent(&r).is_empty(), "nothing is open yet: {:?}", sent(&r));
    r.run("ctrl-u");
    r.app.model.agent.session.branch = BranchName { head: "main".into(), label: String::new() };
    r.run("type /branch plan a; enter");
    assert_eq!(
        sent(&r),
        [SessionCommand::LabelBranch { session: None, head: "main".into(), label: "plan a".into() }]
    );
}
