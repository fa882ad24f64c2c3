use tiller_protocol::ask::PermissionAsk;
use tiller_protocol::{Decision, Risk};
use uuid::Uuid;

use super::*;

fn permission(shown: &str) -> AskBody {
    AskBody::Permission(PermissionAsk {
        tool: "terminal".into(),
        verb: "shell".into(),
        shown: shown.into(),
        hash: format!("hash of {shown}"),
        diff: None,
        folder: String::new(),
        why: String::new(),
        rule: "no permission rule matches".into(),
        effects: Vec::new(),
        risk: Risk::High,
        always: None,
        editable: true,
        outside: tiller_protocol::ask::OutsideAnswer::No,
        calls: Vec::new(),
        draft: None,
        source: None,
    })
}

fn id(n: u128) -> AskId {
    AskId(Uuid::from_u128(n))
}

fn yes(shown: &str) -> AskReply {
    AskReply::Permission { decision: Decision::Once, hash: format!("hash of {shown}") }
}

#[test]
fn identical_questions_are_answered_together_and_only_once() {
    let mut asks = Asks::default();
    let (w1, mut r1) = oneshot::channel();
    let (w2, mut r2) = oneshot::channel();
    let (w3, mut r3) = oneshot::channel();
    assert!(asks.open(id(1), AgentId::main(), None, permission("ls"), w1).is_some());
    assert!(asks.open(id(2), AgentId::main(), None, permission("ls"), w2).is_none());
    assert!(asks.open(id(3), AgentId::main(), None, permission("rm -r x"), w3).is_some());
    assert_eq!(asks.answer(id(3), yes("ls")), Err(AnswerError::OtherText));
    assert_eq!(asks.answer(id(1), AskReply::Yes { value: None }), Err(AnswerError::Kind));
    asks.answer(id(1), yes("ls")).unwrap();
    assert!(r1.try_recv().is_ok() && r2.try_recv().is_ok());
    assert!(r3.try_recv().is_err(), "another text waits on");
    assert_eq!(asks.answer(id(1), yes("ls")), Err(AnswerError::Gone));
    drop(r3);
    assert_eq!(asks.prune().len(), 1);
    assert!(asks.is_empty());
}

#[test]
fn the_same_question_of_another_agent_is_a_question_of_its_own() {
    let mut asks = Asks::default();
    let (w1, mut r1) = oneshot::channel();
    let (w2, mut r2) = oneshot::channel();
    assert!(asks.open(id(1), AgentId::main(), None, permission("ls"), w1).is_some());
    assert!(asks.open(id(2), AgentId("main/a1".into()), None, permission("ls"), w2).is_some());
    asks.answer(id(1), yes("ls")).unwrap();
    assert!(r1.try_recv().is_ok() && r2.try_recv().is_err(), "who answered may not have seen the second");
    asks.answer(id(2), yes("ls")).unwrap();
    assert!(r2.try_recv().is_ok());
}
