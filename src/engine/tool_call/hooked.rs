//! Hooks before and after a call. Every call of every agent passes here, whatever started it.

use serde_json::{Map, Value, json};
use tiller_hooks::{HOOK_INPUT, HookScene};
use tiller_permit::{CallReach, Rule};
use tiller_protocol::event::StateEvent;
use tiller_protocol::notice::sentence;
use tiller_protocol::{Addition, EventBody, HookEvent, Notice, Part, PermissionOutcome, Taint, ToolOutcome};

use super::decide::{CallDecision, Refusal};
use super::{CHANGED, CallTask, cut, text_of};
use crate::core::hooks::added_text;
use crate::questions::permission::Question;
use crate::turn::CallResult;

/// The taint of what hooks say: what they read is not known.
const OF_HOOKS: Option<Taint> = Some(Taint::ToolOutput);

/// What hooks said about a call.
#[derive(Default)]
pub(crate) struct HookedCall {
    /// The arguments that all hooks have seen and let pass.
    passed: Option<Value>,
    /// Why the user is asked about it, whatever the rules say.
    pub(super) ask: Option<String>,
    /// Hooks that changed the arguments.
    pub(super) changed_by: Vec<String>,
    /// Texts for the end of the result, each with its hook.
    add: Vec<(String, String)>,
}

impl CallTask {
    /// Runs the hooks before the call, unless they have seen these arguments. They may change them.
    ///
    /// # Errors
    /// When a hook denies the call, or it was stopped meanwhile.
    pub(super) async fn hooks_before(&mut self) -> Result<(), Refusal> {
        let hooks = self.services.hooks.clone();
        if !hooks.any(HookEvent::BeforeToolCall) || self.hooked.passed.as_ref() == Some(&self.args) {
            return Ok(());
        }
        let answer = hooks
            .before_call(
                self.scene(HookEvent::BeforeToolCall),
                self.about(),
                &|rule, args| self.is_for(rule, args),
                &self.cx.cancel,
            )
            .await;
        self.notices(answer.notices);
        if self.cx.cancel.is_cancelled() {
            let by = "stopped while a hook ran".to_owned();
            let decided = CallDecision { decision: PermissionOutcome::Undecided, by };
            return Err(Box::new((decided, CallResult::interrupted())));
        }
        if let Some(denial) = answer.deny {
            let by = format!("hook {}", denial.hook);
            let result = CallResult::text(ToolOutcome::Denied, sentence(&denial.words()));
            let result = CallResult { taint: OF_HOOKS, ..result };
            self.tell(PermissionOutcome::Denied, &by);
            return Err(Box::new((CallDecision { decision: PermissionOutcome::Denied, by }, result)));
        }
        if let Some(args) = answer.arguments {
            self.args = args;
            self.hooked.changed_by = answer.changed_by;
        }
        self.hooked.add = answer.add;
        self.hooked.ask = answer.ask;
        self.hooked.passed = Some(self.args.clone());
        Ok(())
    }

    /// Runs the hooks after the call. They may replace or withhold its result; then the words for the audit.
    pub(super) async fn hooks_after(&mut self, result: &mut CallResult) -> Option<String> {
        let hooks = self.services.hooks.clone();
        if !hooks.any(HookEvent::AfterToolCall) {
            return None;
        }
        let mut about = self.about();
        let text = (self.services.redaction.redact)(&text_of(&result.content));
        about.insert("result".into(), cut(&text, HOOK_INPUT).into());
        about.insert("outcome".into(), serde_json::to_value(result.outcome).unwrap_or_default());
        about.insert("seconds".into(), result.seconds.into());
        let scene = self.scene(HookEvent::AfterToolCall);
        let answer =
            hooks.after_call(scene, about, &|rule, args| self.is_for(rule, args), &self.cx.cancel).await;
        self.notices(answer.notices);
        self.hooked.add.extend(answer.add);
        if let Some(denial) = answer.deny {
            let text = format!("The call was made; its result is withheld: {}.", denial.words());
            let said = CallResult::text(ToolOutcome::Denied, text);
            *result = CallResult { seconds: result.seconds, taint: OF_HOOKS, ..said };
            return Some(format!("hook {} withheld the result", denial.hook));
        }
        let text = answer.result?;
        let by = answer.changed_by.join(", ");
        result.content = vec![Part::Text { text: format!("{text}\n[The hook {by} changed this result.]") }];
        result.taint = result.taint.max(OF_HOOKS);
        Some(format!("hook {by} changed the result"))
    }

    /// Adds to the result what the model is to know of the hooks.
    pub(super) fn hooked_words(&mut self, result: &mut CallResult) {
        if !self.hooked.changed_by.is_empty() {
            let (by, args) = (self.hooked.changed_by.join(", "), cut(&self.args.to_string(), CHANGED));
            let text = format!("[The hook {by} changed the arguments to: {args}]");
            result.put_before(text);
            result.taint = result.taint.max(OF_HOOKS);
        }
        if !self.hooked.add.is_empty() {
            result.taint = result.taint.max(OF_HOOKS);
        }
        for (hook, text) in std::mem::take(&mut self.hooked.add) {
            result.put_behind(Addition::Hook, Part::Text { text: added_text(&hook, &text) });
        }
    }

    fn scene(&self, event: HookEvent) -> HookScene<'_> {
        HookScene { event, session: self.cx.session, agent: &self.cx.agent, folder: &self.cx.workspace.root }
    }

    fn about(&self) -> Map<String, Value> {
        let call = json!({
            "id": self.cx.call_id,
            "tool": self.tool.name(),
            "target": self.tool.target(&self.args),
            "arguments": self.args,
        });
        Map::from_iter([("call".to_owned(), call)])
    }

    /// Whether a hook's rule is for the call with these arguments. What cannot be told counts as matching.
    pub(crate) fn is_for(&self, rule: &Rule, args: &Value) -> bool {
        let Ok(access) = self.tool.access(args, &self.cx) else { return true };
        let (verb, target) = (self.tool.verb(), self.tool.target(args));
        let question = Question { args, ..self.question(&verb, &target, &access) };
        self.permit.is_for(&question, rule)
    }

    /// What the call comes to, for its comparison with rules. `None`: there are none, or what it touches is not known.
    pub(crate) fn reach_for_rules(&self) -> Option<CallReach> {
        self.services.user.learnings.as_ref()?.rules()?;
        let access = self.tool.access(&self.args, &self.cx).ok()?;
        let (verb, target) = (self.tool.verb(), self.tool.target(&self.args));
        Some(self.permit.reach(&self.question(&verb, &target, &access)))
    }

    fn notices(&self, notices: Vec<Notice>) {
        for notice in notices {
            self.bus.publish(&self.origin.scope, EventBody::State(StateEvent::Notice { notice }));
        }
    }
}
