//! Trust, budget and the rest, driven by the robot.

use tiller_protocol::EventBody;
use tiller_protocol::event::AskEvent;

use super::*;
use crate::testing::Robot;

fn listening(width: u16, height: u16, n: usize) -> Robot {
    let mut r = Robot::new(width, height);
    let ask = samples().remove(n);
    r.event(EventBody::Ask(AskEvent::QuestionAsked { ask }));
    r.run("wait 401").clear();
    r
}

fn replied(r: &Robot) -> Option<AskReply> {
    match r.commands()[..] {
        [CommandBody::Ask(AskCommand::Answer { reply, .. })] => Some(reply.clone()),
        [] => None,
        _ => panic!("{:?}", r.commands()),
    }
}

#[test]
fn each_answers_by_its_keys() {
    let yes = || Some(AskReply::Yes { value: None });
    let amount = |v: &str| Some(AskReply::Yes { value: Some(v.into()) });
    for (n, keys, want) in [
        (0, "t", yes()),
        (0, "n", Some(AskReply::Never)),
        (0, "esc", Some(AskReply::Declined)),
        (0, "enter", Some(AskReply::Declined)),
        (0, "tab; enter", Some(AskReply::Never)),
        (0, "tab; tab; enter", None),
        (1, "r; enter", amount("10.00")),
        (1, "r; ctrl-u; type 7.5; enter", amount("7.5")),
        (1, "r; ctrl-u; type lots; enter", None),
        (1, "s", Some(AskReply::Declined)),
        (1, "enter", Some(AskReply::Declined)),
        (1, "esc", None),
        (2, "y", yes()),
        (2, "n", Some(AskReply::Declined)),
        (3, "b", Some(AskReply::Branch)),
        (3, "r", Some(AskReply::ReadOnly)),
        (3, "n", Some(AskReply::Declined)),
        (4, "y", yes()),
        (4, "tab; enter", None),
    ] {
        let mut r = listening(80, 24, n);
        r.run(keys);
        assert_eq!(replied(&r), want, "{n}: {keys}\n{}", r.screen());
    }
}

#[test]
fn trust_shows_everything_that_comes_with_the_folder() {
    let mut r = listening(80, 24, 0);
    insta::assert_snapshot!("trust_at_80x24", r.screen());
    r.run("size 118x25");
    insta::assert_snapshot!("trust_at_118x25", r.screen());
}

#[test]
fn nothing_counts_while_it_is_deaf() {
    for n in 0..5 {
        let mut r = Robot::new(80, 24);
        r.event(EventBody::Ask(AskEvent::QuestionAsked { ask: samples().remove(n) }));
        r.run("enter; wait 399; enter; wait 399; t; y; b; r; s; n; wait 300; t; y; b; n");
        assert_eq!(replied(&r), None, "{n}");
        assert!(r.screen().contains("▌ tybrsntybn"), "{n}: {}", r.screen());
    }
}

/// Words for the composer, typed without a look at the screen, trust nothing.
#[test]
fn words_that_are_typed_into_it_answer_nothing() {
    let mut r = listening(80, 24, 0);
    r.run("type what is there to do");
    assert_eq!(replied(&r), None, "{}", r.screen());
    assert!(r.screen().contains("what is there to do"), "{}", r.screen());
    r.run("ctrl-x a; wait 401; t");
    assert_eq!(replied(&r), Some(AskReply::Yes { value: None }));
}

#[test]
fn a_folder_with_memory_alone_is_called_that() {
    let shown = |kinds: &[TrustKind]| {
        let mut ask = samples().remove(0);
        let item = |kind: &TrustKind| TrustItem {
            kind: kind.clone(),
            change: None,
            path: ".tiller/MEMORY.md".into(),
            detail: String::new(),
            hash: "0".into(),
        };
        ask.body =
            AskBody::Trust { folder: "/x".into(), brings: kinds.iter().map(item).collect(), changed: false };
        let mut r = Robot::new(118, 25);
        r.event(EventBody::Ask(AskEvent::QuestionAsked { ask }));
        r.words()
    };
    let memory = shown(&[TrustKind::Memory]);
    assert!(memory.contains("It contains memory files") && !memory.contains("run programs"), "{memory}");
    let both = shown(&[TrustKind::Memory, TrustKind::Hook]);
    assert!(both.contains("settings that run programs"), "{both}");
}

#[test]
fn a_long_list_is_read_before_it_is_trusted() {
    let mut ask = samples().remove(0);
    let item = |n| TrustItem {
        kind: TrustKind::Hook,
        change: None,
        path: format!("h{n}"),
        detail: "runs".into(),
        hash: "0".into(),
    };
    ask.body = AskBody::Trust { folder: "/x".into(), brings: (0..40).map(item).collect(), changed: false };
    let mut r = Robot::new(80, 24);
    r.event(EventBody::Ask(AskEvent::QuestionAsked { ask }));
    r.run("wait 401");
    let button = |r: &Robot| {
        let screen = r.screen();
        let (y, line) = screen.lines().enumerate().find(|(_, l)| l.contains("[t] trust")).unwrap();
        let x = line[..line.find("[t] trust").unwrap()].chars().count();
        r.buffer()[(x as u16, y as u16)].style()
    };
    let unread = button(&r);
    assert!(r.screen().contains("(PageDown): read to the end before you trust it"), "{}", r.screen());
    assert!(!r.footer().contains("trust"), "it is answered in one place: {}", r.footer());
    r.run("t");
    assert!(r.screen().contains("Not yet: ↓ ") && r.screen().contains("more rows"), "{}", r.screen());
    r.run("G; t");
    assert_eq!(replied(&r), None, "{}", r.screen());
    r.run("g");
    for _ in 0..12 {
        r.run("space");
    }
    assert!(!r.screen().contains("before you trust it"), "{}", r.screen());
    assert_ne!(button(&r), unread, "the button was dim");
    r.run("t");
    assert!(replied(&r).is_some(), "{}", r.screen());
}

#[test]
fn a_plan_is_read_changed_approved_or_dropped() {
    let change = || Some(AskReply::Choice { answers: vec!["fewer steps".into()] });
    for (keys, want) in [
        ("a", Some(AskReply::Yes { value: None })),
        ("d", Some(AskReply::Never)),
        ("c; type fewer steps; enter", change()),
        ("c; enter", None),
        ("enter; type fewer steps; enter", change()),
        ("esc", None),
        ("tab; tab; tab; enter", None),
        ("y", None),
    ] {
        let mut r = listening(80, 24, 5);
        r.run(keys);
        assert_eq!(replied(&r), want, "{keys}\n{}", r.screen());
    }
    let mut r = listening(80, 24, 5);
    insta::assert_snapshot!("plan_at_80x24", r.screen());
    r.run("size 118x25; c; type fewer");
    insta::assert_snapshot!("plan_at_118x25", r.screen());
}

#[test]
fn a_plan_is_opened_in_the_editor_and_read_again() {
    use crate::app::effect::External;
    use crate::app::effect::Task;
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("plan.md");
    std::fs::write(&file, "1. What the person wrote\n").unwrap();
    let name = file.display().to_string();
    let mut r = Robot::new(118, 25);
    let body = AskBody::Plan { file: name, plan: "1. What the agent wrote\n".into() };
    let ask = Ask { body, ..samples().remove(5) };
    r.event(EventBody::Ask(AskEvent::QuestionAsked { ask }));
    r.run("wait 401; e");
    assert!(r.screen().contains("What the agent wrote"), "{}", r.screen());
    let at = r.tasks.iter().position(|t| matches!(t, Task::Suspend(..))).unwrap();
    let Task::Suspend(External::Editor { file: opened, line: None }) = r.tasks.remove(at) else { panic!() };
    assert_eq!(opened, file);
    r.app.edited("Editor", Ok(()));
    r.run("wait 1");
    let at = r.tasks.iter().position(|t| matches!(t, Task::Job(..))).unwrap();
    let Task::Job(job, token) = r.tasks.remove(at) else { panic!() };
    r.msg(crate::app::msg::Msg::Job(token, job()));
    assert!(r.screen().contains("What the person wrote"), "{}", r.screen());
}

/// An answer stands on its button, with its key, and not in the footer again.
#[test]
fn no_answer_stands_in_the_footer_too() {
    for n in 0..samples().len() {
        for (width, height) in [(80, 24), (118, 32)] {
            let r = listening(width, height, n);
            let (screen, footer) = (r.screen(), r.footer());
            let buttons: Vec<&str> = screen
                .lines()
                .flat_map(|l| l.split('[').skip(1))
                .filter_map(|b| b.split_once("] "))
                .map(|(key, _)| key)
                .collect();
            assert!(!buttons.is_empty(), "{n}: {screen}");
            for key in buttons {
                let twice = footer.trim().split("  ").any(|item| item.starts_with(&format!("{key} ")));
                assert!(!twice, "{n}: {key} twice\n{screen}");
            }
        }
    }
}
