//! The slices of the model by name, and the numbers of their states at one moment.

use super::tracked::Revision;
use super::{AgentModel, Model};

/// A slice of the model. A panel registers which ones it reads, and is drawn again when one of them has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// Which agent is shown.
    Shown,
    /// Session of the shown agent.
    Session,
    /// Cells of the shown conversation, with each word of a reply.
    Conversation,
    /// The shown conversation without the words that are being written: which cells there are, and their state.
    Outline,
    Todo,
    Queue,
    Turn,
    /// Session, outline and turn of the main agent while another one is shown.
    Home,
    Crew,
    Questions,
    Workspace,
    Notices,
    Engine,
    Ui,
    Environment,
    Window,
    Tour,
}

impl Slice {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::Shown,
        Self::Session,
        Self::Conversation,
        Self::Outline,
        Self::Todo,
        Self::Queue,
        Self::Turn,
        Self::Home,
        Self::Crew,
        Self::Questions,
        Self::Workspace,
        Self::Notices,
        Self::Engine,
        Self::Ui,
        Self::Environment,
        Self::Window,
        Self::Tour,
    ];

    /// Slices that everything on the screen depends on.
    pub const SHARED: &'static [Self] = &[Self::Shown, Self::Ui, Self::Environment, Self::Window];
}

/// The numbers of all slices at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revisions([Revision; Slice::ALL.len()]);

impl Revisions {
    /// True when these slices have the same numbers at both moments.
    pub fn same(&self, other: &Self, slices: &[Slice]) -> bool {
        slices.iter().all(|s| self.0[*s as usize] == other.0[*s as usize])
    }
}

impl Model {
    /// The numbers of all slices now.
    pub fn revisions(&self) -> Revisions {
        Revisions(Slice::ALL.map(|slice| match slice {
            Slice::Shown => self.shown.revision(),
            Slice::Session => self.agent.session.revision(),
            Slice::Conversation => self.agent.conversation.revision(),
            Slice::Outline => self.agent.outline,
            Slice::Todo => self.agent.todo.revision(),
            Slice::Queue => self.agent.queue.revision(),
            Slice::Turn => self.agent.turn.revision(),
            Slice::Home => newest(&self.home),
            Slice::Crew => self.crew.revision(),
            Slice::Questions => self.questions.revision(),
            Slice::Workspace => self.workspace.revision(),
            Slice::Notices => self.notices.revision(),
            Slice::Engine => self.engine.revision(),
            Slice::Ui => self.ui.revision(),
            Slice::Environment => self.environment.revision(),
            Slice::Window => self.window.revision(),
            Slice::Tour => self.tour.revision(),
        }))
    }
}

#[cfg(test)]
impl Model {
    /// Gives a slice another number, as a change of it does.
    pub(crate) fn touch(&mut self, slice: Slice) {
        match slice {
            Slice::Shown => self.shown.touch(),
            Slice::Session => self.agent.session.touch(),
            Slice::Conversation => self.agent.conversation.touch(),
            Slice::Outline => self.agent.outline = Revision::fresh(),
            Slice::Todo => self.agent.todo.touch(),
            Slice::Queue => self.agent.queue.touch(),
            Slice::Turn => self.agent.turn.touch(),
            Slice::Home => self.home.turn.touch(),
            Slice::Crew => self.crew.touch(),
            Slice::Questions => self.questions.touch(),
            Slice::Workspace => self.workspace.touch(),
            Slice::Notices => self.notices.touch(),
            Slice::Engine => self.engine.touch(),
            Slice::Ui => self.ui.touch(),
            Slice::Environment => self.environment.touch(),
            Slice::Window => self.window.touch(),
            Slice::Tour => self.tour.touch(),
        }
    }
}

/// The newest number of what is shown of the main agent while another one is shown. Each change has a higher number than
/// all before.
fn newest(home: &AgentModel) -> Revision {
    home.session.revision().max(home.turn.revision()).max(home.outline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slice_has_a_number_of_its_own() {
        for (n, slice) in Slice::ALL.into_iter().enumerate() {
            assert_eq!(slice as usize, n);
        }
        let mut model = Model::default();
        let before = model.revisions();
        model.crew.agents.clear();
        let after = model.revisions();
        let changed = Slice::ALL.into_iter().filter(|s| !before.same(&after, &[*s])).collect::<Vec<_>>();
        assert_eq!(changed, [Slice::Crew]);
    }
}
