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
    assert!(r.screen().contains("conflict: the file has"), "{}", r.screen());
    assert!(
        r.words().contains("forced: src/client.rs is not as it was after the change any more"),
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
fn what_is_no_text_goes_back_as_a_whole() {
    let mut r = open(118, 25);
    r.run("l; l");
    assert!(r.words().contains("Not text: it goes back as a whole."), "{}", r.screen());
    for key in ["r", "R"] {
        r.run(key);
        let sent = rejects(&r).pop().unwrap();
        assert_eq!((sent.path.as_str(), sent.hunk.as_str()), ("assets/logo.png", ""));
        let stays = vec!["assets/logo.png: it was changed since".into()];
        r.reply(ReplyEvent::RejectReply { rejected: 0, conflicts: stays });
        r.reply(ReplyEvent::ReviewReply { review: changes() });
        assert!(r.words().contains("conflict: the file has changed since"), "{}", r.screen());
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
fn what_was_taken_back_whole_can_be_undone_and_remarks_sent() {
    let mut r = open(80, 24);
    r.run("c; type keep the log; enter; R");
    r.reply(ReplyEvent::RejectReply { rejected: 2, conflicts: Vec::new() });
    r.reply(ReplyEvent::ReviewReply { review: Changes { files: Vec::new(), ..changes() } });
    assert!(r.screen().contains("nothing of this turn is left"), "{}", r.screen());
    assert!(r.footer().contains("z undo") && r.footer().contains("S send"), "{}", r.footer());
    r.clear().run("z");
    r.reply(ReplyEvent::RejectReply { rejected: 2, conflicts: Vec::new() });
    r.reply(ReplyEvent::ReviewReply { review: changes() });
    assert!(r.screen().contains("client.rs") && r.screen().contains("# keep the log"), "{}", r.screen());
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
    assert!(r.screen().contains("review:"));
    r.run("esc");
    assert!(!r.screen().contains("review: 3 files"));
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
    assert!(r.screen().contains("# also log when capped"), "{}", r.screen());
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
    let beside = |r: &Robot| r.screen().lines().any(|l| l.contains("41 - ") && l.contains("41 + "));
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
    assert!(r.words().contains("no room for old and new"), "{}", r.screen());
}

#[test]
fn nothing_to_review_says_so() {
    let mut r = Robot::new(80, 24);
    r.run("ctrl-x d");
    let notice = Notice::new(NoticeKind::User, "no turn has changed files yet");
    r.reply(ReplyEvent::ErrorReply { notice });
    assert!(r.screen().contains("nothing to review: no turn has changed files yet"), "{}", r.screen());
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
        r.msg(crate::msg::Msg::Mouse(MouseEvent {
            kind,
            column,
            row: row as u16,
            modifiers: KeyModifiers::NONE,
        }));
    };
    click(&mut r, "b c");
    r.run("c; type why; enter");
    assert!(r.screen().contains("# why"), "{}", r.screen());
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
    r.event(EventBody::Turn(TurnEvent::TurnFinished {
        status: tiller_protocol::event::TurnStatus::Done,
        text: String::new(),
        usage: Default::default(),
        cost_usd: None,
        error: None,
    }));
    assert_eq!(asked(&r), 2, "it is being looked at");
}
