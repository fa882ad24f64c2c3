//! The panel of each view.

use super::{Panel, View, agents, composer, conversation, nothing, sessions, terminal, todo, watch};

/// Makes a panel.
pub type Make = fn() -> Box<dyn Panel>;

/// The panel of each view. One line each; a view without a line shows why it is empty.
pub const VIEWS: &[(View, Make)] = &[
    (View::Composer, || Box::new(composer::Composer::default())),
    (View::Conversation, || Box::new(conversation::ConversationPanel::default())),
    (View::Todo, || Box::new(todo::Todo::default())),
    (View::Agents, || Box::new(agents::Agents::default())),
    (View::Watch, || Box::new(watch::Watch::default())),
    (View::Sessions, || Box::new(sessions::Tree::default())),
    (View::Diff, || Box::new(crate::dialog::review::Review::view())),
    (View::Terminals, || Box::new(terminal::Terminal::default())),
];

/// Makes the panel of `view`.
pub fn make(view: View) -> Box<dyn Panel> {
    VIEWS
        .iter()
        .find(|(v, _)| *v == view)
        .map_or_else(|| Box::new(nothing::Nothing(view)) as Box<dyn Panel>, |(_, make)| make())
}
