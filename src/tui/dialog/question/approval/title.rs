//! The title of the approval dialog: who wants to do what, and what must be known about it at a glance.

use tiller_protocol::ToolVerb;

use super::*;

/// What the title says of the call, which does not change.
pub(super) struct TitleFacts {
    /// The path or URL, when nothing in it needs to be spelled out. Commands and scripts have rows of their own.
    pub(super) target: Option<String>,
    /// Lines added and removed.
    counts: Option<(u32, u32)>,
}

impl TitleFacts {
    pub(super) fn of(p: &PermissionAsk) -> Self {
        let own_rows = matches!(p.verb, ToolVerb::Shell | ToolVerb::Script);
        let named = !own_rows && content::is_plain(&p.shown);
        Self { target: named.then(|| p.shown.clone()), counts: p.diff.as_deref().and_then(content::counts) }
    }
}

impl Approval {
    /// `main wants to edit src/client.py`; `target`: with what it is done to.
    pub(super) fn words(&self, model: &Model, target: bool) -> String {
        let name = match self.same.len() {
            0 => model.path_of(&self.ask.agent),
            n => format!("{} (for {} agents)", model.path_of(&self.ask.agent), n + 1),
        };
        let wants = self.p.wants();
        match self.facts.target.as_ref().filter(|_| target) {
            Some(target) => format!("{name} wants to {wants} {target}"),
            None => format!("{name} wants to {wants}:"),
        }
    }

    /// Counts of an edit, the risk, which of several questions it is, and the time until it is denied.
    pub(super) fn state(&self, model: &Model) -> QuestionState {
        let until = model.questions.deadlines.get(&self.ask.id);
        QuestionState {
            counts: self.facts.counts,
            risky: self.p.risk == Risk::High,
            which: which_of(self.ask.id, model),
            denied_in: until.map(|until| until.saturating_sub(model.mono)),
        }
    }
}
