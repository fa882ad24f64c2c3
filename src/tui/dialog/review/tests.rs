use tiller_protocol::review::Review as Changes;
use tiller_protocol::tool::FileDiff;
use tiller_protocol::{ChangeKind, CommandBody, EntryId};

use super::*;
use crate::testing::Robot;
use tiller_protocol::command::{ReviewCommand, TurnCommand};
use tiller_protocol::event::ReplyEvent;

fn changes() -> Changes {
    let client = "--- a/src/client.rs\n+++ b/src/client.rs\n@@ -40,5 +40,6 @@ fn retry()\n     let wait = header.map(parse);\n-    sleep(wait)\n+    sleep(wait.min(limit))\n+    log(\"capped\")\n     // done\n     count += 1;\n }\n@@ -90,3 +91,3 @@ fn other()\n a\n-b  c\n+b c\n d\n";
    let tests = "--- /dev/null\n+++ b/tests/retry.rs\n@@ -0,0 +1,2 @@\n+#[test]\n+fn caps() {}\u{202e}\n";
    let file = |path: &str, kind, added, removed, diff: &str| FileDiff {
        path: path.into(),
        kind,
        added,
        removed,
        diff: diff.into(),
    };
    Changes {
        turn: "0190a000-0000-7000-8000-000000000001".parse::<EntryId>().unwrap(),
        title: "retry".into(),
        taken_back: Vec::new(),
        files: vec![
            file("src/client.rs", ChangeKind::Modified, 3, 2, client),
            file("tests/retry.rs", ChangeKind::Added, 2, 0, tests),
            file("assets/logo.png", ChangeKind::Added, 0, 0, ""),
        ],
    }
}

const CONFLICT: &str = "src/client.rs: src/client.rs is not as it was after the change any more";

fn open(width: u16, height: u16) -> Robot {
    let mut r = Robot::new(width, height);
    r.run("ctrl-x d");
    r.reply(ReplyEvent::ReviewReply { review: changes() });
    r
}

fn rejects(r: &Robot) -> Vec<tiller_protocol::review::Reject> {
    r.commands()
        .into_iter()
        .filter_map(|c| match c {
            CommandBody::Review(ReviewCommand::Reject { hunks, .. }) => Some(hunks.clone()),
            _ => None,
        })
        .flatten()
        .collect()
}

#[test]
fn review_at_118x25() {
    insta::assert_snapshot!(open(118, 25).screen());
}

#[test]
fn review_at_80x24() {
    insta::assert_snapshot!(open(80, 24).screen());
}

#[test]
fn review_at_60x20() {
    insta::assert_snapshot!(open(60, 20).screen());
}

#[test]
fn r_sends_the_hunk_and_a_conflict_is_shown() {
    let mut r = open(80, 24);
    r.run("r");
    let sent = rejects(&r);
    assert_eq!(sent.len(), 1);
    assert!(sent[0].hunk.contains("@@ -40,5 +40,6 @@\n") && sent[0].hunk.contains("-    sleep(wait)\n"));
    r.reply(ReplyEvent::RejectReply { rejected: 0, conflicts: vec![CONFLICT.into()] });
    r.reply(ReplyEvent::ReviewReply { review: changes() });
    assert!(r.screen().contains("Not reverted: the file has changed since"), "{}", r.screen());
    assert!(
        r.words().contains("forced): src/client.rs is not as it was after the change any more"),
        "the engine's reason: {}",
        r.screen()
    );
}

#[test]
fn a_file_that_came_goes_and_one_that_went_comes_back() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-x d");
    let mut all = changes();
    all.files.remove(0);
    let gone = "--- a/old.txt\n+++ b/old.txt\n@@ -1,2 +0,0 @@\n-a\n-b\n";
    all.files[1] = FileDiff {
        path: "old.txt".into(),
        kind: ChangeKind::Deleted,
        added: 0,
        removed: 2,
        diff: gone.into(),
    };
    r.reply(ReplyEvent::ReviewReply { review: all });
    r.run("r; l; R");
    let sent: Vec<String> = rejects(&r).into_iter().map(|h| h.hunk).collect();
    assert!(sent[0].starts_with("--- /dev/null\n+++ b/tests/retry.rs\n"), "{sent:?}");
    assert!(sent[1].starts_with("--- a/old.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n"), "{sent:?}");
}

#[test]
fn a_review_begins_at_the_first_file_with_lines_to_show() {
    let mut r = Robot::new(118, 25);
    r.run("ctrl-x d");
    let mut all = changes();
    all.files.rotate_right(1);
    r.reply(ReplyEvent::ReviewReply { review: all });
    assert!(r.screen().contains("sleep(wait.min(limit))"), "{}", r.screen());
    assert!(!r.screen().contains("+0"), "no figures of a file without lines: {}", r.screen());
}

#[test]
fn what_is_no_text_goes_back_as_a_whole() {
    let mut r = open(118, 25);
    r.run("l; l");
    assert!(
        r.words().contains("Empty, not text, or too large: only the whole file can be reverted"),
        "{}",
        r.screen()
    );
    for key in ["r", "R"] {
        r.run(key);
        let sent = rejects(&r).pop().unwrap();
        assert_eq!((sent.path.as_str(), sent.hunk.as_str()), ("assets/logo.png", ""));
        let stays = vec!["assets/logo.png: it was changed since".into()];
        r.reply(ReplyEvent::RejectReply { rejected: 0, conflicts: stays });
        r.reply(ReplyEvent::ReviewReply { review: changes() });
        assert!(r.words().contains("Not reverted: the file has changed since"), "{}", r.screen());
    }
    r.run("r");
    r.reply(ReplyEvent::RejectReply { rejected: 1, conflicts: Vec::new() });
    let mut left = changes();
    left.files.pop();
    r.reply(ReplyEvent::ReviewReply { review: left });
    // It is undone like any restore, whose answer is words.
    r.run("z");
    r.reply(ReplyEvent::DoneReply { said: "undo".into() });
    r.reply(ReplyEvent::ReviewReply { review: changes() });
    assert!(r.words().contains("assets/logo.png"), "{}", r.screen());
}

#[test]
fn files_of_an_undone_turn_are_named() {
    let rows: &[(&[&str], &str)] = &[
        (&[], "This turn changed no files"),
        (&["a.txt"], "a.txt is as it was before this turn. If you undid it, /redo"),
        (
            &["a.txt", "b.txt", "c.txt"],
            "a.txt and 2 more files are as they were before this turn. If you undid it, /redo",
        ),
    ];
    for (files, words) in rows {
        let mut r = open(118, 25);
        let taken_back = files.iter().map(|file| (*file).to_owned()).collect();
        r.run("r");
        r.reply(ReplyEvent::RejectReply { rejected: 0, conflicts: Vec::new() });
        r.reply(ReplyEvent::ReviewReply { review: Changes { files: Vec::new(), taken_back, ..changes() } });
        assert!(r.screen().contains(words), "{files:?}: {}", r.screen());
    }
}

#[test]
fn what_was_taken_back_whole_can_be_undone_and_remarks_sent() {
    let mut r = open(80, 24);
    r.run("c; type keep the log; enter; R");
    r.reply(ReplyEvent::RejectReply { rejected: 2, conflicts: Vec::new() });
    r.reply(ReplyEvent::ReviewReply { review: Changes { files: Vec::new(), ..changes() } });
    assert!(r.screen().contains("No changes of this turn are left"), "{}", r.screen());
    assert!(r.footer().contains("z undo") && r.footer().contains("S send"), "{}", r.footer());
    r.clear().run("z");
    r.reply(ReplyEvent::RejectReply { rejected: 2, conflicts: Vec::new() });
    r.reply(ReplyEvent::ReviewReply { review: changes() });
    assert!(r.screen().contains("client.rs") && r.screen().contains("▌ keep the log"), "{}", r.screen());
    assert!(!r.footer().contains("undo"), "{}", r.footer());
    r.run("R");
    r.reply(ReplyEvent::RejectReply { rejected: 2, conflicts: Vec::new() });
    r.reply(ReplyEvent::ReviewReply { review: Changes { files: Vec::new(), ..changes() } });
    r.clear().run("S");
    assert!(
        matches!(r.commands()[..], [CommandBody::Turn(TurnCommand::Submit { .. })]),
        "{:?}",
        r.commands()
    );
}

#[test]
fn v_selects_lines_and_only_those_go_back() {
    let mut r = open(80, 24);
    // From the removed line two down: the second addition only.
    r.run("j j v r");
    let sent = rejects(&r);
    let hunk = &sent[0].hunk;
    assert!(hunk.contains("+    log(\"capped\")"), "{hunk}");
    assert!(!hunk.contains("-    sleep(wait)\n") && hunk.contains("     sleep(wait.min(limit))\n"), "{hunk}");
    // Escape ends a selection before it leaves.
    r.run("v; esc");
    assert!(r.screen().contains("Review  3 files"));
    r.run("esc");
    assert!(!r.screen().contains("Review  3 files"));
}

#[test]
fn whole_files_and_undo() {
    let mut r = open(80, 24);
    r.run("R");
    assert_eq!(rejects(&r).len(), 2);
    r.reply(ReplyEvent::RejectReply { rejected: 2, conflicts: Vec::new() });
    let mut rest = changes();
    rest.files.remove(0);
    r.reply(ReplyEvent::ReviewReply { review: rest });
    assert!(!r.screen().contains("src/client.rs"), "{}", r.screen());
    r.run("z");
    assert!(r.asked(|c| matches!(c, CommandBody::Review(ReviewCommand::UndoReject))).is_some());
}

#[test]
fn comments_go_out_as_one_message() {
    let mut r = open(80, 24);
    r.run("c; type also log when capped; enter");
    assert!(r.screen().contains("▌ also log when capped"), "{}", r.screen());
    r.run("]; c; type why; enter; S");
    let text = r
        .commands()
        .into_iter()
        .find_map(|c| match c {
            CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.text.clone()),
            _ => None,
        })
        .expect("sent");
    assert!(text.contains("src/client.rs:41\n> sleep(wait)\nalso log when capped"), "{text}");
    assert!(text.contains("why"), "{text}");
}

/// A window of the workspace with drafts in `folder`, a session that is open, and the review on the screen.
fn window(folder: &std::path::Path) -> Robot {
    let mut r = Robot::new(100, 24);
    r.app.model.environment.folders.draft = Some(folder.to_owned());
    let mut script = crate::model::conversation::script::Script::new();
    let EventBody::Reply(reply) = script.snapshot(Vec::new(), 0, false).body else { unreachable!() };
    r.event(EventBody::Reply(reply));
    assert!(r.app.model.shown_session().is_some());
    again(&mut r);
    r
}

fn again(r: &mut Robot) {
    r.run("ctrl-x d");
    r.reply(ReplyEvent::ReviewReply { review: changes() });
}

#[test]
fn escape_in_a_remark_loses_nothing_and_sends_nothing() {
    let mut r = open(100, 24);
    r.run("c; type also log it; esc");
    assert!(r.screen().contains("also log it (draft"), "{}", r.screen());
    r.clear().run("S");
    assert!(r.commands().is_empty(), "what is begun only is not sent: {:?}", r.commands());
    r.run("c; type  when capped; enter; wait 9000");
    assert!(
        r.screen().contains("▌ also log it when capped") && !r.screen().contains("begun"),
        "{}",
        r.screen()
    );
    // A change of it that is left stays beside it.
    r.run("c; type  and said; esc");
    let screen = r.screen();
    assert!(
        screen.contains("▌ also log it when capped") && screen.contains("capped and said (draft"),
        "{screen}"
    );
    // Emptied and kept: it is gone.
    r.run("c; ctrl-u; enter");
    assert!(!r.screen().contains("also log it"), "{}", r.screen());
}

#[test]
fn unsent_remarks_survive_leaving_a_restart_and_another_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = window(dir.path());
    r.run("c; type also log it; enter; ]; c; type half a rem");
    // Left by a key that goes elsewhere, with the field open.
    r.run("alt-1");
    assert!(!r.screen().contains("also log it"), "{}", r.screen());
    again(&mut r);
    assert!(r.screen().contains("▌ also log it"), "{}", r.screen());
    assert!(r.screen().contains("half a rem (draft"), "{}", r.screen());
    // As a process that ends.
    drop(r);
    let mut r = window(dir.path());
    assert!(r.screen().contains("▌ also log it"), "{}", r.screen());
    // What another turn changed has no such line: they stand above it, and go out all the same.
    let mut later = changes();
    later.turn = "0190a000-0000-7000-8000-000000000002".parse::<EntryId>().unwrap();
    later.files.remove(0);
    r.run("ctrl-r");
    r.reply(ReplyEvent::ReviewReply { review: later });
    assert!(r.screen().contains("▌ src/client.rs:41  also log it"), "{}", r.screen());
    r.clear().run("S");
    let sent = |r: &Robot| {
        r.commands().into_iter().find_map(|c| match c {
            CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.text.clone()),
            _ => None,
        })
    };
    assert!(sent(&r).is_some_and(|t| t.contains("also log it") && !t.contains("half")), "{:?}", r.commands());
    drop(r);
    let r = window(dir.path());
    assert!(!r.screen().contains("▌ also log it"), "sent is sent: {}", r.screen());
}

#[test]
fn unsent_remarks_of_two_windows_are_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (window(dir.path()), window(dir.path()));
    a.run("c; type from the first; enter");
    b.run("c; type from the second; enter");
    drop(a);
    b.run("]; c; type more of the second; enter");
    drop(b);
    let c = window(dir.path());
    for text in ["from the first", "from the second", "more of the second"] {
        assert!(c.screen().contains(text), "{text}: {}", c.screen());
    }
    drop(c);
    // One file and its lock are left.
    let names = || std::fs::read_dir(dir.path().join("remarks")).unwrap().map(|f| f.unwrap().path());
    assert_eq!(names().count(), 2, "{:?}", names().collect::<Vec<_>>());
    // What cannot be read is left alone.
    let file = names().find(|p| p.extension().is_some_and(|e| e == "json")).unwrap();
    std::fs::write(&file, "{\"done\": 7").unwrap();
    let mut c = window(dir.path());
    c.run("c; type later; enter");
    drop(c);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"done\": 7");
    assert!(window(dir.path()).screen().contains("later"));
}

#[test]
fn remarks_that_the_engine_refuses_come_back_into_the_composer() {
    let mut r = open(100, 24);
    r.run("c; type also log it; enter; S");
    let notice = tiller_protocol::Notice::new(tiller_protocol::NoticeKind::User, "no money left");
    r.reply(ReplyEvent::ErrorReply { notice });
    assert!(r.screen().contains("My review of your changes"), "{}", r.screen());
}

#[test]
fn a_remark_stays_on_its_line_while_the_wheel_turns_and_all_can_be_discarded() {
    let mut r = open(100, 24);
    r.run("c; type here");
    let wheel = crossterm::event::MouseEvent {
        kind: MouseEventKind::ScrollDown,
        column: 60,
        row: 8,
        modifiers: KeyModifiers::NONE,
    };
    r.msg(crate::app::msg::Msg::Input(crate::input::Input::Mouse(wheel)));
    r.run("enter; S");
    let text = r.commands().into_iter().find_map(|c| match c {
        CommandBody::Turn(TurnCommand::Submit { message, .. }) => Some(message.text.clone()),
        _ => None,
    });
    assert!(text.is_some_and(|t| t.contains("> sleep(wait)\nhere")), "{:?}", r.commands());
    let mut r = open(100, 24);
    r.run("c; type drop this; enter; D");
    assert!(!r.screen().contains("▌ drop this"), "{}", r.screen());
    r.run("esc; up");
    r.reply(ReplyEvent::HistoryReply { prompts: Vec::new() });
    assert!(r.screen().contains("drop this"), "Up brings it back: {}", r.screen());
}

#[test]
fn the_current_hunk_is_marked_also_when_all_fit() {
    let mut r = open(118, 40);
    let marked = |r: &Robot| -> Vec<String> {
        r.screen().lines().filter(|l| l.contains("▸ ")).map(str::to_owned).collect()
    };
    let (first, rest) = (marked(&r), r.screen().contains("⋯    fn other()"));
    assert!(first.len() == 1 && first[0].contains("fn retry()"), "{}", r.screen());
    assert!(rest, "all fit: {}", r.screen());
    r.run("]");
    let second = marked(&r);
    assert!(second.len() == 1 && second[0].contains("fn other()"), "{}", r.screen());
}

#[test]
fn blanks_context_and_sides() {
    let mut r = open(118, 25);
    r.run("w");
    assert!(!r.screen().contains("91 - b  c"), "{}", r.screen());
    r.run("w; {; {; {");
    assert!(!r.screen().contains("count += 1"), "{}", r.screen());
    r.run("}; }; |");
    let split = r.screen();
    assert!(
        split.lines().any(|l| l.contains("sleep(wait)") && l.contains("sleep(wait.min(limit))")),
        "{split}"
    );
}

#[test]
fn the_key_for_sides_always_changes_something_or_says_why_not() {
    let beside = |r: &Robot| r.screen().lines().any(|l| l.contains("41 − ") && l.contains("41 + "));
    // Beside the panels, and where two columns are the rule and the first key leaves them.
    for (width, first) in [(60, false), (118, false), (200, true)] {
        let mut r = open(width, 25);
        for step in [first, !first, first] {
            assert_eq!(beside(&r), step, "{width}: {}", r.screen());
            r.run("|");
        }
    }
    let mut r = open(38, 25);
    r.run("|");
    assert!(r.words().contains("too narrow for a side-by-side view"), "{}", r.screen());
}

#[test]
fn nothing_to_review_says_so() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-x d");
    let notice = Notice::new(NoticeKind::User, "no turn has changed files yet");
    r.reply(ReplyEvent::ErrorReply { notice });
    assert!(r.screen().contains("Nothing to review: no turn has changed files yet"), "{}", r.screen());
}

#[test]
fn a_click_chooses_a_file_or_a_line_and_rejects_nothing() {
    use crossterm::event::{KeyModifiers, MouseButton};
    let mut r = open(118, 25);
    let click = |r: &mut Robot, text: &str| {
        let screen = r.screen();
        let (row, line) = screen.lines().enumerate().find(|(_, l)| l.contains(text)).expect(text);
        let column = line[..line.find(text).unwrap()].chars().count() as u16;
        let kind = MouseEventKind::Down(MouseButton::Left);
        r.msg(crate::app::msg::Msg::Input(crate::input::Input::Mouse(MouseEvent {
            kind,
            column,
            row: row as u16,
            modifiers: KeyModifiers::NONE,
        })));
    };
    click(&mut r, "b c");
    r.run("c; type why; enter");
    assert!(r.screen().contains("▌ why"), "{}", r.screen());
    assert!(rejects(&r).is_empty());
    click(&mut r, "A tests");
    assert!(r.screen().contains("fn caps()"), "{}", r.screen());
    r.clear().run("r");
    assert_eq!(rejects(&r).first().map(|h| h.path.as_str()), Some("tests/retry.rs"));
}

#[test]
fn the_view_asks_when_it_gets_the_focus_and_again_when_a_turn_has_ended() {
    let asked = |r: &Robot| {
        let open = |c: &&CommandBody| matches!(c, CommandBody::Review(ReviewCommand::Open { .. }));
        r.commands().into_iter().filter(open).count()
    };
    let mut r = Robot::new(118, 25);
    r.run("alt-6");
    assert_eq!(asked(&r), 1);
    r.reply(ReplyEvent::ReviewReply { review: changes() });
    assert!(r.screen().contains("fn retry()"), "{}", r.screen());
    // Nothing has happened since: nothing is asked.
    r.run("esc; alt-6");
    assert_eq!(asked(&r), 1);
    r.turn_done();
    assert_eq!(asked(&r), 2, "it is being looked at");
}
