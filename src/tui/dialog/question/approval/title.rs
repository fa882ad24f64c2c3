//! The title of the approval dialog: who wants to do what, and what must be known about it at a glance.

use super::*;

/// What the title says of the call, which does not change.
pub(super) struct TitleFacts {
    /// The path or URL, when nothing in it needs to be spelled out. A command has rows of its own.
    pub(super) target: Option<String>,
    /// Lines added and removed.
    counts: Option<(u32, u32)>,
}

impl TitleFacts {
    pub(super) fn of(p: &PermissionAsk) -> Self {
        let named = p.verb != tiller_protocol::ToolVerb::Shell && content::is_plain(&p.shown);
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
    pub(super) fn state(&self, model: &Model, ascii: bool) -> Line {
        let mut line = Line::new(Wrap::Cut);
        if let Some((added, removed)) = self.facts.counts {
            line = diff::counts(added, removed, ascii);
        }
        let mut add = |text: &str, role| {
            if text.is_empty() {
                return;
            }
            line.push(if line.text().is_empty() { "" } else { "   " }, Look::of(Role::Text));
            line.push(text, Look::of(role));
        };
        if self.p.risk == Risk::High {
            add("risky", Role::Error);
        }
        add(which_of(self.ask.id, model).text(), Role::Dim);
        if let Some(until) = model.questions.deadlines.get(&self.ask.id) {
            add(&no_in(*until, model.mono), Role::Waiting);
        }
        line
    }
}
