//! May a call run? By rules, or by the person.

use std::path::PathBuf;

use serde_json::Value;
use tiller_permit::Verdict;
use tiller_protocol::{Access, AskBody, AskReply, Decision, EventBody, ToolOutcome, Touch};

use super::{Job, failed};
use crate::judge::{Question, permission_ask};
use crate::msg::Msg;
use crate::turn::CallResult;

/// A decision in words.
pub(super) struct Decided {
    pub(super) decision: &'static str,
    pub(super) by: String,
}

impl Job {
    /// May it run? Asks the person where the rules say so; text that the person changed is judged anew.
    pub(super) async fn decide(&mut self) -> Result<Decided, (Decided, CallResult)> {
        for notice in self.permit.refresh() {
            let event = tiller_protocol::event::StateEvent::Notice { notice };
            self.bus.publish(&self.place, EventBody::State(event));
        }
        // A bound on the way round: each needs a person's keystrokes.
        for _ in 0..20 {
            let access = match self.tool.access(&self.args, &self.cx) {
                Ok(access) => access,
                Err(e) => {
                    let decided = Decided { decision: "none", by: "the tool".into() };
                    return Err((decided, failed(e)));
                }
            };
            self.paths.clear();
            self.known.clear();
            for a in &access {
                if let Access::Write { path, .. } | Access::Read { path, .. } = a {
                    self.known.push(PathBuf::from(path));
                }
                if let Access::Write { path, .. } = a {
                    self.paths.push(PathBuf::from(path));
                }
            }
            let agent = self.cx.agent.clone();
            let target = self.tool.target(&self.args);
            let args = self.args.clone();
            let question = Question {
                agent: &agent,
                tool: self.tool.name(),
                verb: self.tool.verb(),
                target: &target,
                touch: self.tool.touch(),
                args: &args,
                access: &access,
                profile: self.profile,
            };
            let verdict = self.permit.judge(&question);
            let verdict = match verdict {
                Verdict::Allow { rule } => return Ok(Decided { decision: "allow", by: rule }),
                Verdict::Deny { rule, reason } => {
                    let result = CallResult::text(ToolOutcome::Denied, format!("Denied: {reason}."));
                    self.tell("deny", &rule);
                    return Err((Decided { decision: "deny", by: rule }, result));
                }
                ask @ Verdict::Ask { .. } => ask,
            };
            if let Err(e) = self.tool.ready(&self.args, &self.cx, self.readable(&access)).await {
                let decided = Decided { decision: "none", by: "the tool, before anybody was asked".into() };
                return Err((decided, failed(e)));
            }
            let diff = self.tool.preview(&self.args, &self.cx).await;
            let Some(ask) = permission_ask(&question, verdict, diff) else { continue };
            let rule = ask.rule.clone();
            let answer = tokio::select! {
                answer = self.cx.ports.ask(&agent, AskBody::Permission(ask)) => answer,
                () = self.cx.cancel.cancelled() => {
                    let decided = Decided { decision: "none", by: "stopped before an answer".into() };
                    return Err((decided, CallResult::interrupted()));
                }
            };
            match self.answered(answer, &rule) {
                Some(outcome) => return outcome,
                None => continue,
            }
        }
        let decided = Decided { decision: "deny", by: "changed too often".into() };
        Err((decided, CallResult::text(ToolOutcome::Denied, "Denied: the command was changed too often.")))
    }

    /// Whether the agent could read, unasked, what it declared to write.
    fn readable(&self, access: &[Access]) -> bool {
        access.iter().all(|a| {
            let Access::Write { path, inside } = a else { return true };
            let read = [Access::Read { path: path.clone(), inside: *inside }];
            let question = Question {
                agent: &self.cx.agent,
                tool: "read_file",
                verb: "read",
                target: path,
                touch: Touch::Read,
                args: &Value::Null,
                access: &read,
                profile: self.profile,
            };
            matches!(self.permit.judge(&question), Verdict::Allow { .. })
        })
    }

    /// What an answer means; `None`: the text was changed and is to be judged.
    fn answered(
        &mut self,
        answer: Result<AskReply, String>,
        rule: &str,
    ) -> Option<Result<Decided, (Decided, CallResult)>> {
        let by = if self.changed.is_some() { "the person, who changed it" } else { "the person" };
        let person = |decision| Decided { decision, by: by.into() };
        let no = |decision: &'static str, by: String, text: String, nobody: bool| {
            let result = CallResult { nobody, ..CallResult::text(ToolOutcome::Denied, text) };
            Some(Err((Decided { decision, by }, result)))
        };
        match answer {
            Err(why) => {
                self.tell("nobody", &why);
                let text = format!("Denied: this needs a person's yes, and {why} (rule: {rule}).");
                no("nobody", why, text, true)
            }
            Ok(AskReply::Permission { decision, .. }) => match decision {
                Decision::Once => Some(Ok(person("ask:once"))),
                Decision::Session { pattern } => {
                    self.remember(&pattern, false);
                    Some(Ok(person("ask:session")))
                }
                Decision::Always { pattern } => {
                    self.remember(&pattern, true);
                    Some(Ok(person("ask:always")))
                }
                Decision::Edit { text } => {
                    match self.args.get_mut("command") {
                        Some(command) if command.as_str() == Some(text.as_str()) => {}
                        Some(command) => {
                            *command = Value::String(text.clone());
                            self.changed = Some(text);
                        }
                        None => {
                            return no(
                                "deny",
                                "engine".into(),
                                "Denied: it cannot be changed.".into(),
                                false,
                            );
                        }
                    }
                    None
                }
                Decision::Deny { comment } => {
                    let text = match comment.filter(|c| !c.trim().is_empty()) {
                        Some(c) => format!("Denied by the person, who says: {c}"),
                        None => "Denied by the person.".into(),
                    };
                    no("ask:deny", by.into(), text, false)
                }
            },
            Ok(_) => no("ask:deny", "the person".into(), "Denied by the person.".into(), false),
        }
    }

    fn remember(&self, pattern: &str, always: bool) {
        let done = if always {
            self.permit.allow_always(pattern)
        } else {
            self.permit.allow_session(pattern).map(|()| {
                // The rule holds at once; that it survives a restart is second.
                drop(self.w.store.add_rule(self.root, pattern));
            })
        };
        if let Err(why) = done {
            let notice = tiller_protocol::Notice::new(
                tiller_protocol::NoticeKind::Config,
                format!("the rule could not be kept: {why}"),
            )
            .hint("this call runs once");
            self.bus.publish(
                &self.place,
                EventBody::State(tiller_protocol::event::StateEvent::Notice { notice }),
            );
        }
    }

    fn tell(&self, decision: &str, by: &str) {
        // The engine may have ended, or be behind: the audit has it all the same.
        let _ = self.tx.try_send(Msg::Decided {
            tool: self.tool.name().to_owned(),
            what: (self.w.redact)(&self.tool.target(&self.args)),
            decision: decision.to_owned(),
            by: by.to_owned(),
        });
    }
}
