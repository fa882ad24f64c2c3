//! The decision about one call: hooks, then rules, then the user. Calls of Tiller's own tools and of programs of others take
//! the same way; [`DecidedCall`] holds what differs.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the order of the steps |
//! | `view` | a call as rules see it; the verdict about it |
//! | `hooked` | hooks before a call |
//! | `answer` | the answer of the user: the decision, and the rule that it makes |
//! | `held` | the question about protected files that a command wrote |

pub(crate) mod answer;
pub(crate) mod held;
pub(crate) mod hooked;
pub(crate) mod view;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use tiller_permit::decide::ReadOnlyRun;
use tiller_permit::{Rule, Verdict};
use tiller_protocol::event::StateEvent;
use tiller_protocol::{AgentId, EventBody, Notice, PermissionOutcome, Profile, SessionId, ToolOutcome};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, EventScope};
use crate::core::msg::Msg;
use crate::core::services::Services;
use crate::questions::msg::QuestionMsg;
use crate::questions::permission::Permit;
use crate::questions::trust;
use crate::turn::CallResult;

pub(crate) use answer::{AskedAs, consent};
pub(crate) use hooked::HookedCall;
pub(crate) use view::{CallView, Reading};

/// Most rounds of one decision; each but the first needs a call that hooks or the user changed.
const ROUNDS: usize = 20;

/// Why a call does not run, and the result that the model gets.
pub(crate) type Refusal = Box<(CallDecision, CallResult)>;

/// A decision about a call, and its source as text.
pub(crate) struct CallDecision {
    pub(crate) decision: PermissionOutcome,
    pub(crate) by: String,
}

impl CallDecision {
    /// The refusal of a call without a decision.
    pub(crate) fn undecided(by: impl Into<String>, result: CallResult) -> Refusal {
        Box::new((Self { decision: PermissionOutcome::Undecided, by: by.into() }, result))
    }

    /// The refusal of a call that something other than the user denies.
    pub(crate) fn denied(by: impl Into<String>, result: CallResult) -> Refusal {
        Box::new((Self { decision: PermissionOutcome::Denied, by: by.into() }, result))
    }
}

/// The parts of an engine that a decision needs, for one agent.
#[derive(Clone, Copy)]
pub(crate) struct Decider<'a> {
    pub(crate) services: &'a Arc<Services>,
    pub(crate) bus: &'a Bus,
    /// Reports to the engine's loop.
    pub(crate) tx: &'a mpsc::Sender<Msg>,
    pub(crate) permit: &'a Permit,
    pub(crate) scope: &'a EventScope,
    /// The main agent's session: what is allowed there is allowed to all its agents.
    pub(crate) root: SessionId,
    pub(crate) session: SessionId,
    pub(crate) agent: &'a AgentId,
    pub(crate) folder: &'a Path,
    pub(crate) profile: Profile,
    /// Ends a hook that runs.
    pub(crate) cancel: &'a CancellationToken,
}

/// A call that is decided about.
pub(crate) trait DecidedCall: Send + Sync {
    fn decider(&self) -> Decider<'_>;

    /// The name of its tool in rules.
    fn tool(&self) -> &str;

    /// The file, command or address that it is about, for people.
    fn target(&self) -> String;

    fn args(&self) -> &Value;

    fn hooked(&mut self) -> &mut HookedCall;

    /// The call for hooks.
    fn about(&self) -> Map<String, Value>;

    /// True if a hook's rule is for the call with these arguments, or may be.
    fn is_for(&self, rule: &Rule, args: &Value) -> bool;

    /// Takes the arguments that hooks put in place of its own.
    ///
    /// # Errors
    /// When it cannot; the reason, for people.
    fn replace(&mut self, args: Value) -> Result<(), &'static str>;

    /// The call as it would run now.
    ///
    /// # Errors
    /// When it cannot run.
    fn view(&mut self) -> Result<CallView, Refusal>;

    /// Goes on with a call that a rule allows.
    ///
    /// # Errors
    /// When it does not run now in spite of that.
    fn allowed(
        &mut self,
        view: &CallView,
        rule: String,
        unasked: Option<ReadOnlyRun>,
    ) -> impl Future<Output = Result<CallDecision, Refusal>> + Send;

    /// Asks the user. `None`: the call was changed, and is judged again.
    fn ask(
        &mut self,
        view: &CallView,
        verdict: Verdict,
    ) -> impl Future<Output = Option<Result<CallDecision, Refusal>>> + Send;
}

/// Decides whether a call may run. A call that hooks or the user change is judged again: rules judge what hooks made of it, and
/// hooks see what the user made of it.
///
/// # Errors
/// When it does not run.
pub(crate) async fn decide<C: DecidedCall>(call: &mut C) -> Result<CallDecision, Refusal> {
    call.decider().refresh().await;
    for _ in 0..ROUNDS {
        hooked::before(call).await?;
        let view = call.view()?;
        let asks = call.hooked().ask.clone();
        match call.decider().judge(&view, asks.as_deref()) {
            Verdict::Allow { rule, unasked } => {
                let decided = call.allowed(&view, rule, unasked).await;
                if decided.is_ok() {
                    call.decider().hears(&view, false);
                }
                return decided;
            }
            Verdict::Deny { rule, reason } => {
                let result = CallResult::text(ToolOutcome::Denied, format!("Denied: {reason}."));
                let change = view.changes(call.decider().permit);
                report(call, PermissionOutcome::Denied, &rule, None, change);
                return Err(CallDecision::denied(rule, result));
            }
            verdict @ Verdict::Ask { .. } => {
                if let Some(decided) = call.ask(&view, verdict).await {
                    if decided.is_ok() {
                        call.decider().hears(&view, true);
                    }
                    return decided;
                }
            }
        }
    }
    let result = CallResult::text(ToolOutcome::Denied, "Denied: the command was changed too often.");
    Err(CallDecision::denied("changed too often", result))
}

/// Reports a decision that the user did not make. `allow`: the rule that would allow such calls; `change`: a change is refused.
fn report(call: &impl DecidedCall, decision: PermissionOutcome, by: &str, allow: Option<&str>, change: bool) {
    let Decider { services, tx, .. } = call.decider();
    let redact = &services.redaction.redact;
    // A rule that names a secret is no help with its mask.
    let allow = allow.filter(|rule| redact(rule) == **rule);
    // The engine may have ended, or its inbox be full: the audit records it anyway.
    let _ = tx.try_send(Msg::Question(QuestionMsg::Decided {
        tool: call.tool().to_owned(),
        what: redact(&call.target()),
        decision,
        by: by.to_owned(),
        allow: allow.map(str::to_owned),
        change,
    }));
}

impl Decider<'_> {
    /// Reads again what restricts calls: the user's trust in the folder, and the rules. A call after the loss of trust is judged
    /// without what the folder brings.
    async fn refresh(self) {
        if self.services.user.trust.is_some() {
            let (services, tx) = (Arc::clone(self.services), self.tx.clone());
            // After a panic there the next call looks again.
            let _ = tokio::task::spawn_blocking(move || trust::check(&services, &tx)).await;
        }
        self.notices(self.permit.refresh());
    }

    /// Publishes notices of a call.
    pub(crate) fn notices(self, notices: Vec<Notice>) {
        for notice in notices {
            self.bus.publish(self.scope, EventBody::State(StateEvent::Notice { notice }));
        }
    }
}
