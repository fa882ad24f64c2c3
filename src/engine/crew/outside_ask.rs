//! A program of another vendor asks for something: our rules answer where they can, the person where not.

use serde_json::{Value, json};
use tiller_link::external::{Answer, Ask, Choice, ChoiceKind, Question, ToolUse};
use tiller_permit::Verdict;
use tiller_protocol::view::AuditRow;
use tiller_protocol::{Access, AskBody, AskReply, Decision, Touch};
use tokio::sync::oneshot;

use crate::core::Core;
use crate::judge::{self, permission_ask};
use crate::msg::Msg;
use crate::saves::{After, Then};

/// Choices of a dialog that are shown.
const CHOICES: usize = 6;

impl Core {
    pub(super) fn outside_ask(&mut self, ask: Ask) {
        let (reply, answer) = oneshot::channel();
        let permit = self.w.permit.clone();
        match ask.what {
            Question::Permission { tool, shown, diffs, .. } => {
                let (name, touch, access) = self.access_of(&tool, &shown);
                let args = args_of(&tool, &shown);
                let question = judge::Question {
                    agent: &self.me.id,
                    tool: &name,
                    verb: &tool.verb,
                    target: &tool.target,
                    touch,
                    args: &args,
                    access: &access,
                    profile: self.s.profile,
                };
                let verdict = permit.judge(&question);
                let mut audit = AuditRow {
                    time: self.w.clock.now(),
                    session: self.s.id,
                    agent: self.me.id.0.clone(),
                    tool: name.clone(),
                    what: crate::job::what(&self.w.redact, &args),
                    decision: String::new(),
                    by: String::new(),
                    seconds: 0.0,
                    outcome: String::new(),
                };
                let by_rule = match &verdict {
                    Verdict::Allow { rule } => Some((ChoiceKind::AllowOnce, "allow", rule)),
                    Verdict::Deny { rule, .. } => Some((ChoiceKind::RejectOnce, "deny", rule)),
                    Verdict::Ask { .. } => None,
                };
                if let Some((kind, decision, rule)) = by_rule {
                    (audit.decision, audit.by) = (decision.into(), rule.clone());
                    self.outside_decided(audit);
                    // Whoever asked may have ended.
                    let _ = ask.reply.send(Answer::Kind(kind));
                    return;
                }
                let diff = diffs.first().map(|d| {
                    let (old, new) =
                        (d.old.as_deref().unwrap_or_default(), d.new.as_deref().unwrap_or_default());
                    similar::TextDiff::from_lines(old, new).unified_diff().context_radius(3).to_string()
                });
                let Some(body) = permission_ask(&question, verdict, diff) else {
                    let _ = ask.reply.send(Answer::Kind(ChoiceKind::RejectOnce));
                    return;
                };
                self.ask_main(ask.call, AskBody::Permission(body), reply);
                let tx = self.tx.clone();
                self.spawn(async move {
                    let person = || "the person".to_owned();
                    let (kind, decision, by) = match answer.await {
                        Ok(Ok(AskReply::Permission { decision, .. })) => match decision {
                            Decision::Once => (ChoiceKind::AllowOnce, "ask:once", person()),
                            Decision::Session { pattern } => {
                                let _ = permit.allow_session(&pattern);
                                (ChoiceKind::AllowOnce, "ask:session", person())
                            }
                            Decision::Always { pattern } => {
                                let _ = permit.allow_always(&pattern);
                                (ChoiceKind::AllowOnce, "ask:always", person())
                            }
                            // What it runs is its own: our text cannot take its place.
                            Decision::Edit { .. } | Decision::Deny { .. } => {
                                (ChoiceKind::RejectOnce, "ask:deny", person())
                            }
                        },
                        Ok(Ok(_)) => (ChoiceKind::RejectOnce, "ask:deny", person()),
                        Ok(Err(why)) => (ChoiceKind::RejectOnce, "nobody", why),
                        Err(_) => (ChoiceKind::RejectOnce, "none", "it ended before an answer".into()),
                    };
                    (audit.decision, audit.by) = (decision.into(), by);
                    // Written down first: the engine may end with the answer.
                    let _ = tx.send(Msg::Settled(Box::new(audit))).await;
                    let _ = ask.reply.send(Answer::Kind(kind));
                });
            }
            Question::Choose { text, options, free_text } => {
                let choices: Vec<String> =
                    options.iter().take(CHOICES).map(|o| self.redact(&o.name)).collect();
                let body = AskBody::Clarify {
                    question: self.redact(&text),
                    choices: choices.clone(),
                    allow_freetext: free_text,
                    multiple: false,
                    default: None,
                };
                self.ask_main(ask.call, body, reply);
                self.spawn(async move {
                    let chosen = match answer.await {
                        Ok(Ok(AskReply::Choice { answers })) => {
                            chosen(&answers, &choices, &options, free_text)
                        }
                        _ => Answer::Cancel,
                    };
                    let _ = ask.reply.send(chosen);
                });
            }
        }
    }

    /// Into the audit. What it then did is its own affair, so only a refusal is known to have held.
    pub(crate) fn outside_decided(&mut self, mut audit: AuditRow) {
        let no = matches!(audit.decision.as_str(), "deny" | "ask:deny" | "nobody" | "none");
        audit.outcome = if no { "denied" } else { "allowed" }.into();
        let ticket = self.w.store.record_audit(audit);
        self.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }

    /// What a tool of theirs comes to in our words: tool, kind, and what it touches. Unknown ones touch nothing that
    /// is known, and so are asked about.
    fn access_of(&self, tool: &ToolUse, shown: &str) -> (String, Touch, Vec<Access>) {
        let root = &self.w.workspace.root;
        let absolute = |path: &str| root.join(path).display().to_string();
        let inside = |path: &str| root.join(path).starts_with(root) && !path.split('/').any(|p| p == "..");
        let target = if tool.target.is_empty() { shown } else { &tool.target };
        match tool.verb.as_str() {
            "shell" => {
                let command = command_of(tool, shown);
                let folder = root.display().to_string();
                ("terminal".into(), Touch::Execute, vec![Access::Run { command, folder, background: false }])
            }
            "edit" if !tool.target.is_empty() => {
                let access = Access::Write { path: absolute(target), inside: inside(target) };
                ("edit_file".into(), Touch::Write, vec![access])
            }
            "read" if !tool.target.is_empty() => {
                let access = Access::Read { path: absolute(target), inside: inside(target) };
                ("read_file".into(), Touch::Read, vec![access])
            }
            _ => (tool.name.clone(), Touch::Execute, Vec::new()),
        }
    }
}

fn command_of(tool: &ToolUse, shown: &str) -> String {
    match tool.args.get("command") {
        Some(Value::String(command)) => command.clone(),
        _ if !tool.target.is_empty() => tool.target.clone(),
        _ => shown.to_owned(),
    }
}

fn args_of(tool: &ToolUse, shown: &str) -> Value {
    match tool.verb.as_str() {
        "shell" => json!({"command": command_of(tool, shown)}),
        "edit" | "read" => json!({"path": tool.target}),
        _ => json!({"what": shown}),
    }
}

fn chosen(answers: &[String], shown: &[String], options: &[Choice], free_text: bool) -> Answer {
    let Some(first) = answers.first() else { return Answer::Cancel };
    match shown.iter().position(|s| s == first).and_then(|at| options.get(at)) {
        Some(option) => Answer::Option(option.id.clone()),
        None if free_text => Answer::Text(first.clone()),
        None => Answer::Cancel,
    }
}
