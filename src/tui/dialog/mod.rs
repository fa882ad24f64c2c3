//! Panels that lie on top. To add one: a file here with its [`Dialog`], and a line in [`DIALOGS`].
//!
//! Most lists need no dialog of their own: give [`picker::Picker`] a [`picker::Source`].

use tiller_protocol::AskId;

use crate::registry::Dialog;

pub mod approval;
pub mod aside;
pub mod ask;
pub(crate) mod branches;
pub mod clarify;
pub(crate) mod compact;
pub mod compare;
pub mod confirm;
pub(crate) mod deaf;
pub mod errors;
pub mod first_run;
pub(crate) mod flow;
pub mod help;
pub mod history;
pub(crate) mod leave;
pub(crate) mod model;
mod ops;
pub mod palette;
pub mod picker;
pub mod picture;
mod plan;
pub(crate) mod profile;
pub mod queue;
pub mod recorder;
pub mod reports;
pub(crate) mod restore;
pub mod review;
pub mod search;
pub mod sessions;
pub mod settings;
pub mod text;
pub mod theme;
pub(crate) mod tree;
pub mod viewer;
pub(crate) mod which_key;
pub mod words;

/// Every file with a dialog. Those that open by an action come first, in the order of the palette.
pub const DIALOGS: &[Dialog] = &[
    palette::DIALOG,
    help::DIALOG,
    errors::DIALOG,
    theme::DIALOG,
    review::DIALOG,
    queue::DIALOG,
    first_run::DIALOG,
    settings::DIALOG,
    recorder::DIALOG,
    viewer::DIALOG,
    model::DIALOG,
    profile::DIALOG,
    sessions::DIALOG,
    branches::DIALOG,
    tree::DIALOG,
    history::DIALOG,
    search::DIALOG,
    reports::DIALOG,
    compare::DIALOG,
    flow::DIALOG,
    compact::DIALOG,
    approval::DIALOG,
    clarify::DIALOG,
    ask::DIALOG,
    confirm::DIALOG,
    words::DIALOG,
    picker::DIALOG,
    text::DIALOG,
    aside::DIALOG,
    restore::DIALOG,
    leave::DIALOG,
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
        let views =
            crate::panel::View::ALL.iter().map(|v| ("view", crate::panel::nothing::Nothing(*v).title(model)));
        let all: Vec<(&str, String)> = opened.chain(samples).chain(views).collect();
        assert!(all.len() > 50, "{all:?}");
        for (name, title) in all {
            assert!(!title.starts_with(char::is_lowercase) && !title.ends_with('.'), "{name}: {title:?}");
        }
    }
}
