//! What a picker lists: rows, and where they come from.

use std::any::Any;

use tiller_protocol::{CommandBody, Event};

use super::ACTIONS;
use crate::app::effect::{Effect, Token};
use crate::keymap::action::{Action, ActionSpec};
use crate::model::Model;
use crate::panel::Hint;

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What the source knows it by.
    pub id: String,
    /// What is shown and searched.
    pub text: String,
    /// At the right end: a key, a time, a price.
    pub detail: String,
    /// Also searched, not shown (help text, path).
    pub more: String,
    /// Why it cannot be chosen; shown in place of `detail`.
    pub disabled: Option<String>,
}

impl Item {
    /// Only a text.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), ..Self::default() }
    }

    /// With a text at the right end.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}

/// What a picker lists and what choosing does.
pub trait Source: Any {
    /// Title of the box.
    fn title(&self) -> String;

    /// The rows, best first. Read at opening, and again when `reply` or `act` says so.
    fn items(&mut self, model: &Model) -> Vec<Item>;

    /// A row was chosen. The picker is taken away by itself, before these effects.
    fn choose(&mut self, item: &Item, model: &Model) -> Vec<Effect>;

    /// Whether choosing this row grants, ends or takes away something: then it waits until the list has been in sight.
    fn decides(&self, _item: &Item) -> bool {
        false
    }

    /// Section of the key file; its parent should be `picker`.
    fn scope(&self) -> &'static str {
        "picker"
    }

    /// Actions of its own, on top of the picker's.
    fn actions(&self) -> &'static [ActionSpec] {
        ACTIONS
    }

    /// Does one of its own actions on the chosen row. `None`: not mine.
    fn act(&mut self, _action: Action, _item: Option<&Item>, _model: &Model) -> Option<Outcome> {
        None
    }

    /// Words that [`Outcome::Words`] asked for about `item`, trimmed.
    fn words(&mut self, _item: &Item, _text: &str, _model: &Model) -> Outcome {
        Outcome::Stay { effects: Vec::new(), reload: false }
    }

    /// Hints besides "choose"; `any`: there is a chosen row.
    fn hints(&self, _any: bool) -> Vec<Hint> {
        Vec::new()
    }

    /// Questions to the engine at opening.
    fn ask(&mut self) -> Vec<(CommandBody, Token)> {
        Vec::new()
    }

    /// An answer; `true`: read the items again.
    fn reply(&mut self, _token: Token, _event: &Event, _model: &Model) -> bool {
        false
    }

    /// Questions that follow from an answer that changed the items.
    fn follow(&mut self) -> Vec<(CommandBody, Token)> {
        Vec::new()
    }

    /// The filter changed. For sources that search by themselves: return questions to ask.
    fn filter(&mut self, _text: &str) -> Vec<(CommandBody, Token)> {
        Vec::new()
    }

    /// Whether the picker filters (fuzzy). Sources that search by themselves say `false`.
    fn fuzzy(&self) -> bool {
        true
    }

    /// The chosen row changed (live preview).
    fn hover(&mut self, _item: Option<&Item>) -> Vec<Effect> {
        Vec::new()
    }

    /// Left without choosing.
    fn cancelled(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    /// Text for the preview pane; `None`: there is no pane.
    fn preview(&self, _item: &Item) -> Option<String> {
        None
    }

    /// What Enter does, for the footer.
    fn verb(&self) -> &'static str {
        "choose"
    }

    /// A wide table: the details have more room than the texts, and the preview stands below with this many rows
    /// (0: there is none). `None`: a list, with the preview beside it.
    fn table(&self) -> Option<u16> {
        None
    }

    /// What to say when there are no rows.
    fn nothing(&self) -> &'static str {
        "No match"
    }
}

/// What an own action of a source led to.
pub enum Outcome {
    /// Stay open; `reload`: read the items again.
    Stay { effects: Vec<Effect>, reload: bool },
    /// Ask for words about the chosen row, beginning with `text`; they come to [`Source::words`].
    Words { label: &'static str, text: String },
    /// Close, then do these.
    Close(Vec<Effect>),
}
