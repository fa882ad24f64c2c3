//! The browser, driven by the robot.

use tiller_protocol::command::{Query, SessionCommand};
use tiller_protocol::compare::{Pair, Side};
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::restore::RestoreFile;
use tiller_protocol::tree::{EntryPreview, SessionTree, TreeMarks, TreeQuery, TreeReply};
use tiller_protocol::{
    ChangeKind, CommandBody, CommandId, Cost, ModelRef, Notice, NoticeKind, Origin, SessionSummary, Time,
};

use super::*;
use crate::testing::{Robot, START};

fn summary(n: u32, title: &str, ago: i64) -> SessionSummary {
    SessionSummary {
        id: format!("{n:032x}").parse().unwrap(),
        title: title.into(),
        project: "/home/ann/api".into(),
        created: START,
        used: Time(START.0 - ago * 3_600_000),
        entries: 11,
        model: ModelRef("vendor/model-x".into()),
        cost: Some(Cost(1_230_000)),
        archived: n == 3,
        exec: false,
        open_in: None,
        interrupted: None,
        preview: String::new(),
        git_branch: String::new(),
    }
}

fn bushy() -> SessionTree {
    let parents =
        [None, Some(0), Some(1), Some(2), Some(3), Some(2), Some(1), Some(6), Some(1), Some(8), Some(9)];
    let mut tree = forest::made("uauauuuatau", &parents, 10);
    let mut side = tree.heads[0].clone();
    (side.name, side.label, side.node, side.current) = ("branch-1".into(), "plan b".into(), Some(5), false);
    tree.heads.push(side);
    tree.tags.push(tiller_protocol::tree::TreeTag { name: "good".into(), node: 6 });
    tree
}

/// Returns what is asked and not answered yet.
fn pending(r: &Robot) -> Vec<(CommandId, TreeQuery)> {
    let query = |(id, c): (CommandId, CommandBody)| match c {
        CommandBody::Query(Query::Tree { query }) => Some((id, query)),
        _ => None,
    };
    r.sent().into_iter().filter_map(query).collect()
}

/// The engine's part: answers everything until nothing is asked.
fn serve(r: &mut Robot) {
    serve_with(r, &answer);
}

fn serve_with(r: &mut Robot, answer: &dyn Fn(&TreeQuery) -> TreeReply) {
    for _ in 0..20 {
        let asked = pending(r);
        if asked.is_empty() {
            return;
        }
        r.clear();
        for (id, query) in asked {
            let reply = answer(&query);
            r.cause(Some(id), EventBody::Reply(Box::new(ReplyEvent::TreeReply { reply })));
        }
    }
    panic!("it asks again and again");
}

fn answer(query: &TreeQuery) -> TreeReply {
    let tree = bushy();
    match query {
        TreeQuery::Nodes { session } => {
            let mut tree = bushy();
            tree.session = session.unwrap();
            tree.title.clear();
            TreeReply::Nodes { tree: std::sync::Arc::new(tree) }
        }
        TreeQuery::Marks { session } => {
            let marks = TreeMarks { files: vec![(10, 3), (18, 1)], failed: vec![18], within: Vec::new() };
            TreeReply::Marks { session: *session, marks }
        }
        TreeQuery::Lines { entries } => {
            let line = |e: &EntryId| {
                let n = tree.nodes.iter().position(|n| n.id == *e).unwrap();
                TreeLine { entry: *e, text: format!("words of entry {n}\u{1b}[2J"), origin: None, call: None }
            };
            TreeReply::Lines { lines: entries.iter().map(line).collect() }
        }
        TreeQuery::Find { text, everywhere } => {
            let session = "00000000000000000000000000000001".parse().unwrap();
            let seqs = if text == "none" { vec![] } else { vec![13, 17] };
            let sessions = if seqs.is_empty() { vec![] } else { vec![(session, seqs)] };
            let found = TreeFound { sessions, more: false, behind: 0 };
            TreeReply::Find { text: text.clone(), everywhere: *everywhere, found }
        }
        TreeQuery::Preview { entry } => {
            let file = RestoreFile {
                path: "src/client.rs".into(),
                kind: ChangeKind::Modified,
                added: 1,
                removed: 1,
                diff: "--- a/src/client.rs\n+++ b/src/client.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n".into(),
                conflict: None,
            };
            let preview = EntryPreview {
                entry: *entry,
                text: format!("All of entry {entry}.\n\nMore of it."),
                cut: false,
                files: vec![file],
                more: 0,
                notes: Vec::new(),
            };
            TreeReply::Preview { preview: Box::new(preview) }
        }
    }
}

/// The browser over the first session, with everything answered.
fn opened(w: u16, h: u16) -> Robot {
    opened_with(w, h, &answer)
}

fn opened_with(w: u16, h: u16, answer: &dyn Fn(&TreeQuery) -> TreeReply) -> Robot {
    let mut r = Robot::new(w, h);
    r.app.model.agent.session.summary = Some(summary(1, "retry work", 0));
    r.run("ctrl-x T");
    let rows = vec![summary(1, "retry work", 0), summary(2, "the parser", 30), summary(3, "old", 60)];
    let list = r.asked(|c| matches!(c, CommandBody::Query(Query::Sessions { .. })));
    r.cause(list, EventBody::Reply(Box::new(ReplyEvent::SessionsReply { sessions: rows })));
    serve_with(&mut r, answer);
    r.clear();
    r
}

/// It has a row, and the figures stand where the turn begins.
#[test]
fn a_message_that_steers_is_part_of_its_turn() {
    let steered = bushy().nodes[2].id;
    let answer = |query: &TreeQuery| match answer(query) {
        TreeReply::Marks { session, marks } => {
            TreeReply::Marks { session, marks: TreeMarks { within: vec![12], ..marks } }
        }
        TreeReply::Lines { mut lines } => {
            for line in lines.iter_mut().filter(|line| line.entry == steered) {
                line.origin = Some(Origin::Steer);
            }
            TreeReply::Lines { lines }
        }
        other => other,
    };
    let r = opened_with(220, 40, &answer);
    let screen = r.screen();
    let row = |text: &str| screen.lines().find(|l| l.contains(text)).unwrap_or_else(|| panic!("{screen}"));
    assert!(row("words of entry 2").contains("↳ (steer) words of entry 2"), "{screen}");
    assert!(row("words of entry 0").contains("20"), "the tokens of both replies: {screen}");
    assert!(!row("words of entry 2").contains('$'), "{screen}");
}

/// All answers are here before the frame from which on it is known that there is room for the preview.
#[test]
fn a_preview_that_a_frame_makes_room_for_is_requested_by_itself() {
    let mut r = opened(80, 24);
    r.run("size 118x25");
    assert!(r.screen().contains("Loading"), "{}", r.screen());
    r.run("wait 1");
    let previews = pending(&r).into_iter().filter(|(_, q)| matches!(q, TreeQuery::Preview { .. }));
    assert_eq!(previews.count(), 1, "without a key");
    serve(&mut r);
    assert!(r.screen().contains("All of entry"), "{}", r.screen());
    r.run("wait 1000");
    assert!(pending(&r).is_empty(), "and only once");
    // Its code is highlighted on another thread, in real time.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(90);
    while r.app.sleep().is_some() && std::time::Instant::now() < end {
        std::thread::park_timeout(std::time::Duration::from_millis(10));
        r.run("wait 40");
    }
    assert_eq!(r.app.sleep(), None);
}

fn commands(r: &Robot) -> Vec<SessionCommand> {
    let command = |c: &CommandBody| match c {
        CommandBody::Session(s) => Some(s.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(command).collect()
}

#[test]
fn looks_well() {
    for (w, h) in [(118, 25), (80, 24), (60, 20)] {
        let mut r = opened(w, h);
        insta::assert_snapshot!(format!("tree_at_{w}x{h}"), r.screen());
        r.run("p");
        serve(&mut r);
        insta::assert_snapshot!(format!("tree_at_{w}x{h}_other_preview"), r.screen());
    }
}

#[test]
fn it_opens_where_the_person_is_and_moves_as_lists_do() {
    let mut r = opened(80, 24);
    let row = |r: &Robot| {
        let at = r.cursor().unwrap();
        r.screen().lines().nth(usize::from(at.y)).unwrap().to_owned()
    };
    assert!(row(&r).contains("words of entry 10") && row(&r).contains("now"), "{}", r.screen());
    r.run("g");
    assert!(row(&r).contains("retry work"));
    r.run("j");
    assert!(row(&r).contains("words of entry 0"));
    r.run("N");
    serve(&mut r);
    assert!(row(&r).contains("now"), "the names are walked in a circle: {}", r.screen());
    r.run("n");
    assert!(row(&r).contains("words of entry 2"), "{}", r.screen());
    assert!(!r.screen().contains('\u{1b}'), "what comes from a model is text");
}

#[test]
fn calls_branches_and_sessions_fold() {
    let mut r = opened(80, 24);
    assert!(!r.screen().contains("words of entry 9"));
    r.run("t");
    serve(&mut r);
    assert!(r.screen().contains("words of entry 9"), "{}", r.screen());
    r.run("t; g; j; right");
    serve(&mut r);
    assert!(r.screen().contains("words of entry 1"), "only this turn: {}", r.screen());
    assert!(!r.screen().contains("words of entry 3"));
    r.run("left; j; left");
    assert!(r.screen().contains("+3"), "the branch is folded: {}", r.screen());
    r.run("right; g; left");
    assert!(!r.screen().contains("words of entry"), "{}", r.screen());
    r.run("j; right");
    serve(&mut r);
    assert!(r.screen().contains("words of entry 10"), "another session's tree: {}", r.screen());
}

#[test]
fn words_filter_while_they_are_typed_and_escape_ends_it() {
    let mut r = opened(80, 24);
    r.run("/; type pa");
    let asked = pending(&r);
    assert_eq!(asked.len(), 1, "one question at a time: {asked:?}");
    serve(&mut r);
    let screen = r.screen();
    assert!(screen.contains("words of entry 3") && screen.contains("words of entry 7"), "{screen}");
    assert!(screen.contains("2 found") && !screen.contains("words of entry 0"), "{screen}");
    assert!(screen.contains("the parser"), "its title has the words: {screen}");
    assert!(!screen.contains(" now"), "a name goes to no row that it does not belong to: {screen}");
    r.run("enter; esc");
    serve(&mut r);
    assert!(r.screen().contains("words of entry 0") && !r.app.layers.is_empty(), "{}", r.screen());
    r.run("/; type none");
    serve(&mut r);
    assert!(r.screen().contains("nothing found"), "{}", r.screen());
    r.run("esc; esc");
    assert!(r.app.layers.is_empty());
}

#[test]
fn filters_say_what_they_leave() {
    let mut r = opened(80, 24);
    r.run("F");
    assert!(r.screen().contains("only checkpoints"), "{}", r.screen());
    assert!(r.screen().contains("#good") && !r.screen().contains("words of entry 0"), "{}", r.screen());
    r.run("F");
    assert!(r.screen().contains("only branches with file changes"));
    r.run("F");
    assert!(r.screen().contains("only errors") && r.screen().contains("✗ "), "{}", r.screen());
    r.run("F; @");
    assert!(r.screen().contains("only agent main"));
    r.run("@; A");
    assert!(r.screen().contains("including archived") && r.screen().contains("old"), "{}", r.screen());
}

#[test]
fn a_row_is_gone_on_from_branched_from_and_gone_back_to() {
    let user = |n: usize| bushy().nodes[n].id;
    let mut r = opened(80, 24);
    r.run("f");
    assert_eq!(commands(&r), [SessionCommand::Fork { entry: user(10) }]);
    assert!(r.app.layers.is_empty(), "the composer is there for the words");
    let mut r = opened(80, 24);
    r.run("R");
    assert!(
        r.commands()
            .iter()
            .any(|c| matches!(c, CommandBody::Query(Query::RestorePreview { entry }) if *entry == user(10)))
    );
    let mut r = opened(80, 24);
    r.run("g; j; j; j; j; enter");
    assert!(r.words().contains("stay as they are"), "{}", r.screen());
    r.run("enter");
    assert_eq!(commands(&r), [SessionCommand::OpenBranch { head: "branch-1".into() }], "{}", r.screen());
    // Of another session: it is opened first.
    let mut r = opened(80, 24);
    r.run("G; right");
    serve(&mut r);
    r.run("G; f");
    let id = summary(2, "", 0).id;
    assert_eq!(commands(&r), [SessionCommand::Open { id }]);
    let mut r = opened(80, 24);
    r.run("G; enter");
    assert_eq!(commands(&r), [SessionCommand::Open { id }]);
}

#[test]
fn names_are_given_and_things_put_away() {
    let mut r = opened(80, 24);
    r.run("l; type plan a; enter");
    assert_eq!(
        commands(&r),
        [SessionCommand::LabelBranch { session: None, head: "main".into(), label: "plan a".into() }]
    );
    r.clear().run("T; type works; enter");
    let entry = Some(bushy().nodes[10].id);
    assert_eq!(commands(&r), [SessionCommand::Tag { session: None, name: "works".into(), entry }]);
    r.clear().run("g; l; ctrl-u; type better; enter");
    let id = summary(1, "", 0).id;
    assert_eq!(commands(&r), [SessionCommand::Rename { id, title: "better".into() }]);
    r.clear().run("j; j; j; j; a");
    assert_eq!(
        commands(&r),
        [SessionCommand::ArchiveBranch { session: None, head: "branch-1".into(), archived: true }],
        "{}",
        r.screen()
    );
    r.clear().run("c");
    let compared = |r: &Robot| {
        r.commands().iter().find_map(|c| match c {
            CommandBody::Query(Query::Compare { pair }) => Some(pair.clone()),
            _ => None,
        })
    };
    let side = Side::Branch("branch-1".into());
    assert_eq!(compared(&r), Some(Pair { left: Side::Branch("main".into()), right: side }));
    let marked = Side::Entry(bushy().nodes[0].id);
    r.run("q").clear().run("g; j; space; n; c");
    let pair = compared(&r).unwrap();
    assert_eq!(pair.left, marked, "{}", r.screen());
    r.run("q").clear().run("g; E");
    assert!(r.screen().contains("better.md"), "{}", r.screen());
    r.run("enter");
    assert_eq!(commands(&r), [SessionCommand::Export { id, file: "better.md".into() }]);
    r.clear().run("u");
    assert_eq!(commands(&r), [SessionCommand::UndoOp { redo: false }]);
    r.clear().run("G; a");
    assert!(r.screen().contains("archived"), "{}", r.screen());
}

#[test]
fn a_session_is_thrown_away_and_taken_back_and_never_the_open_one_or_a_branch() {
    let mut r = opened(118, 25);
    let trash = |n, trashed| SessionCommand::Trash { id: summary(n, "", 0).id, trashed };
    r.run("g; x");
    assert!(r.screen().contains("The open session cannot be deleted"), "{}", r.screen());
    r.run("j; x");
    assert!(r.screen().contains("Only a whole session"), "{}", r.screen());
    assert_eq!(commands(&r), []);
    r.run("G; x");
    let screen = r.screen();
    assert!(screen.contains("in the trash") && screen.contains("x restore"), "{screen}");
    // Nothing else is done with it there.
    r.run("enter; E; l");
    assert_eq!(commands(&r), [trash(2, true)], "{}", r.screen());
    assert!(r.screen().contains("restore it first"), "{}", r.screen());
    r.run("x");
    assert_eq!(commands(&r), [trash(2, true), trash(2, false)]);
    assert!(!r.screen().contains("parser  in the trash"), "{}", r.screen());
    // What is refused stays where it was.
    r.clear().run("x");
    r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, "it is open elsewhere") });
    let screen = r.screen();
    assert!(screen.contains("It is open elsewhere") && !screen.contains("parser  in the trash"), "{screen}");
}

#[test]
fn names_and_comparisons_need_no_open_session() {
    let mut r = opened(118, 25);
    r.run("G; right");
    serve(&mut r);
    let id = summary(2, "", 0).id;
    let theirs = |r: &Robot| commands(r).into_iter().next();
    r.clear().run("j; j; l; ctrl-u; type plan z; enter");
    let Some(SessionCommand::LabelBranch { session, label, .. }) = theirs(&r) else {
        panic!("{}", r.screen())
    };
    assert_eq!((session, label.as_str()), (Some(id), "plan z"));
    // What came of it is looked up there.
    let asked = r.asked(|c| matches!(c, CommandBody::Session(SessionCommand::LabelBranch { .. })));
    r.clear().cause(asked, EventBody::Reply(Box::new(ReplyEvent::DoneReply { said: "done".into() })));
    let nodes = pending(&r).into_iter().map(|(_, q)| q).collect::<Vec<_>>();
    assert!(nodes.contains(&TreeQuery::Nodes { session: Some(id) }), "{nodes:?}");
    serve(&mut r);
    r.clear().run("T; type works; enter");
    assert!(
        matches!(theirs(&r), Some(SessionCommand::Tag { session: Some(s), .. }) if s == id),
        "{}",
        r.screen()
    );
    r.clear().run("space; k; c");
    let pair = r.commands().iter().find_map(|c| match c {
        CommandBody::Query(Query::Compare { pair }) => Some(pair.clone()),
        _ => None,
    });
    assert!(
        matches!(pair, Some(Pair { left: Side::Entry(_), right: Side::Entry(_) })),
        "{pair:?} {}",
        r.screen()
    );
}

#[test]
fn the_text_of_an_entry_is_copied() {
    let mut r = opened(80, 24);
    r.run("y");
    serve_keeping_tasks(&mut r);
    assert!(
        r.tasks
            .iter()
            .any(|t| matches!(t, crate::app::effect::Task::Copy { text, .. } if text.contains("All of")))
    );
}

/// As [`serve`], for one round, without forgetting tasks.
fn serve_keeping_tasks(r: &mut Robot) {
    for (id, query) in pending(r) {
        let reply = answer(&query);
        r.cause(Some(id), EventBody::Reply(Box::new(ReplyEvent::TreeReply { reply })));
    }
}

#[test]
fn what_changes_while_one_looks_is_read_again() {
    let mut r = opened(80, 24);
    r.event(EventBody::State(StateEvent::CheckpointCreated {
        entry: EntryId(Default::default()),
        name: "x".into(),
    }));
    let asked = pending(&r);
    assert!(asked.iter().any(|(_, q)| matches!(q, TreeQuery::Nodes { .. })), "{asked:?}");
    serve(&mut r);
    assert!(r.screen().contains("now"), "{}", r.screen());
}

#[test]
fn a_tree_that_comes_before_the_list_and_one_that_is_not_there_yet() {
    let mut r = Robot::new(80, 24);
    r.app.model.agent.session.summary = Some(summary(1, "retry work", 0));
    r.run("ctrl-x T");
    let list = r.asked(|c| matches!(c, CommandBody::Query(Query::Sessions { .. })));
    serve(&mut r);
    let rows = ReplyEvent::SessionsReply { sessions: vec![summary(1, "retry work", 0)] };
    r.cause(list, EventBody::Reply(Box::new(rows.clone())));
    serve(&mut r);
    assert!(r.screen().contains("words of entry 10"), "{}", r.screen());
    // Nothing was said yet: the store does not know the session.
    let mut r = Robot::new(80, 24);
    r.app.model.agent.session.summary = Some(summary(1, "", 0));
    r.run("ctrl-x T");
    let list = r.asked(|c| matches!(c, CommandBody::Query(Query::Sessions { .. })));
    let asked = pending(&r);
    let notice = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::User, "no such session");
    r.cause(Some(asked[0].0), EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
    r.cause(list, EventBody::Reply(Box::new(ReplyEvent::SessionsReply { sessions: Vec::new() })));
    assert!(r.screen().contains("Sessions appear here once you have sent a message"), "{}", r.screen());
    r.clear().turn_done();
    let list = r.asked(|c| matches!(c, CommandBody::Query(Query::Sessions { .. })));
    assert!(list.is_some(), "it is asked for once there is something");
    r.cause(list, EventBody::Reply(Box::new(rows)));
    serve(&mut r);
    assert!(r.screen().contains("words of entry 10"), "{}", r.screen());
}

#[test]
fn runs_of_exec_are_shown_on_demand_and_marked() {
    let mut r = Robot::new(118, 25);
    r.app.model.agent.session.summary = Some(summary(1, "retry work", 0));
    r.run("ctrl-x T");
    let mut hook = summary(4, "a hook ran", 1);
    hook.exec = true;
    let rows = vec![summary(1, "retry work", 0), hook];
    let list = r.asked(|c| matches!(c, CommandBody::Query(Query::Sessions { .. })));
    r.cause(list, EventBody::Reply(Box::new(ReplyEvent::SessionsReply { sessions: rows })));
    serve(&mut r);
    assert!(!r.screen().contains("a hook ran"), "{}", r.screen());
    r.run("A");
    serve(&mut r);
    assert!(r.screen().contains("a hook ran  exec"), "{}", r.screen());
}
