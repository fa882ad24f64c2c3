//! Going back, driven by the robot.

use super::*;
use crate::testing::Robot;

fn open(w: u16, h: u16) -> Robot {
    let mut r = Robot::new(w, h);
    r.push(Box::new(Restore::to(EntryId(Default::default()))));
    let preview = sample().preview.unwrap();
    r.reply(ReplyEvent::RestorePreviewReply { entry: EntryId(Default::default()), preview });
    r.clear();
    r
}

fn sent(r: &Robot) -> Vec<SessionCommand> {
    let all = r.commands().into_iter().filter_map(|c| match c {
        CommandBody::Session(s) => Some(s.clone()),
        _ => None,
    });
    all.collect()
}

#[test]
fn looks_well() {
    for (w, h) in [(118, 25), (80, 24)] {
        insta::assert_snapshot!(format!("restore_at_{w}x{h}"), open(w, h).screen());
    }
}

#[test]
fn what_the_person_changed_stays_unless_it_is_marked() {
    let mut r = open(118, 25);
    r.run("enter");
    let all = |keep: &[&str], force: &[&str]| SessionCommand::Restore {
        entry: EntryId(Default::default()),
        what: RestoreWhat::Both,
        keep: keep.iter().map(|s| (*s).to_owned()).collect(),
        force: force.iter().map(|s| (*s).to_owned()).collect(),
        parts: Vec::new(),
    };
    assert_eq!(sent(&r), [all(&[], &[])]);
    r.run("enter");
    assert_eq!(sent(&r).len(), 1, "once only");
    r.reply(ReplyEvent::DoneReply { said: "2 files were restored".into() });
    assert!(r.screen().contains("/undo reverts it") && !r.screen().contains("Restore?"), "{}", r.screen());
    let mut r = open(118, 25);
    r.run("down space down space enter");
    assert_eq!(sent(&r), [all(&["src/retry.rs"], &["notes.md"])]);
}

#[test]
fn it_says_how_many_messages_leave_and_what_each_file_does() {
    use crate::model::conversation::script::{Script, text};
    let mut r = Robot::new(118, 25);
    let mut s = Script::new();
    let e = s.snapshot(Vec::new(), 0, false);
    r.msg(crate::app::msg::Msg::Engine(Box::new(e)));
    let mut ids = Vec::new();
    for n in 0..3 {
        for node in [
            s.user(&format!("question {n}")),
            s.assistant(vec![text("so")], tiller_protocol::StopReason::EndTurn),
        ] {
            ids.push(node.id);
            let e = s.added(node);
            r.msg(crate::app::msg::Msg::Engine(Box::new(e)));
        }
    }
    r.push(Box::new(Restore::to(ids[2])));
    r.reply(ReplyEvent::RestorePreviewReply { entry: ids[2], preview: sample().preview.unwrap() });
    let words = r.words();
    assert!(words.contains("2 messages leave this branch"), "{}", r.screen());
    assert!(words.contains("2 files restored +2 −4"), "{}", r.screen());
    assert!(words.contains("1 file changed since by you or another program"), "{}", r.screen());
    assert!(words.contains("✓ M src/client.rs") && words.contains("○ M notes.md"), "{}", r.screen());
}

#[test]
fn the_engine_counts_the_messages_of_an_entry_that_is_not_loaded() {
    let mut r = Robot::new(118, 25);
    r.push(Box::new(Restore::to(EntryId(Default::default()))));
    let preview = RestorePreview { messages: Some(41), ..sample().preview.unwrap() };
    r.reply(ReplyEvent::RestorePreviewReply { entry: EntryId(Default::default()), preview });
    assert!(r.words().contains("41 messages leave this branch"), "{}", r.screen());
}

#[test]
fn files_only_and_talk_only() {
    let mut r = open(80, 24);
    r.run("f");
    assert!(matches!(sent(&r)[..], [SessionCommand::Restore { what: RestoreWhat::Files, .. }]));
    let mut r = open(80, 24);
    r.run("t");
    assert!(matches!(sent(&r)[..], [SessionCommand::Fork { .. }]));
}

#[test]
fn without_kept_files_only_the_talk_goes_back_and_an_error_stays_on_the_screen() {
    let mut r = Robot::new(80, 24);
    r.push(Box::new(Restore::to(EntryId(Default::default()))));
    assert!(r.screen().contains("Comparing the files"), "{}", r.screen());
    let preview =
        RestorePreview { title: "x".into(), notes: vec!["not kept".into()], ..RestorePreview::default() };
    r.reply(ReplyEvent::RestorePreviewReply { entry: EntryId(Default::default()), preview });
    r.clear().run("f");
    assert!(sent(&r).is_empty() && r.screen().contains("no snapshot of the files"), "{}", r.screen());
    r.run("enter");
    assert!(matches!(sent(&r)[..], [SessionCommand::Fork { .. }]));
    let mut r = open(80, 24);
    r.run("enter");
    r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, "the disk is full") });
    assert!(r.screen().contains("The disk is full.") && r.screen().contains("Restore?"), "{}", r.screen());
}

#[test]
fn some_hunks_of_a_file_go_back_and_the_rest_of_it_stays() {
    let mut r = open(118, 25);
    r.run("] x");
    let screen = r.screen();
    assert!(screen.contains("◐ M src/client.rs") && screen.contains("1 of 2 hunks"), "{screen}");
    insta::assert_snapshot!("restore_some_hunks", screen);
    // A hunk of another author, too; the whole file when both are marked.
    r.run("down down ] x");
    assert_eq!(r.screen().matches("1 of 2 hunks").count(), 2, "{}", r.screen());
    r.run("enter");
    let [SessionCommand::Restore { keep, force, parts, .. }] = &sent(&r)[..] else { panic!() };
    assert_eq!((keep.len(), force.len()), (0, 0));
    let parts: Vec<_> = parts.iter().map(|p| (p.path.as_str(), p.hunk.as_deref().unwrap())).collect();
    assert_eq!(parts.iter().map(|p| p.0).collect::<Vec<_>>(), ["src/client.rs", "notes.md"]);
    assert!(parts[0].1.contains("-two") && !parts[0].1.contains("+more"), "{parts:?}");
    assert!(parts[1].1.contains("+more") && !parts[1].1.contains("-two"), "{parts:?}");
    let mut r = open(80, 24);
    r.run("down down x ] x [ x x enter");
    let [SessionCommand::Restore { force, parts, .. }] = &sent(&r)[..] else { panic!() };
    assert_eq!((force.as_slice(), parts.len()), (&["notes.md".to_owned()][..], 0));
}
