//! The approval dialog, driven by the robot.

use tiller_protocol::EventBody;
use tiller_protocol::ask::CommandSource;
use tiller_protocol::event::{AskEvent, ReplyEvent};
use tiller_protocol::{AgentId, Notice, NoticeKind, PermissionOutcome, SeqIds, ToolVerb};

use super::*;
use crate::app::msg::Msg;
use crate::input::Input;
use crate::testing::{Robot, START};

pub(super) fn permission(shown: &str, risk: Risk) -> PermissionAsk {
    PermissionAsk {
        tool: "terminal".into(),
        verb: "shell".into(),
        shown: shown.into(),
        hash: format!("hash of {shown}"),
        diff: None,
        folder: "~/api".into(),
        why: "publish the docs branch".into(),
        rule: "no permission rule matches".into(),
        effects: vec!["writes to remote \"origin\"; cannot be undone by a checkpoint".into()],
        risk,
        always: Some("terminal(git push origin <branch>)".into()),
        editable: true,
        outside: tiller_protocol::ask::OutsideAnswer::No,
        calls: Vec::new(),
        draft: None,
        source: None,
    }
}

pub(super) fn ask(ids: &SeqIds, p: PermissionAsk) -> Ask {
    let agent = AgentId("main".into());
    Ask { id: AskId::fresh(ids, START), agent, call: None, body: AskBody::Permission(p) }
}

pub(super) fn asked(r: &mut Robot, ask: &Ask) {
    r.event(EventBody::Ask(AskEvent::PermissionAsked { ask: ask.clone() }));
}

/// A robot with one question on the screen, listening.
fn listening(width: u16, height: u16, p: PermissionAsk) -> (Robot, Ask) {
    let mut r = Robot::new(width, height);
    let a = ask(&SeqIds::default(), p);
    asked(&mut r, &a);
    r.run("wait 401").clear();
    (r, a)
}

/// Decision and hash of the only command that was sent.
fn decided(r: &Robot) -> Option<(Decision, String)> {
    match r.commands()[..] {
        [CommandBody::Ask(AskCommand::Answer { reply: AskReply::Permission { decision, hash }, .. })] => {
            Some((decision.clone(), hash.clone()))
        }
        [] => None,
        _ => panic!("{:?}", r.commands()),
    }
}

#[test]
fn looks_like_the_picture() {
    let (mut r, _) = listening(80, 24, permission("git push origin docs", Risk::High));
    insta::assert_snapshot!("at_80x24", r.screen());
    r.run("size 118x25");
    insta::assert_snapshot!("at_118x25", r.screen());
    r.run("size 40x12");
    insta::assert_snapshot!("at_40x12", r.screen());
}

#[test]
fn each_key_does_what_its_button_says() {
    let p = || permission("git push", Risk::High);
    let session = Decision::Session { pattern: "terminal(git push origin <branch>)".into() };
    for (keys, want) in [
        ("n", Decision::Deny { comment: None }),
        ("1", Decision::Deny { comment: None }),
        ("c; type not now; enter", Decision::Deny { comment: Some("not now".into()) }),
        ("y", Decision::Once),
        ("3", Decision::Once),
        ("s", session.clone()),
        ("4", session),
        ("e; type  -n; enter", Decision::Edit { text: "git push -n".into() }),
        ("A; enter; wait 401; A", Decision::Always { pattern: "terminal(git push origin <branch>)".into() }),
        (
            "6; ctrl-u; type terminal(git push); enter; wait 401; 6",
            Decision::Always { pattern: "terminal(git push)".into() },
        ),
    ] {
        let (mut r, _) = listening(80, 24, p());
        r.run(keys);
        let (decision, hash) = decided(&r).unwrap_or_else(|| panic!("{keys}: {}", r.screen()));
        if let (Decision::Edit { text }, Decision::Edit { text: w }) = (&decision, &want) {
            assert_eq!(text.replace(' ', ""), w.replace(' ', ""));
        } else {
            assert_eq!(decision, want, "{keys}");
        }
        assert_eq!(hash, "hash of git push");
    }
}

#[test]
fn nothing_counts_while_it_is_deaf() {
    let mut r = Robot::new(80, 24);
    let a = ask(&SeqIds::default(), permission("git push", Risk::Low));
    asked(&mut r, &a);
    r.run("enter; wait 399; tab; wait 399; enter; wait 399; enter; wait 1");
    assert_eq!(decided(&r), None, "each key that is not taken begins it anew: {}", r.screen());
    r.run("y; n; s");
    assert_eq!(decided(&r), None, "{}", r.screen());
    assert!(r.screen().contains("▌ yns") && r.screen().contains("wants to"), "it is kept: {}", r.screen());
    r.run("ctrl-u; ctrl-x a; wait 400");
    // A change of the text begins it anew.
    let mut other = a.clone();
    other.body = AskBody::Permission(permission("git push --force", Risk::Low));
    r.run("wait 2");
    asked(&mut r, &other);
    r.run("wait 300; enter; wait 399; enter");
    assert_eq!(decided(&r), None);
    // So does the return of the focus, also when the terminal forgets to tell.
    r.run("wait 401").msg(Msg::Input(Input::FocusLost)).run("wait 1000; enter; wait 300; enter");
    assert_eq!(decided(&r), None);
    r.run("wait 401; y");
    assert_eq!(decided(&r), Some((Decision::Once, "hash of git push --force".into())));
}

/// A message that was meant for the composer, typed without a look at the screen.
#[test]
fn words_that_are_typed_into_it_answer_nothing() {
    let (mut r, _) = listening(80, 24, permission("ls", Risk::Low));
    r.run("type wait, say yes");
    assert!(decided(&r).is_none(), "{:?}", r.commands());
    assert!(r.screen().contains("wait, say yes") && r.screen().contains("wants to"), "{}", r.screen());
    assert!(r.words().contains("Ctrl-X a answers"), "{}", r.screen());
    r.run("wait 5000; type y; wait 5000; ctrl-x a; wait 399; enter");
    assert!(decided(&r).is_none());
    r.run("wait 401; enter");
    assert_eq!(decided(&r).unwrap().0, Decision::Once);
}

#[test]
fn enter_says_yes_only_to_what_is_harmless() {
    let (mut r, _) = listening(80, 24, permission("ls", Risk::Low));
    r.run("enter");
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Once));
    let (mut r, _) = listening(80, 24, permission("rm x", Risk::High));
    r.run("enter");
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Deny { comment: None }), "the focus is on no");
    for moves in ["tab tab tab", "left", "shift-tab left", "left left left", "right right right space"] {
        let (mut r, _) = listening(80, 24, permission("rm x", Risk::High));
        r.run(moves).run("enter");
        assert_eq!(decided(&r), None, "{moves}");
        assert!(r.screen().contains("press the key of the button"), "{}", r.screen());
    }
}

#[test]
fn a_click_never_approves() {
    use crossterm::event::KeyModifiers;
    for (label, want) in
        [("[n] no", Some(Decision::Deny { comment: None })), ("[y] once", None), ("[s] ses", None)]
    {
        let (mut r, _) = listening(80, 24, permission("ls", Risk::Low));
        let screen = r.screen();
        let (row, line) = screen.lines().enumerate().find(|(_, l)| l.contains(label)).unwrap();
        let at = line.find(label).unwrap();
        let column = line[..at].chars().count() as u16 + 1;
        let down = MouseEventKind::Down(MouseButton::Left);
        let click = MouseEvent { kind: down, column, row: row as u16, modifiers: KeyModifiers::NONE };
        r.msg(Msg::Input(Input::FocusLost))
            .msg(Msg::Input(Input::FocusGained))
            .msg(Msg::Input(Input::Mouse(click)));
        assert_eq!(decided(&r), None, "the click that brought the window to the front");
        r.run("wait 500").msg(Msg::Input(Input::Mouse(click)));
        assert_eq!(decided(&r).map(|d| d.0), want, "{label}");
    }
}

#[test]
fn the_draft_is_kept_and_typing_is_not_interrupted() {
    let mut r = Robot::new(80, 24);
    r.run("type half a thought");
    let a = ask(&SeqIds::default(), permission("git push", Risk::High));
    asked(&mut r, &a);
    let both = |r: &Robot| r.screen().contains("wants to") && r.screen().contains("half a thought");
    assert!(both(&r), "{}", r.screen());
    r.run("wait 3000; type , y; wait 3000; enter");
    assert!(
        matches!(&r.commands()[..], [CommandBody::Turn(_)]) && r.screen().contains("wants to"),
        "keys are for the draft: {:?}",
        r.commands()
    );
    r.clear().run("type half a thought; ctrl-x a");
    assert!(r.screen().contains("wants to") && !r.screen().contains("half a thought"), "{}", r.screen());
    r.run("esc");
    assert!(
        r.screen().contains("half a thought") && r.screen().contains("1 needs you · Ctrl-X a"),
        "{}",
        r.screen()
    );
    assert_eq!(decided(&r), None);
    r.run("ctrl-x a; wait 401; n");
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Deny { comment: None }));
}

#[test]
fn leaving_a_text_makes_it_deaf_again() {
    let (mut r, _) = listening(80, 24, permission("ls", Risk::Low));
    r.run("c; type say; esc; type yes");
    assert_eq!(decided(&r), None, "what is still being typed answers nothing");
    assert!(r.screen().contains("▌ yes"), "it is writing: {}", r.screen());
    r.run("ctrl-x a; wait 401; c; enter");
    assert_eq!(
        decided(&r).map(|d| d.0),
        Some(Decision::Deny { comment: Some("say".into()) }),
        "the words are kept"
    );
}

#[test]
fn an_answer_that_was_not_taken_can_be_given_again() {
    let (mut r, a) = listening(80, 24, permission("ls", Risk::Low));
    r.run("y; enter; tab; enter");
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Once), "sent once only");
    r.reply(ReplyEvent::ErrorReply { notice: Notice::new(NoticeKind::User, "the text has changed") });
    assert!(r.screen().contains("Not accepted: the text has changed"), "{}", r.screen());
    r.clear().run("wait 401; n");
    assert!(decided(&r).is_some());
    let by = AskEvent::PermissionDecided {
        id: Some(a.id),
        tool: "terminal".into(),
        what: "ls".into(),
        decision: PermissionOutcome::Refused,
        by: "person".into(),
        allow: None,
        change: false,
    };
    r.event(EventBody::Ask(by));
    assert!(!r.screen().contains("wants to"));
}

#[test]
fn the_next_one_comes_at_once_and_deaf() {
    let (mut r, a) = listening(80, 24, permission("ls one", Risk::Low));
    let ids = SeqIds::default();
    let _ = ask(&ids, permission("", Risk::Low));
    let b = ask(&ids, permission("ls two", Risk::Low));
    asked(&mut r, &b);
    assert!(r.screen().contains("1 of 2"), "{}", r.screen());
    r.run("y");
    let by = |id| {
        let (tool, what) = ("terminal".into(), "ls".into());
        AskEvent::PermissionDecided {
            id: Some(id),
            tool,
            what,
            decision: PermissionOutcome::Once,
            by: "person".into(),
            allow: None,
            change: false,
        }
    };
    r.clear().event(EventBody::Ask(by(a.id)));
    assert!(r.screen().contains("ls two"), "{}", r.screen());
    r.run("enter; wait 300; enter");
    assert_eq!(decided(&r), None, "the second is not answered by the first one's key");
    r.run("wait 401; y");
    assert_eq!(decided(&r), Some((Decision::Once, "hash of ls two".into())));
}

/// The person can go from a question to a panel although another question waits.
#[test]
fn a_key_to_a_panel_puts_all_aside() {
    let (mut r, _) = listening(80, 24, permission("ls one", Risk::Low));
    let ids = SeqIds::default();
    let _ = ask(&ids, permission("", Risk::Low));
    asked(&mut r, &ask(&ids, permission("ls two", Risk::Low)));
    r.run("alt-3; wait 2000");
    assert!(!r.screen().contains("wants to") && r.screen().contains("2 need you"), "{}", r.screen());
    // One more is told at once.
    let _ = ask(&ids, permission("", Risk::Low));
    asked(&mut r, &ask(&ids, permission("ls three", Risk::Low)));
    assert!(r.screen().contains("wants to") && r.screen().contains("ls three"), "{}", r.screen());
}

#[test]
fn a_long_text_is_read_to_its_end_before_a_yes() {
    let long: String = (0..60).map(|n| format!("echo {n}\n")).collect();
    let (mut r, _) = listening(80, 24, permission(&long, Risk::Low));
    assert!(r.screen().contains("read to the end before approving"), "{}", r.screen());
    r.run("y; enter; s; A; G; wait 1; y");
    assert_eq!(decided(&r), None, "jumping to the end is not reading: {}", r.screen());
    r.run("g; space; space; space; space; space; space; space; y");
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Once), "{}", r.screen());
}

#[test]
fn without_an_honest_rule_neither_session_nor_always_is_there() {
    let p = PermissionAsk { always: None, editable: false, ..permission("a | b", Risk::High) };
    let (mut r, _) = listening(80, 24, p);
    let screen = r.screen();
    for gone in ["[s]", "[A]", "[e]", "[4]"] {
        assert!(!screen.contains(gone), "{gone}\n{screen}");
    }
    r.run("s; A; e; 4; 5; 6");
    assert_eq!(decided(&r), None);
    r.run("y");
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Once));
}

#[test]
fn the_command_file_of_a_line_is_named() {
    let source = CommandSource { name: "deploy".into(), file: ".tiller/commands/deploy.md".into() };
    let p = PermissionAsk { source: Some(source), ..permission("make deploy", Risk::Low) };
    let (r, _) = listening(118, 25, p);
    assert!(r.screen().contains("From: /deploy, .tiller/commands/deploy.md"), "{}", r.screen());
}

/// Everything that can be scrolled to at this size, as the rows between frame and status line.
fn all_rows(r: &mut Robot) -> String {
    let mut out: Vec<String> = Vec::new();
    r.run("g");
    loop {
        let screen = r.screen();
        // The title's row is the first one.
        let mut rows = screen.lines().filter(|l| l.starts_with('▌')).skip(1);
        let first = rows.next().unwrap_or_default().to_owned();
        let row = first.trim_start_matches('▌').to_owned();
        out.push(row);
        r.run("down");
        if r.screen() == screen {
            let inner: Vec<String> = screen
                .lines()
                .filter(|l| l.starts_with('▌'))
                .skip(1)
                .map(|l| l.trim_start_matches('▌').to_owned())
                .collect();
            out.pop();
            out.extend(inner);
            return out.concat();
        }
    }
}

/// X7: the whole text can be reached at 40 columns, and the answer carries the hash of what was shown.
#[test]
fn x7_what_is_shown_is_what_is_answered() {
    let mut seed = 7u64;
    for round in 0..40 {
        let mut text = String::new();
        for _ in 0..(round * 13 % 90 + 1) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = (seed >> 33) as usize;
            let parts = [
                "rm", "-rf", "/", ";", "\n", "echo", "'x y'", "\t", "&&", "\u{202e}", "äöü", "漢字", "$(id)",
                "\r",
            ];
            text.push_str(parts[pick % parts.len()]);
        }
        let (mut r, _) = listening(40, 12, permission(&text, Risk::High));
        let reached = all_rows(&mut r).replace([' ', '▌'], "");
        let clean: String =
            text.split('\n').map(|l| crate::text::clean::plain(l).replace([' ', '\t'], "")).collect();
        assert!(reached.starts_with(&clean), "{round}: {text:?}\n{reached}\n{clean}");
        r.clear().run("y");
        assert_eq!(decided(&r), Some((Decision::Once, format!("hash of {text}"))), "{}", r.screen());
    }
}

/// A memory file may be outside of the folder, and its undo is that of memory.
#[test]
fn a_question_about_memory_says_what_is_done_to_which_file_and_how_it_is_undone() {
    let p = PermissionAsk {
        verb: ToolVerb::Memory,
        diff: Some("--- MEMORY.md\n+++ MEMORY.md\n@@ -0,0 +1 @@\n+- a fact\n".into()),
        folder: String::new(),
        ..permission("MEMORY.md", Risk::Low)
    };
    let (r, _) = listening(118, 25, p);
    // The paragraph is wrapped.
    let screen = r.screen().replace('▌', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        screen.contains("wants to change MEMORY.md") && screen.contains("/memory undoes it."),
        "{screen}"
    );
    assert!(!screen.contains("Inside this folder"), "{screen}");
}

/// U9: what the eye cannot see is spelled out, in the command and in the difference.
#[test]
fn u9_hidden_characters_are_spelled_out_in_approvals() {
    let p = PermissionAsk {
        diff: Some("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-safe\n+s\u{200b}afe\u{2066} //\n".into()),
        ..permission("git\u{a0}push \u{202e}nigiro\u{202c} ma\u{200d}in \u{1b}[2K", Risk::High)
    };
    let (mut r, _) = listening(80, 24, p);
    let mut all = r.screen();
    r.run("G");
    all.push_str(&r.screen());
    for want in ["<U+202E>", "<U+202C>", "<U+200D>", "<U+200B>", "<U+2066>", "<U+00A0>", "\\x1b[2K"] {
        assert!(all.contains(want), "{want}\n{all}");
    }
    assert!(all.contains("invisible or misleading"), "{all}");
    for c in all.chars() {
        assert!(!('\u{200b}'..='\u{200f}').contains(&c) && !('\u{202a}'..='\u{202e}').contains(&c));
    }
}

/// After the set time a question without an answer counts as no, also a question that was put aside. Each
/// question has its own time, and a person who is at the dialog is not cut off.
#[test]
fn no_answer_within_the_set_time_is_a_no() {
    let ui = tiller_config::schema::Ui { approval_timeout: 60, ..Default::default() };
    let mut r = Robot::with(118, 25, ui);
    let denied = |r: &Robot| -> Vec<AskId> {
        r.commands()
            .into_iter()
            .filter_map(|c| match c {
                CommandBody::Ask(AskCommand::Answer {
                    id,
                    reply: AskReply::Permission { decision: Decision::Deny { comment: Some(why) }, .. },
                }) if why.contains("No answer came within 60 s") => Some(*id),
                _ => None,
            })
            .collect()
    };
    let (first, second) = (crate::scene::question(1), crate::scene::question(2));
    crate::scene::ask(&mut r, 1);
    r.run("wait 1");
    assert!(r.screen().contains("denied in 60 s"), "{}", r.screen());
    r.run("wait 18000");
    assert!(r.screen().contains("denied in 42 s"), "{}", r.screen());
    crate::scene::ask(&mut r, 2);
    // At the dialog: its time begins anew.
    r.run("down; wait 59000");
    assert!(denied(&r).is_empty(), "{}", r.screen());
    r.run("wait 500");
    r.run("esc");
    r.run("wait 1000");
    assert_eq!(denied(&r), [second.id], "the other one, which nobody looked at");
    r.run("wait 60000");
    assert_eq!(denied(&r), [second.id, first.id], "put aside is not answered");
    r.run("wait 600000");
    assert_eq!(denied(&r).len(), 2, "once each");
    // Where no time is set it waits for ever.
    let mut r = Robot::new(118, 25);
    crate::scene::ask(&mut r, 1);
    r.run("wait 90000000");
    assert!(r.commands().is_empty() && !r.screen().contains("no in"), "{}", r.screen());
}

#[test]
fn a_remark_that_was_begun_is_there_again() {
    let (mut r, a) = listening(80, 24, permission("git push origin docs", Risk::High));
    r.run("c; type not to ori; ctrl-x -");
    assert!(!r.screen().contains("not to ori"), "{}", r.screen());
    r.run("ctrl-x a; type gin; wait 401; enter");
    let comment = Some("not to origin".to_owned());
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Deny { comment }));
    // A no without it: the words are not lost.
    let (mut r, b) = listening(80, 24, permission("git push origin docs", Risk::High));
    r.run("c; type not now; esc; ctrl-x -");
    r.event(EventBody::Ask(AskEvent::PermissionDecided {
        id: Some(b.id),
        tool: "terminal".into(),
        what: String::new(),
        decision: PermissionOutcome::Denied,
        by: "nobody".into(),
        allow: None,
        change: false,
    }));
    assert!(r.words().contains("composer's history"), "{}", r.screen());
    let _ = a;
}

/// Answers that were sent: which questions, and what was decided.
fn answers(r: &Robot) -> Vec<(AskId, Decision)> {
    let answer = |c: &CommandBody| match c {
        CommandBody::Ask(AskCommand::Answer { id, reply: AskReply::Permission { decision, .. } }) => {
            Some((*id, decision.clone()))
        }
        _ => None,
    };
    r.commands().into_iter().filter_map(answer).collect()
}

#[test]
fn the_same_call_of_several_agents_is_answered_once_for_those_that_are_shown() {
    let ids = SeqIds::default();
    let of = |agent: &str, shown: &str| Ask {
        agent: AgentId(agent.into()),
        ..ask(&ids, permission(shown, Risk::High))
    };
    let first = of("main/a1", "git push");
    let (second, third) = (of("main/a2/a3", "git push"), of("main/a4", "git push"));
    let other = of("main/a5", "git push -f");
    let mut r = Robot::new(118, 25);
    for a in [&first, &second, &other] {
        asked(&mut r, a);
    }
    r.run("wait 401").clear();
    let screen = r.screen();
    assert!(screen.contains("a1 (for 2 agents) wants to run:") && screen.contains("1 of 3"), "{screen}");
    assert!(screen.contains("Also for: a2 > a3"), "{screen}");
    // Another of the same kind comes just before the key: it was not on the screen yet.
    asked(&mut r, &third);
    r.run("y");
    assert_eq!(answers(&r), [], "input is delayed: the question is another one now");
    r.run("ctrl-x a; wait 401; y");
    let once = |a: &Ask| (a.id, Decision::Once);
    assert_eq!(answers(&r), [once(&first), once(&second), once(&third)], "and not the one that differs");
    // Another command is for the one agent only.
    let mut r = Robot::new(118, 25);
    asked(&mut r, &first);
    asked(&mut r, &second);
    r.run("wait 401; e; type  -n; enter");
    assert_eq!(answers(&r), [(first.id, Decision::Edit { text: "git push -n".into() })]);
}

#[test]
fn two_calls_of_one_agent_are_two_questions() {
    let ids = SeqIds::default();
    let (a, b) =
        (ask(&ids, permission("git push", Risk::High)), ask(&ids, permission("git push", Risk::High)));
    let mut r = Robot::new(118, 25);
    asked(&mut r, &a);
    asked(&mut r, &b);
    r.run("wait 401").clear().run("y");
    assert_eq!(answers(&r), [(a.id, Decision::Once)]);
}

/// A yes that is not possible yet is shown so, with the key that makes it possible.
#[test]
fn a_yes_that_does_not_count_yet_is_dim_and_not_in_the_footer() {
    use ratatui::style::Modifier;
    let long: String = (0..60).map(|n| format!("echo {n}\n")).collect();
    let (mut r, _) = listening(118, 24, permission(long.trim_end(), Risk::Low));
    let look = |r: &Robot, text: &str| {
        let screen = r.screen();
        let (y, line) = screen.lines().enumerate().find(|(_, l)| l.contains(text)).unwrap();
        let x = line[..line.find(text).unwrap()].chars().count();
        let cell = r.buffer().cell((x as u16 + 1, y as u16)).unwrap();
        cell.style().add_modifier
    };
    assert!(look(&r, "[y] after reading").contains(Modifier::DIM), "{}", r.screen());
    assert!(!look(&r, "[n] no").contains(Modifier::DIM));
    let footer = r.footer();
    assert!(!footer.contains("once") && !footer.contains("deny"), "it is answered in one place: {footer}");
    assert!(r.screen().contains("[y] after reading"), "the button says why: {}", r.screen());
    r.run("y");
    assert!(r.commands().is_empty() && r.words().contains("Not yet:"), "{}", r.screen());
    assert!(r.words().contains("more rows ("), "the key is named: {}", r.screen());
    for _ in 0..10 {
        r.run("pagedown");
    }
    assert!(!look(&r, "[y] once").contains(Modifier::DIM), "{}", r.screen());
    assert!(!r.screen().contains("after reading"), "{}", r.screen());
    r.run("y");
    assert_eq!(decided(&r).map(|d| d.0), Some(Decision::Once));
}

/// The key that answers is worth more in the header than what the sandbox does not hold, which has its own dialog.
#[test]
fn the_key_of_a_question_stays_beside_the_gaps_of_the_sandbox() {
    use tiller_protocol::event::StateEvent;
    use tiller_protocol::{CapabilityState, SandboxCapability, SandboxState};
    let mut r = Robot::new(80, 24);
    let first = |r: &Robot| r.screen().lines().next().unwrap_or_default().to_owned();
    let gap = |short: &str| SandboxCapability {
        name: short.into(),
        short: short.into(),
        held: CapabilityState::Open { why: "it was".into() },
    };
    let sandbox = SandboxState {
        method: Some("Landlock and seccomp".into()),
        capabilities: ["outside writes", "UDP", "signals"].map(gap).into(),
        ..SandboxState::default()
    };
    r.event(EventBody::State(StateEvent::SandboxTested { sandbox: Box::new(sandbox) }));
    assert!(first(&r).contains("outside writes"), "{}", first(&r));
    r.run("type half a thought");
    asked(&mut r, &ask(&SeqIds::default(), permission("git push", Risk::High)));
    assert!(first(&r).contains("▲ 1 needs you · Ctrl-X a"), "{}", first(&r));
}
