//! The title of the approval dialog: who wants to do what, and what must be known about it at a glance.

use tiller_protocol::ToolVerb;

use super::*;
use crate::text::shorten::shorten_middle;
use crate::text::width::width;

/// The facts of the call in the title, which do not change.
pub(super) struct TitleFacts {
    /// The path or URL, when nothing in it needs to be spelled out. Commands and scripts have rows of their own.
    target: Option<content::Target>,
    /// Lines added and removed.
    counts: Option<(u32, u32)>,
}

impl TitleFacts {
    pub(super) fn of(p: &PermissionAsk) -> Self {
        let own_rows = matches!(p.verb, ToolVerb::Shell | ToolVerb::Script);
        let mut target = content::target(p).filter(|_| !own_rows);
        // The verb says that it changes something.
        if let (Some(target), ToolVerb::Memory) = (&mut target, &p.verb) {
            let words = std::mem::take(&mut target.name);
            target.name = words.strip_prefix("changes ").unwrap_or(&words).to_owned();
        }
        Self { target, counts: p.diff.as_deref().and_then(content::counts) }
    }
}

/// The title in one line.
pub(super) struct Sentence {
    pub(super) text: String,
    /// It names the target whole, so that the text below does not.
    pub(super) whole: bool,
}

impl Approval {
    /// `main wants to edit src/client.py`, within `columns`; `None`: without the target. A path that is too long is cut
    /// in its middle.
    pub(super) fn sentence(&self, model: &Model, columns: Option<usize>) -> Sentence {
        let name = match self.same.len() {
            0 => model.path_of(&self.ask.agent),
            n => format!("{} (for {} agents)", model.path_of(&self.ask.agent), n + 1),
        };
        let moves = self.facts.target.as_ref().is_some_and(|target| target.moves);
        let lead = format!("{name} wants to {}", if moves { "move" } else { self.p.wants() });
        let alone = || Sentence { text: format!("{lead}:"), whole: false };
        let Some((target, columns)) = self.facts.target.as_ref().map(|t| &t.name).zip(columns) else {
            return alone();
        };
        let room = columns.saturating_sub(width(&lead) + 1);
        let cut = shorten_middle(target, room, ascii());
        let file = target.rfind('/').map_or(target.as_str(), |at| &target[at..]);
        if !cut.ends_with(file) {
            return alone();
        }
        Sentence { text: format!("{lead} {cut}"), whole: cut == *target }
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
