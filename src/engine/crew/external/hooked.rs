//! Hooks before the calls of an external program: they run when the program asks whether it may make one.

use serde_json::{Map, Value, json};
use tiller_external::{Answer, Ask, ChoiceKind, Question};
use tiller_hooks::{Denial, HookScene};
use tiller_permit::Rule;
use tiller_protocol::event::AskEvent;
use tiller_protocol::view::{AuditOutcome, AuditRow};
use tiller_protocol::{EventBody, HookEvent, PermissionOutcome, Touch};
use tokio_util::sync::CancellationToken;

use crate::core::msg::Msg;
use crate::crew::driver::ExternalDriver;
use crate::crew::external::command_texts;
use crate::crew::external::msg::{ExternalMsg, HookedAsk};
use crate::crew::external::questions::{access_of, args_of, run_beside};
use crate::questions::permission;

impl ExternalDriver<'_> {
    /// Starts the hooks for a call that the program asks for; the question comes back as [`ExternalMsg::Hooked`].
    /// Returns a question that no hook is for.
    pub(crate) fn run_hooks(&mut self, ask: Ask) -> Option<Ask> {
        let hooks = self.core.services.hooks.clone();
        let Question::Permission { tool, shown, diffs, .. } = &ask.what else { return Some(ask) };
        if !hooks.any(HookEvent::BeforeToolCall) {
            return Some(ask);
        }
        let turn = self.core.turn.live.as_ref().map(|l| l.no)?;
        self.mark_asked(ask.call.as_deref());
        let root = self.core.services.workspace.root.clone();
        let (name, touch, access) = access_of(&root, tool, diffs, &self.core.services.tools.all);
        let (tool, shown) = (tool.clone(), shown.clone());
        let args = args_of(&name, &tool, &shown);
        let (permit, profile) = (self.core.services.permit.clone(), self.core.session.profile);
        let (session, agent) = (self.core.session.id, self.core.identity.id.clone());
        let tx = self.core.tx.clone();
        self.core.spawn(async move {
            let mut ask = ask;
            // The same views of the call that rules judge: a hook runs if it is for one of them.
            let is_for = |rule: &Rule, args: &Value| {
                let question = permission::Question {
                    agent: &agent,
                    tool: &name,
                    verb: &tool.verb,
                    target: &tool.target,
                    touch,
                    args,
                    access: &access,
                    profile,
                    shell: None,
                    terminal: None,
                };
                let unknown = permission::Question { tool: &tool.name, access: &[], ..question };
                let run = run_beside(&root, &tool, &access);
                permit.is_for(&question, rule)
                    || permit.is_for(&unknown, rule)
                    || run.is_some_and(|run| {
                        let access = [run];
                        let touch = Touch::Execute;
                        let question =
                            permission::Question { tool: "terminal", touch, access: &access, ..question };
                        permit.is_for(&question, rule)
                    })
                    // What it does is not known: its words may be those of a command.
                    || access.is_empty()
                        && command_texts::of(&tool, &shown).iter().any(|text| {
                            let folder = root.display().to_string();
                            let access = [tiller_protocol::Access::Run {
                                command: text.to_string(),
                                folder,
                                background: false,
                            }];
                            let question =
                                permission::Question { tool: "terminal", access: &access, ..question };
                            permit.is_for(&question, rule)
                        })
            };
            let call = json!({
                "id": ask.call, "tool": name, "program_tool": tool.name, "target": tool.target, "arguments": args,
            });
            let about = Map::from_iter([("call".to_owned(), call)]);
            let scene =
                HookScene { event: HookEvent::BeforeToolCall, session, agent: &agent, folder: &root };
            let cancel = CancellationToken::new();
            let answer = tokio::select! {
                answer = hooks.before_call(scene, about, &is_for, &cancel) => answer,
                // The program no longer waits.
                () = ask.reply.closed() => return,
            };
            let changed = || {
                let hook = answer.changed_by.join(", ");
                let reason = "it changed the arguments, and an external program runs its own".to_owned();
                Denial { hook, reason }
            };
            let denial = answer.deny.or_else(|| answer.arguments.as_ref().map(|_| changed()));
            let hooked = Box::new(HookedAsk { ask, denial, asks: answer.ask, notices: answer.notices });
            // The engine may have ended.
            let _ = tx.send(Msg::External(ExternalMsg::Hooked { turn, hooked })).await;
        });
        None
    }

    /// The hooks have decided: a denial is answered, anything else is judged by the rules.
    pub(crate) fn hooked(&mut self, hooked: HookedAsk) {
        let HookedAsk { ask, denial, asks, notices } = hooked;
        for notice in notices {
            self.core.notice(notice);
        }
        let Some(denial) = denial else { return self.judge(ask, asks) };
        let Question::Permission { tool, shown, diffs, .. } = &ask.what else { return };
        let root = &self.core.services.workspace.root;
        let (name, _, _) = access_of(root, tool, diffs, &self.core.services.tools.all);
        let args = args_of(&name, tool, shown);
        let (decision, by) = (PermissionOutcome::Denied, format!("hook {}: {}", denial.hook, denial.reason));
        let audit = AuditRow {
            time: self.core.services.clock.now(),
            session: self.core.session.id,
            agent: self.core.identity.id.0.clone(),
            tool: name.clone(),
            what: crate::tool_call::what(&self.core.services.redaction.redact, &args),
            decision: decision.clone(),
            by: by.clone(),
            seconds: 0.0,
            outcome: AuditOutcome::Denied,
        };
        self.audit_decided(audit);
        let what = self.core.redact(&tool.target);
        let decided = AskEvent::PermissionDecided { id: None, tool: name, what, decision, by };
        self.core.bus.publish(&self.core.scope(), EventBody::Ask(decided));
        // The asking program may have ended.
        let _ = ask.reply.send(Answer::Kind(ChoiceKind::RejectOnce));
    }
}
