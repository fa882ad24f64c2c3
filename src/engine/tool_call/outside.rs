//! A command that failed because of the sandbox: whether it may run again where it is confined less.
//!
//! A command that only reads may run again as an approved command does: in the workspace. Only the answer of the user runs
//! it outside the sandbox; in modes that ask nothing the command stays failed, with the reason in the result.

use tiller_permit::Verdict;
use tiller_protocol::ask::{OutsideAnswer, Risk};
use tiller_protocol::{AskBody, AskReply, Decision, Part, Profile};
use tiller_tool::CommandProfile;
use tiller_tool::shell::blocked_words;

use super::CallTask;
use crate::decision::{CallDecision, Refusal};

/// The rule of the question.
const RULE: &str = "blocked by the sandbox";

/// What is said of a command that failed in one of the sandbox's profiles.
struct Words {
    /// The reason that the question shows.
    reason: &'static str,
    /// What the sandbox holds, for the model, when the command does not run again.
    ran: &'static str,
    /// What can be done then.
    outside: &'static str,
}

const READ: Words = Words {
    reason: "it failed in the sandbox, where commands that run without asking can only read the workspace and the system",
    ran: "It ran in the sandbox, as commands that only read do: it could not write, use the network, or read secrets and \
          files outside the workspace and the system. `read_file` can ask for such a file.",
    outside: "",
};

const WORKSPACE: Words = Words {
    reason: "it failed in the sandbox, where commands write in the workspace and have no network",
    ran: "It ran in the sandbox: it could write in the workspace and in $TMPDIR only, without network, secrets and \
          protected files.",
    outside: "Only the user can let it run outside: when asked, by an `outside` rule in permissions.yaml, or by typing it \
              after `!`.",
};

/// Where it is not known what the sandbox refused.
const PERHAPS: &str = "The sandbox may be why it failed.";

impl Words {
    /// For the model. `known`: the result names what the sandbox refused.
    fn note(&self, known: bool) -> String {
        let perhaps = if known { "" } else { PERHAPS };
        let parts = [self.ran, perhaps, self.outside].into_iter().filter(|part| !part.is_empty());
        format!("[{}]", parts.collect::<Vec<_>>().join(" "))
    }
}

impl CallTask {
    /// Whether the call failed, as far as can be seen, because it was confined, and can be confined less.
    pub(super) fn blocked(&self) -> bool {
        let run = &self.cx.run;
        matches!(run.profile, CommandProfile::Read | CommandProfile::Workspace)
            && run.blocked()
            && !self.cx.cancel.is_cancelled()
    }

    /// Asks the user, unless the mode asks nothing. Only the user's answer leads out of the sandbox.
    ///
    /// # Errors
    /// When it does not run again: what the model is to know then.
    pub(super) async fn decide_again(&mut self) -> Result<CallDecision, Vec<Part>> {
        let reads = self.cx.run.profile == CommandProfile::Read;
        let words = if reads { READ } else { WORKSPACE };
        let known = !self.cx.run.refused.all().is_empty();
        let note = || vec![Part::Text { text: words.note(known) }];
        let decided = match self.profile {
            Profile::Full | Profile::ReadOnly | Profile::Plan => return Err(note()),
            // The calls of a script are asked about together, before it runs for real.
            _ if self.inner.is_some() => return Err(note()),
            _ => match self.ask_again(reads, words.reason).await {
                Some(Ok(decided)) => decided,
                Some(Err(refused)) => return Err([note(), refused.1.content].concat()),
                None => return Err(note()),
            },
        };
        self.asked = true;
        Ok(decided)
    }

    /// What the sandbox refused, for the question.
    fn refused_effect(&self) -> Option<String> {
        let refused = self.cx.run.refused.all();
        let words = match (refused.is_empty(), self.cx.run.likely()) {
            (false, _) => format!("the sandbox blocked {}", blocked_words(&refused)),
            (true, Some(likely)) => format!("its output shows that {likely} was refused"),
            (true, None) => return None,
        };
        Some((self.services.redaction.redact)(&words))
    }

    /// The answer; `None`: there is none.
    async fn ask_again(&mut self, reads: bool, reason: &str) -> Option<Result<CallDecision, Refusal>> {
        let agent = self.cx.agent.clone();
        let access = self.tool.access(&self.args, &self.cx).ok()?;
        let (verb, target) = (self.tool.verb(), self.tool.target(&self.args));
        let question = self.question(&verb, &target, &access);
        let risk = if reads { Risk::Low } else { Risk::High };
        let effects = std::iter::once(reason.to_owned()).chain(self.refused_effect()).collect();
        let verdict = Verdict::Ask { rule: RULE.into(), risk, effects, always: None };
        let mut ask = self.permit.ask(&question, verdict, None)?;
        let confined = self.cx.workspace.confines(CommandProfile::Workspace);
        ask.outside = match (reads, confined) {
            (true, true) => OutsideAnswer::Offered,
            // The next run is not confined.
            (true, false) => OutsideAnswer::No,
            (false, _) => OutsideAnswer::Only,
        };
        let offered = ask.outside;
        let answer = tokio::select! {
            answer = self.cx.ports.ask(&agent, AskBody::Permission(ask)) => answer.ok()?,
            () = self.cx.cancel.cancelled() => return None,
        };
        match &answer {
            // Another command would have to be judged again: the model can call with it.
            AskReply::Permission { decision: Decision::Edit { .. }, .. } => None,
            _ => {
                self.run_in(CommandProfile::Workspace);
                let answer = self.leave_sandbox(Ok(answer), offered);
                Some(self.consent(answer, RULE, None).await)
            }
        }
    }
}
