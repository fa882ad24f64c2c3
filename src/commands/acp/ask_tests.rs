use tiller_protocol::{AgentId, AskId, RandomIds, Time};

use super::*;

fn tools() -> ToolCatalog {
    tiller_tool::Registry::built_in().catalog()
}

fn ask(body: AskBody) -> Ask {
    let id = AskId::fresh(&RandomIds, Time(0));
    Ask { id, agent: AgentId::main(), call: Some("c1".into()), body }
}

fn permission(always: Option<&str>, risk: Risk) -> Ask {
    ask(AskBody::Permission(PermissionAsk {
        tool: "terminal".into(),
        verb: "shell".into(),
        shown: "git push ```\nrm -r x".into(),
        hash: "h".into(),
        diff: None,
        folder: "/elsewhere".into(),
        why: "to publish\u{1b}[31m".into(),
        rule: "no permission rule matches".into(),
        effects: vec!["reaches the network".into()],
        risk,
        always: always.map(str::to_owned),
        editable: true,
        outside: tiller_protocol::ask::OutsideAnswer::No,
        calls: Vec::new(),
        draft: None,
        source: None,
    }))
}

fn kinds(ask: &Ask) -> Vec<&'static str> {
    options(&ask.body).iter().map(|o| o.kind).collect()
}

fn selected(id: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

#[test]
fn a_permission_shows_what_our_dialog_shows_and_offers_no_more() {
    let p = permission(None, Risk::High);
    assert_eq!(kinds(&p), ["reject_once", "allow_once"]);
    assert_eq!(
        kinds(&permission(Some("x"), Risk::Low)),
        ["allow_once", "allow_always", "allow_always", "reject_once"]
    );
    let QuestionForm::Choice(params) = put("s", Path::new("/w"), &tools(), &p, true) else { panic!() };
    let text = params["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("```\ngit push ```\nrm -r x\n```\n"), "{text}");
    for part in ["In /elsewhere.", "Reason: to publish\\x1b[31m", "- reaches the network", "Risky"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(params["toolCall"]["title"], "shell git push ```");
}

#[test]
fn an_answer_is_tied_to_what_was_shown_and_nothing_else_is_a_yes() {
    let p = permission(Some("terminal(git push)"), Risk::High);
    let said = |d| Some(AskReply::Permission { decision: d, hash: "h".into() });
    assert_eq!(reply(&p, Some(&selected("once"))), said(Decision::Once));
    let pattern = || "terminal(git push)".to_owned();
    assert_eq!(reply(&p, Some(&selected("always"))), said(Decision::Always { pattern: pattern() }));
    assert_eq!(reply(&p, Some(&selected("session"))), said(Decision::Session { pattern: pattern() }));
    assert_eq!(reply(&p, Some(&selected("no"))), said(Decision::Deny { comment: None }));
    let accept = json!({"action": "accept", "content": {"answer": "once"}});
    for wrong in
        [selected("yes"), selected(""), json!({}), json!({"outcome": {"outcome": "cancelled"}}), accept]
    {
        assert_eq!(reply(&p, Some(&wrong)), None, "{wrong}");
    }
    assert_eq!(reply(&permission(None, Risk::Low), Some(&selected("always"))), None);
    assert_eq!(Some(unanswered(&p)), said(Decision::Deny { comment: None }));
}

#[test]
fn the_engines_own_questions_are_yes_or_no() {
    let budget =
        ask(AskBody::Budget { what: "session".into(), spent: "$1".into(), limit: "$1".into(), next: None });
    assert_eq!(reply(&budget, Some(&selected("yes"))), Some(AskReply::Yes { value: None }));
    assert_eq!(unanswered(&budget), AskReply::Declined);
    let busy = ask(AskBody::SessionBusy { holder: "7".into() });
    assert_eq!(reply(&busy, Some(&selected("branch"))), Some(AskReply::Branch));
    assert_eq!(unanswered(&busy), AskReply::ReadOnly);
    let QuestionForm::Choice(params) =
        put("s", Path::new("/w"), &tools(), &Ask { call: None, ..budget }, true)
    else {
        panic!()
    };
    assert!(params["toolCall"]["toolCallId"].as_str().unwrap().starts_with("ask-"));
}

#[test]
fn a_plan_is_approved_only_by_its_yes() {
    let plan = ask(AskBody::Plan { file: "/p.md".into(), plan: "1. Look\n".into() });
    let QuestionForm::Choice(params) = put("s", Path::new("/w"), &tools(), &plan, true) else { panic!() };
    assert_eq!(params["toolCall"]["kind"], "switch_mode");
    assert_eq!(params["toolCall"]["content"][0]["content"]["text"], "1. Look\n");
    assert_eq!(reply(&plan, Some(&selected("approve"))), Some(AskReply::Yes { value: None }));
    assert_eq!(reply(&plan, Some(&selected("later"))), Some(AskReply::Declined));
    assert_eq!(reply(&plan, Some(&selected("drop"))), Some(AskReply::Never));
    assert_eq!(unanswered(&plan), AskReply::Declined, "no answer does not end the planning");
}

#[test]
fn beside_what_grants_something_the_others_are_a_no() {
    let trust = ask(AskBody::Clarify {
        question: "Do you trust this folder?".into(),
        choices: vec!["Yes".into(), "No, exit".into()],
        allow_freetext: false,
        multiple: false,
        default: Some(1),
        decides: vec![0],
    });
    let QuestionForm::Choice(params) = put("s", Path::new("/w"), &tools(), &trust, true) else { panic!() };
    let kinds: Vec<&str> =
        params["options"].as_array().unwrap().iter().filter_map(|o| o["kind"].as_str()).collect();
    assert_eq!(kinds, ["allow_once", "reject_once", "reject_once"]);
}

#[test]
fn a_form_is_read_by_its_fields() {
    let clarify = |choices: &[&str]| {
        ask(AskBody::Clarify {
            question: "Which?".into(),
            choices: choices.iter().map(|c| (*c).to_owned()).collect(),
            allow_freetext: true,
            multiple: false,
            default: None,
            decides: Vec::new(),
        })
    };
    let with = clarify(&["a", "b"]);
    let accept = |content: Value| json!({"action": "accept", "content": content});
    let choice = |c: &str| Some(AskReply::Choice { answers: vec![c.into()] });
    assert_eq!(reply(&with, Some(&accept(json!({"choice": "b"})))), choice("b"));
    assert_eq!(reply(&with, Some(&accept(json!({"choice": "b", "answer": " c "})))), choice("c"));
    assert_eq!(reply(&with, Some(&accept(json!({"choice": "z", "answer": " "})))), None);
    assert_eq!(reply(&with, Some(&json!({"action": "cancel"}))), None);
    assert!(matches!(put("s", Path::new("/w"), &tools(), &with, true), QuestionForm::Form(_)));
    assert!(matches!(put("s", Path::new("/w"), &tools(), &with, false), QuestionForm::Choice(_)));
    assert_eq!(
        put("s", Path::new("/w"), &tools(), &clarify(&[]), false),
        QuestionForm::Words("Which?".into())
    );
}
