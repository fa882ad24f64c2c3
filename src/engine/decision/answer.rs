//! The answer of the user to the question about a call.

use tiller_permit::decide::is_of_instructions;
use tiller_protocol::permission::DENIED_BY_USER;
use tiller_protocol::{AskReply, Decision, PermissionOutcome, SessionId, ToolOutcome};

use super::{CallDecision, DecidedCall, Decider, Refusal, report};
use crate::core::services::Services;
use crate::questions::permission::{Permit, rule_not_saved};
use crate::turn::CallResult;

/// A question that was asked about a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedAs<'a> {
    /// Why it was asked.
    pub(crate) rule: &'a str,
    /// The user, in words.
    pub(crate) by: &'a str,
    /// The rule that an answer could have made.
    pub(crate) always: Option<&'a str>,
}

/// Applies an answer that does not change the call.
///
/// # Errors
/// When the user denied it, or no one can be asked.
pub(crate) async fn consent(
    call: &impl DecidedCall,
    answer: Result<AskReply, String>,
    asked: AskedAs<'_>,
) -> Result<CallDecision, Refusal> {
    let AskedAs { rule, by, always } = asked;
    let person = |decision| CallDecision { decision, by: by.into() };
    let no = |decision: PermissionOutcome, by: String, text: String, unanswered: bool| {
        let result = CallResult { unanswered, ..CallResult::text(ToolOutcome::Denied, text) };
        Err(Box::new((CallDecision { decision, by }, result)))
    };
    match answer {
        Err(why) => {
            report(call, PermissionOutcome::Nobody, &why, always, false);
            let text = format!("Denied: this call needs an approval, and {why} (rule: {rule}).");
            no(PermissionOutcome::Nobody, why, text, true)
        }
        Ok(AskReply::Permission { decision, .. }) => match decision {
            Decision::Once => {
                // One question for each file and session.
                if let Some(pattern) = always.filter(|_| is_of_instructions(rule)) {
                    call.decider().remember(pattern, false).await;
                }
                Ok(person(PermissionOutcome::Once))
            }
            Decision::Outside => Ok(person(PermissionOutcome::Outside)),
            Decision::Session { pattern } => {
                call.decider().remember(&pattern, false).await;
                Ok(person(PermissionOutcome::Session))
            }
            Decision::Always { pattern } => {
                call.decider().remember(&pattern, true).await;
                Ok(person(PermissionOutcome::Always))
            }
            Decision::Edit { .. } => no(
                PermissionOutcome::Denied,
                "engine".into(),
                "Denied: this call cannot be edited now.".into(),
                false,
            ),
            Decision::Deny { comment } => {
                let text = match comment.filter(|c| !c.trim().is_empty()) {
                    Some(c) => format!("{DENIED_BY_USER}: {c}"),
                    None => format!("{DENIED_BY_USER}."),
                };
                no(PermissionOutcome::Refused, by.into(), text, false)
            }
        },
        Ok(_) => no(PermissionOutcome::Refused, "you".into(), format!("{DENIED_BY_USER}."), false),
    }
}

impl Decider<'_> {
    async fn remember(self, pattern: &str, always: bool) {
        if let Err(why) = remember(self.permit, self.services, self.root, pattern, always).await {
            self.bus.publish(self.scope, rule_not_saved(&why));
        }
    }
}

/// Makes the rule of an answer: for good, or until the session ends. `root`: the main agent's session.
///
/// # Errors
/// When it is no rule, or cannot be saved; in words.
pub(crate) async fn remember(
    permit: &Permit,
    services: &Services,
    root: SessionId,
    pattern: &str,
    always: bool,
) -> Result<(), String> {
    if always {
        return permit.allow_always(pattern).await;
    }
    permit.allow_session(pattern)?;
    // The rule holds at once; storing it for a restart may be slower.
    for one in tiller_permit::split_patterns(pattern) {
        drop(services.store.rules().add(root, one));
    }
    Ok(())
}
