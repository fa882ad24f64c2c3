//! The model's question, driven by the robot.

use tiller_protocol::EventBody;
use tiller_protocol::event::AskEvent;
use tiller_protocol::event::ReplyEvent;
use tiller_protocol::{AgentId, AskId, SeqIds};

use super::*;
use crate::testing::{Robot, START};

fn ask(multiple: bool, free: bool, choices: &[&str]) -> Ask {
    let body = AskBody::Clarify {
        question: "Which client shall keep the retry logic?\nThe other one goes.".into(),
        choices: choices.iter().map(|c| (*c).into()).collect(),
        allow_freetext: free,
        multiple,
        default: Some(1).filter(|_| choices.len() > 1),
        decides: Vec::new(),
    };
    Ask { id: AskId::fresh(&SeqIds::default(), START), agent: AgentId::main(), call: None, body }
}

fn listening(width: u16, height: u16, ask: &Ask) -> Robot {
    let mut r = Robot::new(width, height);
    r.event(EventBody::Ask(AskEvent::QuestionAsked { ask: ask.clone() }));
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

fn choice(answers: &[&str]) -> Option<AskReply> {
    Some(AskReply::Choice { answers: answers.iter().map(|a| (*a).into()).collect() })
}

const THREE: [&str; 3] = ["the old one", "the new one", "both, behind a flag"];

#[test]
fn looks_well_at_both_sizes() {
    let mut r = listening(80, 24, &ask(false, true, &THREE));
    insta::assert_snapshot!("clarify_at_80x24", r.screen());
    r.run("size 118x25");
    insta::assert_snapshot!("clarify_at_118x25", r.screen());
}

#[test]
fn arrows_digits_filter_and_own_words() {
    for (keys, want) in [
        ("enter", choice(&["the new one"])), // the declared default is chosen first
        ("up; enter", choice(&["the old one"])),
        ("down; down; enter", choice(&["both, behind a flag"])),
        ("3", choice(&["both, behind a flag"])),
        ("type flag; enter", choice(&["both, behind a flag"])),
        ("tab; type neither; enter", choice(&["neither"])),
        ("paste my own; enter", choice(&["my own"])),
        ("type zzz; enter", None),
        ("tab; enter", None),
    ] {
        let mut r = listening(80, 24, &ask(false, true, &THREE));
        r.run(keys);
        assert_eq!(replied(&r), want, "{keys}\n{}", r.screen());
    }
}

#[test]
fn several_are_marked_with_space_or_digits() {
    let mut r = listening(80, 24, &ask(true, true, &THREE));
    r.run("1; down; down; space; up; up; enter");
    assert_eq!(replied(&r), choice(&["the old one", "both, behind a flag"]), "{}", r.screen());
    let mut r = listening(80, 24, &ask(true, true, &THREE));
    r.run("1; tab; type and docs; enter");
    assert_eq!(replied(&r), choice(&["the old one", "and docs"]));
}

#[test]
fn only_listed_answers_where_words_are_not_allowed() {
    let mut r = listening(80, 24, &ask(false, false, &THREE));
    r.run("tab; type x; enter");
    assert_eq!(replied(&r), None);
    assert!(!r.screen().contains("type an answer"), "{}", r.screen());
}

#[test]
fn escape_puts_it_aside_and_an_action_declines() {
    let mut r = listening(80, 24, &ask(false, true, &THREE));
    r.run("type old; esc");
    assert_eq!(replied(&r), None, "the first ends the filter");
    assert!(r.footer().contains("Esc later"), "{}", r.footer());
    r.run("esc; wait 5000");
    assert_eq!(replied(&r), None);
    assert!(r.screen().contains("Waiting for your answer (Ctrl-X a)"), "{}", r.screen());
    r.run("ctrl-x a; wait 401; ctrl-x x");
    assert_eq!(replied(&r), Some(AskReply::Declined));
    let mut r = listening(80, 24, &ask(false, true, &THREE));
    r.run("ctrl-x -");
    assert!(!r.screen().contains("Question from") && r.screen().contains("needs you"), "{}", r.screen());
    r.run("ctrl-x a; wait 401; 1");
    assert_eq!(replied(&r), choice(&["the old one"]));
}

#[test]
fn nothing_counts_while_it_is_deaf() {
    let mut r = Robot::new(80, 24);
    r.event(EventBody::Ask(AskEvent::QuestionAsked { ask: ask(false, true, &THREE) }));
    r.run("enter; paste x; wait 399; ctrl-x a; 1; ctrl-x a; enter; wait 399; enter; wait 399; ctrl-x x; wait 399; 3");
    assert_eq!(replied(&r), None);
    assert!(r.screen().contains("▌ x13"), "{}", r.screen());
    r.run("ctrl-x a; wait 400; 2");
    assert_eq!(replied(&r), choice(&["the new one"]));
}

#[test]
fn a_question_from_before_a_restart_is_asked_again() {
    let a = ask(false, true, &THREE);
    let mut r = Robot::new(80, 24);
    r.app.model.questions.open.push(a);
    r.run("wait 1; wait 401; 1");
    assert_eq!(replied(&r), choice(&["the old one"]));
}

#[test]
fn without_choices_one_writes() {
    let mut r = listening(60, 20, &ask(false, false, &[]));
    r.run("type 42; ctrl-j; type lines; enter");
    assert_eq!(replied(&r), choice(&["42\nlines"]));
}

#[test]
fn an_answer_that_was_begun_is_there_again_or_in_the_history() {
    let a = ask(false, true, &THREE);
    let mut r = listening(80, 24, &a);
    r.run("tab; type neither of; ctrl-x -");
    assert!(!r.screen().contains("neither of"), "{}", r.screen());
    r.run("ctrl-x a; enter");
    assert!(r.screen().contains("neither of"), "{}", r.screen());
    assert_eq!(replied(&r), None, "input is delayed again");
    r.run("type  them; wait 401; enter");
    assert_eq!(replied(&r), choice(&["neither of them"]));
    // Declined, or answered elsewhere: the words come back with Up.
    for keys in ["esc; esc", "ctrl-x -"] {
        let mut r = listening(80, 24, &a);
        r.run("tab; type neither of").run(keys);
        r.event(EventBody::Ask(AskEvent::QuestionAnswered { id: a.id, reply: AskReply::Declined }));
        assert!(r.words().contains("composer's history"), "{keys}: {}", r.screen());
        r.run("up");
        r.reply(ReplyEvent::HistoryReply { prompts: Vec::new() });
        assert!(r.screen().contains("neither of"), "{keys}: {}", r.screen());
    }
}

#[test]
fn what_grants_something_is_chosen_by_its_number_only() {
    let mut a = ask(false, false, &["Yes, I trust this folder", "No, exit"]);
    let AskBody::Clarify { default, decides, .. } = &mut a.body else { panic!("{a:?}") };
    (*default, *decides) = (None, vec![0]);
    let yes = choice(&["Yes, I trust this folder"]);
    for (keys, want) in [
        ("enter", choice(&["No, exit"])), // the list begins on what grants nothing
        ("up; enter; space; enter", None),
        ("type yes; wait 4001; space", None),
        ("type yes; ctrl-x a; wait 401; up; enter; wait 401; enter", None),
        ("up; 1", yes.clone()),
        ("type yes; 1", None), // part of the same words
        ("type yes; wait 4001; 1", None),
        ("type yes; ctrl-x a; wait 401; 1", yes),
    ] {
        let mut r = listening(80, 24, &a);
        r.run(keys);
        assert_eq!(replied(&r), want, "{keys}\n{}", r.screen());
    }
    let mut r = listening(80, 24, &a);
    assert!(r.screen().contains("Press the number") && r.screen().contains("Enter answer"), "{}", r.screen());
    r.run("up");
    assert!(!r.screen().contains("Enter answer"), "{}", r.screen());
    r.run("enter");
    assert!(r.screen().contains("To approve, press the number"), "{}", r.screen());
}
