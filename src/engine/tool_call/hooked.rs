//! Hooks after a call of Tiller's own tools, and the words of hooks in its result.

use serde_json::{Map, Value, json};
use tiller_hooks::HOOK_INPUT;
use tiller_permit::CallReach;
use tiller_protocol::{Addition, HookEvent, Part, ToolOutcome};

use super::{CHANGED, CallTask, cut, text_of};
use crate::core::hooks::added_text;
use crate::decision::DecidedCall;
use crate::decision::hooked::OF_HOOKS;
use crate::turn::CallResult;

impl CallTask {
    /// Runs the hooks after the call. They may replace or withhold its result; then the words for the audit.
    pub(super) async fn hooks_after(&mut self, result: &mut CallResult) -> Option<String> {
        let hooks = self.services.hooks.clone();
        if !hooks.any(HookEvent::AfterToolCall) {
            return None;
        }
        let mut about = self.about_for_hooks();
        let text = (self.services.redaction.redact)(&text_of(&result.content));
        about.insert("result".into(), cut(&text, HOOK_INPUT).into());
        about.insert("outcome".into(), serde_json::to_value(result.outcome).unwrap_or_default());
        about.insert("seconds".into(), result.seconds.into());
        let scene = self.decider().scene(HookEvent::AfterToolCall);
        let answer =
            hooks.after_call(scene, about, &|rule, args| self.is_for(rule, args), &self.cx.cancel).await;
        self.decider().notices(answer.notices);
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

    /// The call for hooks.
    pub(super) fn about_for_hooks(&self) -> Map<String, Value> {
        let call = json!({
            "id": self.cx.call_id,
            "tool": self.tool.name(),
            "target": self.tool.target(&self.args),
            "arguments": tiller_tool::aliases::canonical(self.tool.name(), &self.args),
        });
        Map::from_iter([("call".to_owned(), call)])
    }

    /// What the call comes to, for its comparison with rules. `None`: there are none, or what it touches is not known.
    pub(crate) fn reach_for_rules(&self) -> Option<CallReach> {
        self.services.user.learnings.as_ref()?.rules()?;
        let access = self.tool.access(&self.args, &self.cx).ok()?;
        let (verb, target) = (self.tool.verb(), self.tool.target(&self.args));
        Some(self.permit.reach(&self.question(&verb, &target, &access)))
    }
}
