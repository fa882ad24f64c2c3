//! The decision about a call of Tiller's own tools: its confinement, and the question to the user.

use std::sync::Arc;

use serde_json::{Map, Value};
use tiller_permit::decide::ReadOnlyRun;
use tiller_permit::{Rule, Verdict};
use tiller_protocol::ask::OutsideAnswer;
use tiller_protocol::{
    Access, AskBody, AskReply, Decision, Part, PermissionOutcome, Profile, ToolOutcome, ToolVerb, Touch,
    names,
};
use tiller_tool::{CommandProfile, CommandRun};

use super::{CallTask, failed};
use crate::decision::{
    self, AskedAs, CallDecision, CallView, DecidedCall, Decider, HookedCall, Reading, Refusal,
};
use crate::questions::permission::Question;
use crate::turn::CallResult;

/// How the user can allow a call that no one could approve. For the model, which passes it on. `patterns`: one, or several
/// joined by ` && `. `None`: they cannot be quoted.
pub(super) fn allowed_by(patterns: &str) -> Option<Part> {
    if patterns.contains('\'') {
        return None;
    }
    let all = tiller_permit::split_patterns(patterns);
    let flags: Vec<String> = all.iter().map(|p| format!("--allow '{p}'")).collect();
    let text = format!(
        "[The user can allow it: `tiller exec {}`, or the same under `allow:` in permissions.yaml.]",
        flags.join(" ")
    );
    Some(Part::Text { text })
}

impl DecidedCall for CallTask {
    fn decider(&self) -> Decider<'_> {
        Decider {
            services: &self.services,
            bus: &self.bus,
            tx: &self.tx,
            permit: &self.permit,
            scope: &self.origin.scope,
            root: self.origin.root,
            session: self.cx.session,
            agent: &self.cx.agent,
            folder: &self.cx.workspace.root,
            profile: self.profile,
            cancel: &self.cx.cancel,
        }
    }

    fn tool(&self) -> &str {
        self.tool.name()
    }

    fn target(&self) -> String {
        self.tool.target(&self.args)
    }

    fn args(&self) -> &Value {
        &self.args
    }

    fn hooked(&mut self) -> &mut HookedCall {
        &mut self.hooked
    }

    fn about(&self) -> Map<String, Value> {
        self.about_for_hooks()
    }

    fn is_for(&self, rule: &Rule, args: &Value) -> bool {
        let Ok(access) = self.tool.access(args, &self.cx) else { return true };
        let (verb, target) = (self.tool.verb(), self.tool.target(args));
        let question = Question { args, ..self.question(&verb, &target, &access) };
        self.permit.is_for(&question, rule)
    }

    fn replace(&mut self, args: Value) -> Result<(), &'static str> {
        self.args = args;
        Ok(())
    }

    fn view(&mut self) -> Result<CallView, Refusal> {
        self.cx.workspace.judge(&self.cx.call_id);
        let access = self
            .tool
            .access(&self.args, &self.cx)
            .map_err(|e| CallDecision::undecided("the tool", failed(e)))?;
        self.files.written.clear();
        self.files.touched.clear();
        // What is kept and watched is the file itself, wherever the session's `/tmp` lies.
        let lies = |path: &str| self.cx.workspace.lies(&names::path(path), &self.cx.child_env);
        for a in &access {
            if let Access::Write { path, .. } | Access::Read { path, .. } = a {
                self.files.touched.push(lies(path));
            }
            if let Access::Write { path, .. } = a {
                self.files.written.push(lies(path));
            }
        }
        let touch = self.tool.touch();
        Ok(CallView {
            reading: Reading { tool: self.tool.name().to_owned(), touch, access },
            more: Vec::new(),
            texts: Vec::new(),
            folder: self.cx.workspace.root.clone(),
            verb: self.tool.verb(),
            target: self.tool.target(&self.args),
            args: self.args.clone(),
            profile: self.origin.mode(self.profile, touch, &self.args),
            shell: self.tool.shell(&self.cx),
            terminal: self.cx.workspace.terminal().map(|t| t.place().clone()),
            unkept: false,
        })
    }

    async fn allowed(
        &mut self,
        view: &CallView,
        rule: String,
        unasked: Option<ReadOnlyRun>,
    ) -> Result<CallDecision, Refusal> {
        let agent = self.cx.agent.clone();
        let question = view.question(&agent);
        // A command reads the files themselves, without what waits to be written.
        let misses = self.cx.run.drafts.as_ref().is_some_and(|drafts| !drafts.is_empty());
        if (unasked.is_none() || misses)
            && let Some(ask) = self.holds_back(&question, &rule).await
        {
            return Err(self.wait_for(ask, true));
        }
        let by = match unasked {
            Some(run) => {
                self.cx.run = Arc::new(CommandRun::reading(run.variables));
                rule
            }
            // It starts programs of the person's to list what they offer: no call of them has been approved.
            None if only_lists(view) => {
                self.run_in(CommandProfile::Read);
                rule
            }
            None => {
                let outside = self.permit.outside(&question);
                self.run_in(profile_of(outside.as_ref()));
                outside.map_or(rule.clone(), |outside| format!("{rule}; {outside}"))
            }
        };
        Ok(CallDecision { decision: PermissionOutcome::Allowed, by })
    }

    async fn ask(&mut self, view: &CallView, verdict: Verdict) -> Option<Result<CallDecision, Refusal>> {
        let agent = self.cx.agent.clone();
        let question = view.question(&agent);
        let access = question.access;
        self.asked = true;
        if let Err(e) = self.tool.ready(&self.args, &self.cx, self.readable(access)).await {
            return Some(Err(CallDecision::undecided("the tool, before a question was asked", failed(e))));
        }
        let mut notes = self.tool.preview(&self.args, &self.cx).await;
        let diff = notes.diff.take();
        let outside = self.permit.outside(&question);
        let mut ask = self.permit.ask(&question, verdict, diff)?;
        ask.effects.extend(self.rules_for_approval().await);
        ask.effects.extend(notes.lines.iter().cloned());
        ask.draft.clone_from(&notes.draft);
        ask.source.clone_from(&self.origin.command);
        if let Some(decided) = self.inner_consent(&ask) {
            self.run_in(profile_of(outside.as_ref()));
            return Some(decided);
        }
        if matches!(access, [Access::Run { .. }]) && self.cx.workspace.confines(CommandProfile::Workspace) {
            match &outside {
                Some(rule) => ask.effects.push(format!("runs outside the sandbox ({rule})")),
                None => ask.outside = OutsideAnswer::Offered,
            }
        }
        self.run_in(profile_of(outside.as_ref()));
        let (rule, offered, pattern) = (ask.rule.clone(), ask.outside, ask.always.clone());
        let effects = ask.effects.len();
        let answer = loop {
            let answer = tokio::select! {
                answer = self.cx.ports.ask(&agent, AskBody::Permission(ask.clone())) => answer,
                () = self.cx.cancel.cancelled() => {
                    let result = CallResult::interrupted();
                    return Some(Err(CallDecision::undecided("stopped before an answer", result)));
                }
            };
            // The draft still holds what the user wrote: the same question opens it again.
            let fault = match ask.draft {
                Some(_) => self.fault_of_edit(&answer, notes.edit.as_ref()).await,
                None => None,
            };
            let Some(fault) = fault else { break answer };
            ask.effects.truncate(effects);
            ask.effects.push(format!(
                "your text cannot be used: {fault}; edit it again, or take the text above with a yes"
            ));
        };
        let mut outcome =
            self.answered(answer, offered, (rule.text(), pattern.as_deref()), notes.edit).await?;
        if let Err(refusal) = &mut outcome {
            if refusal.1.unanswered {
                refusal.1.content.extend(pattern.as_deref().and_then(allowed_by));
            } else {
                discard(notes.draft.take()).await;
            }
        }
        Some(outcome)
    }
}

impl CallTask {
    /// Whether the agent may read, without a question, the files that it declared to write.
    fn readable(&self, access: &[Access]) -> bool {
        access.iter().all(|a| {
            let Access::Write { path, inside } = a else { return true };
            let read = [Access::Read { path: path.clone(), inside: *inside }];
            let question = Question {
                agent: &self.cx.agent,
                tool: "read_file",
                verb: &ToolVerb::Read,
                target: path,
                touch: Touch::Read,
                args: &Value::Null,
                access: &read,
                profile: self.profile,
                shell: None,
                terminal: None,
            };
            matches!(self.permit.judge(&question), Verdict::Allow { .. })
        })
    }

    /// Why the text that the user wrote makes no call.
    async fn fault_of_edit(
        &self,
        answer: &Result<AskReply, String>,
        edit: Option<&(Value, &'static str)>,
    ) -> Option<String> {
        let Ok(AskReply::Permission { decision: Decision::Edit { text }, .. }) = answer else { return None };
        let args = edited(&self.args, edit.cloned(), text)?;
        let checked = match self.tool.access(&args, &self.cx) {
            Ok(_) => self.tool.ready(&args, &self.cx, false).await.err()?,
            Err(fault) => fault,
        };
        Some(checked.to_string().trim_end_matches('.').to_owned())
    }

    /// Applies an answer; `None`: the command was changed and must be checked again.
    async fn answered(
        &mut self,
        answer: Result<AskReply, String>,
        offered: OutsideAnswer,
        (rule, always): (&str, Option<&str>),
        edit: Option<(Value, &'static str)>,
    ) -> Option<Result<CallDecision, Refusal>> {
        let answer = self.leave_sandbox(answer, offered);
        if let Ok(AskReply::Permission { decision: Decision::Edit { text }, .. }) = answer {
            match edited(&self.args, edit, &text) {
                Some(same) if same == self.args => {}
                Some(args) => {
                    self.args = args;
                    self.changed = Some(text);
                }
                None => {
                    let result = CallResult::text(ToolOutcome::Denied, "Denied: this call cannot be edited.");
                    return Some(Err(CallDecision::denied("engine", result)));
                }
            }
            return None;
        }
        Some(self.consent(answer, rule, always).await)
    }

    /// Sets how the command is confined.
    pub(super) fn run_in(&mut self, profile: CommandProfile) {
        self.cx.run = Arc::new(self.cx.run.again(profile));
    }

    /// Applies a yes to running outside the sandbox. Where the question did not offer it, it is a yes to this call.
    pub(super) fn leave_sandbox(
        &mut self,
        answer: Result<AskReply, String>,
        offered: OutsideAnswer,
    ) -> Result<AskReply, String> {
        let Ok(AskReply::Permission { decision, hash }) = answer else { return answer };
        let decision = match (decision, offered) {
            (Decision::Outside, OutsideAnswer::No) => Decision::Once,
            // The question has no other yes.
            (Decision::Outside, _) | (Decision::Once, OutsideAnswer::Only) => {
                self.run_in(CommandProfile::Outside);
                Decision::Outside
            }
            (other, _) => other,
        };
        Ok(AskReply::Permission { decision, hash })
    }

    /// Applies an answer that does not change the call.
    pub(super) async fn consent(
        &self,
        answer: Result<AskReply, String>,
        rule: &str,
        always: Option<&str>,
    ) -> Result<CallDecision, Refusal> {
        let by = match self.changed {
            None => "you",
            Some(_) if self.tool.touch() == Touch::Execute => "you, with an edited command",
            Some(_) => "you, with an edited text",
        };
        decision::consent(self, answer, AskedAs { rule, by, always }).await
    }
}

/// How a command runs that is allowed or approved. `outside`: the rules by which it runs outside the sandbox.
fn profile_of(outside: Option<&String>) -> CommandProfile {
    outside.map_or(CommandProfile::Workspace, |_| CommandProfile::Outside)
}

/// The arguments with the text that the user wrote in place of what they were asked about; `None`: it cannot be edited.
fn edited(args: &Value, edit: Option<(Value, &'static str)>, text: &str) -> Option<Value> {
    let (mut args, key) = match edit {
        Some(edit) => edit,
        None => (args.clone(), "command"),
    };
    *args.get_mut(key)? = Value::String(text.to_owned());
    Some(args)
}

/// Deletes the draft of a call that the user denied.
async fn discard(draft: Option<String>) {
    let Some(draft) = draft else { return };
    // One that stays is deleted with the old ones.
    let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(draft)).await;
}

/// True for a call that only lists what other programs offer, in a mode in which calls of these ask.
fn only_lists(view: &CallView) -> bool {
    let free = view.reading.access.iter().all(|access| matches!(access, Access::Free));
    free && view.reading.touch == Touch::Network && view.profile != Profile::Full
}
