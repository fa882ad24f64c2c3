//! Panels that lie on top. To add one: a file here, a line in [`OPENERS`] when a key or the
//! palette opens it, a line in [`SAMPLES`] so that the tests that visit all dialogs visit it too;
//! a dialog that answers a question of the engine goes into [`for_ask`].
//!
//! Most lists need no dialog of their own: give [`picker::Picker`] a [`picker::Source`].

use tiller_protocol::{Ask, AskId};

use crate::app::App;
use crate::keymap::action::{Action, ActionSpec};
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
    /// Its name, its label and what help and palette say of it.
    pub spec: ActionSpec,
    /// Makes the dialog, or says why it cannot be shown now.
    pub open: fn(&App) -> Result<Box<dyn Panel>, String>,
}

const fn opens(
    id: &'static str,
    label: &'static str,
    help: &'static str,
    open: fn(&App) -> Result<Box<dyn Panel>, String>,
) -> Opener {
    Opener { spec: ActionSpec::new(id, label, help), open }
}

/// Every dialog that a key opens. One line each.
pub const OPENERS: &[Opener] = &[
    opens("palette.open", "palette", "Find and run any action", |app| Ok(Box::new(palette::open(app)))),
    opens("help.open", "help", "Search keys and commands", |app| Ok(Box::new(help::open(app)))),
    opens("errors.open", "errors", "Show errors and notices", |app| Ok(Box::new(errors::open(app)))),
    opens("theme.open", "theme", "Choose a theme with a live preview", |app| Ok(Box::new(theme::open(app)))),
    opens("review.open", "review", "Review what the last turn changed: accept, reject, comment", |_| {
        Ok(Box::new(review::Review::dialog()))
    }),
    opens("queue.open", "queue", "Reorder, edit or remove waiting messages", |app| {
        let none = app.model.waiting().next().is_none();
        if none { Err("No message is waiting".into()) } else { Ok(Box::new(queue::Queue::default())) }
    }),
    opens("setup.open", "setup", "Set up a model: a key, a server or the demo", |_| {
        Ok(Box::new(first_run::FirstRun::default()))
    }),
    opens("settings.open", "settings", "Change screen settings", |app| Ok(Box::new(settings::open(app)))),
    opens("keys.open", "keys", "Bind another key to an action", |app| Ok(Box::new(recorder::open(app)))),
    opens("viewer.open", "viewer", "Read and search the whole conversation, unfolded", |app| {
        viewer::open(&app.model)
    }),
    opens("model.open", "model", "Choose the model", |_| Ok(Box::new(model::open()))),
    opens("profile.open", "permissions", "Choose what runs without asking", |_| {
        Ok(Box::new(profile::open()))
    }),
    opens("sessions.open", "sessions", "Open another session", |_| Ok(Box::new(sessions::open()))),
    opens("branches.open", "branches", "Branches of this session: open, name, archive", |_| {
        Ok(Box::new(branches::open()))
    }),
    opens("tree.open", "tree", "All sessions as trees: browse, branch, restore, name, filter", |app| {
        Ok(Box::new(tree::open(app)))
    }),
    opens("history.open", "history", "Find an earlier prompt", |_| Ok(Box::new(history::open()))),
    opens("search.open", "find", "Search the text of all sessions", |app| {
        Ok(Box::new(search::open(&app.model)))
    }),
    opens("context.open", "context", "What takes up the model's context", |_| {
        Ok(Box::new(reports::context()))
    }),
    opens("cost.open", "cost", "Cost by model, agent and day", |_| Ok(Box::new(reports::cost()))),
    opens("audit.open", "audit", "What ran, what allowed it, how it ended", |_| {
        Ok(Box::new(reports::audit()))
    }),
    opens("ops.open", "operations", "Operations on the conversation, files and titles", |_| {
        Ok(Box::new(reports::ops()))
    }),
    opens("compare.open", "compare", "Compare this branch with another, side by side", |_| {
        Ok(Box::new(compare::pick::open()))
    }),
    opens("spawn.open", "start an agent", "Start an agent in the background", |_| {
        Ok(Box::new(crate::panel::agents::spawn()))
    }),
    opens("workflows.open", "workflows", "Show running workflows, or start one", |app| {
        Ok(flow::open(&app.model))
    }),
    opens("compact.open", "compact", "Compact the conversation to free context", |app| {
        if app.model.running {
            Err("A turn is running; stop it first".into())
        } else {
            Ok(Box::new(compact::Compact::default()))
        }
    }),
];

/// The actions of [`OPENERS`].
pub const OPEN_ACTIONS: &[ActionSpec] = &{
    let mut all = [OPENERS[0].spec; OPENERS.len()];
    let mut n = 0;
    while n < all.len() {
        all[n] = OPENERS[n].spec;
        n += 1;
    }
    all
};

/// Finds the opener of an action.
pub(crate) fn opener(action: Action) -> Option<&'static Opener> {
    OPENERS.iter().find(|o| o.spec.action == action)
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
    ("program's question", || {
        let ask = clarify::granting_sample();
        clarify::Clarify::of(&ask).map_or_else(|| Box::new(clarify::sample()), Box::new)
    }),
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

    /// A title begins with a capital letter and is no sentence: it has no full stop.
    #[test]
    fn every_title_is_in_sentence_case() {
        let robot = crate::testing::Robot::new(118, 25);
        let (app, model) = (&robot.app, &robot.app.model);
        let opened = OPENERS.iter().filter_map(|o| Some((o.spec.action.0, (o.open)(app).ok()?.title(model))));
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
