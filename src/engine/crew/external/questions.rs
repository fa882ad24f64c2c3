//! Questions of an external program: rules answer where they can, else the user.

use std::sync::atomic::Ordering;

use serde_json::json;
use tiller_external::{Answer, Ask, Choice, ChoiceKind, Question, ToolUse};
use tiller_protocol::view::{AuditOutcome, AuditRow};
use tiller_protocol::{AskBody, AskReply, PermissionOutcome, ToolOutcome};
use tokio::sync::{mpsc, oneshot};

use crate::core::msg::Msg;
use crate::core::saves::{After, Then};
use crate::crew::driver::ExternalDriver;
use crate::crew::external::asked_call::AskedCall;
use crate::crew::external::msg::{ExternalMsg, JudgedBy};
use crate::decision::{CallDecision, Refusal, decide};
use crate::questions::asking;

/// Most choices of a dialog that are shown.
const CHOICES: usize = 6;

impl ExternalDriver<'_> {
    /// A question of the program.
    pub(crate) fn question(&mut self, mut ask: Ask) {
        match ask.what {
            Question::Permission { tool, shown, diffs, by_screen, .. } => {
                self.mark_asked(ask.call.as_deref());
                let call = AskedCall::new(self.core, ask.call, *tool, shown, diffs, by_screen);
                self.decide(call, ask.reply);
            }
            Question::Choose { text, options, free_text } => {
                let choices: Vec<String> =
                    options.iter().take(CHOICES).map(|o| self.core.redact(&o.name)).collect();
                let says_yes =
                    |i: &usize| matches!(options[*i].kind, ChoiceKind::AllowOnce | ChoiceKind::AllowAlways);
                let (decides, rest): (Vec<usize>, Vec<usize>) = (0..choices.len()).partition(says_yes);
                let body = AskBody::Clarify {
                    question: self.core.redact(&text),
                    choices: choices.clone(),
                    allow_freetext: free_text,
                    multiple: false,
                    default: rest.first().copied().filter(|_| !decides.is_empty()),
                    decides,
                };
                let (tx, agent) = (self.core.tx.clone(), self.core.identity.id.clone());
                self.core.spawn(async move {
                    let answer = tokio::select! {
                        answer = asking::request(&tx, &agent, ask.call, body) => answer,
                        () = ask.reply.closed() => return,
                    };
                    let chosen = match answer {
                        Ok(AskReply::Choice { answers }) => chosen(&answers, &choices, &options, free_text),
                        _ => Answer::Cancel,
                    };
                    let _ = ask.reply.send(chosen);
                });
            }
        }
    }

    /// Decides about a call that the program asks for, and answers.
    fn decide(&mut self, mut call: AskedCall, mut reply: oneshot::Sender<Answer>) {
        let Some(turn) = self.core.turn.live.as_ref().map(|l| l.no) else { return };
        call.judged = self.judged_by();
        let tx = self.core.tx.clone();
        self.core.spawn(async move {
            let decided = tokio::select! {
                decided = decide_now(&mut call, turn, &tx) => decided,
                // The program no longer waits: a question is withdrawn.
                () = reply.closed() => None,
            };
            let (kind, decided) = match decided {
                Some(Ok(decided)) => (ChoiceKind::AllowOnce, Some(decided)),
                Some(Err(refusal)) => (ChoiceKind::RejectOnce, Some(refusal.0)),
                None => (ChoiceKind::RejectOnce, None),
            };
            // The audit first: the engine may end after the answer. Without an engine there is no yes.
            let audit = ExternalMsg::Settled(Box::new(call.audit(decided)));
            let kept = tx.send(Msg::External(audit)).await.is_ok();
            let kind = if kept { kind } else { ChoiceKind::RejectOnce };
            // The program may have ended.
            let _ = reply.send(Answer::Kind(kind));
        });
    }

    /// The state of the loop by which calls are judged.
    pub(crate) fn judged_by(&mut self) -> JudgedBy {
        JudgedBy { profile: self.core.session.profile, unkept: self.changes_cannot_be_undone() }
    }

    /// True if the state of the files could not be stored, and the settings demand a question then.
    pub(crate) fn changes_cannot_be_undone(&mut self) -> bool {
        let asks = self.core.services.snapshots.workspace.as_ref().is_some_and(crate::files::Keeper::asks);
        asks && self
            .core
            .identity
            .external_mut()
            .is_some_and(|o| o.calls.state_not_stored.load(Ordering::Relaxed))
    }

    /// Marks a call that is asked about: the answer writes its row of the audit.
    pub(crate) fn mark_asked(&mut self, call: Option<&str>) {
        if let Some(open) = call.and_then(|id| self.core.identity.external_mut()?.open_call(id)) {
            open.asked = true;
        }
    }

    /// Writes an audit row for a call that the program's own rules permitted.
    pub(crate) fn audit_unasked(&mut self, tool: &ToolUse, outcome: ToolOutcome, seconds: f64) {
        let name = self.core.identity.external_mut().map(|o| o.adapter.title.clone()).unwrap_or_default();
        let args = if tool.target.is_empty() { tool.args.clone() } else { json!({"what": tool.target}) };
        let audit = AuditRow {
            time: self.core.services.clock.now(),
            session: self.core.session.id,
            agent: self.core.identity.id.0.clone(),
            tool: self.core.redact(&tool.name),
            what: crate::tool_call::what(&self.core.services.redaction.redact, &args),
            decision: PermissionOutcome::External,
            by: format!("{name} did not ask"),
            seconds,
            outcome: outcome.into(),
        };
        let ticket = self.core.services.store.audit().record(audit);
        self.core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }

    /// Writes the audit row of a decision. Whether a permitted call was made is unknown.
    pub(crate) fn audit_decided(&mut self, mut audit: AuditRow) {
        if audit.decision == PermissionOutcome::Nobody
            && let Some(o) = self.core.identity.external_mut()
        {
            o.refused = true;
            self.core.child_driver().record_refusal();
        }
        let no = audit.decision.denies() || audit.decision == PermissionOutcome::Undecided;
        audit.outcome = if no { AuditOutcome::Denied } else { AuditOutcome::Allowed };
        let ticket = self.core.services.store.audit().record(audit);
        self.core.saves.push(ticket, After { events: Vec::new(), then: Then::Nothing });
    }
}

/// The decision about a call. What a rule allowed holds if the loop has not changed meanwhile: hooks and questions take time.
/// `None`: the turn is over.
async fn decide_now(
    call: &mut AskedCall,
    turn: u64,
    tx: &mpsc::Sender<Msg>,
) -> Option<Result<CallDecision, Refusal>> {
    loop {
        let decided = decide(call).await;
        let (reply, now) = oneshot::channel();
        tx.send(Msg::External(ExternalMsg::Judged { turn, reply })).await.ok()?;
        let now = now.await.ok()?;
        let by_rule = matches!(&decided, Ok(d) if d.decision == PermissionOutcome::Allowed);
        if !by_rule || now == call.judged {
            return Some(decided);
        }
        call.judged = now;
    }
}

fn chosen(answers: &[String], shown: &[String], options: &[Choice], free_text: bool) -> Answer {
    let Some(first) = answers.first() else { return Answer::Cancel };
    match shown.iter().position(|s| s == first).and_then(|at| options.get(at)) {
        Some(option) => Answer::Option(option.id.clone()),
        None if free_text => Answer::Text(first.clone()),
        None => Answer::Cancel,
    }
}
