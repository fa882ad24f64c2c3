//! Panels that lie on top. To add one: a file here, a line in [`OPENERS`] (and its action in
//! [`OPEN_ACTIONS`]) when a key or the palette opens it, a line in [`SAMPLES`] so that the tests walk it;
//! a dialog that answers a question of the engine goes into [`for_ask`].
//!
//! Most lists need no dialog of their own: give [`picker::Picker`] a [`picker::Source`].

use tiller_protocol::{Ask, AskId};

use crate::app::App;
use crate::app::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::Panel;

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

/// An action that puts a dialog on the screen.
pub struct Opener {
    pub action: Action,
    /// Makes the dialog, or says why it cannot be shown now.
    pub open: fn(&App) -> Result<Box<dyn Panel>, String>,
}

const fn opens(id: &'static str, open: fn(&App) -> Result<Box<dyn Panel>, String>) -> Opener {
    Opener { action: Action(id), open }
}

/// Every dialog that a key opens. One line each.
pub const OPENERS: &[Opener] = &[
    opens("palette.open", |app| Ok(Box::new(palette::open(app)))),
    opens("help.open", |app| Ok(Box::new(help::open(app)))),
    opens("errors.open", |app| Ok(Box::new(errors::open(app)))),
    opens("theme.open", |app| Ok(Box::new(theme::open(app)))),
    opens("review.open", |_| Ok(Box::new(review::Review::dialog()))),
    opens("queue.open", |app| {
        let none = crate::panel::composer::waiting(&app.model).next().is_none();
        if none { Err("No message is waiting".into()) } else { Ok(Box::new(queue::Queue::default())) }
    }),
    opens("setup.open", |_| Ok(Box::new(first_run::FirstRun::default()))),
    opens("settings.open", |app| Ok(Box::new(settings::open(app)))),
    opens("keys.open", |app| Ok(Box::new(recorder::open(app)))),
    opens("viewer.open", |app| viewer::open(&app.model)),
    opens("model.open", |_| Ok(Box::new(model::open()))),
    opens("profile.open", |_| Ok(Box::new(profile::open()))),
    opens("sessions.open", |_| Ok(Box::new(sessions::open()))),
    opens("branches.open", |_| Ok(Box::new(branches::open()))),
    opens("tree.open", |app| Ok(Box::new(tree::open(app)))),
    opens("history.open", |_| Ok(Box::new(history::open()))),
    opens("search.open", |app| Ok(Box::new(search::open(&app.model)))),
    opens("context.open", |_| Ok(Box::new(reports::context()))),
    opens("cost.open", |_| Ok(Box::new(reports::cost()))),
    opens("audit.open", |_| Ok(Box::new(reports::audit()))),
    opens("ops.open", |_| Ok(Box::new(reports::ops()))),
    opens("compare.open", |_| Ok(Box::new(compare::pick::open()))),
    opens("spawn.open", |_| Ok(Box::new(crate::panel::agents::spawn()))),
    opens("workflows.open", |app| Ok(flow::open(app))),
    opens("compact.open", |app| {
        if app.model.running {
            Err("A turn is running; stop it first".into())
        } else {
            Ok(Box::new(compact::Compact::default()))
        }
    }),
];

/// Names and help of the openers. One line each.
pub const OPEN_ACTIONS: &[ActionSpec] = &[
    ActionSpec::new("palette.open", "palette", "Find and run any action"),
    ActionSpec::new("help.open", "help", "Search keys and commands"),
    ActionSpec::new("errors.open", "errors", "Show errors and notices"),
    ActionSpec::new("theme.open", "theme", "Choose a theme with a live preview"),
    ActionSpec::new("review.open", "review", "Review what the last turn changed: accept, reject, comment"),
    ActionSpec::new("queue.open", "queue", "Reorder, edit or remove waiting messages"),
    ActionSpec::new("setup.open", "setup", "Set up a model: a key, a server or the demo"),
    ActionSpec::new("settings.open", "settings", "Change screen settings"),
    ActionSpec::new("keys.open", "keys", "Bind another key to an action"),
    ActionSpec::new("viewer.open", "viewer", "Read and search the whole conversation, unfolded"),
    ActionSpec::new("model.open", "model", "Choose the model"),
    ActionSpec::new("profile.open", "permissions", "Choose what runs without asking"),
    ActionSpec::new("sessions.open", "sessions", "Open another session"),
    ActionSpec::new("branches.open", "branches", "Branches of this session: open, name, archive"),
    ActionSpec::new("tree.open", "tree", "All sessions as trees: browse, branch, restore, name, filter"),
    ActionSpec::new("history.open", "history", "Find an earlier prompt"),
    ActionSpec::new("search.open", "find", "Search the text of all sessions"),
    ActionSpec::new("context.open", "context", "What fills the model's context"),
    ActionSpec::new("cost.open", "cost", "Cost by model, agent and day"),
    ActionSpec::new("audit.open", "audit", "What ran, what allowed it, how it ended"),
    ActionSpec::new("ops.open", "operations", "Operations on the conversation, files and titles"),
    ActionSpec::new("compare.open", "compare", "Compare this branch with another, side by side"),
    ActionSpec::new("spawn.open", "start an agent", "Start an agent in the background"),
    ActionSpec::new("workflows.open", "workflows", "Show running workflows, or start one"),
    ActionSpec::new("compact.open", "compact", "Compact the conversation to free context"),
];

/// Finds the opener of an action.
pub(crate) fn opener(action: Action) -> Option<&'static Opener> {
    OPENERS.iter().find(|o| o.action == action)
}

/// The dialog that answers this question; `None` when no dialog knows it.
pub fn for_ask(ask: &Ask, _model: &Model) -> Option<Box<dyn Panel>> {
    if let Some(d) = approval::Approval::of(ask) {
        return Some(Box::new(d));
    }
    if let Some(d) = clarify::Clarify::of(ask) {
        return Some(Box::new(d));
    }
    ask::Question::of(ask).map(|d| Box::new(d) as Box<dyn Panel>)
}

/// The id of the questions that samples show.
pub(crate) fn sample_id() -> AskId {
    AskId(Default::default())
}

/// A name and a function that makes a dialog with plausible content.
pub type Sample = (&'static str, fn() -> Box<dyn Panel>);

/// One of each dialog, for the tests that walk all of them (parity of options at every width).
pub const SAMPLES: &[Sample] = &[
    ("approval", || Box::new(approval::sample())),
    ("clarify", || Box::new(clarify::sample())),
    ("first run", || Box::new(first_run::FirstRun::default())),
    ("trust", || ask::sample(0)),
    ("budget", || ask::sample(1)),
    ("deep tier", || ask::sample(2)),
    ("session in use", || ask::sample(3)),
    ("not saving", || ask::sample(4)),
    ("plan", || ask::sample(5)),
    ("no price", || ask::sample(6)),
    ("confirm", || Box::new(confirm::sample())),
    ("words", || Box::new(words::sample())),
    ("picker", || Box::new(picker::sample())),
    ("review", || Box::new(review::sample())),
    ("on the side", || Box::new(aside::Aside::new("why is it so?"))),
    ("sessions", || Box::new(sessions::open())),
    ("branches", || Box::new(branches::sample())),
    ("compare", || Box::new(compare::sample())),
    ("restore", || Box::new(restore::sample())),
    ("open a branch", || Box::new(restore::branch_sample())),
    ("leave", || Box::new(leave::sample())),
    ("tree", || Box::new(tree::sample())),
    ("search", || Box::new(search::open(&Model::default()))),
    ("models", || Box::new(model::open())),
    ("workflow", flow::sample),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opener_has_a_name_and_every_name_an_opener() {
        let a: Vec<&str> = OPENERS.iter().map(|o| o.action.0).collect();
        let b: Vec<&str> = OPEN_ACTIONS.iter().map(|s| s.action.0).collect();
        assert_eq!(a, b);
    }

    /// A title begins with a capital letter and is no sentence: it has no full stop.
    #[test]
    fn every_title_is_in_sentence_case() {
        let robot = crate::testing::Robot::new(118, 25);
        let (app, model) = (&robot.app, &robot.app.model);
        let opened = OPENERS.iter().filter_map(|o| Some((o.action.0, (o.open)(app).ok()?.title(model))));
        let samples = SAMPLES.iter().map(|(name, make)| (*name, make().title(model)));
        let views =
            crate::panel::View::ALL.iter().map(|v| ("view", crate::panel::nothing::Nothing(*v).title(model)));
        let all: Vec<(&str, String)> = opened.chain(samples).chain(views).collect();
        assert!(all.len() > 50, "{all:?}");
        for (name, title) in all {
            assert!(!title.starts_with(char::is_lowercase) && !title.ends_with('.'), "{name}: {title:?}");
        }
    }
}
