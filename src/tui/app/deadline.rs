//! An approval without an answer within the set time is denied, on the screen and in plain text. The time
//! starts again when the question changes, and when the person presses a key in its dialog.

use std::collections::HashMap;
use std::time::Duration;

use tiller_protocol::command::AskCommand;
use tiller_protocol::{AskBody, AskId, AskReply, CommandBody, Decision, Notice, NoticeKind};

use crate::model::Model;

/// Start of each approval's time limit with the hash of its content; `None`: the approval was denied here.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(HashMap<AskId, (Option<Duration>, String)>);

impl Deadlines {
    /// Brings [`crate::model::Questions::deadlines`] up to date. Returns a denial for each approval whose time is over,
    /// with the notice for it.
    pub(crate) fn late(&mut self, model: &mut Model) -> Vec<(CommandBody, Notice)> {
        let limit = Duration::from_secs(model.ui.approval_timeout);
        let now = model.mono;
        if limit.is_zero() {
            self.0.clear();
        }
        self.0.retain(|id, _| model.questions.open.iter().any(|a| a.id == *id));
        let (mut late, mut deadlines) = (Vec::new(), HashMap::new());
        for ask in model.questions.open.iter().filter(|_| !limit.is_zero()) {
            let AskBody::Permission(p) = &ask.body else { continue };
            let waits = self.0.entry(ask.id).or_insert_with(|| (Some(now), p.hash.clone()));
            if waits.1 != p.hash {
                *waits = (Some(now), p.hash.clone());
            }
            let Some(until) = waits.0.map(|t| t.saturating_add(limit)) else { continue };
            if until > now {
                deadlines.insert(ask.id, until);
                continue;
            }
            waits.0 = None;
            let within = format!("within {} s", limit.as_secs());
            let comment = Some(format!("No answer came {within}, so the call was denied."));
            let reply = AskReply::Permission { decision: Decision::Deny { comment }, hash: p.hash.clone() };
            let said = Notice::new(NoticeKind::Denied, format!("Denied {}: no answer {within}", p.verb));
            late.push((CommandBody::Ask(AskCommand::Answer { id: ask.id, reply }), said));
        }
        if model.questions.deadlines != deadlines {
            model.questions.deadlines = deadlines;
        }
        late
    }

    /// Restarts the time of this question.
    pub(crate) fn attended(&mut self, id: AskId, now: Duration) {
        if let Some((Some(since), _)) = self.0.get_mut(&id) {
            *since = now;
        }
    }
}
