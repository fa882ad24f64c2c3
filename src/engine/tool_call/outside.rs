//! A command that ran without a question, confined to reading, and failed because of that: whether it may run again
//! outside the sandbox.

use tiller_permit::Verdict;
use tiller_protocol::ask::Risk;
use tiller_protocol::{AskBody, AskReply, Decision, Part, PermissionOutcome, Profile};

use super::CallTask;
use super::decide::{CallDecision, Refusal};
use crate::questions::permission::permission_ask;

/// The rule of the question.
const RULE: &str = "blocked by the sandbox";
/// The reason that the question shows.
const REASON: &str = "it failed in the sandbox, where commands that run without asking can only read";
/// For the model, when the command does not run again.
const NOTE: &str = "[It ran in the sandbox, as commands that only read do: it could not write, use the \
                               network or read secrets. The sandbox may be why it failed.]";

impl CallTask {
    /// Whether the call failed, as far as can be seen, because it was confined.
    pub(super) fn blocked(&self) -> bool {
        self.cx.read_only.as_ref().is_some_and(|run| run.blocked()) && !self.cx.cancel.is_cancelled()
    }

    /// Asks the user, unless the mode allows every command.
    ///
    /// # Errors
    /// When it does not run again: what the model is to know then.
    pub(super) async fn decide_outside(&mut self) -> Result<CallDecision, Vec<Part>> {
        let note = || vec![Part::Text { text: NOTE.into() }];
        let decided = match self.profile {
            Profile::Full => {
                CallDecision { decision: PermissionOutcome::Allowed, by: format!("{RULE}; full mode") }
            }
            Profile::ReadOnly | Profile::Plan => return Err(note()),
            _ => match self.ask_outside().await {
                Some(Ok(decided)) => decided,
                Some(Err(refused)) => return Err([note(), refused.1.content].concat()),
                None => return Err(note()),
            },
        };
        self.asked = true;
        self.cx.read_only = None;
        Ok(decided)
    }

    /// The answer; `None`: there is none.
    async fn ask_outside(&self) -> Option<Result<CallDecision, Refusal>> {
        let agent = self.cx.agent.clone();
        let access = self.tool.access(&self.args, &self.cx).ok()?;
        let (verb, target) = (self.tool.verb(), self.tool.target(&self.args));
        let question = self.question(&verb, &target, &access);
        let verdict =
            Verdict::Ask { rule: RULE.into(), risk: Risk::Low, effects: vec![REASON.into()], always: None };
        let ask = permission_ask(&question, verdict, None)?;
        let answer = tokio::select! {
            answer = self.cx.ports.ask(&agent, AskBody::Permission(ask)) => answer.ok()?,
            () = self.cx.cancel.cancelled() => return None,
        };
        match &answer {
            // Another command would have to be judged again: the model can call with it.
            AskReply::Permission { decision: Decision::Edit { .. }, .. } => None,
            _ => Some(self.consent(Ok(answer), RULE)),
        }
    }
}
