use serde_json::json;

use super::*;
use crate::testing::Bench;

fn choice(answers: &[&str]) -> AskReply {
    AskReply::Choice { answers: answers.iter().map(|s| (*s).to_owned()).collect() }
}

#[tokio::test]
async fn asks_and_passes_the_answer_on() {
    let b = Bench::new();
    b.ports.reply(choice(&["red", "blue"]));
    let args =
        json!({"question": "Which?", "choices": ["red", "blue\x1b[0m"], "multiple": true, "default": 1});
    assert_eq!(b.say(&Clarify, args).await, "the user answered: red; blue");
    let asked = b.ports.asked.lock().unwrap().clone();
    let want = AskBody::Clarify {
        question: "Which?".into(),
        choices: vec!["red".into(), "blue␛[0m".into()],
        allow_freetext: true,
        multiple: true,
        default: Some(1),
        decides: Vec::new(),
    };
    assert_eq!(asked, [want]);
}

#[tokio::test]
async fn tells_when_declined_or_when_nobody_is_there() {
    let b = Bench::new();
    b.ports.reply(AskReply::Declined);
    let err = b.call(&Clarify, json!({"question": "?"})).await.unwrap_err();
    assert!(matches!(err, ToolError::Declined(t) if t.contains("declined")));
    let said = b.say(&Clarify, json!({"question": "?", "choices": ["a", "b"], "default": 1})).await;
    assert!(said.contains("nobody is there") && said.ends_with("your default was used: b"), "{said}");
    let err = b.call(&Clarify, json!({"question": "?", "choices": ["a"]})).await.unwrap_err();
    assert!(matches!(err, ToolError::Unanswered(_)));
}

#[tokio::test]
async fn refuses_what_cannot_be_answered() {
    let b = Bench::new();
    for args in [
        json!({"question": " "}),
        json!({"question": "?", "choices": ["1", "2", "3", "4", "5", "6", "7"]}),
        json!({"question": "?", "choices": ["1", "1"]}),
        json!({"question": "?", "choices": [""]}),
        json!({"question": "?", "allow_freetext": false}),
        json!({"question": "?", "choices": ["1"], "default": 1}),
    ] {
        assert!(matches!(b.call(&Clarify, args).await, Err(ToolError::Tell(_))));
    }
    assert!(b.ports.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn can_be_interrupted_while_it_waits() {
    let b = Bench::new();
    b.cx.cancel.cancel();
    b.ports.reply(choice(&["late"]));
    assert!(matches!(b.call(&Clarify, json!({"question": "?"})).await, Err(ToolError::Interrupted(_))));
}
