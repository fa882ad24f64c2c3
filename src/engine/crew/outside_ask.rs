//! A program of another vendor asks for something: our rules answer where they can, the person where not.

use serde_json::{Value, json};
use tiller_link::external::{Answer, Ask, Choice, ChoiceKind, Question, ToolUse};
use tiller_permit::Verdict;
use tiller_protocol::{Access, AskBody, AskReply, Decision, Touch};
use tokio::sync::oneshot;

use crate::core::Core;
use crate::judge::{self, permission_ask};

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
                let kind = match &verdict {
                    Verdict::Allow { .. } => Some(ChoiceKind::AllowOnce),
                    Verdict::Deny { .. } => Some(ChoiceKind::RejectOnce),
                    Verdict::Ask { .. } => None,
                };
                if let Some(kind) = kind {
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
                self.spawn(async move {
                    let kind = match answer.await {
                        Ok(Ok(AskReply::Permission { decision, .. })) => match decision {
                            Decision::Once => ChoiceKind::AllowOnce,
                            Decision::Session { pattern } => {
                                let _ = permit.allow_session(&pattern);
                                ChoiceKind::AllowOnce
                            }
                            Decision::Always { pattern } => {
                                let _ = permit.allow_always(&pattern);
                                ChoiceKind::AllowOnce
                            }
                            // What it runs is its own: our text cannot take its place.
                            Decision::Edit { .. } | Decision::Deny { .. } => ChoiceKind::RejectOnce,
                        },
                        _ => ChoiceKind::RejectOnce,
                    };
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
