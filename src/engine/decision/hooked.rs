//! Hooks before a call. Every call of every agent passes here, whatever started it.

use serde_json::Value;
use tiller_hooks::{Denial, HookScene};
use tiller_protocol::notice::sentence;
use tiller_protocol::{HookEvent, PermissionOutcome, Taint, ToolOutcome};

use super::{CallDecision, DecidedCall, Decider, Refusal, report};
use crate::turn::CallResult;

/// The taint of what hooks say: what they read is not known.
pub(crate) const OF_HOOKS: Option<Taint> = Some(Taint::ToolOutput);

/// The answers of hooks about a call.
#[derive(Default)]
pub(crate) struct HookedCall {
    /// The arguments that all hooks have seen and let pass.
    passed: Option<Value>,
    /// Why the user is asked about it, whatever the rules say.
    pub(super) ask: Option<String>,
    /// Hooks that changed the arguments.
    pub(crate) changed_by: Vec<String>,
    /// Texts for the end of the result, each with its hook.
    pub(crate) add: Vec<(String, String)>,
}

impl<'a> Decider<'a> {
    pub(crate) fn scene(self, event: HookEvent) -> HookScene<'a> {
        let profile = Some(self.profile);
        HookScene { event, session: self.session, agent: self.agent, folder: self.folder, profile }
    }
}

/// Runs the hooks before the call, unless they have seen its arguments. They may change them.
///
/// # Errors
/// When a hook denies the call, or it was stopped meanwhile.
pub(super) async fn before<C: DecidedCall>(call: &mut C) -> Result<(), Refusal> {
    let hooks = call.decider().services.hooks.clone();
    if !hooks.any(HookEvent::BeforeToolCall) {
        return Ok(());
    }
    let args = call.args().clone();
    if call.hooked().passed.as_ref() == Some(&args) {
        return Ok(());
    }
    let Decider { cancel, .. } = call.decider();
    let cancel = cancel.clone();
    let this: &C = call;
    let answer = hooks
        .before_call(
            this.decider().scene(HookEvent::BeforeToolCall),
            this.about(),
            &|rule, args| this.is_for(rule, args),
            &cancel,
        )
        .await;
    call.decider().notices(answer.notices);
    if cancel.is_cancelled() {
        return Err(CallDecision::undecided("stopped while a hook ran", CallResult::interrupted()));
    }
    let mut denial = answer.deny;
    if let (None, Some(args)) = (&denial, answer.arguments) {
        match call.replace(args) {
            Ok(()) => call.hooked().changed_by = answer.changed_by,
            Err(reason) => {
                denial = Some(Denial { hook: answer.changed_by.join(", "), reason: reason.to_owned() });
            }
        }
    }
    if let Some(denial) = denial {
        let by = format!("hook {}: {}", denial.hook, denial.reason);
        let by = (call.decider().services.redaction.redact)(&by);
        let result = CallResult::text(ToolOutcome::Denied, sentence(&denial.words()));
        report(call, PermissionOutcome::Denied, &by, None, false);
        return Err(CallDecision::denied(by, CallResult { taint: OF_HOOKS, ..result }));
    }
    let args = call.args().clone();
    let hooked = call.hooked();
    (hooked.add, hooked.ask, hooked.passed) = (answer.add, answer.ask, Some(args));
    Ok(())
}
