use tiller_protocol::{LearningsReply, MemoryTarget, Provenance, RuleReceipts, RuleView};

use super::*;
use crate::testing::Robot;

fn open(width: u16, height: u16) -> Robot {
    open_with(width, height, rows::sample())
}

fn open_with(width: u16, height: u16, page: MemoryPage) -> Robot {
    let mut r = Robot::new(width, height);
    assert!(r.app.act(Action("memory.open")));
    r.run("wait 1");
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page: Box::new(page) })));
    // Keys that decide count once the list was readable.
    r.run("wait 500");
    r
}

fn sent(r: &Robot) -> Vec<MemoryCommand> {
    let of = |c: &CommandBody| match c {
        CommandBody::Memory(command) => Some(command.clone()),
        _ => None,
    };
    r.commands().into_iter().filter_map(of).collect()
}

#[test]
fn entries_are_listed_with_their_origin() {
    for (width, height) in [(118, 25), (80, 24)] {
        let r = open(width, height);
        let screen = r.screen();
        insta::assert_snapshot!(format!("memory_{width}x{height}"), screen);
        for part in ["Waiting for you", "The rate limit", "MEMORY.md", "Reviews are short", "web"] {
            assert!(screen.contains(part), "{part}\n{screen}");
        }
    }
}

#[test]
fn keys_accept_edit_delete_archive_and_undo() {
    let mine = MemoryTarget::default();
    let mut r = open(118, 32);
    // The cursor stands on the first entry that does not wait: choosing never decides by accident.
    r.run("ctrl-home; ctrl-x a");
    assert_eq!(sent(&r), [MemoryCommand::Decide { change: 1, accept: true, text: None }]);
    let mut r = open(118, 32);
    r.run("ctrl-home; ctrl-x x");
    assert_eq!(sent(&r), [MemoryCommand::Decide { change: 1, accept: false, text: None }]);
    let mut r = open(118, 32);
    r.run("ctrl-home; down; ctrl-x d");
    let old = "Reviews are short: two sentences and the risky lines".to_owned();
    assert_eq!(sent(&r), [MemoryCommand::Delete { target: mine, old: old.clone() }]);
    r.reply(ReplyEvent::DoneReply { said: "removed from MEMORY.md".into() });
    assert!(
        r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_)))).is_some(),
        "the list is read again"
    );
    let mut r = open(118, 32);
    r.run("ctrl-home; down; ctrl-x v; ctrl-x z; ctrl-x Z");
    assert_eq!(
        sent(&r),
        [
            MemoryCommand::Archive { target: mine, old: old.clone(), archived: true },
            MemoryCommand::Undo { redo: false },
            MemoryCommand::Undo { redo: true },
        ]
    );
    let mut r = open(118, 32);
    r.run("ctrl-home; down; ctrl-x e; ctrl-u; type Reviews are long; enter");
    assert_eq!(sent(&r), [MemoryCommand::Edit { target: mine, old, text: "Reviews are long".into() }]);
}

#[test]
fn an_entry_keeps_its_lines_and_a_refused_text_is_not_lost() {
    let mut page = rows::sample();
    page.entries[1].text = "one fact\nsecond line\nthird".into();
    let mut r = open_with(118, 32, page);
    r.run("ctrl-home; down; ctrl-x e; enter");
    assert_eq!(sent(&r), [], "nothing was changed");
    r.run("ctrl-x e; type !; enter");
    let [MemoryCommand::Edit { text, .. }] = &sent(&r)[..] else { panic!("{:?}", sent(&r)) };
    assert_eq!(text, "one fact\nsecond line\nthird!");
    let id = r.asked(|c| matches!(c, CommandBody::Memory(MemoryCommand::Edit { .. })));
    let notice = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::User, "the text has a secret");
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::ErrorReply { notice })));
    r.run("ctrl-x e");
    assert!(r.screen().contains("entry: one fact second line third!"), "{}", r.screen());
}

#[test]
fn only_what_a_row_can_do_is_offered() {
    let mut r = open(118, 32);
    r.run("ctrl-home; wait 1000; ctrl-x; wait 1000");
    let box_of =
        |r: &Robot| r.screen().lines().skip_while(|l| !l.contains("then")).collect::<Vec<_>>().join("\n");
    assert!(box_of(&r).contains("decline") && !box_of(&r).contains("archive"), "{}", r.screen());
    let mut r = open(118, 32);
    r.run("ctrl-home; down; wait 1000; ctrl-x; wait 1000");
    assert!(!box_of(&r).contains("decline") && box_of(&r).contains("archive"), "{}", r.screen());
    // After the last entry was deleted, it can be brought back.
    let mut page = rows::sample();
    page.entries.truncate(2);
    page.entries.remove(0);
    let mut r = open_with(80, 24, page);
    r.run("wait 1000; ctrl-x d");
    r.reply(ReplyEvent::DoneReply { said: "removed from MEMORY.md".into() });
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    let page = Box::new(MemoryPage::default());
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page })));
    r.run("wait 1");
    assert!(r.footer().contains("undo") && !r.footer().contains("delete"), "{}", r.footer());
}

#[test]
fn help_over_the_list_begins_with_its_keys() {
    for (width, height) in [(118, 32), (80, 24)] {
        let mut r = open(width, height);
        r.run("f1; wait 500");
        let screen = r.screen();
        assert!(screen.contains("Ctrl-X d") && screen.contains("Delete the entry"), "{screen}");
    }
}

#[test]
fn an_entry_of_others_is_accepted_as_the_persons() {
    let mut r = open(118, 32);
    r.run("type nextest; wait 1000; ctrl-x a");
    assert_eq!(sent(&r), [MemoryCommand::Decide { change: 1, accept: true, text: None }]);
    let mut r = open(118, 32);
    r.run("type Reviews; wait 1000; ctrl-x a");
    assert_eq!(sent(&r), []);
}

#[test]
fn what_was_removed_outside_tiller_is_shown_with_the_call_and_brought_back() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut r = open(width, height);
        r.run("type push; wait 1000");
        let screen = r.screen();
        for part in ["Ctrl-X b restore", "Never push by hand", "while a call of the agent ran, 2026-11-18"] {
            assert!(screen.contains(part), "{part}\n{screen}");
        }
        r.run("ctrl-x b; ctrl-x B; ctrl-x x; ctrl-x e; ctrl-x v");
        let take_off = MemoryCommand::Decide { change: 1, accept: false, text: None };
        let restore = |all| MemoryCommand::Restore { change: 1, all };
        assert_eq!(sent(&r), [restore(false), restore(true), take_off]);
    }
    // Another entry is not brought back.
    let mut r = open(118, 25);
    r.run("type Reviews; wait 1000; ctrl-x b");
    assert_eq!(sent(&r), []);
    assert!(r.screen().contains("was not removed outside Tiller"), "{}", r.screen());
}

#[test]
fn an_entry_that_is_no_rule_says_why() {
    let mut r = Robot::new(80, 24);
    assert!(r.app.act(Action("memory.open")));
    r.run("wait 1");
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    let mut page = rows::sample();
    page.entries[1].fault = "It is no rule: there is no tool 'nothing'".into();
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page: Box::new(page) })));
    r.run("wait 1; ctrl-home; down");
    assert!(r.screen().contains("It is no rule: there is no tool"), "{}", r.screen());
}

#[test]
fn enter_goes_to_the_message_that_wrote_the_entry() {
    let mut r = open(118, 32);
    r.run("ctrl-home; down; enter");
    assert!(!r.screen().contains("Waiting for you"), "the list is closed\n{}", r.screen());
    let mut r = open(118, 32);
    r.run("type neovim; enter");
    assert!(r.screen().contains("there is no message to go to"), "{}", r.screen());
}

#[test]
fn hostile_text_is_drawn_as_plain_cells() {
    let mut r = Robot::new(80, 24);
    assert!(r.app.act(Action("memory.open")));
    r.run("wait 1");
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    let mut page = rows::sample();
    page.entries[0].text = "\u{1b}[31mred\u{202e}\u{7}".into();
    page.entries[0].from = Some(Provenance { branch: "\u{1b}]0;x\u{7}".into(), ..Provenance::default() });
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page: Box::new(page) })));
    r.run("wait 1; ctrl-home");
    assert!(!r.screen().contains(['\u{1b}', '\u{7}', '\u{202e}']));
}

/// A text that is accepted was on the screen, to its last line.
#[test]
fn a_text_that_the_preview_cuts_is_shown_whole_before_it_is_accepted() {
    for (width, height) in [(118, 25), (80, 24)] {
        let mut page = rows::sample();
        let lines: Vec<String> = (1..=40).map(|n| format!("line {n} of a page of others")).collect();
        page.entries[0].text = lines.join("\n");
        let mut r = open_with(width, height, page);
        r.run("ctrl-home; wait 1000; ctrl-x a; wait 1000");
        assert_eq!(sent(&r), [], "it was not read yet");
        let screen = r.screen();
        assert!(screen.contains("The whole text, rows 1 to") && screen.contains("line 9 of"), "{screen}");
        assert!(r.footer().contains("read on"), "{}", r.footer());
        // Letters are nothing here, and Esc leaves it undecided.
        r.run("type y; esc; wait 1000");
        assert!(r.screen().contains("Waiting for you") && sent(&r).is_empty(), "{}", r.screen());
        r.run("ctrl-x a; wait 1000; pagedown; wait 1000; pagedown; wait 1000; pagedown; wait 1000");
        assert!(r.screen().contains("line 40 of"), "{}", r.screen());
        assert!(r.footer().contains("accept"), "{}", r.footer());
        r.run("ctrl-x a");
        assert_eq!(sent(&r), [MemoryCommand::Decide { change: 1, accept: true, text: None }]);
        assert!(r.screen().contains("Waiting for you"), "{}", r.screen());
    }
}

/// The answer to the undoing of a change, after which the list is read again.
fn read_again(r: &mut Robot, page: MemoryPage) {
    r.reply(ReplyEvent::DoneReply { said: "undone".into() });
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page: Box::new(page) })));
}

/// The text that was read is what is accepted: another one that came meanwhile is not.
#[test]
fn what_changed_while_it_was_read_is_not_accepted() {
    let mut page = rows::sample();
    page.entries[0].text = "a line\n".repeat(40);
    let mut r = open_with(80, 24, page.clone());
    r.run("ctrl-home; wait 1000; ctrl-x z; ctrl-x a; wait 1000; ctrl-end; wait 1000");
    page.entries[0].text = "another line\n".repeat(40);
    read_again(&mut r, page);
    r.run("wait 1000; ctrl-x a; wait 1");
    assert_eq!(sent(&r), []);
}

/// The last change is done, and the list is read again.
fn answered(r: &mut Robot, page: MemoryPage) {
    r.reply(ReplyEvent::DoneReply { said: "done".into() });
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page: Box::new(page) })));
    r.run("wait 1000");
}

/// The cursor is known by the next action: it is about the entry that the last one was about, or the nearest one.
#[test]
fn the_cursor_stays_at_its_entry_after_an_action() {
    let target = MemoryTarget::default();
    let reviews = "Reviews are short: two sentences and the risky lines".to_owned();
    // Archived, it is still the same entry.
    let mut r = open(118, 32);
    r.run("ctrl-x v");
    let mut page = rows::sample();
    page.entries.iter_mut().filter(|e| e.text == reviews).for_each(|e| e.state = MemoryState::Archived);
    answered(&mut r, page);
    r.run("ctrl-x v");
    let last = |r: &Robot| sent(r).pop();
    let back = MemoryCommand::Archive { target, old: reviews.clone(), archived: false };
    assert_eq!(last(&r), Some(back));
    // Edited, too.
    let mut r = open(118, 32);
    r.run("ctrl-x e; ctrl-u; type Reviews are long; enter");
    let mut page = rows::sample();
    let edited = page.entries.iter_mut().find(|e| e.text == reviews).unwrap();
    (edited.text, edited.change) = ("Reviews are long".into(), Some(7));
    let edited = edited.clone();
    page.entries.retain(|e| e.text != edited.text);
    page.entries.push(edited);
    answered(&mut r, page);
    r.run("ctrl-x d");
    assert_eq!(last(&r), Some(MemoryCommand::Delete { target, old: "Reviews are long".into() }));
    // Deleted, the next one of its file takes its place.
    let mut r = open(118, 32);
    r.run("ctrl-x d");
    let mut page = rows::sample();
    page.entries.retain(|e| e.text != reviews);
    answered(&mut r, page);
    r.run("ctrl-x d");
    let next = "Release notes are written before the tag is made".to_owned();
    assert_eq!(last(&r), Some(MemoryCommand::Delete { target, old: next }));
    // Accepted, it is followed into its file.
    let mut r = open(118, 32);
    r.run("ctrl-home; ctrl-x a");
    let mut page = rows::sample();
    let accepted = page.entries.iter_mut().find(|e| e.state == MemoryState::Pending).unwrap();
    (accepted.state, accepted.change) = (MemoryState::Kept, Some(8));
    let text = accepted.text.clone();
    answered(&mut r, page);
    r.run("ctrl-x d");
    assert_eq!(last(&r), Some(MemoryCommand::Delete { target, old: text }));
}

/// The list is read again, and the cursor stays.
#[test]
fn an_open_list_shows_what_changes_meanwhile() {
    let mut r = open(118, 32);
    r.event(EventBody::State(StateEvent::MemoryChanged {}));
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Memory(_))));
    let mut page = rows::sample();
    let mut new = page.entries[1].clone();
    (new.text, new.change) = ("It came meanwhile".into(), Some(9));
    page.entries.insert(1, new);
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::MemoryReply { page: Box::new(page) })));
    r.run("wait 1000; ctrl-x d");
    assert!(r.screen().contains("It came meanwhile"), "{}", r.screen());
    let old = "Reviews are short: two sentences and the risky lines".into();
    assert_eq!(sent(&r), [MemoryCommand::Delete { target: MemoryTarget::default(), old }]);
}

/// Rows are known by what they hold: one that comes before them moves no edit to another entry.
#[test]
fn an_edit_is_of_the_entry_that_it_began_with() {
    let old = "Reviews are short: two sentences and the risky lines";
    let mut r = open(118, 32);
    r.run("type Reviews; wait 1000; ctrl-x z; ctrl-x e");
    let mut page = rows::sample();
    let first = page.entries[0].clone();
    page.entries.insert(0, MemoryEntry { text: "it came meanwhile".into(), change: Some(9), ..first });
    read_again(&mut r, page.clone());
    r.run("ctrl-u; type Reviews are long; enter");
    let target = MemoryTarget::default();
    assert_eq!(sent(&r), [MemoryCommand::Edit { target, old: old.into(), text: "Reviews are long".into() }]);
    // One that is gone is not replaced by its neighbour, and the text stays in its field.
    let mut r = open(118, 32);
    r.run("type Reviews; wait 1000; ctrl-x z; ctrl-x e");
    page.entries.retain(|entry| entry.text != old);
    read_again(&mut r, page);
    r.run("ctrl-u; type Reviews are long; enter; wait 1");
    assert_eq!(sent(&r), []);
    assert!(
        r.screen().contains("Reviews are long") && r.words().contains("changed meanwhile"),
        "{}",
        r.screen()
    );
}

/// One key leads from a rule that was violated twice to what can be made of it.
#[test]
fn a_rule_leads_to_what_it_can_become() {
    let mut page = rows::sample();
    let rule = page.entries.iter_mut().find(|e| e.counts.violated > 0).unwrap();
    rule.text = "Nothing is pushed to main [never: terminal \"git push* main*\"] by hand".into();
    rule.counts.violated = 2;
    let mut r = open_with(80, 24, page);
    assert!(!r.footer().contains("rule"), "{}", r.footer());
    r.run("ctrl-x p; wait 1000");
    assert!(r.screen().contains("no rule in force"), "{}", r.screen());
    r.run("ctrl-home; down; down; down; down; wait 1000");
    assert!(r.footer().contains("Ctrl-X p rule"), "{}", r.screen());
    r.run("ctrl-x p; wait 1");
    let id = r.asked(|c| matches!(c, CommandBody::Query(Query::Learnings { .. })));
    let view = |text: &str, shown| RuleView {
        text: text.into(),
        receipts: RuleReceipts { shown, followed: 0, violated: 2 },
        ..RuleView::default()
    };
    let rules = vec![view("Nothing is pushed", 5), view("Nothing is pushed to main by hand", 7)];
    let reply = LearningsReply { rules, ..LearningsReply::default() };
    r.clear().cause(id, EventBody::Reply(Box::new(ReplyEvent::LearningsReply { reply })));
    r.run("wait 1000");
    assert!(r.screen().contains("Shown 7 times"), "{}", r.screen());
}
