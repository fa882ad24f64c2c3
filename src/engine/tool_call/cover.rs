//! Keeps the files before a call, so that its changes can be undone, and handles the failure to do so.

use tiller_permit::Verdict;
use tiller_protocol::ask::Risk;
use tiller_protocol::{Access, AskBody, Touch};
use tiller_snapshot::SnapshotError;
use tiller_tool::CommandProfile;

use super::{CallTask, failed};
use crate::core::msg::Msg;
use crate::decision::{CallDecision, Refusal};
use crate::files::msg::{CallScope, FilesMsg, StateBefore};
use crate::files::outside::OldFile;
use crate::files::{Keeper, NotKept, record};
use crate::turn::CallResult;

/// The states and copies that were kept before a call.
#[derive(Default)]
pub(super) struct CallBackup {
    pub(super) before: Option<StateBefore>,
    /// Copies of files that no state covers.
    pub(super) copies: Vec<OldFile>,
}

impl CallTask {
    /// Keeps the state of the files before the call. `None`: there is nothing to keep, or snapshots are off.
    pub(super) async fn files_before(&self) -> Option<Result<CallBackup, SnapshotError>> {
        if self.is_covered() {
            return None;
        }
        let what = match (self.tool.touch(), self.files.written.is_empty()) {
            (Touch::Execute, _) if (!self.asked || self.is_script()) && self.only_looks() => return None,
            (Touch::Execute, _) => CallScope::All,
            (_, false) => CallScope::Paths(self.files.written.clone()),
            (_, true) => return None,
        };
        if let Some(keeper) = &self.services.snapshots.workspace {
            let witness = matches!(what, CallScope::All).then(|| self.cx.witness.clone());
            let before = record::before(keeper, what, self.files.watched.clone(), self.step_call()).await;
            return Some(before.map(|mut before| {
                before.witness = witness;
                let copies = std::mem::take(&mut before.outside);
                CallBackup { before: Some(before), copies }
            }));
        }
        // Git keeps the agent's own folder; files elsewhere are copied.
        let (Some(keeper), CallScope::Paths(mut paths)) = (&self.services.snapshots.elsewhere, what) else {
            return None;
        };
        paths.retain(|p| !p.starts_with(&self.cx.workspace.root));
        if paths.is_empty() {
            return None;
        }
        let copies = record::copy(keeper, paths).await;
        Some(copies.map(|copies| CallBackup { before: None, copies }))
    }

    /// Whether it runs a script.
    fn is_script(&self) -> bool {
        let access = self.tool.access(&self.args, &self.cx);
        access.is_ok_and(|access| matches!(access[..], [Access::Script { .. }]))
    }

    /// Whether it is a read-only command, or a script that can only read. If that is wrong, the snapshot at the next message still covers its changes.
    fn only_looks(&self) -> bool {
        if self.is_script() {
            let profile = self.cx.run.profile;
            return profile == CommandProfile::Read && self.cx.workspace.confines_here(profile);
        }
        self.tool.access(&self.args, &self.cx).is_ok_and(|access| self.permit.only_looks(&access))
    }

    /// The files before the call could not be kept: the user decides whether it runs anyway, in every profile, unless
    /// a setting allows it.
    ///
    /// # Errors
    /// When the user denies the call, or no user can answer.
    pub(super) async fn unkept(&self, error: SnapshotError) -> Result<(), Refusal> {
        let keeper =
            self.services.snapshots.workspace.as_ref().or(self.services.snapshots.elsewhere.as_ref());
        let asks = keeper.is_some_and(Keeper::asks);
        let why = error.to_string();
        // The notice is shown once in a session, whatever the answer.
        let _ = self.tx.send(Msg::Files(FilesMsg::NotKept(Box::new(NotKept(error))))).await;
        if !asks {
            return Ok(());
        }
        let access = self.tool.access(&self.args, &self.cx);
        let access = access.map_err(|e| CallDecision::undecided("the tool", failed(e)))?;
        let (verb, target) = (self.tool.verb(), self.tool.target(&self.args));
        let question = self.question(&verb, &target, &access);
        let rule = format!("no snapshot could be taken before this call: {why}");
        let verdict = Verdict::Ask {
            rule: rule.clone().into(),
            risk: Risk::High,
            effects: vec![
                "the changes of this call cannot be undone: no snapshot was taken".into(),
                "to run such calls without asking, set `snapshots.on_failure` to \"run\"".into(),
            ],
            always: None,
        };
        let diff = self.tool.preview(&self.args, &self.cx).await.diff;
        let Some(mut ask) = self.permit.ask(&question, verdict, diff) else { return Ok(()) };
        // The call runs exactly as it was approved.
        ask.editable = false;
        let answer = tokio::select! {
            answer = self.cx.ports.ask(&self.cx.agent, AskBody::Permission(ask)) => answer,
            () = self.cx.cancel.cancelled() => {
                return Err(CallDecision::undecided("stopped before an answer", CallResult::interrupted()));
            }
        };
        self.consent(answer, &rule, None).await.map(drop)
    }
}
