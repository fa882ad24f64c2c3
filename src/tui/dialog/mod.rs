//! Panels that lie on top. To add one: a file with its [`Dialog`], and two lines in its group's `mod.rs`: its `mod` and
//! its place in `DIALOGS`. The compiler warns of a `DIALOG` that no list names.
//!
//! Most lists need no dialog of their own: give [`picker::Picker`] a [`picker::Source`].

use tiller_protocol::AskId;

use crate::registry::Dialog;

pub mod commands;
pub mod confirm;
pub mod first_run;
pub(crate) mod flow;
pub(crate) mod memory;
pub mod picker;
pub mod question;
pub mod queue;
pub mod reader;
pub mod report;
pub mod review;
pub mod session;
pub mod settings;
pub mod text_prompt;

/// Every group of dialogs, in the order of help; a dialog without a group is one of its own.
pub const DIALOGS: &[&[Dialog]] = &[
    commands::DIALOGS,
    report::DIALOGS,
    memory::DIALOGS,
    settings::DIALOGS,
    &[review::DIALOG],
    &[queue::DIALOG],
    &[first_run::DIALOG],
    reader::DIALOGS,
    session::DIALOGS,
    &[flow::DIALOG],
    question::DIALOGS,
    &[confirm::DIALOG],
    &[text_prompt::DIALOG],
    &[picker::DIALOG],
];

/// The id of the questions that samples show.
pub(crate) fn sample_id() -> AskId {
    AskId(Default::default())
}

#[cfg(test)]
mod tests {
    use crate::panel::Panel as _;
    use crate::shipped;

    /// A title begins with a capital letter and is no sentence: it has no full stop.
    #[test]
    fn every_title_is_in_sentence_case() {
        let robot = crate::testing::Robot::new(118, 25);
        let (app, model) = (&robot.app, &robot.app.model);
        let opened = shipped::registry()
            .openers()
            .filter_map(|o| Some((o.spec.action.0, (o.open)(app).ok()?.title(model))));
        let samples = shipped::registry().samples().map(|(name, make)| (*name, make().title(model)));
        let views = crate::panel::View::ALL
            .iter()
            .map(|v| ("view", crate::panel::empty_view::EmptyView(*v).title(model)));
        let all: Vec<(&str, String)> = opened.chain(samples).chain(views).collect();
        assert!(all.len() > 50, "{all:?}");
        for (name, title) in all {
            // It begins with the name of an agent, as the person wrote it.
            let title = if name == "approval" { title.replacen("a2", "A2", 1) } else { title };
            assert!(!title.starts_with(char::is_lowercase) && !title.ends_with('.'), "{name}: {title:?}");
        }
    }
}
