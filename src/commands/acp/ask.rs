//! Sends questions as requests to the client and maps its answers. An invalid answer refuses.

use std::path::Path;

use serde_json::{Value, json};
use tiller_protocol::ask::{OutsideAnswer, PermissionAsk, Risk};
use tiller_protocol::{Ask, AskBody, AskReply, Decision, ToolCatalog};

use super::{call, hunks};
use crate::commands::exec::questions;

/// The form in which a question is sent to the client.
#[derive(Debug, PartialEq)]
pub(super) enum QuestionForm {
    /// As a request for permission, with a choice.
    Choice(Value),
    /// As a form, for clients that support forms.
    Form(Value),
    /// As text: the next prompt is the answer.
    Words(String),
}

/// Chooses the form of a question. `forms`: the client supports forms.
pub(super) fn put(session: &str, root: &Path, tools: &ToolCatalog, ask: &Ask, forms: bool) -> QuestionForm {
    if let AskBody::Clarify { question, choices, allow_freetext: true, .. } = &ask.body {
        if forms {
            return QuestionForm::Form(form(session, ask, question, choices));
        }
        if choices.is_empty() {
            return QuestionForm::Words(question.clone());
        }
    }
    let options: Vec<Value> = options(&ask.body)
        .into_iter()
        .map(|o| json!({"optionId": o.id, "name": o.name, "kind": o.kind}))
        .collect();
    QuestionForm::Choice(
        json!({"sessionId": session, "toolCall": about(root, tools, ask), "options": options}),
    )
}

/// The client's answer to a question. `None`: there is none, or it is invalid.
pub(super) fn reply(ask: &Ask, result: Option<&Value>) -> Option<AskReply> {
    let result = result?;
    if let Some(outcome) = result.get("outcome") {
        if outcome.get("outcome")? != "selected" {
            return None;
        }
        let id = outcome.get("optionId")?.as_str()?;
        return options(&ask.body).into_iter().find(|o| o.id == id).map(|o| o.reply);
    }
    let AskBody::Clarify { choices, .. } = &ask.body else { return None };
    match result.get("action")?.as_str()? {
        "accept" => {
            let content = result.get("content")?;
            let field = |name: &str| {
                content.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty())
            };
            let chosen = field("choice").filter(|c| choices.iter().any(|known| known == c));
            let answer = field("answer").or(chosen)?;
            Some(AskReply::Choice { answers: vec![answer.to_owned()] })
        }
        _ => None,
    }
}

/// The reply when the client gave none.
pub(super) fn unanswered(ask: &Ask) -> AskReply {
    match &ask.body {
        AskBody::Permission(p) => {
            AskReply::Permission { decision: Decision::Deny { comment: None }, hash: p.hash.clone() }
        }
        AskBody::SessionBusy { .. } => AskReply::ReadOnly,
        _ => AskReply::Declined,
    }
}

/// One choice.
struct Choice {
    id: String,
    name: String,
    kind: &'static str,
    reply: AskReply,
}

fn options(body: &AskBody) -> Vec<Choice> {
    let choice = |id: &str, name: &str, kind: &'static str, reply: AskReply| Choice {
        id: id.into(),
        name: name.into(),
        kind,
        reply,
    };
    match body {
        AskBody::Permission(p) => permission(p),
        AskBody::Clarify { choices, decides, .. } => choices
            .iter()
            .enumerate()
            .map(|(n, c)| {
                let reply = AskReply::Choice { answers: vec![c.clone()] };
                // When one option grants something, the others refuse.
                let no = !decides.is_empty() && !decides.contains(&n);
                let kind = if no { "reject_once" } else { "allow_once" };
                choice(&format!("choice-{}", n + 1), &call::line(c), kind, reply)
            })
            .chain([choice("skip", "No answer", "reject_once", AskReply::Declined)])
            .collect(),
        AskBody::Plan { .. } => vec![
            choice("approve", "Approve the plan", "allow_once", AskReply::Yes { value: None }),
            choice("later", "No, continue planning", "reject_once", AskReply::Declined),
            choice("drop", "Discard it and leave planning", "reject_once", AskReply::Never),
        ],
        AskBody::SessionBusy { .. } => vec![
            choice("branch", "Continue on a branch", "allow_once", AskReply::Branch),
            choice("look", "Open read-only", "reject_once", AskReply::ReadOnly),
        ],
        _ => vec![
            choice("yes", "Yes", "allow_once", AskReply::Yes { value: None }),
            choice("no", "No", "reject_once", AskReply::Declined),
        ],
    }
}

/// "Always" is offered only where a correct rule exists, as in the dialog; a risky call has "no" first.
fn permission(p: &PermissionAsk) -> Vec<Choice> {
    let choice = |id: &str, name: String, kind: &'static str, decision: Decision| Choice {
        id: id.into(),
        name,
        kind,
        reply: AskReply::Permission { decision, hash: p.hash.clone() },
    };
    let mut out = Vec::new();
    if p.outside != OutsideAnswer::Only {
        out.push(choice("once", "Yes, once".into(), "allow_once", Decision::Once));
    }
    if p.outside != OutsideAnswer::No {
        out.push(choice("outside", "Yes, outside the sandbox".into(), "allow_once", Decision::Outside));
    }
    if let Some(pattern) = &p.always {
        let shown = call::line(pattern);
        let session = Decision::Session { pattern: pattern.clone() };
        out.push(choice("session", format!("Yes, in this session: {shown}"), "allow_always", session));
        let always = Decision::Always { pattern: pattern.clone() };
        out.push(choice("always", format!("Yes, always: {shown}"), "allow_always", always));
    }
    let no = choice("no", "No".into(), "reject_once", Decision::Deny { comment: None });
    if p.risk == Risk::High {
        out.insert(0, no)
    } else {
        out.push(no)
    }
    out
}

/// The call that the question is about, or a placeholder.
fn about(root: &Path, tools: &ToolCatalog, ask: &Ask) -> Value {
    let id = ask.call.clone().unwrap_or_else(|| stand_in(ask));
    let mut call = match &ask.body {
        AskBody::Permission(p) => {
            let title = call::line(&format!("{} {}", p.verb, p.shown.lines().next().unwrap_or_default()));
            json!({
                "toolCallId": id,
                "title": title,
                "kind": call::kind(tools, &p.tool).unwrap_or_else(|| call::kind_of_verb(&p.verb)),
                "status": "pending",
                "content": what(root, p),
            })
        }
        AskBody::Clarify { question, .. } => json!({
            "toolCallId": id,
            "title": call::line(question),
            "kind": "other",
            "status": "pending",
            "content": [call::words(question)],
        }),
        AskBody::Plan { plan, .. } => json!({
            "toolCallId": id,
            "title": "Approve this plan?",
            "kind": "switch_mode",
            "status": "pending",
            "content": [call::words(plan)],
        }),
        other => {
            let text = questions::describe(other);
            json!({
                "toolCallId": id,
                "title": call::line(&text),
                "kind": "other",
                "status": "pending",
                "content": [call::words(&text)],
            })
        }
    };
    call::of_agent(&mut call, &ask.agent);
    call
}

/// The waiting call, as the client knows it; questions of the engine have none.
pub(super) fn call_id(ask: &Ask) -> String {
    call::shown_id(&ask.agent, &ask.call.clone().unwrap_or_else(|| stand_in(ask)))
}

fn stand_in(ask: &Ask) -> String {
    format!("ask-{}", ask.id)
}

/// The content of the workbench's dialog.
fn what(root: &Path, p: &PermissionAsk) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for hunk in p.diff.as_deref().map(hunks::read).unwrap_or_default() {
        let path = if hunk.path.is_empty() { &p.shown } else { &hunk.path };
        out.push(call::diff(&call::absolute(root, path), &hunk));
    }
    let shown = if out.is_empty() { call::fenced(&p.shown) } else { String::new() };
    let mut text = shown;
    let mut line = |t: String| {
        text.push_str(if text.is_empty() { "" } else { "\n\n" });
        text.push_str(&t);
    };
    if !p.folder.is_empty() && Path::new(&p.folder) != root {
        line(format!("In {}.", call::line(&p.folder)));
    }
    if !p.why.is_empty() {
        line(format!("Reason: {}", call::line(&p.why)));
    }
    if !p.effects.is_empty() {
        line(p.effects.iter().map(|e| format!("- {}", call::line(e))).collect::<Vec<_>>().join("\n"));
    }
    if p.risk == Risk::High {
        line("Risky: check carefully.".into());
    }
    if !text.is_empty() {
        out.push(call::words(&text));
    }
    out
}

fn form(session: &str, ask: &Ask, question: &str, choices: &[String]) -> Value {
    let mut fields = json!({"answer": {"type": "string", "title": "Answer"}});
    let required = if choices.is_empty() {
        vec!["answer"]
    } else {
        fields["choice"] = json!({"type": "string", "title": "Choice", "enum": choices});
        fields["answer"]["title"] = "Or type an answer".into();
        Vec::new()
    };
    json!({
        "sessionId": session,
        "toolCallId": call_id(ask),
        "mode": "form",
        "message": question,
        "requestedSchema": {"type": "object", "properties": fields, "required": required},
    })
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
