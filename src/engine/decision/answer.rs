//! The answer of the user to the question about a call.

use tiller_permit::decide::INSTRUCTS;
use tiller_protocol::permission::DENIED_BY_USER;
use tiller_protocol::{AskReply, Decision, PermissionOutcome, ToolOutcome};

use super::{CallDecision, DecidedCall, Decider, Refusal, report};
use crate::questions::permission::rule_not_saved;
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
                if let (INSTRUCTS, Some(pattern)) = (rule, always) {
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
        let done = if always {
            self.permit.allow_always(pattern).await
        } else {
            self.permit.allow_session(pattern).map(|()| {
                // The rule holds at once; storing it for a restart may be slower.
                for one in tiller_permit::split_patterns(pattern) {
                    drop(self.services.store.rules().add(self.root, one));
                }
            })
        };
        if let Err(why) = done {
            self.bus.publish(self.scope, rule_not_saved(&why));
        }
    }
}
